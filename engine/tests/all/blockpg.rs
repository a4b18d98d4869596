//! Sparse logistic regression on the engine: against a naive proximal gradient method in f64, and itself.

use megagrid_algorithms::blockpg::{
    BlockPg, Certificate, Config, Fit, Margin, Region, State, descent, scores, sequence,
};
use megagrid_engine::{Engine, Settings, Topology};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side, SplitMix};

use crate::made::watch;
use megagrid_stages::{Left, Right};

/// How features step, and values of a block.
#[derive(Clone, Copy, Debug)]
enum Steps {
    /// Those of a block together.
    Together(u64),
    /// Those of a worker one after the other.
    InTurn(u64),
}
use Steps::{InTurn, Together};

/// Samples with labels.
struct Data {
    values: GroupedEdges<f32>,
    labels: Vec<f32>,
    sample_weights: Vec<f32>,
    intercept: Option<usize>,
}

impl Data {
    /// Makes `samples` samples, each of `features` features with a chance of 0.3, and `copies` of the first feature.
    fn new(samples: usize, features: usize, copies: usize, intercept: bool, seed: u64) -> Self {
        let mut random = SplitMix::new(seed, 0);
        let planted: Vec<f64> =
            (0..features).map(|j| if j % 3 == 0 { 4.0 * random.unit() - 2.0 } else { 0.0 }).collect();
        let all = features + copies;
        let mut list = EdgeList { num_left: samples, num_right: all + usize::from(intercept), ..EdgeList::default() };
        let (mut labels, mut sample_weights) = (Vec::new(), Vec::new());
        for sample in 0..samples {
            let mut values = Vec::new();
            for feature in 0..features {
                if random.unit() < 0.3 {
                    values.push((feature, 2.0 * random.unit() - 0.7));
                }
            }
            let score: f64 = 0.5 + values.iter().map(|(j, x)| x * planted[*j]).sum::<f64>();
            let label = if random.unit() < 1.0 / (1.0 + (-score).exp()) { 1.0 } else { -1.0 };
            if let Some(&(0, x)) = values.first() {
                values.extend((features..all).map(|copy| (copy, x)));
            }
            values.extend(intercept.then_some((all, 1.0)));
            for (feature, x) in values {
                list.push(sample as u32, feature as u32, x as f32);
            }
            labels.push(label as f32);
            sample_weights.push((0.5 + random.unit()) as f32);
        }
        let values = GroupedEdges::new(list, &[Side::Right]);
        Self { values, labels, sample_weights, intercept: intercept.then_some(all) }
    }

    fn engine(&self, config: &Config, steps: Steps, settings: &Settings) -> Engine<BlockPg> {
        let (Together(values) | InTurn(values)) = steps;
        let descends = matches!(steps, InTurn(_));
        let stages = sequence(values).or(descent(values), descends);
        let mut engine = Engine::<BlockPg>::new(&self.values, stages, settings).unwrap();
        engine.set_global(if descends { config.state().with_descent(settings.workers) } else { config.state() });
        engine.init(Left, |sample, first| {
            *first.master = Margin::new(0.0, self.labels[sample], self.sample_weights[sample]);
            *first.sync = first.master.parabola();
        });
        engine.init(Right, |feature, first| {
            *first.master = Region::new(1.3);
            *first.sync = first.master.weight(0.0, self.intercept == Some(feature));
        });
        engine
    }

    fn certificate(&self, weights: &[f64], config: &Config) -> Certificate {
        let Self { values, labels, sample_weights, intercept } = self;
        let fit = Fit { values, labels, sample_weights, intercept: *intercept, weights };
        Certificate::new(&fit, config).unwrap()
    }

