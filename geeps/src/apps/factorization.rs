//! Factorization of ratings by fixed mini-batches: each has its lists of rows, whose indexes are built once.
//!
//! Minimizes the sum over ratings of (r − mean − p·q)² + lambda (|p|² + |q|²), p the row of the user and q that of
//! the item. A mini-batch reads p and q of each of its ratings, and adds `step` times half the negative gradient of
//! each to them, so that a user with several ratings in it gets their sum. Every mini-batch is a clock of both
//! tables.

use std::collections::BTreeMap;

use megagrid_algorithms::mf::Config;
use megagrid_partition::SplitMix;

use super::network::MOST_VALUES;
use super::{Application, Measured, Place};
use crate::Error;
use crate::device::Command;
use crate::rows;
use crate::session::Session;
use crate::table::{LocalId, RowsId, TableId, Tables};
use crate::virtual_iteration::VirtualIteration;

const USERS: TableId = TableId(0);
const ITEMS: TableId = TableId(1);

/// Ratings of items by users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ratings {
    /// How many users there are.
    pub num_users: usize,
    /// How many items there are.
    pub num_items: usize,
    /// The user, the item and the rating of each.
    pub all: Vec<(u32, u32, f32)>,
}

/// How ratings are factorized.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Values of a row.
    pub dims: usize,
    /// How many workers there are.
    pub workers: usize,
    /// Ratings of a worker's mini-batch, at most.
    pub batch: usize,
    /// The step.
    pub step: f32,
    /// How strongly rows are drawn to zero.
    pub lambda: f32,
    /// Decides first values and the mini-batches.
    pub seed: u64,
}

/// The ratings and how they are factorized.
#[derive(Clone, Debug)]
pub struct Factorization {
    settings: Settings,
    num_rows: [usize; 2],
    /// Shuffled; each worker has a part of them, and each of its mini-batches a part of that.
    ratings: Vec<(u32, u32, f32)>,
    mean: f64,
    batches: usize,
}

/// The lists and local data of a worker.
#[derive(Debug)]
pub struct Worker {
    number: usize,
    /// The rows of each mini-batch.
    users: Vec<RowsId>,
    items: Vec<RowsId>,
    ratings: LocalId,
    losses: LocalId,
}

impl Factorization {
    /// Deals ratings to workers and mini-batches.
    ///
    /// # Errors
    /// Settings out of range; fewer ratings than workers.
    pub fn new(ratings: Ratings, settings: Settings) -> Result<Self, Error> {
        let Ratings { num_users, num_items, all: mut ratings } = ratings;
        let refused =
            |name, found: String, expected: &str| Err(Error::Setting { name, found, expected: expected.to_owned() });
        if !(settings.step.is_finite() && settings.step > 0.0) {
            return refused("step", settings.step.to_string(), "a number above 0");
        }
        if !(settings.lambda.is_finite() && settings.lambda >= 0.0) {
            return refused("lambda", settings.lambda.to_string(), "0 or a number above 0");
        }
        if settings.dims == 0 || settings.batch == 0 {
            let name = if settings.dims == 0 { "dims" } else { "batch" };
            return refused(name, "0".to_owned(), "1 and more");
        }
        let most = num_users.max(num_items).max(1);
        if settings.dims > MOST_VALUES / most {
            let expected = format!("1 to {}, for {most} rows", MOST_VALUES / most);
            return refused("dims", settings.dims.to_string(), &expected);
        }
        if settings.workers == 0 || settings.workers > ratings.len() {
            return refused("workers", settings.workers.to_string(), "1 to the number of ratings");
        }
        if ratings.iter().any(|&(user, item, _)| user as usize >= num_users || item as usize >= num_items) {
            return Err(Error::Samples { problem: "a user or an item is beyond the last one".to_owned() });
        }
        let mean = ratings.iter().map(|&(.., rating)| f64::from(rating)).sum::<f64>() / ratings.len() as f64;
        SplitMix::new(settings.seed, u64::MAX).shuffle(&mut ratings);
        let batches = ratings.len().div_ceil(settings.workers).div_ceil(settings.batch);
        Ok(Self { settings, num_rows: [num_users, num_items], ratings, mean, batches })
    }

    /// Returns the ratings of a worker's mini-batch.
    fn batch(&self, worker: usize, batch: usize) -> &[(u32, u32, f32)] {
        let cut = |len: usize, parts: usize, part: usize| len * part / parts..len * (part + 1) / parts;
        let own = &self.ratings[cut(self.ratings.len(), self.settings.workers, worker)];
        &own[cut(own.len(), self.batches, batch)]
    }

