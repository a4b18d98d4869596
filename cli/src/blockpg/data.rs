//! From labelled samples to what BlockPG trains and tests on.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use megagrid_datasets::cache::Cache;
use megagrid_datasets::{Dictionary, Edges, Format, Samples, read_samples};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side, SplitMix};

use super::SampleOptions;
use crate::common::{Common, Source};
use crate::failure::usage;
use crate::progress::Progress;
use crate::record::Phases;

/// Samples to train on.
pub struct Fitted {
    /// Label times value, by feature; the intercept is the last feature.
    pub signed: Edges<f32>,
    /// -1 or 1.
    pub labels: Vec<f32>,
    /// Weights of samples; all 1 if empty.
    pub sample_weights: Vec<f32>,
    /// Names of the features, but for the intercept.
    pub features: Dictionary,
    /// Which feature is the intercept.
    pub intercept: Option<usize>,
    /// Samples to test on.
    pub test: Option<Unseen>,
}

/// Samples to test on: values of known features.
pub struct Unseen {
    values: EdgeList<f32>,
    /// -1 or 1.
    pub labels: Vec<f32>,
}

impl Unseen {
    /// Takes samples whose features get the ids that `features` gives them; others are left out.
    pub fn new(samples: Samples, features: &Dictionary) -> Self {
        Self { values: samples.data.with_right_names(features).0.edges, labels: samples.labels }
    }

    /// Returns the number of values.
    pub fn num_values(&self) -> usize {
        self.values.num_edges()
    }

    /// Returns w·x of each sample.
    pub fn scores(&self, weights: &[f64], intercept: f64) -> Vec<f64> {
        let mut scores = vec![intercept; self.values.num_left];
        let ends = self.values.left.iter().zip(&self.values.right).zip(&self.values.data);
        ends.for_each(|((&sample, &feature), &x)| scores[sample as usize] += f64::from(x) * weights[feature as usize]);
        scores
    }
}

/// Loads samples, and those to test on.
pub fn load(
    source: &Source,
    options: &SampleOptions,
    intercept: bool,
    common: &Common,
    phases: &mut Phases,
) -> anyhow::Result<Fitted> {
    if let Some(part) = options.holdout.filter(|part| !(*part > 0.0 && *part < 1.0)) {
        return Err(megagrid_datasets::Error::HoldoutRange(part).into());
    }
    let _progress = Progress::spinner(common.quiet, "loading");
    let begin = Instant::now();
    let samples = read(&source.input, source.format.0, &options.positive)?;
    phases.load = begin.elapsed().as_secs_f64();
    from_samples(samples, options, intercept, common, phases)
}

/// Takes samples to train on, and loads those to test on.
pub fn from_samples(
    mut samples: Samples,
    options: &SampleOptions,
    intercept: bool,
    common: &Common,
    phases: &mut Phases,
) -> anyhow::Result<Fitted> {
    let begin = Instant::now();
    if options.normalize {
        normalize(&mut samples.data.edges);
    }
    let weights = options.sample_weights.as_deref().map(|path| read_weights(path, samples.labels.len())).transpose()?;
    let test = options.test.as_deref().map(|path| read(path, None, &options.positive)).transpose()?;
    phases.load += begin.elapsed().as_secs_f64();

    let begin = Instant::now();
    let samples = if common.no_degree_order { samples } else { samples.in_degree_order() };
    let sample_weights = match weights {
        Some(weights) => in_order(&weights, &samples.data.left_names),
        None => Vec::new(),
    };
    let features = samples.data.right_names().clone();
    let unseen = test.map(|mut test| {
        if options.normalize {
            normalize(&mut test.data.edges);
        }
        Unseen::new(test, &features)
    });
    let parts = match options.holdout {
        Some(part) => split(samples, sample_weights, part, common.seed),
        None => (samples.data.edges, samples.labels, sample_weights, unseen),
    };
    let fitted = fitted(parts, features, intercept)?;
    phases.partition = begin.elapsed().as_secs_f64();
    Ok(fitted)
}

/// Reads samples from a text or a cache.
pub fn read(path: &Path, format: Option<Format>, positive: &[f32]) -> anyhow::Result<Samples> {
    let format = match format {
        Some(format) => format,
        None => Format::detect(path).or_else(|error| match error {
            // What could be anything is taken for samples, so that the line in the way is named.
            megagrid_datasets::Error::UnknownFormat { .. } => Ok(Format::Libsvm),
            error => Err(error),
        })?,
    };
    if format != Format::Cache {
        let format = if format == Format::Text { Format::Libsvm } else { format };
        return Ok(read_samples(path, Some(format), positive)?);
    }
    if !positive.is_empty() {
        return Err(usage("--positive goes with labelled samples in a text, and this is a .mgrid cache"));
    }
    let cache = Cache::open(path)?;
    match cache.labels()? {
        Some(labels) => Ok(Samples { data: cache.to_dataset()?, labels }),
        None => bail!("{}: the cache holds no labels; convert labelled samples to it", path.display()),
    }
}

