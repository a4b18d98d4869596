//! Updates: a model goes on with data that arrived, or without data that were taken back, under the options that it was trained with.

use std::collections::HashSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use megagrid_datasets::output::{check_target, replace_directory, write_directory};
use megagrid_datasets::{Format, Labels, Roles, is_pipe};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::changes::{Change, Changed, is_same_file};
use crate::input::{Source, parse_format};
use crate::mf::HELD_OUT;
use crate::model::{self, Manifest, whole_path};
use crate::{Algorithm, Data, Error, Job, Processes, RunOptions, Trained, UpdatedOn, join, json};

/// What changed since a model was trained.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Data that arrived.
    pub added: Option<PathBuf>,
    /// Data that were taken back.
    pub removed: Option<PathBuf>,
    /// What the model was trained on; `None`: what its manifest names.
    pub data: Option<PathBuf>,
    /// The format of data that arrived or were taken back; `None`: that of what the model was trained on, unless they say it themselves.
    pub format: Option<Format>,
    /// Their columns; `None`: those that the model was trained on.
    pub columns: Option<Roles>,
}

/// A model before its update.
#[derive(Clone, Debug)]
pub struct Before {
    manifest: Manifest,
    updated_on: UpdatedOn,
    /// Options of the manifest that stay as they are.
    stays: Vec<String>,
}

/// Reads what a model is to be trained on: all data where the algorithm needs them, where some are taken back, or where they are named;
/// else what arrived only. `change` changes options that the model was trained with.
///
/// # Errors
/// A model of another kind or version, or with options that this program does not know; data that cannot be read, or are not those that
/// the model was trained on; data to be taken back that are not there.
pub fn read<A: Algorithm>(
    directory: &Path,
    changes: &Changes,
    change: impl FnOnce(A::Options) -> Result<A::Options, Error>,
    run: RunOptions,
) -> Result<(Job<A>, Before), Error> {
    let (model, manifest) = model::load::<A::Model>(directory)?;
    let is_of_all = changes.data.is_some() || changes.removed.is_some();
    let updated_on = A::updated_on(&model)?;
    let updated_on = if is_of_all { UpdatedOn::All } else { updated_on };
    let options: A::Options = options_of(directory, manifest.config.clone())?;
    let continued = A::continued(options.clone(), &model, updated_on);
    drop(model);
    let how: <A::Data as Data>::Options = options_of(directory, untested(&manifest.config))?;
    // How long an update takes is its own: the next one goes by what the model was trained with. One on what is new changes none
    // of the options that all other data were read and trained with.
    let stays = match updated_on {
        UpdatedOn::All => ["iterations", "tolerance"].map(str::to_owned).to_vec(),
        UpdatedOn::New => names(&join([json(&options)?, json(&how)?])),
    };
    let how = if updated_on == UpdatedOn::New { A::Data::of_part(how) } else { how };
    if !manifest.option::<Value>("sample_weights").is_null() {
        let problem = "it was trained with --sample-weights, which are not there for other samples; train with --from";
        return Err(Error::invalid(&model::manifest_path(directory), problem));
    }
    let all = source(directory, &manifest, changes, updated_on)?;
    let read = match (updated_on, all.changes.last()) {
        (UpdatedOn::New, Some(added)) if changes.added.is_some() => all.like_changed(added),
        _ => all.clone(),
    };
    let seed = manifest.option::<Option<u64>>("seed").unwrap_or(run.seed);
    let run = RunOptions { seed, from: Some(directory.to_owned()), patience: Some(0), ..run };
    let mut job: Job<A> = Job::read((read, &how), change(continued)?, &run, &Processes::default())?;
    if updated_on == UpdatedOn::All && !all.has_others {
        A::forget_others(&mut job.data);
    }
    job.data.check_beside(&manifest).map_err(|problem| Error::invalid(directory, problem))?;
    let origin = if updated_on == UpdatedOn::New { join([json(&all)?, json(&how)?]) } else { job.origin };
    Ok((Job { origin, is_kept: true, ..job }, Before { manifest, updated_on, stays }))
}

