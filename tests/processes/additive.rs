//! Applies that are given parts of sums, with slack: who sees what when, that each part is applied once, and where that leads.

use std::time::Duration;

use megagrid_algorithms::mf::{self, batch};
use megagrid_engine::plan::{self, Part};
use megagrid_engine::virtual_cluster::{Costs, Model};
use megagrid_engine::{Engine, Error, Settings};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{
    Add, BatchSize, Context, Exchange, Left, Master, Read, Right, Sequence, Stages, Update, additive, mode, program,
    vertex,
};
use proptest::prelude::*;

use super::guarantee::{EACH, ITERATIONS, LEFTS, Marker, RIGHTS, edges, look, with_slack};
use super::virtual_workers::{first, model};
use super::{BSP, SHAPES, check, config, local, ratings, settings, train};
use crate::made::watch;

vertex! { struct Board { sync: [f32], delta: [f32] } }

program! { struct Marking { left: Marker, right: Board } }

/// Looks at the marks of others, and leaves one.
struct Mark {
    slack: usize,
    delays: u64,
}

impl Mark {
    fn look(&self, marker: &mut [u32], marks: &[f32], cx: &Context<'_, Marking>) {
        let mut random = SplitMix::new(self.delays, u64::from(marker[0]) << 8 | cx.iteration);
        if self.delays > 0 && random.below(8) == 0 {
            std::thread::sleep(Duration::from_micros(random.below(3000)));
        }
        look(marker, marks, cx.iteration, self.slack);
    }
}

/// Both ends of an edge are written: right shards rotate.
struct InOne(Mark);

impl Exchange<Marking> for InOne {
    type Left = mode::Update;
    type Right = mode::Add;

    fn exchange(&self, marker: Update<Marker>, board: Add<Board>, (): &mut (), cx: &mut Context<Marking>) {
        self.0.look(marker.sync, board.sync, cx);
        board.delta[marker.sync[0] as usize] += 1.0;
    }
}

/// One end is read: each worker adds to deltas of its own.
struct Look(Mark);

impl Exchange<Marking> for Look {
    type Left = mode::Update;
    type Right = mode::Read;

    fn exchange(&self, marker: Update<Marker>, board: Read<Board>, (): &mut (), cx: &mut Context<Marking>) {
        self.0.look(marker.sync, board.sync, cx);
    }
}

fn add(board: Master<Board>) {
    board.sync.iter_mut().zip(board.delta).for_each(|(marks, more)| *marks += more);
}

fn in_one(mark: Mark) -> Sequence<Marking, impl Stages<Marking>> {
    let batch = BatchSize::Vertices(Side::Left, EACH as u64);
    Sequence::new().mini_batch(batch, move |b| b.exchange(InOne(mark)).apply(Right, additive(add)))
}

fn in_two(mark: Mark) -> Sequence<Marking, impl Stages<Marking>> {
    let leave = |marker: Read<Marker>, board: Add<Board>| board.delta[marker.sync[0] as usize] += 1.0;
    let batch = BatchSize::Vertices(Side::Left, EACH as u64);
    Sequence::new().mini_batch(batch, move |b| b.exchange(Look(mark)).exchange(leave).apply(Right, additive(add)))
}

