//! Edges of both sides' vertices in several processes: results are those of one process, under every strategy.

use std::sync::Arc;

use megagrid_algorithms::mf::batch;
use megagrid_algorithms::pagerank::{self, Damping, PageRank};
use megagrid_engine::plan::Strategy;
use megagrid_engine::{Engine, Peers, Settings};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side, SplitMix};
use megagrid_stages::{Add, BatchSize, Left, Master, Read, Right, Sequence, program, vertex};

use super::{BSP, ITEMS, USERS, check, config, links, local, rank_as, rank_of, ratings, settings};
use crate::made;

const STRATEGIES: [Strategy; 4] = [Strategy::Grid, Strategy::Hybrid, Strategy::Mixed, Strategy::Auto];
const SHAPES: [(usize, usize); 5] = [(2, 1), (2, 2), (4, 1), (4, 2), (6, 1)];

vertex! {
    /// A number that is mixed with those of others; any that is missing or counts twice changes all.
    struct Node { sync: u64, delta: u64 }
}

vertex! {
    struct Other { sync: u64, delta: u64 }
}

program! { struct Mixed { vertices: Node } }
program! { struct Sides { left: Node, right: Other } }

const PRIME: u64 = 1_000_003;

fn mixed(edges: &GroupedEdges<()>, peers: Option<Arc<dyn Peers>>, workers: usize, strategy: Strategy) -> Vec<u64> {
    let batch = BatchSize::EdgesOf(Side::Right, 2000);
    let sequence = Sequence::new()
        .mini_batch(batch, |b| {
            b.exchange(|from: Read<Node>, to: Add<Node>| *to.delta += *from.sync).apply(Right, |node: Master<Node>| {
                *node.sync = (*node.sync * 31 + *node.delta) % PRIME;
            })
        })
        .exchange(|from: Add<Node>, to: Read<Node>| *from.delta += 7 * *to.sync)
        .apply(Left, |node: Master<Node>| *node.sync = (*node.sync * 17 + *node.delta) % PRIME)
        .mini_batch(batch, |b| b.exchange(|from: Add<Node>, to: Read<Node>| *from.delta += 3 * *to.sync))
        .apply(Right, |node: Master<Node>| *node.sync = (*node.sync * 13 + *node.delta) % PRIME);
    let settings = Settings { strategy, ..settings(peers, workers, 1) };
    let mut engine = Engine::<Mixed>::new(edges, sequence, &settings).unwrap();
    engine.init(Right, |id, first| *first.sync = 1 + id as u64);
    engine.iterate(3).unwrap();
    engine.collect().unwrap();
    engine.on(Right).iter().copied().collect()
}

#[test]
fn integers_of_a_square_graph_are_those_of_one_process() {
    let edges = links(300, 6000);
    let expected = mixed(&edges, None, 1, Strategy::BiCut);
    for strategy in [Strategy::BiCut].into_iter().chain(STRATEGIES) {
        for (processes, workers) in SHAPES {
            let found = local::run(processes, |peers| mixed(&edges, peers, workers, strategy));
            assert_eq!(found, expected, "{strategy}, {processes} x {workers}");
        }
    }
}

fn sides(
    edges: &GroupedEdges<()>,
    peers: Option<Arc<dyn Peers>>,
    workers: usize,
    strategy: Strategy,
) -> (Vec<u64>, Vec<u64>) {
    let sequence = Sequence::new()
        .mini_batch(BatchSize::EdgesOf(Side::Right, 900), |b| {
            b.exchange(|from: Read<Node>, to: Add<Other>| *to.delta += *from.sync)
                .apply(Right, |node: Master<Other>| *node.sync = (*node.sync * 31 + *node.delta) % PRIME)
        })
        .mini_batch(BatchSize::Vertices(Side::Left, 40), |b| {
            b.exchange(|from: Add<Node>, to: Read<Other>| *from.delta += 7 * *to.sync)
                .apply(Left, |node: Master<Node>| *node.sync = (*node.sync * 17 + *node.delta) % PRIME)
        })
        .exchange(|from: Add<Node>, to: Add<Other>| {
            *from.delta += 5 * *to.sync;
            *to.delta += 3 * *from.sync;
        })
        .apply(Right, |node: Master<Other>| *node.sync = (*node.sync + *node.delta) % PRIME)
        .apply(Left, |node: Master<Node>| *node.sync = (*node.sync + *node.delta) % PRIME);
    let settings = Settings { strategy, ..settings(peers, workers, 1) };
    let mut engine = Engine::<Sides>::new(edges, sequence, &settings).unwrap();
    engine.init(Left, |id, first| *first.sync = 1 + id as u64);
    engine.init(Right, |id, first| *first.sync = 2 + id as u64);
    engine.iterate(3).unwrap();
    engine.collect().unwrap();
    (engine.on(Left).iter().copied().collect(), engine.on(Right).iter().copied().collect())
}