impl Before {
    /// Writes the model after its update to a new directory, or in the place of the earlier one, which is whole until then.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn save<A: Algorithm>(&self, trained: &Trained<A>, place: &Place) -> Result<(), Error> {
        let Some(model) = &trained.model else { return Ok(()) };
        let (mut record, mut checksum) = (trained.record.clone(), trained.checksum);
        for name in &self.stays {
            let kept = record.config.get_mut(name).zip(self.manifest.config.get(name));
            kept.into_iter().for_each(|(now, before)| now.clone_from(before));
        }
        if self.updated_on == UpdatedOn::New {
            let before = &self.manifest.data;
            record.input.edges += before.edges;
            let number = before.checksum.trim_start_matches("xxh3:");
            checksum ^= u64::from_str_radix(number, 16).unwrap_or_default();
        }
        let fill = |into: &Path| model::fill(model, into, &record, checksum);
        match place {
            Place::New(directory) => write_directory(directory, fill),
            Place::Same(directory) => {
                // Of two updates that end at a time one finds that the other was faster.
                let before = File::open(directory).map_err(Error::io(directory))?;
                match before.lock() {
                    Err(error) if error.kind() != ErrorKind::Unsupported => Err(Error::io(directory)(error)),
                    _ => replace_directory(directory, |into| {
                        fill(into)?;
                        self.check_same(directory)
                    }),
                }
            }
        }
    }

    /// Finds that the model is the one that was read, with nothing beside it.
    fn check_same(&self, directory: &Path) -> Result<(), Error> {
        if model::manifest(directory)? != self.manifest {
            let problem =
                "another update or training replaced the model meanwhile, and it is left as it is; update it again";
            return Err(Error::invalid(directory, problem));
        }
        check_own(directory, &self.manifest)
    }

    /// Returns those of a model's classes that it did not tell apart before.
    #[must_use]
    pub fn new_classes<'m>(&self, after: &'m Manifest) -> Vec<&'m str> {
        let is_known = |class: &String| self.manifest.classes.iter().any(|known| Labels::is_same(known, class));
        after.classes.iter().filter(|class| !is_known(class)).map(|class| &class[..]).collect()
    }

    /// Returns by how many vertices of each side a model grew.
    #[must_use]
    pub fn new_vertices(&self, after: &Manifest) -> [usize; 2] {
        let (before, after) = (&self.manifest.data, &after.data);
        [after.left.saturating_sub(before.left), after.right.saturating_sub(before.right)]
    }

    /// Says what the model is trained on.
    #[must_use]
    pub fn updated_on(&self) -> UpdatedOn {
        self.updated_on
    }
}

/// Where a model goes after its update.
#[derive(Clone, Debug)]
pub enum Place {
    /// To a new directory.
    New(PathBuf),
    /// Where it was.
    Same(PathBuf),
}

impl Place {
    /// Returns the model's directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        match self {
            Self::New(directory) | Self::Same(directory) => directory,
        }
    }

    /// Tells before a training whether the model could be written there.
    ///
    /// # Errors
    /// Something is there already, or the directory around it cannot be written to.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::New(directory) => Ok(check_target(directory)?),
            Self::Same(directory) => {
                check_own(directory, &model::manifest(directory)?)?;
                Ok(check_target(&beside(directory))?)
            }
        }
    }
}

/// Finds that there is nothing in a model's directory but the model: what is replaced is gone.
fn check_own(directory: &Path, manifest: &Manifest) -> Result<(), Error> {
    for entry in std::fs::read_dir(directory).map_err(Error::io(directory))? {
        let name = entry.map_err(Error::io(directory))?.file_name();
        if !name.to_str().is_some_and(|name| manifest.has_file(name)) {
            let problem = "is no file of the model, whose directory an update replaces; move it, or name another directory with --model";
            return Err(Error::invalid(&directory.join(name), problem));
        }
    }
    Ok(())
}

/// Returns a place beside a directory, where nothing is.
fn beside(directory: &Path) -> PathBuf {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    real.with_file_name(format!(".megagrid-{}.tmp", std::process::id()))
}

