//! Several processes against one: every algorithm in several shapes (processes × worker threads).

mod blockpg;
mod bounded;
mod branches;
mod checkpoint;
mod guarantee;
mod lda;
mod local;
mod panics;
mod rotation;
mod totals;
mod traffic;
mod virtual_workers;

use megagrid_stages::{Exchange, Left, Program, Right, Sequence, Stages, Vertex, mode};
use std::sync::Arc;

use megagrid_algorithms::mf::{self, batch, in_place};
use megagrid_algorithms::pagerank::{self, Damping, PageRank, Start};
use megagrid_engine::{Engine, IterationReport, Peers, Settings, Topology};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side, SplitMix};

/// Processes and the worker threads of each.
const SHAPES: [(usize, usize); 5] = [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1)];

/// Small caches, so that small graphs have many shards.
fn settings(peers: Option<Arc<dyn Peers>>, workers: usize, dims: usize) -> Settings {
    let topology = Topology { l2_bytes: 4096, ..Topology::synthetic(1, workers) };
    Settings { workers, peers, dims, topology, ..Settings::default() }
}

fn links(pages: usize, links: usize) -> GroupedEdges<()> {
    let mut random = SplitMix::new(5, 0);
    // A few pages have most links.
    let mut page = || (random.unit().powi(3) * pages as f64) as u32;
    let (left, right): (Vec<u32>, Vec<u32>) = (0..links).map(|_| (page(), page())).unzip();
    let list = EdgeList { num_left: pages, num_right: pages, square: true, left, right, data: vec![(); links] };
    GroupedEdges::new(list, &[Side::Right])
}

/// The scores after each iteration.
fn rank(edges: &GroupedEdges<()>, (processes, workers): (usize, usize)) -> Vec<Vec<f32>> {
    local::run(processes, |peers| rank_as(peers, edges, workers))
}

/// The part of one process.
fn rank_as(peers: Option<Arc<dyn Peers>>, edges: &GroupedEdges<()>, workers: usize) -> Vec<Vec<f32>> {
    let pages = edges.num_vertices(Side::Left);
    let sequence = pagerank::sequence(Damping::DEFAULT, edges.num_edges() as u64);
    let offsets = edges.offsets(Side::Left);
    let links = |page: usize| offsets[page + 1] - offsets[page];
    let start = Start::new(Damping::DEFAULT, pages, &[], &links);
    let settings = settings(peers, workers, 1);
    let mut engine = Engine::<PageRank>::new(edges, sequence, &settings).unwrap();
    engine.set_global(start.state());
    engine.init(Right, |page, first| (*first.master, *first.sync) = start.page(page));
    let mut all = Vec::new();
    engine
        .run_until(12, |engine, _| {
            engine.collect().unwrap();
            let view = engine.on(Right);
            all.push(pagerank::scores((0..pages).map(|page| *view.master(page))));
            Ok(false)
        })
        .unwrap();
    all
}

#[test]
fn page_rank_is_the_same_in_every_shape() {
    let edges = links(700, 9000);
    let expected = rank(&edges, (1, 1));
    for shape in SHAPES {
        let found = rank(&edges, shape);
        for (iteration, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let distance: f32 = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).sum();
            assert!(distance < 1e-6, "{shape:?}: {distance} after iteration {}", iteration + 1);
        }
        assert_eq!(found, rank(&edges, shape), "{shape:?}: a second run");
    }
}

const USERS: usize = 240;
const ITEMS: usize = 90;

fn ratings(count: usize) -> GroupedEdges<f32> {
    GroupedEdges::new(rating_list(count), &[Side::Right])
}

/// The same with more items than users.
fn ratings_of_many_items(count: usize) -> GroupedEdges<f32> {
    let EdgeList { num_left, num_right, left, right, data, square } = rating_list(count);
    let list = EdgeList { num_left: num_right, num_right: num_left, left: right, right: left, data, square };
    GroupedEdges::new(list, &[Side::Right])
}

fn rating_list(count: usize) -> EdgeList<f32> {
    let mut random = SplitMix::new(3, 0);
    let mut list = EdgeList { num_left: USERS, num_right: ITEMS, ..EdgeList::default() };
    for _ in 0..count {
        let (user, item) = (random.below(USERS as u64) as u32, random.below(ITEMS as u64) as u32);
        let factor = |n: u32| (f64::from(n) * 0.7).sin();
        list.left.push(user);
        list.right.push(item);
        list.data.push((factor(user) * factor(item + 7) + 0.1 * random.unit()) as f32);
    }
    list
}

/// The objective after each iteration, and the last factors.
fn train<P, S>(
    edges: &GroupedEdges<f32>,
    (processes, workers): (usize, usize),
    config: mf::Config,
    consistency: (Option<u64>, bool),
    sequence: impl Fn() -> Sequence<P, S> + Sync,
) -> (Vec<f64>, Vec<Vec<f32>>)
where
    P: Program<Edge = f32, Worker = mf::Sums, Global = ()>,
    P::Left: Vertex<Sync = [f32]>,
    P::Right: Vertex<Sync = [f32]>,
    S: Stages<P>,
    mf::SquaredErrors: Exchange<P, Left = mode::Read, Right = mode::Read>,
{
    local::run(processes, |peers| {
        let (slack, lazy) = consistency;
        let settings = Settings { slack, lazy, ..settings(peers, workers, config.row_dims()) };
        let (objectives, rows, _) = train_as(edges, config, &settings, sequence());
        (objectives, rows)
    })
}

