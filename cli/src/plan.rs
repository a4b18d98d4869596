//! `megagrid plan`: what the engine would do, without running.

use std::net::TcpStream;
use std::sync::Arc;

use clap::ArgMatches;
use megagrid_engine::plan::Plan;
use megagrid_engine::{Error, Peers};

use crate::algorithms::each;
use crate::common::{OF_A_RUN, without};
use crate::entry::{self, Chosen, Entry, List, Trains, command, parsed};
use crate::{output, progress};

/// Prints what the engine decides for a training command, and the memory it would need, without running it.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  megagrid plan mf ratings.csv --dims 64 --workers 2")]
pub struct Args {
    /// Plan for N processes with --workers each, and predict what they would send each other.
    #[arg(long, global = true, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    processes: u32,
    #[command(subcommand)]
    command: Chosen<Plans>,
}

struct Plans;

impl List for Plans {
    fn entries() -> Vec<Entry> {
        each!(entry)
    }
}

fn entry<A: Trains>() -> Entry {
    let command = || {
        let about = format!("The plan of `{}`, with the same arguments", A::NAME);
        without(command::<A, entry::Args<A>>().about(about), &refused())
    };
    Entry { name: A::NAME, command, run: run_one::<A> }
}

/// Options of training commands that are of no use here.
fn refused() -> Vec<&'static str> {
    [&["--model", "--json", "--report"], &OF_A_RUN[..]].concat()
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    args.command.run()
}

fn run_one<A: Trains>(matches: &ArgMatches) -> anyhow::Result<()> {
    let args: entry::Args<A> = parsed(matches);
    let advice = "is not for plan, which trains nothing; leave it out, or train with the command itself";
    args.common.refuse(&refused(), advice)?;
    let mut job = args.job()?;
    // An option of all plans stands in each command's matches.
    let processes = matches.get_one::<u32>("processes").map_or(1, |&processes| processes as usize);
    if processes > 1 {
        job.settings.peers = Some(Arc::new(Planned(processes)));
    }
    show(&job.plan()?)
}

fn show(plan: &Plan) -> anyhow::Result<()> {
    let bytes = progress::bytes(plan.memory_bytes);
    output::print(&format!("{plan}memory        about {bytes} of grid and vertex data\n"))
}

/// Processes that a plan is made for, seen from the first. They are not there, and nothing is asked of them.
#[derive(Debug)]
pub struct Planned(pub usize);

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
