//! Starting one trial: a pinned process whose result is JSON.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use megagrid_results::Machine;
use serde_json::Value;

/// A command that may use the first `threads` cores alone.
pub fn pinned(threads: u32, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.arg("-c").arg(format!("0-{}", threads - 1)).arg(program);
    command
}

/// Runs a command to its end; its stderr is shown only when it fails. Returns stdout.
pub fn run(command: &mut Command) -> Result<String> {
    let shown = std::iter::once(command.get_program()).chain(command.get_args()).map(OsStr::to_string_lossy);
    let shown = shown.collect::<Vec<_>>().join(" ");
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` ended with {}:\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a peer and reads the last line of its output.
pub fn run_peer(command: &mut Command) -> Result<Value> {
    let output = run(command)?;
    let line = output.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("expected a line of JSON, found {line:?}"))
}

/// Runs a Megagrid training command and reads the run record it leaves at `record`.
pub fn run_megagrid(command: &mut Command, record: &Path) -> Result<Value> {
    run(command.arg("--json").arg(record))?;
    let text = std::fs::read_to_string(record).with_context(|| format!("{} was not written", record.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a run record", record.display()))
}

/// The finite number at a JSON pointer, such as `/result/metrics/sum`.
pub fn number(value: &Value, pointer: &str) -> Result<f64> {
    let number = value.pointer(pointer).and_then(Value::as_f64);
    let number = number.with_context(|| format!("no number at {pointer} in {value:.200}"))?;
    ensure!(number.is_finite(), "{pointer} is {number}");
    Ok(number)
}

/// The processor's name and the number of cores, for the record.
pub fn machine() -> Machine {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(": unknown");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Machine { processor: name.trim_start_matches(['\t', ' ', ':']).to_owned(), cores }
}