/// Reads options from those of a model.
fn options_of<T: DeserializeOwned>(directory: &Path, config: Value) -> Result<T, Error> {
    serde_json::from_value(config).map_err(|error| {
        let problem = format!("its options are not those of this version: {error}; train the model again");
        Error::invalid(&model::manifest_path(directory), problem)
    })
}

fn names(options: &Value) -> Vec<String> {
    options.as_object().into_iter().flat_map(|options| options.keys().cloned()).collect()
}

/// Returns options without those that keep data for testing: an update trains on all that it is given.
fn untested(config: &Value) -> Value {
    let mut config = config.clone();
    for name in TESTING.iter().chain(&HELD_OUT) {
        config.as_object_mut().and_then(|options| options.remove(*name));
    }
    config
}

/// Options that go with data that are kept for testing.
const TESTING: [&str; 3] = ["test", "ranking", "calibrate"];

/// Returns the data that a model was trained on, and what changed.
fn source(directory: &Path, manifest: &Manifest, changes: &Changes, updated_on: UpdatedOn) -> Result<Source, Error> {
    let text = |name| manifest.config.get(name).and_then(Value::as_str);
    let columns = text("columns").map(|text| text.parse().map_err(Error::Option)).transpose()?;
    let (input, format, mut all): (_, _, Vec<Changed>) = match (&changes.data, text("input")) {
        (Some(path), _) => (path.clone(), None, Vec::new()),
        (None, Some(input)) => {
            let format = parse_format(text("format").unwrap_or("auto"))?;
            (PathBuf::from(input), format, manifest.option("changes"))
        }
        // What is new is all that is read.
        (None, None) if updated_on == UpdatedOn::New => (PathBuf::new(), None, manifest.option("changes")),
        (None, None) => {
            let problem = "it was trained on data in memory, as arrays of Python are, and all data have to be read again; write them to a \
                           file, and name it with --data";
            return Err(Error::invalid(&model::manifest_path(directory), problem));
        }
    };
    if changes.data.is_none() && updated_on == UpdatedOn::All {
        let mut recorded = all.iter().map(|one| one.change.path()).chain([&*input]);
        if let Some(pipe) = recorded.find(|path| was_pipe(path)) {
            return Err(Error::invalid(pipe, "was read from a pipe; name the data with --data"));
        }
    }
    let (before, was_held_out) = (all.len(), HELD_OUT.iter().any(|name| !manifest.option::<Value>(name).is_null()));
    // The constant feature of an intercept stands in no file.
    let constant = if manifest.option("intercept") { manifest.data.left } else { 0 };
    // Where features are hashed, those of a sample that have one hash are one.
    let is_counted = !was_held_out && manifest.option::<Value>("hash_bits").is_null();
    let expected = is_counted.then_some((before, manifest.data.edges.saturating_sub(constant)));
    let removed = changes.removed.as_deref().map(|path| Change::Remove(whole_path(path)));
    let added = changes.added.as_deref().map(|path| Change::Add(whole_path(path)));
    // Data that are named take the place of a cache as well.
    let (is_kept, kept_of) =
        if changes.data.is_none() { (manifest.option("is_kept"), manifest.option("kept_of")) } else { (false, None) };
    let counted = Counted { input, kept_of };
    if let Some(path) = added.as_ref().map(Change::path).filter(|path| !was_pipe(path)) {
        counted.check_same(path)?;
    }
    if updated_on == UpdatedOn::All {
        counted.check_among(added.as_ref().map(Change::path), &all)?;
    }
    // What is counted among data that are named is what it was then.
    let earlier: Vec<Changed> = manifest.option("changes");
    let is_counted_there = |change: &Change| {
        let now = Changed::from(change.clone());
        let is_it =
            |before: &Changed| before.change.is_same(change) && now.bytes.is_some() && before.bytes == now.bytes;
        changes.data.is_some() && matches!(change, Change::Add(_)) && earlier.iter().any(is_it)
    };
    for change in removed.into_iter().chain(added) {
        if is_counted_there(&change) {
            let problem = "the model was updated with this file already, so that its lines are among the data of --data, and would be \
                           counted twice";
            return Err(Error::invalid(change.path(), problem));
        }
        if !was_pipe(change.path()) && all.iter().any(|before| before.change.is_same(&change)) {
            let problem = "the model was updated with this file already; keep each day's file, since later updates may read it again, \
                           and name the new one otherwise";
            return Err(Error::invalid(change.path(), problem));
        }
        let [format, columns] =
            [changes.format.map(|format| format.to_string()), changes.columns.as_ref().map(ToString::to_string)];
        all.push(Changed { format, columns, ..change.into() });
    }
    let Counted { input, kept_of } = counted;
    let has_others = has_others(manifest);
    let num_columns = manifest.option("num_columns");
    Ok(Source {
        format,
        columns,
        num_columns,
        changes: all,
        has_others,
        expected,
        is_kept,
        kept_of,
        ..Source::new(input)
    })
}

