//! PageRank as PowerGraph's toolkit has it: gathers ranks over links to a page, and signals the pages that it links to.

use megagrid_algorithms::pagerank::{Damping, State};
use serde::{Deserialize, Serialize};

use super::job::{Job, measured};
use crate::gas::cut::edges_here;
use crate::gas::faithful::{EdgeView, Faithful, Signals, VertexProgram};
use crate::job::{self, Cost, Measured};
use crate::{Error, Finish, Run, System};

/// A page: its score, what of it each link passes on, its part of restarts, and the score's last change.
#[derive(Serialize, Deserialize)]
struct Page {
    score: f64,
    per_link: f64,
    restart: f64,
    change: f64,
}

struct Rank {
    state: State,
}

impl VertexProgram for Rank {
    type Vertex = Page;
    type Edge = ();
    type Gather = f64;
    type Message = ();

    fn gather(&self, edge: EdgeView<'_, Self>, _: &Signals<'_, Self>) -> f64 {
        edge.other.score * edge.other.per_link
    }

    fn add(&self, sum: &mut f64, part: f64) {
        *sum += part;
    }

    fn apply(&self, _: usize, page: &mut Page, sum: Option<f64>, (): ()) {
        let settled = sum.unwrap_or(0.0) + f64::from(self.state.restart) * page.restart;
        page.change = (settled - page.score).abs();
        page.score = settled;
    }

    fn scatter(&self, edge: EdgeView<'_, Self>, signals: &Signals<'_, Self>) {
        signals.signal(edge.other_id, ());
    }
}

pub struct Trainer {
    damping: Damping,
    gas: Faithful<Rank>,
    program: Rank,
}

impl Trainer {
    pub fn new(job: &Job<'_>, run: &Run) -> Result<Self, Error> {
        let (pages, state) = job.start(|start| {
            let page = |page| {
                let ([score, per_link, restart], _) = start.page(page);
                let [score, per_link, restart] = [score, per_link, restart].map(f64::from);
                Page { score, per_link, restart, change: 0.0 }
            };
            ((0..job.graph.num_left).map(page).collect(), start.state())
        });
        let own = edges_here(job.graph, &*run.strategy(System::GasFaithful)?, &run.processes);
        let gas = Faithful::new(&own, |_| (), pages, run)?;
        Ok(Self { damping: job.damping, gas, program: Rank { state } })
    }
}

impl job::Trainer for Trainer {
    fn iterate(&mut self, _: u64) -> Result<Cost, Error> {
        // Also pages that nothing links to get what restarts give.
        (0..self.gas.cut().num_vertices()).for_each(|page| self.gas.signal(page, ()));
        let mut cost = self.gas.superstep(&self.program)?;
        let mut sums = [0.0; 3];
        for (_, Page { score, per_link, change, .. }) in self.gas.masters() {
            let dangling = if *per_link == 0.0 { *score } else { 0.0 };
            sums.iter_mut().zip([*score, dangling, *change]).for_each(|(sum, part)| *sum += part);
        }
        self.program.state = State::after(self.damping, self.gas.cut().combine(sums, &mut cost)?);
        Ok(cost)
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        Ok(measured(&self.program.state))
    }

    fn finish(&self) -> Finish {
        self.gas.finish(0, 0)
    }
}
