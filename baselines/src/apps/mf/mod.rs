//! Matrix factorization.

mod faithful;
mod gas;
mod job;
mod naive;
mod server;

pub use job::{Form, Job};

use crate::job::train;
use crate::store::Tablets;
use crate::{Error, Finish, Report, Run, System};

/// Runs a job. The objective is that of [`megagrid_algorithms::mf::Objective`]; its metric `train_rmse`.
///
/// # Errors
/// Parameters out of range, [`Form::InPlace`] on GAS, a run that diverges, a worker or a server that is lost.
pub fn run(system: System, job: &Job<'_>, run: &Run, report: Report<'_>) -> Result<Finish, Error> {
    job.config.check()?;
    run.check(system)?;
    match system {
        System::Gas | System::GasFaithful if job.form == Form::InPlace => Err(Error::Unsupported {
            system: system.name(),
            what: "steps in place",
            advice: "take batch gradients, which all systems run",
        }),
        System::Gas => train(gas::Trainer::new(job, run)?, run, report),
        System::GasFaithful => train(faithful::Trainer::new(job, run)?, run, report),
        System::PsNaive => train(naive::Trainer::new(job, run)?, run, report),
        _ => train(server::Trainer::new(job, run, Tablets::new(system, run)?)?, run, report),
    }
}
