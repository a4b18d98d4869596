//! Every command of the reference device against plain loops in double precision, written without a look at the
//! kernels.

use megagrid_geeps::device::{Command, Cpu, Device, DeviceRange, MatMul};
use megagrid_geeps::{Error, Index};
use proptest::collection::vec;
use proptest::prelude::*;

/// A device with some arrays on it.
struct Bench(Cpu);

impl Bench {
    fn new() -> Self {
        Self(Cpu::new())
    }

    fn with(&self, values: &[f32]) -> DeviceRange {
        let range = self.0.alloc(values.len()).expect("there is room");
        self.0.upload(range, values).expect("as many values");
        range
    }

    fn bits(&self, values: &[u32]) -> DeviceRange {
        self.with(&values.iter().map(|&value| f32::from_bits(value)).collect::<Vec<_>>())
    }

    fn run(&self, command: Command) {
        self.0.submit(&[command]).unwrap_or_else(|error| panic!("{error}"));
    }

    fn get(&self, range: DeviceRange) -> Vec<f32> {
        self.0.download(range).expect("it is there")
    }
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let room = 1e-5 * expected.abs().max(1.0);
        assert!((f64::from(found) - expected).abs() <= room, "value {at} is {found}; expected {expected}");
    }
}

fn number() -> impl Strategy<Value = f32> {
    (-1000_i32..=1000).prop_map(|thousandths| thousandths as f32 / 500.0)
}

/// A table of whole rows, and keys of rows in it.
fn table_and_keys() -> impl Strategy<Value = (usize, Vec<f32>, Vec<u32>)> {
    (1_usize..5, 1_usize..9)
        .prop_flat_map(|(width, rows)| (Just(width), vec(number(), width * rows), vec(0..rows as u32, 0..20)))
}

