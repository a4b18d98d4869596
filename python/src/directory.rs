//! The model directories of the command.

use std::path::Path;

use megagrid_training::Error;
use megagrid_training::model::{self, Manifest, Model};
use megagrid_training::record::Record;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::raise;

/// Writes a model and the record of its run, which Python has as JSON.
pub fn save<M: Model>(directory: &Path, record: &str, checksum: u64, model: &M) -> PyResult<()> {
    let record: Record = raise(serde_json::from_str(record).map_err(Error::json("the record of a run")))?;
    raise(model::save(model, directory, &record, checksum))
}

/// Begins what Python gets of a model that was saved.
pub fn loaded(py: Python<'_>, manifest: Manifest) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("manifest", raise(megagrid_training::json(&manifest))?.to_string())?;
    Ok(found)
}
