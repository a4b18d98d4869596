//! How far weights are from the optimum, by their slopes only.

use megagrid_stages::Combine;
use serde::{Deserialize, Serialize};

/// Sums over features, by their weights w and slopes g of the loss, l2 included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Optimality {
    /// The largest violation of the optimality conditions: of |g| ≤ l1 at zero, of g = −l1 sign(w) elsewhere.
    pub violation: f64,
    /// Σ (l1 |w| + w g), the part of the duality gap that vanishes at the optimum.
    pub slackness: f64,
    /// |w|₁ of the features with a penalty.
    pub sizes: f64,
    /// Σ violation² / (2 l2), which the gap is at most where each feature has l2; infinite where one has l1 only.
    pub price: f64,
    /// The largest violation at zero, as a part of l1.
    pub excess: f64,
}

impl Optimality {
    /// Adds a feature: its weight, the slope of the loss by it, its l1 and l2.
    #[inline(always)]
    pub fn see(&mut self, w: f64, slope: f64, [l1, l2]: [f64; 2]) {
        let g = slope + l2 * w;
        let violation = if w == 0.0 { (g.abs() - l1).max(0.0) } else { (g + l1 * w.signum()).abs() };
        self.violation = self.violation.max(violation);
        self.slackness += l1 * w.abs() + w * g;
        self.sizes += if l1 + l2 > 0.0 { w.abs() } else { 0.0 };
        self.price += match () {
            () if l2 > 0.0 => violation * violation / (2.0 * l2),
            () if l1 > 0.0 => f64::INFINITY,
            () => violation * w.abs(),
        };
        if w == 0.0 && l1 > 0.0 {
            self.excess = self.excess.max(violation / l1);
        }
    }

    /// Tells whether a [certificate](super::Certificate) is worth its passes over the values: the gap that follows from all features,
    /// `sizes` being |w|₁ now, is about as small as the tolerance.
    #[must_use]
    pub fn is_near(&self, tolerance: f64, objective: f64, sizes: f64) -> bool {
        let near = SEEMS * tolerance * objective;
        let gap = self.slackness.abs() + self.violation * sizes;
        let is_cheap = || self.price <= near && self.excess <= SEEMS * EXCESS;
        tolerance > 0.0 && (gap <= near || is_cheap())
    }
}

impl Combine for Optimality {
    fn combine(&mut self, from: &mut Self) {
        let from = std::mem::take(from);
        self.violation = self.violation.max(from.violation);
        self.slackness += from.slackness;
        self.sizes += from.sizes;
        self.price += from.price;
        self.excess = self.excess.max(from.excess);
    }
}

/// A weight at zero may exceed l1 by this part of it.
pub(super) const EXCESS: f64 = 1e-4;
/// A gap seems near when it is this many times the tolerance: what it seems is on the safe side.
const SEEMS: f64 = 4.0;
