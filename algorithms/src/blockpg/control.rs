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
    /// Features visited, not screened.
    pub visited: u64,
    /// Weights that changed.
    pub changed: u64,
    /// Features that rest on, where they are screened.
    pub screened: u64,
    /// The slope by the feature that is screened.
    pub slope: f64,
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
        self.screened += from.screened;
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
    /// Whether a full iteration screens the features that rest, where features descend one after the other: only those that it wakes descend.
    pub screens: bool,
    /// Features that the last full iteration saw: all.
    pub features: u64,
    /// Visits of features in the iterations since.
    pub visits: u64,
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

    /// Decides which features the next iteration visits, by what the last one found.
    pub(super) fn choose_visits(&mut self, found: Totals) {
        if self.full {
            (self.full_violation, self.partial, self.visits) = (found.optimality.violation, 0, 0);
            self.features = found.visited + found.screened;
        } else {
            self.visits += found.visited;
        }
        self.threshold = (found.optimality.violation * THRESHOLD).min(self.l1 * MOST_THRESHOLD);
        self.was_full = self.full;
        self.partial += 1;
        let is_due = self.partial > MAX_PARTIAL && self.visits * FEWEST_VISITS >= self.features;
        self.full = found.optimality.violation <= FULL_BELOW * self.full_violation || is_due;
        // A full iteration that does not screen does not tell how many rest.
        if self.screens || !self.was_full {
            self.screens = found.visited * MOST_AWAKE <= self.features;
        }
        self.last = found;
    }
}

/// The threshold of rest, as a part of the violation in the last iteration.
const THRESHOLD: f64 = 0.02;
/// And at most this part of l1: of the features of an iteration from far away few will have a weight in the next ones.
pub(super) const MOST_THRESHOLD: f64 = 0.7;
/// A full iteration follows when the violation is below this part of that in the last full one.
const FULL_BELOW: f64 = 0.3;
/// Or after this many that were not, and visits of one in this many features, where fewer are awake.
const MAX_PARTIAL: u64 = 5;
const FEWEST_VISITS: u64 = 4;
/// Features that rest are screened where at most one in this many is awake.
const MOST_AWAKE: u64 = 8;
