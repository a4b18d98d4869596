//! Parameters.

use super::control::MOST_THRESHOLD;
use super::{Heading, State, Totals};
use crate::Error;

/// Parameters of the objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Weight of |w|₁.
    pub l1: f64,
    /// Weight of |w|²/2.
    pub l2: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { l1: 1.0, l2: 0.0 }
    }
}

impl Config {
    /// Checks the ranges of all parameters.
    ///
    /// # Errors
    /// The first that is out of range.
    pub fn check(&self) -> Result<(), Error> {
        for (name, value) in [("l1", self.l1), ("l2", self.l2)] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Error::setting(name, value, "0 or a number above 0"));
            }
        }
        if self.l1 == 0.0 && self.l2 == 0.0 {
            // Where a feature tells the labels apart no weight is large enough.
            return Err(Error::setting("l1", self.l1, "a number above 0, or l2 above 0"));
        }
        Ok(())
    }

    /// Returns what all workers know before the first iteration.
    #[must_use]
    pub fn state(&self) -> State {
        State {
            begun: 0,
            l1: self.l1,
            l2: self.l2,
            descending: 0,
            apart: false,
            damping: 1.0,
            full: true,
            threshold: self.l1 * MOST_THRESHOLD,
            found: Totals::default(),
            last: Totals::default(),
            was_full: false,
            full_violation: f64::INFINITY,
            partial: 0,
            screens: true,
            features: 0,
            visits: 0,
            heading: Heading::default(),
        }
    }

    /// Returns the penalty of a model: `l1 |w|₁ + l2/2 |w|²`. The intercept is not among the weights.
    #[must_use]
    pub fn penalty(&self, weights: impl Iterator<Item = f64>) -> f64 {
        weights.map(|w| self.l1 * w.abs() + 0.5 * self.l2 * w * w).sum()
    }
}
