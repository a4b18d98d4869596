//! Samples to test on.

use megagrid_algorithms::blockpg::scores;
use megagrid_datasets::{Dictionary, Labels};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side, SplitMix};

use super::class_weights::listed;
use crate::Error;
use crate::error::reading;

/// Samples to test on: values of known features.
pub struct Unseen {
    values: GroupedEdges<f32>,
    /// The places of their classes among those that a model knows; empty where they have no labels.
    pub labels: Vec<u32>,
    /// What they weigh; all 1 if empty.
    pub weights: Vec<f32>,
}

impl Unseen {
    /// Takes samples whose features get the ids that `features` gives them; others are left out.
    ///
    /// # Errors
    /// A label that is none of `classes`; samples all of which weigh 0.
    pub fn new(samples: megagrid_datasets::Samples, features: &Dictionary, classes: &[String]) -> Result<Self, Error> {
        let labels = samples.labels.among(classes).map_err(|name| {
            Error::Missing(format!(
                "a sample to test on has the label {name}, and the model's classes are {}",
                listed(classes)
            ))
        })?;
        if !samples.weights.is_empty() && samples.weights.iter().all(|&weight| weight == 0.0) {
            return Err(Error::Missing("all samples to test on weigh 0".to_owned()));
        }
        Ok(Self::of(samples.data.with_right_names(features).0.edges, labels, samples.weights))
    }

    fn of(values: EdgeList<f32>, labels: Vec<u32>, weights: Vec<f32>) -> Self {
        Self { values: GroupedEdges::new(values, &[Side::Right]), labels, weights }
    }

    /// Returns the places of their classes, and their weights.
    pub(super) fn known(&self) -> (&[u32], &[f32]) {
        (&self.labels, &self.weights)
    }

    /// Returns the number of their values.
    #[must_use]
    pub fn num_values(&self) -> usize {
        self.values.num_edges()
    }

    /// Returns w·x of each sample, and the intercept. Features without a weight cost nothing.
    ///
    /// # Errors
    /// Values that cannot be read.
    pub fn scores(&self, weights: &[f64], intercept: f64) -> Result<Vec<f64>, Error> {
        let mut scores = scores(&self.values, weights).map_err(reading)?;
        scores.iter_mut().for_each(|score| *score += intercept);
        Ok(scores)
    }
}

/// Edges, labels and weights to train on, and samples to test on.
pub(super) type Parts = (EdgeList<f32>, Labels, Vec<f32>, Option<Unseen>);

/// Keeps about a part of the samples for testing. Which ones follows from the seed and their number in the input.
pub(super) fn split(samples: megagrid_datasets::Samples, part: f64, seed: u64) -> Parts {
    let megagrid_datasets::Samples { data, labels, weights } = samples;
    let of = |name: &str| name.parse().unwrap_or(0);
    let is_test: Vec<bool> = data.left_names.iter().map(|name| SplitMix::new(!seed, of(&name)).unit() < part).collect();
    let [train, test] = data.edges.parts_by_left(&is_test);
    let test = Unseen::of(test, pick(&labels.of, &is_test, true), pick(&weights, &is_test, true));
    let of = pick(&labels.of, &is_test, false);
    (train, Labels { of, ..labels }, pick(&weights, &is_test, false), Some(test))
}

/// Returns those of the samples to test on, or of the others.
fn pick<T: Copy>(all: &[T], is_test: &[bool], wanted: bool) -> Vec<T> {
    all.iter().zip(is_test).filter(|(_, is_test)| **is_test == wanted).map(|(one, _)| *one).collect()
}
