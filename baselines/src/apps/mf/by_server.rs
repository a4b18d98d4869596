//! Matrix factorization on a parameter server that steps items itself, by AdaptiveRevision, as users of IterStore do (Cui's thesis, section
//! 5.4.1): each worker keeps the users whose ratings it has, and sends the gradients of items rating by rating.

use std::ops::Range;

use megagrid_algorithms::mf::Config;
use megagrid_partition::Side;
use megagrid_stages::row_width;

use super::job::{CLOCKS, Job};
use super::server::{Dealt, deal};
use crate::apps::servers::Team;
use crate::job::{self, Cost, Measured};
use crate::rows::Rows;
use crate::server::{AdaRevision, Element, Table};
use crate::store::{Client, Store};
use crate::workers;
use crate::{Error, Finish, Run};

struct Worker {
    ratings: Vec<(u32, u32, f32)>,
    first_user: usize,
    users: Rows<AdaRevision>,
    /// An item as read, and by what it changes.
    item: Vec<AdaRevision>,
    update: Vec<AdaRevision>,
}

impl Worker {
    fn new(Dealt { ratings, first_user, users }: Dealt<AdaRevision>) -> Self {
        let row = vec![AdaRevision::IDENTITY; users.width()];
        Self { ratings, first_user, users, item: row.clone(), update: row }
    }

    /// Makes the accesses of [`Worker::iterate`], and does nothing else, as no item was changed yet.
    fn accesses(&mut self, items: Table<AdaRevision>, client: &mut impl Client) -> Result<(), Error> {
        for part in workers::parts(self.ratings.len(), CLOCKS as usize, |at| at as u64) {
            for &(_, item, _) in &self.ratings[part] {
                client.read(items, item as usize, &mut self.item)?;
                client.update(items, item as usize, &self.update)?;
            }
            client.clock()?;
        }
        Ok(())
    }

    /// Steps the user of each rating, and sends the gradient of its item.
    fn iterate(&mut self, config: &Config, items: Table<AdaRevision>, client: &mut impl Client) -> Result<(), Error> {
        let Self { ratings, first_user, users, item: row, update } = self;
        for part in workers::parts(ratings.len(), CLOCKS as usize, |at| at as u64) {
            for &(user, item, rating) in &ratings[part] {
                client.read(items, item as usize, row)?;
                step_user(config, rating, users.row_mut(user as usize - *first_user), row, update);
                client.update(items, item as usize, update)?;
            }
            client.clock()?;
        }
        Ok(())
    }
}

/// Steps a user along a rating's gradient, and tells its item's.
fn step_user(
    config: &Config,
    rating: f32,
    user: &mut [AdaRevision],
    item: &[AdaRevision],
    of_item: &mut [AdaRevision],
) {
    let products = user.iter().zip(item).map(|(p, q)| p.value() * q.value());
    let error = rating - products.sum::<f32>();
    for ((p, q), of_item) in user.iter_mut().zip(item).zip(&mut *of_item) {
        *of_item = q.update(config.lambda * q.value() - error * p.value(), config.step);
        let of_user = p.update(config.lambda * p.value() - error * q.value(), config.step);
        p.merge(&of_user);
    }
    if config.biases {
        // What stands beside the other's bias stays 1.
        user[config.dims + 1] = AdaRevision::new(1.0);
        of_item[config.dims] = AdaRevision::IDENTITY;
    }
}

pub struct Trainer<'j, S: Store> {
    job: Job<'j>,
    items: Table<AdaRevision>,
    team: Team<S>,
    workers: Vec<Worker>,
}

impl<'j, S: Store> Trainer<'j, S> {
    pub fn new(job: &Job<'j>, run: &Run, mut store: S) -> Result<Self, Error> {
        let (ratings, dims) = (job.ratings, job.config.row_dims());
        let items = store.table(ratings.num_right, dims);
        let mut first = [ratings.num_left, ratings.num_right].map(|len| Rows::zeros(len, dims));
        let mut values = vec![0.0; dims];
        job.init(run.seed, |side, id, init| {
            values.fill(0.0);
            init(&mut values);
            let row = first[usize::from(side == Side::Right)].row_mut(id);
            row.iter_mut().zip(&values).for_each(|(into, &value)| *into = AdaRevision::new(value));
        });
        let [users, first_items] = first;
        store.set(items, 0, first_items.items())?;
        let mut workers: Vec<Worker> = deal(job, &run.crew(), &users).map(|(_, dealt)| Worker::new(dealt)).collect();
        let team = Team::new(store, run)?.rehearse(&mut workers, |worker, client| worker.accesses(items, client))?;
        Ok(Self { job: *job, items, team, workers })
    }

    /// Returns the users of this process.
    fn own_users(&self) -> Range<usize> {
        let end = |worker: &Worker| worker.first_user + worker.users.len();
        self.workers.first().map_or(0, |first| first.first_user)..self.workers.last().map_or(0, end)
    }
}

/// Returns the values of parameters as rows that kernels read.
fn values<'r>(rows: impl ExactSizeIterator<Item = &'r [AdaRevision]>, dims: usize) -> Rows<f32> {
    let mut values = Rows::zeros(rows.len(), row_width(dims));
    for (at, row) in rows.enumerate() {
        values.row_mut(at).iter_mut().zip(row).for_each(|(into, parameter)| *into = parameter.value());
    }
    values
}

impl<S: Store> job::Trainer for Trainer<'_, S> {
    fn iterate(&mut self, _: u64) -> Result<Cost, Error> {
        let Self { job, items, team, workers } = self;
        let cost = team.iterate(workers, CLOCKS, |worker, client| worker.iterate(&job.config, *items, client))?;
        team.settle(cost)
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let (Job { ratings, config, .. }, own) = (self.job, self.own_users());
        let items = self.team.all(self.items, ratings.num_right)?;
        let items = values((0..items.len()).map(|item| items.row(item)), config.row_dims());
        let rows = self.workers.iter().flat_map(|worker| (0..worker.users.len()).map(|user| worker.users.row(user)));
        let rows: Vec<&[AdaRevision]> = rows.collect();
        let users = values(rows.into_iter(), config.row_dims());
        let user = |user: usize| users.row(user - own.start);
        self.job.measure((&self.team.processes, own.clone(), self.team.threads.level()), user, |item| items.row(item))
    }

    fn finish(&self) -> Finish {
        let of = |worker: &Worker| worker.users.bytes() + 12 * worker.ratings.len() as u64;
        let Job { ratings, .. } = self.job;
        self.team.finish(self.workers.iter().map(of).sum(), [ratings.num_left, ratings.num_right])
    }
}
