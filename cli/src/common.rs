//! Options that training commands share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use megagrid_datasets::Readers;
use megagrid_datasets::output::{check_replaceable, check_target};
use megagrid_engine::{Peers, Topology};
use megagrid_partition::strategy;
use megagrid_stages::simd::Level;
use megagrid_training::record::Record;
use megagrid_training::{Consistency, Processes, RunOptions, STRATEGY};

use crate::choice::{Choice, choice};
use crate::experiment;
use crate::failure::usage;
use crate::output::write_text;
use crate::report;
use crate::together::Together;

impl Choice for Consistency {
    const VALUES: &'static [(&'static str, &'static str)] = &[
        ("bsp", "Every clock begins when all workers have ended the last one"),
        ("ssp", "A worker may be --slack clocks ahead of the slowest"),
        (
            "essp",
            "As ssp, and rows come back after every clock, not only when they would be too old (the same in one process)",
        ),
        ("async", "A worker never waits"),
    ];
}

/// Reads the value of `--strategy`.
fn parse_strategy(name: &str) -> Result<String, String> {
    match name {
        STRATEGY => Ok(name.to_owned()),
        _ if strategy::NAMES.contains(&name) => Err(format!(
            "training follows {STRATEGY} alone, which keeps a vertex of one side with all its edges in a process; see \
             `megagrid partition --strategy {name}` for what {name} would do"
        )),
        _ => Err(format!("expected {STRATEGY}")),
    }
}

/// Options of all training commands.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Worker threads [default: the cores of the machine].
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub workers: Option<u32>,
    /// How fresh the data is that workers read.
    #[arg(long, default_value = "bsp", value_parser = choice::<Consistency>(), help_heading = "Consistency")]
    pub consistency: Consistency,
    /// Clocks that a worker may be ahead of the slowest, with ssp and essp [default: 0].
    #[arg(long, value_name = "CLOCKS", help_heading = "Consistency")]
    pub slack: Option<u64>,
    /// Decides everything random: initial values, order, split.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Worse evaluations in a row on test data that end the run, whose model is that of the best iteration; 0: it goes on, and
    /// its last iteration is the model [default: 5, with blockpg 0].
    #[arg(long, value_name = "N")]
    pub patience: Option<u64>,
    /// Measure the exact objective, and the error on test data, after every N iterations only. By default the objective is measured
    /// at the end, or where a tolerance needs it, and the error on test data after each; in between, running values tell how it
    /// goes: what steps found before they changed it.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub evaluate_every: u64,
    /// Keep what is read as a .mgrid cache in this directory, made where it is missing: the next run with the same input begins with
    /// that at once. With --holdout, other ratings or samples are kept for testing than without a cache.
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// How edges are placed on processes. Training keeps all edges of a vertex of one side together, in runs of equal work:
    /// bicut. The others are those of `megagrid partition` only.
    #[arg(long, value_name = "NAME", default_value = STRATEGY, value_parser = parse_strategy)]
    pub strategy: String,
    /// Vector instructions to use: plain, avx2, avx512 [default: the widest of this processor].
    #[arg(long, value_name = "LEVEL")]
    pub vector: Option<Level>,
    /// Write the trained model to a new directory.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub model: Option<PathBuf>,
    /// Write the run record as JSON; "-" is stdout.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write the run record as a page with plots, one HTML file.
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Write what each worker did and when, as a timeline for ui.perfetto.dev or chrome://tracing.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,
    /// Print no progress and no summary.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// Write a checkpoint to this directory at the end, or when interrupted.
    #[arg(long, value_name = "DIR", help_heading = "Checkpoints")]
    pub checkpoint: Option<PathBuf>,
    /// Write one also after every N iterations.
    #[arg(
        long,
        value_name = "N",
        requires = "checkpoint",
        value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "Checkpoints"
    )]
    pub checkpoint_every: Option<u64>,
    /// Continue from the last complete checkpoint in this directory.
    #[arg(long, value_name = "DIR", help_heading = "Checkpoints")]
    pub resume: Option<PathBuf>,
    /// Virtual workers, and what disturbs workers.
    #[command(flatten)]
    pub experiment: experiment::Options,
    /// The processes of the run.
    #[arg(skip)]
    pub processes: Processes,
    /// Whether the run ends after an iteration, and shows and writes nothing.
    #[arg(skip)]
    pub is_trial: bool,
    /// Do without the grid of shards, for comparison.
    #[arg(long, hide = true)]
    pub no_grid: bool,
    /// Leave vertices in the order of the input, for comparison (text input only).
    #[arg(long, hide = true)]
    pub no_degree_order: bool,
    /// Send to other processes what they need last first, for comparison.
    #[arg(long, hide = true)]
    pub no_early: bool,
}