    /// Finds the optimum by proximal gradient steps on all weights, dense and in f64.
    fn naive(&self, config: &Config) -> Vec<f64> {
        let (rows, columns) = (self.labels.len(), self.values.num_vertices(Side::Right));
        let mut x = vec![vec![0.0; columns]; rows];
        let ends = self.values.offsets(Side::Right);
        let fill = &mut |samples: &[u32], values: &[f32]| {
            for (n, (&sample, &value)) in samples.iter().zip(values).enumerate() {
                let feature = ends.partition_point(|&end| end <= n as u64) - 1;
                x[sample as usize][feature] = f64::from(value * self.labels[sample as usize]);
            }
        };
        self.values.visit_rows(Side::Right, 0..columns, fill).unwrap();
        let squares: f64 = x
            .iter()
            .zip(&self.sample_weights)
            .map(|(row, &c)| f64::from(c) * row.iter().map(|v| v * v).sum::<f64>())
            .sum();
        let step = 1.0 / (0.25 * squares + config.l2);
        let (mut w, mut before, mut pace) = (vec![0.0; columns], vec![0.0; columns], 1.0_f64);
        for _ in 0..60_000 {
            // Nesterov's extrapolation, restarted when it leads uphill.
            let next_pace = 0.5 * (1.0 + (1.0 + 4.0 * pace * pace).sqrt());
            let ahead: Vec<f64> = w.iter().zip(&before).map(|(w, b)| w + (pace - 1.0) / next_pace * (w - b)).collect();
            let mut gradient: Vec<f64> = vec![0.0; columns];
            for (row, &c) in x.iter().zip(&self.sample_weights) {
                let margin: f64 = row.iter().zip(&ahead).map(|(x, w)| x * w).sum();
                let slope = f64::from(c) / (1.0 + margin.exp());
                gradient.iter_mut().zip(row).for_each(|(g, x)| *g -= slope * x);
            }
            let next: Vec<f64> = (0..columns)
                .map(|j| {
                    let (l1, l2) = if self.intercept == Some(j) { (0.0, 0.0) } else { (config.l1, config.l2) };
                    let free = ahead[j] - step * (gradient[j] + l2 * ahead[j]);
                    free.signum() * (free.abs() - step * l1).max(0.0)
                })
                .collect();
            let uphill: f64 = (0..columns).map(|j| (ahead[j] - next[j]) * (next[j] - w[j])).sum();
            pace = if uphill > 0.0 { 1.0 } else { next_pace };
            let change = next.iter().zip(&w).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            before = std::mem::replace(&mut w, next);
            if change < 1e-14 {
                break;
            }
        }
        w
    }
}

fn settings(workers: usize) -> Settings {
    let topology = Topology { l2_bytes: 4 << 10, ..Topology::synthetic(1, workers) };
    Settings { workers, topology, ..Settings::default() }
}

fn weights(engine: &Engine<BlockPg>) -> Vec<f64> {
    let right = engine.on(Right);
    (0..right.len()).map(|feature| right.sync(feature).value).collect()
}

/// Trains and returns the weights and the certificates after each iteration.
fn train(
    data: &Data,
    config: &Config,
    steps: Steps,
    iterations: u64,
    settings: &Settings,
) -> (Vec<f64>, Vec<Certificate>) {
    let mut engine = data.engine(config, steps, settings);
    let mut certificates = Vec::new();
    watch(&mut engine, iterations, |engine, _| {
        certificates.push(data.certificate(&weights(engine), config));
    });
    (weights(&engine), certificates)
}

#[test]
fn the_optimum_is_that_of_a_naive_program() {
    for (intercept, l2) in [(false, 0.0), (true, 0.0), (true, 0.7)] {
        let data = Data::new(400, 30, 0, intercept, 1);
        let config = Config { l1: 3.0, l2 };
        let naive = data.naive(&config);
        let expected = data.certificate(&naive, &config);
        assert!(expected.gap < 1e-9, "the naive program has converged: {expected:?}");
        for (workers, steps) in (1..=3).flat_map(|workers| [Together(300), InTurn(700)].map(|steps| (workers, steps))) {
            let (found, certificates) = train(&data, &config, steps, 200, &settings(workers));
            let last = certificates[certificates.len() - 1];
            let case = format!("{steps:?}, {workers} workers, intercept {intercept}, l2 {l2}");
            let most = if matches!(steps, InTurn(_)) { 1e-10 } else { 1e-7 };
            assert!(last.gap < most, "{case}: {last:?}");
            let apart = found.iter().zip(&naive).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(apart < 1e-4, "{case}: weights are {apart} apart");
        }
    }
}

#[test]
fn margins_are_those_of_the_weights() {
    let data = Data::new(500, 60, 0, true, 2);
    for (workers, steps) in (1..=3).flat_map(|workers| [Together(500), InTurn(500)].map(|steps| (workers, steps))) {
        let mut engine = data.engine(&Config { l1: 1.0, l2: 0.0 }, steps, &settings(workers));
        engine.run_until(20, |_, _| Ok(false)).unwrap();
        let expected = scores(&data.values, &weights(&engine)).unwrap();
        let left = engine.on(Left);
        for (sample, score) in expected.into_iter().enumerate() {
            let margin = score * f64::from(data.labels[sample]);
            let kept = left.master(sample).margin;
            assert!((kept - margin).abs() < 1e-12, "{steps:?}, sample {sample}: kept {kept}, of the weights {margin}");
        }
    }
}

#[test]
fn copies_of_a_feature_in_one_block_do_not_diverge() {
    let data = Data::new(400, 20, 64, false, 3);
    let config = Config { l1: 1.0, l2: 0.0 };
    let expected = data.certificate(&data.naive(&config), &config);
    for workers in 1..=2 {
        // One block of all features, where plain steps of the copies would be 65 times too long.
        let (_, certificates) = train(&data, &config, Together(u64::MAX), 600, &settings(workers));
        let last = certificates[certificates.len() - 1];
        assert!((last.objective / expected.objective - 1.0).abs() < 1e-5, "{last:?}, expected {expected:?}");
        let (_, others) = train(&data, &config, InTurn(u64::MAX), 100, &settings(workers));
        assert!(
            (others[99].objective / expected.objective - 1.0).abs() < 1e-9,
            "{:?}, expected {expected:?}",
            others[99]
        );
        let rises = certificates[20..].windows(2).filter(|two| two[1].objective > 1.001 * two[0].objective);
        assert_eq!(rises.count(), 0, "the objective falls once the damping is found");
    }
}

