//! Samples of binary features with planted sparse weights: a label is 1 with chance `1 / (1 + exp(-(intercept + w . x)))`.

use std::io::Write;
use std::path::Path;

use megagrid_partition::{EdgeList, count_degrees, offsets_of, parallel};
use rand_distr::weighted::WeightedAliasIndex;
use rand_distr::{Distribution, Poisson};

use super::random::{Random, alias_table, lengths, zipf};
use super::writer::write_text;
use super::{check, check_count, numbered};
use crate::output::write_vector;
use crate::{Dataset, Error, Labels, Samples};

/// What samples to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClicksSettings {
    /// Samples.
    pub num_samples: usize,
    /// Features, of which some may not occur.
    pub num_features: usize,
    /// Mean number of draws of a feature per sample; numbers are Poisson distributed, 1 at least, and a feature that
    /// is drawn again counts once.
    pub mean_features: f64,
    /// Features are drawn with chances proportional to `rank^-exponent`, where the rank is the id.
    pub feature_exponent: f64,
    /// Share of the features whose weight is not 0.
    pub density: f64,
    /// Standard deviation of those weights.
    pub weight_deviation: f64,
    /// Expected share of labels 1; the intercept is chosen so.
    pub click_rate: f64,
    /// Picks one of the data sets of these settings.
    pub seed: u64,
}

impl Default for ClicksSettings {
    /// 10,000 samples, 2,000 features, 20 per sample; exponent 0.8, density 0.2, weights of deviation 1, 25 % clicks.
    fn default() -> Self {
        Self {
            num_samples: 10_000,
            num_features: 2000,
            mean_features: 20.0,
            feature_exponent: 0.8,
            density: 0.2,
            weight_deviation: 1.0,
            click_rate: 0.25,
            seed: 1,
        }
    }
}

/// Samples and what they were made from.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticClicks {
    /// The samples, one after another, features ascending; names are numbers from 1, as in the text.
    pub samples: Samples,
    /// What was planted.
    pub truth: ClicksTruth,
}

/// The planted model.
#[derive(Clone, Debug, PartialEq)]
pub struct ClicksTruth {
    /// Weight of each feature.
    pub weights: Vec<f32>,
    /// The intercept.
    pub intercept: f64,
    /// Mean log loss of the planted model on the labels, in nats.
    pub log_loss: f64,
}

/// Streams of one item: see [`Random::new`].
const WEIGHT_OF_FEATURE: u64 = 1;
const FEATURES_OF_SAMPLE: u64 = 2;
const LABEL_OF_SAMPLE: u64 = 3;

impl ClicksSettings {
    /// Makes the samples.
    ///
    /// # Errors
    /// Where a setting is out of range.
    ///
    /// # Examples
    /// ```
    /// let made = megagrid_datasets::synthetic::ClicksSettings::default().generate()?;
    /// let clicks = made.samples.labels.counts()[1];
    /// assert!((2300..2700).contains(&clicks));
    /// # Ok::<(), megagrid_datasets::Error>(())
    /// ```
    pub fn generate(&self) -> Result<SyntheticClicks, Error> {
        self.check()?;
        let length = lengths("mean features", self.mean_features)?;
        let popularity = alias_table(zipf(self.num_features, self.feature_exponent));
        let weights: Vec<f32> = parallel::fill(self.num_features, |id| self.weight(id));
        let features = parallel::map(self.num_samples, |id| self.features(id, &popularity, &length));
        let dot = |features: &Vec<u32>| features.iter().map(|&id| f64::from(weights[id as usize])).sum();
        let scores: Vec<f64> = parallel::fill(features.len(), |id| dot(&features[id]));
        let intercept = intercept(&scores, self.click_rate);
        let mut labels = Vec::with_capacity(self.num_samples);
        let mut log_loss = 0.0;
        for (id, score) in scores.iter().enumerate() {
            let is_click = Random::new(self.seed, LABEL_OF_SAMPLE, id).0.unit() < sigmoid(intercept + score);
            let label = if is_click { 1.0 } else { -1.0 };
            log_loss += (-label * (intercept + score)).exp().ln_1p() / self.num_samples as f64;
            labels.push(label as f32);
        }
        let mut edges = EdgeList { num_left: self.num_samples, num_right: self.num_features, ..EdgeList::default() };
        for (id, mut features) in features.into_iter().enumerate() {
            edges.right.append(&mut features);
            edges.left.resize(edges.right.len(), id as u32);
        }
        edges.data = vec![1.0; edges.right.len()];
        let (left_names, right_names) = (numbered(self.num_samples), Some(numbered(self.num_features)));
        let labels = Labels::of_signs(labels);
        let samples = Samples::new(Dataset { edges, left_names, right_names }, labels);
        Ok(SyntheticClicks { samples, truth: ClicksTruth { weights, intercept, log_loss } })
    }

    fn check(&self) -> Result<(), Error> {
        check_count("samples", self.num_samples)?;
        check_count("features", self.num_features)?;
        check((0.0..=10.0).contains(&self.feature_exponent), "feature exponent", self.feature_exponent, "0 to 10")?;
        check((0.0..=1.0).contains(&self.density), "density", self.density, "0 to 1")?;
        check((0.0..=100.0).contains(&self.weight_deviation), "weight deviation", self.weight_deviation, "0 to 100")?;
        check(self.click_rate > 0.0 && self.click_rate < 1.0, "click rate", self.click_rate, "above 0 and below 1")
    }

