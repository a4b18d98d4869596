//! Matrix factorization.

mod by_server;
mod faithful;
mod gas;
mod job;
mod naive;
mod server;

pub use job::{Form, Job};

use megagrid_algorithms::mf::Optimizer;

use crate::job::train;
use crate::naive::Naive;
use crate::store::Tablets;
use crate::{Error, Finish, Report, Run, System};

/// Runs a job. The objective is that of [`megagrid_algorithms::mf::Objective`]; its metric `train_rmse`.
///
/// # Errors
/// Parameters out of range, [`Form::InPlace`] on GAS, [`Run::server_steps`] of another form or optimizer, a run that diverges, a worker or
/// a server that is lost.
pub fn run(system: System, job: &Job<'_>, run: &Run, report: Report<'_>) -> Result<Finish, Error> {
    job.config.check()?;
    run.check_with_steps(system)?;
    match system {
        System::Gas | System::GasFaithful if job.form == Form::InPlace => Err(Error::Unsupported {
            system: system.name(),
            what: "steps in place",
            advice: "take batch gradients, which all systems run",
        }),
        _ if run.server_steps && (job.form, job.config.optimizer) != (Form::InPlace, Optimizer::AdaGrad) => {
            Err(Error::Unsupported {
                system: system.name(),
                what: "steps by the server of batch gradients, or without AdaGrad",
                advice: "take steps in place, with AdaGrad",
            })
        }
        System::PsNaive if run.server_steps => train(by_server::Trainer::new(job, run, Naive::new(run)?)?, run, report),
        _ if run.server_steps => train(by_server::Trainer::new(job, run, Tablets::new(system, run)?)?, run, report),
        System::Gas => train(gas::Trainer::new(job, run)?, run, report),
        System::GasFaithful => train(faithful::Trainer::new(job, run)?, run, report),
        System::PsNaive => train(naive::Trainer::new(job, run)?, run, report),
        _ => train(server::Trainer::new(job, run, Tablets::new(system, run)?)?, run, report),
    }
}
