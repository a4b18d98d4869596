//! Matrix factorization on the engine: against a naive program, planted factors and itself.

use megagrid_algorithms::mf::{Config, Objective, SquaredErrors, batch, in_place};
use megagrid_engine::Settings;
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};

use crate::made::{self, factorization, factors, run, watch};

pub const USERS: usize = 300;
pub const ITEMS: usize = 120;

/// Ratings with planted factors of length 4 and noise of this standard deviation (a sum of twelve uniform numbers).
pub fn ratings(count: usize, noise: f64, seed: u64) -> EdgeList<f32> {
    let factor = |n: usize| -> [f64; 4] {
        let mut random = SplitMix::new(99, n as u64);
        std::array::from_fn(|_| 2.0 * random.unit() - 1.0)
    };
    let mut random = SplitMix::new(seed, 0);
    let mut list = EdgeList { num_left: USERS, num_right: ITEMS, ..EdgeList::default() };
    for _ in 0..count {
        let (user, item) = (random.below(USERS as u64) as usize, random.below(ITEMS as u64) as usize);
        let (p, q) = (factor(user), factor(USERS + item));
        let error: f64 = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let rating = (0..4).map(|i| p[i] * q[i]).sum::<f64>() + noise * error;
        list.push(user as u32, item as u32, rating as f32);
    }
    list
}

fn settings(workers: usize, config: &Config) -> Settings {
    made::settings(workers, config.row_dims())
}

/// Trains in place and returns the factors of users and items and the objective after each iteration.
fn train(
    list: &EdgeList<f32>,
    config: Config,
    iterations: u64,
    settings: &Settings,
) -> (Vec<Vec<f32>>, Vec<Objective>) {
    let source = GroupedEdges::new(list.clone(), &[Side::Right]);
    let mut engine = factorization(&source, config, in_place::sequence(config, list.data.len() as u64), settings);
    let mut objectives = Vec::new();
    watch(&mut engine, iterations, |engine, _| {
        objectives.push(Objective::new(engine.total(SquaredErrors(config)).unwrap(), config.lambda));
    });
    (factors(&engine), objectives)
}

#[test]
fn planted_factors_are_found_within_three_per_cent_of_the_noise() {
    let (noise, config) = (0.3, Config { dims: 4, lambda: 0.02, ..Config::default() });
    let list = ratings(80_000, noise, 1);
    let test = ratings(5_000, noise, 2);
    for workers in 1..=3 {
        let (factors, objectives) = train(&list, config, 30, &settings(workers, &config));
        let errors: f64 = (0..test.data.len())
            .map(|n| {
                let (p, q) = (&factors[test.left[n] as usize], &factors[USERS + test.right[n] as usize]);
                let product: f32 = p.iter().zip(q).map(|(a, b)| a * b).sum();
                f64::from(test.data[n] - product).powi(2)
            })
            .sum();
        let rmse = (errors / test.data.len() as f64).sqrt();
        assert!(rmse < 1.03 * noise, "{workers} workers: test rmse {rmse}, noise {noise}");
        assert!(objectives.windows(2).filter(|o| o[1].value > o[0].value).count() < 10);
    }
}

#[test]
fn padding_stays_zero_and_ones_of_biases_stay_one() {
    let config = Config { dims: 5, biases: true, ..Config::default() };
    let (factors, _) = train(&ratings(5_000, 0.2, 3), config, 3, &settings(2, &config));
    for (n, row) in factors.iter().enumerate() {
        let (user, item) = (n < USERS, n >= USERS);
        assert!(row[config.row_dims()..].iter().all(|&value| value == 0.0));
        assert!(!user || row[config.dims + 1] == 1.0);
        assert!(!item || row[config.dims] == 1.0);
    }
}

#[test]
fn two_runs_of_one_shape_are_bit_identical_and_shapes_agree_within_one_per_cent() {
    let config = Config { dims: 8, ..Config::default() };
    let list = ratings(20_000, 0.3, 4);
    let (_, one) = train(&list, config, 15, &settings(1, &config));
    for workers in 1..=3 {
        let (first, objectives) = train(&list, config, 15, &settings(workers, &config));
        let (second, _) = train(&list, config, 15, &settings(workers, &config));
        assert_eq!(first, second, "{workers} workers");
        let (end, expected) = (objectives[14].value, one[14].value);
        assert!((end / expected - 1.0).abs() < 0.01, "{workers} workers: {end}, one worker {expected}");
    }
}

#[test]
fn slack_and_mini_batches_reach_the_same_objective_within_one_per_cent() {
    let config = Config { dims: 8, ..Config::default() };
    let list = ratings(20_000, 0.3, 4);
    let (_, expected) = train(&list, config, 15, &settings(1, &config));
    for slack in [Some(2), None] {
        let (_, objectives) = train(&list, config, 15, &Settings { slack, ..settings(3, &config) });
        let last = objectives.last().unwrap();
        assert!((last.value / expected[14].value - 1.0).abs() < 0.01, "slack {slack:?}");
    }
}

