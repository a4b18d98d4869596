//! The directory of a model of sparse logistic regression.

use std::path::Path;

use anyhow::bail;
use megagrid_datasets::Dictionary;
use megagrid_datasets::output::{Column, read_table, write_directory, write_table};

use super::Trained;
use crate::model::{self, Manifest};

const KIND: &str = "blockpg";
const WEIGHTS: &str = "weights.parquet";

/// Writes a model: the weights that are not zero, the largest first.
pub fn write(directory: &Path, trained: &Trained) -> anyhow::Result<()> {
    let mut manifest = Manifest::new(KIND, &trained.record, trained.checksum);
    manifest.intercept = trained.intercept();
    let mut order: Vec<u32> = (0..trained.features.len() as u32).collect();
    order.retain(|&feature| trained.weights[feature as usize] != 0.0);
    order.sort_by(|&a, &b| {
        let size = |feature: u32| trained.weights[feature as usize].abs();
        size(b).total_cmp(&size(a)).then(a.cmp(&b))
    });
    let names = trained.features.reorder(&order);
    let weights: Vec<f64> = order.iter().map(|&feature| trained.weights[feature as usize]).collect();
    manifest.shape(WEIGHTS, &[weights.len()]);
    write_directory(directory, |into| -> anyhow::Result<()> {
        let columns = [("id", Column::Names(&names)), ("weight", Column::F64(weights.into()))];
        write_table(&into.join(WEIGHTS), &columns)?;
        manifest.write(into)
    })
}

/// A model.
pub struct Saved {
    /// Names of the features whose weight is not zero.
    pub features: Dictionary,
    /// Their weights.
    pub weights: Vec<f64>,
    /// The intercept.
    pub intercept: f64,
    /// Whether samples are scaled to unit length.
    pub normalize: bool,
    /// Labels that count as 1.
    pub positive: Vec<f32>,
}

/// Reads a model.
pub fn read(directory: &Path) -> anyhow::Result<Saved> {
    let manifest = Manifest::read(directory, KIND)?;
    let path = directory.join(WEIGHTS);
    let (mut ids, mut weights) = (None, None);
    for (name, column) in read_table(&path)? {
        match (name.as_str(), column) {
            ("id", column) => ids = Some(column),
            ("weight", Column::F64(values)) => weights = Some(values.into_owned()),
            _ => {}
        }
    }
    let features = model::names(&path, ids)?;
    let Some(weights) = weights.filter(|weights| weights.len() == features.len()) else {
        bail!("{}: no weight for each id; the model is damaged, train it again", path.display());
    };
    let option = |name: &str| manifest.config.get(name).cloned().unwrap_or_default();
    let positive = serde_json::from_value(option("positive")).unwrap_or_default();
    let normalize = option("normalize").as_bool().unwrap_or(false);
    Ok(Saved { features, weights, intercept: manifest.intercept, normalize, positive })
}
