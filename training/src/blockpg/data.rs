//! From labelled samples to what is trained and tested on.

use std::path::PathBuf;
use std::sync::Arc;

use megagrid_datasets::{Dataset, Dictionary, Edges, Label, Labels, MOST_HASH_BITS, Readers, add_up};
use megagrid_partition::{EdgeSource, GroupedEdges, Side, SplitMix};
use serde::{Deserialize, Serialize};

use super::class_weights::{ClassWeights, check_classes, check_weights};
use super::columns::{columns, warn_of_absent, warn_of_numbers};
use super::normalize::normalize;
use super::reading::{find, read_weights, read_with};
use super::unseen::{Parts, Unseen, split};
use crate::Error;
use crate::changes::Change;
use crate::data::{Data, Reading};
use crate::error::reading;
use crate::input::{Source, Stopwatch, digest, phases};
use crate::options::{check_holdout, lossy};
use crate::record::{InputSizes, Phases};
use crate::words::WordOptions;

/// The largest value whose square, and sums of many, are numbers of single precision.
const MOST: f32 = 1e16;

/// What is made of samples.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct SampleOptions {
    /// Labels, numbers or words, that become 1, all others -1 [default: each label is a class].
    #[arg(long, value_name = "LABELS", value_delimiter = ',', allow_negative_numbers = true)]
    pub positive: Vec<Label>,
    /// Scale the values of each sample to unit length.
    #[arg(long)]
    pub normalize: bool,
    /// Fit an intercept, which has no penalty.
    #[arg(long)]
    pub intercept: bool,
    /// Weights of samples, 0 or above: a text with one number a line, in the order of the samples. Those in a column are named by
    /// --columns weight=COLUMN.
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "lossy")]
    pub sample_weights: Option<PathBuf>,
    /// Weights of classes, which multiply those of samples: `balanced`, by which all classes weigh the same, or `CLASS=WEIGHT,...`,
    /// others 1.
    #[arg(long, value_name = "WEIGHTS", allow_hyphen_values = true)]
    pub class_weight: Option<ClassWeights>,
    /// Call features by a hash of their names of N bits, so that there are 2ᴺ at most and names that a model has not seen have a place; those
    /// with the same hash are one.
    #[arg(long, value_name = "N", help_heading = "Words", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_HASH_BITS)))]
    #[serde(default)]
    pub hash_bits: Option<u32>,
    /// How words are found in a column of texts.
    #[command(flatten)]
    #[serde(flatten)]
    pub words: WordOptions,
    /// Samples to test on after each iteration, in any format.
    #[arg(long, value_name = "FILE", conflicts_with = "holdout", help_heading = "Quality on unseen samples")]
    #[serde(serialize_with = "lossy")]
    pub test: Option<PathBuf>,
    /// Part of the samples, above 0 and below 1, to keep for testing.
    #[arg(long, value_name = "F", allow_negative_numbers = true, help_heading = "Quality on unseen samples")]
    pub holdout: Option<f64>,
    /// Fit a line to the scores of these samples at the end, so that probabilities are as often right as they say (Platt's scaling).
    /// The model's weights are multiplied by its slope.
    #[arg(long, help_heading = "Quality on unseen samples")]
    #[serde(default)]
    pub calibrate: bool,
}

/// Samples to train on.
pub struct Samples {
    /// Values by feature; the intercept is the last feature.
    pub values: Edges<f32>,
    /// Their classes, two or more.
    pub labels: Labels,
    /// Weights of samples, those of their classes among them; all 1 if empty.
    pub sample_weights: Vec<f32>,
    /// Names of the features, but for the intercept.
    pub features: Arc<Dictionary>,
    /// Which feature is the intercept.
    pub intercept: Option<usize>,
    /// Samples to test on.
    pub test: Option<Unseen>,
    /// First weights of each model, by feature, the intercept last if there is one; empty: all are 0.
    pub start: Vec<Vec<f64>>,
    /// Whether values were scaled to unit length, and which labels became 1: what a model has to know.
    pub normalize: bool,
    /// See `normalize`.
    pub positive: Vec<Label>,
    /// Bits of the hashes that features are called by, and how words of texts were found: what a model has to know as well.
    pub hash_bits: Option<u32>,
    /// See `hash_bits`.
    pub words: WordOptions,
    /// Whether a model's probabilities are calibrated on the samples to test on.
    pub calibrate: bool,
    /// The column of a table that labels are read from.
    pub label_column: Option<String>,
}

