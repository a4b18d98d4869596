//! Alternating least squares on [`Gas`]: a superstep for each block of a side's dimensions, in which vertices gather the equations of the
//! block over their edges and solve them.

use std::ops::Range;

use megagrid_algorithms::als::{Config, GramianOf, OfSide};
use megagrid_algorithms::least_squares::Weights;
use megagrid_algorithms::least_squares::tiles::{Row, add_scaled, at, descend, upper};
use megagrid_partition::Side;
use megagrid_stages::kernels::dot;
use megagrid_stages::simd::{RowKernel, Vector, row_kernel};
use megagrid_stages::{ROW_ALIGN, row_width};

use super::job::Job;
use crate::gas::cut::edges_here;
use crate::gas::{Active, Gas, VertexProgram};
use crate::job::{self, Cost, Measured};
use crate::{Error, Finish, Run, System};

/// Sums are a block's matrix, in tiles of which those on and above the diagonal count, and its gradient.
struct Solve {
    config: Config,
    /// Of users, then of items.
    rhos: Vec<Option<f32>>,
    /// What the rows of the other side add up to.
    of_others: OfSide,
    /// Columns of the block, sixteen together.
    block: Range<usize>,
    /// Whether rows are solved for then.
    is_last: bool,
}

/// What a worker adds up, and room to solve in.
#[derive(Default)]
struct Total {
    gramian: Vec<f64>,
    rows: GramianOf,
    equations: Vec<Row>,
}

impl VertexProgram for Solve {
    type Item = f32;
    type Edge = f32;
    type Sum = f32;
    type Total = Total;

    #[inline(always)]
    fn gather(&self, vertex: &[f32], other: &[f32], feedback: f32, sum: &mut [f32]) {
        let excess = feedback * (dot(vertex, other) - 1.0) - 1.0 / self.config.alpha;
        let (block, tiles) = (&other.as_chunks::<ROW_ALIGN>().0[self.block.clone()], self.block.len());
        let (matrix, gradient) = sum.as_chunks_mut::<ROW_ALIGN>().0.split_at_mut(tiles * tiles * ROW_ALIGN);
        gradient.iter_mut().zip(block).for_each(|(sum, q)| add(sum, excess, q));
        for (row, column) in upper(tiles) {
            let rows = matrix[at(row, column, tiles)].iter_mut().zip(&block[row]);
            rows.for_each(|(sum, q)| add(sum, feedback * q, &block[column]));
        }
    }

    #[inline(always)]
    fn apply(&self, id: usize, vertex: &mut [f32], sum: &[f32], total: &mut Total) {
        let Some(rho) = self.rhos[id] else { return };
        let Total { gramian, rows, equations } = total;
        equations.clear();
        equations.extend_from_slice(sum.as_chunks().0);
        let (block, weights) = (self.block.clone(), self.of_others.weights(&self.config, rho));
        row_kernel(Block { own: vertex, block, equations, weights });
        if self.is_last {
            rows.push(vertex, gramian);
        }
    }
}

#[inline(always)]
fn add(sum: &mut Row, scale: f32, row: &Row) {
    sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += scale * value);
}

/// Completes the equations of a block by what is not from edges, and solves them.
struct Block<'k> {
    own: &'k mut [f32],
    block: Range<usize>,
    equations: &'k mut [Row],
    weights: Weights<'k>,
}

impl RowKernel for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { own, block, equations, weights: Weights { gramian, rho, .. } } = self;
        let (width, tiles) = (own.len(), block.len());
        let gramian = |at: usize| &gramian[(block.start + at) * width..][..width];
        let (matrix, step) = equations.split_at_mut(tiles * tiles * ROW_ALIGN);
        let step = &mut step[..tiles];
        for (row, column) in upper(tiles) {
            let of_all = &gramian(column)[(block.start + row) * ROW_ALIGN..];
            for (n, (sum, more)) in matrix[at(row, column, tiles)].iter_mut().zip(of_all).enumerate() {
                add(sum, 1.0, more);
                sum[n] += if row == column { rho } else { 0.0 };
            }
        }
        for (n, step) in step.iter_mut().enumerate() {
            add(step, rho, &own.as_chunks().0[block.start + n]);
            add_scaled::<V>(gramian(n), own, step);
        }
        descend::<V>(matrix, step);
        own.as_chunks_mut().0[block].iter_mut().zip(&*step).for_each(|(own, step)| add(own, 1.0, step));
    }
}

pub struct Trainer<'j> {
    job: Job<'j>,
    gas: Gas<f32, f32, f32>,
    program: Solve,
}

impl<'j> Trainer<'j> {
    pub fn new(job: &Job<'j>, run: &Run) -> Result<Self, Error> {
        let Job { feedback, config } = *job;
        let (width, block) = (row_width(config.dims), config.block_width());
        let own = edges_here(feedback, &*run.strategy(System::Gas)?, &run.processes);
        let widths = [width, block * block + block];
        let mut gas = Gas::new(&own, |edge| own.data[edge], widths, run)?;
        let (items, gramian) = job.first(run.seed);
        for item in 0..items.len() {
            if let Some(row) = gas.row_mut(feedback.num_left + item) {
                row.copy_from_slice(items.row(item));
            }
        }
        let rhos = [Side::Left, Side::Right].map(|side| job.rhos(side)).concat();
        let of_others = OfSide::new(gramian, 0.0, &config);
        Ok(Self { job: *job, gas, program: Solve { config, rhos, of_others, block: 0..0, is_last: false } })
    }

    /// Solves for the vertices of a side.
    fn solve(&mut self, side: Side) -> Result<Cost, Error> {
        let Self { job, gas, program } = self;
        let (width, block) = (row_width(job.config.dims) / ROW_ALIGN, job.config.block_width() / ROW_ALIGN);
        let active = Active::Span(if side == Side::Left { 0 } else { job.len(Side::Left) }, job.len(side));
        let (mut totals, mut all) = (Vec::new(), Vec::new());
        for first in (0..width).step_by(block) {
            program.block = first..(first + block).min(width);
            program.is_last = program.block.end == width;
            let (found, cost) = gas.superstep(program, active.clone())?;
            totals = found;
            all.push(cost);
        }
        let mut gramian = vec![0.0; (width * ROW_ALIGN).pow(2)];
        for Total { gramian: part, rows, .. } in &mut totals {
            rows.flush(part);
            gramian.iter_mut().zip(part).for_each(|(sum, part)| *sum += *part);
        }
        let mut cost = Cost::sum(&all);
        let gramian = gas.cut().add(gramian, &mut cost)?;
        program.of_others = OfSide::new(gramian, 0.0, &job.config);
        Ok(cost)
    }
}

impl job::Trainer for Trainer<'_> {
    fn iterate(&mut self, _: u64) -> Result<Cost, Error> {
        Ok(Cost::sum(&[self.solve(Side::Left)?, self.solve(Side::Right)?]))
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let (rows, num_users) = (self.gas.all_rows()?, self.job.len(Side::Left));
        self.job.measure(|side, id| rows.row(if side == Side::Left { id } else { num_users + id }))
    }

    fn finish(&self) -> Finish {
        self.gas.finish(0)
    }
}
