//! Ratings to train on, and those to test on.

use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::RangedU64ValueParser;
use megagrid_algorithms::mf::TestSet;
use megagrid_algorithms::ranking::Queries;
use megagrid_datasets::{Dataset, Draw, Edges, Names, Prepared, Share, split, split_by_user, split_users};
use megagrid_partition::parallel::map;
use megagrid_partition::{EdgeList, EdgeSource, Side, SplitMix};
use serde::{Deserialize, Serialize};

use super::scale::Scale;
use super::start::Start;
use super::unseen::Unseen;
use crate::Error;
use crate::data::{Data, Reading};
use crate::error::reading;
use crate::input::{Digest, Source, digest, no_edges};
use crate::options::{check_holdout, lossy};
use crate::record::{InputSizes, Phases};

/// Which ratings a model is tested on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args)]
pub struct RatingOptions {
    /// Ratings to test on after each iteration, in any text format.
    #[arg(long, value_name = "FILE", conflicts_with = "holdout", help_heading = "Quality on unseen ratings")]
    #[serde(serialize_with = "lossy")]
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
    pub(super) fn holdout_text(&self) -> String {
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
    /// What training counts ratings by, if nothing is said.
    pub scale: Scale,
    /// Where training starts; `None`: at values drawn by the seed.
    pub start: Option<Start>,
    /// Names of users and items of ratings that were taken back.
    pub(crate) taken_back: Vec<Arc<Names>>,
    /// A digest of what was kept for testing, if anything was.
    held_out: Option<u64>,
    pub(super) sizes: InputSizes,
}

impl Ratings {
    /// Takes ratings in memory, and keeps a part of them for testing, which follows from the seed.
    ///
    /// # Errors
    /// A part out of range, or of which nothing is left to train on.
    pub fn new(ratings: Dataset<f32>, holdout: Option<f64>, seed: u64) -> Result<Self, Error> {
        Self::held_out(ratings, holdout.map(Holdout::Part), Draw { seed, ..Draw::default() })
    }

    /// Takes ratings in memory, and keeps some of them for testing, drawn as `draw` says where these are of each user.
    ///
    /// # Errors
    /// A holdout out of range, or of which nothing is left on one side; times that are not as many as ratings.
    pub fn held_out(ratings: Dataset<f32>, holdout: Option<Holdout>, draw: Draw<'_>) -> Result<Self, Error> {
        let (train, test, unseen) = match holdout {
            None => (ratings, TestSet::default(), None),
            Some(Holdout::Part(part)) => {
                check_holdout(Some(part))?;
                let (train, test) = split(&ratings, part, draw.seed)?;
                (train, TestSet::new(rated(&test.edges), Vec::new()), None)
            }
            Some(Holdout::PerUser(share)) => {
                let [train, test] = split_by_user(&ratings, share, draw)?;
                (train, TestSet::new(rated(&test.edges), Vec::new()), None)
            }
            Some(Holdout::Users { users, share }) => {
                let [train, known, test] = split_users(&ratings, users, share, draw)?;
                let (unseen, test) = Unseen::new(&known, &test, train.right_names())?;
                (train, test, Some(unseen))
            }
        };
        let told = unseen.iter().flat_map(Unseen::known);
        let held_out = holdout.map(|_| of_pairs(test.known().iter().copied(), 0).wrapping_add(of_pairs(told, 1)));
        Ok(Self { unseen, held_out, ..Self::of(Prepared::new(train, &[Side::Right]), test)? })
    }

    /// Has items ranked, of which the first `k` are looked at, for users who have items to test on that training has not seen, if there are any.
    ///
    /// # Errors
    /// Edges that cannot be read.
    pub fn ranked(self, k: Option<usize>) -> Result<Self, Error> {
        self.ranked_where(k, |_| true)
    }

    /// The same, where only ratings of values for which `counts` holds have been seen: others are as if they were not there.
    pub(crate) fn ranked_where(self, k: Option<usize>, counts: impl Fn(f32) -> bool + Sync) -> Result<Self, Error> {
        let Some(k) = k.filter(|_| !self.test.known().is_empty()) else { return Ok(self) };
        let test = self.test.known().iter().map(|&(user, item, _)| (user, item));
        let seen = match &self.unseen {
            Some(unseen) => unseen.known().map(|(user, item, _)| (user, item)).collect(),
            None => self.rated_by(test.clone().map(|(user, _)| user), counts)?,
        };
        let queries = Queries::new(test, seen.into_iter());
        Ok(Self { ranking: (!queries.users.is_empty()).then_some((k, queries)), ..self })
    }

