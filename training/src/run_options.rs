//! Options of every run: workers, consistency, checkpoints, where it begins.

use std::path::PathBuf;

use clap::ArgAction;
use clap::builder::RangedI64ValueParser;
use megagrid_engine::plan::{Plan, Strategy};
use megagrid_engine::{Injection, Settings};
use megagrid_stages::simd::Level;
use serde::{Deserialize, Serialize, Serializer};

use crate::Error;
use crate::options::{by_default, json, lossy};
use crate::processes::Processes;

/// How fresh the data is that workers read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// Every clock begins when all workers have ended the last one.
    #[default]
    Bsp,
    /// A worker may be --slack clocks ahead of the slowest.
    Ssp,
    /// As ssp, and rows come back after every clock, not only when they would be too old (the same in one process).
    Essp,
    /// A worker waits for others at looks only: see --evaluate-every.
    Async,
}

/// Reads the name of a strategy.
fn parse_strategy(name: &str) -> Result<Strategy, String> {
    let why = match name {
        "random" => "deals edges regardless of their ends, which costs most and is there for comparison",
        "hdrf" | "aweto" => "places one edge after the other by all before it, and a plan is made from degrees",
        _ => {
            return name.parse().map_err(|()| format!("expected {}", Strategy::NAMES.map(|(name, _)| name).join(", ")));
        }
    };
    Err(format!(
        "{name} {why}; take {}, or see `megagrid partition --strategy {name}` for what it would do",
        Strategy::NAMES.map(|(name, _)| name).join(", ")
    ))
}

/// Options of every run.
#[derive(Clone, Debug, Serialize, clap::Args)]
pub struct RunOptions {
    /// Worker threads of each process [default: the cores of the machine].
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = RangedI64ValueParser::<usize>::new().range(1..=4096))]
    pub workers: Option<usize>,
    /// How fresh the data is that workers read.
    #[arg(long, value_enum, default_value_t = Consistency::Bsp, help_heading = "Consistency")]
    pub consistency: Consistency,
    /// Clocks that a worker may be ahead of the slowest, with ssp and essp [default: 0].
    #[arg(long, value_name = "CLOCKS", help_heading = "Consistency")]
    pub slack: Option<u64>,
    /// Decides everything random: initial values, order, split.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How edges are placed on processes: bicut keeps all edges of a vertex of one side together; grid, hybrid and mixed cut vertices
    /// of both sides, the last two those of high degree only, for algorithms that read and add; auto takes the one that costs least
    /// by the degrees. Processes are to have the same.
    #[arg(long, value_name = "NAME", default_value_t = Strategy::BiCut, value_parser = parse_strategy)]
    pub strategy: Strategy,
    /// Vector instructions to use: plain, avx2, avx512 [default: the widest of this processor].
    #[arg(long, value_name = "LEVEL")]
    #[serde(serialize_with = "level_name")]
    pub vector: Option<Level>,
    /// Worse evaluations in a row on test data that end the run, whose model is that of the best iteration evaluated; 0: it goes on, and
    /// its last iteration is the model [default: 5, with blockpg 0].
    #[arg(long, value_name = "N")]
    pub patience: Option<u64>,
    /// Measure the exact objective, and the error on test data, after every N iterations only. By default the objective is measured
    /// after the last iteration that is asked for, or where a tolerance needs it, and the error on test data after each (lda: after every 10th); in between, running
    /// values tell how it goes: what steps found before they changed it. With slack workers go on from one iteration to the next, and only after every
    /// N all meet, so that anything can be measured or saved [default: 4 times the clocks by which workers may be apart; 1 with async].
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub evaluate_every: u64,
    /// Whether edges are cut into a grid.
    #[arg(long = "no-grid", action = ArgAction::SetFalse, hide = true)]
    pub grid: bool,
    /// Whether vertices are put in order of degree.
    #[arg(long = "no-degree-order", action = ArgAction::SetFalse, hide = true)]
    pub degree_order: bool,
    /// Whether what other processes need first is sent first.
    #[arg(long = "no-early", action = ArgAction::SetFalse, hide = true)]
    pub early: bool,
    /// Where checkpoints go and come from.
    #[command(flatten)]
    #[serde(flatten)]
    pub checkpoints: CheckpointOptions,
    /// With each checkpoint write the model that the run would end with then, to the directory `model` beside it, in the place of the
    /// one before: megagrid serve --watch serves it. Without --checkpoint-every that is one, at the end. Not with --calibrate.
    #[arg(long, requires = "checkpoint", help_heading = "Checkpoints")]
    pub checkpoint_model: bool,
    /// Begin at the values of this model of the same command: vertices that it knows by name start there, others as ever; models of mf
    /// and als keep all rows of it, and to one of lda the documents are added. Without checkpoints.
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["resume", "checkpoint"], alias = "warm-start")]
    #[serde(serialize_with = "lossy")]
    pub from: Option<PathBuf>,
    /// Disturb workers: delay:SECONDS or delay:SECONDS,TURNS, or disrupt:PROBABILITY,SECONDS. With delay a worker sleeps
    /// before a clock, each in turn, TURNS of them in a clock (1 unless said); with disrupt it has half its processor in
    /// some of the slots of that length.
    #[arg(long, value_name = "KIND:…", help_heading = "Experiments")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inject: Option<Injection>,
}

