//! Options of experiments: many virtual workers in modelled time.

use std::path::{Path, PathBuf};

use anyhow::Context;
use megagrid_engine::virtual_cluster::{Calibration, Costs, Link, Model};

use crate::failure::usage;

/// Options of experiments.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Experiments")]
#[group(id = "experiments")]
pub struct Options {
    /// Train with W virtual workers in one process: real results, modelled time.
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub virtual_workers: Option<u32>,
    /// Every virtual worker's link: bandwidth, latency and processor time of a message [default: 1Gbit,100us,5us].
    #[arg(long, value_name = "BANDWIDTH,LATENCY[,CPU]", requires = "virtual_workers")]
    pub link: Option<Link>,
    /// What tasks cost, a file: read if there is one, else measured in a first iteration and written.
    #[arg(long, value_name = "FILE.json", requires = "virtual_workers")]
    pub calibration: Option<PathBuf>,
    /// What a clock of a virtual worker costs, instead of a calibration.
    #[arg(long, value_name = "SECONDS", requires = "virtual_workers", conflicts_with = "calibration")]
    pub clock_cost: Option<f64>,
    /// How much costs vary from clock to clock: their standard deviation, as a part of them.
    #[arg(long, value_name = "X", default_value_t = 0.0, requires = "virtual_workers")]
    pub jitter: f64,
    /// What is modelled of the virtual workers, with the costs that were found.
    #[arg(skip)]
    pub found: Option<Model>,
}

impl Options {
    /// Returns the virtual workers as they stand in a run record, the model with the costs that were found; nothing where there
    /// are none.
    pub fn resolved(&self) -> serde_json::Value {
        match &self.found {
            Some(model) => serde_json::json!({ "virtual_workers": self.virtual_workers, "virtual_model": model }),
            None => serde_json::Value::Null,
        }
    }

    /// Checks ranges.
    pub fn check(&self) -> anyhow::Result<()> {
        if !(0.0..=1.0).contains(&self.jitter) {
            return Err(usage(format!("jitter is {}; expected 0 to 1", self.jitter)));
        }
        match self.clock_cost {
            Some(seconds) if !(0.0..=86400.0).contains(&seconds) => {
                Err(usage(format!("clock-cost is {seconds}; expected 0 to 86400 seconds")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the model of a virtual cluster with these costs.
    pub fn model(&self, costs: Costs, seed: u64) -> Model {
        Model { link: self.link.unwrap_or_default(), costs, jitter: self.jitter, seed }
    }
}

/// Reads a calibration.
pub fn read(file: &Path) -> anyhow::Result<Calibration> {
    let place = || format!("{}: the calibration cannot be read", file.display());
    serde_json::from_str(&std::fs::read_to_string(file).with_context(place)?).with_context(place)
}
