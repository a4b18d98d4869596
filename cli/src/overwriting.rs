//! What a command writes spares what it reads: checked for all commands at once, before any of them runs.
//!
//! Where a command has a path, clap knows the argument and the path. Arguments of [`WRITTEN`] name places that are written, all other
//! paths are read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use megagrid_datasets::files;
use megagrid_training::changes::Changed;
use megagrid_training::model;

use crate::failure::usage;

/// Options that name what is written. As positions on the command line the same names are of models that are read, or of files that
/// must not be there yet.
const WRITTEN: [&str; 10] =
    ["json", "report", "trace", "output", "page", "record", "calibration", "model", "checkpoint", "cache"];

/// Those of them that name directories, to which files are added: a file in them is in nobody's way.
const STORES: [&str; 3] = ["model", "checkpoint", "cache"];

/// Arguments that name directories of models and checkpoints, where users may keep files of their own: those of models are told by [`model_with`].
const DIRECTORIES: [&str; 4] = ["from", "model", "resume", "watch"];

/// Options of a model's training that name files which an update reads.
const TRAINED_ON: [&str; 4] = ["input", "restart", "restart_sets", "stop_words"];

/// How the standard streams are written.
const STREAM: &str = "-";

/// A path on the command line.
struct Named {
    id: String,
    /// As help writes the argument: --json, or <INPUT>.
    argument: String,
    path: PathBuf,
}

/// Refuses to write over what is read, over a file of a model, and two things to one place.
///
/// # Errors
/// Both arguments, and what to do.
pub fn check(command: &Command, matches: &ArgMatches) -> anyhow::Result<()> {
    let (mut written, mut read) = (Vec::new(), Vec::new());
    let (mut command, mut matches) = (command, matches);
    loop {
        gather(command, matches, &mut written, &mut read);
        let Some((name, of)) = matches.subcommand() else { break };
        let Some(inner) = command.find_subcommand(name) else { break };
        (command, matches) = (inner, of);
    }
    for (at, one) in written.iter().enumerate() {
        check_others(one, &written[..at])?;
        if !STORES.contains(&&*one.id) && one.path != Path::new(STREAM) {
            check_model(one)?;
            check_read(one, &read)?;
        }
    }
    Ok(())
}

/// Lists the paths that a command was given.
fn gather(command: &Command, matches: &ArgMatches, written: &mut Vec<Named>, read: &mut Vec<Named>) {
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        // Values of another type are no paths.
        let Ok(Some(paths)) = matches.try_get_many::<PathBuf>(id) else { continue };
        let is_written = WRITTEN.contains(&id) && !argument.is_positional();
        let list = if is_written { &mut *written } else { &mut *read };
        let name = match argument.get_long() {
            Some(long) => format!("--{long}"),
            None => format!("<{}>", id.to_uppercase()),
        };
        let named = |path: &PathBuf| Named { id: id.to_owned(), argument: name.clone(), path: path.clone() };
        list.extend(paths.filter(|path| is_written || *path != Path::new(STREAM)).map(named));
    }
}

/// Refuses two outputs at one place.
fn check_others(one: &Named, others: &[Named]) -> anyhow::Result<()> {
    let Some(place) = place(&one.path) else { return Ok(()) };
    // Caches have names of their own.
    let others = others.iter().filter(|other| ![&*one.id, &*other.id].contains(&"cache"));
    match others.into_iter().find(|other| self::place(&other.path).as_ref() == Some(&place)) {
        None => Ok(()),
        Some(other) => Err(usage(format!(
            "{} and {} both name {}; name another place for one of them",
            other.argument,
            one.argument,
            if one.path == Path::new(STREAM) { "standard output".into() } else { one.path.display().to_string() }
        ))),
    }
}

/// Refuses to write over a file of a model, whether the command reads that model or not.
fn check_model(one: &Named) -> anyhow::Result<()> {
    match existing(&one.path).as_deref().and_then(model_with) {
        None => Ok(()),
        Some(directory) => Err(usage(format!(
            "{} would replace {}, a file of the model in {}; name another file",
            one.argument,
            one.path.display(),
            directory.display()
        ))),
    }
}

/// Refuses to write over a file that the command reads.
fn check_read(one: &Named, read: &[Named]) -> anyhow::Result<()> {
    let Some(file) = existing(&one.path) else { return Ok(()) };
    let reads = |other: &&Named| files_of(other).iter().any(|read| read.canonicalize().is_ok_and(|read| read == file));
    match read.iter().find(reads) {
        None => Ok(()),
        Some(other) => Err(usage(format!(
            "{} would replace {}, which {} reads; name another file",
            one.argument,
            one.path.display(),
            other.argument
        ))),
    }
}

/// Returns a file without links and detours, if it is there and a regular one: nothing is lost of a pipe or a terminal.
fn existing(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().filter(|path| path.is_file())
}

/// Returns where a path leads, whether something is there or not; `None` where two may write.
fn place(path: &Path) -> Option<PathBuf> {
    match path.canonicalize() {
        Ok(place) => (place.is_file() || place.is_dir()).then_some(place),
        // A pipe, say, that has no name.
        Err(_) if path.exists() => None,
        Err(_) => {
            let path = std::path::absolute(path).ok()?;
            let (parent, name): (_, OsString) = (path.parent()?, path.file_name()?.to_owned());
            Some(parent.canonicalize().unwrap_or_else(|_| parent.to_owned()).join(name))
        }
    }
}

/// Returns the directory of the model that has a file, if one has it.
fn model_with(file: &Path) -> Option<&Path> {
    let (directory, name) = (file.parent()?, file.file_name()?.to_str()?);
    if !model::manifest_path(directory).is_file() {
        return None;
    }
    let shapes = model::manifest(directory).ok()?.shapes;
    let has_array = |stem: &str| shapes.keys().any(|array| array.strip_suffix(".npy") == Some(stem));
    // Beside an array is the table of its ids.
    let is_own = file == model::manifest_path(directory)
        || shapes.contains_key(name)
        || name.strip_suffix(".parquet").is_some_and(has_array);
    is_own.then_some(directory)
}

/// Returns the files that an argument stands for.
fn files_of(named: &Named) -> Vec<PathBuf> {
    // An update reads also what its model was trained on, and updated with.
    if named.id == "directory" {
        let Ok(manifest) = model::manifest(&named.path) else { return Vec::new() };
        let changes = manifest.option::<Vec<Changed>>("changes").into_iter().map(|one| one.change.path().to_owned());
        let named = TRAINED_ON.iter().filter_map(|name| manifest.option::<Option<PathBuf>>(name));
        return named.chain(changes).flat_map(|path| files(&path).unwrap_or_default()).collect();
    }
    if DIRECTORIES.contains(&&*named.id) {
        return Vec::new();
    }
    // What is not there is for the command to say.
    let mut files = files(&named.path).unwrap_or_default();
    // Of a directory of records only these are read.
    if named.id == "records" && named.path.is_dir() {
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    }
    files
}
