//! Options of matrix factorization.

use megagrid_algorithms::mf::Config;
use megagrid_engine::Settings;
use serde::{Deserialize, Serialize};

use crate::options::{check_tolerance, check_work_per_clock};
use crate::{Error, Options};

/// How gradients are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gradient {
    /// Rating by rating, both rows where they are.
    InPlace,
    /// Summed over a batch, then applied.
    Batch,
}

/// Options of matrix factorization.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FactorOptions {
    /// Length of a factor.
    pub dims: usize,
    /// Weight of the regularizer, for each rating.
    pub lambda: f32,
    /// Size of a step along the gradient.
    pub step: f32,
    /// Standard deviation of the first values.
    pub init_std: f32,
    /// Whether steps adapt to each row (AdaGrad).
    pub adaptive: bool,
    /// Decay of plain steps.
    pub decay: f32,
    /// Whether users and items have biases.
    pub biases: bool,
    /// Whether the mean rating is subtracted first.
    pub mean: bool,
    /// How gradients are applied.
    pub gradient: Gradient,
    /// Passes over the ratings.
    pub iterations: u64,
    /// Relative change of the objective that ends the run; 0: none.
    pub tolerance: f64,
    /// Ratings in a mini-batch, which is a clock.
    pub batch: Option<u64>,
    /// The same, as a part of all ratings.
    pub work_per_clock: Option<f64>,
}

impl Default for FactorOptions {
    fn default() -> Self {
        let Config { dims, lambda, step, adaptive, decay, biases, init_std } = Config::default();
        Self {
            dims,
            lambda,
            step,
            init_std,
            adaptive,
            decay,
            biases,
            mean: true,
            gradient: Gradient::InPlace,
            iterations: 20,
            tolerance: 0.0,
            batch: None,
            work_per_clock: None,
        }
    }
}

/// Clocks of an iteration in which every process changes its own replica of items: sums of longer clocks' changes diverge.
const MIRRORED_CLOCKS: u64 = 16;
/// Mini-batches in an iteration by batch gradients, if nothing is said.
const BATCHES: u64 = 64;

impl FactorOptions {
    /// Returns the parameters.
    #[must_use]
    pub fn config(&self) -> Config {
        let Self { dims, lambda, step, adaptive, decay, biases, init_std, .. } = *self;
        Config { dims, lambda, step, adaptive, decay, biases, init_std }
    }

    /// Returns the ratings of a mini-batch.
    pub(super) fn batch(&self, ratings: u64, settings: &Settings) -> u64 {
        let part = |part: f64| ((part * ratings as f64).ceil() as u64).max(1);
        let mirrored = settings.peers.is_some() && settings.slack != Some(0);
        let default = match self.gradient {
            Gradient::InPlace if mirrored => ratings.div_ceil(MIRRORED_CLOCKS),
            Gradient::InPlace => ratings,
            Gradient::Batch => ratings.div_ceil(BATCHES),
        };
        self.batch.or(self.work_per_clock.map(part)).unwrap_or(default).clamp(1, ratings.max(1))
    }
}

impl Options for FactorOptions {
    const FREE: &'static [&'static str] = &["iterations", "tolerance", "work_per_clock"];

    fn check(&self) -> Result<(), Error> {
        self.config().check()?;
        check_tolerance(self.tolerance)?;
        self.work_per_clock.map_or(Ok(()), check_work_per_clock)
    }

    fn iterations(&self) -> u64 {
        self.iterations
    }

    fn tolerance(&self) -> f64 {
        self.tolerance
    }

    fn refuses(&self, name: &str) -> Option<&'static str> {
        (name == "decay" && self.adaptive).then_some("decay is of plain steps; give --plain-sgd")
    }

    fn replaces(name: &str) -> Option<&'static str> {
        (name == "batch").then_some("work_per_clock")
    }
}
