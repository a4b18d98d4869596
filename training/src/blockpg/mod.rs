//! Training of sparse logistic regression: labelled samples in, weights of features out.

mod data;
mod model;
mod trainer;

use std::path::PathBuf;

use megagrid_algorithms::blockpg::Config;
use megagrid_partition::EdgeSource;
use serde::{Deserialize, Serialize};

use crate::algorithm::{Algorithm, Knob};
use crate::form::{MakeForm, form};
use crate::options::{check_tolerance, lossy_option};
use crate::{Error, Options};

pub use data::{Origin, SampleOptions, Samples, Unseen, read as read_samples};
pub use model::{Linear, Predict, chance};
use trainer::Fitter;

/// Options of sparse logistic regression.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinearOptions {
    /// Weights of |w|₁: a path, the largest first, each begun from the one before; the last is the model's.
    pub l1: Vec<f64>,
    /// Weight of |w|²/2.
    pub l2: f64,
    /// Whether an intercept is fitted, which has no penalty.
    pub intercept: bool,
    /// A model whose weights are the first ones.
    #[serde(serialize_with = "lossy_option")]
    pub warm_start: Option<PathBuf>,
    /// Blocks of features.
    pub blocks: Option<u64>,
    /// Size of a block in values, instead of their number.
    pub batch: Option<u64>,
    /// Passes over the features at most, for each l1.
    pub iterations: u64,
    /// Relative duality gap that ends the run; 0: none.
    pub tolerance: f64,
}

impl Default for LinearOptions {
    fn default() -> Self {
        Self {
            l1: vec![Config::default().l1],
            l2: Config::default().l2,
            intercept: false,
            warm_start: None,
            blocks: None,
            batch: None,
            iterations: 2000,
            tolerance: 1e-6,
        }
    }
}

/// Blocks of features, if nothing is said: with more, fewer iterations are needed and each costs more, as workers wait for each
/// other a few times in each block.
fn default_blocks(values: usize) -> u64 {
    (values as u64 / BLOCK_VALUES).clamp(20, 100)
}

/// Below, waiting counts.
const BLOCK_VALUES: u64 = 1 << 16;

impl LinearOptions {
    /// Returns the parameters for each l1, the largest first.
    #[must_use]
    pub fn path(&self) -> Vec<Config> {
        let mut path = self.l1.clone();
        path.sort_by(|a, b| b.total_cmp(a));
        path.into_iter().map(|l1| Config { l1, l2: self.l2 }).collect()
    }

    /// Returns the number of blocks.
    fn num_blocks(&self, values: usize, features: usize) -> u64 {
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
    const FREE: &'static [&'static str] = &["iterations", "tolerance", "blocks"];

    fn check(&self) -> Result<(), Error> {
        check_tolerance(self.tolerance)?;
        if self.l1.is_empty() {
            return Err(Error::option("there is no l1; expected a number above 0"));
        }
        Ok(self.path().iter().try_for_each(Config::check)?)
    }

    fn iterations(&self) -> u64 {
        self.iterations
    }

    fn replaces(name: &str) -> Option<&'static str> {
        (name == "blocks").then_some("batch")
    }
}

/// Sparse logistic regression.
#[derive(Debug)]
pub struct Regression;

impl Algorithm for Regression {
    const NAME: &'static str = "blockpg";
    const TESTED_BY: Option<&'static str> = Some("test_log_loss");
    const KNOBS: &'static [Knob] = &[
        Knob { name: "blocks", is_layout: true, is_timed: true },
        Knob { name: "delay", is_layout: false, is_timed: true },
        Knob { name: "workers", is_layout: true, is_timed: true },
    ];
    type Data = Samples;
    type Options = LinearOptions;
    type Model = Linear;

    fn form(_: &LinearOptions) -> MakeForm<Self> {
        form::<Fitter>
    }

    /// Blocks around their default.
    fn tuned(samples: &Samples, options: &LinearOptions) -> Vec<String> {
        let features = samples.signed.num_vertices(megagrid_partition::Side::Right);
        let blocks = options.num_blocks(samples.signed.num_edges(), features);
        vec![format!("blocks={},{blocks},{}", (blocks / 2).max(1), 2 * blocks), "delay=0,1,2".to_owned()]
    }

    fn check_tuned(options: &LinearOptions) -> Result<(), Error> {
        if options.l1.len() == 1 {
            return Ok(());
        }
        Err(Error::option(
            "tune takes one --l1; find the settings first, and train the path with the command that it prints",
        ))
    }
}
