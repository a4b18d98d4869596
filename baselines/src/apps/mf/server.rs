//! Matrix factorization on a parameter server: each worker keeps the users whose ratings it has, items are in the server.

use std::ops::Range;

use bytemuck::Pod;
use megagrid_algorithms::mf::batch::{self, MfBatch, Step};
use megagrid_algorithms::mf::in_place::{self, Descend, Mf};
use megagrid_partition::{EdgeList, Side};
use megagrid_stages::kernels::{add_gradients, dot};
use megagrid_stages::simd::{Kernel, Level};
use megagrid_stages::{Apply, Context, Exchange, Master, Update, row_width};

use super::job::{CLOCKS, Form, Job, NOTHING};
use crate::apps::servers::Team;
use crate::job::{self, Cost, Measured};
use crate::processes::Crew;
use crate::rows::Rows;
use crate::server::Table;
use crate::store::{Client, Store};
use crate::workers;
use crate::{Error, Finish, Run};

#[derive(Clone, Copy)]
struct Items {
    /// A factor and, behind it, the sum of its squared gradients.
    factors: Table<f32>,
    /// Sums of gradients.
    gradients: Table<f32>,
}

struct Worker {
    ratings: Vec<(u32, u32, f32)>,
    first_user: usize,
    users: Rows<f32>,
    gradients: Rows<f32>,
    /// Sums of squared gradients of own users.
    squares: Vec<f32>,
    /// Items that this worker steps, evenly apart: the first, and how far.
    own_items: (usize, usize),
    num_items: usize,
    /// Rows of an item: as read, and by what it changes.
    item: Vec<f32>,
    delta: Vec<f32>,
    gradient: Vec<f32>,
}

impl Worker {
    fn new(job: &Job<'_>, dealt: Dealt<f32>, own_items: (usize, usize)) -> Self {
        let Dealt { ratings, first_user, users } = dealt;
        let num_sums = if job.form == Form::Batch { users.len() } else { 0 };
        Self {
            ratings,
            first_user,
            gradients: Rows::zeros(num_sums, users.width()),
            squares: vec![0.0; users.len()],
            own_items,
            num_items: job.ratings.num_right,
            item: vec![0.0; users.width() + 1],
            delta: vec![0.0; users.width() + 1],
            gradient: vec![0.0; users.width()],
            users,
        }
    }

    /// Makes the accesses of [`Iteration::in_place`], and does nothing else.
    fn accesses_in_place(&mut self, items: Items, client: &mut impl Client) -> Result<(), Error> {
        for part in workers::parts(self.ratings.len(), CLOCKS as usize, |at| at as u64) {
            for &(_, item, _) in &self.ratings[part] {
                client.read(items.factors, item as usize, &mut self.item)?;
                client.update(items.factors, item as usize, &self.delta)?;
            }
            client.clock()?;
        }
        Ok(())
    }

    /// Makes the accesses of [`Iteration::batch`], and does nothing else.
    fn accesses(&mut self, items: Items, client: &mut impl Client) -> Result<(), Error> {
        for &(_, item, _) in &self.ratings {
            client.read(items.factors, item as usize, &mut self.item)?;
            client.update(items.gradients, item as usize, &self.gradient)?;
        }
        client.clock()?;
        for item in (self.own_items.0..self.num_items).step_by(self.own_items.1) {
            client.read(items.gradients, item, &mut self.gradient)?;
            client.read(items.factors, item, &mut self.item)?;
            client.update(items.factors, item, &self.delta)?;
            client.update(items.gradients, item, &self.gradient)?;
        }
        client.clock()
    }
}

struct Iteration<'i, C> {
    job: &'i Job<'i>,
    items: Items,
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
        let Self { job, items, number, worker, client } = self;
        let (descend, sums) = (Descend::new(job.config), &mut Default::default());
        let mut cx: Context<'_, Mf> = Context { worker: sums, global: &NOTHING, iteration: number, seed: 0 };
        let Worker { ratings, first_user, users, squares, item: row, delta, .. } = worker;
        let width = users.width();
        for part in workers::parts(ratings.len(), CLOCKS as usize, |at| at as u64) {
            for &(user, item, rating) in &ratings[part] {
                let (own, item) = (user as usize - *first_user, item as usize);
                client.read(items.factors, item, row)?;
                delta.copy_from_slice(row);
                let (factor, of_item) = row.split_at_mut(width);
                descend.exchange(
                    Update { sync: users.row_mut(own), mirror: &mut squares[own] },
                    Update::<in_place::Item> { sync: factor, mirror: &mut of_item[0] },
                    &mut { rating },
                    &mut cx,
                );
                delta.iter_mut().zip(&*row).for_each(|(delta, now)| *delta = now - *delta);
                client.update(items.factors, item, delta)?;
            }
            client.clock()?;
        }
        Ok(())
    }

    /// Sums gradients in one clock, and steps users and items by them in another.
    #[inline(always)]
    fn batch(self) -> Result<(), Error> {
        let Self { job: Job { config, .. }, items, number, worker, client } = self;
        let Worker { ratings, first_user, users, gradients, squares, own_items, num_items, .. } = worker;
        let (row, delta, gradient, width) = (&mut worker.item, &mut worker.delta, &mut worker.gradient, users.width());
        gradients.items_mut().fill(0.0);
        for &(user, item, rating) in &*ratings {
            let (user, item) = (user as usize - *first_user, item as usize);
            client.read(items.factors, item, row)?;
            let factor = &row[..width];
            let error = rating - dot(users.row(user), factor);
            gradient.fill(0.0);
            add_gradients(gradients.row_mut(user), gradient, users.row(user), factor, error, config.lambda);
            client.update(items.gradients, item, gradient)?;
        }
        client.clock()?;

        let mut cx: Context<'_, MfBatch> =
            Context { worker: &mut Default::default(), global: &NOTHING, iteration: number, seed: 0 };
        let (step_user, step_item) = (Step::users(*config), Step::items(*config));
        for (user, squares) in squares.iter_mut().enumerate() {
            let view = Master { sync: users.row_mut(user), master: squares, delta: gradients.row(user) };
            Apply::<_, batch::User>::apply(&step_user, view, &mut cx);
        }
        for item in (own_items.0..*num_items).step_by(own_items.1) {
            client.read(items.gradients, item, gradient)?;
            client.read(items.factors, item, row)?;
            delta.copy_from_slice(row);
            let (sync, squares) = row.split_at_mut(width);
            let view = Master { sync, master: &mut squares[0], delta: &gradient[..] };
            Apply::<_, batch::Item>::apply(&step_item, view, &mut cx);
            delta.iter_mut().zip(&*row).for_each(|(delta, now)| *delta = now - *delta);
            client.update(items.factors, item, delta)?;
            gradient.iter_mut().for_each(|gradient| *gradient = -*gradient);
            client.update(items.gradients, item, gradient)?;
        }
        client.clock()
    }
}

