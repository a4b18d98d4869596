//! The published results that can be re-enacted here, and what a run of all of them found: `cargo published`.

mod findings;
mod page;
mod rows;
mod run;

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use crate::results::Machine;

pub use findings::{Evidence, Finding, Found, Ran, Verdict};
pub use page::page;
pub use rows::{ROWS, Row, Step};
pub use run::{Cargo, Outcome, run};

/// What a run of rows found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The day, `2026-11-26`.
    pub date: String,
    /// The commit that was measured, shortened; `-dirty` where files differ from it.
    pub commit: String,
    /// Where it was measured.
    pub machine: Machine,
    /// The rows that ran so far.
    pub rows: Vec<Ran>,
}

impl Report {
    /// Begins a report of a workspace, on this machine, today.
    #[must_use]
    pub fn begin(root: &Path) -> Self {
        let said = |program, arguments| run::said(root, program, arguments).unwrap_or_else(|| "unknown".to_owned());
        let commit = said("git", &["describe", "--always", "--dirty", "--exclude", "*"]);
        Self { date: said("date", &["-u", "+%F"]), commit, machine: Machine::this(), rows: Vec::new() }
    }

    /// Writes the report as JSON.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, serde_json::to_string_pretty(self)? + "\n")
    }
}

/// Returns the folder of the workspace.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
