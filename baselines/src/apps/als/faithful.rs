//! Alternating least squares as PowerGraph's toolkit has it: a vertex gathers its whole matrix and vector in double precision, and signals the
//! other side once it has solved for its factor.

use megagrid_algorithms::als::Config;
use megagrid_partition::Side;
use serde::{Deserialize, Serialize};

use super::job::Job;
use crate::gas::cut::edges_here;
use crate::gas::faithful::{EdgeView, Faithful, Signals, VertexProgram};
use crate::job::{self, Cost, Measured};
use crate::rows::Rows;
use crate::{Error, Finish, Run, System};

struct Solve {
    config: Config,
    /// Of users, then of items.
    rhos: Vec<Option<f32>>,
    /// Sum of the products of the other side's factors with themselves, `[width, width]`.
    gramian: Vec<f64>,
}

/// The normal equations of a vertex, over its edges.
#[derive(Serialize, Deserialize)]
struct Equations {
    matrix: Vec<f64>,
    right: Vec<f64>,
}

impl VertexProgram for Solve {
    type Vertex = Vec<f64>;
    type Edge = f32;
    type Gather = Equations;
    type Message = ();

    fn gather(&self, edge: EdgeView<'_, Self>, _: &Signals<'_, Self>) -> Equations {
        let (feedback, factor) = (f64::from(edge.edge), edge.other);
        let products = factor.iter().flat_map(|a| factor.iter().map(move |b| feedback * a * b));
        let weight = feedback + 1.0 / f64::from(self.config.alpha);
        Equations { matrix: products.collect(), right: factor.iter().map(|value| weight * value).collect() }
    }

    fn add(&self, sum: &mut Equations, part: Equations) {
        sum.matrix.iter_mut().zip(part.matrix).for_each(|(sum, part)| *sum += part);
        sum.right.iter_mut().zip(part.right).for_each(|(sum, part)| *sum += part);
    }

    /// Solves block by block, as all systems do.
    fn apply(&self, id: usize, own: &mut Vec<f64>, sum: Option<Equations>, (): ()) {
        let (Some(Equations { mut matrix, right }), Some(rho)) = (sum, self.rhos[id]) else { return };
        let (width, unseen) = (own.len(), 1.0 / f64::from(self.config.alpha));
        matrix.iter_mut().zip(&self.gramian).for_each(|(sum, product)| *sum += unseen * product);
        (0..width).for_each(|n| matrix[n * width + n] += f64::from(rho));
        for first in (0..width).step_by(self.config.block_width()) {
            let block = first..(first + self.config.block_width()).min(width);
            let product = |n: usize| matrix[n * width..].iter().zip(&*own).map(|(a, b)| a * b).sum::<f64>();
            let rest = block.clone().map(|n| right[n] - product(n)).collect();
            let rows = block.clone().map(|n| matrix[n * width..][block.clone()].to_vec()).collect();
            own[block].iter_mut().zip(solved(rows, rest)).for_each(|(own, step)| *own += step);
        }
    }

    fn scatter(&self, edge: EdgeView<'_, Self>, signals: &Signals<'_, Self>) {
        signals.signal(edge.other_id, ());
    }
}

/// Solves `matrix · x = right` for a positive definite matrix by Cholesky's factors.
fn solved(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let len = right.len();
    for column in 0..len {
        for row in column..len {
            let known: f64 = (0..column).map(|n| matrix[row][n] * matrix[column][n]).sum();
            let rest = matrix[row][column] - known;
            matrix[row][column] = if row == column { rest.sqrt() } else { rest / matrix[column][column] };
        }
        let known: f64 = (0..column).map(|n| matrix[column][n] * right[n]).sum();
        right[column] = (right[column] - known) / matrix[column][column];
    }
    for row in (0..len).rev() {
        let known: f64 = (row + 1..len).map(|n| matrix[n][row] * right[n]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right
}

pub struct Trainer<'j> {
    job: Job<'j>,
    gas: Faithful<Solve>,
    program: Solve,
}

impl<'j> Trainer<'j> {
    pub fn new(job: &Job<'j>, run: &Run) -> Result<Self, Error> {
        let Job { feedback, config } = *job;
        let (items, gramian) = job.first(run.seed);
        let factor = |item| items.row(item).iter().copied().map(f64::from).collect();
        let mut vertices = vec![vec![0.0; items.width()]; feedback.num_left];
        vertices.extend((0..items.len()).map(factor));
        let own = edges_here(feedback, &*run.strategy(System::GasFaithful)?, &run.processes);
        let mut gas = Faithful::new(&own, |edge| own.data[edge], vertices, run)?;
        (0..feedback.num_left).for_each(|user| gas.signal(user, ()));
        let rhos = [Side::Left, Side::Right].map(|side| job.rhos(side)).concat();
        Ok(Self { job: *job, gas, program: Solve { config, rhos, gramian } })
    }

    /// Returns the numbers of a factor.
    fn width(&self) -> usize {
        self.program.gramian.len().isqrt()
    }
}

impl job::Trainer for Trainer<'_> {
    /// Two supersteps: users, then items.
    fn iterate(&mut self, _: u64) -> Result<Cost, Error> {
        let (mut all, num_users) = (Vec::new(), self.job.len(Side::Left));
        for side in [Side::Left, Side::Right] {
            let mut cost = self.gas.superstep(&self.program)?;
            let mut gramian = vec![0.0; self.program.gramian.len()];
            for (_, factor) in self.gas.masters().filter(|(id, _)| (*id < num_users) == (side == Side::Left)) {
                let products = factor.iter().flat_map(|a| factor.iter().map(move |b| a * b));
                gramian.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
            }
            self.program.gramian = self.gas.cut().add(gramian, &mut cost)?;
            all.push(cost);
        }
        Ok(Cost::sum(&all))
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let (width, num_users) = (self.width(), self.job.len(Side::Left));
        let mut rows = Rows::<f32>::zeros(self.gas.cut().num_vertices(), width);
        self.gas.visit_all(|id, factor| {
            rows.row_mut(id).iter_mut().zip(factor).for_each(|(into, &value)| *into = value as f32);
        })?;
        self.job.measure(|side, id| rows.row(if side == Side::Left { id } else { num_users + id }))
    }

    fn finish(&self) -> Finish {
        self.gas.finish(8 * self.width(), 0)
    }
}