/// The part of one process: how often too little and too much was seen. At each look there are the marks of exactly the iterations that
/// are done, and with slack workers go on where there is none.
fn run_as<S: Stages<Marking>>(settings: &Settings, sequence: Sequence<Marking, S>) -> (u32, u32) {
    let settings = Settings { dims: LEFTS, ..settings.clone() };
    let mut engine = Engine::<Marking>::new(&edges(), sequence, &settings).unwrap();
    assert_eq!(engine.plan().flows, settings.slack != Some(0));
    engine.init(Left, |id, first| *first.sync = [id as u32, 0, 0]);
    watch(&mut engine, ITERATIONS, |engine, report| {
        engine.collect().unwrap();
        // Rows of before, which may still be on their way, have time to come: they are too late.
        std::thread::sleep(Duration::from_micros(300));
        if settings.peers.as_ref().is_none_or(|peers| peers.process() == 0) {
            let right = engine.on(Right);
            let marks = (0..RIGHTS).flat_map(|id| &right.sync(id)[..LEFTS]);
            marks.for_each(|marks| assert_eq!(*marks, report.iteration as f32, "no mark is lost, or counted twice"));
        }
    });
    let left = engine.on(Left);
    let sum = |at: usize| (0..LEFTS).map(|id| left.sync(id)[at]).sum::<u32>();
    (sum(1), sum(2))
}

