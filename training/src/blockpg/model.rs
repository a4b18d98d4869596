//! The model of sparse logistic regression, and its directory.

use std::path::Path;
use std::sync::Arc;

use megagrid_algorithms::blockpg::Certificate;
use megagrid_datasets::output::{Column, write_table};
use megagrid_datasets::{Dictionary, Samples};
use serde::Deserialize;

use super::data::{Unseen, normalize};
use crate::Error;
use crate::model::{self, DAMAGED, Manifest, Model};
use crate::record::Metrics;

const WEIGHTS: &str = "weights.parquet";

/// Weights of features, with their names.
#[derive(Clone, Debug)]
pub struct Linear {
    /// Names of the features.
    pub features: Arc<Dictionary>,
    /// Their weights.
    pub weights: Vec<f64>,
    /// The intercept, or 0.
    pub intercept: f64,
    /// Whether samples are scaled to unit length.
    pub normalize: bool,
    /// Labels that count as 1.
    pub positive: Vec<f32>,
    /// What is known of the model.
    pub(super) certificate: Option<Certificate>,
    /// What is known of the model of each l1, in their order.
    pub(super) path: Vec<(f64, Certificate)>,
    pub(super) has_converged: bool,
}

impl Linear {
    /// Takes weights and their names.
    #[must_use]
    pub fn new(features: Arc<Dictionary>, weights: Vec<f64>, intercept: f64, certificate: Option<Certificate>) -> Self {
        let (path, positive) = (Vec::new(), Vec::new());
        Self { features, weights, intercept, normalize: false, positive, certificate, path, has_converged: false }
    }

    /// Returns the scores w·x of samples, and their labels.
    #[must_use]
    pub fn scores(&self, mut samples: Samples) -> (Vec<f64>, Vec<f32>) {
        if self.normalize {
            normalize(&mut samples.data.edges);
        }
        let unseen = Unseen::new(samples, &self.features);
        (unseen.scores(&self.weights, self.intercept), unseen.labels)
    }
}

/// Returns the chance of the label 1 at a score.
#[must_use]
pub fn chance(score: f64) -> f64 {
    1.0 / (1.0 + (-score).exp())
}

/// Asks for the probability that samples have the label 1.
#[derive(Clone, Debug, Deserialize)]
pub struct Predict {
    /// Features and values of each sample.
    pub samples: Vec<Vec<(String, f32)>>,
}

impl Model for Linear {
    const KIND: &'static str = "blockpg";
    type Question = Predict;
    type Answer = Vec<f64>;

    /// Writes the weights that are not zero, the largest first.
    fn write(&self, into: &Path, manifest: &mut Manifest) -> Result<(), Error> {
        manifest.intercept = self.intercept;
        let size = |feature: u32| self.weights[feature as usize].abs();
        let mut order: Vec<u32> = (0..self.features.len() as u32).filter(|&feature| size(feature) != 0.0).collect();
        order.sort_by(|&a, &b| size(b).total_cmp(&size(a)).then(a.cmp(&b)));
        let names = self.features.reorder(&order);
        let weights: Vec<f64> = order.iter().map(|&feature| self.weights[feature as usize]).collect();
        manifest.shape(WEIGHTS, &[weights.len()]);
        let columns = [("id", Column::Names(&names)), ("weight", Column::F64(weights.into()))];
        Ok(write_table(&into.join(WEIGHTS), &columns)?)
    }

    fn read(from: &Path, manifest: &Manifest) -> Result<Self, Error> {
        let path = from.join(WEIGHTS);
        let [ids, weights] = model::columns(&path, ["id", "weight"])?;
        let features = Arc::new(model::names(&path, ids)?);
        let weights = match weights {
            Some(Column::F64(weights)) if weights.len() == features.len() => weights.into_owned(),
            _ => return Err(Error::invalid(&path, format!("no weight for each id; {DAMAGED}"))),
        };
        let (normalize, positive) = (manifest.option("normalize"), manifest.option("positive"));
        Ok(Self { normalize, positive, ..Self::new(features, weights, manifest.intercept, None) })
    }

    fn answer(&self, question: &Predict) -> Result<Vec<f64>, Error> {
        let of = |sample: &Vec<(String, f32)>| {
            let length = sample.iter().map(|(_, x)| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            let scale = if self.normalize && length > 0.0 { 1.0 / length } else { 1.0 };
            let weight = |name: &str| self.features.find(name).map_or(0.0, |at| self.weights[at as usize]);
            chance(self.intercept + sample.iter().map(|(name, x)| scale * f64::from(*x) * weight(name)).sum::<f64>())
        };
        Ok(question.samples.iter().map(of).collect())
    }

    fn bytes(&self) -> u64 {
        size_of_val(&self.weights[..]) as u64
    }

    fn metrics(&self) -> Metrics {
        let Some(Certificate { bound, gap, violation, .. }) = self.certificate else { return Metrics::new() };
        [("bound", bound), ("gap", gap), ("kkt_violation", violation)].map(|(name, value)| (name.into(), value)).into()
    }

    fn findings(&self) -> String {
        let mut text = String::new();
        for (l1, certificate) in &self.path {
            let Certificate { objective, bound, gap, violation, nonzeros, .. } = certificate;
            text.push_str(&format!(
                "  l1 {l1}: objective {objective:.6}, no model below {bound:.6} (gap {gap:.1e}), {nonzeros} weights, \
                 largest violation {violation:.1e}\n"
            ));
        }
        if self.weights.iter().all(|&w| w == 0.0) {
            text.push_str("  note: no feature has a weight, l1 is too large for that; try a smaller --l1\n");
        }
        if !self.has_converged {
            text.push_str("  note: not converged to --tolerance; try more --iterations\n");
        }
        text
    }
}
