//! Matrix factorization: finds p_u, q_i in R^k that minimise, over the observed ratings r_ui,
//!
//! ```text
//! Σ (r_ui − μ − p_u·q_i)² + λ (|p_u|² + |q_i|²)                             [Koren, Bell and Volinsky 2009, eq. 2]
//! ```
//!
//! The regularizer counts once per rating. μ is the mean rating, or 0. Ratings are counted in a unit near their standard deviation, so that
//! λ and steps are good for stars and percents alike: p and q of a model are √unit times those that are trained.
//!
//! With biases, a user's row is `[p, b_u, 1]` and an item's `[q, 1, b_i]`, so that the same product is `p·q + b_u + b_i` (eq. 4 there); the ones stay ones.
//!
//! Three forms. [`in_place`]: stochastic gradient descent, rating by rating, [`Update`](megagrid_stages::Update) on both
//! sides: the default. [`batch`]: gradients of a batch are summed and applied at the masters, as in TuX² Figure 5. Each by several
//! [optimizers](Optimizer); [`by_coordinate`] has the forms of those that remember something of each coordinate. [`alternating`]: least
//! squares, without steps.
//!
//! Input: users × items with a real value; repeated pairs count as often. Memory: k floats (padded to 16) and one for the
//! step a vertex, or as many more as the optimizer remembers, 8 bytes a rating. Not for: implicit feedback, where a missing rating
//! says something.

pub mod alternating;
pub mod batch;
pub mod by_coordinate;
pub mod in_place;
mod model;
mod optimizer;
mod test_set;

pub use model::{Model, Objective, SquaredErrors, Sums, Tally};
pub use optimizer::{Optimizer, Rule, State};
pub use test_set::{Rows, TestSet};

use megagrid_partition::SplitMix;

use crate::Error;

/// Parameters of all forms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Length k of a factor.
    pub dims: usize,
    /// Weight λ of the regularizer.
    pub lambda: f32,
    /// How gradients become steps.
    pub optimizer: Optimizer,
    /// Step size η in the first iteration.
    pub step: f32,
    /// Decay of the step size, but for AdaGrad: it is `step / (1 + decay · (iteration − 1))`.
    pub decay: f32,
    /// Whether users and items have biases.
    pub biases: bool,
    /// Standard deviation of first values.
    pub init_std: f32,
    /// What a rating is divided by, less the mean, to be trained on. All other parameters are of ratings in this unit; a model is of
    /// ratings as they are.
    pub unit: f32,
}

impl Default for Config {
    fn default() -> Self {
        let optimizer = Optimizer::AdaGrad;
        Self { dims: 32, lambda: 0.05, optimizer, step: 0.1, decay: 0.1, biases: true, init_std: 0.03, unit: 1.0 }
    }
}