#[test]
fn a_feature_that_rests_returns() {
    let data = Data::new(400, 30, 0, false, 4);
    let strong = Config { l1: 60.0, l2: 0.0 };
    let weak = Config { l1: 1.0, l2: 0.0 };
    for steps in [Together(500), InTurn(500)] {
        let mut engine = data.engine(&strong, steps, &settings(2));
        engine.run_until(30, |_, _| Ok(false)).unwrap();
        let resting = |engine: &Engine<BlockPg>| {
            let right = engine.on(Right);
            (0..right.len()).filter(|&feature| right.sync(feature).resting == 1).collect::<Vec<_>>()
        };
        let before = resting(&engine);
        // All features but for a few rest at a strong penalty; with a weak one most have a weight.
        assert!(before.len() > 10, "{before:?}");
        let state = *engine.global();
        engine.resume(30, State { l1: weak.l1, full: false, ..state });
        engine.run_until(200, |_, _| Ok(false)).unwrap();
        let found = weights(&engine);
        assert!(before.iter().filter(|&&feature| found[feature] != 0.0).count() > 10);
        let last = data.certificate(&found, &weak);
        assert!(last.gap < 1e-7, "{last:?}");
    }
}

#[test]
fn two_runs_of_one_shape_are_bit_identical() {
    let data = Data::new(300, 40, 0, true, 5);
    let config = Config { l1: 1.0, l2: 0.1 };
    for (workers, steps) in (1..=3).flat_map(|workers| [Together(400), InTurn(400)].map(|steps| (workers, steps))) {
        let (first, _) = train(&data, &config, steps, 10, &settings(workers));
        let (second, _) = train(&data, &config, steps, 10, &settings(workers));
        assert_eq!(first, second, "{workers} workers, {steps:?}");
    }
}

#[test]
fn bounded_delay_reaches_the_same_optimum() {
    let data = Data::new(400, 30, 0, true, 6);
    let config = Config { l1: 2.0, l2: 0.0 };
    for slack in [Some(1), Some(4), None] {
        let settings = Settings { slack, ..settings(2) };
        let (_, certificates) = train(&data, &config, Together(300), 200, &settings);
        let last = certificates[certificates.len() - 1];
        assert!(last.gap < 1e-6, "slack {slack:?}: {last:?}");
    }
}

#[test]
fn a_penalty_too_large_leaves_an_empty_model() {
    let data = Data::new(200, 10, 0, false, 7);
    let config = Config { l1: 1e6, l2: 0.0 };
    let (found, certificates) = train(&data, &config, InTurn(100), 3, &settings(2));
    assert!(found.iter().all(|&w| w == 0.0));
    assert_eq!(certificates[2].nonzeros, 0);
    assert!(certificates[2].gap.abs() < 1e-12);
}

#[test]
fn an_iteration_that_goes_too_far_is_taken_back() {
    // Counts up to 500 that tell the labels apart: Newton's steps lead far beyond where curvatures are what they were.
    let data = Data::new(300, 40, 0, false, 8);
    let EdgeList { num_left, num_right, left, right, data: mut values, .. } = list_of(&data.values);
    values.iter_mut().zip(&right).for_each(|(x, feature)| *x *= if feature % 4 == 0 { 400.0 } else { 1.0 });
    let list = EdgeList { num_left, num_right, left, right, data: values, ..EdgeList::default() };
    let data = Data { values: GroupedEdges::new(list, &[Side::Right]), ..data };
    let config = Config { l1: 1.0, l2: 0.0 };
    for workers in 1..=2 {
        let (_, certificates) = train(&data, &config, InTurn(500), 400, &settings(workers));
        let last = certificates[certificates.len() - 1];
        assert!(last.gap < 1e-5, "{workers} workers: {last:?}");
    }
}

fn list_of(values: &GroupedEdges<f32>) -> EdgeList<f32> {
    let (num_left, num_right) = (values.num_vertices(Side::Left), values.num_vertices(Side::Right));
    let mut list = EdgeList { num_left, num_right, ..EdgeList::default() };
    for feature in 0..num_right {
        let push = &mut |samples: &[u32], row: &[f32]| {
            samples.iter().zip(row).for_each(|(&sample, &x)| list.push(sample, feature as u32, x));
        };
        values.visit_rows(Side::Right, feature..feature + 1, push).unwrap();
    }
    list
}
