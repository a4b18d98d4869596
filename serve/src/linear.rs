//! Models of `blockpg`: how likely samples are of which class.

use megagrid_datasets::Lookup;
use megagrid_training::blockpg::{Linear, Prediction};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Refusal;
use crate::questions::{Answers, Name, checked, checked_value, parsed};

/// Weights of features, found by name.
pub struct OfFeatures {
    model: Linear,
    lookup: Lookup,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Predict {
    /// Pairs of a feature and a value; features that the model does not know weigh nothing.
    samples: Vec<Vec<(Name, f32)>>,
}

impl OfFeatures {
    /// Takes a model.
    pub fn new(model: Linear) -> Self {
        Self { lookup: model.features.lookup(), model }
    }

    fn predict(&self, sample: &[(Name, f32)]) -> Result<Prediction, Refusal> {
        let Linear { intercepts, normalize, .. } = &self.model;
        let (mut known, mut squares) = (Vec::with_capacity(sample.len()), 0.0);
        for (feature, value) in sample {
            let value = f64::from(checked_value(feature, *value)?);
            squares += value * value;
            known.extend(self.lookup.find(&feature.0).map(|id| (id as usize, value)));
        }
        let scale = if *normalize && squares > 0.0 { 1.0 / squares.sqrt() } else { 1.0 };
        let score = |(model, intercept): (usize, &f64)| {
            let weights = self.model.of(model);
            intercept + scale * known.iter().map(|&(id, value)| value * weights[id]).sum::<f64>()
        };
        Ok(self.model.prediction(&intercepts.iter().enumerate().map(score).collect::<Vec<f64>>()))
    }
}

impl Answers for OfFeatures {
    fn questions(&self) -> &'static [&'static str] {
        &["predict"]
    }

    fn answer(&self, _: &str, body: &[u8]) -> Result<Value, Refusal> {
        let Predict { samples } = parsed(body)?;
        checked("the number of samples", samples.len() * self.model.intercepts.len())?;
        let predictions = samples.iter().map(|sample| self.predict(sample));
        Ok(json!(predictions.collect::<Result<Vec<Prediction>, Refusal>>()?))
    }
}