    /// Refuses a ranking that was asked for where none can be measured.
    pub(crate) fn check_ranked(&self, asked: Option<usize>) -> Result<(), Error> {
        let is_tested = !self.test.known().is_empty() || !self.test.others().is_empty();
        if asked.is_none() || !is_tested || self.ranking.is_some() {
            return Ok(());
        }
        let problem = if self.test.known().is_empty() {
            "training knows no user and item of a pair that there is to test on, and cannot rank others"
        } else {
            "training has seen all pairs that there are to test on, and what is seen is not ranked"
        };
        Err(Error::Missing(format!("{problem}; give other test data, or no --ranking")))
    }

    /// Returns the pairs of some users and the items that they have rated, by ratings that count.
    fn rated_by(
        &self,
        users: impl Iterator<Item = u32>,
        counts: impl Fn(f32) -> bool + Sync,
    ) -> Result<Vec<(u32, u32)>, Error> {
        let mut is_tested = vec![false; self.edges.num_vertices(Side::Left)];
        users.for_each(|user| is_tested[user as usize] = true);
        let (offsets, windows) = (self.edges.held_offsets(), self.edges.windows());
        let of_window = |window: usize| {
            let (rows, mut seen) = (windows[window].clone(), Vec::new());
            let visit = &mut |users: &[u32], ratings: &[f32]| {
                for item in rows.clone() {
                    let [begin, end] = [item, item + 1].map(|at| (offsets[at] - offsets[rows.start]) as usize);
                    let rated = users[begin..end].iter().zip(&ratings[begin..end]);
                    let tested = rated.filter(|&(&user, &rating)| is_tested[user as usize] && counts(rating));
                    seen.extend(tested.map(|(&user, _)| (user, item as u32)));
                }
            };
            self.edges.visit_rows(Side::Right, rows.clone(), visit).map_err(reading)?;
            Ok(seen)
        };
        let of_windows: Result<Vec<Vec<_>>, Error> = map(windows.len(), of_window).into_iter().collect();
        Ok(of_windows?.concat())
    }

    /// Takes ratings that are prepared, and those to test on.
    ///
    /// # Errors
    /// Edges that cannot be read.
    pub fn of(prepared: Prepared<f32>, test: TestSet) -> Result<Self, Error> {
        let edges = &prepared.edges;
        let digest = digest(edges, |&rating| f64::from(rating))?;
        let [left, right] = [Side::Left, Side::Right].map(|side| edges.num_vertices(side));
        let sizes =
            InputSizes { left, right, edges: edges.num_edges(), test_edges: test.len(), ..InputSizes::default() };
        let scale = Scale::of(edges, &digest)?;
        Ok(Self { scale, ..Self::with(prepared, digest, test, sizes) })
    }

    fn with(prepared: Prepared<f32>, digest: Digest, test: TestSet, sizes: InputSizes) -> Self {
        let scale = Scale::of_all(&digest);
        let names = Arc::new(prepared.names);
        let (edges, unseen, ranking, start, held_out) = (prepared.edges, None, None, None, None);
        Self { edges, names, test, unseen, ranking, digest, scale, start, taken_back: Vec::new(), held_out, sizes }
    }
}

impl Ratings {
    /// Takes ratings to plan with only: none of them is looked at.
    #[must_use]
    pub fn to_plan(prepared: Prepared<f32>) -> Self {
        let digest = Digest { mean: 0.0, deviation: 0.0, range: None, checksum: 0 };
        let (test, sizes) = Default::default();
        Self::with(prepared, digest, test, sizes)
    }
}

impl Data for Ratings {
    type Options = RatingOptions;
    const FIXED: &'static [&'static str] = &["test", "holdout", "holdout_per_user", "holdout_last", "holdout_users"];

    fn read(source: &mut Source, options: &RatingOptions, how: &Reading<'_>) -> Result<(Self, Phases), Error> {
        let (ratings, phases) = Self::read_from(source, options, how, None, None)?;
        ratings.check_ranked(options.ranking)?;
        Ok((ratings, phases))
    }

    fn sizes(&self) -> InputSizes {
        InputSizes { test_users: self.unseen.as_ref().map(Unseen::num_users), ..self.sizes.clone() }
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

/// Returns a digest of users, items and ratings in any order.
fn of_pairs(ratings: impl Iterator<Item = (u32, u32, f32)>, seed: u64) -> u64 {
    let of = |(user, item, rating): (u32, u32, f32)| {
        let rating = u64::from(rating.to_bits()) << 1 | seed;
        SplitMix::new(u64::from(user) << 32 | u64::from(item), rating).bits()
    };
    ratings.map(of).fold(0, u64::wrapping_add)
}

/// Returns the users, items and ratings of edges.
pub(super) fn rated(edges: &EdgeList<f32>) -> Vec<(u32, u32, f32)> {
    let ends = edges.left.iter().zip(&edges.right).zip(&edges.data);
    ends.map(|((&user, &item), &rating)| (user, item, rating)).collect()
}
