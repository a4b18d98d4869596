//! Clocks of several iterations (A-BSP, and with slack): what is sent, seen and summed, and what is refused.

use megagrid_algorithms::lda::{Dense, Mh};
use megagrid_algorithms::mf::{self, batch, in_place};
use megagrid_engine::{Engine, Error, Settings};
use megagrid_partition::GroupedEdges;
use megagrid_stages::{Context, Left, Right, Sequence, Stages, Update, program, vertex};

use super::guarantee::{LEFTS, RIGHTS, edges};
use super::{check, config, lda, links, local, ratings, settings, train_as};
use crate::made::{page_rank, topics, watch};

vertex! {
    /// A left vertex: its number, and how often it saw too little, and too much.
    struct Marker { sync: [u32; 3] }
}

vertex! { struct Board { sync: [f32] } }

program! { struct Marking { left: Marker, right: Board } }

/// Every left vertex adds a mark in each iteration, and looks at those of others: all of clocks up to t − 1 − s must be there,
/// and none of clocks after t + s may be.
fn marks(passes: u64, slack: u64) -> Sequence<Marking, impl Stages<Marking>> {
    let mark = move |marker: Update<Marker>, board: Update<Board>, (): &mut (), cx: &mut Context<Marking>| {
        let clock = (cx.iteration - 1) / passes;
        let (least, most) = (clock.saturating_sub(slack) * passes, (clock + slack + 1) * passes);
        for marks in &board.sync[..LEFTS] {
            marker.sync[1] += u32::from((*marks as u64) < least);
            marker.sync[2] += u32::from(*marks as u64 > most);
        }
        board.sync[marker.sync[0] as usize] += 1.0;
    };
    Sequence::new().exchange(mark)
}

const ITERATIONS: u64 = 13;

/// Returns the messages of changes that all processes sent, and how often too little and too much was seen.
fn run(passes: u64, slack: u64, (processes, workers): (usize, usize)) -> (u64, u32, u32) {
    let edges = edges();
    local::run(processes, |peers| {
        let is_first = peers.as_ref().is_none_or(|peers| peers.process() == 0);
        let settings = Settings { slack: Some(slack), passes_per_clock: passes, ..settings(peers, workers, LEFTS) };
        let mut engine = Engine::<Marking>::new(&edges, marks(passes, slack), &settings).unwrap();
        engine.init(Left, |id, first| *first.sync = [id as u32, 0, 0]);
        let mut messages = 0;
        watch(&mut engine, ITERATIONS, |engine, report| {
            messages += engine.reports().iter().map(|report| report.sent.changes.messages).sum::<u64>();
            assert!(report.iteration.is_multiple_of(passes) || report.iteration == ITERATIONS, "a look within a clock");
            engine.collect().unwrap();
            if is_first {
                let right = engine.on(Right);
                let marks = (0..RIGHTS).flat_map(|id| &right.sync(id)[..LEFTS]);
                marks
                    .for_each(|marks| assert_eq!(*marks, report.iteration as f32, "no mark is lost, or counted twice"));
            }
        });
        let left = engine.on(Left);
        let sum = |at: usize| (0..LEFTS).map(|id| left.sync(id)[at]).sum::<u32>();
        (messages, sum(1), sum(2))
    })
}

#[test]
fn a_clock_of_several_iterations_sends_its_changes_once() {
    for shape in [(2, 1), (2, 2), (3, 1)] {
        for slack in [0, 1, 3] {
            let sent = [2, 4].map(|passes| {
                let (messages, stale, ahead) = run(passes, slack, shape);
                assert_eq!((stale, ahead), (0, 0), "{passes} iterations a clock, slack {slack}, {shape:?}");
                messages
            });
            // 7 and 4 clocks in 13 iterations.
            assert!(sent[0] > 0 && sent[0] * 4 == sent[1] * 7, "{sent:?}");
            if slack > 0 {
                assert_eq!(run(1, slack, shape).0 * 7, sent[0] * 13);
            }
        }
    }
}

#[test]
fn what_is_set_between_runs_stays_set() {
    let edges = edges();
    for (passes, slack) in [(1, 1), (2, 0)] {
        local::run(2, |peers| {
            let is_first = peers.as_ref().is_none_or(|peers| peers.process() == 0);
            let settings = Settings { slack: Some(slack), passes_per_clock: passes, ..settings(peers, 1, LEFTS) };
            let mut engine = Engine::<Marking>::new(&edges, marks(passes, slack), &settings).unwrap();
            for times in 0..3 {
                // The first time nothing has run.
                engine.init(Right, |id, first| first.sync[..LEFTS].fill((id + times) as f32));
                engine.collect().unwrap();
                let right = engine.on(Right);
                let is_set = |id: usize| right.sync(id)[..LEFTS].iter().all(|&item| item == (id + times) as f32);
                assert!(
                    !is_first || (0..RIGHTS).all(is_set),
                    "{passes} iterations a clock, slack {slack}, {times} runs"
                );
                drop(right);
                engine.iterate(4).unwrap();
            }
        });
    }
}

#[test]
fn with_slack_0_factors_are_the_same_bit_for_bit() {
    let edges = ratings(9000);
    let config = mf::Config { step: 0.02, ..config() };
    let run = |passes_per_clock, (processes, workers)| {
        local::run(processes, |peers| {
            let settings = Settings { passes_per_clock, ..settings(peers, workers, config.row_dims()) };
            let (objectives, factors, reports) = train_as(&edges, config, &settings, in_place::sequence(config, 9000));
            let staleness: Vec<i64> = reports.iter().flat_map(|report| report.staleness.keys().copied()).collect();
            assert!(staleness.iter().all(|age| *age == -1), "{staleness:?}");
            (objectives, factors)
        })
    };
    let (expected, _) = run(1, (1, 1));
    for (passes, shape) in [(2, (2, 1)), (2, (2, 2)), (2, (4, 1)), (4, (2, 2)), (8, (3, 1)), (4, (1, 2))] {
        let (found, factors) = run(passes, shape);
        assert_eq!(found.len() as u64, 20_u64.div_ceil(passes), "a look at the end of each clock");
        check(&found[found.len() - 1..], &expected[19..], 0.15, (passes, shape));
        assert_eq!((found, factors), run(passes, shape), "{passes} iterations a clock, {shape:?}: a second run");
    }
}

#[test]
fn with_slack_0_topics_are_the_same_bit_for_bit() {
    let edges = lda::corpus();
    let run = |shape: (usize, usize)| lda::train_in_passes::<Dense>(&edges, shape, 2);
    for shape in [(2, 1), (2, 2)] {
        assert_eq!(run(shape).to_bits(), run(shape).to_bits(), "{shape:?}");
    }
}

fn refusal<T>(made: Result<T, Error>) -> String {
    made.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn what_needs_all_workers_in_each_iteration_is_refused() {
    let (ratings, documents): (GroupedEdges<f32>, _) = (ratings(900), lda::corpus());
    let settings = Settings { passes_per_clock: 2, ..settings(None, 2, config().row_dims()) };
    let found = refusal(Engine::new(&ratings, batch::sequence(config(), 900), &settings));
    assert!(found.contains("needs what all workers did in each iteration"), "{found}");
    let found = refusal(Engine::new(&ratings, in_place::sequence(config(), 90), &settings));
    assert_eq!(found, "passes per clock is 2; expected 1 where an iteration has several clocks");
    let panics = |work: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err();
    assert!(panics(&|| drop(page_rank(&links(70, 900), &[], &settings))));
    assert!(panics(&|| drop(topics::<Mh>(&documents, &megagrid_algorithms::lda::Config::new(4), &settings))));
}
