//! Feedback to train on: ratings that say how often or how long, or those above a bound.

use std::io;
use std::ops::Range;

use megagrid_partition::{EdgeSource, Holders, Side};
use serde::{Deserialize, Serialize};

use super::half_life::HalfLife;
use crate::Error;
use crate::data::{Data, Reading};
use crate::error::reading;
use crate::input::Source;
use crate::mf::{ByTime, RatingOptions, Ratings};
use crate::record::{InputSizes, Phases};

/// What is feedback.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct FeedbackOptions {
    /// Take ratings above X for feedback of 1, and leave others out [default: the values are the feedback, 0 is none].
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub ratings_above: Option<f32>,
    /// Let feedback count less the older it is: half of what it is worth after this long, a quarter after twice as long, counted from the
    /// newest time in the input. A number in the unit of the times, or where they are dates or seconds 30d, 12h, 90min, 2w. When feedback
    /// was given stands in a column named time, timestamp, date or datetime, or in that of --columns time=4.
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true)]
    pub half_life: Option<HalfLife>,
    /// Which of it is kept for testing.
    #[command(flatten)]
    #[serde(flatten)]
    pub ratings: RatingOptions,
}

impl FeedbackOptions {
    /// Returns the feedback of a rating: 0 where it is none.
    #[must_use]
    pub fn feedback(above: Option<f32>, rating: f32) -> f32 {
        above.map_or(rating, |bound| f32::from(u8::from(rating > bound)))
    }

    /// Makes feedback of ratings that were made at these times, which counts less the older it is; without a half-life they stay as they
    /// are.
    ///
    /// # Errors
    /// Times that are missing, not as many as ratings, or do not fit the half-life; no rating above the bound.
    pub fn decay(&self, ratings: &mut [f32], times: Option<&[f64]>) -> Result<(), Error> {
        let Some(half_life) = self.half_life else { return Ok(()) };
        let times =
            times.ok_or_else(|| Error::option("--half-life needs a column of times, or a path to a table with one"))?;
        let above = self.ratings_above;
        ratings.iter_mut().for_each(|rating| *rating = Self::feedback(above, *rating));
        if above.is_some() && !ratings.contains(&1.0) {
            return Err(nothing(ratings.len(), above));
        }
        half_life.decay(ratings, times)
    }

    /// Returns what values have to be above to be feedback, after [`decay`](Self::decay) too, which makes feedback of ratings above a bound.
    #[must_use]
    pub fn counts_above(&self) -> f32 {
        self.bound().unwrap_or(0.0)
    }

    /// Returns what values have to be above to be feedback, after [`decay`](Self::decay) was asked to make feedback of them.
    #[must_use]
    pub fn bound(&self) -> Option<f32> {
        self.ratings_above.filter(|_| self.half_life.is_none())
    }
}

/// Feedback.
#[derive(Debug)]
pub struct Feedback {
    /// Values as they were read, or what their age has left of them.
    pub ratings: Ratings,
    /// What values have to be above to be feedback.
    pub above: Option<f32>,
    /// The mean of the feedback of pairs that have some.
    pub mean: f32,
    /// How many these are.
    pub pairs: u64,
}

/// How many of the best items are looked at, if nothing is said.
pub const RANKED: usize = 10;