proptest! {
    #[test]
    fn gather_takes_the_row_of_each_key((width, table, keys) in table_and_keys()) {
        let bench = Bench::new();
        let to = bench.with(&vec![9.0; keys.len() * width]);
        let command = Command::Gather { table: bench.with(&table), keys: bench.bits(&keys), to, width };
        bench.run(command);
        let expected: Vec<f32> =
            keys.iter().flat_map(|&key| (0..width).map(move |j| key as usize * width + j)).map(|at| table[at]).collect();
        prop_assert_eq!(bench.get(to), expected);
    }

    #[test]
    fn scatter_add_adds_the_sum_of_a_keys_rows_in_the_order_of_the_batch((width, table, keys) in table_and_keys()) {
        let batch: Vec<f32> = (0..keys.len() * width).map(|at| 0.37 * at as f32 - 1.0).collect();
        let bench = Bench::new();
        let index = Index::new(keys.clone());
        let (held, on_device) = (bench.with(&table), bench.with(&index.values()));
        prop_assert_eq!(index.values().len(), index.len());
        let command =
            Command::ScatterAdd { from: bench.with(&batch), segments: index.segments_in(on_device), table: held, width };
        bench.run(command);
        // Single precision in the same order: the same bits.
        let mut sums = vec![0.0; table.len()];
        for (i, &key) in keys.iter().enumerate() {
            for j in 0..width {
                sums[key as usize * width + j] += batch[i * width + j];
            }
        }
        let expected: Vec<f32> = table.iter().zip(sums).map(|(value, sum)| value + sum).collect();
        prop_assert_eq!(bench.get(held), expected);
    }

    #[test]
    fn put_writes_rows_and_leaves_the_others((width, table, keys) in table_and_keys()) {
        let mut keys = keys;
        keys.sort_unstable();
        keys.dedup();
        let rows: Vec<f32> = (0..keys.len() * width).map(|at| at as f32).collect();
        let bench = Bench::new();
        let held = bench.with(&table);
        bench.run(Command::Put { from: bench.with(&rows), keys: bench.bits(&keys), table: held, width });
        let mut expected = table;
        for (i, &key) in keys.iter().enumerate() {
            for j in 0..width {
                expected[key as usize * width + j] = rows[i * width + j];
            }
        }
        prop_assert_eq!(bench.get(held), expected);
    }

    #[test]
    fn products_are_sums_of_products_however_matrices_are_stored(
        (m, n, k) in (0_usize..6, 0_usize..6, 0_usize..6),
        (transpose_a, transpose_b) in (any::<bool>(), any::<bool>()),
        alpha in number(),
        values in vec(number(), 72),
    ) {
        let (a, b) = (&values[..m * k], &values[36..36 + k * n]);
        let bench = Bench::new();
        let to = bench.with(&vec![7.0; m * n]);
        let product = MatMul { a: bench.with(a), b: bench.with(b), to, m, n, k, transpose_a, transpose_b, alpha };
        bench.run(Command::MatMul(product));
        let mut expected = vec![0.0; m * n];
        for i in 0..m {
            for j in 0..n {
                for l in 0..k {
                    let left = f64::from(if transpose_a { a[l * m + i] } else { a[i * k + l] });
                    let right = f64::from(if transpose_b { b[j * k + l] } else { b[l * n + j] });
                    expected[i * n + j] += f64::from(alpha) * left * right;
                }
            }
        }
        assert_close(&bench.get(to), &expected);
    }

    #[test]
    fn softmax_errors_are_the_derivatives_of_the_mean_loss(
        (classes, logits) in (1_usize..5).prop_flat_map(|classes| (Just(classes), vec(number(), classes * 3))),
        seeds in vec(any::<u32>(), 3),
    ) {
        let labels: Vec<u32> = seeds.iter().map(|seed| seed % classes as u32).collect();
        let bench = Bench::new();
        let (errors, losses) = (bench.with(&vec![0.0; classes * 3]), bench.with(&[0.0; 3]));
        let (on_device, held) = (bench.with(&logits), bench.bits(&labels));
        bench.run(Command::SoftmaxCrossEntropy { logits: on_device, labels: held, errors, losses });
        let loss = |logits: &[f64], i: usize| {
            let row = &logits[i * classes..(i + 1) * classes];
            row.iter().map(|x| x.exp()).sum::<f64>().ln() - row[labels[i] as usize]
        };
        let exact: Vec<f64> = logits.iter().map(|&x| f64::from(x)).collect();
        assert_close(&bench.get(losses), &(0..3).map(|i| loss(&exact, i)).collect::<Vec<_>>());
        let derivative = |at: usize| {
            let mean_loss = |by: f64| {
                let mut moved = exact.clone();
                moved[at] += by;
                (0..3).map(|i| loss(&moved, i)).sum::<f64>() / 3.0
            };
            (mean_loss(1e-5) - mean_loss(-1e-5)) / 2e-5
        };
        assert_close(&bench.get(errors), &(0..classes * 3).map(derivative).collect::<Vec<_>>());
    }

    #[test]
    fn factor_updates_go_down_the_gradient(
        (width, values) in (1_usize..5).prop_flat_map(|width| (Just(width), vec(number(), 4 * width + 2))),
        (step, lambda) in (number(), number()),
    ) {
        let (left, right, ratings) = (&values[..2 * width], &values[2 * width..4 * width], &values[4 * width..]);
        let bench = Bench::new();
        let [left_update, right_update] = [0, 1].map(|_| bench.with(&vec![0.0; 2 * width]));
        let losses = bench.with(&[0.0; 2]);
        let (on_left, on_right, held) = (bench.with(left), bench.with(right), bench.with(ratings));
        let command = Command::FactorUpdates {
            left: on_left, right: on_right, ratings: held, left_update, right_update, losses, step, lambda,
        };
        bench.run(command);
        let exact = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let (p, q, r, step, lambda) = (exact(left), exact(right), exact(ratings), f64::from(step), f64::from(lambda));
        let error = |i: usize| r[i] - (0..width).map(|j| p[i * width + j] * q[i * width + j]).sum::<f64>();
        let update = |to: &[f64], other: &[f64]| {
            (0..2 * width).map(|at| step * (error(at / width) * other[at] - lambda * to[at])).collect::<Vec<_>>()
        };
        assert_close(&bench.get(left_update), &update(&p, &q));
        assert_close(&bench.get(right_update), &update(&q, &p));
        assert_close(&bench.get(losses), &[error(0).powi(2), error(1).powi(2)]);
    }

    #[test]
    fn simple_commands_do_to_each_value_what_they_say(x in vec(number(), 12), y in vec(number(), 12), alpha in number()) {
        let bench = Bench::new();
        let exact = |of: &dyn Fn(f64, f64) -> f64| {
            x.iter().zip(&y).map(|(&x, &y)| of(f64::from(x), f64::from(y))).collect::<Vec<_>>()
        };
        let a = f64::from(alpha);

        let sum = bench.with(&y);
        bench.run(Command::Axpy { alpha, x: bench.with(&x), y: sum });
        assert_close(&bench.get(sum), &exact(&|x, y| y + a * x));

        let scaled = bench.with(&y);
        bench.run(Command::Scale { alpha, x: bench.with(&x), to: scaled });
        assert_close(&bench.get(scaled), &exact(&|x, _| a * x));

        let copied = bench.with(&y);
        bench.run(Command::Copy { from: bench.with(&x), to: copied });
        assert_close(&bench.get(copied), &exact(&|x, _| x));

        let filled = bench.with(&y);
        bench.run(Command::Fill { to: filled, value: alpha });
        assert_close(&bench.get(filled), &exact(&|_, _| a));

        let cut = bench.with(&x);
        bench.run(Command::Relu { to: cut });
        assert_close(&bench.get(cut), &exact(&|x, _| if x > 0.0 { x } else { 0.0 }));

        let masked = bench.with(&y);
        bench.run(Command::ReluGradient { activations: bench.with(&x), to: masked });
        assert_close(&bench.get(masked), &exact(&|x, y| if x > 0.0 { y } else { 0.0 }));

        let (squares, update) = (bench.with(&[0.5; 12]), bench.with(&x));
        bench.run(Command::AdaGrad { update, history: squares, step: 0.1, epsilon: 0.01 });
        assert_close(&bench.get(squares), &exact(&|x, _| 0.5 + x * x));
        assert_close(&bench.get(update), &exact(&|x, _| -0.1 * x / ((0.5 + x * x).sqrt() + 0.01)));

        let biased = bench.with(&y);
        bench.run(Command::AddBias { bias: bench.with(&x[..3]), to: biased });
        let expected: Vec<f64> = (0..12).map(|at| f64::from(y[at]) + f64::from(x[at % 3])).collect();
        assert_close(&bench.get(biased), &expected);

        let columns = bench.with(&[5.0; 3]);
        bench.run(Command::SumRows { from: bench.with(&x), to: columns, alpha });
        let column = |j: usize| a * (0..4).map(|i| f64::from(x[3 * i + j])).sum::<f64>();
        assert_close(&bench.get(columns), &[0, 1, 2].map(column));
    }

    /// An index has each place of the batch once, under its key.
    #[test]
    fn an_index_sorts_the_places_of_a_batch_by_key(keys in vec(0_u32..12, 0..40)) {
        let index = Index::new(keys.clone());
        let [targets, starts, order] = index.segments();
        prop_assert!(targets.windows(2).all(|pair| pair[0] < pair[1]));
        let mut places = vec![None; keys.len()];
        for (s, &target) in targets.iter().enumerate() {
            let segment = &order[starts[s] as usize..starts[s + 1] as usize];
            prop_assert!(!segment.is_empty() && segment.windows(2).all(|pair| pair[0] < pair[1]));
            segment.iter().for_each(|&at| places[at as usize] = Some(target));
        }
        prop_assert_eq!(places, keys.into_iter().map(Some).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_no_number_stays_so() {
    let bench = Bench::new();
    let cut = bench.with(&[f32::NAN, -1.0]);
    bench.run(Command::Relu { to: cut });
    let found = bench.get(cut);
    assert!(found[0].is_nan());
    assert_eq!(found[1], 0.0);
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    let bench = Bench::new();
    let (two, three) = (bench.with(&[0.0; 2]), bench.with(&[0.0; 3]));
    let error = bench.0.submit(&[Command::Copy { from: two, to: three }]).expect_err("lengths differ");
    assert_eq!(error.to_string(), "command copy: to has 3 values; expected 2");
    let error = bench.0.upload(two, &[0.0; 3]).expect_err("lengths differ");
    assert_eq!(error.to_string(), "command upload: 3 values for a range of 2");
}

#[test]
fn ranges_that_overlap_or_are_not_there_are_refused() {
    let bench = Bench::new();
    let all = bench.with(&[0.0; 4]);
    let overlap = Command::Copy { from: all.part(0, 3), to: all.part(1, 3) };
    assert!(matches!(bench.0.submit(&[overlap]), Err(Error::Command { command: "copy", .. })));
    let nowhere = DeviceRange { buffer: 7, start: 0, len: 1 };
    let beyond = DeviceRange { start: 64, ..all };
    for range in [nowhere, beyond] {
        let error = bench.0.download(range).expect_err("it is not there");
        assert_eq!(error.to_string(), "command download: a range goes beyond the memory that was taken");
    }
}
