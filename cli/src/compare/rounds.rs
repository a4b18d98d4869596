//! Runs each system in processes of its own, round after round.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::Context;
use megagrid_engine::Settings;
use megagrid_engine::cluster::FreePorts;
use megagrid_partition::parallel::lock;

use super::network::{self, Network, Rate};
use super::systems::{System, Systems};
use crate::failure::Failure;
use crate::interrupt;
use crate::launch::job::{self, Ended, Kept};
use crate::launch::ssh::Hosts;
use crate::progress::Progress;
use megagrid_training::record::Record;

/// What is run of a comparison.
pub struct Rounds<'o> {
    /// Processes of each run.
    pub processes: u16,
    /// What their links carry; `None`: they are connected over the loopback interface.
    pub link: Option<Rate>,
    /// The machines of processes; none: they run on this one.
    pub machines: &'o Hosts,
    /// Whether it is said how many threads each process has; else they share the machine's cores.
    pub has_workers: bool,
    /// How often each system runs.
    pub count: u32,
}

impl Rounds<'_> {
    /// Runs all systems in all rounds, and returns each system's records.
    pub fn run(&self, command: &str, systems: &Systems, quiet: bool) -> anyhow::Result<Vec<(System, Vec<Record>)>> {
        let mut runs: Vec<(System, Vec<Record>)> = systems.iter().map(|system| (system, Vec::new())).collect();
        let place = tempfile::tempdir().context("a directory for records")?;
        let progress = Progress::spinner(quiet, "comparing");
        interrupt::count_only();
        let network = self.link.map(|rate| Network::new(usize::from(self.processes), rate)).transpose()?;
        for round in 0..self.count {
            for (at, system) in systems.of_round(round as usize) {
                progress.say(format!("{command} on {system}, round {} of {}", round + 1, self.count));
                runs[at].1.push(self.run_one(
                    (command, system),
                    &place.path().join("record.json"),
                    network.as_ref(),
                )?);
            }
        }
        Ok(runs)
    }

    /// Runs this very command again, for one system.
    fn run_one(
        &self,
        (command, system): (&str, System),
        record: &Path,
        network: Option<&Network>,
    ) -> anyhow::Result<Record> {
        let (program, is_here) = (self.machines.program()?, self.machines.ssh.is_none());
        let own = ["compare", command, "--one", system.name(), "--record"].map(OsString::from);
        // What a process elsewhere writes comes by its output.
        let record_there: OsString = if is_here { record.into() } else { "-".into() };
        // The arguments begin with the program, `compare` and the training command.
        let given = std::env::args_os().skip(3);
        let mut args: Vec<OsString> = own.into_iter().chain([record_there]).collect();
        let processes = usize::from(self.processes);
        if processes > 1 && is_here && !self.has_workers {
            args.extend(["--workers".into(), (Settings::default().workers / processes).max(1).to_string().into()]);
        }
        // There may be a `--` in them, after which nothing is an option.
        args.extend(given);
        let said = if processes > 1 || !is_here {
            self.together(&program, &args, (network, record))
        } else {
            by_itself(&program, &args)
        };
        let said = said.map_err(|failure| match failure.downcast() {
            Ok(Failure::Child { code, message }) => {
                let message = message.map(|reason| format!("on {system}: {reason}"));
                Failure::Child { code, message }.into()
            }
            Ok(other) => other.into(),
            Err(other) => other,
        })?;
        said.iter().for_each(|line| eprintln!("{line}"));
        let text = std::fs::read_to_string(record).context("reading a run's record")?;
        serde_json::from_str(&text).context("reading a run's record")
    }

    /// Runs several processes to their end; returns what they said.
    fn together(
        &self,
        program: &Path,
        args: &[OsString],
        (network, record): (Option<&Network>, &Path),
    ) -> anyhow::Result<Vec<String>> {
        let free = FreePorts::find(usize::from(self.processes)).context("finding free ports")?;
        let (ssh, there) = self.machines.reached(None)?.unzip();
        let here = || network.map_or_else(|| free.addresses().to_vec(), Network::addresses);
        let addresses = there.unwrap_or_else(here);
        let output = ssh.as_ref().map(|_| File::create(record).context("a file for a record")).transpose()?;
        let inside = network.map(|_| network::inside as job::Inside);
        let kept = Kept::default();
        let ended = job::run(&job::Job {
            program,
            command: args,
            addresses: &addresses,
            ssh: ssh.as_ref(),
            inside,
            kept: Some(Arc::clone(&kept)),
            output,
        })?;
        let said = std::mem::take(&mut *lock(&kept));
        match ended {
            Ended::Done => Ok(said),
            Ended::Interrupted => Err(interrupted()),
            Ended::Failed { process, how, .. } => {
                let message = reason(said.iter()).map_or_else(|| format!("process {process} {how}"), str::to_owned);
                Err(Failure::Child { code: how.code(), message: Some(message) }.into())
            }
        }
    }
}

/// Runs a process to its end; returns what it said.
fn by_itself(program: &Path, args: &[OsString]) -> anyhow::Result<Vec<String>> {
    let mut child = Command::new(program);
    let output = child.args(args).stdin(Stdio::null()).stdout(Stdio::null()).output().context("starting a run")?;
    let said: Vec<String> = String::from_utf8_lossy(&output.stderr).lines().map(str::to_owned).collect();
    if output.status.code() == Some(interrupt::EXIT_CODE) || interrupt::count() > 0 {
        return Err(interrupted());
    }
    if !output.status.success() {
        let code = output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
        let message = reason(said.iter().rev()).unwrap_or("it was killed").to_owned();
        return Err(Failure::Child { code, message: Some(message) }.into());
    }
    Ok(said)
}

fn reason<'s>(mut said: impl Iterator<Item = &'s String>) -> Option<&'s str> {
    said.find_map(|line| line.strip_prefix("megagrid: "))
}

fn interrupted() -> anyhow::Error {
    Failure::Child { code: interrupt::EXIT_CODE as u8, message: None }.into()
}
