//! What crosses between processes is what the plan says, to the byte.

use std::ops::ControlFlow;
use std::sync::Arc;

use megagrid_algorithms::blockpg::{self, BlockPg};
use megagrid_algorithms::mf::{batch, in_place};
use megagrid_algorithms::pagerank::{self, Damping, PageRank, Start};
use megagrid_engine::{Amount, EdgeInput, Engine, Input, Peers, Settings, Traffic};
use megagrid_partition::{EdgeSource, GroupedEdges, Side};
use megagrid_stages::{Program, Sequence, Stages};

use super::{ITEMS, blockpg::samples, config, links, local, ratings, ratings_of_many_items, settings};

/// Processes and the worker threads of each.
const SHAPES: [(usize, usize); 4] = [(2, 1), (2, 2), (3, 1), (4, 1)];
const ITERATIONS: u64 = 3;

type Source<'s> = &'s GroupedEdges<f32>;

/// Runs a few iterations; returns what a plan foresees from all edges, what the plan of the run says, and what was counted in each.
fn run<T: Copy + Sync, P: Program, S: Stages<P>>(
    input: &Input<'_, T, P>,
    sequence: &Sequence<P, S>,
    settings: &Settings,
    build: impl FnOnce() -> Engine<P>,
) -> Vec<Option<Traffic>> {
    let mut engine = build();
    let mut all = vec![megagrid_engine::plan(input, sequence, settings).unwrap().traffic, engine.plan().traffic];
    let count = |report: &megagrid_engine::IterationReport, _: &Engine<P>| {
        all.push(Some(report.sent));
        ControlFlow::Continue(())
    };
    engine.run(ITERATIONS, count).unwrap();
    all
}

/// Runs it in every shape, and finds that all say the same; returns that, with the shapes.
fn agree(of: impl Fn(Option<Arc<dyn Peers>>, usize) -> Vec<Option<Traffic>> + Sync) -> Vec<((usize, usize), Traffic)> {
    let of_shape = |shape: (usize, usize)| {
        let all = local::run(shape.0, |peers| of(peers, shape.1));
        let counted = all[2].unwrap();
        assert!(counted.total().bytes > 0, "{shape:?}");
        assert_eq!(all, vec![Some(counted); 2 + ITERATIONS as usize], "{shape:?}: foreseen, planned, counted");
        (shape, counted)
    };
    SHAPES.into_iter().map(of_shape).collect()
}

fn page_rank(edges: &GroupedEdges<()>, peers: Option<Arc<dyn Peers>>, workers: usize) -> Vec<Option<Traffic>> {
    let pages = edges.num_vertices(Side::Left);
    let sequence = pagerank::sequence(Damping::DEFAULT, edges.num_edges() as u64).unwrap();
    let start = Start::new(Damping::DEFAULT, pages, &[], &|_| 1);
    let input = Input { source: edges, edge: EdgeInput { len: &|()| 1, fill: &|(), _| {} }, capacities: [None, None] };
    let settings = settings(peers, workers, 1);
    run(&input, &sequence, &settings, || {
        Engine::<PageRank>::square(&input, &sequence, start.state(), &settings).unwrap()
    })
}

/// A program on ratings or samples.
fn values<P: Program, S: Stages<P>>(
    edges: Source<'_>,
    sequence: &Sequence<P, S>,
    settings: &Settings,
    global: P::Global,
) -> Vec<Option<Traffic>>
where
    P::Edge: megagrid_stages::EdgeData<Item = f32>,
{
    let edge = EdgeInput { len: &|_: &f32| 1, fill: &|value: &f32, items: &mut [f32]| items[0] = *value };
    let input = Input { source: edges, edge, capacities: [None, None] };
    run(&input, sequence, settings, || Engine::<P>::bipartite(&input, sequence, global, settings).unwrap())
}

#[test]
fn page_rank_sends_what_was_foreseen() {
    let edges = links(700, 9000);
    for (shape, traffic) in agree(|peers, workers| page_rank(&edges, peers, workers)) {
        assert_eq!(traffic.total(), sum([traffic.rows, traffic.deltas, traffic.sums]), "{shape:?}");
    }
}

