//! Writing to stdout and to files.

use std::io::Write;
use std::path::Path;

use anyhow::Context;

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
    if is_special(path) {
        return std::fs::write(path, text).with_context(|| format!("writing {}", path.display()));
    }
    Ok(megagrid_training::files::replace(path, text)?)
}

/// Tells before a long computation whether a file could be written afterwards.
pub fn check_writable(path: &Path) -> anyhow::Result<()> {
    if path == Path::new("-") || is_special(path) {
        return Ok(());
    }
    if path.is_dir() {
        anyhow::bail!("{} is a directory; name a file", path.display());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = || format!("{} could not be written", path.display());
    tempfile::tempfile_in(parent).with_context(place).map(drop)
}

/// Tells whether there is something that is no regular file: a pipe, `/dev/null`.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}
