//! Implicit feedback against a dense implementation: normal equations of whole matrices, by naive elimination.

use megagrid_algorithms::als::Config;
use megagrid_datasets::{Dataset, Dictionary, Draw, Share};
use megagrid_partition::{EdgeList, SplitMix};
use megagrid_training::als::{AlsOptions, Feedback, FeedbackOptions, ImplicitFactorization, Recommender};
use megagrid_training::mf::{Holdout, Ratings};
use megagrid_training::{Consistency, Job, Options, Processes, RunOptions, Trained, options as from_words, train};

const USERS: usize = 70;
const ITEMS: usize = 40;

/// Feedback of many strengths; some users and items have none, one item nearly all.
fn feedback() -> Dataset<f32> {
    let mut random = SplitMix::new(3, 0);
    let mut edges = EdgeList { num_left: USERS, num_right: ITEMS, ..EdgeList::default() };
    for user in 0..USERS - 2 {
        for item in 0..ITEMS - 2 {
            // Users of a kind share items.
            let chance = if item == 5 {
                9
            } else if user % 4 == item % 4 {
                5
            } else {
                1
            };
            if random.below(10) < chance {
                edges.push(user as u32, item as u32, [0.5, 1.0, 2.0, 0.0][random.below(4) as usize]);
            }
        }
    }
    let names = |count: usize| Dictionary::from_integers((0..count as u64).collect());
    Dataset { edges, left_names: names(USERS), right_names: Some(names(ITEMS)) }
}

fn options(dims: usize, block: usize, iterations: u64) -> AlsOptions {
    AlsOptions { dims, block, iterations, lambda: 0.02, alpha: Some(4.0), nu: 0.8, ..AlsOptions::default() }
}

fn trained(feedback: Feedback, options: AlsOptions, run: &RunOptions) -> Trained<ImplicitFactorization> {
    let processes = Processes::default();
    let job = Job::<ImplicitFactorization>::new(feedback, serde_json::json!({}), options, run, &processes).unwrap();
    train(job, &processes, &()).unwrap()
}

fn on(workers: usize) -> RunOptions {
    RunOptions { workers: Some(workers), ..RunOptions::default() }
}

fn all(dataset: Dataset<f32>) -> Feedback {
    Feedback::new(Ratings::new(dataset, None, 1).unwrap(), None).unwrap()
}

/// Weights and targets of all pairs, and all factors, in double precision.
struct Dense {
    config: Config,
    feedback: Vec<Vec<f64>>,
    users: Vec<Vec<f64>>,
    items: Vec<Vec<f64>>,
}

impl Dense {
    fn new(dataset: &Dataset<f32>, config: Config) -> Self {
        let mut feedback = vec![vec![0.0; ITEMS]; USERS];
        let ends = dataset.edges.left.iter().zip(&dataset.edges.right).zip(&dataset.edges.data);
        ends.for_each(|((&user, &item), &value)| feedback[user as usize][item as usize] = f64::from(value));
        let items = (0..ITEMS).map(|item| {
            let mut row = vec![0.0; config.dims];
            config.init_item(1, item, &mut row);
            row.iter().map(|&value| f64::from(value)).collect()
        });
        Self { config, feedback, users: vec![vec![0.0; config.dims]; USERS], items: items.collect() }
    }

    /// Weight and target of a pair: 1 + α r over α where there is feedback, 1 / α elsewhere.
    fn pair(&self, user: usize, item: usize) -> (f64, f64) {
        let value = self.feedback[user][item];
        (value + 1.0 / f64::from(self.config.alpha), f64::from(u8::from(value > 0.0)))
    }

    fn rho(&self, feedback: &[f64], others: usize) -> f64 {
        let Config { lambda, alpha, nu, .. } = self.config;
        let count = feedback.iter().filter(|&&value| value > 0.0).count() as f64;
        f64::from(lambda) * (others as f64 / f64::from(alpha) + count).powf(f64::from(nu))
    }

    /// Solves for one vertex, block by block, given weights and targets of all vertices of the other side. Without feedback the minimum
    /// is zero, which no block has to come near step by step.
    fn solve(own: &mut [f64], others: &[Vec<f64>], pairs: &[(f64, f64)], rho: f64, block: usize) {
        let dims = own.len();
        if pairs.iter().all(|&(_, target)| target == 0.0) {
            return own.fill(0.0);
        }
        for first in (0..dims).step_by(block) {
            let span = first..(first + block).min(dims);
            let size = span.len();
            let (mut matrix, mut right) = (vec![vec![0.0; size]; size], vec![0.0; size]);
            for (other, (weight, target)) in others.iter().zip(pairs) {
                let rest: f64 =
                    target - (0..dims).filter(|d| !span.contains(d)).map(|d| own[d] * other[d]).sum::<f64>();
                for a in 0..size {
                    right[a] += weight * rest * other[first + a];
                    (0..size).for_each(|b| matrix[a][b] += weight * other[first + a] * other[first + b]);
                }
            }
            (0..size).for_each(|a| matrix[a][a] += rho);
            own[span].copy_from_slice(&eliminated(matrix, right));
        }
    }

