//! The model of PageRank, and its directory.

use std::path::Path;

use megagrid_datasets::Names;
use megagrid_datasets::output::write_matrix;

use crate::Error;
use crate::graph::{Ranked, Top, listing};
use crate::model::{Manifest, Model, Scored};
use crate::record::Metrics;

/// Vertices and their scores, which sum to 1.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// Vertices by their scores: of several sets the mean, which is the score where surfers restart at all sets equally likely.
    pub ranked: Ranked,
    /// The scores of each set of vertices to restart at, in the order of the vertices; empty where there are no sets.
    pub sets: Vec<Vec<f32>>,
}

/// The name of its files.
const SCORES: &str = "scores";
/// The scores of each set.
const SETS: &str = "sets.npy";
/// How many of the best are shown, and of each of how many sets.
const SHOWN: usize = 10;
const SHOWN_SETS: usize = 3;

impl Ranks {
    /// Puts vertices in order of their scores.
    ///
    /// # Errors
    /// Names of a cache that cannot be read.
    pub fn new(scores: &[f32], names: &Names) -> Result<Self, Error> {
        Ok(Self { ranked: Ranked::new(scores, names)?, sets: Vec::new() })
    }

    /// Puts vertices in order of their mean scores of several sets.
    ///
    /// # Errors
    /// Names of a cache that cannot be read.
    pub fn of_sets(mut sets: Vec<Vec<f32>>, names: &Names) -> Result<Self, Error> {
        let vertices = sets.first().map_or(0, Vec::len);
        let mean = |at: usize| sets.iter().map(|scores| f64::from(scores[at])).sum::<f64>() / sets.len() as f64;
        let (ranked, order) = Ranked::with_order(&(0..vertices).map(|at| mean(at) as f32).collect::<Vec<_>>(), names)?;
        for scores in &mut sets {
            *scores = order.iter().map(|&at| scores[at as usize]).collect();
        }
        Ok(Self { ranked, sets })
    }

    /// Returns the best `number` of a set, which are counted from 1, or of all.
    ///
    /// # Errors
    /// No such set.
    pub fn top(&self, number: usize, set: Option<usize>) -> Result<Vec<Scored>, Error> {
        match set {
            Some(set) => self.ranked.top_of_set(&self.sets, set, number),
            None => Ok(self.ranked.top(number)),
        }
    }
}

impl Model for Ranks {
    const KIND: &'static str = "pagerank";
    type Question = Top;
    type Answer = Vec<Scored>;

    fn write(&self, into: &Path, manifest: &mut Manifest) -> Result<(), Error> {
        let titled = (1..).zip(&self.sets).map(|(set, scores)| (format!("score_{set}"), &scores[..]));
        self.ranked.write(into, SCORES, &titled.collect::<Vec<_>>(), manifest)?;
        if self.sets.is_empty() {
            return Ok(());
        }
        let rows: Vec<Vec<f32>> =
            (0..self.ranked.scores.len()).map(|at| self.sets.iter().map(|scores| scores[at]).collect()).collect();
        manifest.shape(SETS, &[rows.len(), self.sets.len()]);
        Ok(write_matrix(&into.join(SETS), self.sets.len(), rows.iter().map(Vec::as_slice))?)
    }

    fn read(from: &Path, _: &Manifest) -> Result<Self, Error> {
        let (ranked, sets) = Ranked::read(from, SCORES)?;
        Ok(Self { ranked, sets })
    }

    fn answer(&self, top: &Top) -> Result<Vec<Scored>, Error> {
        if top.hubs {
            return Err(Error::option("a model of pagerank has no hubs; train one with hits"));
        }
        self.top(top.number, top.set)
    }

    fn bytes(&self) -> u64 {
        self.ranked.bytes() + self.sets.iter().map(|scores| size_of_val(&scores[..]) as u64).sum::<u64>()
    }

    fn metrics(&self) -> Metrics {
        // Scores get their common factor at the end, so that there is a sum only now.
        Metrics::from([("sum".into(), self.ranked.scores.iter().map(|&score| f64::from(score)).sum())])
    }

    fn findings(&self) -> String {
        let mut text = listing(&self.ranked.top(SHOWN));
        for set in 1..=self.sets.len().min(SHOWN_SETS) {
            text.push_str(&format!(
                "set {set}\n{}",
                self.top(SHOWN_SETS, Some(set)).map_or(String::new(), |best| listing(&best))
            ));
        }
        if self.sets.len() > SHOWN_SETS {
            text.push_str(&format!("  and {} more sets\n", self.sets.len() - SHOWN_SETS));
        }
        text
    }
}