pub struct Trainer<'j, S: Store> {
    job: Job<'j>,
    items: Items,
    team: Team<S>,
    workers: Vec<Worker>,
    level: Level,
}

impl<'j, S: Store> Trainer<'j, S> {
    pub fn new(job: &Job<'j>, run: &Run, mut store: S) -> Result<Self, Error> {
        let Job { ratings, config, .. } = *job;
        let width = row_width(config.row_dims());
        let items = Items {
            factors: store.table(ratings.num_right, width + 1),
            gradients: store.table(ratings.num_right, width),
        };
        let (mut users, mut factors) =
            (Rows::zeros(ratings.num_left, width), Rows::zeros(ratings.num_right, width + 1));
        job.init(run.seed, |side, id, first| match side {
            Side::Left => first(users.row_mut(id)),
            Side::Right => first(&mut factors.row_mut(id)[..width]),
        });
        store.set(items.factors, 0, factors.items())?;
        let crew = run.crew();
        let worker = |(number, dealt)| Worker::new(job, dealt, (number, crew.all));
        let mut workers: Vec<Worker> = deal(job, &crew, &users).map(worker).collect();
        let team = Team::new(store, run)?.rehearse(&mut workers, |worker, client| match job.form {
            Form::InPlace => worker.accesses_in_place(items, client),
            Form::Batch => worker.accesses(items, client),
        })?;
        Ok(Self { job: *job, items, team, workers, level: run.level })
    }
}

/// Users that a worker keeps, and their ratings.
pub(super) struct Dealt<T> {
    pub ratings: Vec<(u32, u32, f32)>,
    pub first_user: usize,
    pub users: Rows<T>,
}

/// Deals users to workers, and the ratings with them; returns the numbers of this process's workers and what they keep.
pub(super) fn deal<T: Pod>(job: &Job<'_>, crew: &Crew, users: &Rows<T>) -> impl Iterator<Item = (usize, Dealt<T>)> {
    let of = |(number, (part, own)): (usize, (Range<usize>, EdgeList<f32>))| {
        let mut rows = Rows::zeros(part.len(), users.width());
        part.clone().for_each(|user| rows.row_mut(user - part.start).copy_from_slice(users.row(user)));
        let ratings = own.left.iter().zip(&own.right).zip(&own.data);
        let ratings = ratings.map(|((&user, &item), &rating)| (user, item, rating)).collect();
        (number, Dealt { ratings, first_user: part.start, users: rows })
    };
    crew.pick(workers::deal(job.ratings, crew.all)).map(of)
}

impl<S: Store> job::Trainer for Trainer<'_, S> {
    fn iterate(&mut self, number: u64) -> Result<Cost, Error> {
        let Self { job, items, team, workers, level } = self;
        let items = *items;
        let clocks = if job.form == Form::Batch { 2 } else { CLOCKS };
        let cost = team
            .iterate(workers, clocks, |worker, client| level.run(Iteration { job, items, number, worker, client }))?;
        team.settle(cost)
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let items = self.team.all(self.items.factors, self.job.ratings.num_right)?;
        let owner: Vec<usize> = self.workers.iter().map(|worker| worker.first_user + worker.users.len()).collect();
        let user = |user: usize| {
            let worker = &self.workers[owner.partition_point(|&end| end <= user)];
            worker.users.row(user - worker.first_user)
        };
        let width = items.width() - 1;
        let own = self.workers.first().map_or(0, |first| first.first_user)..owner.last().copied().unwrap_or(0);
        self.job.measure((&self.team.processes, own, self.level), user, |item| &items.row(item)[..width])
    }

    fn finish(&self) -> Finish {
        let of = |worker: &Worker| {
            worker.users.bytes()
                + worker.gradients.bytes()
                + (12 * worker.ratings.len() + 4 * worker.squares.len()) as u64
        };
        let Job { ratings, .. } = self.job;
        self.team.finish(self.workers.iter().map(of).sum(), [ratings.num_left, ratings.num_right])
    }
}