    fn iterate(&mut self) {
        let block = self.config.block.min(self.config.dims);
        for user in 0..USERS {
            let pairs: Vec<_> = (0..ITEMS).map(|item| self.pair(user, item)).collect();
            let rho = self.rho(&self.feedback[user], ITEMS);
            Self::solve(&mut self.users[user], &self.items, &pairs, rho, block);
        }
        for item in 0..ITEMS {
            let pairs: Vec<_> = (0..USERS).map(|user| self.pair(user, item)).collect();
            let column: Vec<f64> = self.feedback.iter().map(|row| row[item]).collect();
            let rho = self.rho(&column, USERS);
            Self::solve(&mut self.items[item], &self.users, &pairs, rho, block);
        }
    }

    fn objective(&self) -> f64 {
        let norm = |row: &[f64]| row.iter().map(|x| x * x).sum::<f64>();
        let mut loss = 0.0;
        for (user, row) in self.users.iter().enumerate() {
            loss += self.rho(&self.feedback[user], ITEMS) * norm(row);
            for (item, other) in self.items.iter().enumerate() {
                let (weight, target) = self.pair(user, item);
                loss += weight * (target - row.iter().zip(other).map(|(a, b)| a * b).sum::<f64>()).powi(2);
            }
        }
        for (item, row) in self.items.iter().enumerate() {
            let column: Vec<f64> = self.feedback.iter().map(|row| row[item]).collect();
            loss += self.rho(&column, USERS) * norm(row);
        }
        loss
    }
}

/// Gauss and Jordan, with pivots.
fn eliminated(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    for column in 0..size {
        let pivot = (column..size).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()));
        matrix.swap(column, pivot.unwrap());
        right.swap(column, pivot.unwrap());
        for row in (0..size).filter(|&row| row != column) {
            let (factor, from) = (matrix[row][column] / matrix[column][column], matrix[column].clone());
            matrix[row].iter_mut().zip(&from).for_each(|(value, from)| *value -= factor * from);
            right[row] -= factor * right[column];
        }
    }
    (0..size).map(|row| right[row] / matrix[row][row]).collect()
}

fn check_close(found: &[f32], expected: &[Vec<f64>], what: &str) {
    let dims = expected[0].len();
    for (row, expected) in found.chunks_exact(dims).zip(expected) {
        for (found, expected) in row.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{what}: {found}, not {expected}");
        }
    }
}

#[test]
fn factors_and_objective_are_those_of_dense_normal_equations() {
    for (dims, block) in [(3, 16), (20, 32), (40, 16), (40, 32), (40, 40), (40, 64)] {
        let options = options(dims, block, 5);
        let mut dense = Dense::new(&feedback(), options.config());
        let trained = [1, 2, 3].map(|workers| trained(all(feedback()), options.clone(), &on(workers)));
        let mut before = f64::INFINITY;
        for (iteration, done) in (0..5).map(|iteration| (iteration, &trained[0].record.iterations[iteration])) {
            dense.iterate();
            let expected = dense.objective();
            let found = done.objective.unwrap();
            assert!((found - expected).abs() < 1e-5 * expected, "{dims}/{block}: {found}, not {expected}");
            assert!(found < before, "the objective falls in iteration {iteration}");
            before = found;
        }
        for (trained, workers) in trained.iter().zip(1..) {
            let Recommender(factors) = trained.model.as_ref().unwrap();
            let what = format!("{dims} dims, blocks of {block}, {workers} workers");
            check_close(&factors.model.users, &dense.users, &what);
            check_close(&factors.model.items, &dense.items, &what);
        }
    }
}

#[test]
fn a_block_of_all_dimensions_is_one_step_to_the_minimum() {
    // Users do not change if they are solved for again, where all dimensions are a block.
    let options = options(40, 40, 1);
    let mut dense = Dense::new(&feedback(), options.config());
    dense.iterate();
    let (users, items) = (dense.users.clone(), Dense::new(&feedback(), options.config()).items);
    dense.items = items;
    dense.iterate();
    assert!(users.iter().flatten().zip(dense.users.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-12));
}

