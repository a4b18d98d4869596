//! The `megagrid` command: graph machine learning from a file to a model.
//!
//! Each command is a file with `Args` and `run`. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
#![forbid(unsafe_code)]

mod algorithms;
#[cfg(test)]
mod book;
mod cluster;
mod common;
#[cfg(feature = "baselines")]
mod compare;
mod completions;
mod convert;
mod curve;
mod cuts;
mod data;
mod demo;
mod entry;
mod experiment;
mod factors;
mod failure;
#[cfg(feature = "baselines")]
mod geeps;
mod generate;
mod inspect;
mod interrupt;
mod kept;
mod kinds;
mod launch;
mod man;
mod output;
mod overwriting;
mod partition;
mod plan;
mod predict;
mod progress;
mod recommend;
mod report;
mod rows;
#[cfg(feature = "serve")]
mod serve;
mod similar;
mod together;
mod top;
mod topics;
mod trace;
mod train;
mod tune;
mod update;
mod view;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

/// Trains recommenders, topic models and sparse regression, and ranks graphs, on all cores.
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
    #[command(flatten)]
    Train(entry::Chosen<train::All>),
    #[cfg(feature = "baselines")]
    Compare(compare::Args),
    #[cfg(feature = "baselines")]
    Geeps(geeps::Args),
    Tune(tune::Args),
    Update(Box<update::Args>),
    Launch(launch::Args),
    Generate(Box<generate::Args>),
    Inspect(inspect::Args),
    Convert(convert::Args),
    Partition(partition::Args),
    Plan(plan::Args),
    View(view::Args),
    Recommend(recommend::Args),
    Similar(similar::Args),
    Predict(predict::Args),
    Top(top::Args),
    Topics(topics::Args),
    #[cfg(feature = "serve")]
    Serve(serve::Args),
    Completions(completions::Args),
    Man(man::Args),
}

fn main() -> ExitCode {
    start_log();
    cluster::quiet_panics();
    let caught = interrupt::install(cluster::launcher().is_some());
    let outcome = caught.and_then(|()| check_variables()).and_then(|()| parsed()).and_then(|cli| match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Train(chosen) => chosen.run(),
        #[cfg(feature = "baselines")]
        Command::Compare(args) => compare::run(&args),
        #[cfg(feature = "baselines")]
        Command::Geeps(args) => geeps::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Update(args) => update::run(&args),
        Command::Launch(args) => launch::run(&args, command()),
        Command::Generate(args) => generate::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Partition(args) => partition::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::View(args) => view::run(&args),
        Command::Recommend(args) => recommend::run(&args),
        Command::Similar(args) => similar::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Topics(args) => topics::run(&args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(&args),
        Command::Completions(args) => completions::run(&args, command()),
        Command::Man(args) => man::run(&args, command()),
    });
    cluster::part(&outcome);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// Returns the whole command, as help shows it.
fn command() -> clap::Command {
    Cli::command().mut_subcommand("demo", |demo| common::without(demo, &demo::REFUSED))
}

/// Refuses variables that are no text: a secret or a token would count as none.
fn check_variables() -> anyhow::Result<()> {
    let is_ours = |name: &OsString| name.as_encoded_bytes().starts_with(b"MEGAGRID_");
    match std::env::vars_os().find(|(name, value)| is_ours(name) && value.to_str().is_none()) {
        Some((name, _)) => Err(failure::usage(format!("{} is not UTF-8; expected text", name.display()))),
        None => Ok(()),
    }
}

/// Reads the command line, and checks that what is written spares what is read.
fn parsed() -> anyhow::Result<Cli> {
    let mut command = command();
    let matches = command.get_matches_mut();
    overwriting::check(&command, &matches)?;
    Ok(Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit()))
}

/// Shows the libraries' warnings, or more by `MEGAGRID_LOG=debug`.
fn start_log() {
    let asked = std::env::var("MEGAGRID_LOG").ok().and_then(|filter| filter.parse::<Targets>().ok());
    let filter = asked.unwrap_or_else(|| Targets::new().with_default(LevelFilter::WARN));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).without_time();
    tracing_subscriber::registry().with(lines.with_filter(filter)).with(trace::layer()).init();
}
