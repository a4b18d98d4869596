//! The model of sparse logistic regression, and its directory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use megagrid_algorithms::blockpg::{Calibration, Certificate, Quality, likeliest, log_chances, log_softmax};
use megagrid_datasets::output::{Column, read_table, write_table};
use megagrid_datasets::{Dictionary, Label, Labels, Samples, hashed_name};
use serde::{Deserialize, Serialize, Serializer};

use super::data::{num_models, prepared};
use super::path::{self, OfPenalty};
use super::unseen::Unseen;
use crate::Error;
use crate::model::{self, DAMAGED, Manifest, Model, check_numbers};
use crate::options::json;
use crate::record::Metrics;
use crate::words::WordOptions;

const WEIGHTS: &str = "weights.parquet";
const WEIGHT: &str = "weight";
const L1: &str = "l1";

/// Weights of features, with their names: of two classes one model, whose scores are above 0 for the second; of more a model for each
/// class, which tells it from the rest, or all together do.
#[derive(Clone, Debug)]
pub struct Linear {
    /// Names of the features.
    pub features: Arc<Dictionary>,
    /// Names of the classes, two or more.
    pub classes: Vec<String>,
    /// Weights, `[models, features]`.
    pub weights: Vec<f64>,
    /// The intercept of each model, or 0.
    pub intercepts: Vec<f64>,
    /// Whether classes were fitted together, so that chances are the exponentials of scores, scaled; else each was told from the rest.
    pub is_multinomial: bool,
    /// Whether samples are scaled to unit length.
    pub normalize: bool,
    /// Labels that count as 1.
    pub positive: Vec<Label>,
    /// Bits of the hashes that features are called by.
    pub hash_bits: Option<u32>,
    /// How words of texts are found.
    pub words: WordOptions,
    /// The line by which each model's scores were calibrated: its slope is in the weights, and both are in the intercept. Empty: they are as
    /// they were fitted.
    pub calibration: Vec<Calibration>,
    /// What is known of the model.
    pub(super) certificate: Option<Certificate>,
    /// Which l1 of several it is of.
    pub(super) l1: Option<f64>,
    /// What is known of the model of each l1, in their order; nothing of a model that was read.
    pub path: Vec<OfPenalty>,
    pub(super) has_converged: bool,
}

impl Linear {
    /// Takes weights `[models, features]` and what they belong to.
    ///
    /// # Errors
    /// Numbers of weights or intercepts that do not fit.
    pub fn new(
        features: Arc<Dictionary>,
        classes: Vec<String>,
        weights: Vec<f64>,
        intercepts: Vec<f64>,
    ) -> Result<Self, Error> {
        let models = num_models(classes.len());
        if classes.len() < 2 || intercepts.len() != models || weights.len() != models * features.len() {
            let found = format!("{} weights and {} intercepts", weights.len(), intercepts.len());
            return Err(Error::Missing(format!(
                "{found} of {} classes and {} features",
                classes.len(),
                features.len()
            )));
        }
        let (certificate, path, positive, calibration) = (None, Vec::new(), Vec::new(), Vec::new());
        let (normalize, has_converged, hash_bits, words) = (false, false, None, WordOptions::default());
        Ok(Self {
            features,
            classes,
            weights,
            intercepts,
            is_multinomial: false,
            normalize,
            positive,
            hash_bits,
            words,
            calibration,
            certificate,
            l1: None,
            path,
            has_converged,
        })
    }

    /// Returns the weights of a model, by feature.
    #[must_use]
    pub fn of(&self, model: usize) -> &[f64] {
        &self.weights[model * self.features.len()..][..self.features.len()]
    }

    /// Returns the class that a model's scores above 0 are of.
    #[must_use]
    pub fn class(&self, model: usize) -> &str {
        &self.classes[if self.intercepts.len() == 1 { 1 } else { model }]
    }

    /// Returns which model's weights, and times what, tell a class from the rest.
    pub(super) fn row_of(&self, class: &str) -> Option<(usize, f64)> {
        let at = self.classes.iter().position(|known| Labels::is_same(known, class))?;
        Some(match (self.intercepts.len(), at) {
            (1, 0) => (0, -1.0),
            (1, _) => (0, 1.0),
            _ => (at, 1.0),
        })
    }

