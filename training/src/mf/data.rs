//! Ratings to train on, and those to test on.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::RangedU64ValueParser;
use megagrid_algorithms::mf::TestSet;
use megagrid_algorithms::ranking::Queries;
use megagrid_datasets::cache::Cache;
use megagrid_datasets::{Dataset, Edges, Format, Layout, Names, OtherRating, Prepared, Roles, Share, is_pipe};
use megagrid_datasets::{load_ratings_with, load_times_with, read_ratings_with, split, split_by_user, split_users};
use megagrid_partition::{EdgeList, EdgeSource, Side, SplitMix};
use serde::{Deserialize, Serialize};

use super::start::Start;
use super::unseen::Unseen;
use crate::Error;
use crate::data::{Data, Reading};
use crate::error::reading;
use crate::input::{Digest, Source, Stopwatch, digest, is_cache, no_edges, open, ordered, phases};
use crate::options::{check_holdout, lossy_option};
use crate::record::{InputSizes, Phases};
use crate::room;

/// Which ratings a model is tested on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args)]
pub struct RatingOptions {
    /// Ratings to test on after each iteration, in any text format.
    #[arg(long, value_name = "FILE", conflicts_with = "holdout", help_heading = "Quality on unseen ratings")]
    #[serde(serialize_with = "lossy_option")]
    pub test: Option<PathBuf>,
    /// Part of the ratings, above 0 and below 1, to keep for testing.
    #[arg(long, value_name = "F", allow_negative_numbers = true, help_heading = "Quality on unseen ratings")]
    pub holdout: Option<f64>,
    /// Ratings of each user to keep for testing, drawn by the seed: a number, of users that have more, or a part of each user's.
    #[arg(
        long,
        value_name = "N|F",
        conflicts_with_all = ["test", "holdout"],
        allow_negative_numbers = true,
        help_heading = "Quality on unseen ratings"
    )]
    pub holdout_per_user: Option<Share>,
    /// As --holdout-per-user, but the latest ratings of each user, so that the model is asked for what comes next. When a rating was
    /// made stands in a column named time, timestamp, date or datetime, or in that of --columns time=4: a number or a date.
    #[arg(
        long,
        value_name = "N|F",
        conflicts_with_all = ["test", "holdout", "holdout_per_user"],
        allow_negative_numbers = true,
        help_heading = "Quality on unseen ratings"
    )]
    pub holdout_last: Option<Share>,
    /// Keep whole users from training, a number or a part of them. The model is told a part of their ratings, from which it finds their
    /// vectors (fold-in), and is tested on those that --holdout-per-user or --holdout-last keeps [default: a fifth of each user's]. Users
    /// with too few ratings for that stay in training.
    #[arg(
        long,
        value_name = "N|F",
        conflicts_with_all = ["test", "holdout"],
        allow_negative_numbers = true,
        help_heading = "Quality on unseen ratings"
    )]
    pub holdout_users: Option<Share>,
    /// Rank the items that each user has not rated, and see how many of the first K are kept for testing: recall, NDCG, MAP, MRR, hit
    /// rate and coverage [default: with als 10].
    #[arg(
        long,
        value_name = "K",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..),
        help_heading = "Quality on unseen ratings"
    )]
    pub ranking: Option<usize>,
}

impl RatingOptions {
    /// Returns what is kept for testing, if anything is.
    #[must_use]
    pub fn holdout(&self) -> Option<Holdout> {
        let share = self.holdout_last.or(self.holdout_per_user);
        match (self.holdout_users, share) {
            (Some(users), share) => Some(Holdout::Users { users, share: share.unwrap_or(TESTED_OF_USERS) }),
            (None, Some(share)) => Some(Holdout::PerUser(share)),
            (None, None) => self.holdout.map(Holdout::Part),
        }
    }

    /// Says what is kept for testing, in a word where that is a part of all.
    fn holdout_text(&self) -> String {
        let Self { holdout, holdout_per_user, holdout_last, holdout_users, .. } = self;
        let part = holdout.map(|part| part.to_string());
        let of = |(share, name): (&Option<Share>, &str)| share.map(|share| format!("{share} {name}"));
        let shares = [(holdout_per_user, "per user"), (holdout_last, "last"), (holdout_users, "users")];
        let said: Vec<String> = part.into_iter().chain(shares.into_iter().filter_map(of)).collect();
        if said.is_empty() { "unset".to_owned() } else { said.join(", ") }
    }
}

/// What users that are kept from training are tested on, if nothing is said: Liang and others (2018) keep a fifth.
const TESTED_OF_USERS: Share = Share::Part(0.2);

/// Options that keep ratings for testing.
pub(crate) const HELD_OUT: [&str; 4] = ["holdout", "holdout_per_user", "holdout_last", "holdout_users"];

