//! Factorization by alternating least squares: against a naive program, and itself.

use megagrid_algorithms::mf::alternating::{MfAlternating, sequence};
use megagrid_algorithms::mf::{Config, Objective, Optimizer, SquaredErrors};
use megagrid_engine::{Engine, Settings};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::ROW_ALIGN;
use megagrid_stages::simd::Level;

use crate::made::{self, factorization, factors, run, watch};
use crate::mf::{ITEMS, USERS, ratings};

fn config(dims: usize, biases: bool) -> Config {
    Config { dims, biases, lambda: 0.05, optimizer: Optimizer::Alternating, ..Config::default() }
}

fn engine(list: &EdgeList<f32>, config: Config, settings: &Settings) -> Engine<MfAlternating> {
    factorization(&GroupedEdges::new(list.clone(), &[Side::Right]), config, sequence(config), settings)
}

fn settings(workers: usize, config: &Config) -> Settings {
    made::settings(workers, config.row_dims())
}

/// Solves by Gauss and Jordan.
fn solved(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    for pivot in 0..right.len() {
        for row in (0..right.len()).filter(|&row| row != pivot) {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            (0..right.len()).for_each(|column| matrix[row][column] -= factor * matrix[pivot][column]);
            right[row] -= factor * right[pivot];
        }
    }
    (0..right.len()).map(|at| right[at] / matrix[at][at]).collect()
}

/// The naive program: for each vertex, block of dimensions after block of dimensions, the dense normal equations of its row.
struct Naive {
    rows: Vec<Vec<f64>>,
    /// Of each vertex its neighbours and their ratings.
    rated: Vec<Vec<(usize, f64)>>,
    config: Config,
}

impl Naive {
    fn new(list: &EdgeList<f32>, config: Config) -> Self {
        let mut rated = vec![Vec::new(); USERS + ITEMS];
        for ((&user, &item), &rating) in list.left.iter().zip(&list.right).zip(&list.data) {
            let (user, item) = (user as usize, USERS + item as usize);
            rated[user].push((item, f64::from(rating)));
            rated[item].push((user, f64::from(rating)));
        }
        let first = |vertex: usize| {
            let mut row = vec![0.0; config.row_dims()];
            if vertex < USERS {
                config.init_user(1, vertex, &mut row)
            } else {
                config.init_item(1, vertex - USERS, &mut row)
            }
            row.into_iter().map(f64::from).collect()
        };
        Self { rows: (0..USERS + ITEMS).map(first).collect(), rated, config }
    }

    fn iterate(&mut self) {
        let Config { dims, biases, .. } = self.config;
        for vertex in 0..USERS + ITEMS {
            // What is behind the factor: of a user the bias and the one, of an item the one and the bias.
            let one = if vertex < USERS { dims + 1 } else { dims };
            for block in (0..self.config.row_dims()).step_by(ROW_ALIGN) {
                let block = block..self.config.row_dims().min(block + ROW_ALIGN);
                self.solve(vertex, &block.filter(|&at| !biases || at != one).collect::<Vec<_>>());
            }
        }
    }

    /// Solves for these coordinates of a vertex, where the others stand.
    fn solve(&mut self, vertex: usize, coordinates: &[usize]) {
        let rated = &self.rated[vertex];
        if rated.is_empty() {
            return;
        }
        let rho = f64::from(self.config.lambda) * rated.len() as f64;
        let mut matrix: Vec<Vec<f64>> = (0..coordinates.len())
            .map(|n| (0..coordinates.len()).map(|m| if n == m { rho } else { 0.0 }).collect())
            .collect();
        let mut right = vec![0.0; coordinates.len()];
        for &(other, rating) in rated {
            let (own, row) = (&self.rows[vertex], &self.rows[other]);
            let of_others =
                (0..own.len()).filter(|at| !coordinates.contains(at)).map(|at| own[at] * row[at]).sum::<f64>();
            for (n, &a) in coordinates.iter().enumerate() {
                right[n] += (rating - of_others) * row[a];
                coordinates.iter().enumerate().for_each(|(m, &b)| matrix[n][m] += row[a] * row[b]);
            }
        }
        coordinates.iter().zip(solved(matrix, right)).for_each(|(&at, value)| self.rows[vertex][at] = value);
    }
}

