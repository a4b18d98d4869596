//! Options that training commands share, and what they resolve to.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::ValueEnum;
use megagrid_datasets::{Format, output};
use megagrid_engine::cluster::Cluster;
use megagrid_engine::{Peers, Settings};
use megagrid_partition::strategy;
use megagrid_stages::simd::Level;
use serde::Serialize;

use crate::checkpoint;
use crate::failure::usage;
use crate::virtual_cluster;

/// The input, the first argument of most commands.
#[derive(Clone, Debug, clap::Args)]
pub struct Source {
    /// A file (plain, gzip or zstd), a directory of part files, or a .mgrid cache.
    pub input: PathBuf,
    /// Format of the input: auto, edges, mtx, ratings, libsvm, bow, lda-c, text, parquet, mgrid.
    #[arg(long, default_value = "auto", value_parser = parse_format)]
    pub format: FormatChoice,
}

/// A format, or none: told by name and content.
#[derive(Clone, Copy, Debug)]
pub struct FormatChoice(pub Option<Format>);

/// Reads the value of `--format`.
pub fn parse_format(name: &str) -> Result<FormatChoice, megagrid_datasets::Error> {
    if name == "auto" { Ok(FormatChoice(None)) } else { name.parse().map(|format| FormatChoice(Some(format))) }
}

impl Source {
    /// Returns the options as they stand in a run record.
    pub fn resolved(&self) -> serde_json::Value {
        let format = self.format.0.map_or("auto".to_owned(), |format| format.to_string());
        serde_json::json!({ "input": self.input, "format": format })
    }
}

/// How fresh the data is that workers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// Every clock begins when all workers have ended the last one.
    Bsp,
    /// A worker may be --slack clocks ahead of the slowest.
    Ssp,
    /// As ssp, and rows come back after every clock, not only when they would be too old (the same in one process).
    Essp,
    /// A worker never waits.
    Async,
}

/// The strategy that training follows.
const TRAINED: &str = "bicut";

/// Reads the value of `--strategy`.
fn parse_strategy(name: &str) -> Result<String, String> {
    match name {
        TRAINED => Ok(name.to_owned()),
        _ if strategy::NAMES.contains(&name) => Err(format!(
            "training follows {TRAINED} alone, which keeps a vertex of one side with all its edges in a process; see \
             `megagrid partition --strategy {name}` for what {name} would do"
        )),
        _ => Err(format!("expected {TRAINED}")),
    }
}

/// Options of all training commands.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Worker threads [default: the cores of the machine].
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub workers: Option<u32>,
    /// How fresh the data is that workers read.
    #[arg(long, value_enum, default_value = "bsp", help_heading = "Consistency")]
    pub consistency: Consistency,
    /// Clocks that a worker may be ahead of the slowest, with ssp and essp [default: 0].
    #[arg(long, value_name = "CLOCKS", help_heading = "Consistency")]
    pub slack: Option<u64>,
    /// Decides everything random: initial values, order, split.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How edges are placed on processes. Training keeps all edges of a vertex of one side together, in runs of equal work:
    /// bicut. The others are those of `megagrid partition` alone.
    #[arg(long, value_name = "NAME", default_value = TRAINED, value_parser = parse_strategy)]
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
    /// Print no progress and no summary.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// Checkpoints.
    #[command(flatten)]
    pub checkpoint: checkpoint::Options,
    /// Virtual workers, and what disturbs workers.
    #[command(flatten)]
    pub experiment: virtual_cluster::Options,
    /// The other processes of the run, if there are any in earnest.
    #[arg(skip)]
    pub cluster: Option<Arc<Cluster>>,
    /// The same, or other virtual workers.
    #[arg(skip)]
    pub peers: Option<Arc<dyn Peers>>,
    /// Whether the run ends after an iteration, and shows and writes nothing.
    #[arg(skip)]
    pub is_trial: bool,
    /// Whether each process reads the whole input: edges that are brought to processes fit one placement.
    #[arg(skip)]
    pub reads_whole: bool,
    /// Processes that are planned for and not there.
    #[arg(skip)]
    pub planned: Option<Arc<dyn Peers>>,
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

/// The common options, resolved.
#[derive(Clone, Debug, Serialize)]
pub struct Resolved {
    workers: usize,
    consistency: Consistency,
    /// `None`: any number.
    slack: Option<u64>,
    seed: u64,
    strategy: String,
    vector: &'static str,
    grid: bool,
    degree_order: bool,
    early: bool,
    #[serde(flatten)]
    checkpoint: checkpoint::Options,
    #[serde(flatten)]
    experiment: virtual_cluster::Resolved,
}

