//! What crosses between processes is what the plan says, to the byte.

use std::sync::Arc;

use megagrid_algorithms::blockpg::{self, BlockPg};
use megagrid_algorithms::mf::{batch, in_place};
use megagrid_algorithms::pagerank::{self, Damping, PageRank, Start};
use megagrid_engine::plan::Strategy;
use megagrid_engine::{Amount, Engine, Peers, Settings, Traffic};
use megagrid_partition::{EdgeSource, GroupedEdges, Side};
use megagrid_stages::{Item, Program, Sequence, Stages};

use super::{ITEMS, blockpg::samples, config, links, local, ratings, ratings_of_many_items, settings};

/// Processes and the worker threads of each.
const SHAPES: [(usize, usize); 4] = [(2, 1), (2, 2), (3, 1), (4, 1)];
const ITERATIONS: u64 = 3;

/// Runs a few iterations; returns what a plan predicts from all edges, what the plan of the run says, and what was counted in each.
fn run<P: Program<Edge: Item>, S: Stages<P>>(
    edges: &GroupedEdges<P::Edge>,
    sequence: Sequence<P, S>,
    settings: &Settings,
    global: P::Global,
) -> Vec<Option<Traffic>> {
    let predicted = megagrid_engine::plan(edges, &sequence, settings).unwrap().traffic;
    let mut engine = Engine::<P>::new(edges, sequence, settings).unwrap();
    engine.set_global(global);
    let mut all = vec![predicted, engine.plan().traffic];
    let count = |_: &mut Engine<P>, report: &megagrid_engine::IterationReport| {
        all.push(Some(report.sent));
        Ok(false)
    };
    engine.run_until(ITERATIONS, count).unwrap();
    all
}

/// Runs it in every shape, and finds that all say the same; returns that, with the shapes.
fn agree(of: impl Fn(Option<Arc<dyn Peers>>, usize) -> Vec<Option<Traffic>> + Sync) -> Vec<((usize, usize), Traffic)> {
    let of_shape = |shape: (usize, usize)| {
        let all = local::run(shape.0, |peers| of(peers, shape.1));
        let counted = all[2].unwrap();
        assert!(counted.total().bytes > 0, "{shape:?}");
        assert_eq!(all, vec![Some(counted); 2 + ITERATIONS as usize], "{shape:?}: predicted, planned, counted");
        (shape, counted)
    };
    SHAPES.into_iter().map(of_shape).collect()
}

fn page_rank(edges: &GroupedEdges<()>, settings: &Settings) -> Vec<Option<Traffic>> {
    let sequence = pagerank::sequence(Damping::DEFAULT, edges.num_edges() as u64);
    let start = Start::new(Damping::DEFAULT, edges.num_vertices(Side::Left), None, &|_| 1.0);
    run::<PageRank, _>(edges, sequence, settings, start.state())
}

#[test]
fn page_rank_sends_what_was_predicted() {
    let edges = links(700, 9000);
    for (shape, traffic) in agree(|peers, workers| page_rank(&edges, &settings(peers, workers, 1))) {
        assert_eq!(traffic.total(), sum([traffic.rows, traffic.deltas, traffic.sums]), "{shape:?}");
    }
}

#[test]
fn every_strategy_sends_what_was_predicted() {
    let (edges, ratings) = (links(700, 9000), ratings(9000));
    for (_, strategy) in Strategy::NAMES {
        let of = |peers, workers, dims| Settings { strategy, ..settings(peers, workers, dims) };
        agree(|peers, workers| page_rank(&edges, &of(peers, workers, 1)));
        agree(|peers, workers| {
            run(&ratings, batch::sequence(config(), 3000), &of(peers, workers, config().row_dims()), Default::default())
        });
    }
}

#[test]
fn factorization_in_place_sends_item_rows_alone_and_users_never() {
    for edges in [ratings(9000), ratings_of_many_items(9000)] {
        let settings = |peers, workers| settings(peers, workers, config().row_dims());
        let found = agree(|peers, workers| {
            run(&edges, in_place::sequence(config(), 9000), &settings(peers, workers), Default::default())
        });
        for ((processes, workers), traffic) in found {
            let all = sum([traffic.shards, traffic.sums, Amount::default()]);
            assert_eq!(traffic.total(), all, "users stay at home; beside items there are the sums of errors");
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
fn mini_batches_send_what_was_predicted() {
    let settings = |peers, workers| settings(peers, workers, config().row_dims());
    for edges in [ratings(9000), ratings_of_many_items(9000)] {
        agree(|peers, workers| {
            run(&edges, in_place::sequence(config(), 1000), &settings(peers, workers), Default::default())
        });
        agree(|peers, workers| {
            run(&edges, batch::sequence(config(), 3000), &settings(peers, workers), Default::default())
        });
    }
}

#[test]
fn shards_of_many_bytes_are_sent_in_slices_as_predicted() {
    let config = megagrid_algorithms::mf::Config { dims: 10_000, ..config() };
    let settings = |peers, workers| settings(peers, workers, config.row_dims());
    let edges = ratings(300);
    let found = agree(|peers, workers| {
        run(&edges, in_place::sequence(config, 300), &settings(peers, workers), Default::default())
    });
    let row = 40 + 4 * (config.row_dims() as u64 + 1);
    for (shape, Traffic { shards, .. }) in found {
        assert!(
            shards.messages as usize >= (shape.0 - 1) * ITEMS / 3 && shards.bytes / shards.messages <= 3 * row,
            "{shape:?}"
        );
    }
    for (shape, sent) in
        agree(|peers, workers| run(&edges, batch::sequence(config, 300), &settings(peers, workers), Default::default()))
    {
        for amount in [sent.rows, sent.deltas] {
            assert!(amount.messages > 0 && amount.bytes / amount.messages <= 4 * row, "{shape:?}: {sent:?}");
        }
    }
}

#[test]
fn block_proximal_gradient_sends_what_was_predicted() {
    let edges = samples();
    let state = blockpg::Config { l1: 2.0, l2: 0.0 }.state();
    agree(|peers, workers| run::<BlockPg, _>(&edges, blockpg::sequence(900), &settings(peers, workers, 1), state));
}

#[test]
fn with_slack_nothing_is_predicted() {
    let edges = ratings(2000);
    let found = local::run(2, |peers| {
        let settings = Settings { slack: Some(1), ..settings(peers, 1, config().row_dims()) };
        run(&edges, in_place::sequence(config(), 200), &settings, Default::default())
    });
    assert_eq!(found[..2], [None, None]);
    let sent = found[2].unwrap();
    assert_eq!(sent.total(), sum([sent.changes, sent.fresh, sent.sums]));
}

fn sum(amounts: [Amount; 3]) -> Amount {
    amounts
        .into_iter()
        .fold(Amount::default(), |a, b| Amount { messages: a.messages + b.messages, bytes: a.bytes + b.bytes })
}
