//! What can go wrong with a request to partition a graph.

/// A request that cannot be met.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No strategy of this name.
    #[error("strategy \"{found}\" is unknown; expected one of {}", known.join(", "))]
    UnknownStrategy {
        /// The name.
        found: String,
        /// The names that there are.
        known: &'static [&'static str],
    },
    /// No partitions, or more than can be numbered.
    #[error("{found} partitions are out of range; expected 1 to {most}")]
    NumPartitions {
        /// How many were asked for.
        found: usize,
        /// How many there can be.
        most: usize,
    },
}