impl Feedback {
    /// Takes ratings, of which only those above a bound are feedback if there is one.
    ///
    /// # Errors
    /// Values below 0, or no feedback at all, or none among what a model is to be tested on; edges that cannot be read.
    pub fn new(mut ratings: Ratings, above: Option<f32>) -> Result<Self, Error> {
        let sum = |of: &(dyn Fn(f32) -> f64 + Sync)| {
            ratings.edges.summarize(|&value| of(value)).map(|found| found.sum).map_err(reading)
        };
        let is_bad = |value: f32| !is_feedback(above, value);
        if sum(&|value| f64::from(u8::from(is_bad(value))))? > 0.0 {
            return Err(refused(&ratings, is_bad));
        }
        let feedback = |value: f32| f64::from(FeedbackOptions::feedback(above, value));
        let pairs = ratings.edges.num_pairs(|&value| feedback(value) > 0.0).map_err(reading)?;
        if ratings.edges.num_edges() > 0 && pairs == 0 {
            return Err(nothing(ratings.edges.num_edges(), above));
        }
        let mean = if pairs > 0 { (sum(&feedback)? / pairs as f64) as f32 } else { 1.0 };
        let num_tested = ratings.test.known().len();
        ratings.test.retain(|&(.., value)| FeedbackOptions::feedback(above, value) > 0.0);
        if let Some(unseen) = &mut ratings.unseen {
            let value = |value| is_feedback(above, value).then(|| FeedbackOptions::feedback(above, value));
            unseen.set_values(&mut ratings.test, value).map_err(|value| {
                Error::Missing(format!("feedback of a user that is kept for testing is {value}; {NO_FEEDBACK}"))
            })?;
        }
        if num_tested > 0 && ratings.test.known().is_empty() {
            return Err(Error::Missing(format!(
                "none of the {num_tested} ratings that are kept for testing is feedback of a user who can be tested; keep more of them, or \
                 others"
            )));
        }
        Ok(Self { ratings, above, mean, pairs })
    }

    /// Has items ranked, of which the first `k` are looked at, 10 if nothing is said, for the users of test data. Only feedback was seen by
    /// them: what they rated lower may be found again.
    ///
    /// # Errors
    /// Edges that cannot be read.
    pub fn ranked(self, k: Option<usize>) -> Result<Self, Error> {
        let counts = |value| FeedbackOptions::feedback(self.above, value) > 0.0;
        Ok(Self { ratings: self.ratings.ranked_where(k.or(Some(RANKED)), counts)?, ..self })
    }
}

/// What values that are no feedback are told with.
pub(crate) const NO_FEEDBACK: &str =
    "expected 0 or a number above; with --ratings-above X ratings above X are feedback";

/// Tells whether a value may be feedback, or none; all may where only those above a bound are.
pub(crate) fn is_feedback(above: Option<f32>, value: f32) -> bool {
    // No number compares with anything.
    above.is_some() || value >= 0.0 && value.is_finite()
}

fn nothing(num_values: usize, above: Option<f32>) -> Error {
    let what = above.map_or("above 0".to_owned(), |bound| format!("above {bound}, as --ratings-above has it"));
    Error::Missing(format!("none of the {num_values} values is {what}, so there is no feedback to train on"))
}

/// Names the first value that is no feedback.
fn refused(ratings: &Ratings, is_bad: impl Fn(f32) -> bool) -> Error {
    let edges = &ratings.edges;
    let mut found = None;
    let offsets = edges.held_offsets();
    for rows in edges.windows() {
        let visit = &mut |users: &[u32], values: &[f32]| {
            if let Some(at) = values.iter().position(|&value| is_bad(value)).filter(|_| found.is_none()) {
                let ends = &offsets[rows.start..=rows.end];
                let item = rows.start + ends.partition_point(|&end| end - ends[0] <= at as u64) - 1;
                found = Some((users[at], item as u32, values[at]));
            }
        };
        if edges.visit_rows(Side::Right, rows.clone(), visit).is_err() || found.is_some() {
            break;
        }
    }
    let name =
        |side: Side, id: u32| ratings.names.get(side).map(|names| names.name(id).into_owned()).unwrap_or_default();
    Error::Missing(match found {
        Some((user, item, value)) => {
            let (user, item) = (name(Side::Left, user), name(Side::Right, item));
            format!("feedback of user \"{user}\" on item \"{item}\" is {value}; {NO_FEEDBACK}")
        }
        None => format!("some feedback is below 0; {NO_FEEDBACK}"),
    })
}