/// What is kept for testing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Holdout {
    /// This part of all ratings.
    Part(f64),
    /// These ratings of each user: the latest where times are known, else any.
    PerUser(Share),
    /// Whole users, and of the ratings of each of them these.
    Users {
        /// The users.
        users: Share,
        /// Their ratings that a model is tested on; it is told the others.
        share: Share,
    },
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
    /// What is known of the users of test data where they are none of the users; they have numbers of their own.
    pub unseen: Option<Unseen>,
    /// How items are to be ranked: of how many, and for whom.
    pub ranking: Option<(usize, Queries)>,
    /// What one pass over the ratings finds.
    pub digest: Digest,
    /// Where training starts; `None`: at values drawn by the seed.
    pub start: Option<Start>,
    /// A digest of what was kept for testing, if anything was.
    held_out: Option<u64>,
    sizes: InputSizes,
}

impl Ratings {
    /// Takes ratings in memory, and keeps a part of them for testing, which follows from the seed.
    ///
    /// # Errors
    /// A part out of range, or of which nothing is left to train on.
    pub fn new(ratings: Dataset<f32>, holdout: Option<f64>, seed: u64) -> Result<Self, Error> {
        Self::held_out(ratings, holdout.map(Holdout::Part), None, seed)
    }

    /// Takes ratings in memory, and keeps some of them for testing, which follow from the seed, and from when each was made if that is
    /// known.
    ///
    /// # Errors
    /// A holdout out of range, or of which nothing is left on one side; times that are not as many as ratings.
    pub fn held_out(
        ratings: Dataset<f32>,
        holdout: Option<Holdout>,
        times: Option<&[f64]>,
        seed: u64,
    ) -> Result<Self, Error> {
        let (train, test, unseen) = match holdout {
            None => (ratings, TestSet::default(), None),
            Some(Holdout::Part(part)) => {
                check_holdout(Some(part))?;
                let (train, test) = split(&ratings, part, seed)?;
                (train, known(&test.edges), None)
            }
            Some(Holdout::PerUser(share)) => {
                let [train, test] = split_by_user(&ratings, share, times, seed)?;
                (train, known(&test.edges), None)
            }
            Some(Holdout::Users { users, share }) => {
                let [train, known, test] = split_users(&ratings, users, share, times, seed)?;
                let (unseen, test) = Unseen::new(&known, &test, train.right_names())?;
                (train, test, Some(unseen))
            }
        };
        let told = unseen.iter().flat_map(Unseen::known);
        let held_out = holdout.map(|_| of_pairs(test.known.iter().copied(), 0).wrapping_add(of_pairs(told, 1)));
        Ok(Self { unseen, held_out, ..Self::of(Prepared::new(train, &[Side::Right]), test)? })
    }

    /// Has items ranked, of whom the first `k` are looked at, for the users that there are ratings to test on of.
    ///
    /// # Errors
    /// Edges that cannot be read.
    pub fn ranked(self, k: Option<usize>) -> Result<Self, Error> {
        let Some(k) = k.filter(|_| !self.test.known.is_empty()) else { return Ok(self) };
        let test = self.test.known.iter().map(|&(user, item, _)| (user, item));
        let seen = match &self.unseen {
            Some(unseen) => unseen.seen(),
            None => self.rated_by(&test.clone().map(|(user, _)| user).collect())?,
        };
        let queries = Queries::new(test, seen.into_iter());
        Ok(Self { ranking: Some((k, queries)), ..self })
    }

    /// Returns the pairs of some users and the items that they have rated.
    fn rated_by(&self, is_tested: &HashSet<u32>) -> Result<Vec<(u32, u32)>, Error> {
        let (offsets, mut seen) = (self.edges.held_offsets(), Vec::new());
        for rows in self.edges.windows() {
            let visit = &mut |users: &[u32], _: &[f32]| {
                for item in rows.clone() {
                    let [begin, end] = [item, item + 1].map(|at| (offsets[at] - offsets[rows.start]) as usize);
                    let tested = users[begin..end].iter().filter(|user| is_tested.contains(user));
                    seen.extend(tested.map(|&user| (user, item as u32)));
                }
            };
            self.edges.visit_rows(Side::Right, rows.clone(), visit).map_err(reading)?;
        }
        Ok(seen)
    }

    /// Takes ratings that are prepared, and those to test on.
    ///
    /// # Errors
    /// Edges that cannot be read.
    pub fn of(prepared: Prepared<f32>, test: TestSet) -> Result<Self, Error> {
        let edges = &prepared.edges;
        let digest = digest(edges, |&rating| f64::from(rating))?;
        let [left, right] = [Side::Left, Side::Right].map(|side| edges.num_vertices(side));
        let sizes = InputSizes { left, right, edges: edges.num_edges(), test_edges: test.len(), test_users: None };
        Ok(Self::with(prepared, digest, test, sizes))
    }

    fn with(prepared: Prepared<f32>, digest: Digest, test: TestSet, sizes: InputSizes) -> Self {
        let names = Arc::new(prepared.names);
        let (edges, unseen, ranking, start, held_out) = (prepared.edges, None, None, None, None);
        Self { edges, names, test, unseen, ranking, digest, start, held_out, sizes }
    }
}

