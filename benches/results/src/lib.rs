//! The results file of a benchmark run, and the tables that `cargo benchmarks` makes of it.
//!
//! `benches/peers/run` writes such a file. The published ones are in `docs/benchmarks/results`; README.md and
//! docs/benchmarks.md show the newest between markers, and a test fails where they differ. [`published`] runs what re-enacts
//! published results.
#![forbid(unsafe_code)]

pub mod published;
mod results;
mod tables;

use std::path::{Path, PathBuf};
use std::{fs, io};

pub use results::{Machine, Results, Row};

/// The newest of the published results: the last by name.
///
/// # Errors
///
/// If there is none below `root`.
pub fn newest(root: &Path) -> io::Result<PathBuf> {
    let folder = root.join("docs/benchmarks/results");
    let files = fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let newest = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "json")).max();
    newest.ok_or_else(|| io::Error::other(format!("{} has no results file", folder.display())))
}

/// The documents with tables, and their text with the tables of these results.
///
/// # Errors
///
/// If a document cannot be read, has a marker of no table, or a marker without an end.
pub fn documents(root: &Path, results: &Results) -> io::Result<Vec<(PathBuf, String)>> {
    let written = |name: &str| {
        let path = root.join(name);
        let text = tables::fill(&fs::read_to_string(&path)?, results)
            .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
        Ok((path, text))
    };
    ["README.md", "docs/benchmarks.md"].into_iter().map(written).collect()
}
