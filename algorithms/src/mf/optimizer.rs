//! Optimizers: how gradients become steps.
//!
//! With g the negative half gradient, along which a plain step goes, η the size of a step, and 0 whatever is remembered at first:
//!
//! | optimizer | remembers | adds to a coordinate | source |
//! |---|---|---|---|
//! | `Sgd` | nothing | `η g` | Robbins and Monro 1951 |
//! | `AdaGrad`, by row | `s += mean of g²` | `η g / √(1 + s)` | Duchi, Hazan and Singer 2011 |
//! | [`Rule::Momentum`] | `v = μ v + η g` | `v` | Polyak 1964; Sutskever et al. 2013, eq. 1 and 2 |
//! | [`Rule::Nesterov`] | `v = μ v + η g` | `μ v + η g` | Nesterov 1983; Bengio et al. 2013, eq. 7 |
//! | [`Rule::RmsProp`] | `r = ρ r + (1 − ρ) g²` | `η g / (√r + ε)` | Tieleman and Hinton 2012 |
//! | [`Rule::Adam`] | `m = μ m + (1 − μ) g`, `r = ρ r + (1 − ρ) g²` | `η m̂ / (√r̂ + ε)` | Kingma and Ba 2015, algorithm 1 |
//! | [`Rule::AdaDelta`] | `r = ρ r + (1 − ρ) g²`, `u = ρ u + (1 − ρ) d²` | `η d`, `d = g √(u + ε) / √(r + ε)` | Zeiler 2012, algorithm 1 |
//!
//! [`Optimizer::Alternating`] solves for whole rows and takes no steps.
//!
//! The sizes of steps of the first two are numbers of a row; the others are rules for each coordinate, in `rule.rs`. ε is 1e-8, of
//! AdaDelta 1e-6. m̂ is m over the weights that its terms have together: `w = μ w + (1 − μ)`, which is 1 − μ^t after t steps; r̂ likewise.

mod rule;

use megagrid_stages::{ROW_ALIGN, row_width};

pub use self::rule::{Rule, State};
use crate::Error;

/// How gradients become steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimizer {
    /// Plain steps, whose size decays.
    Sgd,
    /// Steps that adapt to the gradients that a row has had.
    AdaGrad,
    /// Steps by what is remembered of each coordinate.
    ByCoordinate(Rule),
    /// No steps: each row is the best that there is where its neighbours' stand.
    Alternating,
}

impl Optimizer {
    /// Checks the ranges of its parameters.
    ///
    /// # Errors
    /// The first that is out of range.
    pub(super) fn check(&self) -> Result<(), Error> {
        let Self::ByCoordinate(rule) = *self else { return Ok(()) };
        let (momentum, rho) = match rule {
            Rule::Momentum { momentum } | Rule::Nesterov { momentum } => (momentum, 0.0),
            Rule::RmsProp { rho } | Rule::AdaDelta { rho } => (0.0, rho),
            Rule::Adam { momentum, rho } => (momentum, rho),
        };
        for (name, value) in [("momentum", momentum), ("rho", rho)] {
            if !(0.0..1.0).contains(&value) {
                return Err(Error::setting(name, value, "0 or a number above 0 and below 1"));
            }
        }
        Ok(())
    }

    /// Returns the numbers that are remembered of a row of `dims` items by coordinate: the capacity of a [`State`].
    #[must_use]
    pub fn remembered(&self, dims: usize) -> usize {
        match self {
            Self::Sgd | Self::AdaGrad | Self::Alternating => 0,
            Self::ByCoordinate(Rule::Momentum { .. } | Rule::Nesterov { .. } | Rule::RmsProp { .. }) => row_width(dims),
            Self::ByCoordinate(Rule::AdaDelta { .. }) => 2 * row_width(dims),
            Self::ByCoordinate(Rule::Adam { .. }) => 2 * row_width(dims) + ROW_ALIGN,
        }
    }

    /// Returns the rule of each coordinate.
    ///
    /// # Panics
    /// Where steps follow from rows, or there are none.
    pub(super) fn rule(&self) -> Rule {
        match self {
            Self::ByCoordinate(rule) => *rule,
            Self::Sgd | Self::AdaGrad | Self::Alternating => {
                panic!("{self:?} remembers nothing of a coordinate: its forms are others")
            }
        }
    }
}
