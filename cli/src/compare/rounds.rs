//! Runs each system in a process of its own, round after round.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;

use super::systems::{System, Systems};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;
use megagrid_training::record::Record;

/// Runs all systems in all rounds, and returns each system's records.
pub fn run(command: &str, systems: &Systems, rounds: u32, quiet: bool) -> anyhow::Result<Vec<(System, Vec<Record>)>> {
    let mut runs: Vec<(System, Vec<Record>)> = systems.iter().map(|system| (system, Vec::new())).collect();
    let place = tempfile::tempdir().context("a directory for records")?;
    let progress = Progress::spinner(quiet, "comparing");
    interrupt::count_only();
    for round in 0..rounds {
        for (at, system) in systems.of_round(round as usize) {
            progress.say(format!("{command} on {system}, round {} of {rounds}", round + 1));
            runs[at].1.push(run_one(command, system, &place.path().join("record.json"))?);
        }
    }
    Ok(runs)
}

/// Runs this very command again, for one system.
fn run_one(command: &str, system: System, record: &Path) -> anyhow::Result<Record> {
    let program = std::env::current_exe().context("finding the program that runs")?;
    // The arguments begin with the program, `compare` and the training command.
    let given: Vec<OsString> = std::env::args_os().skip(3).collect();
    let mut child = Command::new(program);
    child.args(["compare", command, "--one", system.name(), "--record"]).arg(record).args(given);
    let output = child.stdin(Stdio::null()).stdout(Stdio::null()).output().context("starting a run")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(interrupt::EXIT_CODE) || interrupt::count() > 0 {
        return Err(Failure::Child { code: interrupt::EXIT_CODE as u8, message: None }.into());
    }
    if !output.status.success() {
        let code = output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
        let reason = said.lines().rev().find_map(|line| line.strip_prefix("megagrid: ")).unwrap_or("it was killed");
        return Err(Failure::Child { code, message: Some(format!("{system}: {reason}")) }.into());
    }
    eprint!("{said}");
    let text = std::fs::read_to_string(record).context("reading a run's record")?;
    serde_json::from_str(&text).context("reading a run's record")
}
