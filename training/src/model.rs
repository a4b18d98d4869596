//! Trained models and their directories: `model.json`, which says what a model is, and arrays and tables beside it that other
//! tools open.

use std::fs;
use std::path::{Path, PathBuf};

use megagrid_algorithms::blockpg::Calibration;
use megagrid_datasets::output::{Column, read_table, write_directory, write_table};
use megagrid_datasets::{Dictionary, is_pipe};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::record::{InputSizes, Metrics, Record};

/// A trained model: what is written, read, shown and asked.
pub trait Model: Sized + Send + Sync + 'static {
    /// The algorithm that makes it.
    const KIND: &'static str;
    /// What is asked of it: the best items of a user, the topics of a document, the best pages.
    type Question: DeserializeOwned;
    /// The answer.
    type Answer: Serialize;

    /// Writes its arrays and tables into a directory, and what else is to be known into the manifest.
    ///
    /// # Errors
    /// What the system refuses.
    fn write(&self, into: &Path, manifest: &mut Manifest) -> Result<(), Error>;

    /// Reads it.
    ///
    /// # Errors
    /// Files that are damaged or do not fit each other.
    fn read(from: &Path, manifest: &Manifest) -> Result<Self, Error>;

    /// Answers a question.
    ///
    /// # Errors
    /// A question about what the model does not know.
    fn answer(&self, question: &Self::Question) -> Result<Self::Answer, Error>;

    /// Returns its bytes, without the names of vertices.
    fn bytes(&self) -> u64;

    /// Returns what is found at the end only: a certificate, coherence, the sum of scores.
    fn metrics(&self) -> Metrics {
        Metrics::new()
    }

    /// Returns what is known of each model of a path of penalties that ended at it.
    ///
    /// # Errors
    /// What serde does not write.
    fn path(&self) -> Result<Vec<serde_json::Value>, Error> {
        Ok(Vec::new())
    }

    /// Returns the objective, where the model knows its own.
    fn objective(&self) -> Option<f64> {
        None
    }

    /// Tells whether all parts of it are within the tolerance, where parts are trained one after the other.
    fn has_converged(&self) -> bool {
        true
    }

    /// Says in a few lines what was found.
    fn findings(&self) -> String {
        String::new()
    }
}

/// The version of the format that this program writes and reads.
const VERSION: u32 = 1;
/// The file that says what a model is.
const MANIFEST: &str = "model.json";

/// What a model says about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The algorithm.
    pub kind: String,
    /// Version of the directory's format.
    pub version: u32,
    /// The program that wrote it.
    pub megagrid: String,
    /// Every resolved option of the training.
    pub config: serde_json::Value,
    /// Sizes of the arrays by file name.
    pub shapes: serde_json::Map<String, serde_json::Value>,
    /// Mean rating, which predictions begin with; 0 for other kinds.
    #[serde(default)]
    pub mean: f32,
    /// What ratings were divided by in training; 1 for other kinds.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub unit: f32,
    /// The least and the greatest rating that it was trained on, which predictions are kept within; nothing for other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f32; 2]>,
    /// What scores of samples begin with; 0 for other kinds.
    #[serde(default)]
    pub intercept: f64,
    /// The same for each class, where there are more than two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intercepts: Vec<f64>,
    /// Names of the classes of samples; none for other kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// The lines by which scores of samples were calibrated, which weights and intercepts have in them; none for other kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibration: Vec<Calibration>,
    /// Whether words of few documents, or of most, were left out, also of the model that it began at; false for other kinds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen_words: bool,
    /// The data it was trained on.
    pub data: TrainedOn,
    /// What was measured of it.
    pub metrics: serde_json::Map<String, serde_json::Value>,
}

/// The data that a model was trained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainedOn {
    /// Left vertices.
    pub left: usize,
    /// Right vertices.
    pub right: usize,
    /// Edges.
    pub edges: usize,
    /// XXH3 of the edges under their final ids.
    pub checksum: String,
}

