//! PageRank.

use megagrid_algorithms::pagerank::Damping;
use megagrid_partition::EdgeList;

use crate::{Error, Finish, Report, Run, System};

/// What is to be ranked.
#[derive(Clone, Copy, Debug)]
pub struct Job<'j> {
    /// Links.
    pub graph: &'j EdgeList<()>,
    /// The chance of following a link.
    pub damping: Damping,
}

/// Runs a job. The objective is the residual, with the metric `residual`. All pages are settled at once (Jacobi): what Megagrid does
/// for graphs of up to four million links; larger ones it settles in batches, which takes fewer iterations.
///
/// # Errors
/// A worker or a server that is lost.
pub fn run(system: System, _job: &Job<'_>, _run: &Run, _report: Report<'_>) -> Result<Finish, Error> {
    Err(Error::Unsupported { system: system.name(), what: "pagerank", advice: "leave it out" })
}
