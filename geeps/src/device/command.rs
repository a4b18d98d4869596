//! What a device can do, as values.

use super::range::{DeviceRange, VALUE_BYTES};
use crate::Error;

/// Rows of a batch by the rows of a table that they go to, so that one thread owns a row of the table and adds to it
/// in the order of the batch: no atomics, and the same bits every time. All three ranges hold `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Rows of the table, each once: `[d]`.
    pub targets: DeviceRange,
    /// Where in `rows` each target's begin, and where the last one's end: `[d + 1]`.
    pub starts: DeviceRange,
    /// Rows of the batch, target by target.
    pub rows: DeviceRange,
}

/// `to = alpha · A · B`, where A is `m × k`, B is `k × n`, both row by row, or stored transposed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatMul {
    /// A.
    pub a: DeviceRange,
    /// B.
    pub b: DeviceRange,
    /// The product, `m × n`.
    pub to: DeviceRange,
    /// Rows of A.
    pub m: usize,
    /// Columns of B.
    pub n: usize,
    /// Columns of A, over which is summed in ascending order.
    pub k: usize,
    /// A is stored `k × m`.
    pub transpose_a: bool,
    /// B is stored `n × k`.
    pub transpose_b: bool,
    /// The factor.
    pub alpha: f32,
}

/// A command. Rows are `width` values; matrices lie row by row. What a command writes overlaps nothing else that it
/// names.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "each command says what its fields are")]
pub enum Command {
    /// `to = value`.
    Fill { to: DeviceRange, value: f32 },
    /// `to = from`.
    Copy { from: DeviceRange, to: DeviceRange },
    /// `to[i] = table[keys[i]]`, row by row.
    Gather { table: DeviceRange, keys: DeviceRange, to: DeviceRange, width: usize },
    /// `table[keys[i]] = from[i]`, row by row; keys are different.
    Put { from: DeviceRange, keys: DeviceRange, table: DeviceRange, width: usize },
    /// `table[targets[s]] += Σ from[i]` for the rows i of each segment s, summed one after the other.
    ScatterAdd { from: DeviceRange, segments: Segments, table: DeviceRange, width: usize },
    /// `y += alpha · x`.
    Axpy { alpha: f32, x: DeviceRange, y: DeviceRange },
    /// `to = alpha · x`: the update of stochastic gradient descent, with alpha the step below 0.
    Scale { alpha: f32, x: DeviceRange, to: DeviceRange },
    /// Makes an update of a gradient g: `history += g²`, `-step · g / (√history + epsilon)` (Duchi et al., 2011).
    AdaGrad { update: DeviceRange, history: DeviceRange, step: f32, epsilon: f32 },
    /// A product of matrices.
    MatMul(MatMul),
    /// Adds `bias` to every row of `to`.
    AddBias { bias: DeviceRange, to: DeviceRange },
    /// `to = alpha · ` the sum of the rows of `from`, which are as long as `to`.
    SumRows { from: DeviceRange, to: DeviceRange, alpha: f32 },
    /// `to = max(to, 0)`.
    Relu { to: DeviceRange },
    /// `to = 0` where the activation, what [`Command::Relu`] left, is not above 0.
    ReluGradient { activations: DeviceRange, to: DeviceRange },
    /// Of each row of logits: `errors = (softmax − indicator of the label) / rows`, `losses = −ln softmax[label]`.
    SoftmaxCrossEntropy { logits: DeviceRange, labels: DeviceRange, errors: DeviceRange, losses: DeviceRange },
    /// Of each rating r with factors p and q, rows of `width`: e = r − p·q, `left_update = step (e q − lambda p)`,
    /// `right_update = step (e p − lambda q)`, `losses = e²`.
    FactorUpdates {
        left: DeviceRange,
        right: DeviceRange,
        ratings: DeviceRange,
        left_update: DeviceRange,
        right_update: DeviceRange,
        losses: DeviceRange,
        step: f32,
        lambda: f32,
    },
}