impl Manifest {
    fn new(kind: &str, record: &Record, checksum: u64) -> Self {
        let InputSizes { left, right, edges, .. } = record.input;
        let metrics = record.result.metrics.iter().map(|(name, value)| (name.to_string(), (*value).into()));
        Self {
            kind: kind.to_owned(),
            version: VERSION,
            megagrid: env!("CARGO_PKG_VERSION").to_owned(),
            config: with_whole_paths(&record.config),
            shapes: serde_json::Map::new(),
            mean: 0.0,
            unit: one(),
            range: None,
            intercept: 0.0,
            intercepts: Vec::new(),
            classes: Vec::new(),
            calibration: Vec::new(),
            chosen_words: false,
            data: TrainedOn { left, right, edges, checksum: format!("xxh3:{checksum:016x}") },
            metrics: metrics.collect(),
        }
    }

    /// Tells whether a name in a model's directory is that of one of its files: the manifest, an array, or the table of its ids.
    pub(crate) fn has_file(&self, name: &str) -> bool {
        let array_of_table = || name.strip_suffix(".parquet").map(|stem| format!("{stem}.npy"));
        name == MANIFEST
            || self.shapes.contains_key(name)
            || array_of_table().is_some_and(|array| self.shapes.contains_key(&array))
    }

    /// Adds the shape of a file.
    pub fn shape(&mut self, file: &str, shape: &[usize]) {
        self.shapes.insert(file.to_owned(), shape.into());
    }

    /// Returns an option of the training; its default if there is none of that name.
    #[must_use]
    pub fn option<T: DeserializeOwned + Default>(&self, name: &str) -> T {
        self.config.get(name).and_then(|value| serde_json::from_value(value.clone()).ok()).unwrap_or_default()
    }
}

fn one() -> f32 {
    1.0
}

fn is_one(unit: &f32) -> bool {
    *unit == one()
}

/// Options that name a file which an update reads again, or knows again.
const FILES: [&str; 5] = ["input", "kept_of", "restart", "restart_sets", STOP_WORDS];
/// That which may also be the name of a list.
const STOP_WORDS: &str = "stop_words";

/// Returns options that name files from anywhere: an update may be started in another directory.
fn with_whole_paths(config: &serde_json::Value) -> serde_json::Value {
    let mut config = config.clone();
    for name in FILES {
        if let Some(serde_json::Value::String(path)) = config.get_mut(name)
            && !(name == STOP_WORDS && ["none", "english"].contains(&path.as_str()))
        {
            *path = whole_path(Path::new(path)).to_string_lossy().into_owned();
        }
    }
    config
}

/// Returns a path that means the same in any directory; that of a pipe as it is.
pub(crate) fn whole_path(path: &Path) -> PathBuf {
    if is_pipe(path) { path.to_owned() } else { std::path::absolute(path).unwrap_or_else(|_| path.to_owned()) }
}

/// Writes a model to a new directory, which appears when it is complete.
///
/// # Errors
/// Something is there already; what the system refuses.
pub fn save<M: Model>(model: &M, directory: &Path, record: &Record, checksum: u64) -> Result<(), Error> {
    write_directory(directory, |into| fill(model, into, record, checksum))
}

/// Writes a model into a directory.
pub(crate) fn fill<M: Model>(model: &M, into: &Path, record: &Record, checksum: u64) -> Result<(), Error> {
    let mut manifest = Manifest::new(M::KIND, record, checksum);
    model.write(into, &mut manifest)?;
    let path = into.join(MANIFEST);
    let text = serde_json::to_string_pretty(&manifest).map_err(Error::json("writing the model"))?;
    fs::write(&path, text + "\n").map_err(Error::io(&path))
}

/// Returns what a model is called: the last part of its directory, also where that is a link to another.
#[must_use]
pub fn name(directory: &Path) -> String {
    let of = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let of_whole = || directory.canonicalize().ok().and_then(|whole| of(&whole));
    of(directory).or_else(of_whole).unwrap_or_else(|| "model".to_owned())
}

/// Returns the file of a model's directory that says what it is.
#[must_use]
pub fn manifest_path(directory: &Path) -> PathBuf {
    directory.join(MANIFEST)
}

