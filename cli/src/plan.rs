//! `megagrid plan`: what the engine would do, without running.

use megagrid_engine::plan::Plan;

use crate::{blockpg, common, lda, mf, pagerank, progress};

/// Prints what the engine decides for a training command, and the memory it would need, without running it.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  megagrid plan mf ratings.csv --dims 64 --workers 2")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// The plan of `pagerank`, with the same arguments.
    #[command(name = "pagerank")]
    PageRank(Box<pagerank::Args>),
    /// The plan of `mf`, with the same arguments.
    Mf(Box<mf::Args>),
    /// The plan of `blockpg`, with the same arguments.
    #[command(name = "blockpg")]
    BlockPg(Box<blockpg::Args>),
    /// The plan of `lda`, with the same arguments.
    Lda(Box<lda::Args>),
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::PageRank(args) => pagerank::plan(args),
        Command::Mf(args) => mf::plan(args),
        Command::BlockPg(args) => blockpg::plan(args),
        Command::Lda(args) => lda::plan(args),
    }
}

/// Prints a plan.
pub fn show(plan: &Plan) -> anyhow::Result<()> {
    let bytes = progress::bytes(plan.memory_bytes);
    common::print(&format!("{plan}memory        about {bytes} of grid and vertex data\n"))
}
