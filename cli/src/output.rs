//! Writing to stdout and to files.

use std::io::{ErrorKind, Write};
use std::path::Path;

use megagrid_datasets::output::replace_text;

use crate::failure::Failure;

/// Endings of names that say what neither a text nor a table of ours is.
pub const OTHER_FORMATS: [&str; 18] = [
    "gz", "zst", "zstd", "bz2", "xz", "zip", "json", "npy", "npz", "mtx", "xls", "xlsx", "ods", "arrow", "feather",
    "orc", "avro", "html",
];

/// Returns the ending of a name, in lower case; nothing where it has none.
pub fn ending(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

/// Tells whether stdout is free for a summary, whatever is written as JSON.
pub fn wants_summary(quiet: bool, json: Option<&Path>) -> bool {
    !quiet && json != Some(Path::new("-"))
}

/// Writes to stdout. Unlike `println!`, it does not panic when the reader has gone.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| of_stdout(error.into()))
}

/// Says of an error that it befell what was written to stdout.
pub fn of_stdout(error: anyhow::Error) -> anyhow::Error {
    let is_closed = |error: &std::io::Error| error.kind() == ErrorKind::BrokenPipe;
    if error.downcast_ref().is_some_and(is_closed) {
        Failure::Closed.into()
    } else {
        error.context("writing to stdout")
    }
}

/// Writes a text to a file, or to stdout for "-". A regular file is whole or absent, and replaced if there is one.
pub fn write_text(path: &Path, text: &str) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return print(text);
    }
    Ok(replace_text(path, text)?)
}
