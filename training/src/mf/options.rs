//! Options of matrix factorization.

use clap::ArgAction;
use megagrid_algorithms::mf::Config;
use megagrid_engine::Settings;
use serde::{Deserialize, Serialize};

use crate::options::{by_default, check_tolerance, check_work_per_clock};
use crate::{Error, Options, UpdatedOn};

/// How gradients are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Gradient {
    /// Rating by rating, both rows where they are.
    InPlace,
    /// Summed over a batch, then applied.
    Batch,
}

/// Options of matrix factorization.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct FactorOptions {
    /// Length of a user's and an item's vector.
    #[arg(long, default_value_t = Config::default().dims, value_name = "K")]
    pub dims: usize,
    /// Weight of the regularizer, for each rating.
    #[arg(long, default_value_t = Config::default().lambda, allow_negative_numbers = true)]
    pub lambda: f32,
    /// Size of a step along the gradient.
    #[arg(long, default_value_t = Config::default().step, allow_negative_numbers = true)]
    pub step: f32,
    /// Standard deviation of the first values.
    #[arg(long, default_value_t = Config::default().init_std, allow_negative_numbers = true)]
    pub init_std: f32,
    /// Whether steps adapt to each row (AdaGrad).
    #[arg(long = "plain-sgd", action = ArgAction::SetFalse, help = "Plain steps that decay, instead of steps that adapt to each row (AdaGrad)")]
    pub adaptive: bool,
    /// Decay of plain steps: step / (1 + decay · (iteration − 1)).
    #[arg(long, default_value_t = Config::default().decay, requires = "adaptive", allow_negative_numbers = true)]
    pub decay: f32,
    /// Whether users and items have biases.
    #[arg(long = "no-biases", action = ArgAction::SetFalse, help = "Factors only: a fifth to a half faster, less exact")]
    pub biases: bool,
    /// Whether the mean rating is subtracted first.
    #[arg(long = "no-mean", action = ArgAction::SetFalse, help = "Leave the mean rating in")]
    pub mean: bool,
    /// How gradients are applied.
    #[arg(long, value_enum, default_value_t = Gradient::InPlace)]
    pub gradient: Gradient,
    /// Passes over the ratings.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// End when the objective changes by no more than this part of itself [default: 0, never].
    #[arg(long, default_value_t = 0.0, hide_default_value = true, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Ratings in a mini-batch, which is a clock [default: all in place, a 64th for batch].
    #[arg(long, value_name = "RATINGS", value_parser = clap::value_parser!(u64).range(1..))]
    pub batch: Option<u64>,
    /// Iterations from one clock to the next: above 0, at most 1, which makes mini-batches; or a whole number, where steps are in place
    /// and all ratings are a batch.
    #[arg(
        long,
        value_name = "X",
        allow_negative_numbers = true,
        conflicts_with = "batch",
        help_heading = "Consistency"
    )]
    pub work_per_clock: Option<f64>,
}

impl Default for FactorOptions {
    fn default() -> Self {
        by_default()
    }
}

/// Clocks of an iteration in which every process changes its own replica of items: sums of longer clocks' changes diverge.
const MIRRORED_CLOCKS: u64 = 16;
/// Mini-batches in an iteration by batch gradients, if nothing is said.
const BATCHES: u64 = 64;

/// Passes over new ratings only: with more, rows follow them at the cost of the ratings that they were trained on, which nothing
/// reminds them of (measured: the error on test data is least after 3, and worse than before from 10 on).
const PASSES_OF_NEW: u64 = 3;

impl FactorOptions {
    /// Returns the parameters.
    #[must_use]
    pub fn config(&self) -> Config {
        let Self { dims, lambda, step, adaptive, decay, biases, init_std, .. } = *self;
        Config { dims, lambda, step, adaptive, decay, biases, init_std }
    }

    /// Returns the ratings of a mini-batch.
    pub(super) fn batch(&self, ratings: u64, settings: &Settings) -> u64 {
        let part = |part: f64| ((part.min(1.0) * ratings as f64).ceil() as u64).max(1);
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

    /// A batch is the same part of the ratings.
    fn continued(&self, on: UpdatedOn) -> Self {
        let batch = self.batch.filter(|_| self.work_per_clock.is_none());
        let iterations = if on == UpdatedOn::New { PASSES_OF_NEW.min(self.iterations) } else { self.iterations };
        Self { batch, iterations, ..self.clone() }
    }

    fn refuses(&self, name: &str) -> Option<&'static str> {
        (name == "decay" && self.adaptive).then_some("decay is of plain steps; give --plain-sgd")
    }

    fn replaces(name: &str) -> Option<&'static str> {
        (name == "batch").then_some("work_per_clock")
    }
}