impl Ratings {
    /// Takes ratings to plan with only: none of them is looked at.
    #[must_use]
    pub fn to_plan(prepared: Prepared<f32>) -> Self {
        let digest = Digest { mean: 0.0, range: None, checksum: 0 };
        let (test, sizes) = Default::default();
        Self::with(prepared, digest, test, sizes)
    }
}

impl Data for Ratings {
    type Options = RatingOptions;
    const FIXED: &'static [&'static str] = &HELD_OUT;

    fn read(source: &mut Source, options: &RatingOptions, how: &Reading<'_>) -> Result<(Self, Phases), Error> {
        check_holdout(options.holdout)?;
        let RatingOptions { test, ranking, .. } = options;
        let is_timed = options.holdout_last.is_some();
        if is_timed && is_pipe(&source.input) {
            let problem = "--holdout-last reads when ratings were made after the ratings, which a pipe has once; save it in a file";
            return Err(Error::invalid(&source.input, problem));
        }
        let mut clock = Stopwatch::start();
        let layout = source.find(Format::Ratings)?;
        // What a user is not to be shown again is known where all is read.
        let is_ranked = test.is_some() && ranking.is_some();
        let how = &Reading { readers: how.readers.filter(|_| !is_ranked), ..*how };
        let holdout = options.holdout();
        room::check(source, if holdout.is_some() { 1 } else { how.parts() })?;
        let path = &source.input;
        let is_cache = source.is_cache();
        how.agree(is_cache, ("holdout", options.holdout_text()))?;
        if is_timed && is_cache {
            let problem = "--holdout-last asks when ratings were made, which a .mgrid does not hold; give the table that it was made of";
            return Err(Error::invalid(path, problem));
        }
        if holdout.is_some() || !source.changes.is_empty() {
            let all = source.whole(|source| {
                let layout = source.find(Format::Ratings)?;
                Ok(match source.is_cache() {
                    true => Cache::open(&source.input)?.to_dataset()?,
                    false => load_ratings_with(&source.input, &layout, how.readers)?.into_dataset()?,
                })
            })?;
            let timed = || load_times_with(&source.input, &layout, how.readers)?.into_dataset();
            let times = is_timed.then(timed).transpose()?.map(|timed| timed.edges.data);
            let load = clock.lap();
            let all = ordered(all, how.degree_order && !is_cache);
            let ratings = Self::held_out(all, holdout, times.as_deref(), how.seed)?.ranked(*ranking)?;
            return Ok((ratings, phases(load, clock.lap())));
        }
        let (prepared, mut load, partition);
        if is_cache {
            prepared = open(path, how.readers)?;
            (load, partition) = (clock.lap(), 0.0);
        } else {
            let loaded = load_ratings_with(path, &layout, how.readers)?;
            load = clock.lap();
            prepared = loaded.prepare(Side::Right, how.degree_order)?;
            partition = clock.lap();
        }
        let test = test.as_deref().map(|path| test_set(path, layout.roles, &prepared)).transpose()?;
        let ratings = Self::of(prepared, test.unwrap_or_default())?.ranked(*ranking)?;
        load += clock.lap();
        Ok((ratings, phases(load, partition)))
    }

    fn sizes(&self) -> InputSizes {
        InputSizes { test_users: self.unseen.as_ref().map(Unseen::num_users), ..self.sizes }
    }

    fn checksum(&self) -> Result<u64, Error> {
        Ok(self.digest.checksum)
    }

    fn beside_edges(&self) -> Option<(&'static str, u64)> {
        Some(("ratings kept for testing", self.held_out?))
    }

    fn release(&mut self) {
        self.edges = no_edges();
    }
}

/// Reads ratings to test on, whose columns have the same roles.
fn test_set(path: &std::path::Path, roles: Roles, prepared: &Prepared<f32>) -> Result<TestSet, Error> {
    if is_cache(path, None)? {
        return Err(Error::option("--test takes ratings as text or Parquet, and this is a .mgrid cache"));
    }
    let (users, items) = (prepared.names.get(Side::Left)?, prepared.names.get(Side::Right)?);
    let read = read_ratings_with(path, Layout { format: None, roles, undirected: false }, &users, &items)?;
    let others = read.others.iter().map(|&OtherRating { left, right, rating }| (left, right, rating)).collect();
    Ok(TestSet { others, ..known(&read.known) })
}

/// Returns a digest of users, items and ratings in any order.
fn of_pairs(ratings: impl Iterator<Item = (u32, u32, f32)>, seed: u64) -> u64 {
    let of = |(user, item, rating): (u32, u32, f32)| {
        let rating = u64::from(rating.to_bits()) << 1 | seed;
        SplitMix::new(u64::from(user) << 32 | u64::from(item), rating).bits()
    };
    ratings.map(of).fold(0, u64::wrapping_add)
}

fn known(edges: &EdgeList<f32>) -> TestSet {
    let ends = edges.left.iter().zip(&edges.right).zip(&edges.data);
    TestSet { known: ends.map(|((&user, &item), &rating)| (user, item, rating)).collect(), others: Vec::new() }
}