/// Reads one number a line.
fn read_weights(path: &Path, samples: usize) -> anyhow::Result<Vec<f32>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let mut weights = Vec::with_capacity(samples);
    for (line, word) in text.lines().enumerate() {
        match word.trim().parse::<f32>() {
            Ok(weight) if weight.is_finite() && weight >= 0.0 => weights.push(weight),
            _ => bail!("{}:{}: weight {word:?}; expected a number, 0 or above", path.display(), line + 1),
        }
    }
    if weights.len() != samples {
        bail!("{}: {} weights of {samples} samples; expected one a line", path.display(), weights.len());
    }
    Ok(weights)
}

/// Orders what goes with samples, which are named by their number from 1.
fn in_order(weights: &[f32], names: &Dictionary) -> Vec<f32> {
    let number = |name: &str| name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    names.iter().map(|name| number(&name).and_then(|at| weights.get(at)).copied().unwrap_or(1.0)).collect()
}

/// Scales the values of each sample to unit length.
pub fn normalize(values: &mut EdgeList<f32>) {
    let mut squares = vec![0.0_f64; values.num_left];
    for (&sample, &x) in values.left.iter().zip(&values.data) {
        squares[sample as usize] += f64::from(x).powi(2);
    }
    for (&sample, x) in values.left.iter().zip(&mut values.data) {
        let length = squares[sample as usize].sqrt();
        *x = if length > 0.0 { (f64::from(*x) / length) as f32 } else { 0.0 };
    }
}

type Parts = (EdgeList<f32>, Vec<f32>, Vec<f32>, Option<Unseen>);

/// Keeps about a part of the samples for testing. Which ones follows from the seed and their number in the input.
fn split(samples: Samples, sample_weights: Vec<f32>, part: f64, seed: u64) -> Parts {
    let Samples { data, labels } = samples;
    let of = |name: &str| name.parse().unwrap_or(0);
    let kept: Vec<bool> = data.left_names.iter().map(|name| SplitMix::new(!seed, of(&name)).unit() >= part).collect();
    let mut place = [0_u32; 2];
    let places: Vec<u32> = kept
        .iter()
        .map(|&kept| {
            let place = &mut place[usize::from(!kept)];
            std::mem::replace(place, *place + 1)
        })
        .collect();
    let mut lists = place.map(|num_left| EdgeList {
        num_left: num_left as usize,
        num_right: data.edges.num_right,
        ..EdgeList::default()
    });
    let ends = data.edges.left.iter().zip(&data.edges.right).zip(&data.edges.data);
    for ((&sample, &feature), &x) in ends {
        let list = &mut lists[usize::from(!kept[sample as usize])];
        list.left.push(places[sample as usize]);
        list.right.push(feature);
        list.data.push(x);
    }
    let pick = |all: &[f32], wanted: bool| -> Vec<f32> {
        all.iter().zip(&kept).filter(|(_, kept)| **kept == wanted).map(|(one, _)| *one).collect()
    };
    let [train, test] = lists;
    let test = Unseen { values: test, labels: pick(&labels, false) };
    (train, pick(&labels, true), pick(&sample_weights, true), Some(test))
}

fn fitted(parts: Parts, features: Dictionary, intercept: bool) -> anyhow::Result<Fitted> {
    let (mut edges, labels, sample_weights, test) = parts;
    match (labels.contains(&1.0), labels.contains(&-1.0)) {
        (true, true) => {}
        (false, false) => bail!("no samples are left to train on; use a smaller --holdout"),
        (one, _) => bail!(
            "all {} samples have the label {}, so that there is nothing to tell apart; --positive names the labels that count as 1",
            labels.len(),
            if one { 1 } else { -1 }
        ),
    }
    edges.left.iter().zip(&mut edges.data).for_each(|(&sample, x)| *x *= labels[sample as usize]);
    let intercept = intercept.then_some(edges.num_right);
    if let Some(feature) = intercept {
        edges.num_right += 1;
        edges.left.extend(0..edges.num_left as u32);
        edges.right.resize(edges.left.len(), feature as u32);
        edges.data.extend(&labels);
    }
    let signed = Edges::Grouped(GroupedEdges::new(edges, &[Side::Right]));
    Ok(Fitted { signed, labels, sample_weights, features, intercept, test })
}

impl Fitted {
    /// Returns the largest |x| of each feature.
    pub fn reaches(&self) -> anyhow::Result<Vec<f32>> {
        let mut reaches = vec![0.0_f32; self.signed.num_vertices(Side::Right)];
        for (feature, reach) in reaches.iter_mut().enumerate() {
            let largest = &mut |_: &[u32], values: &[f32]| {
                *reach = values.iter().fold(*reach, |most, x| most.max(x.abs()));
            };
            self.signed.visit_rows(Side::Right, feature..feature + 1, largest)?;
        }
        Ok(reaches)
    }
}