/// Reads what a model says about itself.
///
/// # Errors
/// No such directory; a model of another version.
pub fn manifest(directory: &Path) -> Result<Manifest, Error> {
    let path = manifest_path(directory);
    let expected = "expected a directory that --model wrote";
    let text = fs::read_to_string(&path).map_err(|error| Error::invalid(&path, format!("{expected}: {error}")))?;
    let manifest: Manifest =
        serde_json::from_str(&text).map_err(|error| Error::invalid(&path, format!("{expected}: {error}")))?;
    if manifest.version != VERSION {
        let found = manifest.version;
        return Err(Error::invalid(
            &path,
            format!("format version {found}, expected {VERSION}; train the model again"),
        ));
    }
    Ok(manifest)
}

/// Reads a model from the directory that [`save`] wrote.
///
/// # Errors
/// No such directory; a model of another kind; files that are damaged.
pub fn load<M: Model>(directory: &Path) -> Result<(M, Manifest), Error> {
    let (manifest, path) = (manifest(directory)?, manifest_path(directory));
    if manifest.kind != M::KIND {
        return Err(Error::invalid(&path, format!("a model of kind {}, expected {}", manifest.kind, M::KIND)));
    }
    M::read(directory, &manifest).map(|model| (model, manifest))
}

/// What a damaged model is told with.
pub(crate) const DAMAGED: &str = "the model is damaged, train it again";

/// Writes the names of vertices as a table with the column `id`.
///
/// # Errors
/// What the system refuses.
pub fn write_names(path: &Path, names: &Dictionary) -> Result<(), Error> {
    Ok(write_table(path, &[("id", Column::Names(names))])?)
}

/// Reads the names of vertices from the column `id` of a table.
///
/// # Errors
/// A file that is damaged, or has no such column.
pub fn read_names(path: &Path) -> Result<Dictionary, Error> {
    let [ids] = columns(path, ["id"])?;
    names(path, ids)
}

/// Makes names from a column.
pub(crate) fn names(path: &Path, column: Option<Column<'static>>) -> Result<Dictionary, Error> {
    match column {
        Some(Column::U64(names)) => Ok(Dictionary::from_integers(names.into_owned())),
        Some(Column::Strings(names)) => Ok(Dictionary::from_strings(names.iter())),
        _ => Err(Error::invalid(path, format!("no column id of integers or text; {DAMAGED}"))),
    }
}

/// Refuses what is no finite number: predictions would be made up.
pub(crate) fn check_numbers<N: Copy + Into<f64>>(path: &Path, numbers: &[N]) -> Result<(), Error> {
    match numbers.iter().map(|&number| number.into()).enumerate().find(|(_, number): &(usize, f64)| !number.is_finite())
    {
        Some((at, number)) => Err(Error::invalid(path, format!("number {} is {number}; {DAMAGED}", at + 1))),
        None => Ok(()),
    }
}

/// Reads some columns of a table.
pub(crate) fn columns<const N: usize>(path: &Path, wanted: [&str; N]) -> Result<[Option<Column<'static>>; N], Error> {
    let mut table = read_table(path)?;
    Ok(wanted.map(|name| {
        let at = table.iter().position(|(found, _)| found == name)?;
        Some(table.swap_remove(at).1)
    }))
}

/// A vertex and its score, in an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scored {
    /// The name of the vertex.
    pub name: String,
    /// Its score.
    pub score: f64,
}

/// Returns the `n` highest scores, best first, ties by id.
#[must_use]
pub fn best(scores: impl Iterator<Item = (u32, f32)>, n: usize) -> Vec<(u32, f32)> {
    let mut scored: Vec<(u32, f32)> = scores.collect();
    let order = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if n > 0 && n < scored.len() {
        scored.select_nth_unstable_by(n - 1, order);
        scored.truncate(n);
    }
    scored.sort_by(order);
    scored.truncate(n);
    scored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_recorded_as_it_is_found_from_anywhere() {
        let input = |path: &str| with_whole_paths(&serde_json::json!({ "input": path }))["input"].clone();
        let here = std::env::current_dir().unwrap().join("parts-*.csv");
        assert_eq!(input("parts-*.csv"), here.to_str().unwrap());
        assert_eq!(input("-"), "-");
    }
}
