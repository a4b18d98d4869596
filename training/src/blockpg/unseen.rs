//! Samples to test on.

use megagrid_datasets::{Dictionary, Labels};
use megagrid_partition::{EdgeList, SplitMix};

use super::class_weights::listed;
use crate::Error;

/// Samples to test on: values of known features.
pub struct Unseen {
    values: EdgeList<f32>,
    /// The places of their classes among those that a model knows; empty where they have no labels.
    pub labels: Vec<u32>,
}

impl Unseen {
    /// Takes samples whose features get the ids that `features` gives them; others are left out.
    ///
    /// # Errors
    /// A label that is none of `classes`.
    pub fn new(samples: megagrid_datasets::Samples, features: &Dictionary, classes: &[String]) -> Result<Self, Error> {
        let labels = samples.labels.among(classes).map_err(|name| {
            Error::Missing(format!(
                "a sample to test on has the label {name}, and the model's classes are {}",
                listed(classes)
            ))
        })?;
        Ok(Self { values: samples.data.with_right_names(features).0.edges, labels })
    }

    /// Returns their number.
    #[must_use]
    pub fn num_samples(&self) -> usize {
        self.values.num_left
    }

    /// Returns the number of their values.
    #[must_use]
    pub fn num_values(&self) -> usize {
        self.values.num_edges()
    }

    /// Returns w·x of each sample.
    #[must_use]
    pub fn scores(&self, weights: &[f64], intercept: f64) -> Vec<f64> {
        let mut scores = vec![intercept; self.values.num_left];
        let ends = self.values.left.iter().zip(&self.values.right).zip(&self.values.data);
        ends.for_each(|((&sample, &feature), &x)| scores[sample as usize] += f64::from(x) * weights[feature as usize]);
        scores
    }
}

/// Edges, labels and weights to train on, and samples to test on.
pub(super) type Parts = (EdgeList<f32>, Labels, Vec<f32>, Option<Unseen>);

/// Keeps about a part of the samples for testing. Which ones follows from the seed and their number in the input.
pub(super) fn split(samples: megagrid_datasets::Samples, sample_weights: Vec<f32>, part: f64, seed: u64) -> Parts {
    let megagrid_datasets::Samples { data, labels } = samples;
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
    let [train, test] = lists;
    let test = Unseen { values: test, labels: pick(&labels.of, &kept, false) };
    let of = pick(&labels.of, &kept, true);
    (train, Labels { of, ..labels }, pick(&sample_weights, &kept, true), Some(test))
}

/// Returns those of the kept samples, or of the others.
fn pick<T: Copy>(all: &[T], kept: &[bool], wanted: bool) -> Vec<T> {
    all.iter().zip(kept).filter(|(_, kept)| **kept == wanted).map(|(one, _)| *one).collect()
}
