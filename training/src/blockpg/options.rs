//! Options of sparse logistic regression.

use megagrid_algorithms::blockpg::{Config, Parabola};
use megagrid_engine::Settings;
use serde::{Deserialize, Serialize};

use super::penalties::Penalties;
use crate::options::{by_default, check_tolerance, without_free};
use crate::{Error, Options};

/// Options of sparse logistic regression.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct LinearOptions {
    /// Weight of |w|₁. Several, as 4,2,1: a path, the largest first, each begun from the one before. The model is the last or, with samples to
    /// test on, the one that does best on them. `path`: twenty that follow from the samples, with --holdout or --test. With --l2 it may be
    /// 0 (ridge).
    #[arg(long, default_value = "1", value_name = "X", allow_negative_numbers = true)]
    pub l1: Penalties,
    /// Weight of |w|²/2, in addition (an elastic net).
    #[arg(long, default_value_t = 0.0, value_name = "X", allow_negative_numbers = true)]
    pub l2: f64,
    /// Fit all classes together, so that their chances have a sum of 1 (softmax), where there are more than two [default: each is told
    /// from the rest by a model of its own].
    #[arg(long)]
    #[serde(default)]
    pub multinomial: bool,
    /// Blocks of features that step together, of about equally many values [default: by size; none where
    /// the caches hold what is known of the samples: then features step one after the other].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub blocks: Option<u64>,
    /// Size of a block in values, instead of --blocks.
    #[arg(long, value_name = "VALUES", conflicts_with = "blocks", value_parser = clap::value_parser!(u64).range(1..))]
    pub batch: Option<u64>,
    /// Blocks that a worker may be ahead of the slowest, computing gradients that do not know of as many steps:
    /// --consistency ssp --slack N under the algorithm's own name.
    #[arg(long, value_name = "N", help_heading = "Consistency")]
    pub delay: Option<u64>,
    /// Passes over the features at most, for each l1 and class.
    #[arg(long, default_value_t = 2000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// End when the objective is known to be within this part of the optimum's [0: never].
    #[arg(long, default_value_t = 1e-6, allow_negative_numbers = true)]
    pub tolerance: f64,
}

impl Default for LinearOptions {
    fn default() -> Self {
        by_default()
    }
}

/// Blocks of features, if nothing is said: with more, fewer iterations are needed and each costs more, as workers wait for each
/// other a few times in each block.
fn default_blocks(values: usize) -> u64 {
    (values as u64 / BLOCK_VALUES).clamp(20, 100)
}

/// As many workers, or fewer, descend wherever the samples are.
const FEW_WORKERS: usize = 3;
/// Samples whose models have fewer bytes are near enough for any number of workers (a9a and w8a are by far, 200,000 clicks of 32 bytes
/// are not).
const NEAR_BYTES: usize = 6 << 20;
/// Below, waiting counts.
const BLOCK_VALUES: u64 = 1 << 16;

impl LinearOptions {
    /// Returns the parameters for each l1 that is given, the largest first.
    pub(super) fn path(&self) -> Vec<Config> {
        self.l1.given().into_iter().map(|l1| self.config(l1)).collect()
    }

    /// Returns the parameters for an l1.
    #[must_use]
    pub fn config(&self, l1: f64) -> Config {
        Config { l1, l2: self.l2 }
    }

    /// Tells whether blocks of features, or a delay of theirs, are asked for.
    #[must_use]
    pub(super) fn asks_for_blocks(&self, settings: &Settings) -> bool {
        self.blocks.is_some() || self.batch.is_some() || settings.slack != Some(0)
    }

    /// Tells whether features descend one after the other, where they do not have blocks: not by several processes, nor where many workers have
    /// samples of which each value costs a visit of a far cache. Blocks are visited shard by shard and take several times the iterations, which
    /// workers share.
    #[must_use]
    pub(super) fn descends(&self, samples: usize, settings: &Settings) -> bool {
        let bytes = samples * (size_of::<Parabola>() + size_of::<f64>());
        let is_one = settings.peers.is_none() && !self.asks_for_blocks(settings);
        is_one && (settings.workers <= FEW_WORKERS || bytes <= NEAR_BYTES)
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn num_blocks(&self, values: usize, features: usize) -> u64 {
        self.blocks.unwrap_or_else(|| default_blocks(values)).min(features.max(1) as u64)
    }

    /// Returns the values of a block.
    #[must_use]
    pub fn block_values(&self, values: usize, features: usize) -> u64 {
        let blocks = self.num_blocks(values, features);
        self.batch.unwrap_or((values as u64).div_ceil(blocks)).max(1)
    }
}

impl Options for LinearOptions {
    const FREE: &'static [&'static str] = &["iterations", "tolerance", "batch", "blocks", "delay"];

    fn check(&self) -> Result<(), Error> {
        check_tolerance(self.tolerance)?;
        if self.l1 == Penalties::Given(Vec::new()) {
            return Err(Error::option("there is no l1; expected 0 or a number above"));
        }
        Ok(self.path().iter().try_for_each(Config::check)?)
    }

    fn iterations(&self) -> u64 {
        self.iterations
    }

    /// Features step in blocks, or without them, which are other programs.
    fn fixed(&self) -> Result<serde_json::Map<String, serde_json::Value>, Error> {
        let how = if self.batch.is_some() {
            "in blocks, as with --blocks"
        } else {
            "without blocks, as one process by default"
        };
        let mut fixed = without_free(self)?;
        fixed.insert("features".to_owned(), how.into());
        Ok(fixed)
    }

    fn replaces(name: &str) -> Option<&'static str> {
        (name == "blocks").then_some("batch")
    }
}
