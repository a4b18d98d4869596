//! `megagrid launch`: a training command as several processes.

pub mod job;
pub mod ssh;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::Context;
use clap::parser::ValueSource;
use megagrid_engine::Settings;
use megagrid_engine::cluster::{FreePorts, HOSTS, Membership, PROCESS};
use megagrid_training::changes::is_same_file;

use crate::entry::List;
use crate::failure::{Failure, usage};
use crate::interrupt;
use crate::overwriting;
use crate::train;
use job::{Ended, Job};
use ssh::Hosts;

/// Runs a training command as several processes that share its work.
///
/// With -n, all of them on this machine: what process 0 prints is shown as it is, messages of the others with their number.
/// If one fails, all end. With --hosts and --ssh the same on other machines, where this program, the current directory and the input are at the
/// same places. With --hostfile, one process of many: run it once on each host, with its number, by a launcher of your own. Slurm and Kubernetes need no launch: a training command finds its place in SLURM_… variables (srun), or in
/// MEGAGRID_HOSTS (all addresses, separated by commas) and MEGAGRID_PROCESS or JOB_COMPLETION_INDEX.
///
/// On several machines give all processes a secret, in the file that MEGAGRID_SECRET_FILE names, or in MEGAGRID_SECRET: who does not
/// know it cannot take part. With -n and --ssh there is always one. What is sent is not encrypted.
#[derive(clap::Args)]
#[command(
    override_usage = "megagrid launch -n N [--restarts R] [--port-base P] -- COMMAND\n       \
                      megagrid launch --hosts A,B,C --ssh [--restarts R] [--port-base P] -- COMMAND\n       \
                      megagrid launch --hostfile FILE --process I -- COMMAND",
    after_help = "Examples:\n  \
        Two processes on this machine:\n    megagrid launch -n 2 -- mf ratings.csv --dims 64 --model movies\n  \
        Started again from the last checkpoint if a process dies:\n    megagrid launch -n 4 --restarts 3 -- \
        lda corpus.txt --topics 200 --checkpoint saved --checkpoint-every 10\n  \
        Processes on three machines that ssh reaches without a password, two of them on node2:\n    \
        megagrid launch --hosts node1,node2,node2,me@node3 --ssh -- mf ratings.mgrid --model movies\n  \
        One process on each of two hosts, whose addresses stand in hosts.txt as host:port, one a line:\n    \
        ssh node1 megagrid launch --hostfile hosts.txt --process 0 -- pagerank web-graph.mgrid\n    \
        ssh node2 megagrid launch --hostfile hosts.txt --process 1 -- pagerank web-graph.mgrid"
)]
pub struct Args {
    /// Processes on this machine. They share its cores, unless the command has --workers.
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true,
          required_unless_present_any = ["hostfile", "hosts"], value_parser = clap::value_parser!(u16).range(1..=1024))]
    processes: Option<u16>,
    /// Start the processes again if one dies, at most R times, from the last complete checkpoint that they wrote to the command's
    /// --checkpoint. A job that ends by an error, a missing file say, is not started again.
    #[arg(long, value_name = "R", default_value_t = 0, conflicts_with = "hostfile")]
    restarts: u32,
    #[command(flatten)]
    machines: Hosts,
    /// Listen at ports from P on [default: free ports; 7100 with --hosts].
    #[arg(long, value_name = "P", conflicts_with = "hostfile", value_parser = clap::value_parser!(u16).range(1..))]
    port_base: Option<u16>,
    /// A file with the host:port of each process, one a line, the same on all hosts.
    #[arg(long, value_name = "FILE", requires = "process", conflicts_with_all = ["processes", "hosts", "ssh", "program"])]
    hostfile: Option<PathBuf>,
    /// The number of this process: 0 is the first line of the file.
    #[arg(long, value_name = "I", requires = "hostfile", conflicts_with_all = ["processes", "hosts", "ssh", "program"])]
    process: Option<usize>,
    /// A training command and its options, after "--".
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command; `parser` is that of all commands.
pub fn run(args: &Args, parser: clap::Command) -> anyhow::Result<()> {
    let training = Training::check(&args.command, parser)?;
    match (&args.hostfile, args.process) {
        (Some(file), Some(process)) => become_one(&args.command, &Membership::from_hostfile(file, process)?),
        _ => run_all(args, &training),
    }
}

