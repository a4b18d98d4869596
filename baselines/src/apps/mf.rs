//! Matrix factorization.

use megagrid_algorithms::mf::Config;
use megagrid_partition::EdgeList;

use crate::{Error, Finish, Report, Run, System};

/// How factors are stepped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Rating by rating, as [`megagrid_algorithms::mf::in_place`]. Not on GAS, which has no edges in place.
    InPlace,
    /// By the gradient of all ratings, once an iteration, as [`megagrid_algorithms::mf::batch`] with one batch: on all systems.
    #[default]
    Batch,
}

/// What is to be factorized.
#[derive(Clone, Copy, Debug)]
pub struct Job<'j> {
    /// Ratings less their mean, in the order in which workers visit them.
    pub ratings: &'j EdgeList<f32>,
    /// Parameters.
    pub config: Config,
    /// How factors are stepped.
    pub form: Form,
}

/// Runs a job. The objective is that of [`megagrid_algorithms::mf::Objective`]; its metric `train_rmse`.
///
/// # Errors
/// Parameters out of range, [`Form::InPlace`] on GAS, a run that diverges, a worker or a server that is lost.
pub fn run(system: System, job: &Job<'_>, _run: &Run, _report: Report<'_>) -> Result<Finish, Error> {
    job.config.check()?;
    Err(Error::Unsupported { system: system.name(), what: "mf", advice: "leave it out" })
}
