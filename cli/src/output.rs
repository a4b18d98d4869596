//! Writing to stdout and to files.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use megagrid_datasets::output::replace_text;

/// Writes to stdout. Unlike `println!`, it does not panic when the reader has gone.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).context("writing to stdout")
}

/// Writes a text to a file, or to stdout for "-". A regular file is whole or absent, and replaced if there is one.
pub fn write_text(path: &Path, text: &str) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return print(text);
    }
    Ok(replace_text(path, text)?)
}
