//! The program as its user sees it: exit codes, stdout, stderr and files.

#[path = "../command.rs"]
mod command;

mod als;
mod blockpg;
mod classes;
#[cfg(feature = "baselines")]
mod compare;
mod convert;
mod cuts;
mod data_commands;
mod demo;
#[cfg(unix)]
mod deploy;
mod doubts;
mod errors;
#[cfg(feature = "baselines")]
mod geeps;
mod hits;
mod interrupts;
mod kept;
#[cfg(target_os = "linux")]
mod kill;
mod launch;
#[cfg(target_os = "linux")]
mod launched;
mod lda;
#[cfg(all(target_os = "linux", feature = "baselines"))]
mod links;
mod looks;
mod members;
mod models;
mod newton;
mod optimizers;
mod options;
mod overwriting;
#[cfg(all(unix, feature = "serve"))]
mod pages;
#[cfg(all(target_os = "linux", feature = "baselines"))]
mod partitions;
mod predict;
mod ranks;
mod recommend;
mod records;
#[cfg(all(unix, feature = "serve"))]
mod requests;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod served;
#[cfg(feature = "baselines")]
mod servers;
mod shapes;
#[cfg(target_os = "linux")]
mod ssh;
mod stopping;
mod tables;
mod tested;
mod texts;
mod together;
mod trace;
mod tune;
#[cfg(unix)]
mod umask;
mod units;
mod update;
mod virtual_workers;
#[cfg(feature = "serve")]
mod watch;

use std::fmt::Write;
use std::fs;
use std::process::Command;

pub(crate) use command::{Place, done, json, run};

impl Place {
    /// Writes a file, and returns its path as an argument.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), content).unwrap();
        self.name(name)
    }

    /// Returns the names of what is in the directory.
    pub fn listing(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs Python here, where it has these packages.
    pub fn python(&self, packages: &str, code: &str) {
        let python = |code: &str| Command::new("python3").args(["-c", code]).current_dir(self.path("")).output();
        let import = format!("import {packages}\n");
        if !python(&import).is_ok_and(|output| output.status.success()) {
            return eprintln!("skipped: no Python with {packages}");
        }
        let output = python(&(import + code)).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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
