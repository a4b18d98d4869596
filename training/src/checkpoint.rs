//! Checkpoints of a run: when they are written, and whether one can be continued with the options given.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use megagrid_datasets::output::{renew_directory, replace_text};
use serde_json::{Map, Value};

use crate::algorithm::{Algorithm, Pause, Run};
use crate::data::Data;
use crate::error::Error;
use crate::leg::Leg;
use crate::looks::Looks;
use crate::model::{self, Model};
use crate::options::Options;
use crate::processes::{Processes, shown};
use crate::record::Record;
use crate::run_options::{CheckpointOptions, RunOptions};
use crate::stopping::Stopping;

/// The options that a run was begun with, beside its checkpoints.
const OPTIONS: &str = "options.json";

/// The model of the last checkpoint, beside it.
const MODEL: &str = "model";

/// The name of the command among them; those of earlier versions are without.
const COMMAND: &str = "command";

/// What the name of something beside the options begins with.
const DIGEST: &str = "digest of";

/// Returns where the model of the last checkpoint in a directory is, if it was asked for.
#[must_use]
pub fn model_of(directory: &Path) -> PathBuf {
    directory.join(MODEL)
}

/// Where checkpoints of a run go, and come from.
#[derive(Clone, Debug, Default)]
pub struct Checkpoints {
    /// Where they are written.
    pub directory: Option<PathBuf>,
    /// After how many iterations, beside the end.
    every: Option<u64>,
    /// Whether the model is written with each.
    pub with_model: bool,
    /// What is continued.
    pub resume: Option<PathBuf>,
    /// Options that a run cannot go on with if they change. The engine knows the graph and the shape of the data itself.
    fixed: Map<String, Value>,
    /// Options that may change. Earlier versions fixed some of them.
    free: &'static [&'static str],
    /// Options that say what data are made of the input: others may follow from these.
    of_data: &'static [&'static str],
    /// Iterations at the last one.
    pub saved: u64,
}

impl Checkpoints {
    /// Takes what options say, and what must not change: `origin` is where the data comes from, `beside` what
    /// [`Data::beside_edges`] returns, and `more` what else is fixed.
    ///
    /// # Errors
    /// Options that serde does not write.
    pub fn new<A: Algorithm>(
        run: &RunOptions,
        options: &A::Options,
        origin: &Value,
        beside: Option<(&str, u64)>,
        more: Map<String, Value>,
    ) -> Result<Self, Error> {
        if run.checkpoints.checkpoint_every == Some(0) {
            return Err(Error::option("checkpoint_every is 0; expected 1 or more iterations"));
        }
        let mut fixed = options.fixed()?;
        fixed.extend(A::Data::FIXED.iter().filter_map(|&name| Some((name.to_owned(), origin.get(name)?.clone()))));
        fixed.insert(COMMAND.to_owned(), A::NAME.into());
        fixed.insert("seed".to_owned(), run.seed.into());
        fixed.extend(beside.map(|(what, digest)| (format!("{DIGEST} {what}"), format!("{digest:016x}").into())));
        fixed.extend(more);
        let (free, of_data, with_model) = (A::Options::FREE, A::Data::FIXED, run.checkpoint_model);
        Ok(Self { with_model, free, of_data, ..Self::with(&run.checkpoints, fixed) })
    }

    /// Takes what options say, and what must not change.
    #[must_use]
    pub fn with(options: &CheckpointOptions, fixed: Map<String, Value>) -> Self {
        let CheckpointOptions { checkpoint, checkpoint_every, resume } = options.clone();
        Self { directory: checkpoint, every: checkpoint_every, resume, fixed, ..Self::default() }
    }

    /// Continues a run if asked to, and tells before it whether checkpoints can be written. Returns the directory that it
    /// continues from. All processes call it; the first looks at options, for all.
    ///
    /// # Errors
    /// Other options; no checkpoint that fits; a directory that cannot be written to.
    pub fn begin<A: Algorithm>(
        &mut self,
        run: &mut dyn Run<A>,
        processes: &Processes,
    ) -> Result<Option<PathBuf>, Error> {
        if let Some(directory) = &self.resume {
            processes.first(|| self.compare(directory).map(drop))?;
            run.load(directory)?;
            self.saved = run.iterations();
        }
        if let Some(directory) = &self.directory {
            run.check_target(directory)?;
            processes.first(|| {
                self.check_model::<A>(directory)?;
                self.keep(directory)
            })?;
            check_seen(directory, processes)?;
        }
        Ok(self.resume.clone())
    }

    /// Refuses to write models in the place of what is none of this algorithm.
    fn check_model<A: Algorithm>(&self, directory: &Path) -> Result<(), Error> {
        let (target, kind) = (model_of(directory), <A::Model as Model>::KIND);
        if !self.with_model || !target.try_exists().map_err(Error::io(&target))? {
            return Ok(());
        }
        let advice =
            format!("models of {kind} would take its place; remove it, or name another directory for checkpoints");
        match model::manifest(&target) {
            Ok(found) if found.kind == kind => Ok(()),
            Ok(found) => Err(Error::invalid(&target, format!("is a model of {}, and {advice}", found.kind))),
            Err(_) => Err(Error::invalid(&target, format!("is no model, and {advice}"))),
        }
    }

    /// Tells whether a checkpoint is due between two iterations, and where it goes.
    #[must_use]
    pub fn due(&self, iterations: u64) -> Option<&Path> {
        let is_due = self.every.is_some_and(|every| iterations / every > self.saved / every);
        self.directory.as_deref().filter(|_| is_due)
    }

