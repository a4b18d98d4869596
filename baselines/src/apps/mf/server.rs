//! Matrix factorization on a parameter server: each worker keeps the users whose ratings it has, items are in the server.

use std::collections::BTreeMap;

use megagrid_algorithms::mf::batch::{self, MfBatch, Step};
use megagrid_algorithms::mf::in_place::{self, Descend, Mf};
use megagrid_partition::Side;
use megagrid_stages::kernels::{axpy, dot};
use megagrid_stages::simd::{Kernel, Level};
use megagrid_stages::{Apply, Context, Exchange, MasterView, UpdateView, row_width};

use super::{CLOCKS, Form, Job};
use crate::apps::servers::Team;
use crate::crew;
use crate::job::{self, Cost};
use crate::rows::Rows;
use crate::store::{Client, Store};
use crate::{Error, Finish, Run};

/// Tables of items: factors, and sums of gradients.
const FACTORS: usize = 0;
const GRADIENTS: usize = 1;

/// A worker's ratings, users and scratch.
struct Worker {
    ratings: Vec<(u32, u32, f32)>,
    first_user: usize,
    users: Rows<f32>,
    gradients: Rows<f32>,
    /// Sums of squared gradients of own users, and of items as this worker knows them.
    squares: [Vec<f32>; 2],
    /// Items that this worker steps, of each so many: the first, and how many.
    own_items: (usize, usize),
    item: Vec<f32>,
    delta: Vec<f32>,
}

/// One iteration of a worker.
struct Iteration<'i, C> {
    job: &'i Job<'i>,
    number: u64,
    worker: &'i mut Worker,
    client: &'i mut C,
}

impl<C: Client> Kernel for Iteration<'_, C> {
    type Output = Result<(), Error>;

    #[inline(always)]
    fn run(self) -> Result<(), Error> {
        match self.job.form {
            Form::InPlace => self.in_place(),
            Form::Batch => self.batch(),
        }
    }
}

impl<C: Client> Iteration<'_, C> {
    /// Steps user and item of each rating.
    #[inline(always)]
    fn in_place(self) -> Result<(), Error> {
        let Self { job, number, worker, client } = self;
        let (descend, sums) = (Descend::new(job.config), &mut Default::default());
        let mut cx: Context<'_, Mf> = Context { worker: sums, global: &(), iteration: number, seed: 0 };
        let Worker { ratings, first_user, users, squares: [of_users, of_items], item: factor, delta, .. } = worker;
        for part in crew::parts(ratings.len(), CLOCKS as usize, |at| at as u64) {
            for &(user, item, rating) in &ratings[part] {
                let (own, item) = (user as usize - *first_user, item as usize);
                client.read(FACTORS, item, factor)?;
                delta.copy_from_slice(factor);
                descend.exchange(
                    UpdateView { sync: users.row_mut(own), mirror: &mut of_users[own] },
                    UpdateView::<in_place::Item> { sync: factor, mirror: &mut of_items[item] },
                    &mut { rating },
                    &mut cx,
                );
                delta.iter_mut().zip(&*factor).for_each(|(delta, now)| *delta = now - *delta);
                client.update(FACTORS, item, delta)?;
            }
            client.clock()?;
        }
        Ok(())
    }

    /// Sums gradients in one clock, and steps users and items by them in another.
    #[inline(always)]
    fn batch(self) -> Result<(), Error> {
        let Self { job: Job { config, .. }, number, worker, client } = self;
        let Worker { ratings, first_user, users, gradients, squares, own_items, item: factor, delta } = worker;
        let [of_users, of_items] = squares;
        gradients.items_mut().fill(0.0);
        for &(user, item, rating) in &*ratings {
            let (user, item) = (user as usize - *first_user, item as usize);
            client.read(FACTORS, item, factor)?;
            let error = rating - dot(users.row(user), factor);
            axpy(gradients.row_mut(user), error, factor);
            axpy(gradients.row_mut(user), -config.lambda, users.row(user));
            delta.fill(0.0);
            axpy(delta, error, users.row(user));
            axpy(delta, -config.lambda, factor);
            client.update(GRADIENTS, item, delta)?;
        }
        client.clock()?;

        let mut cx: Context<'_, MfBatch> =
            Context { worker: &mut Default::default(), global: &(), iteration: number, seed: 0 };
        let (step_user, step_item) = (Step::users(*config), Step::items(*config));
        for (user, squares) in of_users.iter_mut().enumerate() {
            let view = MasterView { sync: users.row_mut(user), master: squares, delta: gradients.row(user) };
            Apply::<_, batch::User>::apply(&step_user, view, &mut cx);
        }
        for item in (own_items.0..of_items.len()).step_by(own_items.1) {
            client.read(GRADIENTS, item, delta)?;
            client.read(FACTORS, item, factor)?;
            let before = factor.clone();
            let view = MasterView { sync: &mut factor[..], master: &mut of_items[item], delta: &delta[..] };
            Apply::<_, batch::Item>::apply(&step_item, view, &mut cx);
            factor.iter_mut().zip(before).for_each(|(now, before)| *now -= before);
            client.update(FACTORS, item, factor)?;
            delta.iter_mut().for_each(|gradient| *gradient = -*gradient);
            client.update(GRADIENTS, item, delta)?;
        }
        client.clock()
    }
}

