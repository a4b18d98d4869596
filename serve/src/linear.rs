//! Models of `blockpg`: how likely samples are of which class.

use megagrid_datasets::{Lookup, Role, Roles};
use megagrid_training::blockpg::{Linear, Prediction};
use megagrid_training::model::Manifest;
use serde::Deserialize;
use serde_json::json;

use crate::Refusal;
use crate::questions::{Answer, Answers, Name, checked, checked_value, parsed};

/// Weights of features, found by name.
pub struct OfFeatures {
    model: Linear,
    lookup: Lookup,
    /// Whether it was trained on features and their values, and knows no words of texts.
    is_of_values: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Predict {
    /// Pairs of a feature and a value; features that the model does not know weigh nothing, but count in the
    /// length of a sample where samples were scaled to length 1.
    samples: Option<Vec<Vec<(Name, f32)>>>,
    /// Texts whose words are features, as of the column of texts that the model was trained on. Their predictions follow those of samples.
    texts: Option<Vec<String>>,
}

impl OfFeatures {
    /// Takes a model, and what is known of it.
    pub fn new(model: Linear, manifest: &Manifest) -> Self {
        let [format, columns]: [Option<String>; 2] = ["format", "columns"].map(|name| manifest.option(name));
        let has_texts = columns.is_some_and(|columns| columns.parse().is_ok_and(|roles: Roles| roles.has(Role::Text)));
        let is_of_values = matches!(format.as_deref(), Some("libsvm" | "table")) && !has_texts;
        Self { lookup: model.features.lookup(), model, is_of_values }
    }

    fn predict<'s>(&self, sample: &'s [(Name, f32)]) -> Result<Prediction, Refusal> {
        let checked = |(feature, value): &'s (Name, f32)| {
            Ok::<_, Refusal>((&feature.0[..], f64::from(checked_value(feature, *value)?)))
        };
        let sample = sample.iter().map(checked).collect::<Result<Vec<_>, Refusal>>()?;
        Ok(self.model.predict(sample.into_iter(), |name| self.lookup.find(name)))
    }

    fn predict_text(&self, text: &str) -> Prediction {
        let words = self.model.words_of(text);
        self.model.predict(words.iter().map(|(word, count)| (&word[..], *count)), |name| self.lookup.find(name))
    }
}

impl Answers for OfFeatures {
    fn questions(&self) -> &'static [&'static str] {
        &["predict"]
    }

    fn answer(&self, _: &str, body: &[u8]) -> Result<Answer<'_>, Refusal> {
        let Predict { samples, texts } = parsed(body)?;
        if self.is_of_values && texts.as_ref().is_some_and(|texts| !texts.is_empty()) {
            let problem = "the model was trained on features and values, and not on texts; ask with samples, as [[[\"feature\", 1.5], …], …]";
            return Err(Refusal::Bad(problem.to_owned()));
        }
        if samples.is_none() && texts.is_none() {
            return Err(Refusal::Bad("expected samples, or texts".to_owned()));
        }
        let (samples, texts) = (samples.unwrap_or_default(), texts.unwrap_or_default());
        checked("the number of samples", (samples.len() + texts.len()) * self.model.intercepts.len())?;
        let of_texts = texts.iter().map(|text| Ok(self.predict_text(text)));
        let predictions = samples.iter().map(|sample| self.predict(sample)).chain(of_texts);
        Ok(Answer::Other(json!(predictions.collect::<Result<Vec<Prediction>, Refusal>>()?)))
    }
}