fn run_one_of(settings: &Settings, rotates: bool, delays: u64) -> (u32, u32) {
    let mark = Mark { slack: settings.slack.map_or(1 << 20, |slack| slack as usize), delays };
    if rotates { run_as(settings, in_one(mark)) } else { run_as(settings, in_two(mark)) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_worker_sees_what_the_slack_promises_of_parts_of_sums(
        slack in prop_oneof![6 => (0_u64..5).prop_map(Some), 1 => Just(None)],
        lazy: bool,
        rotates: bool,
        look_every in 1..=ITERATIONS,
        shape in prop::sample::select(vec![(1, 2), (1, 4), (2, 1), (2, 2), (3, 1), (4, 1)]),
        delays: u64,
    ) {
        let (stale, ahead) = local::run(shape.0, |peers| {
            let settings = Settings { peers, slack, workers: shape.1, ..with_slack(0, lazy, look_every) };
            run_one_of(&settings, rotates, delays)
        });
        prop_assert_eq!(stale, 0, "changes of clock t - 1 - s that were not seen");
        prop_assert_eq!(ahead, 0, "changes of workers more than s clocks ahead");
    }

    #[test]
    fn a_virtual_worker_sees_what_the_slack_promises_of_parts_of_sums(
        slack in prop_oneof![6 => (0_u64..5).prop_map(Some), 1 => Just(None)],
        lazy: bool,
        rotates: bool,
        look_every in 1..=ITERATIONS,
        workers in 2_usize..9,
        seed: u64,
    ) {
        let model = Model { jitter: 0.6, seed, ..model(Costs::Clock(1e-3)) };
        let (stale, ahead) = first(workers, model, |peers| {
            run_one_of(&Settings { peers, slack, ..with_slack(0, lazy, look_every) }, rotates, 0)
        });
        prop_assert_eq!(stale, 0, "changes of clock t - 1 - s that were not seen");
        prop_assert_eq!(ahead, 0, "changes of workers more than s clocks ahead");
    }
}

vertex! {
    /// How much was added, and how much an edge adds.
    struct Sum { sync: [u64; 2], delta: u64 }
}

vertex! { struct Other { sync: [u64; 2], delta: u64 } }

program! { struct Summing { left: Sum, right: Other } }

/// Adds to both ends, or to one.
fn sums(batch: u64) -> Sequence<Summing, impl Stages<Summing>> {
    Sequence::new().mini_batch(BatchSize::Edges(batch), |b| {
        b.exchange(|left: Add<Sum>, right: Add<Other>| {
            *left.delta += right.sync[1];
            *right.delta += left.sync[1];
        })
        .apply(Left, additive(|left: Master<Sum>| left.sync[0] += *left.delta))
        .apply(Right, additive(|right: Master<Other>| right.sync[0] += *right.delta))
    })
}

fn sums_of_one_side(batch: u64) -> Sequence<Summing, impl Stages<Summing>> {
    Sequence::new().mini_batch(BatchSize::Edges(batch), |b| {
        b.exchange(|left: Read<Sum>, right: Add<Other>| *right.delta += left.sync[1])
            .apply(Right, additive(|right: Master<Other>| right.sync[0] += *right.delta))
    })
}

/// A graph with a hub on each side.
fn hubs() -> GroupedEdges<()> {
    let mut random = SplitMix::new(5, 0);
    let mut list = EdgeList { num_left: 300, num_right: 200, ..EdgeList::default() };
    for n in 0..6000 {
        let (left, right) = (random.below(300) as u32, random.below(200) as u32);
        list.push(if n % 7 == 0 { 3 } else { left }, if n % 5 == 0 { 5 } else { right }, ());
    }
    GroupedEdges::new(list, &[Side::Right])
}

/// The part of one process: what was added to each vertex in `iterations`, over all of them.
fn sums_as<S: Stages<Summing>>(
    edges: &GroupedEdges<()>,
    settings: &Settings,
    sequence: Sequence<Summing, S>,
    iterations: u64,
) -> (Vec<u64>, bool, [Option<Part>; 2]) {
    let mut engine = Engine::<Summing>::new(edges, sequence, settings).unwrap();
    engine.init(Left, |id, first| *first.sync = [0, id as u64 + 1]);
    engine.init(Right, |id, first| *first.sync = [0, id as u64 + 1000]);
    // Of two runs, the second begins where the first has ended, and so does a branch.
    engine.iterate(iterations / 2).unwrap();
    let mut branch = engine.fork().unwrap();
    let go_on = |engine: &mut Engine<Summing>| {
        engine.iterate(iterations - iterations / 2).unwrap();
        engine.collect().unwrap();
        let (left, right) = (engine.on(Left), engine.on(Right));
        left.iter().map(|sums| sums[0]).chain(right.iter().map(|sums| sums[0])).collect::<Vec<u64>>()
    };
    let all = go_on(&mut engine);
    engine.switch(&mut branch).unwrap();
    let of_branch = go_on(&mut engine);
    assert!(settings.peers.as_ref().is_some_and(|peers| peers.process() > 0) || all == of_branch, "as in the branch");
    (all, engine.plan().flows, engine.plan().parts)
}

fn expected(edges: &GroupedEdges<()>, both: bool) -> Vec<u64> {
    let (sums, ..) = sums_as(edges, &settings(None, 1, 1), sums(6000), 1);
    sums.into_iter().enumerate().map(|(at, sum)| if both || at >= 300 { sum } else { 0 }).collect()
}

#[test]
fn every_part_is_applied_once_in_every_shape() {
    let edges = hubs();
    let shapes = [(1, 2), (1, 3), (2, 1), (2, 2), (4, 1), (4, 2), (6, 1)];
    for both in [true, false] {
        let expected = expected(&edges, both);
        for (shape, slack) in shapes.into_iter().flat_map(|shape| [Some(0), Some(1), Some(3), None].map(|s| (shape, s)))
        {
            // In one process all of them are the same.
            let ways = [
                (plan::Strategy::BiCut, true),
                (plan::Strategy::BiCut, false),
                (plan::Strategy::Grid, true),
                (plan::Strategy::Hybrid, false),
            ];
            for (strategy, lazy) in ways.into_iter().take(if shape.0 == 1 { 1 } else { 4 }) {
                let run = |peers| {
                    let settings =
                        Settings { slack, lazy, strategy, look_every: Some(2), ..settings(peers, shape.1, 1) };
                    if both {
                        sums_as(&edges, &settings, sums(1500), 5)
                    } else {
                        sums_as(&edges, &settings, sums_of_one_side(1500), 5)
                    }
                };
                let (found, flows, parts) = local::run(shape.0, run);
                let what = (shape, slack, lazy, strategy, both, parts);
                assert!(found.iter().zip(&expected).all(|(found, sum)| *found == 5 * sum), "{what:?}");
                assert!(slack != Some(0) || parts == [None; 2], "{what:?}");
                assert_eq!(flows, slack != Some(0), "{what:?}");
                let served = both && shape.0 > 1 && slack != Some(0);
                assert!(!served || parts[1] == Some(Part::Process), "{what:?}");
                let are_cut = shape.0 > 2 && strategy == plan::Strategy::Grid;
                assert!(!served || !are_cut || parts[0] == Some(Part::Process), "{what:?}");
            }
        }
    }
}

fn parts_of<S: Stages<Summing>>(edges: &GroupedEdges<()>, sequence: Sequence<Summing, S>) -> [Option<Part>; 2] {
    let settings = Settings { slack: Some(2), ..settings(None, 2, 1) };
    Engine::<Summing>::new(edges, sequence, &settings).unwrap().plan().parts
}

/// Where a sum is to be whole nothing changes, whatever the author says.
#[test]
fn sums_that_a_clock_does_not_end_with_stay_whole() {
    let edges = hubs();
    let add = |left: Read<Sum>, right: Add<Other>| *right.delta += left.sync[1];
    let apply = |right: Master<Other>| right.sync[0] += *right.delta;
    let new = Sequence::<Summing>::new;
    assert_eq!(parts_of(&edges, new().exchange(add).apply(Right, apply)), [None, None], "not said to be additive");
    let read = |_: Read<Sum>, _: Read<Other>| {};
    let then_read = new().exchange(add).apply(Right, additive(apply)).exchange(read);
    assert_eq!(parts_of(&edges, then_read), [None, None], "what follows reads what was applied");
    let twice = new().exchange(add).apply(Right, additive(apply)).apply(Right, additive(apply));
    assert_eq!(parts_of(&edges, twice), [None, None], "two of them");
    let of_some =
        new().mini_batch(BatchSize::Vertices(Side::Right, 50), |b| b.exchange(add).apply(Right, additive(apply)));
    assert_eq!(parts_of(&edges, of_some), [None, None], "batches of the vertices that it runs on");
}

/// Factorization by batches, whose users step on whole gradients and whose items on those of each process.
#[test]
fn factorization_by_batches_with_slack_ends_at_the_objective_without() {
    let edges = ratings(9000);
    let last = |objectives: Vec<f64>| objectives[objectives.len() - 1];
    let run =
        |shape, consistency| last(train(&edges, shape, config(), consistency, || batch::sequence(config(), 1500)).0);
    let expected = run((1, 1), BSP);
    for shape in SHAPES {
        for consistency in [(Some(1), true), (Some(1), false), (Some(3), true)] {
            check(&[run(shape, consistency)], &[expected], 0.01, (shape, consistency));
        }
    }
    let steps = mf::Config { optimizer: mf::Optimizer::Sgd, step: 0.002, ..config() };
    let run = |shape, consistency| last(train(&edges, shape, steps, consistency, || batch::sequence(steps, 1500)).0);
    let expected = run((1, 1), BSP);
    for shape in [(1, 2), (2, 1), (2, 2)] {
        check(&[run(shape, (Some(1), false))], &[expected], 0.01, shape);
    }
}

/// An Apply that fails in the third iteration, whoever's part it is given.
#[test]
fn a_part_whose_apply_panics_ends_the_run() {
    fn fill(right: Master<Other>, cx: &mut Context<Summing>) {
        assert!(cx.iteration < 3, "enough");
        right.sync[0] += *right.delta;
    }
    let (edges, add) = (hubs(), |_: Read<Sum>, right: Add<Other>| *right.delta += 1);
    let ended = local::run(2, |peers| {
        let settings = Settings { slack: Some(1), ..settings(peers, 1, 1) };
        let sequence = Sequence::new().exchange(add).apply(Right, additive(fill));
        Engine::<Summing>::new(&edges, sequence, &settings).unwrap().iterate(9)
    });
    match ended {
        Err(Error::WorkerPanicked { stage, clock: 3, message, .. }) => {
            assert_eq!((&*stage, &*message), ("fill", "enough"))
        }
        other => panic!("{other:?}"),
    }
}
