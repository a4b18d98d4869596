//! Checkpoints of a run: when they are written, and whether one can be continued with the options given.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use megagrid_engine::{Engine, checkpoint};
use megagrid_stages::Program;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::common;

/// Options about checkpoints.
#[derive(Clone, Debug, Default, clap::Args, Serialize)]
#[command(next_help_heading = "Checkpoints")]
#[group(id = "checkpoints")]
pub struct Options {
    /// Write a checkpoint to this directory at the end, or when interrupted.
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Write one also after every N iterations.
    #[arg(long, value_name = "N", requires = "checkpoint", value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: Option<u64>,
    /// Continue from the last complete checkpoint in this directory.
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
}

/// The options that a run was begun with, beside its checkpoints.
const OPTIONS: &str = "options.json";
/// Options that a run cannot go on with if they change. The engine knows the graph and the shape of the data itself.
const FIXED: [&str; 28] = [
    "damping",
    "restart",
    "dims",
    "lambda",
    "step",
    "init_std",
    "adaptive",
    "decay",
    "biases",
    "mean",
    "gradient",
    "batch",
    "holdout",
    "seed",
    "l1",
    "l2",
    "intercept",
    "normalize",
    "positive",
    "sample_weights",
    "warm_start",
    "topics",
    "extra_topics",
    "alpha",
    "beta",
    "prior",
    "sampler",
    "tune",
];

impl Options {
    /// Continues a run if asked to, and tells before it whether checkpoints can be written. Returns the iterations done.
    /// All processes call it; the first looks at options, for all.
    pub fn begin<P: Program>(&self, engine: &mut Engine<P>, config: &Value) -> anyhow::Result<u64>
    where
        P::Global: Serialize + DeserializeOwned,
    {
        let fixed: Value =
            FIXED.iter().filter_map(|&name| Some((name.to_owned(), config.get(name)?.clone()))).collect();
        let is_first = engine.plan().processes.this == 0;
        let mut done = 0;
        if let Some(directory) = &self.resume {
            engine.agree(if is_first { compare(directory, &fixed).map(drop) } else { Ok(()) })?;
            done = checkpoint::load(engine, directory)?;
        }
        if let Some(directory) = &self.checkpoint {
            checkpoint::check_target(engine, directory)?;
            engine.agree(if is_first { keep(directory, &fixed) } else { Ok(()) })?;
        }
        Ok(done)
    }

    /// Writes a checkpoint if one is due after this iteration. All processes call it.
    pub fn after<P: Program>(&self, engine: &mut Engine<P>, iteration: u64, is_last: bool) -> anyhow::Result<()>
    where
        P::Global: Serialize + DeserializeOwned,
    {
        let Some(directory) = &self.checkpoint else { return Ok(()) };
        if is_last || self.checkpoint_every.is_some_and(|every| iteration.is_multiple_of(every)) {
            checkpoint::save(engine, directory)?;
        }
        Ok(())
    }
}

/// Keeps options beside the checkpoints to come, or finds that they are those of the checkpoints that are there.
fn keep(directory: &Path, fixed: &Value) -> anyhow::Result<()> {
    if compare(directory, fixed)? {
        return Ok(());
    }
    fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    common::write_text(&directory.join(OPTIONS), &format!("{fixed:#}\n"))
}

/// Compares options with those that the checkpoints of a directory were made with. Returns false if there are none.
fn compare(directory: &Path, fixed: &Value) -> anyhow::Result<bool> {
    let path = directory.join(OPTIONS);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        text => text.with_context(|| format!("reading {}", path.display()))?,
    };
    let before: Value = serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    for name in FIXED {
        let [before, now] = [before.get(name), fixed.get(name)].map(|value| value.cloned().unwrap_or_default());
        if before != now {
            let place = directory.display();
            bail!(
                "{place}: its checkpoints are of a run with {name} {before}, and now it is {now}; use the same options"
            );
        }
    }
    Ok(true)
}