/// Ratings that few dimensions explain, with many: the equations are nearly singular.
#[test]
fn the_objective_falls_where_dimensions_are_too_many() {
    let mut edges = EdgeList { num_left: USERS, num_right: ITEMS, ..EdgeList::default() };
    for (user, item) in (0..USERS).flat_map(|user| (0..ITEMS).map(move |item| (user, item))) {
        if (user * 7 + item * 11) % 5 != 0 {
            let wave = |n: usize, by: f32| (n as f32 * by).sin();
            edges.push(user as u32, item as u32, 3.0 + wave(user, 0.7) * wave(item, 0.9));
        }
    }
    let dataset = Dataset { edges, ..feedback() };
    for (dims, block) in [(20, 20), (40, 16), (40, 40)] {
        let options = AlsOptions { dims, block, iterations: 8, ..AlsOptions::default() };
        let record = trained(all(dataset.clone()), options, &on(2)).record;
        let objectives: Vec<f64> = record.iterations.iter().map(|iteration| iteration.objective.unwrap()).collect();
        assert!(objectives.is_sorted_by(|before, after| after < before), "{dims}, {block}: {objectives:?}");
    }
}

#[test]
fn every_vector_level_comes_to_the_same() {
    use megagrid_stages::simd::Level;
    let expected = trained(all(feedback()), options(40, 16, 4), &on(1)).record.result.objective.unwrap();
    for level in Level::available() {
        let run = RunOptions { vector: Some(level), ..on(2) };
        let found = trained(all(feedback()), options(40, 16, 4), &run).record.result.objective.unwrap();
        assert!((found - expected).abs() < 1e-6 * expected, "{level}: {found}, not {expected}");
    }
}

/// A log has a line each time: its pairs are those of the counts.
#[test]
fn feedback_on_a_pair_that_is_read_again_is_added_up() {
    let mut counted = feedback();
    counted.edges.data.iter_mut().for_each(|value| *value = value.ceil());
    let mut log = Dataset {
        edges: EdgeList { data: Vec::new(), left: Vec::new(), right: Vec::new(), ..counted.edges.clone() },
        ..counted.clone()
    };
    let pairs = counted.edges.left.iter().zip(&counted.edges.right).zip(&counted.edges.data);
    for round in 0..2 {
        for ((&user, &item), _) in pairs.clone().filter(|(_, value)| **value > round as f32) {
            log.edges.push(user, item, 1.0);
        }
    }
    assert!(log.edges.num_edges() > counted.edges.data.iter().filter(|value| **value > 0.0).count());
    let objective = |of: Trained<ImplicitFactorization>| of.record.result.objective.unwrap();
    let expected = objective(trained(all(counted), options(20, 16, 3), &on(1)));
    for workers in [1, 2] {
        let found = objective(trained(all(log.clone()), options(20, 16, 3), &on(workers)));
        assert!((found - expected).abs() < 1e-6 * expected, "{workers} workers: {found}, not {expected}");
        let above = Feedback::new(Ratings::new(log.clone(), None, 1).unwrap(), Some(0.5)).unwrap();
        let found = objective(trained(above, options(20, 16, 3), &on(workers)));
        assert!((found - expected).abs() < 1e-6 * expected, "{workers} workers, above a bound: {found}");
    }
}

#[test]
fn users_and_items_that_take_turns_have_no_slack() {
    let run = RunOptions { consistency: Consistency::Async, ..on(2) };
    let processes = Processes::default();
    let job =
        Job::<ImplicitFactorization>::new(all(feedback()), serde_json::json!({}), options(20, 16, 3), &run, &processes);
    let refused = job.and_then(|job| train(job, &processes, &())).err().map(|error| error.to_string());
    assert!(refused.as_deref().is_some_and(|error| error.contains("leave out --consistency")), "{refused:?}");
}

#[test]
fn ratings_above_a_bound_are_feedback_of_one() {
    let mut binary = feedback();
    binary.edges.data.iter_mut().for_each(|value| *value = f32::from(u8::from(*value > 0.5)));
    let expected = trained(all(binary), options(20, 16, 3), &on(2)).record.result.objective.unwrap();
    // Values below 0 do no harm then.
    let mut ratings = feedback();
    ratings.edges.data.iter_mut().filter(|value| **value == 0.0).for_each(|value| *value = -1.0);
    let above = Feedback::new(Ratings::new(ratings, None, 1).unwrap(), Some(0.5)).unwrap();
    let found = trained(above, options(20, 16, 3), &on(2)).record.result.objective.unwrap();
    assert_eq!(found, expected);
}

#[test]
fn what_is_no_feedback_is_refused_by_name() {
    let with = |value: f32| {
        let mut bad = feedback();
        let at = bad.edges.data.len() / 2;
        bad.edges.data[at] = value;
        let (user, item) = (bad.edges.left[at], bad.edges.right[at]);
        let error = Feedback::new(Ratings::new(bad, None, 1).unwrap(), None).unwrap_err().to_string();
        let expected =
            format!("feedback of user \"{user}\" on item \"{item}\" is {value}; expected 0 or a number above");
        assert!(error.starts_with(&expected), "{error}");
    };
    with(-1.0);
    with(f32::NAN);
    with(f32::INFINITY);
    let none = |above, data: f32| {
        let mut nothing = feedback();
        nothing.edges.data.fill(data);
        Feedback::new(Ratings::new(nothing, None, 1).unwrap(), above).unwrap_err().to_string()
    };
    assert!(none(None, 0.0).contains("no feedback to train on"));
    assert!(none(Some(4.0), 4.0).contains("above 4, as --ratings-above has it"));
    for (name, value) in [("lambda", 0.0), ("alpha", -1.0), ("nu", 3.0), ("block", 17.0)] {
        let error = options(40, 16, 1).with(name, value.into()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name} is ")), "{error}");
    }
}

