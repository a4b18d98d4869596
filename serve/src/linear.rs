//! Models of `blockpg`: the chance that samples have the label 1.

use megagrid_datasets::Lookup;
use megagrid_training::blockpg::{Linear, chance};
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

    fn score(&self, sample: &[(Name, f32)]) -> Result<f64, Refusal> {
        let (mut sum, mut squares) = (0.0, 0.0);
        for (feature, value) in sample {
            let value = f64::from(checked_value(feature, *value)?);
            squares += value * value;
            sum += self.lookup.find(&feature.0).map_or(0.0, |id| value * self.model.weights[id as usize]);
        }
        let scale = if self.model.normalize && squares > 0.0 { 1.0 / squares.sqrt() } else { 1.0 };
        Ok(self.model.intercept + scale * sum)
    }
}

impl Answers for OfFeatures {
    fn questions(&self) -> &'static [&'static str] {
        &["predict"]
    }

    fn answer(&self, _: &str, body: &[u8]) -> Result<Value, Refusal> {
        let Predict { samples } = parsed(body)?;
        checked("the number of samples", samples.len())?;
        let chances = samples.iter().map(|sample| self.score(sample).map(chance));
        Ok(json!(chances.collect::<Result<Vec<f64>, Refusal>>()?))
    }
}