impl Command {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fill { .. } => "fill",
            Self::Copy { .. } => "copy",
            Self::Gather { .. } => "gather",
            Self::Put { .. } => "put",
            Self::ScatterAdd { .. } => "scatter-add",
            Self::Axpy { .. } => "axpy",
            Self::Scale { .. } => "scale",
            Self::AdaGrad { .. } => "adagrad",
            Self::MatMul(_) => "matrix product",
            Self::AddBias { .. } => "add bias",
            Self::SumRows { .. } => "sum rows",
            Self::Relu { .. } => "relu",
            Self::ReluGradient { .. } => "relu gradient",
            Self::SoftmaxCrossEntropy { .. } => "softmax cross-entropy",
            Self::FactorUpdates { .. } => "factor updates",
        }
    }

    /// Returns the ranges that it reads or writes.
    #[must_use]
    pub fn ranges(&self) -> Vec<DeviceRange> {
        match *self {
            Self::Fill { to, .. } | Self::Relu { to } => vec![to],
            Self::Copy { from, to } | Self::SumRows { from, to, .. } => vec![from, to],
            Self::Gather { table, keys, to, .. } => vec![table, keys, to],
            Self::Put { from, keys, table, .. } => vec![from, keys, table],
            Self::ScatterAdd { from, segments, table, .. } => {
                vec![from, segments.targets, segments.starts, segments.rows, table]
            }
            Self::Axpy { x, y, .. } => vec![x, y],
            Self::Scale { x, to, .. } => vec![x, to],
            Self::AdaGrad { update, history, .. } => vec![update, history],
            Self::MatMul(MatMul { a, b, to, .. }) => vec![a, b, to],
            Self::AddBias { bias, to } => vec![bias, to],
            Self::ReluGradient { activations, to } => vec![activations, to],
            Self::SoftmaxCrossEntropy { logits, labels, errors, losses } => vec![logits, labels, errors, losses],
            Self::FactorUpdates { left, right, ratings, left_update, right_update, losses, .. } => {
                vec![left, right, ratings, left_update, right_update, losses]
            }
        }
    }

    /// Returns the ranges that it writes.
    #[must_use]
    pub fn written(&self) -> Vec<DeviceRange> {
        match *self {
            Self::Fill { to, .. }
            | Self::Copy { to, .. }
            | Self::Gather { to, .. }
            | Self::Scale { to, .. }
            | Self::MatMul(MatMul { to, .. })
            | Self::AddBias { to, .. }
            | Self::SumRows { to, .. }
            | Self::Relu { to }
            | Self::ReluGradient { to, .. } => vec![to],
            Self::Put { table, .. } | Self::ScatterAdd { table, .. } => vec![table],
            Self::Axpy { y, .. } => vec![y],
            Self::AdaGrad { update, history, .. } => vec![update, history],
            Self::SoftmaxCrossEntropy { errors, losses, .. } => vec![errors, losses],
            Self::FactorUpdates { left_update, right_update, losses, .. } => vec![left_update, right_update, losses],
        }
    }

    /// Returns how many values of the ranges that it writes it reads first: those that it works on in place.
    fn in_place(&self) -> usize {
        match *self {
            Self::Axpy { y: to, .. } | Self::AddBias { to, .. } | Self::Relu { to } => to.len,
            Self::ScatterAdd { table, .. } => table.len,
            Self::AdaGrad { update, history, .. } => update.len + history.len,
            _ => 0,
        }
    }

    /// Returns the multiplications and additions, and the bytes that are read and written: what its time depends on.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let values: usize = self.ranges().iter().map(|range| range.len).sum();
        let moved = (values + self.in_place()) as u64;
        let operations = match *self {
            Self::MatMul(MatMul { m, n, k, .. }) => 2 * m as u64 * n as u64 * k as u64,
            Self::FactorUpdates { left, .. } => 8 * left.len as u64,
            _ => values as u64,
        };
        Cost { operations, bytes: moved * VALUE_BYTES }
    }

    /// Checks that lengths fit each other.
    ///
    /// # Errors
    /// Where they do not.
    pub fn check(&self) -> Result<(), Error> {
        let fits = |pairs: &[(&str, usize, usize)]| match pairs.iter().find(|(_, found, expected)| found != expected) {
            Some((what, found, expected)) => {
                let problem = format!("{what} has {found} values; expected {expected}");
                Err(Error::Command { command: self.name(), problem })
            }
            None => Ok(()),
        };
        let row = match *self {
            Self::Gather { width, .. } | Self::Put { width, .. } | Self::ScatterAdd { width, .. } => width,
            Self::AddBias { bias: row, .. } | Self::SumRows { to: row, .. } => row.len,
            _ => 1,
        };
        if row == 0 {
            let problem = "rows have no values; expected 1 or more".to_owned();
            return Err(Error::Command { command: self.name(), problem });
        }
        match *self {
            Self::Fill { .. } | Self::Relu { .. } => Ok(()),
            Self::Copy { from, to } => fits(&[("to", to.len, from.len)]),
            Self::Gather { table, keys, to, width } => {
                fits(&[("table beyond its last whole row", table.len % width, 0), ("to", to.len, keys.len * width)])
            }
            Self::Put { from, keys, table, width } => {
                fits(&[("table beyond its last whole row", table.len % width, 0), ("from", from.len, keys.len * width)])
            }
            Self::ScatterAdd { from, segments: Segments { targets, starts, rows }, table, width } => fits(&[
                ("table beyond its last whole row", table.len % width, 0),
                ("from", from.len, rows.len * width),
                ("starts", starts.len, targets.len + 1),
            ]),
            Self::Axpy { x, y, .. } => fits(&[("y", y.len, x.len)]),
            Self::Scale { x, to, .. } => fits(&[("to", to.len, x.len)]),
            Self::AdaGrad { update, history, .. } => fits(&[("history", history.len, update.len)]),
            Self::MatMul(MatMul { a, b, to, m, n, k, .. }) => {
                fits(&[("a", a.len, m * k), ("b", b.len, k * n), ("to", to.len, m * n)])
            }
            Self::AddBias { bias, to } => fits(&[("to beyond its last whole row", to.len % bias.len, 0)]),
            Self::SumRows { from, to, .. } => fits(&[("from beyond its last whole row", from.len % to.len, 0)]),
            Self::ReluGradient { activations, to } => fits(&[("to", to.len, activations.len)]),
            Self::SoftmaxCrossEntropy { logits, labels, errors, losses } => fits(&[
                ("logits beyond their last whole row", logits.len % labels.len.max(1), 0),
                ("errors", errors.len, logits.len),
                ("losses", losses.len, labels.len),
            ]),
            Self::FactorUpdates { left, right, ratings, left_update, right_update, losses, .. } => fits(&[
                ("left beyond its last whole row", left.len % ratings.len.max(1), 0),
                ("right", right.len, left.len),
                ("left_update", left_update.len, left.len),
                ("right_update", right_update.len, left.len),
                ("losses", losses.len, ratings.len),
            ]),
        }
    }
}