/// Feedback by pairs: what was read of a pair again is added to its first edge, and nothing is left of it elsewhere, for a pair has
/// one target.
impl EdgeSource<f32> for Feedback {
    fn is_square(&self) -> bool {
        self.ratings.edges.is_square()
    }

    fn offsets(&self, side: Side) -> &[u64] {
        self.ratings.edges.offsets(side)
    }

    fn held_offsets(&self) -> &[u64] {
        self.ratings.edges.held_offsets()
    }

    fn distribute(&self, holders: Holders<'_>) -> io::Result<()> {
        self.ratings.edges.distribute(holders)
    }

    fn windows(&self) -> Vec<Range<usize>> {
        self.ratings.edges.windows()
    }

    fn visit_rows(&self, side: Side, rows: Range<usize>, visit: &mut dyn FnMut(&[u32], &[f32])) -> io::Result<()> {
        let offsets = if side == Side::Right { self.held_offsets() } else { self.offsets(side) };
        self.ratings.edges.visit_rows(side, rows.clone(), &mut |others, values| {
            let mut of_pairs: Vec<f32> =
                values.iter().map(|&value| FeedbackOptions::feedback(self.above, value)).collect();
            for row in rows.clone() {
                let [begin, end] = [row, row + 1].map(|at| (offsets[at] - offsets[rows.start]) as usize);
                add_to_first(&others[begin..end], &mut of_pairs[begin..end]);
            }
            visit(others, &of_pairs);
        })
    }

    fn visit_ends(&self, rows: Range<usize>, visit: &mut dyn FnMut(&[u64])) -> io::Result<()> {
        self.ratings.edges.visit_ends(rows, visit)
    }
}

/// Adds the values of vertices that are equal, which follow each other, to the first of them.
fn add_to_first(ids: &[u32], values: &mut [f32]) {
    let mut first = 0;
    for at in 1..ids.len() {
        if ids[at] == ids[first] {
            values[first] += std::mem::take(&mut values[at]);
        } else {
            first = at;
        }
    }
}

impl Data for Feedback {
    type Options = FeedbackOptions;
    const FIXED: &'static [&'static str] = &[
        "test",
        "holdout",
        "holdout_per_user",
        "holdout_last",
        "holdout_users",
        "ranking",
        "ratings_above",
        "half_life",
    ];

    fn read(source: &mut Source, options: &FeedbackOptions, how: &Reading<'_>) -> Result<(Self, Phases), Error> {
        let is_tested = options.ratings.test.is_some() || options.ratings.holdout().is_some();
        let ranking = options.ratings.ranking.or(is_tested.then_some(RANKED));
        source.take_pairs();
        let input = source.input.clone();
        let named = |error| match error {
            Error::Missing(problem) => Error::invalid(&input, problem),
            other => other,
        };
        let change = |ratings: &mut [f32], times: &[f64]| options.decay(ratings, Some(times)).map_err(named);
        let by_time =
            options.half_life.map(|half_life| ByTime { option: ("half-life", half_life.to_string()), change: &change });
        let ratings = RatingOptions { ranking, ..options.ratings.clone() };
        let (ratings, phases) =
            Ratings::read_from(source, &ratings, how, by_time.as_ref(), Some(options.counts_above()))?;
        // Of those kept for testing some may be no feedback.
        let feedback = Self::new(ratings, options.bound()).map_err(named)?.ranked(ranking)?;
        feedback.ratings.check_ranked(options.ratings.ranking)?;
        Ok((feedback, phases))
    }

    fn sizes(&self) -> InputSizes {
        InputSizes { test_edges: self.ratings.test.len(), ..self.ratings.sizes() }
    }

    fn checksum(&self) -> Result<u64, Error> {
        self.ratings.checksum()
    }

    fn beside_edges(&self) -> Option<(&'static str, u64)> {
        self.ratings.beside_edges()
    }

    fn release(&mut self) {
        self.ratings.release();
    }
}
