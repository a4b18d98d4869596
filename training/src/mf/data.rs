//! Ratings to train on, and those to test on.

use std::path::PathBuf;
use std::sync::Arc;

use megagrid_algorithms::mf::TestSet;
use megagrid_datasets::cache::Cache;
use megagrid_datasets::{Dataset, Edges, Format, Names, OtherRating, Prepared};
use megagrid_datasets::{load_ratings_with, read_ratings_with, split};
use megagrid_partition::{EdgeList, EdgeSource, Side};
use serde::Serialize;

use crate::Error;
use crate::data::{Data, Reading};
use crate::input::{Digest, Source, Stopwatch, digest, is_cache, no_edges, open, ordered, phases};
use crate::options::{check_holdout, lossy_option};
use crate::record::{InputSizes, Phases};
use crate::room;

/// Which ratings a model is tested on.
#[derive(Clone, Debug, Serialize, clap::Args)]
pub struct RatingOptions {
    /// Ratings to test on after each iteration, in any text format.
    #[arg(long, value_name = "FILE", conflicts_with = "holdout", help_heading = "Quality on unseen ratings")]
    #[serde(serialize_with = "lossy_option")]
    pub test: Option<PathBuf>,
    /// Part of the ratings, above 0 and below 1, to keep for testing.
    #[arg(long, value_name = "F", allow_negative_numbers = true, help_heading = "Quality on unseen ratings")]
    pub holdout: Option<f64>,
}

/// Ratings.
#[derive(Debug)]
pub struct Ratings {
    /// Ratings, grouped by items.
    pub edges: Edges<f32>,
    /// Names of users and items.
    pub names: Arc<Names>,
    /// Those to test on.
    pub test: TestSet,
    /// What one pass over the ratings finds.
    pub digest: Digest,
    sizes: InputSizes,
}

impl Ratings {
    /// Takes ratings in memory, and keeps a part of them for testing, which follows from the seed.
    ///
    /// # Errors
    /// A part out of range, or of which nothing is left to train on.
    pub fn new(ratings: Dataset<f32>, holdout: Option<f64>, seed: u64) -> Result<Self, Error> {
        check_holdout(holdout)?;
        let (train, test) = match holdout {
            Some(part) => split(&ratings, part, seed).map(|(train, test)| (train, known(&test.edges)))?,
            None => (ratings, TestSet::default()),
        };
        Self::of(Prepared::new(train, &[Side::Right]), test)
    }

    /// Takes ratings that are prepared, and those to test on.
    ///
    /// # Errors
    /// Edges that cannot be read.
    pub fn of(prepared: Prepared<f32>, test: TestSet) -> Result<Self, Error> {
        let Prepared { edges, names, .. } = prepared;
        let digest = digest(&edges, |&rating| f64::from(rating))?;
        let [left, right] = [Side::Left, Side::Right].map(|side| edges.num_vertices(side));
        let sizes = InputSizes { left, right, edges: edges.num_edges(), test_edges: test.len() };
        Ok(Self { edges, names: Arc::new(names), test, digest, sizes })
    }
}

impl Ratings {
    /// Takes ratings to plan with only: none of them is looked at.
    #[must_use]
    pub fn to_plan(prepared: Prepared<f32>) -> Self {
        let Prepared { edges, names, .. } = prepared;
        let digest = Digest { mean: 0.0, checksum: 0 };
        Self { edges, names: Arc::new(names), test: TestSet::default(), digest, sizes: InputSizes::default() }
    }
}

impl Data for Ratings {
    type Edge = f32;
    type Options = RatingOptions;
    const FIXED: &'static [&'static str] = &["holdout"];

    fn read(
        source: &mut Source,
        RatingOptions { test, holdout }: &RatingOptions,
        how: &Reading<'_>,
    ) -> Result<(Self, Phases), Error> {
        check_holdout(*holdout)?;
        let mut clock = Stopwatch::start();
        let format = source.find(Format::Ratings)?;
        room::check(source, if holdout.is_some() { 1 } else { how.parts() })?;
        let path = &source.input;
        let is_cache = source.is_cache();
        how.begin(is_cache, *holdout)?;
        if holdout.is_some() {
            let all = match is_cache {
                true => Cache::open(path)?.to_dataset()?,
                false => load_ratings_with(path, format, how.readers)?.into_dataset()?,
            };
            let load = clock.lap();
            let all = ordered(all, how.degree_order && !is_cache);
            let ratings = Self::new(all, *holdout, how.seed)?;
            return Ok((ratings, phases(load, clock.lap())));
        }
        let (prepared, mut load, partition);
        if is_cache {
            prepared = open(path, how.readers)?;
            (load, partition) = (clock.lap(), 0.0);
        } else {
            let loaded = load_ratings_with(path, format, how.readers)?;
            load = clock.lap();
            prepared = loaded.prepare(Side::Right, how.degree_order)?;
            partition = clock.lap();
        }
        let test = test.as_deref().map(|path| test_set(path, &prepared)).transpose()?;
        let ratings = Self::of(prepared, test.unwrap_or_default())?;
        load += clock.lap();
        Ok((ratings, phases(load, partition)))
    }

    fn sizes(&self) -> InputSizes {
        self.sizes
    }

    fn checksum(&self) -> Result<u64, Error> {
        Ok(self.digest.checksum)
    }

    fn release(&mut self) {
        self.edges = no_edges();
    }
}

fn test_set(path: &std::path::Path, prepared: &Prepared<f32>) -> Result<TestSet, Error> {
    if is_cache(path, None)? {
        return Err(Error::option("--test takes ratings as text or Parquet, and this is a .mgrid cache"));
    }
    let (users, items) = (prepared.names.get(Side::Left)?, prepared.names.get(Side::Right)?);
    let read = read_ratings_with(path, None, &users, &items)?;
    let others = read.others.iter().map(|&OtherRating { left, right, rating }| (left, right, rating)).collect();
    Ok(TestSet { others, ..known(&read.known) })
}

fn known(edges: &EdgeList<f32>) -> TestSet {
    let ends = edges.left.iter().zip(&edges.right).zip(&edges.data);
    TestSet { known: ends.map(|((&user, &item), &rating)| (user, item, rating)).collect(), others: Vec::new() }
}
