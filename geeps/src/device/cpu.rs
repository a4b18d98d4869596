//! The reference device: the host's own memory and one thread at a time, with the same bits every time.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use megagrid_partition::parallel::lock;

use super::{Command, Device, DeviceRange, MatMul, Segments, VALUE_BYTES, kernels, padded};
use crate::{Error, rows};

/// The device. Commands are done when [`Device::submit`] returns.
#[derive(Debug, Default)]
pub struct Cpu(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    values: Vec<f32>,
    /// Where each allocation begins.
    buffers: Vec<usize>,
}

impl Cpu {
    /// Makes one without memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // A command that panics leaves values, not a structure, half written, and its thread ends the run.
        lock(&self.0)
    }
}

impl Device for Cpu {
    fn alloc(&self, len: usize) -> Result<DeviceRange, Error> {
        let mut memory = self.memory();
        let start = memory.values.len();
        let more = padded(len);
        memory.values.try_reserve_exact(more).map_err(|_| {
            let bytes = (more as u64).saturating_mul(VALUE_BYTES);
            Error::DeviceMemory { bytes, most: "as the host's memory is all that it has".to_owned() }
        })?;
        memory.values.resize(start + more, 0.0);
        memory.buffers.push(start);
        Ok(DeviceRange { buffer: memory.buffers.len() as u32 - 1, start: 0, len })
    }

    fn upload(&self, to: DeviceRange, values: &[f32]) -> Result<(), Error> {
        if values.len() != to.len {
            let problem = format!("{} values for a range of {}", values.len(), to.len);
            return Err(Error::Command { command: "upload", problem });
        }
        let mut memory = self.memory();
        let [to] = memory.parts("upload", [to])?;
        to.copy_from_slice(values);
        Ok(())
    }

    fn download(&self, from: DeviceRange) -> Result<Vec<f32>, Error> {
        let mut memory = self.memory();
        let [from] = memory.parts("download", [from])?;
        Ok(from.to_vec())
    }

    fn submit(&self, commands: &[Command]) -> Result<(), Error> {
        let mut memory = self.memory();
        commands.iter().try_for_each(|command| command.check().and_then(|()| memory.run(command)))
    }

    fn wait(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl Memory {
    /// Returns where a range is, if the device has it.
    fn place(&self, range: DeviceRange) -> Option<Range<usize>> {
        let buffer = range.buffer as usize;
        let begin = *self.buffers.get(buffer)?;
        let end = self.buffers.get(buffer + 1).copied().unwrap_or(self.values.len());
        let place = begin + range.start..begin + range.start + range.len;
        (place.end <= end).then_some(place)
    }

    /// Returns the values of ranges that have none in common.
    fn parts<const N: usize>(
        &mut self,
        command: &'static str,
        ranges: [DeviceRange; N],
    ) -> Result<[&mut [f32]; N], Error> {
        let refused = |problem: &str| Error::Command { command, problem: problem.to_owned() };
        let places = ranges.map(|range| self.place(range));
        if places.iter().any(Option::is_none) {
            return Err(refused("a range goes beyond the memory that was taken"));
        }
        let places = places.map(Option::unwrap_or_default);
        self.values.get_disjoint_mut(places).map_err(|_| refused("ranges overlap"))
    }

    fn run(&mut self, command: &Command) -> Result<(), Error> {
        let name = command.name();
        match *command {
            Command::Fill { to, value } => {
                let [to] = self.parts(name, [to])?;
                to.fill(value);
            }
            Command::Copy { from, to } => {
                let [from, to] = self.parts(name, [from, to])?;
                to.copy_from_slice(from);
            }
            Command::Gather { table, keys, to, width } => {
                let [table, keys, to] = self.parts(name, [table, keys, to])?;
                kernels::gather(table, kernels::indices(keys), to, width);
            }
            Command::Put { from, keys, table, width } => {
                let [from, keys, table] = self.parts(name, [from, keys, table])?;
                kernels::put(from, kernels::indices(keys), table, width);
            }
            Command::ScatterAdd { from, segments: Segments { targets, starts, rows }, table, width } => {
                let [from, targets, starts, rows, table] = self.parts(name, [from, targets, starts, rows, table])?;
                let segments = [targets, starts, rows].map(|part| kernels::indices(part));
                rows::scatter_add(from, segments, table, width);
            }
            Command::Axpy { alpha, x, y } => {
                let [x, y] = self.parts(name, [x, y])?;
                kernels::axpy(alpha, x, y);
            }
            Command::Scale { alpha, x, to } => {
                let [x, to] = self.parts(name, [x, to])?;
                kernels::scale(alpha, x, to);
            }
            Command::AdaGrad { update, history, step, epsilon } => {
                let [update, history] = self.parts(name, [update, history])?;
                kernels::adagrad(update, history, step, epsilon);
            }
            Command::MatMul(of @ MatMul { a, b, to, .. }) => {
                let [a, b, to] = self.parts(name, [a, b, to])?;
                kernels::mat_mul(a, b, to, &of);
            }
            Command::AddBias { bias, to } => {
                let [bias, to] = self.parts(name, [bias, to])?;
                kernels::add_bias(bias, to);
            }
            Command::SumRows { from, to, alpha } => {
                let [from, to] = self.parts(name, [from, to])?;
                kernels::sum_rows(from, to, alpha);
            }
            Command::Relu { to } => {
                let [to] = self.parts(name, [to])?;
                kernels::relu(to);
            }
            Command::ReluGradient { activations, to } => {
                let [activations, to] = self.parts(name, [activations, to])?;
                kernels::relu_gradient(activations, to);
            }
            Command::SoftmaxCrossEntropy { logits, labels, errors, losses } => {
                let [logits, labels, errors, losses] = self.parts(name, [logits, labels, errors, losses])?;
                kernels::softmax_cross_entropy(logits, kernels::indices(labels), errors, losses);
            }
            Command::FactorUpdates { left, right, ratings, left_update, right_update, losses, step, lambda } => {
                let ranges = [left, right, ratings, left_update, right_update, losses];
                let [left, right, ratings, to_left, to_right, losses] = self.parts(name, ranges)?;
                kernels::factor_updates([left, right], ratings, [to_left, to_right], losses, step, lambda);
            }
        }
        Ok(())
    }
}
