//! Feedback to train on: ratings that say how often or how long, or those above a bound.

use std::path::Path;

use megagrid_partition::{EdgeSource, Side};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::data::{Data, Reading};
use crate::error::reading;
use crate::input::Source;
use crate::mf::{RatingOptions, Ratings};
use crate::record::{InputSizes, Phases};

/// What is feedback.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct FeedbackOptions {
    /// Take ratings above X for feedback of 1, and leave others out [default: the values are the feedback, 0 is none].
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub ratings_above: Option<f32>,
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
}

/// Feedback.
#[derive(Debug)]
pub struct Feedback {
    /// Values as they were read.
    pub ratings: Ratings,
    /// What ratings have to be above to be feedback.
    pub above: Option<f32>,
}

/// How many of the best items are looked at, if nothing is said.
pub const RANKED: usize = 10;

impl Feedback {
    /// Takes ratings, of which only those above a bound are feedback if there is one.
    ///
    /// # Errors
    /// Values below 0, or no feedback at all, or none among what a model is to be tested on; edges that cannot be read.
    pub fn new(mut ratings: Ratings, above: Option<f32>) -> Result<Self, Error> {
        let count = |is: &(dyn Fn(f32) -> bool + Sync)| {
            ratings.edges.summarize(|&value| f64::from(u8::from(is(value)))).map(|found| found.sum).map_err(reading)
        };
        let is_bad = |value: f32| !is_feedback(above, value);
        if count(&is_bad)? > 0.0 {
            return Err(refused(&ratings, is_bad));
        }
        if ratings.edges.num_edges() > 0 && count(&|value| FeedbackOptions::feedback(above, value) > 0.0)? == 0.0 {
            let what = above.map_or("above 0".to_owned(), |bound| format!("above {bound}, as --ratings-above has it"));
            return Err(Error::Missing(format!(
                "none of the {} values is {what}, so there is no feedback to train on",
                ratings.edges.num_edges()
            )));
        }
        let num_tested = ratings.test.known.len();
        ratings.test.known.retain(|&(.., value)| FeedbackOptions::feedback(above, value) > 0.0);
        if let Some(unseen) = &mut ratings.unseen {
            let value = |value| is_feedback(above, value).then(|| FeedbackOptions::feedback(above, value));
            unseen.set_values(&mut ratings.test, value).map_err(|value| {
                Error::Missing(format!("feedback of a user that is kept for testing is {value}; {NO_FEEDBACK}"))
            })?;
        }
        if num_tested > 0 && ratings.test.known.is_empty() {
            return Err(Error::Missing(format!(
                "none of the {num_tested} ratings that are kept for testing is feedback of a user who can be tested; keep more of them, or \
                 others"
            )));
        }
        Ok(Self { ratings, above })
    }

    /// Has items ranked, of whom the first `k` are looked at, 10 if nothing is said, for the users of test data.
    ///
    /// # Errors
    /// Edges that cannot be read.
    pub fn ranked(self, k: Option<usize>) -> Result<Self, Error> {
        Ok(Self { ratings: self.ratings.ranked(k.or(Some(RANKED)))?, ..self })
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

impl Data for Feedback {
    type Options = FeedbackOptions;
    const FIXED: &'static [&'static str] =
        &["holdout", "holdout_per_user", "holdout_last", "holdout_users", "ratings_above"];

    fn read(source: &mut Source, options: &FeedbackOptions, how: &Reading<'_>) -> Result<(Self, Phases), Error> {
        let ranking = options.ratings.ranking.or(Some(RANKED));
        source.take_pairs();
        let (ratings, phases) = Ratings::read(source, &RatingOptions { ranking, ..options.ratings.clone() }, how)?;
        let named = |error| match error {
            Error::Missing(problem) => Error::invalid(Path::new(&source.input), problem),
            other => other,
        };
        // Of those kept for testing some may be no feedback.
        let feedback = Self::new(ratings, options.ratings_above).map_err(named)?.ranked(ranking)?;
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
