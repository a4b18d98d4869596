//! Matrix factorization by each optimizer: against plain loops over dense rows, and against itself.

use megagrid_algorithms::mf::by_coordinate::batch::{self, MfBatchByCoordinate};
use megagrid_algorithms::mf::by_coordinate::in_place::{self, MfByCoordinate};
use megagrid_algorithms::mf::{Config, Objective, Optimizer, Rule, SquaredErrors};
use megagrid_engine::{Engine, Settings, Topology};
use megagrid_partition::{EdgeList, GroupedEdges, Side};
use megagrid_stages::{Left, Right};

use crate::checkpoint::goes_on;
use crate::made::{self, factorization, factors, run, watch};
use crate::mf::{ITEMS, USERS, ratings};
use crate::order::visited;

/// Each with parameters of its paper.
pub const RULES: [Rule; 5] = [
    Rule::Momentum { momentum: 0.9 },
    Rule::Nesterov { momentum: 0.9 },
    Rule::RmsProp { rho: 0.9 },
    Rule::Adam { momentum: 0.9, rho: 0.999 },
    Rule::AdaDelta { rho: 0.95 },
];

/// Parameters with which a rule gets somewhere in place.
pub fn config(rule: Rule) -> Config {
    let step = match rule {
        Rule::Momentum { .. } | Rule::Nesterov { .. } => 0.005,
        Rule::RmsProp { .. } | Rule::Adam { .. } => 0.004,
        Rule::AdaDelta { .. } => 1.0,
    };
    Config { dims: 6, step, optimizer: Optimizer::ByCoordinate(rule), ..Config::default() }
}

/// Everything in one shard, so that what is visited when does not depend on what vertices remember.
fn in_one_block(config: &Config) -> Settings {
    let topology = Topology { l2_bytes: 1 << 30, ..Topology::synthetic(1, 1) };
    Settings { topology, ..made::settings(1, config.row_dims()) }
}

/// A row as the papers have it, in double precision, and what is remembered of each of its coordinates.
struct Row {
    values: Vec<f64>,
    remembered: Vec<[f64; 2]>,
    steps: i32,
}

impl Row {
    fn first(config: &Config, vertex: usize) -> Self {
        let mut row = vec![0.0; config.row_dims()];
        if vertex < USERS {
            config.init_user(1, vertex, &mut row);
        } else {
            config.init_item(1, vertex - USERS, &mut row);
        }
        Self { remembered: vec![[0.0; 2]; row.len()], values: row.into_iter().map(f64::from).collect(), steps: 0 }
    }

    fn step(&mut self, rule: Rule, step: f64, gradient: &[f64], one: usize) {
        self.steps += 1;
        for ((value, [a, b]), &g) in self.values.iter_mut().zip(&mut self.remembered).zip(gradient) {
            *value += match rule {
                Rule::Momentum { momentum } => {
                    *a = f64::from(momentum) * *a + step * g;
                    *a
                }
                // The published form: the parameters are moved back to where they were, and then by the new velocity and ahead.
                Rule::Nesterov { momentum } => {
                    let (momentum, before) = (f64::from(momentum), *a);
                    *a = momentum * before + step * g;
                    -momentum * before + (1.0 + momentum) * *a
                }
                Rule::RmsProp { rho } => {
                    let rho = f64::from(rho);
                    *a = rho * *a + (1.0 - rho) * g * g;
                    step * g / (a.sqrt() + 1e-8)
                }
                Rule::Adam { momentum, rho } => {
                    let (momentum, rho) = (f64::from(momentum), f64::from(rho));
                    *a = momentum * *a + (1.0 - momentum) * g;
                    *b = rho * *b + (1.0 - rho) * g * g;
                    let mean = *a / (1.0 - momentum.powi(self.steps));
                    let square = *b / (1.0 - rho.powi(self.steps));
                    step * mean / (square.sqrt() + 1e-8)
                }
                Rule::AdaDelta { rho } => {
                    let rho = f64::from(rho);
                    *a = rho * *a + (1.0 - rho) * g * g;
                    let along = g * (*b + 1e-6).sqrt() / (*a + 1e-6).sqrt();
                    *b = rho * *b + (1.0 - rho) * along * along;
                    step * along
                }
            };
        }
        self.values[one] = 1.0;
    }
}

/// Returns the negative half gradients of a rating.
fn gradients(config: &Config, rating: f32, p: &Row, q: &Row) -> [Vec<f64>; 2] {
    let error = f64::from(rating) - p.values.iter().zip(&q.values).map(|(p, q)| p * q).sum::<f64>();
    [(p, q), (q, p)].map(|(own, other)| {
        let each = own.values.iter().zip(&other.values);
        each.map(|(own, other)| error * other - f64::from(config.lambda) * own).collect()
    })
}

/// Trains by plain loops: rating by rating, or all of them together.
fn naive(list: &EdgeList<f32>, config: &Config, rule: Rule, iterations: u64, in_place: bool) -> Vec<Row> {
    let mut rows: Vec<Row> = (0..USERS + ITEMS).map(|vertex| Row::first(config, vertex)).collect();
    let one = |vertex: usize| if vertex < USERS { config.dims + 1 } else { config.dims };
    for iteration in 1..=iterations {
        let step = f64::from(config.step) / (1.0 + f64::from(config.decay) * (iteration - 1) as f64);
        let mut sums = vec![vec![0.0; config.row_dims()]; rows.len()];
        for n in 0..list.data.len() {
            let ends = [list.left[n] as usize, USERS + list.right[n] as usize];
            let found = gradients(config, list.data[n], &rows[ends[0]], &rows[ends[1]]);
            for (vertex, gradient) in ends.into_iter().zip(found) {
                if in_place {
                    rows[vertex].step(rule, step, &gradient, one(vertex));
                } else {
                    sums[vertex].iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g);
                }
            }
        }
        if !in_place {
            rows.iter_mut().zip(&sums).enumerate().for_each(|(n, (row, sum))| row.step(rule, step, sum, one(n)));
        }
    }
    rows
}

