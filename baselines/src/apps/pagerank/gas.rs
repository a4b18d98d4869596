//! PageRank on [`Gas`]: one superstep over links to a page, and an aggregate.

use megagrid_algorithms::pagerank::{Damping, PageRank, Settle, State};
use megagrid_stages::{Apply, Combine, Context, Master};

use super::job::{Job, measured};
use crate::gas::cut::edges_here;
use crate::gas::{Active, Gas, VertexProgram};
use crate::job::{self, Cost, Measured};
use crate::{Error, Finish, Run, System};

/// A page is what it passes on along a link, and its rank.
struct Rank {
    state: State,
}

impl VertexProgram for Rank {
    type Item = [f32; 4];
    type Edge = ();
    type Sum = f32;
    type Total = [f64; 3];

    #[inline(always)]
    fn gather(&self, _: &[[f32; 4]], other: &[[f32; 4]], (): (), sum: &mut [f32]) {
        sum[0] += other[0][0];
    }

    #[inline(always)]
    fn apply(&self, _: usize, page: &mut [[f32; 4]], sum: &[f32], total: &mut [f64; 3]) {
        let [passed, rank @ ..] = &mut page[0];
        let mut cx: Context<'_, PageRank> = Context { worker: total, global: &self.state, iteration: 0, seed: 0 };
        Settle.apply(Master { sync: passed, master: rank, delta: &sum[0] }, &mut cx);
    }
}

pub struct Trainer {
    damping: Damping,
    gas: Gas<[f32; 4], (), f32>,
    program: Rank,
}

impl Trainer {
    pub fn new(job: &Job<'_>, run: &Run) -> Result<Self, Error> {
        let own = edges_here(job.graph, &*run.strategy(System::Gas)?, &run.processes);
        let mut gas = Gas::new(&own, |_| (), [1, 1], run)?;
        let state = job.start(|start| {
            for page in 0..job.graph.num_left {
                let ([score, per_link, restart], passed) = start.page(page);
                if let Some(row) = gas.row_mut(page) {
                    row[0] = [passed, score, per_link, restart];
                }
            }
            start.state()
        });
        Ok(Self { damping: job.damping, gas, program: Rank { state } })
    }
}

impl job::Trainer for Trainer {
    fn iterate(&mut self, _: u64) -> Result<Cost, Error> {
        let (totals, mut cost) = self.gas.superstep(&self.program, Active::All)?;
        let mut sum = [0.0; 3];
        totals.into_iter().for_each(|mut total| sum.combine(&mut total));
        self.program.state = State::after(self.damping, self.gas.cut().combine(sum, &mut cost)?);
        Ok(cost)
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        Ok(measured(&self.program.state))
    }

    fn finish(&self) -> Finish {
        self.gas.finish(0)
    }
}