    /// Tells whether a checkpoint of these iterations is asked for, and not there.
    pub(crate) fn lack(&self, iterations: u64) -> bool {
        self.directory.is_some() && (self.saved != iterations || self.directory != self.resume)
    }

    /// Writes a checkpoint, if there are to be any, and then its model: one that cannot be written leaves something to go on from. All
    /// processes call it; `checksum` is that of the data.
    ///
    /// # Errors
    /// A disk that is full or fails.
    pub(crate) fn save<A: Algorithm>(
        &mut self,
        pause: &mut dyn Pause<A>,
        (stopping, looks): (&Stopping<A::Model>, &Looks),
        (record, checksum): (&Record, u64),
        processes: &Processes,
    ) -> Result<(), Error> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let iterations = record.result.iterations;
        processes.first(|| {
            looks.save(directory)?;
            stopping.save(directory, iterations, record)
        })?;
        pause.save(directory)?;
        processes.first(|| stopping.clean(directory))?;
        self.saved = iterations;
        self.save_model(pause, stopping, (record, checksum), processes)
    }

    /// Writes the model that a run would end with now, if models are asked for. All processes call it.
    ///
    /// # Errors
    /// A disk that is full or fails.
    pub(crate) fn save_model<A: Algorithm>(
        &self,
        pause: &mut dyn Pause<A>,
        stopping: &Stopping<A::Model>,
        (record, checksum): (&Record, u64),
        processes: &Processes,
    ) -> Result<(), Error> {
        let Some(directory) = self.directory.as_ref().filter(|_| self.with_model) else { return Ok(()) };
        pause.collect()?;
        processes.first(|| {
            let write = |model: &A::Model| {
                let mut record = record.clone();
                stopping.end(&mut record);
                record.result.metrics.extend(model.metrics());
                renew_directory(&model_of(directory), |into| model::fill(model, into, &record, checksum))
            };
            stopping.model(record.result.iterations).map_or_else(|| write(&pause.model_so_far()?), write)
        })
    }

    /// Says where what is gone on with had come further than is asked for.
    pub(crate) fn tell_of_more(&self, done: u64, leg: Leg) {
        if leg.is_last && done > leg.until {
            let from = self.resume.as_deref().unwrap_or(Path::new("the checkpoint")).display();
            tracing::warn!("{from} has {done} iterations, more than the {} asked for; none is added", leg.until);
        }
    }

    /// Says how an interrupted run is continued.
    #[must_use]
    pub fn left(&self) -> String {
        match &self.directory {
            Some(directory) => format!("continue with --resume {}", directory.display()),
            None => "no model was written, and no checkpoint was asked for".to_owned(),
        }
    }

    /// Keeps options beside the checkpoints to come, or finds that they are those of the checkpoints that are there.
    ///
    /// # Errors
    /// Other options; what the system refuses.
    pub fn keep(&self, directory: &Path) -> Result<(), Error> {
        if self.compare(directory)? {
            return Ok(());
        }
        fs::create_dir_all(directory).map_err(Error::io(directory))?;
        let fixed = Value::Object(self.fixed.clone());
        Ok(replace_text(&directory.join(OPTIONS), &format!("{fixed:#}\n"))?)
    }

    /// Compares options with those that the checkpoints of a directory were made with. Returns false if there are none.
    ///
    /// # Errors
    /// Other options; what the system refuses.
    pub fn compare(&self, directory: &Path) -> Result<bool, Error> {
        let path = directory.join(OPTIONS);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            text => text.map_err(Error::io(&path))?,
        };
        let before: Map<String, Value> = serde_json::from_str(&text).map_err(Error::json(path.display()))?;
        let is_told = |name: &str| !self.free.contains(&name) && (name != COMMAND || before.contains_key(name));
        let names = before.keys().chain(self.fixed.keys()).filter(|name| is_told(name));
        let [then, now] =
            [&before, &self.fixed].map(|all| move |name: &String| all.get(name).cloned().unwrap_or_default());
        // Where options differ, data may differ for it, and with what is made of data other options; those of another command are others.
        let differing = names.into_iter().filter(|name| then(name) != now(name));
        // Numbers and what is not set may follow from options that are words.
        let is_word = |name: &String| then(name).is_string() && now(name).is_string();
        match differing.min_by_key(|name| {
            (*name != COMMAND, name.starts_with(DIGEST), !self.of_data.contains(&name.as_str()), !is_word(name))
        }) {
            Some(name) => Err(Error::invalid(
                directory,
                format!(
                    "its checkpoints are of a run with {name} {}, and now it is {}; use the same options and data",
                    shown(&then(name)),
                    shown(&now(name))
                ),
            )),
            None => Ok(true),
        }
    }
}

/// Finds that all processes see a directory of checkpoints, before any of them has trained for long.
fn check_seen(directory: &Path, processes: &Processes) -> Result<(), Error> {
    if processes.cluster.is_none() {
        return Ok(());
    }
    // A name that no process has asked for: network file systems remember what was not there.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = format!(".seen-{}-{}", std::process::id(), since.as_nanos());
    let name = processes.broadcast(name.into_bytes())?;
    let mark = directory.join(String::from_utf8_lossy(&name).as_ref());
    processes.first(|| fs::write(&mark, "").map_err(Error::io(&mark)))?;
    let is_seen = mark.try_exists().map_err(Error::io(&mark)).and_then(|is_there| match is_there {
        true => Ok([]),
        false => Err(Error::invalid(
            directory,
            "what process 0 writes there is not seen here; all processes have to see the same directory of checkpoints",
        )),
    });
    let is_seen = processes.any(is_seen);
    processes.first(|| fs::remove_file(&mark).map_err(Error::io(&mark)))?;
    is_seen.map(drop)
}