/// One block, whose solution is the row's, and several; with biases and without; each vector level.
#[test]
fn rows_are_those_of_dense_normal_equations() {
    let list = ratings(6_000, 0.3, 6);
    for (dims, biases) in [(6, true), (16, false), (20, true), (40, false)] {
        let config = config(dims, biases);
        let mut naive = Naive::new(&list, config);
        (0..3).for_each(|_| naive.iterate());
        for (workers, level) in [1, 2, 3].into_iter().zip(Level::available().into_iter().cycle()) {
            let mut engine = engine(&list, config, &Settings { level, ..settings(workers, &config) });
            run(&mut engine, 3);
            for (vertex, (found, expected)) in factors(&engine).iter().zip(&naive.rows).enumerate() {
                for (found, expected) in found.iter().zip(expected) {
                    let error = (f64::from(*found) - expected).abs();
                    assert!(error < 2e-4, "{dims} dims, {workers} workers, vertex {vertex}: {found}, not {expected}");
                }
            }
        }
    }
}

#[test]
fn the_objective_never_rises_and_the_running_error_is_the_exact_one() {
    let list = ratings(9_000, 0.3, 7);
    for (dims, biases) in [(6, true), (40, true), (40, false)] {
        let config = config(dims, biases);
        let mut objectives = Vec::new();
        watch(&mut engine(&list, config, &settings(2, &config)), 12, |engine, _| {
            let exact = *engine.total(SquaredErrors(config)).unwrap().as_mut();
            let running = engine.global().squared_errors;
            assert!((running / exact.squared_errors - 1.0).abs() < 1e-4, "{running}, exactly {}", exact.squared_errors);
            objectives.push(Objective::new(exact, config.lambda).value);
        });
        assert!(objectives.windows(2).all(|pair| pair[1] < pair[0] * (1.0 + 1e-6)), "{dims}: {objectives:?}");
        assert!(objectives[11] < 0.9 * objectives[0], "{dims}: {objectives:?}");
    }
}

#[test]
fn padding_stays_zero_ones_stay_one_and_vertices_without_ratings_stay_as_they_were() {
    let mut list = ratings(5_000, 0.2, 3);
    list.num_left += 1;
    let config = config(5, true);
    let mut engine = engine(&list, config, &settings(2, &config));
    run(&mut engine, 3);
    let factors = factors(&engine);
    for (n, row) in factors.iter().enumerate() {
        let one = if n <= USERS { config.dims + 1 } else { config.dims };
        assert!(row[config.row_dims()..].iter().all(|&value| value == 0.0) && row[one] == 1.0, "{n}: {row:?}");
    }
    let mut first = vec![0.0; factors[USERS].len()];
    config.init_user(1, USERS, &mut first);
    assert_eq!(factors[USERS], first);
}

/// Without a regularizer, and of a user with one rating: no number is left out.
#[test]
fn no_regularizer_is_the_least() {
    let mut list = EdgeList { num_left: USERS, num_right: ITEMS, ..EdgeList::default() };
    let mut random = SplitMix::new(8, 0);
    for user in 0..USERS as u32 {
        list.push(user, random.below(ITEMS as u64) as u32, 1.0 + random.below(5) as f32);
    }
    let config = Config { lambda: 0.0, ..config(8, true) };
    let mut engine = engine(&list, config, &settings(2, &config));
    run(&mut engine, 5);
    let exact = *engine.total(SquaredErrors(config)).unwrap().as_mut();
    assert!(exact.squared_errors < 1e-3 * USERS as f64, "{}", exact.squared_errors);
    assert!(factors(&engine).iter().flatten().all(|value| value.is_finite()));
}