#[test]
fn every_vector_level_trains_alike() {
    let config = Config { dims: 20, ..Config::default() };
    let list = ratings(10_000, 0.3, 5);
    for workers in [1, 2] {
        let (_, expected) = train(&list, config, 5, &settings(workers, &config));
        for level in megagrid_stages::simd::Level::available() {
            let (_, objectives) = train(&list, config, 5, &Settings { level, ..settings(workers, &config) });
            assert!((objectives[4].value / expected[4].value - 1.0).abs() < 0.001, "{level}, {workers} workers");
        }
    }
}

/// The batch-gradient form on the engine against plain loops over dense gradients.
#[test]
fn batch_gradients_equal_a_naive_program() {
    let config = Config { dims: 6, step: 0.05, biases: false, ..Config::default() };
    let list = ratings(4_000, 0.3, 6);
    let expected = naive_batch(&list, &config, 5);
    for workers in 1..=3 {
        let source = GroupedEdges::new(list.clone(), &[Side::Right]);
        let sequence = batch::sequence(config, list.data.len() as u64);
        let mut engine = factorization(&source, config, sequence, &settings(workers, &config));
        run(&mut engine, 5);
        for (vertex, (found, row)) in factors(&engine).iter().zip(&expected).enumerate() {
            for (a, b) in found.iter().zip(row) {
                assert!((f64::from(*a) - b).abs() < 1e-4, "{workers} workers, vertex {vertex}: {a}, expected {b}");
            }
        }
    }
}

fn naive_batch(list: &EdgeList<f32>, config: &Config, iterations: usize) -> Vec<Vec<f64>> {
    let k = config.dims;
    let first = |vertex: usize| {
        let mut row = vec![0.0; k];
        if vertex < USERS {
            config.init_user(1, vertex, &mut row)
        } else {
            config.init_item(1, vertex - USERS, &mut row)
        };
        row.into_iter().map(f64::from).collect()
    };
    let mut rows: Vec<Vec<f64>> = (0..USERS + ITEMS).map(first).collect();
    let mut squares = vec![0.0; USERS + ITEMS];
    let lambda = f64::from(config.lambda);
    for _ in 0..iterations {
        let mut gradients = vec![vec![0.0; k]; USERS + ITEMS];
        for n in 0..list.data.len() {
            let (u, i) = (list.left[n] as usize, USERS + list.right[n] as usize);
            let error = f64::from(list.data[n]) - (0..k).map(|d| rows[u][d] * rows[i][d]).sum::<f64>();
            for d in 0..k {
                gradients[u][d] += error * rows[i][d] - lambda * rows[u][d];
                gradients[i][d] += error * rows[u][d] - lambda * rows[i][d];
            }
        }
        for (vertex, gradient) in gradients.iter().enumerate() {
            squares[vertex] += gradient.iter().map(|g| g * g).sum::<f64>() / k as f64;
            let step = f64::from(config.step) / (1.0 + squares[vertex]).sqrt();
            (0..k).for_each(|d| rows[vertex][d] += step * gradient[d]);
        }
    }
    rows
}

/// A gradient step against finite differences of the objective of one rating.
#[test]
fn steps_follow_the_gradient() {
    use megagrid_stages::kernels::descend;
    let (lambda, rating, width) = (0.1, 1.5, 16);
    let mut random = SplitMix::new(3, 3);
    let p: Vec<f32> = (0..width).map(|_| random.unit() as f32 - 0.5).collect();
    let q: Vec<f32> = (0..width).map(|_| random.unit() as f32 - 0.5).collect();
    let objective = |p: &[f64], q: &[f64]| {
        let product: f64 = p.iter().zip(q).map(|(a, b)| a * b).sum();
        let norms: f64 = p.iter().chain(q).map(|x| x * x).sum();
        (rating - product).powi(2) + f64::from(lambda) * norms
    };
    let wide = |row: &[f32]| row.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let (dp, dq) = (wide(&p), wide(&q));
    let product: f64 = dp.iter().zip(&dq).map(|(a, b)| a * b).sum();
    let (mut stepped_p, mut stepped_q) = (p.clone(), q.clone());
    descend(&mut stepped_p, &mut stepped_q, (rating - product) as f32, lambda, 1.0, 1.0);
    for i in 0..width {
        let difference = |rows: (&[f64], &[f64]), left: bool| {
            let h = 1e-5;
            let shifted = |by: f64| {
                let (mut a, mut b) = (rows.0.to_vec(), rows.1.to_vec());
                if left {
                    a[i] += by
                } else {
                    b[i] += by
                }
                objective(&a, &b)
            };
            (shifted(h) - shifted(-h)) / (2.0 * h)
        };
        // The step is along minus half the gradient.
        assert!((f64::from(stepped_p[i] - p[i]) + difference((&dp, &dq), true) / 2.0).abs() < 1e-4);
        assert!((f64::from(stepped_q[i] - q[i]) + difference((&dp, &dq), false) / 2.0).abs() < 1e-4);
    }
}