/// The part of one process, with the reports of all iterations.
fn train_as<P, S>(
    edges: &GroupedEdges<f32>,
    config: mf::Config,
    settings: &Settings,
    sequence: Sequence<P, S>,
) -> (Vec<f64>, Vec<Vec<f32>>, Vec<IterationReport>)
where
    P: Program<Edge = f32, Worker = mf::Sums, Global = ()>,
    P::Left: Vertex<Sync = [f32]>,
    P::Right: Vertex<Sync = [f32]>,
    S: Stages<P>,
    mf::SquaredErrors: Exchange<P, Left = mode::Read, Right = mode::Read>,
{
    let mut engine = Engine::<P>::new(edges, sequence, settings).unwrap();
    engine.init(Left, |user, first| config.init_user(1, user, first.sync));
    engine.init(Right, |item, first| config.init_item(1, item, first.sync));
    let (mut objectives, mut reports) = (Vec::new(), Vec::new());
    engine
        .run_until(20, |engine, report| {
            reports.push(report.clone());
            let sums = engine.total(mf::SquaredErrors(config)).unwrap();
            objectives.push(mf::Objective::new(sums, config.lambda).value);
            Ok(false)
        })
        .unwrap();
    engine.collect().unwrap();
    let (left, right) = (engine.on(Left), engine.on(Right));
    let rows = (0..left.len()).map(|user| left.sync(user).to_vec());
    (objectives, rows.chain((0..right.len()).map(|item| right.sync(item).to_vec())).collect(), reports)
}

/// Slack 0, and what `lazy` says of it: nothing.
const BSP: (Option<u64>, bool) = (Some(0), false);

fn config() -> mf::Config {
    mf::Config { dims: 4, lambda: 0.02, ..mf::Config::default() }
}

#[test]
fn factorization_in_place_ends_at_the_same_objective_in_every_shape() {
    for edges in [ratings(9000), ratings_of_many_items(9000)] {
        let run = |shape| train(&edges, shape, config(), BSP, || in_place::sequence(config(), 9000));
        let (expected, _) = run((1, 1));
        for shape in SHAPES {
            let (found, factors) = run(shape);
            let (found, expected) = (found[19], expected[19]);
            assert!((found / expected - 1.0).abs() < 0.01, "{shape:?}: {found}, expected {expected}");
            assert_eq!(factors, run(shape).1, "{shape:?}: a second run");
        }
    }
}

#[test]
fn factorization_in_mini_batches_ends_at_the_same_objective_in_every_shape() {
    for edges in [ratings(9000), ratings_of_many_items(9000)] {
        let run = |shape| train(&edges, shape, config(), BSP, || in_place::sequence(config(), 900));
        let (expected, _) = run((1, 1));
        for shape in SHAPES {
            let (found, expected) = (run(shape).0[19], expected[19]);
            assert!((found / expected - 1.0).abs() < 0.01, "{shape:?}: {found}, expected {expected}");
        }
    }
}

#[test]
fn factorization_by_batch_gradient_has_the_same_objectives_in_every_shape() {
    for edges in [ratings(9000), ratings_of_many_items(9000)] {
        let run = |shape| train(&edges, shape, config(), BSP, || batch::sequence(config(), 3000));
        let (expected, _) = run((1, 1));
        for shape in SHAPES {
            let (objectives, factors) = run(shape);
            for (found, expected) in objectives.iter().zip(&expected) {
                assert!((found / expected - 1.0).abs() < 1e-5, "{shape:?}: {found}, expected {expected}");
            }
            assert_eq!(factors, run(shape).1, "{shape:?}: a second run");
        }
    }
}

#[test]
fn factorization_with_rows_of_many_bytes_has_the_same_objectives_in_every_shape() {
    let (edges, config) = (ratings(300), mf::Config { dims: 6000, step: 0.001, ..config() });
    let run = |shape| train(&edges, shape, config, BSP, || batch::sequence(config, 100));
    let (expected, _) = run((1, 1));
    for shape in [(2, 1), (2, 2)] {
        for (found, expected) in run(shape).0.iter().zip(&expected) {
            assert!((found / expected - 1.0).abs() < 1e-5, "{shape:?}: {found}, expected {expected}");
        }
    }
    let run = |shape| train(&edges, shape, config, BSP, || in_place::sequence(config, 300));
    let (expected, _) = run((1, 1));
    for shape in [(2, 1), (2, 2)] {
        let (found, expected) = (run(shape).0[19], expected[19]);
        assert!((found / expected - 1.0).abs() < 0.01, "{shape:?}: {found}, expected {expected}");
    }
}

#[test]
fn mirrored_factors_end_near_the_objective_without_slack() {
    let edges = ratings(9000);
    let run =
        |shape, consistency| train(&edges, shape, config(), consistency, || in_place::sequence(config(), 9000 / 16));
    let (expected, _) = run((1, 1), BSP);
    for consistency in [(Some(1), false), (Some(1), true), (Some(3), false), (Some(3), true)] {
        for shape in [(2, 1), (2, 2), (4, 1)] {
            let (found, expected) = (run(shape, consistency).0[19], expected[19]);
            let ratio = found / expected;
            assert!(ratio < 1.1 && ratio > 0.9, "{shape:?}, {consistency:?}: {found}, expected {expected}");
        }
    }
}

#[test]
fn without_a_bound_small_steps_still_lead_downhill() {
    let edges = ratings(9000);
    let config = mf::Config { step: 0.01, ..config() };
    let sequence = || in_place::sequence(config, 9000 / 16);
    let (objectives, _) = train(&edges, (2, 1), config, (None, false), sequence);
    assert!(objectives[19] < objectives[0], "{objectives:?}");
}