/// Where checkpoints go and come from.
#[derive(Clone, Debug, Default, Serialize, clap::Args)]
#[group(skip)]
pub struct CheckpointOptions {
    /// Write a checkpoint to this directory at the end, or when interrupted; all processes have to see it.
    #[arg(long, value_name = "DIR", help_heading = "Checkpoints")]
    #[serde(serialize_with = "lossy")]
    pub checkpoint: Option<PathBuf>,
    /// Write one also after every N iterations, of `geeps` epochs; where all workers meet less often (see --evaluate-every), the next time they do.
    #[arg(long, value_name = "N", requires = "checkpoint", help_heading = "Checkpoints", value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: Option<u64>,
    /// Continue from the last complete checkpoint in this directory.
    #[arg(long, value_name = "DIR", help_heading = "Checkpoints")]
    #[serde(serialize_with = "lossy")]
    pub resume: Option<PathBuf>,
}

impl CheckpointOptions {
    /// Tells whether there are to be any.
    #[must_use]
    pub fn any(&self) -> bool {
        self.checkpoint.is_some() || self.resume.is_some()
    }
}

fn level_name<S: Serializer>(level: &Option<Level>, to: S) -> Result<S::Ok, S::Error> {
    level.map(Level::name).serialize(to)
}

impl Default for RunOptions {
    fn default() -> Self {
        by_default()
    }
}

impl RunOptions {
    /// Checks that options do not contradict each other.
    ///
    /// # Errors
    /// Slack where there can be none.
    pub fn check(&self) -> Result<(), Error> {
        if self.slack.is_some() && !matches!(self.consistency, Consistency::Ssp | Consistency::Essp) {
            let name = json(&self.consistency)?;
            let name = name.as_str().unwrap_or_default();
            return Err(Error::option(format!("--slack goes with --consistency ssp or essp, and it is {name}")));
        }
        Ok(())
    }

    /// Says where a run without a bound on staleness waits for all workers at each iteration nevertheless.
    pub(crate) fn tell_of_waiting(&self, command: &str, plan: &Plan) {
        if self.consistency != Consistency::Async || plan.workers == 1 || plan.look_every > 1 {
            return;
        }
        if !plan.flows {
            tracing::warn!(
                "--consistency async is bsp for {command} here: a stage needs what all workers did, whatever --evaluate-every says"
            );
        } else if plan.clocks() <= 1 {
            tracing::warn!(
                "--consistency async is bsp here, since all workers meet after each iteration, which is a clock; with \
                 --evaluate-every N they meet after every N only"
            );
        }
    }

    /// Returns the options that ask for a slack; where workers wait for each other at every clock, and it is not 0, they do no
    /// longer.
    #[must_use]
    pub fn with_slack(&self, slack: Option<u64>) -> Self {
        let consistency = match (self.consistency, slack) {
            (Consistency::Bsp, Some(1..)) => Consistency::Essp,
            (Consistency::Ssp | Consistency::Essp, Some(0)) => Consistency::Bsp,
            (consistency, _) => consistency,
        };
        let slack = slack.filter(|_| matches!(consistency, Consistency::Ssp | Consistency::Essp));
        Self { consistency, slack, ..self.clone() }
    }

    /// Returns how the engine is to run, the same in all processes, and these options as they then are, with the algorithm's
    /// patience where none is given. All processes call it.
    ///
    /// # Errors
    /// As [`check`](Self::check); a lost process.
    pub fn resolve(&self, processes: &Processes, patience: u64) -> Result<(Settings, Self), Error> {
        self.check()?;
        let mut settings = Settings { seed: self.seed, grid: self.grid, early: self.early, ..Settings::default() };
        settings.strategy = self.strategy;
        settings.slack = match self.consistency {
            Consistency::Bsp => Some(0),
            Consistency::Ssp | Consistency::Essp => Some(self.slack.unwrap_or(0)),
            Consistency::Async => None,
        };
        settings.look_every = (self.evaluate_every > 0).then_some(self.evaluate_every);
        settings.lazy = self.consistency == Consistency::Ssp;
        settings.workers = self.workers.unwrap_or(settings.workers);
        settings.level = self.vector.unwrap_or(settings.level);
        settings.inject = self.inject;
        processes.settle(&mut settings)?;
        let vector = Some(settings.level);
        let patience = Some(self.patience.unwrap_or(patience));
        let resolved =
            Self { workers: Some(settings.workers), slack: settings.slack, vector, patience, ..self.clone() };
        Ok((settings, resolved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_no_unicode_is_written() {
        use std::os::unix::ffi::OsStrExt;
        let checkpoint = Some(PathBuf::from(std::ffi::OsStr::from_bytes(b"a\xffb")));
        let checkpoints = CheckpointOptions { checkpoint, ..CheckpointOptions::default() };
        let options = RunOptions { checkpoints, ..RunOptions::default() };
        assert_eq!(json(&options).unwrap()["checkpoint"], "a\u{fffd}b");
    }
}
