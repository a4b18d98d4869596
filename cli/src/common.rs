//! Options that training commands share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Command;
use megagrid_datasets::Readers;
use megagrid_datasets::output::{check_replaceable, check_target};
use megagrid_engine::Topology;
use megagrid_training::checkpoint::model_of;
use megagrid_training::record::Record;
use megagrid_training::{Processes, RunOptions};

use crate::experiment;
use crate::failure::usage;
use crate::output::write_text;
use crate::report;
use crate::together::Together;

/// Options of all training commands.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    #[command(flatten)]
    pub run: RunOptions,
    /// Keep what is read as a .mgrid cache in this directory, made where it is missing: the next run with the same input begins with
    /// that at once. For one process.
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
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
    /// Show the run while it runs, on a page at this address: objective, test error, throughput, waiting, memory
    /// [default address: 127.0.0.1:8090].
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:8090", help_heading = "Output")]
    pub live: Option<std::net::SocketAddr>,
    /// Print no progress and no summary.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// Virtual workers.
    #[command(flatten)]
    pub experiment: experiment::Options,
    /// The processes of the run.
    #[arg(skip)]
    pub processes: Processes,
    /// Whether the run ends after an iteration, and shows and writes nothing.
    #[arg(skip)]
    pub is_trial: bool,
}

/// Options of a run that somebody trains by, which commands that do not train have no use for.
pub const OF_A_RUN: [&str; 7] =
    ["--checkpoint", "--resume", "--from", "--virtual-workers", "--inject", "--trace", "--live"];

/// Options that go with another one only.
const COMPANIONS: [(&str, &str); 6] = [
    ("--checkpoint-every", "--checkpoint"),
    ("--checkpoint-model", "--checkpoint"),
    ("--link", "--virtual-workers"),
    ("--calibration", "--virtual-workers"),
    ("--clock-cost", "--virtual-workers"),
    ("--jitter", "--virtual-workers"),
];

/// Leaves options that a command refuses out of its help, and those that go with them only.
pub fn without(command: Command, refused: &[&str]) -> Command {
    let companions = COMPANIONS.iter().filter(|(_, of)| refused.contains(of)).map(|(name, _)| *name);
    let refused: Vec<&str> = refused.iter().copied().chain(companions).collect();
    command.mut_args(|arg| {
        let is_refused = |long: &str| refused.iter().any(|name| name.strip_prefix("--") == Some(long));
        if arg.get_long().is_some_and(is_refused) { arg.hide(true) } else { arg }
    })
}

impl Common {
    /// Joins the other processes of the run, if the environment names some. All but the first are silent and write nothing.
    pub fn join(&mut self) -> anyhow::Result<()> {
        let Some(cluster) = crate::cluster::join()? else { return Ok(()) };
        let readers = Arc::new(Together::new(&cluster)) as Arc<dyn Readers>;
        self.processes = Processes { readers: Some(readers), ..Processes::from(cluster) };
        if !self.processes.is_first() {
            self.be_silent();
        }
        Ok(())
    }

    /// Refuses options of training that a command has no use for. `advice` says what to do instead.
    pub fn refuse(&self, options: &[&str], advice: &str) -> anyhow::Result<()> {
        let given = [
            ("--cache", self.cache.is_some()),
            ("--model", self.model.is_some()),
            ("--json", self.json.is_some()),
            ("--report", self.report.is_some()),
            ("--trace", self.trace.is_some()),
            #[cfg(feature = "serve")]
            ("--live", self.live.is_some()),
            ("--checkpoint", self.run.checkpoints.checkpoint.is_some()),
            ("--checkpoint-model", self.run.checkpoint_model),
            ("--resume", self.run.checkpoints.resume.is_some()),
            ("--from", self.run.from.is_some()),
            ("--virtual-workers", self.experiment.virtual_workers.is_some()),
            ("--inject", self.run.inject.is_some()),
        ];
        match given.into_iter().find(|(name, given)| *given && options.contains(name)) {
            Some((name, _)) => Err(usage(format!("{name} {advice}"))),
            None => Ok(()),
        }
    }

    /// Shows and writes nothing.
    pub fn be_silent(&mut self) {
        (self.quiet, self.model, self.json, self.report) = (true, None, None, None);
        #[cfg(feature = "serve")]
        (self.live = None);
    }

    /// Checks the options, and that what is to be written can be; sets the number of threads that read.
    pub fn prepare(&self, run: &RunOptions) -> anyhow::Result<()> {
        run.check()?;
        if let Some(directory) = &self.model {
            check_target(directory)?;
            if run.checkpoint_model && is_model_of(directory, run.checkpoints.checkpoint.as_deref()) {
                return Err(usage("--checkpoint-model writes to the directory that --model names; name another"));
            }
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
        crate::output::wants_summary(self.quiet, self.json.as_deref())
    }

    /// Prints a text, if stdout is free for it.
    pub fn say(&self, text: &str) -> anyhow::Result<()> {
        if self.wants_summary() { crate::output::print(text) } else { Ok(()) }
    }

    /// Writes what `--json` and `--report` ask for.
    pub fn write_record(&self, record: &Record) -> anyhow::Result<()> {
        if let Some(path) = &self.report {
            write_text(path, &report::page(record)?)?;
        }
        if let Some(path) = &self.json {
            let text = serde_json::to_string_pretty(record).context("writing the run record")?;
            write_text(path, &(text + "\n"))?;
        }
        Ok(())
    }
}

/// Tells whether a directory is where the models of checkpoints go.
fn is_model_of(directory: &Path, checkpoints: Option<&Path>) -> bool {
    let models = checkpoints.map(model_of);
    let place = |path: &Path| {
        let path = std::path::absolute(path).ok()?;
        let parent = path.parent()?;
        Some((parent.canonicalize().unwrap_or_else(|_| parent.to_owned()), path.file_name()?.to_owned()))
    };
    models.is_some_and(|models| place(directory).is_some_and(|named| place(&models) == Some(named)))
}

/// Reading, relabeling and grouping use as many threads as training.
pub fn start_readers(threads: usize) -> anyhow::Result<()> {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("starting threads")
}
