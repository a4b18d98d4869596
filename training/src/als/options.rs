//! Options of implicit feedback.

use megagrid_algorithms::als::Config;
use serde::{Deserialize, Serialize};

use super::data::Feedback;
use crate::options::{by_default, check_tolerance};
use crate::{Error, Options};

/// Options of implicit feedback.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct AlsOptions {
    /// Length of a user's and an item's vector.
    #[arg(long, default_value_t = Config::default().dims, value_name = "K")]
    pub dims: usize,
    /// Dimensions that are solved for at once, a multiple of 16 or all: small blocks make an iteration cheap (iALS++), all of them make
    /// it the exact minimum for each vector (iALS).
    #[arg(long, default_value_t = Config::default().block, value_name = "K")]
    pub block: usize,
    /// Weight of the regularizer.
    #[arg(long, default_value_t = Config::default().lambda, allow_negative_numbers = true)]
    pub lambda: f32,
    /// Weight of a unit of feedback against a pair without: the confidence is 1 + ALPHA · feedback [default: 10 over the mean of the feedback of
    /// pairs that have some, so that counts and seconds are learned as well as single signs].
    #[arg(long, allow_negative_numbers = true)]
    pub alpha: Option<f32>,
    /// Whether that is the default, which an update of the model finds anew.
    #[arg(skip)]
    #[serde(default)]
    pub alpha_by_mean: bool,
    /// How the regularizer's weight grows with how often a user or an item occurs: with (others / ALPHA + occurrences)^NU.
    #[arg(long, default_value_t = Config::default().nu, allow_negative_numbers = true)]
    pub nu: f32,
    /// Standard deviation of the first values, times the root of K.
    #[arg(long, default_value_t = Config::default().init_std, allow_negative_numbers = true)]
    pub init_std: f32,
    /// Times that all users and all items are solved for.
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// End when the objective changes by no more than this part of itself [default: 0, never].
    #[arg(long, default_value_t = 0.0, hide_default_value = true, allow_negative_numbers = true)]
    pub tolerance: f64,
}

impl Default for AlsOptions {
    fn default() -> Self {
        by_default()
    }
}

impl AlsOptions {
    /// Returns the parameters; those of some feedback have a weight of it.
    #[must_use]
    pub fn config(&self) -> Config {
        let Self { dims, block, lambda, alpha, nu, init_std, .. } = *self;
        Config { dims, block, lambda, alpha: alpha.unwrap_or(Config::default().alpha), nu, init_std }
    }

    /// Returns the parameters for some feedback.
    #[must_use]
    pub fn config_for(&self, feedback: &Feedback) -> Config {
        let alpha = self.alpha.unwrap_or(Config::default().alpha / feedback.mean);
        Config { alpha, ..self.config() }
    }
}

impl Options for AlsOptions {
    const FREE: &'static [&'static str] = &["iterations", "tolerance", "alpha_by_mean"];

    fn check(&self) -> Result<(), Error> {
        self.config().check()?;
        check_tolerance(self.tolerance)
    }

    fn iterations(&self) -> u64 {
        self.iterations
    }

    fn tolerance(&self) -> f64 {
        self.tolerance
    }
}
