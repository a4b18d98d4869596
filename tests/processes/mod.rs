//! Several processes against one: every algorithm in several shapes (processes × worker threads).

mod additive;
mod als;
mod alternating;
mod blockpg;
mod bounded;
mod branches;
mod checkpoint;
mod cuts;
mod gather;
mod guarantee;
mod lda;
pub mod local;
mod optimizers;
mod panics;
mod passes;
mod ranges;
mod rotation;
mod totals;
mod traffic;
mod virtual_workers;

use std::sync::Arc;

use megagrid_algorithms::mf::{self, batch, in_place};
use megagrid_algorithms::pagerank::Ranks;
use megagrid_engine::plan::Strategy;
use megagrid_engine::{Engine, IterationReport, Peers, Settings};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{Exchange, Program, Sequence, Stages, Vertex, mode};

use crate::made::{self, factorization, factors, links, page_rank, scores, watch, weighted_links, weighted_rank};

/// Processes and the worker threads of each.
const SHAPES: [(usize, usize); 5] = [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1)];

fn settings(peers: Option<Arc<dyn Peers>>, workers: usize, dims: usize) -> Settings {
    Settings { peers, ..made::settings(workers, dims) }
}

/// The scores after each iteration.
fn rank_of(edges: &GroupedEdges<()>, (processes, workers): (usize, usize), strategy: Strategy) -> Vec<Vec<f32>> {
    local::run(processes, |peers| rank_as(edges, &Settings { strategy, ..settings(peers, workers, 1) }))
}

/// The part of one process.
fn rank_as(edges: &GroupedEdges<()>, settings: &Settings) -> Vec<Vec<f32>> {
    scores_of(page_rank(edges, &[], settings))
}

fn scores_of<P: Ranks>(mut engine: Engine<P>) -> Vec<Vec<f32>> {
    let mut all = Vec::new();
    watch(&mut engine, 12, |engine, _| {
        engine.collect().unwrap();
        all.push(scores(engine));
    });
    all
}

#[test]
fn page_rank_is_the_same_in_every_shape() {
    let edges = links(700, 9000);
    assert_same_in_every_shape(|shape| rank_of(&edges, shape, Strategy::BiCut));
}

#[test]
fn weighted_ranks_are_the_same_in_every_shape_under_every_strategy() {
    let edges = weighted_links(700, 9000);
    for strategy in [Strategy::BiCut, Strategy::Mixed] {
        assert_same_in_every_shape(|(processes, workers)| {
            local::run(processes, |peers| {
                let settings = Settings { strategy, ..settings(peers, workers, 1) };
                scores_of(weighted_rank(&edges, &[(3, 1.0), (600, 0.5)], &settings))
            })
        });
    }
}

fn assert_same_in_every_shape(rank: impl Fn((usize, usize)) -> Vec<Vec<f32>>) {
    let expected = rank((1, 1));
    for shape in SHAPES {
        let found = rank(shape);
        for (iteration, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let distance: f32 = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).sum();
            assert!(distance < 1e-6, "{shape:?}: {distance} after iteration {}", iteration + 1);
        }
        assert_eq!(found, rank(shape), "{shape:?}: a second run");
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
        list.push(user, item, (factor(user) * factor(item + 7) + 0.1 * random.unit()) as f32);
    }
    list
}

/// Objectives, rows and reports of a factorization.
type Trained = (Vec<f64>, Vec<Vec<f32>>, Vec<IterationReport>);

/// The objective after each iteration, and the last factors.
fn train<P, S: Stages<P>>(
    edges: &GroupedEdges<f32>,
    (processes, workers): (usize, usize),
    config: mf::Config,
    (slack, lazy): (Option<u64>, bool),
    sequence: impl Fn() -> Sequence<P, S> + Sync,
) -> (Vec<f64>, Vec<Vec<f32>>)
where
    P: Program<Edge = f32, Worker: AsMut<mf::Sums>, Left: Vertex<Sync = [f32]>, Right: Vertex<Sync = [f32]>>,
    mf::SquaredErrors: Exchange<P, Left = mode::Read, Right = mode::Read>,
{
    local::run(processes, |peers| {
        let settings = Settings { slack, lazy, ..settings(peers, workers, config.row_dims()) };
        let (objectives, rows, _) = train_as(edges, config, &settings, sequence());
        (objectives, rows)
    })
}

/// The part of one process, with the reports of all iterations.
fn train_as<P, S: Stages<P>>(
    edges: &GroupedEdges<f32>,
    config: mf::Config,
    settings: &Settings,
    sequence: Sequence<P, S>,
) -> Trained
where
    P: Program<Edge = f32, Worker: AsMut<mf::Sums>, Left: Vertex<Sync = [f32]>, Right: Vertex<Sync = [f32]>>,
    mf::SquaredErrors: Exchange<P, Left = mode::Read, Right = mode::Read>,
{
    let mut engine = factorization(edges, config, sequence, settings);
    let (mut objectives, mut reports) = (Vec::new(), Vec::new());
    watch(&mut engine, 20, |engine, report| {
        reports.push(report.clone());
        let sums = *engine.total(mf::SquaredErrors(config)).unwrap().as_mut();
        objectives.push(mf::Objective::new(sums, config.lambda).value);
    });
    engine.collect().unwrap();
    (objectives, factors(&engine), reports)
}

/// Slack 0, and what `lazy` says of it: nothing.
const BSP: (Option<u64>, bool) = (Some(0), false);

fn config() -> mf::Config {
    mf::Config { dims: 4, lambda: 0.02, ..mf::Config::default() }
}

/// Finds objectives the same as those of one worker, each or only the last, up to a part of them.
fn check(found: &[f64], expected: &[f64], most: f64, what: impl std::fmt::Debug) {
    for (found, expected) in found.iter().zip(expected) {
        assert!((found / expected - 1.0).abs() < most, "{what:?}: {found}, expected {expected}");
    }
}

#[test]
fn factorization_in_place_ends_at_the_same_objective_in_every_shape() {
    for edges in [ratings(9000), ratings_of_many_items(9000)] {
        for (batch, is_whole) in [(9000, true), (900, false)] {
            let run = |shape| train(&edges, shape, config(), BSP, || in_place::sequence(config(), batch));
            let (expected, _) = run((1, 1));
            for shape in SHAPES {
                let (found, factors) = run(shape);
                check(&found[19..], &expected[19..], 0.01, (shape, batch));
                assert!(!is_whole || factors == run(shape).1, "{shape:?}: a second run");
            }
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
            check(&objectives, &expected, 1e-5, shape);
            assert_eq!(factors, run(shape).1, "{shape:?}: a second run");
        }
    }
}

#[test]
fn factorization_with_rows_of_many_bytes_has_the_same_objectives_in_every_shape() {
    let (edges, config) = (ratings(300), mf::Config { dims: 6000, step: 0.001, ..config() });
    let by_batch = |shape| train(&edges, shape, config, BSP, || batch::sequence(config, 100)).0;
    let in_place = |shape| train(&edges, shape, config, BSP, || in_place::sequence(config, 300)).0;
    let (expected, last) = (by_batch((1, 1)), in_place((1, 1)));
    for shape in [(2, 1), (2, 2)] {
        check(&by_batch(shape), &expected, 1e-5, shape);
        check(&in_place(shape)[19..], &last[19..], 0.01, shape);
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
            check(&run(shape, consistency).0[19..], &expected[19..], 0.1, (shape, consistency));
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
