//! PageRank.

mod faithful;
mod gas;
mod job;
mod server;

pub use job::Job;

use crate::job::train;
use crate::naive::Naive;
use crate::store::Tablets;
use crate::{Error, Finish, Report, Run, System};

/// Runs a job. The objective is the residual, with the metric `residual`. All pages are settled at once (Jacobi): what Megagrid does
/// for graphs of up to four million links; larger ones it settles in batches, which takes fewer iterations.
///
/// # Errors
/// A worker or a server that is lost.
pub fn run(system: System, job: &Job<'_>, run: &Run, report: Report<'_>) -> Result<Finish, Error> {
    run.check(system)?;
    match system {
        System::Gas => train(gas::Trainer::new(job, run)?, run, report),
        System::GasFaithful => train(faithful::Trainer::new(job, run)?, run, report),
        System::PsNaive => train(server::Trainer::new(job, run, Naive::new(run)?)?, run, report),
        _ => train(server::Trainer::new(job, run, Tablets::new(system, run)?)?, run, report),
    }
}
