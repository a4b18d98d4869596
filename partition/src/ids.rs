//! Identifiers: newtypes, so that a signature says which id it takes.

use std::fmt;

/// One side of a bipartite graph: users, documents, samples, sources are left; items, words, features, targets right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub enum Side {
    /// Users, documents, samples, sources.
    Left,
    /// Items, words, features, targets.
    Right,
}

impl Side {
    /// Returns the opposite side.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "left",
            Self::Right => "right",
        })
    }
}

/// A contiguous range of vertex rows of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardId(pub usize);

/// One of the processes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId(pub usize);

/// One worker thread, counted over all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerId(pub usize);
