//! Sparse logistic regression by block proximal gradient.

mod darlin;
mod data;
mod faithful;
mod gas;
mod server;

pub use data::{Job, Rules};

use crate::job::train;
use crate::naive::Naive;
use crate::store::Tablets;
use crate::{Error, Finish, Report, Run, System};
use data::Data;

/// Runs a job. The objective is loss and penalty, with the metrics `loss`, `nonzeros` and `kkt_violation`.
///
/// # Errors
/// Parameters out of range, [`Rules::Darlin`] on GAS, slack with [`Rules::Shared`], which take turns, a worker or a server that is lost.
pub fn run(system: System, job: &Job<'_>, run: &Run, report: Report<'_>) -> Result<Finish, Error> {
    job.config.check()?;
    run.check(system)?;
    if run.slack > 0 && job.rules == Rules::Shared {
        let advice = "take DARLIN's rules, or a slack of 0";
        return Err(Error::Unsupported { system: system.name(), what: "slack with shared rules", advice });
    }
    let data = Data::new(job, run)?;
    match (system, job.rules) {
        (System::Gas, Rules::Shared) => train(gas::Trainer::new(data, run), run, report),
        (System::GasFaithful, Rules::Shared) => train(faithful::Trainer::new(data, run), run, report),
        (System::PsNaive, Rules::Shared) => {
            train(server::Trainer::new(data, Naive::new(run.workers, run.slack), run)?, run, report)
        }
        (System::LazyTable | System::Essp | System::IterStore, Rules::Shared) => {
            train(server::Trainer::new(data, Tablets::new(system, run.workers, run.slack)?, run)?, run, report)
        }
        (System::PsNaive, Rules::Darlin) => {
            train(darlin::Trainer::new(data, Naive::new(run.workers, run.slack), run)?, run, report)
        }
        (System::LazyTable | System::Essp | System::IterStore, Rules::Darlin) => {
            train(darlin::Trainer::new(data, Tablets::new(system, run.workers, run.slack)?, run)?, run, report)
        }
        _ => {
            let advice = "take the shared rules, which all systems run";
            Err(Error::Unsupported { system: system.name(), what: "these rules", advice })
        }
    }
}
