//! Two processes of one thread that exchange next to nothing, and as much as they can. They are threads of this program, with
//! connections over loopback as between processes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use megagrid_benches::measure::iterate;
use megagrid_engine::{Engine, IterationReport, Peers, Settings, Topology};
use megagrid_partition::{EdgeList, GroupedEdges, Side};
use megagrid_stages::{
    Add, Apply, BatchSize, Context, Exchange, Master, Program, Read, Right, Sequence, Stages, Update, mode, program,
    vertex,
};
use timely::communication::Hooks;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::dataflow::operators::{Exchange as _, Input as _, Probe};
use timely::dataflow::{InputHandle, ProbeHandle};

use crate::floors::Floors;
use crate::local;

/// Rounds; each measures what is compared in turn.
const ROUNDS: usize = 9;
/// Clocks of a round.
const CLOCKS: usize = 1000;
/// An empty clock takes at most this many rounds of timely.
const MOST_ROUNDS: f64 = 2.5;
/// Synced data in a second, each way.
const LEAST_GIGABYTES: f64 = 1.5;

vertex! {
    /// One number.
    struct Number { sync: f32 }
}

vertex! {
    /// One number, with deltas.
    struct Sum { sync: f32, delta: f32 }
}

program! {
    /// Deltas go there and rows come back in every clock.
    struct Pulse { left: Number, right: Sum }
}

struct Beat;

impl Exchange<Pulse> for Beat {
    type Left = mode::Update;
    type Right = mode::Add;

    fn exchange(&self, left: Update<'_, Number>, right: Add<'_, Sum>, (): &mut (), _: &mut Context<'_, Pulse>) {
        *left.sync = *right.sync;
        *right.delta += 1.0;
    }
}

impl Apply<Pulse, Sum> for Beat {
    fn apply(&self, vertex: Master<'_, Sum>, _: &mut Context<'_, Pulse>) {
        *vertex.sync += *vertex.delta;
    }
}

/// Two left vertices a clock, one of each process, and a right vertex that each process keeps.
fn pulse() -> Sequence<Pulse, impl Stages<Pulse>> {
    let batch = BatchSize::Vertices(Side::Left, 2);
    Sequence::new().mini_batch(batch, |batch| batch.exchange(Beat).apply(Right, Beat))
}

/// Measures an empty clock, deltas there and rows back, against a round of timely in which all learn that all have come.
pub fn measure_clock(floors: &mut Floors) {
    let (mut clock, mut round) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        clock = clock.min(seconds_of_a_clock());
        round = round.min(seconds_of_a_round());
    }
    println!("empty clock, there and back {:.1} us; empty round of timely {:.1} us", 1e6 * clock, 1e6 * round);
    floors.at_most("empty clock by empty round of timely", clock / round, MOST_ROUNDS);
}

fn settings(peers: Option<Arc<dyn Peers>>, dims: usize) -> Settings {
    Settings { workers: 1, peers, dims, topology: Topology::synthetic(1, 2), ..Settings::default() }
}

/// Returns all edges between some left and right vertices.
fn all_edges(lefts: usize, rights: usize) -> GroupedEdges<()> {
    let pairs = (0..lefts as u32).flat_map(|left| (0..rights as u32).map(move |right| (left, right)));
    let (left, right): (Vec<u32>, Vec<u32>) = pairs.unzip();
    let data = vec![(); left.len()];
    GroupedEdges::new(EdgeList { num_left: lefts, num_right: rights, square: false, left, right, data }, &[Side::Right])
}

/// Runs a program for some iterations, and returns the least seconds of one after the first, with its report.
fn best<P: Program<Edge = (), Global = ()>, S: Stages<P>>(
    edges: &GroupedEdges<()>,
    sequence: &(impl Fn() -> Sequence<P, S> + Sync),
    (dims, iterations): (usize, u64),
) -> IterationReport {
    local::run(2, |peers| {
        let mut engine = Engine::<P>::new(edges, sequence(), &settings(peers, dims)).expect("an engine");
        let later = iterate(&mut engine, iterations).into_iter().skip(1);
        later.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("two iterations at least")
    })
}

fn seconds_of_a_clock() -> f64 {
    let report = best(&all_edges(2 * CLOCKS, 2), &pulse, (1, 3));
    let least = report.sent.deltas.messages.min(report.sent.rows.messages);
    assert!(least >= CLOCKS as u64, "deltas go there and rows come back: {:?}", report.sent);
    report.seconds / CLOCKS as f64
}