#[test]
fn integers_of_a_bipartite_graph_are_those_of_one_process() {
    let mut random = SplitMix::new(3, 0);
    let mut list = EdgeList { num_left: USERS, num_right: ITEMS, ..EdgeList::default() };
    for _ in 0..5000 {
        list.push(random.below(USERS as u64) as u32, (random.unit().powi(3) * ITEMS as f64) as u32, ());
    }
    let edges = GroupedEdges::new(list, &[Side::Right]);
    let expected = sides(&edges, None, 1, Strategy::BiCut);
    for strategy in [Strategy::BiCut].into_iter().chain(STRATEGIES) {
        for (processes, workers) in SHAPES {
            let found = local::run(processes, |peers| sides(&edges, peers, workers, strategy));
            assert_eq!(found, expected, "{strategy}, {processes} x {workers}");
        }
    }
}

#[test]
fn page_rank_is_the_same_under_every_strategy() {
    let edges = links(700, 9000);
    let expected = rank_of(&edges, (1, 1), Strategy::BiCut);
    for strategy in STRATEGIES {
        for shape in SHAPES {
            let found = rank_of(&edges, shape, strategy);
            for (found, expected) in found.iter().zip(&expected) {
                let distance: f32 = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).sum();
                assert!(distance < 1e-6, "{strategy}, {shape:?}: {distance}");
            }
            assert_eq!(found, rank_of(&edges, shape, strategy), "{strategy}, {shape:?}: a second run");
        }
    }
}

/// Sums that cross are applied when all terms are in, so that iterations do not flow into each other.
#[test]
fn slack_changes_nothing_where_sums_cross() {
    let edges = links(700, 9000);
    let expected = rank_of(&edges, (1, 1), Strategy::BiCut);
    for (strategy, (processes, workers)) in
        [(Strategy::Hybrid, (4, 1)), (Strategy::Grid, (4, 2)), (Strategy::Mixed, (2, 2))]
    {
        let found = local::run(processes, |peers| {
            rank_as(&edges, &Settings { strategy, slack: Some(2), ..settings(peers, workers, 1) })
        });
        let distance: f32 = found[11].iter().zip(&expected[11]).map(|(a, b)| (a - b).abs()).sum();
        assert!(distance < 1e-6, "{strategy}: {distance}");
    }
}

#[test]
fn factorization_by_batch_gradient_has_the_same_objectives_under_every_strategy() {
    let edges = ratings(9000);
    let run = |(processes, workers), strategy| {
        local::run(processes, |peers| {
            let settings = Settings { strategy, ..settings(peers, workers, config().row_dims()) };
            let (objectives, rows, _) = super::train_as(&edges, config(), &settings, batch::sequence(config(), 3000));
            (objectives, rows)
        })
    };
    let (expected, _) = super::train(&edges, (1, 1), config(), BSP, || batch::sequence(config(), 3000));
    for strategy in STRATEGIES {
        for shape in [(2, 2), (4, 1), (6, 1)] {
            let (objectives, factors) = run(shape, strategy);
            check(&objectives, &expected, 1e-5, (strategy, shape));
            assert_eq!(factors, run(shape, strategy).1, "{strategy}, {shape:?}: a second run");
        }
    }
}

/// Every link points at one page.
fn star(leaves: u32) -> GroupedEdges<()> {
    let pages = leaves as usize + 1;
    let (left, right) = ((1..=leaves).collect(), vec![0; leaves as usize]);
    let list =
        EdgeList { num_left: pages, num_right: pages, square: true, left, right, data: vec![(); leaves as usize] };
    GroupedEdges::new(list, &[Side::Right])
}

/// Edges of the busiest worker over the mean.
fn balance(edges: &GroupedEdges<()>, (processes, workers): (usize, usize), strategy: Strategy) -> f64 {
    local::run(processes, |peers| {
        let settings = Settings { strategy, ..settings(peers, workers, 1) };
        let sequence = pagerank::sequence(Damping::DEFAULT, edges.num_edges() as u64);
        let planned = megagrid_engine::plan::<PageRank, _, _>(edges, &sequence, &settings).unwrap().quality;
        let mut engine = made::page_rank(edges, &[], &settings);
        engine.iterate(1).unwrap();
        assert_eq!(engine.plan().quality, planned, "counted in the blocks of all processes");
        planned.worker_balance
    })
}

#[test]
fn the_links_of_a_hub_are_spread_over_processes_and_threads() {
    let edges = star(20_000);
    for shape in [(4, 1), (2, 4), (4, 2)] {
        let workers = (shape.0 * shape.1) as f64;
        assert!(
            (balance(&edges, shape, Strategy::BiCut) - workers).abs() < 0.01,
            "{shape:?}: all links have one owner"
        );
        for strategy in [Strategy::Hybrid, Strategy::Mixed] {
            let found = balance(&edges, shape, strategy);
            assert!(found < 1.1, "{strategy}, {shape:?}: {found}");
        }
    }
}
