//! How commands become dispatches: which kernel, on which ranges, in how many threads.

use crate::Error;
use crate::device::{ALIGNMENT, Command, DeviceRange, MatMul};

/// Ranges of a command at most, each of which is a binding.
pub(super) const BINDINGS: usize = 6;

/// Workgroups along one side at most, as the function `thread` in `parameters.wgsl` has it.
const GROUPS: usize = 65535;

/// Threads of a workgroup along a line, and values of a product along each side of one.
const GROUP_THREADS: usize = 64;
const GROUP_SIDE: usize = 32;

/// What is in `parameters.wgsl`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Parameters {
    pub at: [u32; BINDINGS],
    rows: u32,
    width: u32,
    inner: u32,
    stored: u32,
    first: u32,
    alpha: f32,
    beta: f32,
}

/// A kernel that is run once.
#[derive(Clone, Debug)]
pub(super) struct Dispatch {
    /// The function of the kernel.
    pub kernel: &'static str,
    /// The ranges, in the order of bindings.
    pub ranges: Vec<DeviceRange>,
    /// What it is told, but where ranges begin.
    pub parameters: Parameters,
    /// Workgroups along x and y.
    pub groups: [u32; 2],
}

/// Returns the dispatches of a command, whose lengths were checked. Where the device cannot bind all of a range at
/// once, values and the rows of a table are gone through in parts.
///
/// # Errors
/// A range that cannot be bound at once, of a command that has to see all of it.
pub(super) fn dispatches(command: &Command, limit: usize) -> Result<Vec<Dispatch>, Error> {
    let (kernel, parameters, threads) = kernel(command);
    let ranges = command.ranges();
    let all = Dispatch { kernel, ranges, parameters, groups: [0; 2] };
    let parts = match *command {
        Command::Fill { to, .. }
        | Command::Copy { to, .. }
        | Command::Axpy { y: to, .. }
        | Command::Scale { to, .. }
        | Command::AdaGrad { update: to, .. }
        | Command::Relu { to }
        | Command::ReluGradient { to, .. } => values(&all, to.len, limit),
        Command::Gather { table, .. } => tables(&all, 0, table.len, limit),
        Command::Put { table, .. } => tables(&all, 2, table.len, limit),
        Command::ScatterAdd { table, .. } => tables(&all, 4, table.len, limit),
        _ => vec![all],
    };
    let of = |part: Dispatch| {
        if let Some(range) = part.ranges.iter().find(|range| range.len > limit) {
            let problem = format!(
                "a range of {} values, where the device binds {limit} at a time; take a smaller --batch or narrower layers",
                range.len
            );
            return Err(Error::Command { command: command.name(), problem });
        }
        Ok(match (threads, part.parameters.rows as usize) {
            (Threads::Values, values) => line(part, values),
            (Threads::Of(count), _) => line(part, count),
            (Threads::Product(rows, columns), _) => {
                if rows.max(columns).div_ceil(GROUP_SIDE) > GROUPS {
                    let most = GROUPS * GROUP_SIDE;
                    let problem =
                        format!("a product of {rows} × {columns} values, where the device takes {most} a side");
                    return Err(Error::Command { command: command.name(), problem });
                }
                Dispatch { groups: [columns, rows].map(|side| side.div_ceil(GROUP_SIDE) as u32), ..part }
            }
        })
    };
    parts.into_iter().map(of).filter(|part| part.as_ref().map_or(true, |part| part.groups[0] > 0)).collect()
}

/// How many threads run a kernel.
#[derive(Clone, Copy)]
enum Threads {
    /// As many as there are values.
    Values,
    Of(usize),
    /// Those of a product: its rows and columns.
    Product(usize, usize),
}

fn line(part: Dispatch, threads: usize) -> Dispatch {
    let groups = threads.div_ceil(GROUP_THREADS);
    Dispatch { groups: [groups.min(GROUPS) as u32, groups.div_ceil(GROUPS) as u32], ..part }
}