/// Returns the seconds in which two workers, each after the other's last round, end a round.
fn seconds_of_a_round() -> f64 {
    let peers = |peers: Option<Arc<dyn Peers>>| {
        let Some(peers) = peers else { return 0.0 };
        let hooks = Hooks::default();
        let process = ProcessBuilder::new_typed_vector(1, hooks.refill.clone(), hooks.spill.clone());
        let sockets = peers.sockets().expect("connections");
        let (builders, guard) =
            initialize_networking_from_sockets(process, sockets, peers.process(), 1, hooks).expect("connections");
        let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
        let config = timely::WorkerConfig::default();
        let guards = timely::execute::execute_from(builders, Box::new(guard), config, rounds).expect("workers");
        guards.join().into_iter().map(|seconds| seconds.expect("a worker that ends")).fold(0.0, f64::max)
    };
    local::run(2, peers)
}

fn rounds(worker: &mut timely::worker::Worker) -> f64 {
    let mut input: InputHandle<u64, timely::container::CapacityContainerBuilder<Vec<u64>>> =
        InputHandle::new_with_builder();
    let probe = ProbeHandle::new();
    worker.dataflow(|scope| {
        scope.input_from(&mut input).exchange(|number| *number).probe_with(&probe);
    });
    let mut run = |rounds: std::ops::Range<u64>| {
        let begin = Instant::now();
        for round in rounds {
            input.advance_to(round + 1);
            worker.step();
            while probe.less_than(&(round + 1)) {
                worker.step_or_park(Some(Duration::from_micros(100)));
            }
        }
        begin.elapsed().as_secs_f64() / CLOCKS as f64
    };
    run(0..CLOCKS as u64);
    run(CLOCKS as u64..2 * CLOCKS as u64)
}

vertex! {
    /// A row, with a small delta.
    struct Wide { sync: [f32], delta: f32 }
}

program! {
    /// Every process reads all rows, which their masters change.
    struct Flood { left: Number, right: Wide }
}

struct Look;

impl Exchange<Flood> for Look {
    type Left = mode::Update;
    type Right = mode::Add;
    // Whether a row is active is asked once, not for each edge.
    const GROUPED: bool = true;

    /// No edge runs: what is measured is what becomes of the rows.
    fn is_active(&self, _: Read<'_, Wide>, _: &Context<'_, Flood>) -> bool {
        false
    }

    fn exchange(&self, left: Update<'_, Number>, right: Add<'_, Wide>, (): &mut (), _: &mut Context<'_, Flood>) {
        *left.sync += right.sync[0];
        *right.delta += 1.0;
    }
}

impl Apply<Flood, Wide> for Look {
    fn apply(&self, vertex: Master<'_, Wide>, _: &mut Context<'_, Flood>) {
        vertex.sync[0] += *vertex.delta;
    }
}

fn flood() -> Sequence<Flood, impl Stages<Flood>> {
    Sequence::new().exchange(Look).apply(Right, Look)
}

/// Bytes of a row of [`Wide`].
const ROW_BYTES: usize = 4 << 10;
/// Rows of a shard, and shards that are synced in a clock.
const SIZES: [(usize, usize); 5] = [(16, 16), (64, 16), (256, 16), (1024, 4), (4096, 4)];
/// A plan makes its number of shards of a side if there are this many edges for each shard and each of the other side's.
const BLOCK_EDGES: usize = 2048;

/// Measures how much of masters' rows reaches mirrors in a second, both ways at once, for shards of several sizes: all that an
/// iteration does counts.
pub fn measure_rate(floors: &mut Floors) {
    let sizes = SIZES.map(|(rows, shards)| {
        let lefts = (BLOCK_EDGES * shards * shards / (rows * shards)).max(shards);
        (rows, shards, all_edges(lefts, rows * shards))
    });
    let mut rates = SIZES.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for ((rows, shards, edges), rates) in sizes.iter().zip(&mut rates) {
            let report = best(edges, &flood, (ROW_BYTES / 4, 20));
            let sent = report.sent.rows;
            assert!(sent.bytes >= (rows * shards * ROW_BYTES) as u64, "every process needs all rows: {sent:?}");
            rates.push(sent.bytes as f64 / 2.0 / report.seconds / 1e9);
        }
    }
    for ((rows, shards, _), mut rates) in sizes.into_iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        let (median, most, kilobytes) = (rates[ROUNDS / 2], rates[ROUNDS - 1], rows * ROW_BYTES / 1000);
        println!("{shards} shards of {kilobytes} KB: {median:.2} GB/s of synced rows each way (best round {most:.2})");
        floors.at_least(&format!("GB/s each way, shards of {kilobytes} KB"), median, LEAST_GIGABYTES);
    }
}