impl Config {
    /// Checks the ranges of all parameters.
    ///
    /// # Errors
    /// The first that is out of range.
    pub fn check(&self) -> Result<(), Error> {
        if self.dims == 0 || self.dims > 4096 {
            return Err(Error::setting("dims", self.dims, "1 to 4096"));
        }
        for (name, value) in [("step", self.step), ("init-std", self.init_std), ("unit", self.unit)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::setting(name, value, "a number above 0"));
            }
        }
        for (name, value) in [("lambda", self.lambda), ("decay", self.decay)] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Error::setting(name, value, "0 or a number above 0"));
            }
        }
        self.optimizer.check()
    }

    /// Tells whether steps adapt to rows, or are plain.
    ///
    /// # Panics
    /// Where they follow from coordinates, or there are none.
    fn is_adaptive(&self) -> bool {
        match self.optimizer {
            Optimizer::Sgd => false,
            Optimizer::AdaGrad => true,
            Optimizer::ByCoordinate(_) | Optimizer::Alternating => panic!("{:?} takes no such steps", self.optimizer),
        }
    }

    /// Returns the size of a step that does not adapt to rows.
    #[inline(always)]
    fn plain_step(&self, iteration: u64) -> f32 {
        self.step / (1.0 + self.decay * (iteration - 1) as f32)
    }

    /// Returns the items of a row: the factor, and the bias and its one.
    #[must_use]
    pub fn row_dims(&self) -> usize {
        self.dims + if self.biases { 2 } else { 0 }
    }

    /// Returns what constant stands where in a user's row.
    fn user_one(&self) -> Option<usize> {
        self.biases.then_some(self.dims + 1)
    }

    /// Returns what constant stands where in an item's row.
    fn item_one(&self) -> Option<usize> {
        self.biases.then_some(self.dims)
    }

    /// Sets the first values of a user's row: normal by a seeded hash of the vertex.
    pub fn init_user(&self, seed: u64, user: usize, row: &mut [f32]) {
        self.init(seed, 2 * user as u64, row, self.user_one());
    }

    /// Sets a user's row to values of a model.
    pub fn set_user(&self, row: &mut [f32], factor: &[f32], bias: f32) {
        self.set(row, factor, bias, self.dims);
    }

    /// Sets an item's row to values of a model.
    pub fn set_item(&self, row: &mut [f32], factor: &[f32], bias: f32) {
        self.set(row, factor, bias, self.dims + 1);
    }

    fn set(&self, row: &mut [f32], factor: &[f32], bias: f32, at: usize) {
        let root = self.unit.sqrt();
        row.iter_mut().zip(factor).for_each(|(to, value)| *to = value / root);
        if self.biases {
            row[at] = bias / self.unit;
        }
    }

    /// Returns a rating, less the mean, in the unit: what is trained on.
    #[inline(always)]
    #[must_use]
    pub fn in_unit(&self, rating: f32, mean: f32) -> f32 {
        (rating - mean) / self.unit
    }

    /// Takes the factor out of the row of a vertex without ratings: what is predicted for it is the mean and the other end's bias.
    pub fn clear_unrated(&self, row: &mut [f32]) {
        row[..self.dims].fill(0.0);
    }

    /// Sets the first values of an item's row.
    pub fn init_item(&self, seed: u64, item: usize, row: &mut [f32]) {
        self.init(seed, 2 * item as u64 + 1, row, self.item_one());
    }

    fn init(&self, seed: u64, vertex: u64, row: &mut [f32], one: Option<usize>) {
        let mut random = SplitMix::new(seed, vertex);
        row[..self.dims].iter_mut().for_each(|value| *value = self.init_std * normal(&mut random));
        if let Some(one) = one {
            row[one] = 1.0;
        }
    }
}

/// Draws a number that is nearly standard normal: the sum of four uniform ones, at a tenth of the time that an exact draw takes, of which a row
/// of first values takes as many as a few iterations.
#[inline]
pub(crate) fn normal(random: &mut SplitMix) -> f32 {
    let bits = random.bits();
    let sum: u32 = (0..4).map(|part| u32::from((bits >> (16 * part)) as u16)).sum();
    (sum as f32 - MEAN_OF_FOUR) * ONE_OVER_DEVIATION
}

/// Of the sum of four numbers that are uniform in 0 to 65,535: the mean, and √(3 / (65,536² − 1)).
const MEAN_OF_FOUR: f32 = 131_070.0;
const ONE_OVER_DEVIATION: f32 = 2.642_915e-5;

/// Returns what a step takes an error for, in the unit of ratings: the first step along that of a wrong rating, a thousand times all others,
/// would go so far that no later one comes back.
#[inline(always)]
fn bounded(error: f32) -> f32 {
    error.clamp(-10.0, 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_values_have_the_mean_and_variance_of_the_normal_distribution() {
        let mut random = SplitMix::new(3, 4);
        let draws: Vec<f64> = (0..100_000).map(|_| f64::from(normal(&mut random))).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        let beyond = draws.iter().filter(|draw| draw.abs() > 1.96).count() as f64 / draws.len() as f64;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02 && (beyond - 0.05).abs() < 0.005);
    }
}
