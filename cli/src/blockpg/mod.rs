//! `megagrid blockpg`: sparse logistic regression of labelled samples.

mod data;
pub mod demo;
pub mod saved;
mod train;

use std::path::PathBuf;

use megagrid_algorithms::blockpg::Config;
use megagrid_datasets::Edges;
use megagrid_engine::Settings;
use megagrid_partition::EdgeSource;
use serde::Serialize;

use crate::common::{self, Common, Consistency, Source};
use crate::failure::usage;
use crate::record::Phases;
use crate::session;
pub use data::{Unseen, normalize, read as read_samples};
pub use train::{Job, Trained, train};

/// Fits a sparse logistic regression: weights of features, most of them zero, that tell the labels of samples.
///
/// Minimizes: sum of log losses + l1 · |w|₁ + l2/2 · |w|². A run that converged prints a certificate: a bound below which no
/// model's objective is. The model holds weights.parquet (id, weight), of features whose weight is not zero.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  megagrid blockpg clicks.libsvm --l1 1 --intercept --holdout 0.1 --model clicks\n  \
    megagrid blockpg news20.gz --positive 1,2,3,4,5 --normalize --l1 10,1,0.1"
)]
pub struct Args {
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub samples: SampleOptions,
    #[command(flatten)]
    pub options: Options,
    #[command(flatten)]
    pub common: Common,
}

/// Options about the samples.
#[derive(Clone, Debug, Default, Serialize, clap::Args)]
pub struct SampleOptions {
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
}

/// Options of the algorithm.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
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
    /// Blocks of features, of about equally many values [default: 20 to 100, one for 65,536 values, at most 1 a feature].
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

/// Blocks of features, if nothing is said: with more, fewer iterations are needed and each costs more, as workers wait for each
/// other a few times in each block.
fn default_blocks(values: usize) -> u64 {
    (values as u64 / BLOCK_VALUES).clamp(20, 100)
}

/// Below, waiting counts.
const BLOCK_VALUES: u64 = 1 << 16;

impl Options {
    /// Returns the parameters for each l1, the largest first, checked.
    pub fn path(&self) -> anyhow::Result<Vec<Config>> {
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return Err(usage(format!("tolerance is {}; expected 0 or a number above 0", self.tolerance)));
        }
        let mut path = self.l1.clone();
        path.sort_by(|a, b| b.total_cmp(a));
        path.into_iter()
            .map(|l1| {
                let config = Config { l1, l2: self.l2 };
                config.check()?;
                Ok(config)
            })
            .collect()
    }

    /// Returns the number of blocks.
    pub fn num_blocks(&self, values: usize, features: usize) -> u64 {
        self.blocks.unwrap_or_else(|| default_blocks(values)).min(features.max(1) as u64)
    }

    /// Returns the values of a block.
    pub fn block_values(&self, values: usize, features: usize) -> u64 {
        let blocks = self.num_blocks(values, features);
        self.batch.unwrap_or((values as u64).div_ceil(blocks)).max(1)
    }

    /// Returns the options as they stand in a run record.
    pub fn resolved(&self, block_values: u64) -> serde_json::Value {
        serde_json::json!({
            "l1": self.l1, "l2": self.l2, "intercept": self.intercept, "warm_start": self.warm_start,
            "blocks": self.blocks, "batch": block_values, "delay": self.delay, "iterations": self.iterations,
            "tolerance": self.tolerance,
        })
    }
}

impl Args {
    /// Returns how the run is to go, and the common options as they stand in a record.
    pub fn prepare(&self) -> anyhow::Result<(Settings, common::Resolved)> {
        let mut common = self.common.clone();
        if self.options.delay.is_some() {
            if common.consistency != Consistency::Bsp {
                return Err(usage("--delay is --consistency ssp --slack by another name; give one of them"));
            }
            common.consistency = Consistency::Ssp;
            common.slack = self.options.delay;
        }
        common.prepare()
    }

    /// Loads samples and makes a job of them.
    pub fn job(&self, settings: Settings) -> anyhow::Result<(Job, Phases)> {
        let path = self.options.path()?;
        let mut phases = Phases::default();
        let start = self.options.warm_start.as_deref().map(saved::read).transpose()?;
        let intercept = self.options.intercept;
        let data = data::load(&self.source, &self.samples, intercept, &self.common, &mut phases)?;
        Ok((Job::new(data, path, &self.options, start, settings), phases))
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let (settings, common) = args.prepare()?;
    let (job, phases) = args.job(settings)?;
    let resolved = resolved(args, &job, &common)?;
    let trained = train(job, &args.common, resolved, phases)?;
    if let Some(directory) = &args.common.model {
        trained.write(directory)?;
    }
    if args.common.wants_summary() {
        common::print(&format!("{}{}", session::summary(&trained.record), trained.findings()))?;
    }
    session::write_record(&trained.record, &args.common)
}

/// Returns every option as it stands in a run record.
pub fn resolved(args: &Args, job: &Job, common: &common::Resolved) -> anyhow::Result<serde_json::Value> {
    let own = args.options.resolved(job.block_values);
    let samples = serde_json::to_value(&args.samples)?;
    Ok(common::join([args.source.resolved(), samples, own, serde_json::to_value(common)?]))
}

/// Returns what training with default options would need.
pub fn memory(samples: &Edges<f32>) -> anyhow::Result<u64> {
    let values = (samples.num_edges() as u64).div_ceil(default_blocks(samples.num_edges())).max(1);
    let sequence = megagrid_algorithms::blockpg::sequence(values);
    Ok(megagrid_engine::plan(samples, &sequence, &Settings::default())?.memory_bytes)
}

/// Prints what the engine would do.
pub fn plan(args: &Args) -> anyhow::Result<()> {
    let (settings, _) = args.prepare()?;
    let (job, _) = args.job(settings)?;
    train::plan(&job)
}