impl Data for Samples {
    type Options = SampleOptions;
    const FIXED: &'static [&'static str] =
        &["test", "holdout", "positive", "normalize", "intercept", "sample_weights", "class_weight"];

    fn read(source: &mut Source, options: &SampleOptions, how: &Reading<'_>) -> Result<(Self, Phases), Error> {
        check_holdout(options.holdout)?;
        let mut clock = Stopwatch::start();
        find(source)?;
        how.begin(source.is_cache(), options.holdout)?;
        let mut samples = source.whole(|source| read_into(source, options, how.readers))?;
        if samples.data.edges.num_edges() == 0 {
            return Err(megagrid_datasets::Error::Unclear(source.input.clone()).into());
        }
        if let Some(path) = &options.sample_weights {
            if !samples.weights.is_empty() {
                let problem = "--sample-weights and --columns weight=COLUMN both say what samples weigh; leave out one";
                return Err(Error::option(problem));
            }
            samples.weights = in_order(&read_weights(path, samples.labels.of.len())?, &samples.data.left_names);
        }
        let test = options.test.as_deref().map(|path| read_into(&mut source.like(path), options, None)).transpose()?;
        let load = clock.lap();

        let mut samples = Self::of(samples, options, how)?;
        samples.label_column = columns(source)?.and_then(|columns| columns.label);
        if how.readers.is_none_or(|readers| readers.process() == 0) {
            warn_of_numbers(&samples.labels);
            samples.check_columns(source, options)?;
        }
        if let Some(mut test) = test {
            test.data = prepared(test.data, options.hash_bits, options.normalize);
            samples.test = Some(Unseen::new(test, &samples.features, &samples.labels.classes)?);
        }
        Ok((samples, phases(load, clock.lap())))
    }

    fn sizes(&self) -> InputSizes {
        InputSizes {
            left: self.values.num_vertices(Side::Left),
            right: self.features.len(),
            edges: self.values.num_edges(),
            test_edges: self.test.as_ref().map_or(0, |test| test.num_values()),
            label_column: self.label_column.clone(),
            classes: self.labels.classes.iter().cloned().zip(self.labels.counts()).collect(),
            ..InputSizes::default()
        }
    }

    fn checksum(&self) -> Result<u64, Error> {
        let values = digest(&self.values, |&value| f64::from(value))?.checksum;
        Ok(values.wrapping_add(self.digest()))
    }

    fn beside_edges(&self) -> Option<(&'static str, u64)> {
        Some(("labels and weights of samples", self.digest()))
    }
}

impl Samples {
    /// Returns a digest of the classes of samples and their weights.
    fn digest(&self) -> u64 {
        let of = |(sample, &class): (usize, &u32)| {
            let weight = u64::from(self.weight(sample).to_bits());
            SplitMix::new(u64::from(class) << 32 | weight, sample as u64).bits()
        };
        let name =
            |digest: u64, name: &String| name.bytes().fold(digest, |all, byte| SplitMix::new(all, byte.into()).bits());
        let names = self.labels.classes.iter().fold(0, name);
        self.labels.of.iter().enumerate().map(of).fold(names, u64::wrapping_add)
    }

    /// Returns how many models tell the classes apart: of two one does, else each class is told from the rest.
    #[must_use]
    pub fn num_models(&self) -> usize {
        num_models(self.labels.classes.len())
    }

    /// Returns the weights that training begins with, of each model by feature.
    pub(super) fn first_weights(&self) -> Vec<Vec<f64>> {
        match &self.start[..] {
            [] => vec![vec![0.0; self.values.num_vertices(Side::Right)]; self.num_models()],
            start => start.to_vec(),
        }
    }

    /// Returns the place of the class that a model tells from the rest: of two it is the second.
    fn class_of(&self, model: usize) -> usize {
        if self.num_models() == 1 { 1 } else { model }
    }

    /// Returns the name of the class that a model tells from the rest.
    pub(super) fn class(&self, model: usize) -> &str {
        &self.labels.classes[self.class_of(model)]
    }

