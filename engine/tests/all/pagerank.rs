//! PageRank on the engine against an independent dense power method, and against closed forms.

use megagrid_algorithms::pagerank::Ranks;
use megagrid_engine::{Engine, IterationReport, Settings};
use megagrid_partition::{EdgeList, GroupedEdges, Side};
use proptest::prelude::*;

use crate::made::{links, page_rank, scores, settings, watch, weighted_links, weighted_rank};

#[derive(Clone, Debug)]
struct Links {
    pages: usize,
    links: Vec<(u32, u32)>,
}

fn grouped(graph: &Links) -> GroupedEdges<()> {
    carrying(graph, vec![(); graph.links.len()])
}

fn carrying<T: Copy + Default + Send + Sync>(graph: &Links, data: Vec<T>) -> GroupedEdges<T> {
    let (left, right) = graph.links.iter().copied().unzip();
    let list = EdgeList { num_left: graph.pages, num_right: graph.pages, square: true, left, right, data };
    GroupedEdges::new(list, &[Side::Right])
}

fn rank(edges: &GroupedEdges<()>, sources: &[usize], settings: &Settings) -> (Vec<f32>, u64) {
    settled(page_rank(edges, sources, settings))
}

fn settled<P: Ranks>(mut engine: Engine<P>) -> (Vec<f32>, u64) {
    engine
        .run_until(500, |engine, report| {
            assert!(engine.reports().last().unwrap().iteration == report.iteration);
            engine.reports().iter().for_each(assert_spans_hold_all_work);
            Ok(engine.global().residual < 1e-8)
        })
        .unwrap();
    (scores(&engine), engine.iterations())
}

/// Work lies between a worker's begin and end: also what comes first in an iteration, and before the first end of a clock.
fn assert_spans_hold_all_work(report: &IterationReport) {
    for worker in &report.workers {
        assert!(worker.compute + worker.sync <= worker.seconds + 1e-9, "{worker:?}");
        assert!(worker.begin + worker.seconds <= report.seconds + 1e-9, "{worker:?} in {} s", report.seconds);
    }
}

/// The power method on a dense matrix, in f64.
fn dense(graph: &Links, restart: &[f64]) -> Vec<f64> {
    dense_by(graph, &vec![1.0; graph.links.len()], restart)
}

/// The same with weights of links.
fn dense_by(graph: &Links, weights: &[f32], restart: &[f64]) -> Vec<f64> {
    let n = graph.pages;
    let links = || graph.links.iter().zip(weights).map(|(&(from, to), &weight)| (from as usize, to as usize, weight));
    let mut out = vec![0.0; n];
    links().for_each(|(from, _, weight)| out[from] += f64::from(weight));
    let mut matrix = vec![0.0; n * n];
    for (from, to, weight) in links().filter(|&(_, _, weight)| weight > 0.0) {
        matrix[to * n + from] += f64::from(weight) / out[from];
    }
    for page in (0..n).filter(|&page| out[page] == 0.0) {
        (0..n).for_each(|to| matrix[to * n + page] = restart[to]);
    }
    let mut scores = restart.to_vec();
    for _ in 0..400 {
        scores = (0..n)
            .map(|to| {
                let sum: f64 = (0..n).map(|from| matrix[to * n + from] * scores[from]).sum();
                0.85 * sum + 0.15 * restart[to]
            })
            .collect();
    }
    scores
}

fn assert_close(scores: &[f32], expected: &[f64]) {
    for (page, (&score, &expected)) in scores.iter().zip(expected).enumerate() {
        assert!((f64::from(score) - expected).abs() < 1e-6, "page {page}: {score}, expected {expected}");
    }
    let sum: f64 = scores.iter().map(|&score| f64::from(score)).sum();
    assert!((sum - 1.0).abs() < 1e-6, "scores sum to {sum}");
}