impl Common {
    /// Joins the other processes of the run, if the environment names some. All but the first are silent and write nothing.
    pub fn join(&mut self) -> anyhow::Result<()> {
        let Some(cluster) = crate::cluster::join()? else { return Ok(()) };
        let readers = Arc::new(Together::new(&cluster)) as Arc<dyn Readers>;
        let peers = Some(Arc::clone(&cluster) as Arc<dyn Peers>);
        self.processes = Processes { cluster: Some(cluster), peers, readers: Some(readers) };
        if !self.processes.is_first() {
            self.be_silent();
        }
        Ok(())
    }

    /// Refuses options of training that a command has no use for. `advice` says what to do instead.
    pub fn refuse(&self, options: &[&str], advice: &str) -> anyhow::Result<()> {
        let given = [
            ("--model", self.model.is_some()),
            ("--json", self.json.is_some()),
            ("--report", self.report.is_some()),
            ("--trace", self.trace.is_some()),
            ("--checkpoint", self.checkpoint.is_some()),
            ("--resume", self.resume.is_some()),
            ("--virtual-workers", self.experiment.virtual_workers.is_some()),
            ("--inject", self.experiment.inject.is_some()),
        ];
        match given.into_iter().find(|(name, given)| *given && options.contains(name)) {
            Some((name, _)) => Err(usage(format!("{name} {advice}"))),
            None => Ok(()),
        }
    }

    /// Shows and writes nothing.
    pub fn be_silent(&mut self) {
        (self.quiet, self.model, self.json, self.report) = (true, None, None, None);
    }

    /// Returns how the run is to go.
    pub fn run_options(&self) -> RunOptions {
        RunOptions {
            workers: self.workers.map(|workers| workers as usize),
            consistency: self.consistency,
            slack: self.slack,
            seed: self.seed,
            strategy: STRATEGY,
            vector: self.vector,
            patience: self.patience,
            evaluate_every: self.evaluate_every,
            grid: !self.no_grid,
            degree_order: !self.no_degree_order,
            early: !self.no_early,
            checkpoint: self.checkpoint.clone(),
            checkpoint_every: self.checkpoint_every,
            resume: self.resume.clone(),
            inject: self.experiment.inject,
        }
    }

    /// Checks the options, and that what is to be written can be; sets the number of threads that read.
    pub fn prepare(&self, run: &RunOptions) -> anyhow::Result<()> {
        run.check()?;
        if let Some(directory) = &self.model {
            check_target(directory)?;
        }
        for file in [&self.json, &self.report, &self.trace].into_iter().flatten() {
            if file != Path::new("-") {
                check_replaceable(file)?;
            }
        }
        if self.processes.peers.as_ref().is_none_or(|peers| peers.modelled().is_none()) {
            start_readers(run.workers.unwrap_or_else(|| Topology::detect().num_cores()))?;
        }
        Ok(())
    }

    /// Tells whether stdout is free for a summary.
    pub fn wants_summary(&self) -> bool {
        !self.quiet && self.json.as_deref() != Some(Path::new("-"))
    }

    /// Prints a text, if stdout is free for it.
    pub fn say(&self, text: &str) -> anyhow::Result<()> {
        if self.wants_summary() { crate::output::print(text) } else { Ok(()) }
    }

    /// Writes what `--json` and `--report` ask for.
    pub fn write_record(&self, record: &Record) -> anyhow::Result<()> {
        if let Some(path) = &self.json {
            let text = serde_json::to_string_pretty(record).context("writing the run record")?;
            write_text(path, &(text + "\n"))?;
        }
        if let Some(path) = &self.report {
            write_text(path, &report::page(record)?)?;
        }
        Ok(())
    }
}

/// Reading, relabeling and grouping use as many threads as training.
pub fn start_readers(threads: usize) -> anyhow::Result<()> {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("starting threads")
}
