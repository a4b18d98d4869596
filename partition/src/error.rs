//! What can go wrong with a request to partition a graph.

use crate::partitioning::MAX_PARTITIONS;
use crate::strategy;

/// A request that cannot be met.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No strategy of this name.
    #[error("strategy \"{0}\" is unknown; expected one of {names}", names = strategy::NAMES.join(", "))]
    UnknownStrategy(String),
    /// No partitions, or more than can be numbered.
    #[error("{0} partitions are out of range; expected 1 to {MAX_PARTITIONS}")]
    NumPartitions(usize),
}
