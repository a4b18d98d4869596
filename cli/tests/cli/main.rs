//! The program as its user sees it: exit codes, stdout, stderr and files.

mod blockpg;
#[cfg(feature = "baselines")]
mod compare;
mod cuts;
mod data_commands;
mod demo;
mod errors;
mod hits;
mod interrupts;
#[cfg(target_os = "linux")]
mod kill;
mod launch;
#[cfg(target_os = "linux")]
mod launched;
mod lda;
mod members;
mod models;
mod options;
mod records;
mod stopping;
mod together;
mod trace;
mod tune;
#[cfg(unix)]
mod umask;
mod virtual_workers;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

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

    /// Writes a file, and returns its path as an argument.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), content).unwrap();
        self.name(name)
    }

    /// Returns a path in the directory as an argument.
    pub fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Returns the names of what is in the directory.
    pub fn listing(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Writes ratings of 40 users and 30 items that a rank-2 model explains, but for a little noise.
    pub fn ratings(&self) -> String {
        let mut text = String::new();
        for user in 0..40_u32 {
            for item in (0..30_u32).filter(|item| (user * 7 + item * 11) % 5 != 0) {
                let wave = |n: u32, by: f64| (f64::from(n) * by).sin();
                let rating = 3.0 + wave(user, 0.7) * wave(item, 0.9) + 0.5 * wave(user, 1.3) * wave(item, 0.4);
                writeln!(text, "u{user},i{item},{rating:.3}").unwrap();
            }
        }
        self.file("ratings.csv", text)
    }

    /// Writes a graph with a dangling vertex, a repeated edge and a self loop.
    pub fn graph(&self) -> String {
        self.file("graph.txt", "# from to\n1 2\n1 3\n2 3\n2 3\n3 1\n4 4\n4 3\n1 dangling\n")
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

/// Runs the program, which has to fail with one message on stderr that holds all of `parts`.
pub(crate) fn fails(args: &[&str], code: i32, parts: &[&str]) {
    let ran = run(args);
    assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
    for part in parts {
        assert!(ran.stderr.contains(part), "{args:?}: no \"{part}\" in: {}", ran.stderr);
    }
    assert_eq!(ran.stdout, "", "{args:?}");
    if code == 1 {
        assert_eq!(ran.stderr.lines().count(), 1, "{args:?}: {}", ran.stderr);
    }
}

/// Reads a file of JSON.
pub(crate) fn json(path: impl AsRef<Path>) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