    /// Returns the scores w·x of samples, `[samples, models]`, and the places of their classes.
    ///
    /// # Errors
    /// A label that is none of the classes.
    pub fn scores(&self, mut samples: Samples) -> Result<(Vec<f64>, Vec<u32>), Error> {
        samples.data = prepared(samples.data, self.hash_bits, self.normalize);
        let unseen = Unseen::new(samples, &self.features, &self.classes)?;
        Ok((self.scores_of(&unseen)?, unseen.labels))
    }

    fn scores_of(&self, unseen: &Unseen) -> Result<Vec<f64>, Error> {
        let of_model = |(model, &intercept): (usize, &f64)| unseen.scores(self.of(model), intercept);
        let of_models: Vec<_> = self.intercepts.iter().enumerate().map(of_model).collect::<Result<_, _>>()?;
        Ok(by_sample(of_models))
    }

    /// Returns the chances of the classes by the scores of a sample: their logistic functions, or of classes that were fitted together their
    /// exponentials, scaled to a sum of 1.
    #[must_use]
    pub fn chances(&self, scores: &[f64]) -> Vec<f64> {
        if let [score] = scores {
            return vec![logistic(-score), logistic(*score)];
        }
        self.log_chances()(scores).into_iter().map(f64::exp).collect()
    }

    /// Returns what makes of the scores of more than two classes the logarithms of their chances.
    fn log_chances(&self) -> fn(&[f64]) -> Vec<f64> {
        if self.is_multinomial { log_softmax } else { log_chances }
    }

    /// Returns what is said of a sample by its scores.
    #[must_use]
    pub fn prediction(&self, scores: &[f64]) -> Prediction {
        let chances = self.chances(scores);
        match scores {
            [_] => Prediction::OfSecond(chances[1]),
            _ => {
                let class = self.classes[likeliest(scores)].clone();
                Prediction::OfClasses { class, probabilities: self.classes.iter().cloned().zip(chances).collect() }
            }
        }
    }

    /// Says of a sample, by the names of its features and their values, what class it is of; `find` finds features of the model.
    pub fn predict<'n>(
        &self,
        sample: impl Iterator<Item = (&'n str, f64)>,
        find: impl Fn(&str) -> Option<u32>,
    ) -> Prediction {
        let mut named: BTreeMap<Cow<'n, str>, f64> = BTreeMap::new();
        for (name, x) in sample {
            let name = self.hash_bits.map_or(Cow::Borrowed(name), |bits| hashed_name(name, bits).to_string().into());
            *named.entry(name).or_insert(0.0) += x;
        }
        let length = named.values().map(|x| x * x).sum::<f64>().sqrt();
        let scale = if self.normalize && length > 0.0 { 1.0 / length } else { 1.0 };
        let known: Vec<(usize, f64)> =
            named.iter().filter_map(|(name, x)| Some((find(name)? as usize, scale * x))).collect();
        let score = |(model, intercept): (usize, &f64)| {
            intercept + known.iter().map(|&(at, x)| x * self.of(model)[at]).sum::<f64>()
        };
        self.prediction(&self.intercepts.iter().enumerate().map(score).collect::<Vec<f64>>())
    }

    /// Returns the words of a text, found as those that the model was trained on, and how often each occurs.
    #[must_use]
    pub fn words_of(&self, text: &str) -> BTreeMap<String, f64> {
        let mut counts = BTreeMap::new();
        for word in self.words.tokenizer().words(text) {
            *counts.entry(word).or_insert(0.0) += 1.0;
        }
        counts
    }

    /// Compares the scores of samples with their classes; `weights` are those of samples, all 1 if empty.
    #[must_use]
    pub fn quality(&self, scores: &[f64], labels: &[u32], weights: &[f32]) -> Quality {
        quality((scores, self.classes.len()), (labels, weights), self.log_chances())
    }

    /// Returns what a record says of samples to test on.
    pub(super) fn tested(&self, test: &Unseen) -> Result<Metrics, Error> {
        let scores = (&self.scores_of(test)?[..], self.classes.len());
        Ok(metrics(quality(scores, test.known(), self.log_chances())))
    }

