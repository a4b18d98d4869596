//! The parts of a run.

use serde::{Deserialize, Serialize};

/// A part of a run between two changes of what is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// The iterations that were done when it began, or when the first of those began that are evaluated together.
    pub since: u64,
    /// The iteration that ends it at the latest.
    pub until: u64,
    /// Whether it is the last.
    pub is_last: bool,
    /// The measured value on test data whose best iteration is kept of it, and which may end it: [`Algorithm::TESTED_BY`](crate::Algorithm::TESTED_BY) where the model comes
    /// of it; `None`: none.
    pub tested_by: Option<&'static str>,
}

/// Why a leg ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// All iterations are done.
    Iterations,
    /// The tolerance is reached.
    Tolerance,
    /// It got worse on test data for too long.
    Patience,
    /// The run was asked to end.
    Interrupt,
}