/// A job on this system.
pub struct Trainer<'j, S: Store> {
    job: Job<'j>,
    team: Team<S>,
    workers: Vec<Worker>,
    level: Level,
}

impl<'j, S: Store> Trainer<'j, S> {
    pub fn new(job: &Job<'j>, run: &Run, mut store: S) -> Result<Self, Error> {
        let Job { ratings, config, .. } = *job;
        let width = row_width(config.row_dims());
        store.table::<f32>(ratings.num_right, width);
        store.table::<f32>(ratings.num_right, width);
        let mut users = Rows::<f32>::zeros(ratings.num_left, width);
        let mut row = vec![0.0; width];
        let mut failed = None;
        job.init(run.seed, |side, id, first| match side {
            Side::Left => first(users.row_mut(id)),
            Side::Right => {
                row.fill(0.0);
                first(&mut row);
                failed = store.set(FACTORS, id, &row).err().or(failed.take());
            }
        });
        failed.map_or(Ok(()), Err)?;
        let workers = deal(job, run.workers, &users);
        Ok(Self { job: *job, team: Team::new(store)?, workers, level: Level::detect() })
    }
}

/// Deals users to workers, runs of them with about as many ratings, and the ratings with them.
fn deal(job: &Job<'_>, num_workers: usize, users: &Rows<f32>) -> Vec<Worker> {
    let Job { ratings, .. } = job;
    let mut before = vec![0_u64; ratings.num_left + 1];
    ratings.left.iter().for_each(|&user| before[user as usize + 1] += 1);
    (0..ratings.num_left).for_each(|user| before[user + 1] += before[user]);
    let parts = crew::parts(ratings.num_left, num_workers, |user| before[user]);
    let of = |(number, part): (usize, &std::ops::Range<usize>)| {
        let all = ratings.left.iter().zip(&ratings.right).zip(&ratings.data);
        let own = all.filter(|((user, _), _)| part.contains(&(**user as usize)));
        let mut rows = Rows::zeros(part.len(), users.width());
        part.clone().for_each(|user| rows.row_mut(user - part.start).copy_from_slice(users.row(user)));
        Worker {
            ratings: own.map(|((&user, &item), &rating)| (user, item, rating)).collect(),
            first_user: part.start,
            gradients: Rows::zeros(if job.form == Form::Batch { part.len() } else { 0 }, users.width()),
            users: rows,
            squares: [vec![0.0; part.len()], vec![0.0; ratings.num_right]],
            own_items: (number, num_workers),
            item: vec![0.0; users.width()],
            delta: vec![0.0; users.width()],
        }
    };
    parts.iter().enumerate().map(of).collect()
}

impl<S: Store> job::Trainer for Trainer<'_, S> {
    fn iterate(&mut self, number: u64) -> Result<Cost, Error> {
        let Self { job, team, workers, level } = self;
        let clocks = if job.form == Form::Batch { 2 } else { CLOCKS };
        team.iterate(workers, clocks, |worker, client| level.run(Iteration { job, number, worker, client }))
    }

    fn measure(&mut self) -> Result<(f64, BTreeMap<&'static str, f64>), Error> {
        let items = self.team.store.all::<f32>(FACTORS, self.team.clocks)?;
        let owner: Vec<usize> = self.workers.iter().map(|worker| worker.first_user + worker.users.len()).collect();
        let user = |user: usize| {
            let worker = &self.workers[owner.partition_point(|&end| end <= user)];
            worker.users.row(user - worker.first_user)
        };
        Ok(self.job.measure(user, |item| items.row(item)))
    }

    fn finish(&self) -> Finish {
        let usage = self.team.store.usage();
        let of = |worker: &Worker| {
            let squares = worker.squares.iter().map(|squares| 4 * squares.len()).sum::<usize>();
            worker.users.bytes() + worker.gradients.bytes() + (12 * worker.ratings.len() + squares) as u64
        };
        let memory_bytes = usage.memory_bytes + self.workers.iter().map(of).sum::<u64>();
        Finish { staleness: usage.staleness, memory_bytes }
    }
}