/// What launch needs to know of a training command.
struct Training {
    checkpoint: Option<PathBuf>,
    /// What is there before the run that does not go on from it.
    others: HashSet<Checkpoint>,
    has_workers: bool,
}

impl Training {
    /// Refuses commands that cannot run, as they would themselves.
    fn check(command: &[OsString], mut parser: clap::Command) -> anyhow::Result<Self> {
        let name = command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut known: Vec<&str> = train::All::entries().iter().map(|entry| entry.name).collect();
        known.push("tune");
        if cfg!(feature = "baselines") {
            known.push("geeps");
        }
        if !known.contains(&name.as_str()) {
            let known = known.join(", ");
            return Err(usage(format!("\"{name}\" is no training command; after \"--\" comes one of {known}")));
        }
        let whole = std::iter::once(OsStr::new("megagrid")).chain(command.iter().map(OsString::as_os_str));
        let matches = parser.try_get_matches_from_mut(whole).unwrap_or_else(|error| error.exit());
        overwriting::check(&parser, &matches)?;
        // What tune trains is a command of its own.
        let mut options = &matches;
        while let Some((inner, of)) = options.subcommand() {
            if name == "geeps" && inner == "plan" {
                return Err(usage("geeps plan trains nothing; run it without launch"));
            }
            options = of;
        }
        if options.try_get_one::<u32>("virtual_workers").ok().flatten().is_some() {
            return Err(usage(
                "--virtual-workers makes a cluster in one process; leave it out, or train without launch",
            ));
        }
        let input = options.try_get_one::<PathBuf>("input").ok().flatten();
        if input.is_some_and(|input| megagrid_datasets::is_pipe(input)) {
            return Err(usage(
                "every process reads a part of the input, and what comes through a pipe can be read once, by one; save it in a file",
            ));
        }
        let place = |name| options.try_get_one::<PathBuf>(name).ok().flatten().cloned();
        let (checkpoint, resume) = (place("checkpoint"), place("resume"));
        let goes_on = |from: &&Path| resume.as_deref().is_some_and(|resume| is_same_file(resume, from));
        let others = checkpoint.as_deref().filter(|saved| !goes_on(saved)).map(checkpoints).unwrap_or_default();
        // How many of GeePS there are decides what is trained, so that their number follows from no machine.
        let has_workers = name == "geeps" || options.value_source("workers") == Some(ValueSource::CommandLine);
        Ok(Self { checkpoint, others, has_workers })
    }

    /// Returns the directory that has checkpoints of this run, if there is one.
    fn last_checkpoints(&self) -> Option<&Path> {
        let is_own = |directory: &&Path| checkpoints(directory).iter().any(|found| !self.others.contains(found));
        self.checkpoint.as_deref().filter(is_own)
    }
}

/// Runs the command in the place of this process.
fn become_one(command: &[OsString], membership: &Membership) -> anyhow::Result<()> {
    let mut program = Command::new(own_program()?);
    program.args(command).env(HOSTS, membership.addresses.join(",")).env(PROCESS, membership.process.to_string());
    #[cfg(unix)]
    let error = std::os::unix::process::CommandExt::exec(&mut program);
    #[cfg(not(unix))]
    let error = match program.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    };
    Err(error).context("starting the command")
}

