//! Matrix factorization of implicit feedback, by alternating least squares.

mod faithful;
mod gas;
mod job;
mod server;

pub use job::Job;

use crate::job::train;
use crate::naive::Naive;
use crate::store::Tablets;
use crate::{Error, Finish, Report, Run, System};

/// Runs a job. The objective is that of [`megagrid_algorithms::als::Gramians`].
///
/// # Errors
/// Parameters out of range, slack, which sides in turn do not have, a worker or a server that is lost.
pub fn run(system: System, job: &Job<'_>, run: &Run, report: Report<'_>) -> Result<Finish, Error> {
    job.config.check()?;
    run.check(system)?;
    if run.slack > 0 {
        return Err(Error::Unsupported { system: system.name(), what: "slack", advice: "take a slack of 0" });
    }
    match system {
        System::Gas => train(gas::Trainer::new(job, run)?, run, report),
        System::GasFaithful => train(faithful::Trainer::new(job, run)?, run, report),
        System::PsNaive => train(server::Trainer::new(job, run, Naive::new(run)?)?, run, report),
        _ => train(server::Trainer::new(job, run, Tablets::new(system, run)?)?, run, report),
    }
}
