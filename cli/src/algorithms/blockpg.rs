//! Options of `megagrid blockpg`.

use std::path::PathBuf;

use megagrid_training::blockpg::{LinearOptions, Origin, Regression, SampleOptions};
use megagrid_training::{Consistency, RunOptions};
use serde_json::Value;

use crate::data::Kind;
use crate::entry::{Spelling, Trains};
use crate::failure::usage;
use crate::source::Source;

/// Fits a sparse logistic regression: weights of features, most of them zero, that tell the labels of samples.
///
/// Minimizes: sum of log losses + l1 · |w|₁ + l2/2 · |w|². A run that converged prints a certificate: a bound below which no
/// model's objective is. The model holds weights.parquet (id, weight), of features whose weight is not zero.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  megagrid blockpg clicks.libsvm --l1 1 --intercept --holdout 0.1 --model clicks\n  \
    megagrid blockpg news20.gz --positive 1,2,3,4,5 --normalize --l1 10,1,0.1"
)]
pub struct Options {
    /// Labels that become 1, all others -1 [default: they have to be -1 and 1, or 0 and 1].
    #[arg(long, value_name = "LABELS", value_delimiter = ',', allow_negative_numbers = true)]
    pub positive: Vec<f32>,
    /// Scale the values of each sample to unit length.
    #[arg(long)]
    pub normalize: bool,
    /// Weights of samples, 0 or above: a text with one number a line, in the order of the samples.
    #[arg(long, value_name = "FILE")]
    pub sample_weights: Option<PathBuf>,
    /// Samples to test on after each iteration, in any format.
    #[arg(long, value_name = "FILE", conflicts_with = "holdout", help_heading = "Quality on unseen samples")]
    pub test: Option<PathBuf>,
    /// Part of the samples, above 0 and below 1, to keep for testing.
    #[arg(long, value_name = "F", allow_negative_numbers = true, help_heading = "Quality on unseen samples")]
    pub holdout: Option<f64>,
    /// Weight of |w|₁. Several: a path, the largest first, each begun from the one before; the last is the model.
    #[arg(long, default_value = "1", value_name = "X", value_delimiter = ',', allow_negative_numbers = true)]
    pub l1: Vec<f64>,
    /// Weight of |w|²/2, in addition (an elastic net).
    #[arg(long, default_value_t = 0.0, value_name = "X", allow_negative_numbers = true)]
    pub l2: f64,
    /// Fit an intercept, which has no penalty.
    #[arg(long)]
    pub intercept: bool,
    /// Begin from the weights of a model.
    #[arg(long, value_name = "MODEL")]
    pub warm_start: Option<PathBuf>,
    /// Blocks of features that step together, of about equally many values [default: by size; none where one worker trains on samples
    /// that fit the caches, or samples have many values: then features step one after the other, by one worker].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub blocks: Option<u64>,
    /// Size of a block in values, instead of --blocks.
    #[arg(long, value_name = "VALUES", conflicts_with = "blocks", value_parser = clap::value_parser!(u64).range(1..))]
    pub batch: Option<u64>,
    /// Blocks that a worker may be ahead of the slowest, computing gradients that do not know of as many steps:
    /// --consistency ssp --slack N under the algorithm's own name.
    #[arg(long, value_name = "N", help_heading = "Consistency", conflicts_with = "slack")]
    pub delay: Option<u64>,
    /// Passes over the features at most, for each l1.
    #[arg(long, default_value_t = 2000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// End when the objective is known to be within this part of the optimum's [0: never].
    #[arg(long, default_value_t = 1e-6, allow_negative_numbers = true)]
    pub tolerance: f64,
}

impl Trains for Options {
    type Algorithm = Regression;
    const KIND: Kind = Kind::Samples;

    fn options(&self) -> anyhow::Result<LinearOptions> {
        let Self { l1, l2, intercept, warm_start, blocks, batch, delay, iterations, tolerance, .. } = self.clone();
        Ok(LinearOptions { l1, l2, intercept, warm_start, blocks, batch, delay, iterations, tolerance })
    }

    fn take_positive(&mut self) -> anyhow::Result<Vec<f32>> {
        Ok(std::mem::take(&mut self.positive))
    }

    fn origin(&self, source: &Source) -> Origin {
        let Self { positive, normalize, sample_weights, test, holdout, intercept, .. } = self.clone();
        let options = SampleOptions { positive, normalize, sample_weights, test, holdout };
        Origin { source: source.to_read(), options, intercept }
    }

    /// A delay is a slack, which is written as such.
    fn spell(name: &str, _: &Value, _: &Value) -> Spelling {
        if name == "delay" { Spelling::Absent } else { Spelling::Usual }
    }

    fn run_options(&self, run: RunOptions) -> anyhow::Result<RunOptions> {
        if self.delay.is_none() {
            return Ok(run);
        }
        if run.consistency != Consistency::Bsp {
            return Err(usage("--delay is --consistency ssp --slack by another name; give one of them"));
        }
        Ok(RunOptions { consistency: Consistency::Ssp, slack: self.delay, ..run })
    }
}