/// Runs all processes, again if they die and are to be restarted.
fn run_all(args: &Args, training: &Training) -> anyhow::Result<()> {
    let processes = usize::from(args.processes.unwrap_or(1));
    let mut command = args.command.clone();
    if args.machines.ssh.is_none() && !training.has_workers {
        let workers = (Settings::default().workers / processes).max(1);
        command = with_option(&command, "--workers", workers.to_string().as_ref());
    }
    interrupt::count_only();
    // They are kept over restarts.
    let free = FreePorts::find(processes).context("finding free ports")?;
    for restart in 1.. {
        let (ssh, addresses) = match (args.machines.reached(args.port_base)?, args.port_base) {
            (Some((ssh, addresses)), _) => (Some(ssh), addresses),
            (None, Some(base)) => (None, job::addresses(processes, base)?),
            (None, None) => (None, free.addresses().to_vec()),
        };
        let program = args.machines.program()?;
        let job = Job {
            program: &program,
            command: &command,
            addresses: &addresses,
            ssh: ssh.as_ref(),
            inside: None,
            kept: None,
            output: None,
        };
        let (process, how, is_death) = match job::run(&job)? {
            Ended::Done => return Ok(()),
            Ended::Interrupted => return Err(Failure::Child { code: interrupt::EXIT_CODE as u8, message: None }.into()),
            Ended::Failed { process, how, is_death } => (process, how, is_death),
        };
        if restart > args.restarts || !is_death {
            let why = if restart > args.restarts { "" } else { "; --restarts is for processes that die" };
            let message = Some(format!("process {process} {how}; all processes have ended{why}"));
            return Err(Failure::Child { code: how.code(), message }.into());
        }
        let from = training.last_checkpoints();
        let place = match from {
            Some(directory) => format!("from the last checkpoint in {}", directory.display()),
            None => "from the beginning: the job has written no checkpoint".to_owned(),
        };
        eprintln!("megagrid: process {process} {how}; restart {restart} of {} {place}", args.restarts);
        if let Some(directory) = from {
            command = resumed(&command, directory);
        }
    }
    Ok(())
}

fn own_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("finding the program that runs")
}

/// What tells a checkpoint from others: what is there when all else is, and when that was written.
type Checkpoint = (PathBuf, Option<SystemTime>);

/// Lists the complete checkpoints of a directory: their manifests are written last.
fn checkpoints(directory: &Path) -> HashSet<Checkpoint> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    // Of an engine, and of GeePS.
    let whole = [("iteration-", "checkpoint.json"), ("epoch-", "state.json")];
    let of = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let (_, last) = whole.iter().find(|(prefix, _)| name.to_string_lossy().starts_with(prefix))?;
        let last = entry.path().join(last);
        let metadata = fs::metadata(&last).ok().filter(fs::Metadata::is_file)?;
        Some((last, metadata.modified().ok()))
    };
    entries.filter_map(of).collect()
}

/// Makes a command go on from the checkpoints of a directory.
fn resumed(command: &[OsString], directory: &Path) -> Vec<OsString> {
    let mut kept = Vec::new();
    let (options, rest) = command.split_at(end_of_options(command));
    let mut given = options.iter();
    while let Some(word) = given.next() {
        match word.to_str() {
            Some("--resume") => drop(given.next()),
            Some(word) if word.starts_with("--resume=") => {}
            _ => kept.push(word.clone()),
        }
    }
    kept.extend_from_slice(rest);
    with_option(&kept, "--resume", directory.as_ref())
}

/// Adds an option to a command.
fn with_option(command: &[OsString], name: &str, value: &OsStr) -> Vec<OsString> {
    let (options, rest) = command.split_at(end_of_options(command));
    [options, &[name.into(), value.to_owned()], rest].concat()
}

/// Returns where a command's options end: at a "--" of its own, behind which words that look like options are none.
fn end_of_options(command: &[OsString]) -> usize {
    command.iter().position(|word| word == "--").unwrap_or(command.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_resumes_once() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let resumed = |command: &[&str]| resumed(&words(command), Path::new("new"));
        assert_eq!(resumed(&["mf", "a", "--resume", "old", "-q"]), words(&["mf", "a", "-q", "--resume", "new"]));
        assert_eq!(resumed(&["mf", "--resume=old", "a"]), words(&["mf", "a", "--resume", "new"]));
        let last = resumed(&["mf", "--resume", "old", "--", "--resume=a"]);
        assert_eq!(last, words(&["mf", "--resume", "new", "--", "--resume=a"]));
    }
}