    fn step(&self, batch: usize, worker: &Worker, session: &mut impl Session) -> Result<f64, Error> {
        let ratings: Vec<f32> = self
            .batch(worker.number, batch)
            .iter()
            .map(|&(.., rating)| (f64::from(rating) - self.mean) as f32)
            .collect();
        let (users, items) = (session.read(worker.users[batch])?, session.read(worker.items[batch])?);
        let (to_users, to_items) = (session.pre_update(worker.users[batch])?, session.pre_update(worker.items[batch])?);
        let held = session.local_access_no_fetch(worker.ratings)?;
        let losses = session.local_access_no_fetch(worker.losses)?;
        let [of_ratings, of_losses] = [&held, &losses].map(|local| local.range().part(0, ratings.len()));
        session.upload(of_ratings, &ratings)?;
        let command = Command::FactorUpdates {
            left: users.range(),
            right: items.range(),
            ratings: of_ratings,
            left_update: to_users.range(),
            right_update: to_items.range(),
            losses: of_losses,
            step: self.settings.step,
            lambda: self.settings.lambda,
        };
        session.submit(&[command])?;
        let found = session.download(of_losses)?;
        session.post_read(users)?;
        session.post_read(items)?;
        session.update(to_users)?;
        session.update(to_items)?;
        session.post_local_access_no_save(held)?;
        session.post_local_access_no_save(losses)?;
        session.table_clock(USERS)?;
        session.table_clock(ITEMS)?;
        Ok(found.iter().map(|&loss| f64::from(loss)).sum())
    }
}

impl Application for Factorization {
    type Worker = Worker;

    fn tables(&self) -> Tables {
        let mut tables = Tables::default();
        for (name, rows) in ["users", "items"].into_iter().zip(self.num_rows) {
            tables.add(name, rows, self.settings.dims);
        }
        tables
    }

    fn first_values(&self) -> Result<Vec<Vec<f32>>, Error> {
        let (dims, seed) = (self.settings.dims, self.settings.seed);
        let config = Config { dims, biases: false, ..Config::default() };
        let values = |rows: usize, set: &dyn Fn(usize, &mut [f32])| {
            let mut values = rows::zeros(rows * dims)?;
            values.chunks_exact_mut(dims).enumerate().for_each(|(row, values)| set(row, values));
            Ok::<_, Error>(values)
        };
        let [users, items] = self.num_rows;
        Ok(vec![
            values(users, &|row, values| config.init_user(seed, row, values))?,
            values(items, &|row, values| config.init_item(seed, row, values))?,
        ])
    }

    /// An iteration goes through all mini-batches, so that each has its place in the order of accesses.
    fn iterations(&self) -> u64 {
        1
    }

    fn declare(&self, worker: usize, session: &mut VirtualIteration) -> Result<Worker, Error> {
        let (mut users, mut items, mut most) = (Vec::new(), Vec::new(), 0);
        for batch in 0..self.batches {
            let of = self.batch(worker, batch);
            users.push(session.rows(USERS, of.iter().map(|rating| rating.0).collect())?);
            items.push(session.rows(ITEMS, of.iter().map(|rating| rating.1).collect())?);
            most = most.max(of.len());
        }
        let (ratings, losses) = (session.local("ratings", most), session.local("losses", most));
        Ok(Worker { number: worker, users, items, ratings, losses })
    }

    fn iterate(&self, worker: &mut Worker, _: Place, session: &mut impl Session) -> Result<f64, Error> {
        (0..self.batches).try_fold(0.0, |sum, batch| Ok(sum + self.step(batch, worker, session)?))
    }

    fn samples(&self, worker: usize) -> u64 {
        (0..self.batches).map(|batch| self.batch(worker, batch).len() as u64).sum()
    }

    /// The objective, and the root of the mean squared error.
    fn measure(&self, values: &[Vec<f32>]) -> Measured {
        let (dims, lambda) = (self.settings.dims, f64::from(self.settings.lambda));
        let row = |side: usize, row: u32| &values[side][row as usize * dims..][..dims];
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        let (mut squares, mut norms) = (0.0, 0.0);
        for &(user, item, rating) in &self.ratings {
            let (p, q) = (row(0, user), row(1, item));
            squares += (f64::from(rating) - self.mean - dot(p, q)).powi(2);
            norms += dot(p, p) + dot(q, q);
        }
        let rmse = (squares / self.ratings.len() as f64).sqrt();
        Measured { objective: squares + lambda * norms, metrics: BTreeMap::from([("train_rmse", rmse)]) }
    }
}