#[test]
fn what_was_kept_for_testing_is_ranked() {
    let held = || {
        Ratings::held_out(feedback(), Some(Holdout::PerUser(Share::Number(2))), Draw { seed: 1, ..Draw::default() })
            .unwrap()
    };
    let ranked = Feedback::new(held(), None).unwrap();
    let ranked = Feedback { ratings: ranked.ratings.ranked(Some(10)).unwrap(), ..ranked };
    let found = trained(ranked, options(16, 16, 8), &on(2)).record.result.metrics;
    let chance = 10.0 / (ITEMS as f64);
    for name in ["test_recall", "test_ndcg", "test_map", "test_mrr", "test_hit_rate", "test_coverage"] {
        assert!(found[name] > 0.0 && found[name] <= 1.0, "{name}: {}", found[name]);
    }
    assert!(found["test_recall"] > 1.5 * chance, "better than chance: {}", found["test_recall"]);
}

/// When feedback was given: over 35 half-lives of 20, the newest not at the end.
fn times() -> Vec<f64> {
    let mut random = SplitMix::new(11, 0);
    let mut times: Vec<f64> = feedback().edges.data.iter().map(|_| 300.0 + random.below(700) as f64).collect();
    times[7] = 1000.0;
    times
}

/// Feedback that counts less the older it is.
fn decayed(half_life: &str, above: Option<f32>) -> Feedback {
    let how = FeedbackOptions { ratings_above: above, ..from_words(["--half-life", half_life]).unwrap() };
    let mut ratings = feedback();
    how.decay(&mut ratings.edges.data, Some(&times())).unwrap();
    Feedback::new(Ratings::new(ratings, None, 1).unwrap(), how.bound()).unwrap()
}

#[test]
fn feedback_that_counts_less_the_older_it_is_comes_to_dense_equations_with_such_weights() {
    for (above, dims, block) in [(None, 20, 16), (Some(0.5), 40, 40)] {
        let mut weighed = feedback();
        for (value, time) in weighed.edges.data.iter_mut().zip(times()) {
            let worth = above.map_or(f64::from(*value), |above| f64::from(u8::from(*value > above)));
            *value = (worth * 0.5f64.powf((1000.0 - time) / 20.0).max(1.0 / 1024.0)) as f32;
        }
        let options = options(dims, block, 5);
        let mut dense = Dense::new(&weighed, options.config());
        let trained = [1, 2].map(|workers| trained(decayed("20", above), options.clone(), &on(workers)));
        for done in &trained[0].record.iterations {
            dense.iterate();
            let (found, expected) = (done.objective.unwrap(), dense.objective());
            assert!((found - expected).abs() < 1e-5 * expected, "{found}, not {expected}");
        }
        for trained in trained {
            let Recommender(factors) = trained.model.unwrap();
            check_close(&factors.model.users, &dense.users, "users");
            check_close(&factors.model.items, &dense.items, "items");
        }
    }
}

#[test]
fn a_long_half_life_comes_to_none() {
    let expected = trained(all(feedback()), options(20, 16, 5), &on(2)).model.unwrap().0.model;
    let found = trained(decayed("1e9", None), options(20, 16, 5), &on(2)).model.unwrap().0.model;
    let furthest = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(furthest(&found.users, &expected.users) < 1e-5 && furthest(&found.items, &expected.items) < 1e-5);
    let shorter = trained(decayed("100", None), options(20, 16, 5), &on(2)).model.unwrap().0.model;
    assert!(furthest(&shorter.items, &expected.items) > 1e-3);
}

#[test]
fn feedback_without_times_or_above_no_bound_is_refused() {
    let decay = |above, times: Option<&[f64]>| {
        let how = FeedbackOptions { ratings_above: above, ..from_words(["--half-life", "30d"]).unwrap() };
        how.decay(&mut [1.0, 2.0], times).unwrap_err().to_string()
    };
    assert!(decay(None, None).contains("--half-life needs a column of times"));
    assert!(decay(None, Some(&[1.0])).starts_with("1 times of 2 ratings"));
    assert!(decay(Some(2.0), Some(&[1.0, 2.0])).contains("none of the 2 values is above 2, as --ratings-above has it"));
}