fn assert_near(found: &[Vec<f32>], expected: &[Row], what: &str) {
    for (vertex, (found, row)) in found.iter().zip(expected).enumerate() {
        for (a, b) in found.iter().zip(&row.values) {
            assert!((f64::from(*a) - b).abs() < 1e-5, "{what}, vertex {vertex}: {a}, expected {b}");
        }
    }
}

#[test]
fn batch_gradients_equal_a_naive_program() {
    let list = ratings(4000, 0.3, 6);
    for rule in RULES {
        let config = Config { step: if let Rule::AdaDelta { .. } = rule { 1.0 } else { 5e-4 }, ..config(rule) };
        let expected = naive(&list, &config, rule, 8, false);
        for workers in 1..=3 {
            let source = GroupedEdges::new(list.clone(), &[Side::Right]);
            let sequence = batch::sequence(config, list.data.len() as u64);
            let settings = made::settings(workers, config.row_dims());
            let mut engine: Engine<MfBatchByCoordinate> = factorization(&source, config, sequence, &settings);
            run(&mut engine, 8);
            assert_near(&factors(&engine), &expected, &format!("{workers} workers, {rule:?}"));
        }
    }
}

#[test]
fn steps_in_place_equal_a_naive_program() {
    let list = ratings(4000, 0.3, 6);
    for rule in RULES {
        let config = Config { step: if let Rule::AdaDelta { .. } = rule { 1.0 } else { 5e-4 }, ..config(rule) };
        let settings = in_one_block(&config);
        let visits = visited::<f32, _>(&list, &settings, |rating| *rating);
        let expected = naive(&visits, &config, rule, 2, true);
        let source = GroupedEdges::new(list.clone(), &[Side::Right]);
        let mut engine = factorization(&source, config, in_place::sequence(config, list.data.len() as u64), &settings);
        run(&mut engine, 2);
        assert_near(&factors(&engine), &expected, &format!("{rule:?}"));
    }
}

/// Factors and objectives of training in place.
fn train(list: &EdgeList<f32>, config: Config, settings: &Settings) -> (Vec<Vec<f32>>, Vec<f64>) {
    let source = GroupedEdges::new(list.clone(), &[Side::Right]);
    let mut engine = factorization(&source, config, in_place::sequence(config, list.data.len() as u64), settings);
    let mut objectives = Vec::new();
    watch(&mut engine, 30, |engine, _| {
        objectives.push(Objective::new(engine.total(SquaredErrors(config)).unwrap(), config.lambda).value);
    });
    (factors(&engine), objectives)
}

#[test]
fn two_runs_of_one_shape_are_bit_identical_and_shapes_agree_within_two_per_cent() {
    let list = ratings(20_000, 0.3, 4);
    for (again, rule) in [1, 2, 3].into_iter().cycle().zip(RULES) {
        let config = Config { dims: 8, ..config(rule) };
        let run = |workers| train(&list, config, &made::settings(workers, config.row_dims()));
        let runs = [1, 2, 3].map(run);
        let one = &runs[0].1;
        assert!(one[29] < 0.6 * one[0], "{rule:?} learns: {one:?}");
        assert_eq!(runs[again - 1].0, run(again).0, "{again} workers, {rule:?}");
        for (_, objectives) in &runs[1..] {
            let (end, expected) = (objectives[29], one[29]);
            assert!((end / expected - 1.0).abs() < 0.02, "{rule:?}: {end}, one worker {expected}");
        }
    }
}

#[test]
fn a_run_that_stops_goes_on_with_what_it_remembered() {
    for rule in [Rule::Momentum { momentum: 0.9 }, Rule::Adam { momentum: 0.9, rho: 0.999 }] {
        let config = config(rule);
        let settings = |workers| made::settings(workers, config.row_dims());
        let in_place =
            |workers| factorization(&made::noise(1), config, in_place::sequence(config, 6000), &settings(workers));
        goes_on(in_place, |engine| learned(engine), |_, _| {});
        let by_batch =
            |workers| factorization(&made::noise(1), config, batch::sequence(config, 1000), &settings(workers));
        goes_on(by_batch, |engine| learned_by_batch(engine), |_, _| {});
    }
}

/// Factors, and all that is remembered.
fn learned(engine: &Engine<MfByCoordinate>) -> Vec<u32> {
    let (left, right) = (engine.on(Left), engine.on(Right));
    let of_users = (0..left.len()).flat_map(|user| left.mirror(user).numbers());
    let remembered = of_users.chain((0..right.len()).flat_map(|item| right.mirror(item).numbers()));
    factors(engine).iter().flatten().chain(remembered).map(|number| number.to_bits()).collect()
}

fn learned_by_batch(engine: &Engine<MfBatchByCoordinate>) -> Vec<u32> {
    let (left, right) = (engine.on(Left), engine.on(Right));
    let of_users = (0..left.len()).flat_map(|user| left.master(user).numbers());
    let remembered = of_users.chain((0..right.len()).flat_map(|item| right.master(item).numbers()));
    factors(engine).iter().flatten().chain(remembered).map(|number| number.to_bits()).collect()
}
