//! PageRank.

mod faithful;
mod gas;
mod server;

use std::collections::BTreeMap;

use megagrid_algorithms::pagerank::{Damping, Start, State};
use megagrid_partition::EdgeList;

use crate::job::train;
use crate::naive::Naive;
use crate::store::Tablets;
use crate::{Error, Finish, Report, Run, System};

/// What is to be ranked.
#[derive(Clone, Copy, Debug)]
pub struct Job<'j> {
    /// Links.
    pub graph: &'j EdgeList<()>,
    /// The chance of following a link.
    pub damping: Damping,
}

/// Runs a job. The objective is the residual, with the metric `residual`. All pages are settled at once (Jacobi): what Megagrid does
/// for graphs of up to four million links; larger ones it settles in batches, which takes fewer iterations.
///
/// # Errors
/// A worker or a server that is lost.
pub fn run(system: System, job: &Job<'_>, run: &Run, report: Report<'_>) -> Result<Finish, Error> {
    run.check(system)?;
    match system {
        System::Gas => train(gas::Trainer::new(job, run), run, report),
        System::GasFaithful => train(faithful::Trainer::new(job, run), run, report),
        System::PsNaive => train(server::Trainer::new(job, run, Naive::new(run.workers, run.slack))?, run, report),
        _ => train(server::Trainer::new(job, run, Tablets::new(system, run.workers, run.slack)?)?, run, report),
    }
}

impl Job<'_> {
    /// Calls `each` with the start of a run.
    fn start<T>(&self, each: impl FnOnce(&Start<'_>) -> T) -> T {
        let mut degrees = vec![0_u64; self.graph.num_left];
        self.graph.left.iter().for_each(|&page| degrees[page as usize] += 1);
        each(&Start::new(self.damping, degrees.len(), &[], &|page| degrees[page]))
    }
}

fn measured(state: &State) -> (f64, BTreeMap<&'static str, f64>) {
    (state.residual, BTreeMap::from([("residual", state.residual)]))
}
