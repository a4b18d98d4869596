//! Checkpoints: the state after an epoch is a directory of NumPy's arrays, which appears when it is whole. The newest one
//! is kept.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;
use megagrid_datasets::output::{check_target, read_npy, replace_directory, write_vector};
use megagrid_geeps::run::{State, Take};
use megagrid_training::changes::is_same_file;
use megagrid_training::checkpoint::Checkpoints;
use megagrid_training::{Error, json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::application::Application;
use super::options::Options;

/// What directories of states are called, before the epoch.
const PREFIX: &str = "epoch-";
/// The file that says what is beside it.
const COUNTS: &str = "state.json";

/// Arrays of a state.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Counts {
    tables: usize,
    /// Local data of each worker.
    locals: Vec<usize>,
}

/// Returns where checkpoints go and come from, and the state to go on from; `config` has all options as they are taken, and
/// `hash` is that of the data. Of several processes the first one writes, and all read.
pub fn begin<A: Application>(
    application: &A,
    options: &Options,
    (config, workers): (&Value, usize),
    hash: u64,
    is_first: bool,
) -> anyhow::Result<(Checkpoints, Option<State>)> {
    let mut fixed = fixed(application, config, hash)?;
    // In however many processes they are.
    fixed.insert("workers".to_owned(), workers.into());
    let mut checkpoints = Checkpoints::with(&options.checkpoints, fixed);
    let mut state = None;
    if let Some(directory) = &checkpoints.resume {
        let is_known = checkpoints.compare(directory)?;
        let newest = newest(directory)?;
        let advice = "no whole checkpoint is there; name a directory with one, or start anew";
        let (epochs, path) = newest.filter(|_| is_known).ok_or_else(|| Error::invalid(directory, advice))?;
        let found = load(epochs, &path).with_context(|| format!("checkpoint {}", path.display()))?;
        state = Some(found);
        checkpoints.saved = epochs;
    }
    if let Some(directory) = checkpoints.directory.as_ref().filter(|_| is_first) {
        let done = checkpoints.saved;
        if let Some((epochs, _)) = newest(directory)?.filter(|(epochs, _)| *epochs > done) {
            let advice = format!("has a checkpoint of {epochs} epochs; go on with --resume, or name another directory");
            return Err(Error::invalid(directory, advice).into());
        }
        checkpoints.keep(directory)?;
        // Whether anything can be written there.
        check_target(&directory.join(COUNTS))?;
        // With the epochs that it goes on from, it can be gone on from whatever comes of this run.
        let is_there = checkpoints.resume.as_deref().is_some_and(|resume| is_same_file(resume, directory));
        if let Some(state) = state.as_ref().filter(|_| !is_there) {
            save(directory, state)?;
        }
    }
    Ok((checkpoints, state))
}

/// Returns what has to be the same for a run to go on.
fn fixed<A: Application>(application: &A, config: &Value, hash: u64) -> anyhow::Result<Map<String, Value>> {
    let data = format!("{hash:016x}");
    let mut fixed = Map::from_iter([("command".to_owned(), A::NAME.into()), ("data".to_owned(), data.into())]);
    let names = ["batch", "seed", "consistency", "slack"];
    fixed.extend(names.into_iter().filter_map(|name| Some((name.to_owned(), config.get(name)?.clone()))));
    if let Value::Object(own) = json(application)? {
        fixed.extend(own);
    }
    Ok(fixed)
}

/// Returns the newest state that is whole, and its epochs.
fn newest(directory: &Path) -> Result<Option<(u64, PathBuf)>, Error> {
    Ok(states(directory)?.into_iter().max())
}

fn states(directory: &Path) -> Result<Vec<(u64, PathBuf)>, Error> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Error::io(directory))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(Error::io(directory))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(epochs) = name.and_then(|name| name.strip_prefix(PREFIX)?.parse().ok()) {
            found.push((epochs, path));
        }
    }
    Ok(found)
}

fn table(directory: &Path, table: usize) -> PathBuf {
    directory.join(format!("table-{table}.npy"))
}

fn local(directory: &Path, worker: usize, local: usize) -> PathBuf {
    directory.join(format!("worker-{worker}-local-{local}.npy"))
}

fn load(epochs: u64, path: &Path) -> anyhow::Result<State> {
    let file = path.join(COUNTS);
    let text = fs::read_to_string(&file).map_err(Error::io(&file))?;
    let Counts { tables, locals } = serde_json::from_str(&text).map_err(Error::json(file.display()))?;
    let read = |file: PathBuf| read_npy(&file, 1).map(|array| array.values);
    let values = (0..tables).map(|at| read(table(path, at))).collect::<Result<_, _>>()?;
    let of_worker = |(worker, count): (usize, usize)| (0..count).map(|at| read(local(path, worker, at))).collect();
    let locals = locals.into_iter().enumerate().map(of_worker).collect::<Result<_, _>>()?;
    Ok(State { epochs, values, locals })
}

/// Writes a checkpoint after an epoch, if one is due or it is the last epoch.
pub fn after(epoch: u64, is_last: bool, checkpoints: &mut Checkpoints, take: Take<'_>) -> anyhow::Result<()> {
    let is_due = is_last || checkpoints.due(epoch).is_some();
    if let Some(directory) = checkpoints.directory.as_deref().filter(|_| is_due) {
        save(directory, &take()?)?;
        checkpoints.saved = epoch;
    }
    Ok(())
}

/// Writes a state, and removes those before it. One of as many epochs is that of a run that began as this one did, and is replaced.
fn save(directory: &Path, state: &State) -> anyhow::Result<()> {
    let counts = Counts { tables: state.values.len(), locals: state.locals.iter().map(Vec::len).collect() };
    let text = serde_json::to_string_pretty(&counts)?;
    replace_directory(&directory.join(format!("{PREFIX}{}", state.epochs)), |into| -> anyhow::Result<()> {
        for (at, values) in state.values.iter().enumerate() {
            write_vector(&table(into, at), values)?;
        }
        for (worker, locals) in state.locals.iter().enumerate() {
            for (at, values) in locals.iter().enumerate() {
                write_vector(&local(into, worker, at), values)?;
            }
        }
        let file = into.join(COUNTS);
        Ok(fs::write(&file, &text).map_err(Error::io(&file))?)
    })?;
    for (_, path) in states(directory)?.into_iter().filter(|(epochs, _)| *epochs < state.epochs) {
        fs::remove_dir_all(&path).map_err(Error::io(&path))?;
    }
    Ok(())
}
