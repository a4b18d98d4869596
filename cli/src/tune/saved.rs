//! What tuning came to, beside the checkpoints of its run.

use std::path::Path;

use anyhow::Context;
use megagrid_tuner::Progress;

use crate::common::{self, Common};

/// The file: it is written before the checkpoint that it goes with, and holds the past of every one before.
const FILE: &str = "tuning.json";

/// Reads what the run to go on with came to, if there is one. All processes call it; the first one reads.
pub fn read(common: &Common) -> anyhow::Result<Option<Progress>> {
    let Some(directory) = &common.checkpoint.resume else { return Ok(None) };
    let path = directory.join(FILE);
    let place = || format!("reading {}, where tuning says what it came to", path.display());
    let mut text = if common.is_first() { std::fs::read(&path).with_context(place)? } else { Vec::new() };
    if let Some(cluster) = &common.cluster {
        text = cluster.broadcast(text)?;
    }
    serde_json::from_slice(&text).map(Some).with_context(place)
}

/// Writes what a run came to.
pub fn write(directory: &Path, progress: &Progress) -> anyhow::Result<()> {
    common::write_text(&directory.join(FILE), &(serde_json::to_string(progress)? + "\n"))
}