    /// Returns the features of a model with the `number` largest weights, the largest first.
    #[must_use]
    pub fn largest(&self, model: usize, number: usize) -> Vec<u32> {
        let size = |feature: &u32| self.of(model)[*feature as usize].abs();
        let mut order: Vec<u32> = (0..self.features.len() as u32).filter(|feature| size(feature) > 0.0).collect();
        order.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.cmp(b)));
        order.truncate(number);
        order
    }
}

/// Puts the scores of each model, `[models][samples]`, sample by sample: `[samples, models]`.
pub(super) fn by_sample(mut of_models: Vec<Vec<f64>>) -> Vec<f64> {
    if of_models.len() == 1 {
        return of_models.swap_remove(0);
    }
    let num_samples = of_models.first().map_or(0, Vec::len);
    (0..num_samples).flat_map(|sample| of_models.iter().map(move |scores| scores[sample])).collect()
}

/// Compares scores, `[samples, models]`, of as many classes with the places of the samples' classes, and their weights; `logs` makes of the
/// scores of more than two classes the logarithms of their chances.
pub(super) fn quality(
    (scores, classes): (&[f64], usize),
    (labels, weights): (&[u32], &[f32]),
    logs: fn(&[f64]) -> Vec<f64>,
) -> Quality {
    if classes == 2 {
        let signs: Vec<f32> = labels.iter().map(|&label| if label == 1 { 1.0 } else { -1.0 }).collect();
        return Quality::new(scores, &signs, weights);
    }
    Quality::of_classes((scores, classes), (labels, weights), logs)
}

/// Returns what a record says of samples to test on.
pub(super) fn metrics(Quality { auc, log_loss, accuracy }: Quality) -> Metrics {
    let mut metrics = Metrics::from([("test_log_loss".into(), log_loss), ("test_accuracy".into(), accuracy)]);
    // A test of one class only has none, and a record takes numbers only.
    metrics.extend(auc.is_finite().then_some(("test_auc".into(), auc)));
    metrics
}

fn logistic(score: f64) -> f64 {
    1.0 / (1.0 + (-score).exp())
}

/// Asks for the probabilities of samples.
#[derive(Clone, Debug, Deserialize)]
pub struct Predict {
    /// Features and values of each sample.
    pub samples: Vec<Vec<(String, f32)>>,
}

/// What is said of a sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Prediction {
    /// The probability of the second of two classes.
    OfSecond(f64),
    /// The likeliest of more classes, and the probability of each.
    OfClasses {
        /// The likeliest.
        class: String,
        /// All, in their order.
        #[serde(serialize_with = "as_map")]
        probabilities: Vec<(String, f64)>,
    },
}

fn as_map<S: Serializer>(pairs: &[(String, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, chance)| (name, chance)))
}

impl Model for Linear {
    const KIND: &'static str = "blockpg";
    type Question = Predict;
    type Answer = Vec<Prediction>;

    /// Writes the weights of features that have one which is not zero, the largest first: a column `weight`, or of more than two classes one
    /// for each, `weight_CLASS`.
    fn write(&self, into: &Path, manifest: &mut Manifest) -> Result<(), Error> {
        let models = self.intercepts.len();
        manifest.classes = self.classes.clone();
        manifest.calibration = self.calibration.clone();
        match self.intercepts[..] {
            [intercept] => manifest.intercept = intercept,
            _ => manifest.intercepts = self.intercepts.clone(),
        }
        let size = |feature: u32| (0..models).map(|model| self.of(model)[feature as usize].abs()).fold(0.0, f64::max);
        let mut order: Vec<u32> = (0..self.features.len() as u32).filter(|&feature| size(feature) != 0.0).collect();
        order.sort_by(|&a, &b| size(b).total_cmp(&size(a)).then(a.cmp(&b)));
        let names = self.features.reorder(&order);
        let titles = titles(&self.classes);
        manifest.shape(WEIGHTS, &if models == 1 { vec![order.len()] } else { vec![order.len(), models] });
        let mut columns = vec![("id", Column::Names(&names))];
        for (model, title) in titles.iter().enumerate() {
            let weights: Vec<f64> = order.iter().map(|&feature| self.of(model)[feature as usize]).collect();
            columns.push((title, Column::F64(weights.into())));
        }
        Ok(write_table(&into.join(WEIGHTS), &columns)?)
    }