fn graphs() -> impl Strategy<Value = Links> {
    // Few pages and many links: repeated links and self loops occur; pages without links are dangling.
    (1_usize..60).prop_flat_map(|pages| {
        let ids = 0..pages as u32;
        prop::collection::vec((ids.clone(), ids), 1..300).prop_map(move |links| Links { pages, links })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn equals_the_dense_power_method(graph in graphs(), workers in 1_usize..=3) {
        let restart = vec![1.0 / graph.pages as f64; graph.pages];
        assert_close(&rank(&grouped(&graph), &[], &settings(workers, 1)).0, &dense(&graph, &restart));
    }

    #[test]
    fn personalized_restarts_equal_the_dense_power_method(graph in graphs(), workers in 1_usize..=2) {
        let mut restart = vec![0.0; graph.pages];
        let sources = [0, graph.pages / 2];
        sources.iter().for_each(|&page| restart[page] += 0.5);
        assert_close(&rank(&grouped(&graph), &sources, &settings(workers, 1)).0, &dense(&graph, &restart));
    }

    /// Some links weigh nothing, and pages of which all do are dangling.
    #[test]
    fn weighted_links_and_restarts_equal_the_dense_power_method(
        (graph, weights) in weighted(),
        restart in prop::collection::vec((any::<prop::sample::Index>(), 0.01_f64..9.0), 0..4),
        workers in 1_usize..=3,
    ) {
        let restart: Vec<(usize, f64)> =
            restart.into_iter().map(|(page, weight)| (page.index(graph.pages), weight)).collect();
        let sum: f64 = restart.iter().map(|(_, weight)| weight).sum();
        let mut chances = vec![if restart.is_empty() { 1.0 / graph.pages as f64 } else { 0.0 }; graph.pages];
        restart.iter().for_each(|&(page, weight)| chances[page] += weight / sum);
        let engine = weighted_rank(&carrying(&graph, weights.clone()), &restart, &settings(workers, 1));
        assert_close(&settled(engine).0, &dense_by(&graph, &weights, &chances));
    }

    #[test]
    fn links_of_one_weight_are_links_without_weights(graph in graphs(), halvings in 0..3, workers in 1_usize..=2) {
        let weights = vec![0.5_f32.powi(halvings); graph.links.len()];
        let weighted = settled(weighted_rank(&carrying(&graph, weights), &[], &settings(workers, 1)));
        prop_assert_eq!(weighted, rank(&grouped(&graph), &[], &settings(workers, 1)));
    }
}

fn weighted() -> impl Strategy<Value = (Links, Vec<f32>)> {
    let weight = prop_oneof![1 => Just(0.0_f32), 1 => 0.001_f32..1000.0, 2 => 0.5_f32..2.0];
    graphs().prop_flat_map(move |graph| {
        let number = graph.links.len();
        (Just(graph), prop::collection::vec(weight.clone(), number))
    })
}

/// A clique of `k` pages, one of which links to a cycle of `c` pages and back: scores follow from two equations.
#[test]
fn a_cycle_alone_shares_equally_and_a_clique_with_a_tail_follows_its_equations() {
    let c = 40;
    let cycle = Links { pages: c, links: (0..c as u32).map(|i| (i, (i + 1) % c as u32)).collect() };
    assert_close(&rank(&grouped(&cycle), &[], &settings(2, 1)).0, &vec![1.0 / c as f64; c]);

    // Clique 0..k; page 0 also links to page k, the first of the cycle k..k + c, which links on within the cycle only.
    let (k, c) = (6_usize, 5_usize);
    let mut links = Vec::new();
    for i in 0..k as u32 {
        links.extend((0..k as u32).filter(|&j| j != i).map(|j| (i, j)));
    }
    links.push((0, k as u32));
    for i in 0..c {
        links.push(((k + i) as u32, (k + (i + 1) % c) as u32));
    }
    let n = (k + c) as f64;
    let (d, base) = (0.85, 0.15 / n);
    // x0: the clique's page with the extra link; x: each other. x0 = base + d (k-1) x / (k-1); x = base + d (x0 / k + (k-2) x / (k-1)).
    let m = (k - 1) as f64;
    let x = base * (1.0 + d / k as f64) / (1.0 - d * d / k as f64 - d * (m - 1.0) / m);
    let x0 = base + d * x;
    // On the cycle y_0 = base + d x0 / k + d y_{c-1}, y_i = base + d y_{i-1}.
    let turn = d.powi(c as i32);
    let around = (1.0 - turn) / (1.0 - d);
    let y0 = (base * around + d * x0 / k as f64) / (1.0 - turn);
    let mut expected = vec![x0];
    expected.extend(std::iter::repeat_n(x, k - 1));
    let mut y = y0;
    for _ in 0..c {
        expected.push(y);
        y = base + d * y;
    }
    let graph = grouped(&Links { pages: k + c, links });
    for workers in 1..=3 {
        assert_close(&rank(&graph, &[], &settings(workers, 1)).0, &expected);
    }
}

#[test]
fn a_hub_of_millions_of_links_loses_none_of_them() {
    let leaves = 2_000_000_u32;
    // All leaves link to page 0, which links to page 1, which links nowhere.
    let links: Vec<_> = std::iter::once((0, 1)).chain((2..leaves + 2).map(|leaf| (leaf, 0))).collect();
    let pages = leaves as usize + 2;
    let n = pages as f64;
    let [mut leaf, mut hub, mut end] = [1.0 / n; 3];
    for _ in 0..200 {
        let base = (0.15 + 0.85 * end) / n;
        [leaf, hub, end] = [base, base + 0.85 * f64::from(leaves) * leaf, base + 0.85 * hub];
    }
    let mut engine = page_rank(&grouped(&Links { pages, links }), &[], &settings(2, 1));
    engine.run_until(80, |_, _| Ok(false)).unwrap();
    for (found, expected) in scores(&engine).into_iter().zip([hub, end, leaf]) {
        assert!((f64::from(found) / expected - 1.0).abs() < 1e-5, "{found}, expected {expected}");
    }
}

#[test]
fn a_star_has_its_scores_whatever_its_size() {
    for leaves in [100, 3000, 300_000] {
        // All leaves link to page 0, which links nowhere.
        let links: Vec<_> = (1..=leaves).map(|leaf| (leaf, 0)).collect();
        let pages = leaves as usize + 1;
        // leaf = (0.15 + 0.85 hub) / n, and all sum to 1.
        let (n, of_leaves) = (pages as f64, f64::from(leaves));
        let leaf = 1.0 / (n + 0.85 * of_leaves);
        let hub = 1.0 - of_leaves * leaf;
        for workers in 1..=2 {
            let edges = grouped(&Links { pages, links: links.clone() });
            let mut engine = page_rank(&edges, &[], &settings(workers, 1));
            // Single precision loses the same part of the hub's sum each time, and the residual is no smaller.
            engine.run_until(100, |engine, _| Ok(engine.global().residual < 1e-5)).unwrap();
            assert!(engine.iterations() < 100, "{leaves} leaves: residual {}", engine.global().residual);
            for (found, expected) in scores(&engine).into_iter().zip([hub, leaf]) {
                assert!((f64::from(found) / expected - 1.0).abs() < 3e-5, "{found}, expected {expected}");
            }
        }
    }
}

#[test]
fn two_runs_of_one_shape_are_bit_identical_and_shapes_agree() {
    let graph = links(3000, 60_000);
    let (one, _) = rank(&graph, &[], &settings(1, 1));
    for workers in 1..=3 {
        let (first, iterations) = rank(&graph, &[], &settings(workers, 1));
        let (second, again) = rank(&graph, &[], &settings(workers, 1));
        assert_eq!((&first, iterations), (&second, again), "{workers} workers");
        assert!(first.iter().zip(&one).all(|(a, b)| (a - b).abs() < 1e-7));
    }
}

#[test]
fn weighted_ranks_of_one_shape_are_bit_identical_and_shapes_agree() {
    let graph = weighted_links(3000, 60_000);
    let of = |workers| settled(weighted_rank(&graph, &[(7, 1.0), (2999, 3.0)], &settings(workers, 1)));
    let one = of(1).0;
    for workers in 1..=3 {
        let found = of(workers);
        assert_eq!(found, of(workers), "{workers} workers");
        assert!(found.0.iter().zip(&one).all(|(a, b)| (a - b).abs() < 1e-7), "{workers} workers");
    }
}

#[test]
fn slack_and_no_grid_reach_the_same_scores() {
    let graph = links(3000, 60_000);
    let (expected, _) = rank(&graph, &[], &settings(1, 1));
    for slack in [Some(1), Some(3), None] {
        let (scores, _) = rank(&graph, &[], &Settings { slack, ..settings(3, 1) });
        assert!(scores.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "slack {slack:?}");
    }
    let (scores, _) = rank(&graph, &[], &Settings { grid: false, ..settings(2, 1) });
    assert!(scores.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-7));
}

#[test]
fn staleness_stays_within_the_slack() {
    let graph = links(3000, 60_000);
    for slack in [Some(0), Some(2)] {
        let mut engine = page_rank(&graph, &[], &Settings { slack, ..settings(3, 1) });
        let mut ages = Vec::new();
        watch(&mut engine, 20, |_, report| ages.extend(report.staleness.keys().copied()));
        let oldest = -(slack.unwrap() as i64) - 1;
        assert!(ages.iter().all(|&age| age >= oldest && (slack != Some(0) || age == -1)), "{slack:?}: {ages:?}");
    }
}