/// What a command costs on any device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Multiplications and additions.
    pub operations: u64,
    /// Bytes of device memory that are read or written.
    pub bytes: u64,
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, more: Self) {
        self.operations += more.operations;
        self.bytes += more.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes are counted by hand: what is worked on in place is read and written.
    #[test]
    fn bytes_are_those_that_are_read_and_those_that_are_written() {
        let range = |buffer: u32, len: usize| DeviceRange { buffer, start: 0, len };
        let (x, y, row) = (range(0, 12), range(1, 12), range(2, 4));
        let segments = Segments { targets: range(3, 2), starts: range(4, 3), rows: range(5, 3) };
        let commands = [
            (Command::Fill { to: y, value: 0.0 }, 12),
            (Command::Copy { from: x, to: y }, 24),
            (Command::Scale { alpha: 2.0, x, to: y }, 24),
            (Command::Axpy { alpha: 2.0, x, y }, 36),
            (Command::AdaGrad { update: x, history: y, step: 0.1, epsilon: 1e-6 }, 48),
            (Command::AddBias { bias: row, to: y }, 28),
            (Command::SumRows { from: x, to: row, alpha: 1.0 }, 16),
            (Command::Relu { to: y }, 24),
            (Command::ReluGradient { activations: x, to: y }, 24),
            (Command::ScatterAdd { from: x, segments, table: y, width: 4 }, 44),
        ];
        for (command, values) in commands {
            command.check().expect("lengths fit");
            assert_eq!(command.cost().bytes, VALUE_BYTES * values, "{}", command.name());
        }
    }
}
