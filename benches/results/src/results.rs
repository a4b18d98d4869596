//! The results file.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What one run on one machine found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The day, `2026-11-22`.
    pub date: String,
    /// The commit that was measured, shortened.
    pub commit: String,
    /// Where it was measured.
    pub machine: Machine,
    /// What a reader must know of the whole run.
    pub notes: Vec<String>,
    /// In the order of the tables, of their columns and of their lines.
    pub rows: Vec<Row>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Cores that the run could use.
    pub cores: usize,
}

impl Machine {
    /// Returns this machine.
    #[must_use]
    pub fn this() -> Self {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let processor = name.map_or("unknown", |(_, name)| name).to_owned();
        Self { processor, cores: std::thread::available_parallelism().map_or(1, usize::from) }
    }
}

/// One measure of Megagrid beside the same measure of one other system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The task and its input.
    pub table: String,
    /// The measure with its unit: `s per iteration`. Less is better.
    pub what: String,
    /// The command that measures it.
    pub command: String,
    /// The other system.
    pub peer: String,
    /// Threads of Megagrid, and of the peer where it has as many.
    pub threads: u32,
    /// `ours` and `theirs` are medians of as many interleaved rounds.
    pub rounds: u32,
    /// Megagrid's median; absent where it did not reach a goal in each round.
    pub ours: Option<f64>,
    /// The peer's.
    pub theirs: Option<f64>,
    /// How many times as much the peer takes.
    pub ratio: Option<f64>,
}

impl Results {
    /// Reads a results file.
    ///
    /// # Errors
    ///
    /// If there is no such file, or it is none of results.
    pub fn read(path: &Path) -> io::Result<Self> {
        read_json(path)
    }

    /// Writes `<date>-<processor>.json` into a folder, which is made if it is not there. Returns the file.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        let words = self.machine.processor.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let words = words.map(str::to_ascii_lowercase).filter(|word| !matches!(word.as_str(), "r" | "tm" | "cpu"));
        let machine = words.take(4).chain([self.machine.cores.to_string()]).collect::<Vec<_>>().join("-");
        let path = folder.join(format!("{}-{machine}.json", self.date));
        fs::create_dir_all(folder)?;
        fs::write(&path, serde_json::to_string_pretty(self)? + "\n")?;
        Ok(path)
    }
}

/// Reads a file of JSON; errors name it.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    let named = |error: &dyn std::fmt::Display| io::Error::other(format!("{}: {error}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| named(&error))?;
    serde_json::from_str(&text).map_err(|error| named(&error))
}
