//! The GPU against the reference device, and against itself. Where wgpu finds anything invalid, calls fail.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use megagrid_geeps::apps::Application;
use megagrid_geeps::apps::network::Optimizer;
use megagrid_geeps::device::{Command, Cpu, Device, DeviceRange, MatMul};
use megagrid_geeps::gpu::{Gpu, STAGING_BYTES};
use megagrid_geeps::run::{Epoch, Run};
use megagrid_geeps::{Error, Index};
use megagrid_partition::SplitMix;
use proptest::prelude::*;

use crate::data::{RUN, bits, factorization, network, trained, try_train_on};
use crate::training::{budgets, bytes_are_as_planned, ends_where_the_loss_is_no_number, four_times_the_budget};

/// One for the tests of single commands.
fn shared() -> &'static Gpu {
    static GPU: OnceLock<Gpu> = OnceLock::new();
    GPU.get_or_init(|| Gpu::new().unwrap_or_else(|error| panic!("{error}")))
}

/// One that binds so little that values and tables are gone through in parts.
fn narrow() -> &'static Gpu {
    static GPU: OnceLock<Gpu> = OnceLock::new();
    GPU.get_or_init(|| {
        Gpu::with_binding_limit(NonZero::new(64).expect("it is not 0")).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Values that both devices have room for.
const ROOM: usize = 40_000;

/// Values side by side on both devices, at places that are no multiples of anything.
struct Twins {
    gpu: &'static Gpu,
    all: DeviceRange,
    values: Vec<f32>,
    random: SplitMix,
}

impl Twins {
    fn new(gpu: &'static Gpu, seed: u64) -> Self {
        let all = gpu.alloc(ROOM).expect("there is room");
        Self { gpu, all, values: vec![0.5; 3], random: SplitMix::new(seed, 0) }
    }

    fn with(&mut self, values: &[f32]) -> DeviceRange {
        let range = self.all.part(self.values.len(), values.len());
        self.values.extend_from_slice(values);
        self.values.push(0.25);
        range
    }

    fn some(&mut self, len: usize) -> DeviceRange {
        let values: Vec<f32> = (0..len).map(|_| (self.random.unit() * 4.0 - 2.0) as f32).collect();
        self.with(&values)
    }

    fn bits(&mut self, values: &[u32]) -> DeviceRange {
        self.with(&values.iter().map(|&value| f32::from_bits(value)).collect::<Vec<_>>())
    }

    fn keys(&mut self, len: usize, rows: usize) -> Vec<u32> {
        (0..len).map(|_| self.random.below(rows as u64) as u32).collect()
    }

    /// Runs a command on both. What it writes is then close, and all else has the same bits: indices do, which are so small as
    /// numbers that all of them would be close.
    #[track_caller]
    fn agree(&self, command: Command) {
        let cpu = Cpu::new();
        // The same number of the buffer on both.
        (0..self.all.buffer).for_each(|_| drop(cpu.alloc(1)));
        assert_eq!(cpu.alloc(ROOM).expect("there is room"), self.all);
        let [expected, found] = [&cpu as &dyn Device, self.gpu].map(|device| {
            let values = self.all.part(0, self.values.len());
            device.upload(values, &self.values).expect("as many values");
            device.submit(&[command]).unwrap_or_else(|error| panic!("{command:?}: {error}"));
            device.download(values).unwrap_or_else(|error| panic!("{command:?}: {error}"))
        });
        let written = command.written();
        let is_written = |at: usize| written.iter().any(|range| range.overlaps(self.all.part(at, 1)));
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let is_close = is_written(at) && (found - expected).abs() <= 1e-5 * expected.abs().max(1.0);
            let is_same = found.to_bits() == expected.to_bits();
            assert!(is_close || is_same, "{command:?}: value {at} is {found}; expected {expected}");
        }
    }
}

/// Commands whose ranges are gone through in parts where the device binds less.
fn commands_by_parts(gpu: &'static Gpu, seed: u64, len: usize, width: usize, rows: usize) {
    let twins = || Twins::new(gpu, seed);
    let mut both = twins();
    let to = both.some(len);
    both.agree(Command::Fill { to, value: 0.7 });
    both.agree(Command::Relu { to });

    let mut both = twins();
    let (x, y) = (both.some(len), both.some(len));
    both.agree(Command::Copy { from: x, to: y });
    both.agree(Command::Axpy { alpha: -0.3, x, y });
    both.agree(Command::Scale { alpha: -0.3, x, to: y });
    both.agree(Command::ReluGradient { activations: x, to: y });

    let mut both = twins();
    let (update, squares) = (both.some(len), vec![0.6; len]);
    let history = both.with(&squares);
    both.agree(Command::AdaGrad { update, history, step: 0.1, epsilon: 1e-3 });

    // Batches small enough to be bound at once.
    let places = 64 / width;
    let mut both = twins();
    let (table, keys) = (both.some(rows * width), both.keys(places, rows));
    let (from, on_device) = (both.some(places * width), both.bits(&keys));
    both.agree(Command::Gather { table, keys: on_device, to: from, width });

    let mut once = keys.clone();
    once.sort_unstable();
    once.dedup();
    let on_device = both.bits(&once);
    both.agree(Command::Put { from: from.part(0, once.len() * width), keys: on_device, table, width });

    let index = Index::new(keys);
    let on_device = both.with(&index.values());
    both.agree(Command::ScatterAdd { from, segments: index.segments_in(on_device), table, width });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn commands_do_what_they_do_on_the_reference_device(
        seed in any::<u64>(), len in 0_usize..300, width in 1_usize..9, rows in 1_usize..40,
    ) {
        commands_by_parts(shared(), seed, len, width, rows);
    }

    #[test]
    fn commands_do_the_same_where_ranges_are_bound_in_parts(
        seed in any::<u64>(), len in 0_usize..300, width in 1_usize..9, rows in 1_usize..40,
    ) {
        commands_by_parts(narrow(), seed, len, width, rows);
    }

    #[test]
    fn products_are_those_of_the_reference_device(
        seed in any::<u64>(),
        (m, n, k) in (0_usize..40, 0_usize..40, 0_usize..70),
        (transpose_a, transpose_b) in (any::<bool>(), any::<bool>()),
    ) {
        let mut both = Twins::new(shared(), seed);
        let (a, b, to) = (both.some(m * k), both.some(k * n), both.some(m * n));
        both.agree(Command::MatMul(MatMul { a, b, to, m, n, k, transpose_a, transpose_b, alpha: 0.1 }));
    }

    #[test]
    fn rows_are_summed_and_added_as_on_the_reference_device(
        seed in any::<u64>(), rows in 0_usize..40, width in 1_usize..150,
    ) {
        let mut both = Twins::new(shared(), seed);
        let (of_row, all) = (both.some(width), both.some(rows * width));
        both.agree(Command::AddBias { bias: of_row, to: all });
        both.agree(Command::SumRows { from: all, to: of_row, alpha: 0.1 });
    }

    #[test]
    fn losses_and_errors_are_those_of_the_reference_device(
        seed in any::<u64>(), rows in 0_usize..150, width in 1_usize..40,
    ) {
        let mut both = Twins::new(shared(), seed);
        let labels = both.keys(rows, width);
        let (logits, labels) = (both.some(rows * width), both.bits(&labels));
        let (errors, losses) = (both.some(rows * width), both.some(rows));
        both.agree(Command::SoftmaxCrossEntropy { logits, labels, errors, losses });

        let mut both = Twins::new(shared(), seed);
        let [left, right, left_update, right_update] = [(); 4].map(|()| both.some(rows * width));
        let (ratings, losses) = (both.some(rows), both.some(rows));
        let (step, lambda) = (0.02, 0.05);
        both.agree(Command::FactorUpdates {
            left, right, ratings, left_update, right_update, losses, step, lambda,
        });
    }
}

/// More values than there are threads in one line of workgroups.
#[test]
fn long_ranges_take_several_lines_of_workgroups() {
    let gpu = shared();
    let len = 65535 * 64 + 1000;
    let [from, to] = [(); 2].map(|()| gpu.alloc(len).expect("there is room"));
    // Whole numbers that `f32` has, no two alike.
    let values: Vec<f32> = (0..len).map(|value| value as f32).collect();
    gpu.upload(from, &values).expect("as many values");
    gpu.submit(&[Command::Copy { from, to }, Command::Scale { alpha: 2.0, x: to, to: from }]).expect("in order");
    assert!(gpu.download(to).expect("it is there") == values);
    let doubled: Vec<f32> = values.iter().map(|value| 2.0 * value).collect();
    assert!(gpu.download(from).expect("it is there") == doubled);
}

#[test]
fn a_wait_takes_uploads_with_it() {
    let gpu = shared();
    let range = gpu.alloc(100).expect("there is room");
    gpu.upload(range, &[7.0; 100]).expect("as many values");
    gpu.wait().expect("nothing is lost");
    assert_eq!(gpu.download(range).expect("it is there"), [7.0; 100]);
}

pub fn on_gpu(_: usize) -> Result<Arc<dyn Device>, Error> {
    Ok(Arc::new(Gpu::new()?))
}

fn training_is_the_same_at_any_budget(application: &impl Application, workers: usize) {
    let run = Run { workers, ..RUN };
    let losses = |epochs: &[Epoch]| epochs.iter().map(|epoch| epoch.loss.to_bits()).collect::<Vec<_>>();
    let (pinned, epochs) = try_train_on(application, run, on_gpu).unwrap_or_else(|error| panic!("{error}"));
    for budget in budgets(application, workers) {
        let budget = budget + STAGING_BYTES;
        for prefetch in [true, false] {
            let run = Run { budget, prefetch, ..run };
            let (found, again) = try_train_on(application, run, on_gpu).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(bits(&found), bits(&pinned), "budget {budget}, prefetch {prefetch}");
            assert_eq!(losses(&again), losses(&epochs), "budget {budget}, prefetch {prefetch}");
            let resident = &found.resident_bytes;
            assert!(resident.iter().all(|&bytes| STAGING_BYTES < bytes && bytes <= budget), "{resident:?}");
        }
    }
    let (reference, expected) = trained(application, run);
    for (found, expected) in epochs.iter().zip(&expected) {
        let (found, expected) = (found.loss, expected.loss);
        assert!((found - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{found}; expected {expected}");
    }
    for (found, expected) in pinned.values.iter().flatten().zip(reference.values.iter().flatten()) {
        assert!((found - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{found}; expected {expected}");
    }
}

#[test]
fn a_network_is_the_same_at_any_budget() {
    training_is_the_same_at_any_budget(&network(1, Optimizer::Sgd), 1);
}

#[test]
fn local_data_that_last_are_the_same_at_any_budget() {
    training_is_the_same_at_any_budget(&network(2, Optimizer::AdaGrad), 2);
    training_is_the_same_at_any_budget(&network(2, Optimizer::Momentum { momentum: 0.9 }), 2);
}

#[test]
fn factors_are_the_same_at_any_budget() {
    training_is_the_same_at_any_budget(&factorization(2), 2);
}

#[test]
fn bytes_that_move_are_those_of_the_plan() {
    bytes_are_as_planned(on_gpu, &network(3, Optimizer::AdaGrad), 3);
    bytes_are_as_planned(on_gpu, &factorization(2), 2);
}

#[test]
fn a_model_of_four_times_the_budget_trains() {
    four_times_the_budget(on_gpu);
}

#[test]
fn a_loss_that_is_no_number_ends_the_run() {
    ends_where_the_loss_is_no_number(on_gpu);
}

/// A GPU that is lost at some submit.
#[derive(Debug)]
struct Dying {
    gpu: Gpu,
    submits: AtomicUsize,
}

impl Device for Dying {
    fn alloc(&self, len: usize) -> Result<DeviceRange, Error> {
        self.gpu.alloc(len)
    }

    fn upload(&self, to: DeviceRange, values: &[f32]) -> Result<(), Error> {
        self.gpu.upload(to, values)
    }

    fn download(&self, from: DeviceRange) -> Result<Vec<f32>, Error> {
        self.gpu.download(from)
    }

    fn submit(&self, commands: &[Command]) -> Result<(), Error> {
        if self.submits.fetch_add(1, Ordering::Relaxed) == 40 {
            self.gpu.lose();
        }
        self.gpu.submit(commands)
    }

    fn wait(&self) -> Result<(), Error> {
        self.gpu.wait()
    }
}

#[test]
fn a_device_that_is_lost_ends_the_run_of_all_workers() {
    let device = |worker| -> Result<Arc<dyn Device>, Error> {
        let gpu = Gpu::new()?;
        // Only one of them is.
        let submits = AtomicUsize::new(if worker == 1 { 0 } else { 1000 });
        Ok(Arc::new(Dying { gpu, submits }))
    };
    let application = network(2, Optimizer::Sgd);
    let error =
        try_train_on(&application, Run { workers: 2, epochs: 50, ..RUN }, device).expect_err("a device is lost");
    assert_eq!(error, Error::DeviceLost { reason: "it was given up".to_owned() });
    assert_eq!(error.to_string(), "the device is lost (it was given up); what was written before is good");
}

#[test]
fn nothing_panics_on_a_device_that_is_lost() {
    let gpu = Gpu::new().unwrap_or_else(|error| panic!("{error}"));
    let range = gpu.alloc(10).expect("there is room");
    gpu.lose();
    let lost = |result: Result<(), Error>| assert!(matches!(result, Err(Error::DeviceLost { .. })), "{result:?}");
    lost(gpu.alloc(10).map(drop));
    lost(gpu.upload(range, &[0.0; 10]));
    lost(gpu.submit(&[Command::Fill { to: range, value: 1.0 }]));
    lost(gpu.download(range).map(drop));
    lost(gpu.wait());
}

#[test]
fn what_does_not_fit_is_refused() {
    let gpu = shared();
    let all = gpu.alloc(100).expect("there is room");
    let overlap = Command::Copy { from: all.part(0, 3), to: all.part(1, 3) };
    assert!(matches!(gpu.submit(&[overlap]), Err(Error::Command { command: "copy", .. })));
    assert!(matches!(gpu.upload(all, &[0.0; 3]), Err(Error::Command { command: "upload", .. })));
    let nowhere = DeviceRange { buffer: u32::MAX, ..all };
    for range in [nowhere, DeviceRange { start: 64, ..all }] {
        let error = gpu.download(range).expect_err("it is not there");
        assert_eq!(error.to_string(), "command download: a range goes beyond the memory that was taken");
    }
    let error = gpu.alloc(1 << 60).expect_err("no device has it").to_string();
    assert!(
        error.starts_with("the device has no room for 4611686018427387904 bytes more, of which it gives "),
        "{error}"
    );
    // None of it does harm.
    assert_eq!(gpu.download(all).expect("it is there"), [0.0; 100]);
}

#[test]
fn what_has_to_be_bound_at_once_says_so() {
    let gpu = narrow();
    let all = gpu.alloc(200).expect("there is room");
    let command = Command::SumRows { from: all.part(0, 100), to: all.part(100, 10), alpha: 1.0 };
    assert_eq!(
        gpu.submit(&[command]).expect_err("it is more than 64").to_string(),
        "command sum rows: a range of 100 values, where the device binds 64 at a time; take a smaller --batch or narrower layers"
    );
}