    fn read(from: &Path, manifest: &Manifest) -> Result<Self, Error> {
        let path = from.join(WEIGHTS);
        let mut table = read_table(&path)?;
        let mut take = |title: &str| {
            let at = table.iter().position(|(found, _)| found == title)?;
            Some(table.swap_remove(at).1)
        };
        let features = Arc::new(model::names(&path, take("id"))?);
        // Models of before have no names of classes.
        let of_signs = || vec!["-1".to_owned(), "1".to_owned()];
        let classes = if manifest.classes.is_empty() { of_signs() } else { manifest.classes.clone() };
        let is_one = classes.len() == 2;
        let intercepts = if is_one { vec![manifest.intercept] } else { manifest.intercepts.clone() };
        let mut weights = Vec::new();
        for title in titles(&classes) {
            match take(&title) {
                Some(Column::F64(column)) if column.len() == features.len() => {
                    check_numbers(&path, &column)?;
                    weights.extend_from_slice(&column);
                }
                _ => return Err(Error::invalid(&path, format!("no {title} for each id; {DAMAGED}"))),
            }
        }
        let (normalize, positive) = (manifest.option("normalize"), manifest.option("positive"));
        let is_multinomial = !is_one && manifest.option("multinomial");
        let (hash_bits, words) = (manifest.option("hash_bits"), WordOptions::of(&manifest.config));
        let model = Self::new(features, classes, weights, intercepts);
        let model = model.map_err(|error| Error::invalid(&path, format!("{error}; {DAMAGED}")))?;
        let calibration = manifest.calibration.clone();
        let l1 = manifest.metrics.get(L1).and_then(serde_json::Value::as_f64);
        Ok(Self { is_multinomial, normalize, positive, hash_bits, words, calibration, l1, ..model })
    }

    fn answer(&self, question: &Predict) -> Result<Vec<Prediction>, Error> {
        let of = |sample: &Vec<(String, f32)>| {
            let named = sample.iter().map(|(name, x)| (&name[..], f64::from(*x)));
            self.predict(named, |name| self.features.find(name))
        };
        Ok(question.samples.iter().map(of).collect())
    }

    fn bytes(&self) -> u64 {
        size_of_val(&self.weights[..]) as u64
    }

    fn metrics(&self) -> Metrics {
        let Some(Certificate { loss, bound, gap, violation, nonzeros, .. }) = self.certificate else {
            return Metrics::new();
        };
        let found = [
            ("loss", loss),
            ("nonzeros", nonzeros as f64),
            ("bound", bound),
            ("gap", gap),
            ("kkt_violation", violation),
        ];
        let mut metrics = Metrics::from(found.map(|(name, value)| (name.into(), value)));
        if let Some(l1) = self.l1 {
            metrics.insert(L1.into(), l1);
            self.path.iter().filter(|one| one.l1 == l1).for_each(|one| metrics.extend(one.tested.clone()));
        }
        metrics
    }

    fn path(&self) -> Result<Vec<serde_json::Value>, Error> {
        self.path.iter().filter(|_| self.path.len() > 1).map(json).collect()
    }

    fn objective(&self) -> Option<f64> {
        self.certificate.map(|certificate| certificate.objective)
    }

    fn has_converged(&self) -> bool {
        self.has_converged
    }

    fn findings(&self) -> String {
        let mut text = path::findings(&self.path, self.l1);
        for (model, Calibration { slope, offset }) in self.calibration.iter().enumerate() {
            let class = self.class(model);
            text.push_str(&format!("  calibrated for class {class}: {slope:.6} · score + {offset:.6}\n"));
        }
        let has_l1 = self.path.iter().any(|one| one.l1 > 0.0);
        if self.has_converged && has_l1 && self.weights.iter().all(|&w| w == 0.0) {
            text.push_str("  note: no feature has a weight, l1 is too large for that; try a smaller --l1\n");
        }
        if !self.has_converged {
            text.push_str("  note: not converged to --tolerance; try more --iterations, or --patience 0 where test data ended it\n");
        }
        text
    }
}

/// Returns what the columns of weights are called.
fn titles(classes: &[String]) -> Vec<String> {
    if classes.len() == 2 {
        return vec![WEIGHT.to_owned()];
    }
    classes.iter().map(|class| format!("{WEIGHT}_{class}")).collect()
}
