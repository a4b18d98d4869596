//! Ratings from files: as a stream, or in memory where some are kept for testing, some changed since, or it matters when they were made.

use std::path::Path;

use megagrid_algorithms::mf::TestSet;
use megagrid_datasets::cache::Cache;
use megagrid_datasets::{
    Dataset, Draw, Format, Layout, OtherRating, Prepared, Roles, is_pipe, load_ratings_with, load_times_with,
    read_ratings_with,
};
use megagrid_partition::Side;

use super::data::{RatingOptions, Ratings, rated};
use crate::Error;
use crate::data::Reading;
use crate::input::{Source, Stopwatch, is_cache, open, ordered, phases};
use crate::options::check_holdout;
use crate::record::Phases;
use crate::room;

/// What is made of ratings by when they were made, before any of them is kept for testing.
pub(crate) struct ByTime<'f> {
    /// The option that asks for it, and what it says.
    pub option: (&'static str, String),
    /// What does it.
    pub change: &'f Change<'f>,
}

/// Changes ratings that were made at these times.
type Change<'f> = dyn Fn(&mut [f32], &[f64]) -> Result<(), Error> + 'f;

impl Ratings {
    /// Reads ratings, and those to test on; of a user only ratings `above` that are drawn.
    ///
    /// # Errors
    /// As [`Data::read`](crate::Data::read); what `by_time` refuses, or times that cannot be read where it is there.
    pub(crate) fn read_from(
        source: &mut Source,
        options: &RatingOptions,
        how: &Reading<'_>,
        by_time: Option<&ByTime<'_>>,
        above: Option<f32>,
    ) -> Result<(Self, Phases), Error> {
        check_holdout(options.holdout)?;
        let RatingOptions { test, ranking, holdout_last, .. } = options;
        // The option that asks when ratings were made.
        let timed = holdout_last.map(|_| "holdout-last").or(by_time.map(|by_time| by_time.option.0));
        if let Some(option) = timed.filter(|_| is_pipe(&source.input)) {
            let problem = format!(
                "--{option} reads when ratings were made after the ratings, which a pipe has once; save it in a file"
            );
            return Err(Error::invalid(&source.input, problem));
        }
        let mut clock = Stopwatch::start();
        let layout = source.find(Format::Ratings)?;
        // What a user is not to be shown again is known where all is read.
        let is_ranked = test.is_some() && ranking.is_some();
        let how = &Reading { readers: how.readers.filter(|_| !is_ranked), ..*how };
        let holdout = options.holdout();
        if ranking.is_some() && test.is_none() && holdout.is_none() {
            return Err(Error::option(
                "--ranking needs ratings to test on: give --test, or one that begins with --holdout",
            ));
        }
        let is_whole = holdout.is_some() || timed.is_some() || !source.changes.is_empty();
        room::check(source, if is_whole { 1 } else { how.parts() })?;
        let by_age = by_time.map_or(String::new(), |ByTime { option: (name, value), .. }| format!(", {name} {value}"));
        how.agree(source.is_cache(), ("holdout", options.holdout_text() + &by_age))?;
        let (ratings, mut times) = if is_whole {
            let (mut all, times) = whole(source, timed, how)?;
            if let Some((by_time, times)) = by_time.zip(times.as_deref()) {
                (by_time.change)(&mut all.edges.data, times)?;
            }
            let load = clock.lap();
            let all = ordered(all, how.degree_order && !source.is_cache());
            let times = times.filter(|_| holdout_last.is_some());
            let draw = Draw { times: times.as_deref(), above, seed: how.seed };
            (Self::held_out(all, holdout, draw)?, phases(load, clock.lap()))
        } else {
            let (prepared, times) = stream(source, &layout, how, &mut clock)?;
            (Self::of(prepared, TestSet::default())?, times)
        };
        let ratings = match test {
            Some(path) => ratings.tested_on(path, layout.roles)?,
            None => ratings,
        };
        // Of feedback only what counts has been seen, which is told by who asked for it.
        let mut ratings = if above.is_some() { ratings } else { ratings.ranked(*ranking)? };
        ratings.taken_back = std::mem::take(&mut source.taken_back);
        times.load += clock.lap();
        Ok((ratings, times))
    }

    /// Reads ratings to test on, whose columns have the same roles.
    fn tested_on(mut self, path: &Path, roles: Roles) -> Result<Self, Error> {
        if is_cache(path, None)? {
            return Err(Error::option("--test takes ratings as text or Parquet, and this is a .mgrid cache"));
        }
        let (users, items) = (self.names.get(Side::Left)?, self.names.get(Side::Right)?);
        let read = read_ratings_with(path, Layout { format: None, roles, undirected: false }, &users, &items)?;
        let others = read.others.iter().map(|&OtherRating { left, right, rating }| (left, right, rating)).collect();
        self.test = TestSet::new(rated(&read.known), others);
        self.sizes.test_edges = self.test.len();
        Ok(self)
    }
}

/// Reads ratings, of which each process has a part.
fn stream(
    source: &Source,
    layout: &Layout,
    how: &Reading<'_>,
    clock: &mut Stopwatch,
) -> Result<(Prepared<f32>, Phases), Error> {
    if source.is_cache() {
        let prepared = open(&source.input, how.readers)?;
        return Ok((prepared, phases(clock.lap(), 0.0)));
    }
    let loaded = load_ratings_with(&source.input, layout, how.readers)?;
    let load = clock.lap();
    let prepared = loaded.prepare(Side::Right, how.degree_order)?;
    Ok((prepared, phases(load, clock.lap())))
}

/// Reads all ratings with what changed since, and when each was made if an option asks for that.
fn whole(
    source: &mut Source,
    timed: Option<&str>,
    how: &Reading<'_>,
) -> Result<(Dataset<f32>, Option<Vec<f64>>), Error> {
    let plain = |source: &mut Source| {
        let layout = source.find(Format::Ratings)?;
        Ok(match source.is_cache() {
            true => Cache::open(&source.input)?.to_dataset()?,
            false => load_ratings_with(&source.input, &layout, how.readers)?.into_dataset()?,
        })
    };
    let Some(option) = timed else { return Ok((source.whole(plain)?, None)) };
    let all = source.whole(|source| {
        let layout = source.find(Format::Ratings)?;
        if source.is_cache() {
            let problem = format!(
                "--{option} asks when ratings were made, which a .mgrid does not hold; give the table that it was made of"
            );
            return Err(Error::invalid(&source.input, problem));
        }
        let ratings = plain(source)?;
        let times = load_times_with(&source.input, &layout, how.readers)?.into_dataset()?.edges.data;
        if times.len() != ratings.edges.num_edges() {
            return Err(Error::invalid(&source.input, "it changed while it was read; train again"));
        }
        let data = ratings.edges.data.iter().copied().zip(times).collect();
        Ok(ratings.with_data(data))
    })?;
    let (ratings, times) = all.edges.data.iter().copied().unzip();
    Ok((all.with_data(ratings), Some(times)))
}
