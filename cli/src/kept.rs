//! `--cache DIR`: what was read as text once is kept as a cache, with which the next run begins.

use std::fs;
use std::path::Path;

use anyhow::Context;
use megagrid_datasets::cache::{kept_path, verify};
use megagrid_datasets::{Error, Format, Label, Role, is_pipe};
use megagrid_partition::Side;
use megagrid_training::input::Source;

use crate::data::{AnySource, Kind};
use crate::failure::usage;
use crate::progress::{self, Progress};

/// Returns the cache that `directory` has of an input; if it has none, or a damaged one, the input is read and kept there first.
pub fn kept(
    source: &Source,
    kind: Kind,
    positive: Vec<Label>,
    directory: &Path,
    quiet: bool,
) -> anyhow::Result<Source> {
    if is_pipe(&source.input) {
        return Err(usage("--cache keeps what has a name, and this is a pipe; save it in a file"));
    }
    if kind == Kind::Samples && source.columns.as_ref().is_some_and(|roles| roles.has(Role::Weight)) {
        return Err(usage("--cache keeps no weights of samples; leave it out"));
    }
    let source = AnySource { source: source.clone(), kind: Some(kind), positive };
    let found = source.find()?;
    if found.format == Format::Cache {
        return Ok(source.source);
    }
    let layout = source.source.layout();
    let roles = if kind == Kind::Corpus { layout.of_corpus(source.path())?.roles } else { layout.roles };
    let how = format!("{kind:?} {} {:?} {roles}", found.format, source.positive);
    let path = kept_path(directory, source.path(), &how)?;
    let columns = source.source.columns.clone();
    let kept_of = Some(source.path().to_owned());
    let in_cache = Source { format: Some(Format::Cache), columns, is_kept: true, kept_of, ..Source::new(path.clone()) };
    match verify(&path) {
        Ok(()) => {
            tracing::info!("begins with {}", path.display());
            return Ok(in_cache);
        }
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!("{error}; it is made anew"),
    }
    let making = || format!("making {}", path.display());
    fs::create_dir_all(directory).with_context(making)?;
    let temporary = tempfile::Builder::new().prefix(".megagrid-").suffix(".tmp").tempdir_in(directory);
    let temporary = temporary.with_context(making)?;
    let progress = Progress::spinner(quiet, "reading");
    let data = source.read(found)?.ordered();
    progress.say(format!("keeping {}", path.display()));
    let written = temporary.path().join("cache.mgrid");
    data.grouped(&[Side::Left, Side::Right]).write_cache(&written)?;
    // Runs at one time put the same in its place, one after the other, and whoever reads it has a whole one.
    fs::rename(&written, &path).with_context(making)?;
    drop(progress);
    let bytes = progress::bytes(megagrid_datasets::input_bytes(&path).unwrap_or(0));
    tracing::info!("kept as {}, {bytes}", path.display());
    Ok(in_cache)
}
