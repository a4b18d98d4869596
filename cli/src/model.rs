//! Model directories: `model.json`, which says what it is, and arrays and tables beside it that other tools open.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use megagrid_datasets::Dictionary;
use megagrid_datasets::output::{Column, read_table};
use serde::{Deserialize, Serialize};

/// The version of the format that this program writes and reads.
const VERSION: u32 = 1;
/// The file that says what a model is.
const MANIFEST: &str = "model.json";

/// What a model says about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// What scores of samples begin with; 0 for other kinds.
    #[serde(default)]
    pub intercept: f64,
    /// The data it was trained on.
    pub data: Data,
    /// What was measured at the end.
    pub metrics: serde_json::Map<String, serde_json::Value>,
}

/// The data that a model was trained on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Data {
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
    /// Begins the manifest of a model that a run made.
    pub fn new(kind: &str, record: &crate::record::Record, checksum: u64) -> Self {
        let crate::record::InputSizes { left, right, edges, .. } = record.input;
        let metrics = record.result.metrics.iter().map(|(name, value)| (name.to_string(), (*value).into()));
        Self {
            kind: kind.to_owned(),
            version: VERSION,
            megagrid: env!("CARGO_PKG_VERSION").to_owned(),
            config: record.config.clone(),
            shapes: serde_json::Map::new(),
            mean: 0.0,
            intercept: 0.0,
            data: Data { left, right, edges, checksum: format!("xxh3:{checksum:016x}") },
            metrics: metrics.collect(),
        }
    }

    /// Adds the shape of a file.
    pub fn shape(&mut self, file: &str, shape: &[usize]) {
        self.shapes.insert(file.to_owned(), shape.into());
    }

    /// Writes it into a model directory.
    pub fn write(&self, directory: &Path) -> anyhow::Result<()> {
        let path = directory.join(MANIFEST);
        let text = serde_json::to_string_pretty(self).context("writing the model")?;
        fs::write(&path, text + "\n").with_context(|| format!("writing {}", path.display()))
    }

    /// Reads it from a model directory, which has to hold a model of `kind`.
    pub fn read(directory: &Path, kind: &str) -> anyhow::Result<Self> {
        let path = directory.join(MANIFEST);
        let expected = "expected a directory that --model wrote";
        let text = fs::read_to_string(&path).with_context(|| format!("{}: {expected}", path.display()))?;
        let this: Self = serde_json::from_str(&text).with_context(|| format!("{}: {expected}", path.display()))?;
        if this.version != VERSION {
            bail!("{}: format version {}, expected {VERSION}; train the model again", path.display(), this.version);
        }
        if this.kind != kind {
            bail!("{}: a model of kind {}, expected {kind}", path.display(), this.kind);
        }
        Ok(this)
    }
}

/// Reads the names of vertices from the column `id` of a table.
pub fn read_names(path: &Path) -> anyhow::Result<Dictionary> {
    let column = read_table(path)?.into_iter().find(|(name, _)| name == "id").map(|(_, column)| column);
    names(path, column)
}

/// Makes names from a column.
pub fn names(path: &Path, column: Option<Column<'static>>) -> anyhow::Result<Dictionary> {
    match column {
        Some(Column::U64(names)) => Ok(Dictionary::from_integers(names.into_owned())),
        Some(Column::Strings(names)) => Ok(Dictionary::from_strings(names.iter())),
        _ => bail!("{}: no column id of integers or text; the model is damaged, train it again", path.display()),
    }
}
