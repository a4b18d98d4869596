//! Latent Dirichlet allocation with the dense sampler.

use megagrid_algorithms::lda::Config;
use megagrid_partition::EdgeList;

use crate::{Error, Finish, Report, Run, System};

/// The corpus.
#[derive(Clone, Copy, Debug)]
pub struct Job<'j> {
    /// How often words occur in documents, in the order in which workers visit them.
    pub corpus: &'j EdgeList<u32>,
    /// Parameters.
    pub config: Config,
}

/// Runs a job. The objective is the joint log likelihood, with the metrics `log_likelihood` and `per_token`.
///
/// # Errors
/// Parameters out of range, a corpus with a word of more than 2^24 tokens, a worker or a server that is lost.
pub fn run(system: System, job: &Job<'_>, _run: &Run, _report: Report<'_>) -> Result<Finish, Error> {
    job.config.check()?;
    Err(Error::Unsupported { system: system.name(), what: "lda", advice: "leave it out" })
}