    fn weight(&self, feature: usize) -> f32 {
        let mut random = Random::new(self.seed, WEIGHT_OF_FEATURE, feature);
        if random.0.unit() < self.density { random.normal(self.weight_deviation) as f32 } else { 0.0 }
    }

    fn features(&self, sample: usize, popularity: &WeightedAliasIndex<f64>, length: &Poisson<f64>) -> Vec<u32> {
        let mut random = Random::new(self.seed, FEATURES_OF_SAMPLE, sample);
        let count = length.sample(&mut random).max(1.0) as usize;
        let mut features: Vec<u32> = (0..count).map(|_| random.pick(popularity) as u32).collect();
        features.sort_unstable();
        features.dedup();
        features
    }
}

fn sigmoid(score: f64) -> f64 {
    1.0 / (1.0 + (-score).exp())
}

/// Samples whose chances are summed at a time: sums have to be the same on any number of threads.
const SAMPLES_PER_SUM: usize = 4096;

/// Finds the intercept at which the mean chance of a click is as asked, by bisection.
fn intercept(scores: &[f64], click_rate: f64) -> f64 {
    let rate = |intercept: f64| {
        let sum = |scores: &[f64]| scores.iter().map(|score| sigmoid(intercept + score)).sum::<f64>();
        let chunks: Vec<_> = scores.chunks(SAMPLES_PER_SUM).collect();
        parallel::map(chunks.len(), |at| sum(chunks[at])).iter().sum::<f64>() / scores.len() as f64
    };
    let largest = scores.iter().fold(0.0_f64, |largest, score| largest.max(score.abs()));
    let reach = largest + (click_rate / (1.0 - click_rate)).ln().abs() + 1.0;
    let (mut low, mut high) = (-reach, reach);
    for _ in 0..48 {
        let middle = 0.5 * (low + high);
        if rate(middle) < click_rate { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

impl ClicksTruth {
    /// Writes the weights as `weights.npy` into a directory that exists.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        write_vector(&directory.join("weights.npy"), &self.weights)
    }
}

impl SyntheticClicks {
    /// Writes the samples as LIBSVM text, labels -1 and 1, indices from 1.
    ///
    /// # Errors
    /// Where something is at `path` already or the system refuses.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let Samples { data: Dataset { edges, .. }, labels, .. } = &self.samples;
        let offsets = offsets_of(&count_degrees(&edges.left, edges.num_left));
        write_text(path, "", edges.num_left, |text, sample| {
            write!(text, "{}", labels.classes[labels.of[sample] as usize])?;
            let range = offsets[sample] as usize..offsets[sample + 1] as usize;
            for (&feature, value) in edges.right[range.clone()].iter().zip(&edges.data[range]) {
                write!(text, " {}:{value}", u64::from(feature) + 1)?;
            }
            writeln!(text)
        })
    }
}

#[cfg(test)]
mod tests {
    use megagrid_partition::DegreeStats;

    use super::*;

    #[test]
    fn labels_follow_the_planted_chances() {
        let made = ClicksSettings::default().generate().unwrap();
        let (edges, truth) = (&made.samples.data.edges, &made.truth);
        let mut scores = vec![truth.intercept; edges.num_left];
        for (&sample, &feature) in edges.left.iter().zip(&edges.right) {
            scores[sample as usize] += f64::from(truth.weights[feature as usize]);
        }
        let chances: Vec<f64> = scores.iter().map(|&score| sigmoid(score)).collect();
        assert!((chances.iter().sum::<f64>() / 10_000.0 - 0.25).abs() < 1e-6);
        // Of samples with chances alike, as many are clicks as the chances say.
        for tenth in 0..10 {
            let within = |chance: f64| (10.0 * chance) as usize == tenth;
            let of_tenth = chances.iter().zip(made.samples.labels.signs()).filter(|(chance, _)| within(**chance));
            let (expected, clicks) = of_tenth.fold((0.0, 0.0), |(sum, clicks), (chance, label)| {
                (sum + chance, clicks + f64::from((label + 1.0) / 2.0))
            });
            assert!((expected - clicks).abs() < 5.0 * expected.sqrt() + 5.0, "{tenth}: {clicks}, expected {expected}");
        }
        // Better than knowing only the rate.
        let entropy = -(0.25_f64 * 0.25_f64.ln() + 0.75 * 0.75_f64.ln());
        assert!(truth.log_loss > 0.1 && truth.log_loss < 0.95 * entropy, "{}", truth.log_loss);
    }

    #[test]
    fn weights_are_sparse_and_features_skewed() {
        let made = ClicksSettings::default().generate().unwrap();
        let num_weights = made.truth.weights.iter().filter(|&&weight| weight != 0.0).count();
        assert!((300..500).contains(&num_weights), "{num_weights}");
        let edges = &made.samples.data.edges;
        let stats = DegreeStats::of(&offsets_of(&count_degrees(&edges.right, 2000)));
        assert!(stats.max > 20 * stats.median, "{stats:?}");
    }

    #[test]
    fn extreme_rates_are_met() {
        for click_rate in [0.001, 0.999] {
            let made = ClicksSettings { click_rate, ..ClicksSettings::default() }.generate().unwrap();
            let clicks = made.samples.labels.counts()[1];
            assert!((clicks as f64 / 10_000.0 - click_rate).abs() < 0.002, "{clicks}");
        }
        let error = ClicksSettings { click_rate: 1.0, ..ClicksSettings::default() }.generate().unwrap_err();
        assert_eq!(error.to_string(), "click rate 1 is out of range; expected above 0 and below 1");
    }
}
