//! The `megagrid` command: graph machine learning from a file to a model.
//!
//! Each command is a file with `Args` and `run`. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
#![forbid(unsafe_code)]

mod blockpg;
mod checkpoint;
mod cluster;
mod common;
mod compare;
mod convert;
mod curve;
mod data;
mod demo;
mod failure;
mod generate;
mod input;
mod inspect;
mod interrupt;
mod launch;
mod lda;
mod mf;
mod model;
mod pagerank;
mod partition;
mod plan;
mod predict;
mod progress;
mod recommend;
mod record;
mod report;
mod session;
mod together;
mod top;
mod topics;
mod tune;
mod virtual_cluster;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

/// Trains recommenders and ranks graphs, on all cores, from the command line.
///
/// Begin with `megagrid demo`; every command explains itself with --help.
#[derive(Parser)]
#[command(name = "megagrid", version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(Box<demo::Args>),
    #[command(name = "pagerank")]
    PageRank(Box<pagerank::Args>),
    Mf(Box<mf::Args>),
    Lda(Box<lda::Args>),
    #[command(name = "blockpg")]
    BlockPg(Box<blockpg::Args>),
    Compare(compare::Args),
    Tune(Box<tune::Args>),
    Launch(launch::Args),
    Generate(Box<generate::Args>),
    Inspect(inspect::Args),
    Convert(convert::Args),
    Partition(partition::Args),
    Plan(plan::Args),
    Recommend(recommend::Args),
    Predict(predict::Args),
    Top(top::Args),
    Topics(topics::Args),
}

fn main() -> ExitCode {
    start_log();
    cluster::quiet_panics();
    let outcome = interrupt::install().and_then(|()| match Cli::parse().command {
        Command::Demo(args) => demo::run(&args),
        Command::PageRank(args) => virtual_cluster::train(*args, |args| &mut args.common, pagerank::run),
        Command::Mf(args) => virtual_cluster::train(*args, |args| &mut args.common, mf::run),
        Command::Lda(args) => virtual_cluster::train(*args, |args| &mut args.common, lda::run),
        Command::BlockPg(args) => virtual_cluster::train(*args, |args| &mut args.common, blockpg::run),
        Command::Compare(args) => compare::run(args),
        Command::Tune(args) => tune::run(*args),
        Command::Launch(args) => launch::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Partition(args) => partition::run(&args),
        Command::Plan(args) => plan::run(args),
        Command::Recommend(args) => recommend::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Topics(args) => topics::run(&args),
    });
    cluster::part(&outcome);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// Shows the libraries' warnings, or more by `MEGAGRID_LOG=debug`.
fn start_log() {
    let asked = std::env::var("MEGAGRID_LOG").ok().and_then(|filter| filter.parse::<Targets>().ok());
    let filter = asked.unwrap_or_else(|| Targets::new().with_default(LevelFilter::WARN));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).without_time();
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
}
