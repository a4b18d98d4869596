//! `megagrid partition`: what vertex-cut strategies would make of an input.

use std::path::PathBuf;
use std::time::Instant;

use megagrid_partition::{Partitioning, Quality, Side, strategy};
use serde::Serialize;

use crate::cuts::Training;
use crate::data::{self, AnySource, Kind};
use crate::progress::Progress;

/// Shows how strategies would deal the edges of an input to processes, and what that would cost.
///
/// Replication is masters and mirrors per vertex: memory and messages grow with it. Edge balance is edges in the fullest
/// partition by their mean: the slowest process computes so much longer. Both are 1 at best.
///
/// hdrf and aweto look at the edges in their order: that of the input, or of the left vertices in a .mgrid.
///
/// Training has cuts of its own, in runs of rows: --training shows what they would be in as many processes, with the bytes that all send
/// in an iteration, and what `--strategy auto` would take.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid partition ratings.csv -n 4 --strategy all")]
pub struct Args {
    #[command(flatten)]
    pub source: AnySource,
    /// Partitions, one for each process.
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub partitions: u32,
    /// A strategy, or all of them.
    #[arg(long, value_name = "NAME", default_value = ALL, value_parser = names())]
    pub strategy: String,
    /// Decides what strategies do at random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Show also what strategies that the training command runs under would make of it, with default options and workers on all
    /// cores of a machine like this one.
    #[arg(long)]
    pub training: bool,
    /// Write the figures as JSON; "-" is stdout.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

const ALL: &str = "all";

fn names() -> Vec<&'static str> {
    strategy::NAMES.into_iter().chain([ALL]).collect()
}

/// The figures of all strategies.
#[derive(Serialize)]
struct Report<'a> {
    input: &'a std::path::Path,
    kind: Kind,
    left: usize,
    right: usize,
    edges: usize,
    partitions: u32,
    seed: u64,
    strategies: Vec<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    training: Option<Training>,
}

/// The figures of one.
#[derive(Serialize)]
struct Figures {
    strategy: &'static str,
    replication_factor: f64,
    left_replication_factor: f64,
    right_replication_factor: f64,
    edge_balance: f64,
    master_balance: f64,
    seconds: f64,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let progress = Progress::spinner(false, "loading");
    let found = args.source.find()?;
    let read = args.source.read(found)?.ordered();
    let ends = read.ends();
    let chosen = strategy::NAMES.into_iter().filter(|&name| args.strategy == ALL || args.strategy == name);
    let mut strategies = Vec::new();
    for name in chosen {
        progress.say(name);
        let strategy = strategy::by_name(name, args.seed)?;
        let begin = Instant::now();
        let partitioning = Partitioning::new(ends, strategy.as_ref(), args.partitions as usize)?;
        let seconds = begin.elapsed().as_secs_f64();
        strategies.push(Figures::new(name, Quality::of(&partitioning), seconds));
    }
    let grouped = || args.source.open(found, &[Side::Right]);
    let training = if args.training { Training::of(grouped()?, args.partitions)? } else { None };
    drop(progress);
    let report = Report {
        input: args.source.path(),
        kind: found.kind,
        left: ends.num_left,
        right: ends.num_right,
        edges: ends.num_edges(),
        partitions: args.partitions,
        seed: args.seed,
        strategies,
        training,
    };
    let of_training = report.training.as_ref().map_or_else(String::new, |training| training.table(args.partitions));
    data::write_findings(args.json.as_deref(), &report, &(report.table() + &of_training))
}

impl Figures {
    fn new(strategy: &'static str, quality: Quality, seconds: f64) -> Self {
        Self {
            strategy,
            replication_factor: quality.replication_factor,
            left_replication_factor: quality.left_replication_factor,
            right_replication_factor: quality.right_replication_factor,
            edge_balance: quality.edge_balance,
            master_balance: quality.master_balance,
            seconds,
        }
    }
}

impl Report<'_> {
    fn table(&self) -> String {
        // Both sides of a graph are the same vertices.
        let [left, right] = if self.kind == Kind::Graph { ["left", "right"] } else { self.kind.sides() };
        let size = self.kind.size(self.left, self.right, self.edges);
        let mut text = format!("{}: {size}, in {} partitions\n", self.input.display(), self.partitions);
        text.push_str(&format!(
            "{:<9}{:>12}{left:>11}{right:>11}{:>14}{:>16}{:>10}\n",
            "strategy", "replication", "edge balance", "master balance", "seconds"
        ));
        for one in &self.strategies {
            text.push_str(&format!(
                "{:<9}{:>12.3}{:>11.3}{:>11.3}{:>14.3}{:>16.3}{:>10.3}\n",
                one.strategy,
                one.replication_factor,
                one.left_replication_factor,
                one.right_replication_factor,
                one.edge_balance,
                one.master_balance,
                one.seconds
            ));
        }
        text
    }
}
