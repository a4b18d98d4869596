//! Matrix factorization by batch gradients on [`Gas`]: one superstep, in which users and items gather.

use megagrid_algorithms::mf::Config;
use megagrid_algorithms::mf::batch::{Item, MfBatch, Step, User};
use megagrid_partition::Side;
use megagrid_stages::kernels::{axpy, dot};
use megagrid_stages::{Apply, Context, Master, ROW_ALIGN, row_width};

use super::job::{Job, NOTHING};
use crate::gas::cut::edges_here;
use crate::gas::{Active, Gas, VertexProgram};
use crate::job::{self, Cost, Measured};
use crate::{Error, Finish, Run, System};

/// A vertex is its factor and, in a cache line of its own, the sum of its squared gradients.
struct Descend {
    config: Config,
    width: usize,
    num_users: usize,
    steps: (Step, Step),
    iteration: u64,
}

impl VertexProgram for Descend {
    type Item = f32;
    type Edge = f32;
    type Sum = f32;
    type Total = ();

    #[inline(always)]
    fn gather(&self, vertex: &[f32], other: &[f32], rating: f32, sum: &mut [f32]) {
        let (vertex, other) = (&vertex[..self.width], &other[..self.width]);
        let error = rating - dot(vertex, other);
        axpy(sum, error, other);
        axpy(sum, -self.config.lambda, vertex);
    }

    #[inline(always)]
    fn apply(&self, id: usize, vertex: &mut [f32], sum: &[f32], (): &mut ()) {
        let (sync, master) = vertex.split_at_mut(self.width);
        let (master, worker) = (&mut master[0], &mut Default::default());
        let mut cx: Context<'_, MfBatch> = Context { worker, global: &NOTHING, iteration: self.iteration, seed: 0 };
        if id < self.num_users {
            Apply::<_, User>::apply(&self.steps.0, Master { sync, master, delta: sum }, &mut cx);
        } else {
            Apply::<_, Item>::apply(&self.steps.1, Master { sync, master, delta: sum }, &mut cx);
        }
    }
}

pub struct Trainer<'j> {
    job: Job<'j>,
    gas: Gas<f32, f32, f32>,
    program: Descend,
}

impl<'j> Trainer<'j> {
    pub fn new(job: &Job<'j>, run: &Run) -> Result<Self, Error> {
        let Job { ratings, config, .. } = *job;
        let (width, num_users) = (row_width(config.row_dims()), ratings.num_left);
        let steps = (Step::users(config), Step::items(config));
        let program = Descend { config, width, num_users, steps, iteration: 0 };
        let own = edges_here(ratings, &*run.strategy(System::Gas)?, &run.processes);
        let widths = [width + ROW_ALIGN, width];
        let mut gas = Gas::new(&own, |edge| own.data[edge], widths, run)?;
        job.init(run.seed, |side, id, first| {
            let id = if side == Side::Left { id } else { num_users + id };
            if let Some(row) = gas.row_mut(id) {
                first(&mut row[..width]);
            }
        });
        Ok(Self { job: *job, gas, program })
    }
}

impl job::Trainer for Trainer<'_> {
    fn iterate(&mut self, iteration: u64) -> Result<Cost, Error> {
        self.program.iteration = iteration;
        Ok(self.gas.superstep(&self.program, Active::All)?.1)
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let Descend { width, num_users, .. } = self.program;
        let (rows, processes) = (self.gas.all_rows()?, self.gas.cut().processes());
        self.job.measure(
            (processes, processes.part(num_users), self.gas.threads().level()),
            |user| &rows.row(user)[..width],
            |item| &rows.row(num_users + item)[..width],
        )
    }

    fn finish(&self) -> Finish {
        self.gas.finish(0)
    }
}
