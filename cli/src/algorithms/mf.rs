//! Options of `megagrid mf`.

use std::path::PathBuf;

use megagrid_algorithms::mf::Config;
use megagrid_training::mf::{FactorOptions, Factorization, Gradient, Origin};
use serde_json::Value;

use crate::choice::{Choice, choice};
use crate::data::Kind;
use crate::entry::{Spelling, Trains};
use crate::source::Source;

impl Choice for Gradient {
    const VALUES: &'static [(&'static str, &'static str)] =
        &[("in-place", "Rating by rating, both rows where they are"), ("batch", "Summed over a batch, then applied")];
}

/// Factorizes ratings: finds for every user and item a vector, so that products of vectors predict ratings.
///
/// The model holds users.npy and items.npy ([n, dims], f32), the ids of their rows in users.parquet and items.parquet,
/// and biases if there are some. A prediction is: mean + user · item + biases.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid mf ratings.csv --holdout 0.1 --model movies --report movies.html")]
pub struct Options {
    /// Ratings to test on after each iteration, in any text format.
    #[arg(long, value_name = "FILE", conflicts_with = "holdout", help_heading = "Quality on unseen ratings")]
    pub test: Option<PathBuf>,
    /// Part of the ratings, above 0 and below 1, to keep for testing.
    #[arg(long, value_name = "F", allow_negative_numbers = true, help_heading = "Quality on unseen ratings")]
    pub holdout: Option<f64>,
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
    /// Plain steps that decay, instead of steps that adapt to each row (AdaGrad).
    #[arg(long)]
    pub plain_sgd: bool,
    /// Decay of plain steps: step / (1 + decay · (iteration − 1)) [default: 0.1].
    #[arg(long, requires = "plain_sgd", allow_negative_numbers = true)]
    pub decay: Option<f32>,
    /// Learn a bias for each user and item, which is the default.
    #[arg(long, overrides_with = "no_biases")]
    pub biases: bool,
    /// Factors only: a fifth to a half faster, less exact.
    #[arg(long)]
    pub no_biases: bool,
    /// Subtract the mean rating first, which is the default.
    #[arg(long, overrides_with = "no_mean")]
    pub mean: bool,
    /// Leave the mean rating in.
    #[arg(long)]
    pub no_mean: bool,
    /// How gradients are applied.
    #[arg(long, default_value = "in-place", value_parser = choice::<Gradient>())]
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
    /// Size of a mini-batch, as a part of all ratings: above 0, at most 1.
    #[arg(
        long,
        value_name = "X",
        allow_negative_numbers = true,
        conflicts_with = "batch",
        help_heading = "Consistency"
    )]
    pub work_per_clock: Option<f64>,
}

impl Trains for Options {
    type Algorithm = Factorization;
    const KIND: Kind = Kind::Ratings;
    const TUNED_ITERATIONS: Option<&'static str> = Some("100");

    fn options(&self) -> anyhow::Result<FactorOptions> {
        Ok(FactorOptions {
            dims: self.dims,
            lambda: self.lambda,
            step: self.step,
            init_std: self.init_std,
            adaptive: !self.plain_sgd,
            decay: self.decay.unwrap_or(Config::default().decay),
            biases: !self.no_biases,
            mean: !self.no_mean,
            gradient: self.gradient,
            iterations: self.iterations,
            tolerance: self.tolerance,
            batch: self.batch,
            work_per_clock: self.work_per_clock,
        })
    }

    fn origin(&self, source: &Source) -> Origin {
        Origin { source: source.to_read(), test: self.test.clone(), holdout: self.holdout }
    }

    fn spell(name: &str, value: &Value, all: &Value) -> Spelling {
        match (name, value.as_bool()) {
            ("adaptive", Some(false)) => Spelling::Flag("--plain-sgd"),
            ("biases", Some(false)) => Spelling::Flag("--no-biases"),
            ("mean", Some(false)) => Spelling::Flag("--no-mean"),
            ("adaptive" | "biases" | "mean", _) => Spelling::Absent,
            ("decay", _) if all["adaptive"] == true => Spelling::Absent,
            _ => Spelling::Usual,
        }
    }
}