/// Goes through the values of ranges that are equally long, in parts.
fn values(all: &Dispatch, len: usize, limit: usize) -> Vec<Dispatch> {
    let part = |begin: usize| {
        let len = limit.min(len - begin);
        let ranges = all.ranges.iter().map(|range| range.part(begin, len)).collect();
        Dispatch { ranges, parameters: Parameters { rows: len as u32, ..all.parameters }, ..all.clone() }
    };
    (0..len).step_by(limit).map(part).collect()
}

/// Goes through the rows of a table, which is one of the ranges, in parts.
fn tables(all: &Dispatch, table: usize, len: usize, limit: usize) -> Vec<Dispatch> {
    let width = all.parameters.width as usize;
    let (rows, most) = (len / width.max(1), (limit / width.max(1)).max(1));
    let part = |first: usize| {
        let count = most.min(rows - first);
        let mut part = all.clone();
        part.ranges[table] = part.ranges[table].part(first * width, count * width);
        (part.parameters.first, part.parameters.inner) = (first as u32, count as u32);
        part
    };
    (0..rows).step_by(most).map(part).collect()
}

/// Returns the function, what it is told, and its threads.
fn kernel(command: &Command) -> (&'static str, Parameters, Threads) {
    let none = Parameters::default();
    let rows = |len: usize, width: usize| Parameters {
        rows: (len / width.max(1)) as u32,
        width: width as u32,
        ..Parameters::default()
    };
    match *command {
        Command::Fill { value, .. } => ("fill", Parameters { alpha: value, ..none }, Threads::Values),
        Command::Copy { .. } => ("copy", none, Threads::Values),
        Command::Gather { to, width, .. } => ("gather", rows(to.len, width), Threads::Of(to.len)),
        Command::Put { from, width, .. } => ("put", rows(from.len, width), Threads::Of(from.len)),
        Command::ScatterAdd { segments, width, .. } => {
            let len = segments.targets.len * width;
            ("scatter_add", rows(len, width), Threads::Of(len))
        }
        Command::Axpy { alpha, .. } => ("axpy", Parameters { alpha, ..none }, Threads::Values),
        Command::Scale { alpha, .. } => ("scale", Parameters { alpha, ..none }, Threads::Values),
        Command::AdaGrad { step, epsilon, .. } => {
            ("adagrad", Parameters { alpha: step, beta: epsilon, ..none }, Threads::Values)
        }
        Command::MatMul(MatMul { m, n, k, transpose_a, transpose_b, alpha, .. }) => {
            let stored = u32::from(transpose_a) | u32::from(transpose_b) << 1;
            let sizes = Parameters { rows: m as u32, width: n as u32, inner: k as u32, stored, alpha, ..none };
            ("matmul", sizes, Threads::Product(m, n))
        }
        Command::AddBias { bias, to } => ("add_bias", rows(to.len, bias.len), Threads::Of(to.len)),
        Command::SumRows { from, to, alpha } => {
            ("sum_rows", Parameters { alpha, ..rows(from.len, to.len) }, Threads::Of(to.len))
        }
        Command::Relu { .. } => ("relu", none, Threads::Values),
        Command::ReluGradient { .. } => ("relu_gradient", none, Threads::Values),
        Command::SoftmaxCrossEntropy { logits, labels, .. } => {
            let sizes = rows(logits.len, logits.len / labels.len.max(1));
            ("softmax_cross_entropy", sizes, Threads::Of(labels.len))
        }
        Command::FactorUpdates { left, ratings, step, lambda, .. } => {
            let sizes = rows(left.len, left.len / ratings.len.max(1));
            ("factor_updates", Parameters { alpha: step, beta: lambda, ..sizes }, Threads::Of(ratings.len))
        }
    }
}

/// Where a range is bound: the first value, which is where bindings may begin, how many values, and where in them
/// the range begins. At least [`ALIGNMENT`] values are bound, since a binding cannot be empty.
pub(super) fn window(range: DeviceRange, buffer_len: usize) -> (usize, usize, u32) {
    let first = (range.start / ALIGNMENT * ALIGNMENT).min(buffer_len - ALIGNMENT);
    let last = (range.start + range.len).max(first + ALIGNMENT);
    (first, last - first, (range.start - first) as u32)
}
