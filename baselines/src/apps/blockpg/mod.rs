//! Sparse logistic regression by block proximal gradient.

mod data;
mod faithful;
mod gas;
mod server;

pub use data::Job;

use crate::job::train;
use crate::naive::Naive;
use crate::store::Tablets;
use crate::{Error, Finish, Report, Run, System};
use data::Data;

/// Systems on which samples keep all their values in one process: features push to them, one after the other.
pub const KEEP_LEFT: [System; 1] = [System::Gas];

/// Runs a job. The objective is loss and penalty, with the metrics `loss`, `nonzeros` and `kkt_violation`.
///
/// # Errors
/// Parameters out of range, slack, which blocks in turn do not have, a worker or a server that is lost.
pub fn run(system: System, job: &Job<'_>, run: &Run, report: Report<'_>) -> Result<Finish, Error> {
    job.config.check()?;
    run.check(system)?;
    if run.slack > 0 {
        return Err(Error::Unsupported { system: system.name(), what: "slack", advice: "take a slack of 0" });
    }
    run.check_cut(system, &KEEP_LEFT)?;
    let data = Data::new(job, run)?;
    match system {
        System::Gas => train(gas::Trainer::new(data, run)?, run, report),
        System::GasFaithful => train(faithful::Trainer::new(data, run)?, run, report),
        System::PsNaive => train(server::Trainer::new(data, Naive::new(run)?, run)?, run, report),
        _ => train(server::Trainer::new(data, Tablets::new(system, run)?.without_pattern(), run)?, run, report),
    }
}
