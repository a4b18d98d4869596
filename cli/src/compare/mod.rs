//! `megagrid compare`: the same job on several systems, round after round, as one table and one page.
//!
//! Every run is a process of its own, which reads the input with the reader of the training command, runs one system and
//! writes a run record: so that memory is the system's alone, and nothing is warm from another system's run. Rounds are
//! interleaved, each begun with another system, so that what else the machine does falls on all of them.

mod baseline;
mod rounds;
mod systems;
mod table;
mod training;

use std::path::PathBuf;

use crate::common;
use crate::failure::usage;
use crate::report::{self, Subject};
use crate::{blockpg, lda, mf, pagerank};
use systems::{System, Systems};
use table::Comparison;
use training::Training;

/// Runs the same job on several systems, and compares time, objective, messages and memory.
///
/// The systems: megagrid; gas (gather, apply, scatter) and gas-faithful (the same as PowerGraph's toolkits do it); ps-naive (a
/// parameter server with everything in it), lazytable (clients pull what is too old), essp (servers push) and iterstore
/// (accesses known beforehand). All have the same reader, first values, kernels, threads and objective.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  megagrid compare mf ratings.csv --repeat 5 --report mf.html
  megagrid compare pagerank links.txt.gz --systems megagrid,gas,iterstore --target 1e-6 -w 2
  megagrid compare mf ratings.csv --gradient in-place --systems megagrid,lazytable,essp,iterstore")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Ranks a graph on several systems; the options of `pagerank`.
    #[command(name = "pagerank", mut_args(of_comparison), after_help = "")]
    PageRank(Box<Job<pagerank::Args>>),
    /// Factorizes ratings on several systems; the options of `mf`. By the gradient of all ratings, which all systems have;
    /// with --gradient in-place rating by rating, which GAS has not.
    #[command(mut_args(of_comparison), after_help = "")]
    Mf(Box<Job<mf::Args>>),
    /// Finds topics on several systems; the options of `lda`. With the dense sampler, fixed priors and no annealing.
    #[command(mut_args(of_comparison), after_help = "")]
    Lda(Box<Job<lda::Args>>),
    /// Fits a sparse logistic regression on several systems; the options of `blockpg`.
    #[command(name = "blockpg", mut_args(of_comparison), after_help = "")]
    BlockPg(Box<Job<blockpg::Args>>),
}

/// Options of the training commands that a comparison refuses, or ignores.
const HIDDEN: [&str; 14] = [
    "model",
    "checkpoint",
    "checkpoint_every",
    "resume",
    "virtual_workers",
    "link",
    "calibration",
    "clock_cost",
    "jitter",
    "inject",
    "strategy",
    "batch",
    "extra_topics",
    "warm_start",
];

/// Changes what an option of a training command is by default to what all systems have.
fn of_comparison(option: clap::Arg) -> clap::Arg {
    match option.get_id().as_str() {
        "iterations" => option.default_value("20"),
        "gradient" => option.default_value("batch"),
        "sampler" => option.default_value("dense"),
        "prior" => option.default_value("fixed"),
        "annealing" | "top_words" => option.default_value("0"),
        "tolerance" => option.hide(true).default_value("0").value_parser(no_tolerance),
        name if HIDDEN.contains(&name) => option.hide(true),
        _ => option,
    }
}

/// Reads the value of `--tolerance`: a comparison runs all iterations.
fn no_tolerance(value: &str) -> Result<f64, &'static str> {
    let advice = "a comparison runs all iterations; choose how many with --iterations, or compare at --target";
    value.parse().ok().filter(|&tolerance: &f64| tolerance == 0.0).ok_or(advice)
}

/// A training command's arguments, and what is compared.
#[derive(clap::Args)]
struct Job<A: clap::Args> {
    #[command(flatten)]
    training: A,
    #[command(flatten)]
    options: Options,
}

/// What is compared, and how often.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Comparison")]
#[group(id = "comparison")]
struct Options {
    /// Systems to run: megagrid, gas, gas-faithful, ps-naive, lazytable, essp, iterstore [default: all that run the job].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    systems: Vec<System>,
    /// Rounds: how often each system runs.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// The objective to reach, whose time is measured [default: the worst with which any run ends].
    #[arg(long, value_name = "OBJECTIVE", allow_negative_numbers = true)]
    target: Option<f64>,
    /// Run this system once in this process, and write its record to --record.
    #[arg(long, hide = true, requires = "record")]
    one: Option<System>,
    #[arg(long, hide = true, requires = "one")]
    record: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        Command::PageRank(job) => job.run(),
        Command::Mf(job) => job.run(),
        Command::Lda(job) => job.run(),
        Command::BlockPg(job) => job.run(),
    }
}

impl<A: clap::Args + Training> Job<A> {
    fn run(mut self) -> anyhow::Result<()> {
        self.training.settle()?;
        match (self.options.one, &self.options.record) {
            (Some(system), Some(record)) => {
                let common = self.training.common();
                (common.quiet, common.json, common.report) = (true, Some(record.clone()), None);
                self.training.run(system)
            }
            _ => self.compare(),
        }
    }

    /// Runs all systems in all rounds, and writes what was found.
    fn compare(mut self) -> anyhow::Result<()> {
        let systems = Systems::new(&self.options.systems, |system| self.training.runs_on(system))?;
        if self.options.target.is_some_and(|target| !target.is_finite()) {
            return Err(usage("target is no number; expected an objective"));
        }
        self.training.check()?;
        let runs = rounds::run(A::COMMAND, &systems, self.options.repeat, self.training.common().quiet)?;
        let comparison = Comparison::new(A::COMMAND, A::MAXIMIZES, self.options.target, runs);
        let common = self.training.common();
        let json = serde_json::to_string_pretty(&comparison)? + "\n";
        if common.wants_summary() {
            common::print(&comparison.text())?;
        }
        if let Some(path) = &common.json {
            common::write_text(path, &json)?;
        }
        let Some(path) = &common.report else { return Ok(()) };
        let subjects: Vec<Subject<'_>> = comparison.systems.iter().map(table::Measured::subject).collect();
        let title = format!("megagrid compare {}", A::COMMAND);
        let page = report::comparison(&title, &comparison.table(), &comparison.notes(), &subjects, &json)?;
        common::write_text(path, &page)
    }
}
