//! The command as tests run it, in a directory of their own.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

/// A directory for one test.
pub(crate) struct Place(TempDir);

impl Place {
    /// Makes an empty directory.
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Returns a path in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns a path in the directory as an argument.
    pub fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

/// What a command did.
pub(crate) struct Ran {
    /// The exit code.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it said.
    pub stderr: String,
}

/// Runs the program.
pub(crate) fn run(args: &[&str]) -> Ran {
    let output = assert_cmd::cargo::cargo_bin_cmd!("megagrid").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs the program, which has to succeed; returns stdout.
pub(crate) fn done(args: &[&str]) -> String {
    let ran = run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    ran.stdout
}

/// Reads a file of JSON.
pub(crate) fn json(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Bytes of a row: 32 factors, a bias, and the one that it is multiplied with.
const ROW: f64 = 4.0 * 34.0;

/// Returns the bytes that the plan of matrix factorization foresees for an iteration.
pub(crate) fn planned(ratings: &str, processes: &str) -> f64 {
    let plan = done(&["plan", "mf", ratings, "--format", "ratings", "--processes", processes, "-w", "1"]);
    let line = plan.lines().find_map(|line| line.strip_prefix("traffic")).unwrap_or_else(|| panic!("{plan}"));
    line.split_whitespace().next().and_then(|bytes| bytes.parse().ok()).unwrap_or_else(|| panic!("{plan}"))
}

/// Returns the bytes of an iteration that synchronizes every mirror once: what changed to its master, the row back.
fn synced(ratings: &str, processes: &str, strategy: &str) -> f64 {
    let options = ["--format", "ratings", "-n", processes, "--strategy", strategy, "--json", "-"];
    let report: Value = serde_json::from_str(&done(&[&["partition", ratings], &options[..]].concat())).unwrap();
    let number = |of: &Value, name: &str| of[name].as_f64().unwrap();
    let found = &report["strategies"][0];
    let mirrors = |side: &str| number(&report, side) * (number(found, &format!("{side}_replication_factor")) - 1.0);
    2.0 * ROW * (mirrors("left") + mirrors("right"))
}

/// Checks that cuts of a bipartite graph send at most half of what a random one sends.
pub(crate) fn assert_halved(ratings: &str, processes: &str) {
    let random = synced(ratings, processes, "random");
    for (name, bytes) in [("bicut", synced(ratings, processes, "bicut")), ("plan", planned(ratings, processes))] {
        assert!(bytes <= random / 2.0, "{processes} processes, {name}: {bytes} of {random}");
    }
}
