//! Steps: one stage on one batch, with each worker's tasks; and what an iteration consists of.

use std::fmt;

use megagrid_stages::BatchOrder;
use serde::Serialize;

use super::schedule::{Scope, Task};

/// One stage on one batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Index of the stage.
    pub stage: usize,
    /// What the batch covers.
    pub scope: Scope,
    /// What each worker does.
    pub tasks: Vec<Vec<Task>>,
    /// What has to have ended before a worker begins, beside its own work.
    pub after: After,
}

/// What a step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum After {
    /// Nothing but what the consistency model asks for.
    Own,
    /// All that comes before on the workers of this process.
    Process,
    /// All that comes before on all workers, even with slack.
    All,
}

/// Whose part of a sum an Apply is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Part {
    /// A worker's.
    Worker,
    /// A process's.
    Process,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Worker => "each worker applies its part of sums",
            Self::Process => "each process's part of sums is applied as it comes",
        })
    }
}

/// Part of an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Node {
    /// The step with this index.
    Step(usize),
    /// Batches.
    Batches {
        /// Their order.
        order: BatchOrder,
        /// What each consists of.
        batches: Vec<Vec<Node>>,
        /// How many nodes a batch begins with that do not wait for the batches before it: with slack s they run up to s
        /// batches early.
        lead: usize,
    },
    /// A clock ends here.
    Clock,
}

/// What a worker walks: steps and ends of clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Run a step.
    Step {
        /// Its index.
        step: usize,
        /// If it waits for all workers: how many of the steps that this worker has ended, the last ones, others need not have
        /// ended.
        lag: u64,
    },
    /// A clock ends.
    Clock,
}
