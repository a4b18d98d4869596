//! Latent Dirichlet allocation with the dense sampler.

mod corpus;
mod faithful;
mod gas;
mod server;

pub use corpus::{Job, Tell};

use megagrid_algorithms::lda::{Prior, Sampler};

use crate::job::train;
use crate::naive::Naive;
use crate::store::Tablets;
use crate::{Error, Finish, Report, Run, System};
use corpus::Corpus;

/// Systems on which documents keep all their edges in one process: draws change them, one after the other.
pub const KEEP_LEFT: [System; 2] = [System::Gas, System::GasFaithful];

/// Runs a job. The objective is the joint log likelihood, with the metrics `log_likelihood` and `per_token`.
///
/// # Errors
/// Parameters out of range, a document prior that is fitted, a corpus with a word of more than 2^24 tokens, a worker or a server that is
/// lost.
pub fn run(system: System, job: &Job<'_>, run: &Run, report: Report<'_>) -> Result<Finish, Error> {
    job.config.check()?;
    run.check(system)?;
    run.check_cut(system, &KEEP_LEFT)?;
    if job.config.prior != Prior::Fixed {
        return Err(Error::Unsupported {
            system: system.name(),
            what: "a document prior that is fitted",
            advice: "fix it",
        });
    }
    let corpus = Corpus::new(job, run);
    corpus.tokens.check(Sampler::Dense, job.config.num_topics)?;
    match system {
        System::Gas => train(gas::Trainer::new(corpus, run)?, run, report),
        System::GasFaithful => train(faithful::Trainer::new(corpus, run)?, run, report),
        System::PsNaive => train(server::Trainer::new(corpus, run, Naive::new(run)?)?, run, report),
        _ => train(server::Trainer::new(corpus, run, Tablets::new(system, run)?)?, run, report),
    }
}