    /// Returns what a model has for labels: 1 of the samples of its class, -1 of others.
    #[must_use]
    pub fn signs(&self, model: usize) -> Vec<f32> {
        self.signs_of(model, &self.labels.of)
    }

    /// As [`signs`](Self::signs), of samples with these classes.
    pub(super) fn signs_of(&self, model: usize, classes: &[u32]) -> Vec<f32> {
        let class = self.class_of(model) as u32;
        classes.iter().map(|&of| if of == class { 1.0 } else { -1.0 }).collect()
    }

    /// Returns the sum of the samples' weights.
    #[must_use]
    pub fn total_weight(&self) -> f64 {
        match self.sample_weights.is_empty() {
            true => self.values.num_vertices(Side::Left) as f64,
            false => self.sample_weights.iter().map(|&weight| f64::from(weight)).sum(),
        }
    }

    /// Returns the weight of a sample.
    #[must_use]
    pub fn weight(&self, sample: usize) -> f32 {
        self.sample_weights.get(sample).copied().unwrap_or(1.0)
    }

    /// Makes of samples in memory what options say, as of samples that are read.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(
        mut samples: megagrid_datasets::Samples,
        options: &SampleOptions,
        how: &Reading<'_>,
    ) -> Result<Self, Error> {
        samples.data = prepared(samples.data, options.hash_bits, options.normalize);
        let samples = if how.degree_order { samples.in_degree_order() } else { samples };
        let holdout = options.holdout.map(|part| (part, how.seed));
        let mut samples = Self::new(samples, options.intercept, holdout)?;
        if let Some(weights) = &options.class_weight {
            samples.weigh(weights)?;
        }
        let SampleOptions { normalize, ref positive, hash_bits, words, calibrate, .. } = *options;
        Ok(Self { normalize, positive: positive.clone(), hash_bits, words, calibrate, ..samples })
    }

    /// Warns of files that lack columns which others have.
    fn check_columns(&self, source: &Source, options: &SampleOptions) -> Result<(), Error> {
        if self.hash_bits.is_some() {
            return Ok(());
        }
        // Of earlier ones the update was told then.
        let added = source.changes.last().filter(|changed| matches!(changed.change, Change::Add(_)));
        let others = added.into_iter().map(|changed| source.like_changed(changed));
        let others = others.chain(options.test.as_deref().map(|path| source.like(path)));
        others.into_iter().try_for_each(|other| warn_of_absent(&other, &self.features))
    }

    /// Multiplies the weights of samples by those of their classes.
    fn weigh(&mut self, weights: &ClassWeights) -> Result<(), Error> {
        let mut sums = vec![0.0; self.labels.classes.len()];
        for (sample, &class) in self.labels.of.iter().enumerate() {
            sums[class as usize] += f64::from(self.weight(sample));
        }
        let weights = weights.of(&self.labels.classes, &sums)?;
        let of = |(sample, &class): (usize, &u32)| (f64::from(self.weight(sample)) * weights[class as usize]) as f32;
        let all: Vec<f32> = self.labels.of.iter().enumerate().map(of).collect();
        if all.iter().any(|weight| !weight.is_finite()) {
            return Err(Error::option(
                "--class-weight times weights of samples is too large a number; use smaller weights",
            ));
        }
        self.sample_weights = all;
        Ok(())
    }

    /// Takes samples in memory, and keeps a part of them for testing, which follows from the seed.
    ///
    /// # Errors
    /// A part out of range; samples all of which have the same label; a class of which none is left to train on.
    pub fn new(
        samples: megagrid_datasets::Samples,
        intercept: bool,
        holdout: Option<(f64, u64)>,
    ) -> Result<Self, Error> {
        check_holdout(holdout.map(|(part, _)| part))?;
        let features = Arc::new(samples.data.right_names().clone());
        let parts = match holdout {
            Some((part, seed)) => split(samples, part, seed),
            None => (samples.data.edges, samples.labels, samples.weights, None),
        };
        if let (Some(test), Some((part, _))) = (&parts.3, holdout)
            && test.labels.is_empty()
        {
            let number = parts.1.of.len();
            return Err(Error::Missing(format!(
                "holdout {part} of {number} samples leaves none for testing; use a larger one"
            )));
        }
        if parts
            .3
            .as_ref()
            .is_some_and(|test| !test.weights.is_empty() && test.weights.iter().all(|&weight| weight == 0.0))
        {
            return Err(Error::Missing(
                "all samples that are kept for testing weigh 0; use a larger --holdout".to_owned(),
            ));
        }
        Self::fitted(parts, features, intercept)
    }

    fn fitted(parts: Parts, features: Arc<Dictionary>, intercept: bool) -> Result<Self, Error> {
        let (mut edges, labels, sample_weights, test) = parts;
        check_classes(&labels)?;
        check_weights(&labels, &sample_weights)?;
        if let Some(x) = edges.data.iter().find(|x| x.abs() > MOST) {
            let problem = format!(
                "a sample has the value {x:e}, and squares beyond {MOST:e} are no numbers of single precision; scale values, with --normalize say"
            );
            return Err(Error::Missing(problem));
        }
        let intercept = intercept.then_some(edges.num_right);
        if let Some(feature) = intercept {
            edges.num_right += 1;
            edges.left.extend(0..edges.num_left as u32);
            edges.right.resize(edges.left.len(), feature as u32);
            edges.data.resize(edges.left.len(), 1.0);
        }
        let values = Edges::Grouped(GroupedEdges::new(edges, &[Side::Right]));
        Ok(Self { labels, sample_weights, features, intercept, test, ..Self::to_plan(values) })
    }

    /// Takes samples to plan with only: none of them is looked at.
    #[must_use]
    pub fn to_plan(values: Edges<f32>) -> Self {
        let (labels, sample_weights) = (Labels::default(), Vec::new());
        let features = Arc::new(Dictionary::from_integers(Vec::new()));
        let (normalize, positive, calibrate) = (false, Vec::new(), false);
        let (intercept, test, start) = (None, None, Vec::new());
        let (hash_bits, words) = (None, WordOptions::default());
        Self {
            values,
            labels,
            sample_weights,
            features,
            intercept,
            test,
            start,
            normalize,
            positive,
            hash_bits,
            words,
            calibrate,
            label_column: None,
        }
    }

    /// Returns the largest |x| of each feature, or the root of its mean square.
    ///
    /// # Errors
    /// Edges that cannot be read.
    pub fn reaches(&self, mean: bool) -> Result<Vec<f32>, Error> {
        let mut reaches = vec![0.0_f32; self.values.num_vertices(Side::Right)];
        for (feature, reach) in reaches.iter_mut().enumerate() {
            let largest = &mut |_: &[u32], values: &[f32]| {
                *reach = match mean {
                    true => (values.iter().map(|x| x * x).sum::<f32>() / values.len().max(1) as f32).sqrt(),
                    false => values.iter().fold(*reach, |most, x| most.max(x.abs())),
                };
            };
            self.values.visit_rows(Side::Right, feature..feature + 1, largest).map_err(reading)?;
        }
        Ok(reaches)
    }
}

fn read_into(
    source: &mut Source,
    options: &SampleOptions,
    readers: Option<&Arc<dyn Readers>>,
) -> Result<megagrid_datasets::Samples, Error> {
    read_with(source, &options.positive, options.words, readers)
}

/// Has features be called by the hashes of their names, if these have bits, adds up the values of a feature that a sample has several times,
/// and scales samples to unit length, if they are to be.
pub(super) fn prepared(data: Dataset<f32>, hash_bits: Option<u32>, is_normalized: bool) -> Dataset<f32> {
    let mut data = match hash_bits {
        Some(bits) => data.with_hashed_names(bits),
        None => data,
    };
    add_up(&mut data.edges);
    if is_normalized {
        normalize(&mut data.edges);
    }
    data
}

/// Orders what goes with samples, which are named by their number from 1.
fn in_order(weights: &[f32], names: &Dictionary) -> Vec<f32> {
    let number = |name: &str| name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    names.iter().map(|name| number(&name).and_then(|at| weights.get(at)).copied().unwrap_or(1.0)).collect()
}

/// Returns how many models tell `classes` classes apart.
#[must_use]
pub fn num_models(classes: usize) -> usize {
    if classes == 2 { 1 } else { classes }
}
