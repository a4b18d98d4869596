//! What workers find, and what all of them know.

use megagrid_stages::Combine;
use serde::{Deserialize, Serialize};

use super::directions::{Heading, Sums};
use super::optimality::Optimality;

/// Sums of a worker.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Σ u d² of a block's steps d.
    pub curvature: f64,
    /// Curvature along all steps of a block together, where features descend one after the other.
    pub met: f64,
    /// How fast the loss falls along each of them, Σ −g d: as it was before the block, and as it was when the samples were
    /// told of it, after the steps told before it.
    pub fall: [f64; 2],
    /// How far the features visited are from their optimum.
    pub optimality: Optimality,
    /// Features visited.
    pub visited: u64,
    /// Weights that changed.
    pub changed: u64,
    /// What a leap is decided from.
    pub leap: Sums,
}

impl Combine for Totals {
    fn combine(&mut self, from: &mut Self) {
        let from = std::mem::take(from);
        self.curvature += from.curvature;
        self.met += from.met;
        self.fall.combine(&mut { from.fall });
        self.optimality.combine(&mut { from.optimality });
        self.visited += from.visited;
        self.changed += from.changed;
        self.leap.combine(&mut { from.leap });
    }
}

/// What all workers know.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// Iterations done when training at this l1 began.
    pub begun: u64,
    /// Weight of |w|₁.
    pub l1: f64,
    /// Weight of |w|²/2.
    pub l2: f64,
    /// How many workers there are where features descend one after the other; 0: features step by blocks.
    pub descending: u64,
    /// Whether workers descend apart, each on its own features; else one of them on all.
    pub apart: bool,
    /// What curvatures are multiplied by, at least 1.
    pub damping: f64,
    /// Whether this iteration visits every feature.
    pub full: bool,
    /// A weight at zero rests if its gradient is within l1 by more than this.
    pub threshold: f64,
    /// What the iteration has found so far.
    pub found: Totals,
    /// What the last iteration found.
    pub last: Totals,
    /// Whether the last iteration was full, and how many have been since.
    pub was_full: bool,
    /// The violation in the last full iteration.
    pub full_violation: f64,
    /// Iterations since the last full one.
    pub partial: u64,
    /// Where the iteration's leap leads.
    pub heading: Heading,
}

impl State {
    /// Returns the state of a run in which features descend one after the other.
    #[must_use]
    pub fn with_descent(self, workers: usize) -> Self {
        Self { descending: workers as u64, apart: workers > 1, ..self }
    }

    /// Tells whether this is the first iteration.
    pub(super) fn is_first(&self) -> bool {
        self.full_violation.is_infinite()
    }
}
