//! Checkpoints of a run: what is asked for, and the seam to the engine.

use std::path::PathBuf;

use serde::Serialize;

use crate::failure::usage;

/// Options about checkpoints.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = "Checkpoints")]
#[group(id = "checkpoints")]
pub struct Options {
    /// Write checkpoints to this directory; one at the end or when interrupted.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Write one also after every N iterations.
    #[arg(long, value_name = "N", requires = "checkpoint", value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: Option<u64>,
    /// Continue from the last complete checkpoint in this directory.
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
}

impl Options {
    /// Refuses what cannot be done.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.checkpoint.is_some() || self.resume.is_some() {
            return Err(usage("checkpoints are not in this version yet"));
        }
        Ok(())
    }
}
