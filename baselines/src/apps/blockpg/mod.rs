//! Sparse logistic regression by block proximal gradient.

use megagrid_algorithms::blockpg::Config;
use megagrid_partition::EdgeSource;

use crate::{Error, Finish, Report, Run, System};

/// Whose rules steps follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Those of [`megagrid_algorithms::blockpg`], so that only the system differs.
    #[default]
    Shared,
    /// Those of DARLIN, which TuX² compares with: KKT filter, trust region, bounded delay. On parameter servers alone.
    Darlin,
}

/// What is to be fitted.
#[derive(Clone, Copy)]
pub struct Job<'j> {
    /// y_i x_ij for samples i, left, and features j, right; grouped by either side.
    pub signed: &'j dyn EdgeSource<f32>,
    /// Weights of samples; all 1 if empty.
    pub sample_weights: &'j [f32],
    /// Which feature is the intercept, which has no penalty.
    pub intercept: Option<usize>,
    /// Weights of the penalty.
    pub config: Config,
    /// Values of a block of features.
    pub block_values: u64,
    /// Blocks of features by iteration, from 1; `None`: dealt at random.
    pub blocks: Option<&'j dyn Fn(u64) -> Vec<Vec<u32>>>,
    /// Whose rules steps follow.
    pub rules: Rules,
}

/// Runs a job. The objective is loss and penalty, with the metrics `loss`, `nonzeros` and `kkt_violation`.
///
/// # Errors
/// Parameters out of range, [`Rules::Darlin`] on GAS, a worker or a server that is lost.
pub fn run(system: System, job: &Job<'_>, _run: &Run, _report: Report<'_>) -> Result<Finish, Error> {
    job.config.check()?;
    Err(Error::Unsupported { system: system.name(), what: "blockpg", advice: "leave it out" })
}