/// Tells whether a model may have rows that are of none of the data which its manifest names, since its training began at another model.
/// Updates begin at a model too, but there are changes then.
fn has_others(manifest: &Manifest) -> bool {
    let began_at_another = || {
        let changes: Vec<Changed> = manifest.option("changes");
        changes.is_empty() && !manifest.option::<Value>("from").is_null()
    };
    manifest.option("has_others") || began_at_another()
}

/// What a model was trained on, which counts already: the input that is read again, and what that was kept of, where it is a cache.
struct Counted {
    input: PathBuf,
    kept_of: Option<PathBuf>,
}

impl Counted {
    /// Refuses the data that a model was trained on.
    fn check_same(&self, added: &Path) -> Result<(), Error> {
        let is_same = |place: &PathBuf| whole_path(added) == whole_path(place) || is_same_file(added, place);
        if is_same(&self.input) || self.kept_of.as_ref().is_some_and(is_same) {
            let problem =
                "is what the model was trained on, which would count twice; name a file with the new data only";
            return Err(Error::invalid(added, problem));
        }
        Ok(())
    }

    /// Where all is read again, refuses what stands among its files: data that arrive, and those of earlier updates. Which of the files there
    /// were then nobody knows, so that one of them may be new to a model that goes on with new data only, and to a cache what came since.
    fn check_among(&self, added: Option<&Path>, earlier: &[Changed]) -> Result<(), Error> {
        let (files, input) = (real_files(&self.input), self.input.display());
        let are_among = |path: &Path, files: &HashSet<PathBuf>| !real_files(path).is_disjoint(files);
        if let Some(added) = added {
            if are_among(added, &files) {
                let problem = format!(
                    "stands among the files of {input}, all of which are read again, so that it would count twice; keep what arrives elsewhere"
                );
                return Err(Error::invalid(added, problem));
            }
            if let Some(kept_of) = self.kept_of.as_ref().filter(|kept_of| are_among(added, &real_files(kept_of))) {
                let kept_of = kept_of.display();
                let problem = format!(
                    "stands among the files of {kept_of}, which the model was trained on, so that it would count twice; keep what arrives \
                     elsewhere"
                );
                return Err(Error::invalid(added, problem));
            }
        }
        let added_before = earlier.iter().filter_map(|one| match &one.change {
            Change::Add(path) => Some(path),
            Change::Remove(_) => None,
        });
        match added_before.into_iter().find(|path| are_among(path, &files)) {
            Some(path) => Err(Error::invalid(
                path,
                format!(
                    "was added by an update, and stands among the files of {input}, all of which are read again, so that it would count \
                     twice; name the data that the model was trained on with --data"
                ),
            )),
            None => Ok(()),
        }
    }
}

/// Returns the files of an input as the system knows them, links followed; none of what is not there.
fn real_files(input: &Path) -> HashSet<PathBuf> {
    let files = megagrid_datasets::files(input).unwrap_or_default();
    files.iter().filter_map(|file| file.canonicalize().ok()).collect()
}

/// Tells whether a path is that of a pipe, which may be there no longer.
fn was_pipe(path: &Path) -> bool {
    is_pipe(path) || ["/dev/fd", "/dev/stdin", "/proc/self/fd"].iter().any(|pipe| path.starts_with(pipe))
}