#[test]
fn factorization_in_place_sends_item_rows_alone_and_users_never() {
    let sequence = in_place::sequence(config(), 9000).unwrap();
    for edges in [ratings(9000), ratings_of_many_items(9000)] {
        let settings = |peers, workers| settings(peers, workers, config().row_dims());
        let found = agree(|peers, workers| values(&edges, &sequence, &settings(peers, workers), ()));
        for ((processes, workers), traffic) in found {
            assert_eq!(traffic.total(), traffic.shards, "users stay at home");
            // A shard goes to all other processes and stays with the last. Beside the row there is the state of its step.
            let items = edges.num_vertices(Side::Right);
            let bodies = ((processes - 1) * items * 4 * (config().row_dims() + 1)) as u64;
            let bytes = traffic.shards.bytes - 40 * traffic.shards.messages;
            assert!(
                bytes >= bodies && bytes < bodies + 8 * traffic.shards.messages,
                "{processes} x {workers}: {bytes}"
            );
        }
    }
}

#[test]
fn mini_batches_send_what_was_foreseen() {
    let settings = |peers, workers| settings(peers, workers, config().row_dims());
    for edges in [ratings(9000), ratings_of_many_items(9000)] {
        let sequence = in_place::sequence(config(), 1000).unwrap();
        agree(|peers, workers| values(&edges, &sequence, &settings(peers, workers), ()));
        let sequence = batch::sequence(config(), 3000).unwrap();
        agree(|peers, workers| values(&edges, &sequence, &settings(peers, workers), ()));
    }
}

#[test]
fn shards_of_many_bytes_are_sent_in_slices_as_foreseen() {
    let config = megagrid_algorithms::mf::Config { dims: 10_000, ..config() };
    let settings = |peers, workers| settings(peers, workers, config.row_dims());
    let edges = ratings(300);
    let in_place = in_place::sequence(config, 300).unwrap();
    let found = agree(|peers, workers| values(&edges, &in_place, &settings(peers, workers), ()));
    let row = 40 + 4 * (config.row_dims() as u64 + 1);
    for (shape, Traffic { shards, .. }) in found {
        assert!(
            shards.messages as usize >= (shape.0 - 1) * ITEMS / 3 && shards.bytes / shards.messages <= 3 * row,
            "{shape:?}"
        );
    }
    let batch = batch::sequence(config, 300).unwrap();
    for (shape, sent) in agree(|peers, workers| values(&edges, &batch, &settings(peers, workers), ())) {
        for amount in [sent.rows, sent.deltas] {
            assert!(amount.messages > 0 && amount.bytes / amount.messages <= 4 * row, "{shape:?}: {sent:?}");
        }
    }
}

#[test]
fn block_proximal_gradient_sends_what_was_foreseen() {
    let (edges, sequence) = (samples(), blockpg::sequence(900).unwrap());
    let state = blockpg::Config { l1: 2.0, l2: 0.0 }.state();
    agree(|peers, workers| values::<BlockPg, _>(&edges, &sequence, &settings(peers, workers, 1), state));
}

#[test]
fn with_slack_nothing_is_foreseen() {
    let (edges, sequence) = (ratings(2000), in_place::sequence(config(), 200).unwrap());
    let found = local::run(2, |peers| {
        let settings = Settings { slack: Some(1), ..settings(peers, 1, config().row_dims()) };
        values(&edges, &sequence, &settings, ())
    });
    assert_eq!(found[..2], [None, None]);
    let sent = found[2].unwrap();
    assert_eq!(sent.total(), sum([sent.changes, sent.fresh, Amount::default()]));
}

fn sum(amounts: [Amount; 3]) -> Amount {
    amounts
        .into_iter()
        .fold(Amount::default(), |a, b| Amount { messages: a.messages + b.messages, bytes: a.bytes + b.bytes })
}
