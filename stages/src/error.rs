//! What can be wrong with a sequence of stages.

use megagrid_partition::Side;

/// Why a sequence is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Nothing would be applied.
    #[error(
        "apply on the {0} side finds no delta: no earlier stage of its batch adds to or updates that side; \
         put an exchange whose {0} argument is an `Add` before it, in the same batch; on a square graph apply to the side that was added to"
    )]
    NothingToApply(Side),
    /// A stage on all edges of a vertex in a batch that has a part of them.
    #[error(
        "a stage on all edges of {0} vertices stands in a mini-batch that has part of a vertex's edges; \
         put it outside, or into a batch of {0} vertices"
    )]
    PartOfEdges(Side),
    /// A batch of size zero.
    #[error("a mini-batch holds 0 {0}; give at least 1")]
    EmptyBatch(&'static str),
    /// A sequence or a batch without stages.
    #[error("{0} has no stages; add at least one")]
    NoStages(&'static str),
}