impl Common {
    /// Joins the other processes of the run, if the environment names some. All but the first are silent and write nothing.
    pub fn join(&mut self) -> anyhow::Result<()> {
        self.cluster = crate::cluster::join()?;
        self.peers = self.cluster.clone().map(|cluster| cluster as Arc<dyn Peers>);
        if !self.is_first() {
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
            ("--checkpoint", self.checkpoint.checkpoint.is_some()),
            ("--resume", self.checkpoint.resume.is_some()),
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

    /// Finds that all processes have the same options and data.
    pub fn agree(&self, command: &str, config: &serde_json::Value, checksum: u64) -> anyhow::Result<()> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        let of_one = ["input", "test", "checkpoint", "resume", "vector"];
        let mut facts = vec![("command", command.to_owned())];
        let options = config.as_object().into_iter().flatten().filter(|(name, _)| !of_one.contains(&name.as_str()));
        facts.extend(options.map(|(name, value)| (name.as_str(), value.to_string())));
        // A directory may have other names elsewhere.
        for (name, directory) in [("checkpoint", &self.checkpoint.checkpoint), ("resume", &self.checkpoint.resume)] {
            facts.push((name, directory.as_ref().map_or("unset", |_| "set").to_owned()));
        }
        facts.push(("data with the checksum", format!("{checksum:016x}")));
        Ok(cluster.agree(&facts)?)
    }

    /// Tells whether something holds in any process. All of them ask.
    pub fn any(&self, here: bool) -> anyhow::Result<bool> {
        self.any_of([here]).map(|[all]| all)
    }

    /// Tells of several things whether they hold in any process. All of them ask.
    pub fn any_of<const N: usize>(&self, here: [bool; N]) -> anyhow::Result<[bool; N]> {
        let Some(peers) = &self.peers else { return Ok(here) };
        let all = peers.all_gather(here.map(u8::from).to_vec())?;
        Ok(std::array::from_fn(|at| all.iter().any(|there| there.get(at) == Some(&1))))
    }

    /// Checks the options, and that what is to be written can be; sets the number of threads that read.
    pub fn prepare(&self) -> anyhow::Result<(Settings, Resolved)> {
        if self.slack.is_some() && !matches!(self.consistency, Consistency::Ssp | Consistency::Essp) {
            let name = self.consistency.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
            return Err(usage(format!("--slack goes with --consistency ssp or essp, and it is {name}")));
        }
        if let Some(directory) = &self.model {
            output::check_target(directory)?;
        }
        for file in [&self.json, &self.report].into_iter().flatten() {
            if file != Path::new("-") {
                output::check_replaceable(file)?;
            }
        }
        let mut settings =
            Settings { seed: self.seed, grid: !self.no_grid, early: !self.no_early, ..Settings::default() };
        settings.slack = match self.consistency {
            Consistency::Bsp => Some(0),
            Consistency::Ssp | Consistency::Essp => Some(self.slack.unwrap_or(0)),
            Consistency::Async => None,
        };
        settings.lazy = self.consistency == Consistency::Ssp;
        settings.workers = self.workers.map_or(settings.workers, |workers| workers as usize);
        settings.level = self.vector.unwrap_or(settings.level);
        settings.inject = self.experiment.inject;
        if let Some(peers) = &self.peers {
            settle(&mut settings, peers)?;
        }
        if self.peers.as_ref().is_none_or(|peers| peers.virtual_cluster().is_none()) {
            start_readers(settings.workers)?;
        }
        settings.peers = self.planned.clone().or(settings.peers);
        Ok((settings.clone(), self.resolved(&settings)))
    }

    fn resolved(&self, settings: &Settings) -> Resolved {
        Resolved {
            workers: settings.workers,
            consistency: self.consistency,
            slack: settings.slack,
            seed: self.seed,
            strategy: self.strategy.clone(),
            vector: settings.level.name(),
            grid: settings.grid,
            degree_order: !self.no_degree_order,
            early: settings.early,
            checkpoint: self.checkpoint.clone(),
            experiment: self.experiment.resolved(self.peers.as_deref()),
        }
    }

    /// Tells whether this is the process that measures, decides and writes: the first, or the only one.
    pub fn is_first(&self) -> bool {
        self.peers.as_ref().is_none_or(|peers| peers.process() == 0)
    }

    /// Tells whether stdout is free for a summary.
    pub fn wants_summary(&self) -> bool {
        !self.quiet && self.json.as_deref() != Some(Path::new("-"))
    }
}

/// Makes the settings of all processes the same where machines differ: the least vector level and cache.
fn settle(settings: &mut Settings, peers: &Arc<dyn Peers>) -> anyhow::Result<()> {
    let mine = (settings.level.name().to_owned(), settings.topology.l2_bytes);
    for bytes in peers.all_gather(serde_json::to_vec(&mine)?)? {
        let (level, l2_bytes): (String, usize) = serde_json::from_slice(&bytes)?;
        settings.level = settings.level.min(level.parse().map_err(anyhow::Error::msg)?);
        settings.topology.l2_bytes = settings.topology.l2_bytes.min(l2_bytes);
    }
    settings.peers = Some(Arc::clone(peers));
    Ok(())
}

/// Reading, relabeling and grouping use as many threads as training.
pub fn start_readers(threads: usize) -> anyhow::Result<()> {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("starting threads")
}

/// Joins options that stand in structures of their own.
pub fn join<const N: usize>(parts: [serde_json::Value; N]) -> serde_json::Value {
    let mut all = serde_json::Map::new();
    for part in parts {
        if let serde_json::Value::Object(fields) = part {
            all.extend(fields);
        }
    }
    all.into()
}

/// Writes to stdout. Unlike `println!`, it does not panic when the reader has gone.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).context("writing to stdout")
}

/// Writes a text to a file, or to stdout for "-". A regular file is whole or absent, and replaced if there is one.
pub fn write_text(path: &Path, text: &str) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return print(text);
    }
    Ok(output::replace_text(path, text)?)
}
