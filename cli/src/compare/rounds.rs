//! Runs each system in processes of its own, round after round.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
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
        let said = self.processes_of_run(&program, &args, (network, record));
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

    /// Runs the processes of a run to their end; returns what they said.
    fn processes_of_run(
        &self,
        program: &Path,
        args: &[OsString],
        (network, record): (Option<&Network>, &Path),
    ) -> anyhow::Result<Vec<String>> {
        // One process on this machine is no cluster, and listens nowhere.
        let ports = if self.processes > 1 { usize::from(self.processes) } else { 0 };
        let free = FreePorts::find(ports).context("finding free ports")?;
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
            // The last iteration may have been the one after which it was to end.
            Ended::Done if interrupt::count() == 0 => Ok(said),
            Ended::Done | Ended::Interrupted => Err(interrupted()),
            Ended::Failed { process, how, .. } => {
                // The first process that fails says why; one by itself may have said other things before.
                let is_only = self.processes == 1;
                let message = if is_only { reason(said.iter().rev()) } else { reason(said.iter()) };
                let message = message.map_or_else(|| format!("process {process} {how}"), str::to_owned);
                Err(Failure::Child { code: how.code(), message: Some(message) }.into())
            }
        }
    }
}

fn reason<'s>(mut said: impl Iterator<Item = &'s String>) -> Option<&'s str> {
    said.find_map(|line| line.strip_prefix("megagrid: "))
}

fn interrupted() -> anyhow::Error {
    let message = "interrupted; a comparison is written once all its rounds have ended, so none was".to_owned();
    Failure::Child { code: interrupt::EXIT_CODE as u8, message: Some(message) }.into()
}
