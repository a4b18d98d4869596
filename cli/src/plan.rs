//! `megagrid plan`: what the engine would do, without running.

use std::net::TcpStream;
use std::sync::Arc;

use megagrid_engine::plan::Plan;
use megagrid_engine::{Error, Peers};

use crate::{blockpg, common, lda, mf, pagerank, progress};

/// Prints what the engine decides for a training command, and the memory it would need, without running it.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  megagrid plan mf ratings.csv --dims 64 --workers 2")]
pub struct Args {
    /// Plan for so many processes with --workers each, and foresee what they would send each other.
    #[arg(long, global = true, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    processes: u32,
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
pub fn run(mut args: Args) -> anyhow::Result<()> {
    let common = match &mut args.command {
        Command::PageRank(args) => &mut args.common,
        Command::Mf(args) => &mut args.common,
        Command::BlockPg(args) => &mut args.common,
        Command::Lda(args) => &mut args.common,
    };
    let refused = ["--model", "--json", "--report", "--checkpoint", "--resume", "--virtual-workers", "--inject"];
    common.refuse(&refused, "is not for plan, which trains nothing; leave it out, or train with the command itself")?;
    common.planned = (args.processes > 1).then(|| Arc::new(Planned(args.processes as usize)) as Arc<dyn Peers>);
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

/// So many processes that a plan is made for, seen from the first. They are not there, and nothing is asked of them.
#[derive(Debug)]
struct Planned(usize);

impl Planned {
    fn absent<T>() -> Result<T, Error> {
        Err(Error::Start("a plan has no processes to talk to".to_owned()))
    }
}

impl Peers for Planned {
    fn process(&self) -> usize {
        0
    }

    fn processes(&self) -> usize {
        self.0
    }

    fn all_gather(&self, _: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
        Self::absent()
    }

    fn gather(&self, _: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error> {
        Self::absent()
    }

    fn sockets(&self) -> Result<Vec<Option<TcpStream>>, Error> {
        Self::absent()
    }
}
