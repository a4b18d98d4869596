//! Traffic: what crosses between processes in an iteration, as a plan predicts it and as it is counted.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// Messages, and their bytes with headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Messages.
    pub messages: u64,
    /// Bytes that the engine gives to the transport.
    pub bytes: u64,
}

/// What all processes send each other, by kind of message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Synced rows, from masters to mirrors.
    pub rows: Amount,
    /// Deltas, from mirrors to masters.
    pub deltas: Amount,
    /// Shards that rotate, from one visitor to the next.
    pub shards: Amount,
    /// Sums for a GlobalSync.
    pub sums: Amount,
    /// What replicas changed in place, to masters.
    pub changes: Amount,
    /// Masters' rows, back to replicas.
    pub fresh: Amount,
    /// Data of edges, to the processes of their other ends.
    #[serde(default)]
    pub edges: Amount,
}

impl Traffic {
    /// The names of the kinds, in the order of [`Self::amounts`].
    pub const NAMES: [&'static str; 7] = ["rows", "deltas", "shards", "sums", "changes", "fresh", "edges"];

    /// Lists the amounts by kind.
    #[must_use]
    pub fn amounts(&self) -> [Amount; 7] {
        [self.rows, self.deltas, self.shards, self.sums, self.changes, self.fresh, self.edges]
    }

    /// Returns the messages and bytes of all kinds.
    #[must_use]
    pub fn total(&self) -> Amount {
        let add = |a: Amount, b: Amount| Amount { messages: a.messages + b.messages, bytes: a.bytes + b.bytes };
        self.amounts().into_iter().fold(Amount::default(), add)
    }

    fn zip(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        let of = |a: Amount, b: Amount| Amount { messages: of(a.messages, b.messages), bytes: of(a.bytes, b.bytes) };
        Self {
            rows: of(self.rows, other.rows),
            deltas: of(self.deltas, other.deltas),
            shards: of(self.shards, other.shards),
            sums: of(self.sums, other.sums),
            changes: of(self.changes, other.changes),
            fresh: of(self.fresh, other.fresh),
            edges: of(self.edges, other.edges),
        }
    }
}

impl Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
}

impl Sub for Traffic {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
}
