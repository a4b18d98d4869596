//! Matrix factorization as Petuum 0.93 has it: users and items in the server, ratings dealt to workers one by one.

use std::collections::BTreeMap;

use megagrid_algorithms::mf::batch::{self, MfBatch, Step};
use megagrid_algorithms::mf::in_place::{self, Descend, Mf};
use megagrid_partition::Side;
use megagrid_stages::kernels::{axpy, dot};
use megagrid_stages::{Apply, Context, Exchange, MasterView, UpdateView, row_width};

use super::{CLOCKS, Form, Job};
use crate::apps::servers::Team;
use crate::crew;
use crate::job::{self, Cost};
use crate::naive::Naive;
use crate::store::{Client, Store};
use crate::{Error, Finish, Run};

/// Tables of users and items: factors, and sums of gradients.
const FACTORS: [usize; 2] = [0, 1];
const GRADIENTS: [usize; 2] = [2, 3];

struct Worker {
    number: usize,
    ratings: Vec<([usize; 2], f32)>,
    /// Sums of squared gradients of users and items, as this worker knows them.
    squares: [Vec<f32>; 2],
    width: usize,
}

impl Worker {
    /// Steps user and item of each rating; changes go to the server in vectors made for them.
    fn in_place(&mut self, job: &Job<'_>, number: u64, client: &mut impl Client) -> Result<(), Error> {
        let descend = Descend::new(job.config);
        let mut cx: Context<'_, Mf> =
            Context { worker: &mut Default::default(), global: &(), iteration: number, seed: 0 };
        let [of_users, of_items] = &mut self.squares;
        for part in crew::parts(self.ratings.len(), CLOCKS as usize, |at| at as u64) {
            for &(ids @ [user, item], rating) in &self.ratings[part] {
                let mut rows = [vec![0.0; self.width], vec![0.0; self.width]];
                for side in 0..2 {
                    client.read(FACTORS[side], ids[side], &mut rows[side])?;
                }
                let before = rows.clone();
                let [p, q] = &mut rows;
                descend.exchange(
                    UpdateView { sync: p, mirror: &mut of_users[user] },
                    UpdateView::<in_place::Item> { sync: q, mirror: &mut of_items[item] },
                    &mut { rating },
                    &mut cx,
                );
                for side in 0..2 {
                    let delta: Vec<f32> = rows[side].iter().zip(&before[side]).map(|(now, old)| now - old).collect();
                    client.update(FACTORS[side], ids[side], &delta)?;
                }
            }
            client.clock()?;
        }
        Ok(())
    }

    /// Sums gradients in one clock, and steps users and items by them in another.
    fn batch(&mut self, job: &Job<'_>, workers: usize, number: u64, client: &mut impl Client) -> Result<(), Error> {
        for &(ids, rating) in &self.ratings {
            let mut rows = [vec![0.0; self.width], vec![0.0; self.width]];
            for side in 0..2 {
                client.read(FACTORS[side], ids[side], &mut rows[side])?;
            }
            let error = rating - dot(&rows[0], &rows[1]);
            for side in 0..2 {
                let mut gradient = vec![0.0; self.width];
                axpy(&mut gradient, error, &rows[1 - side]);
                axpy(&mut gradient, -job.config.lambda, &rows[side]);
                client.update(GRADIENTS[side], ids[side], &gradient)?;
            }
        }
        client.clock()?;

        let mut cx: Context<'_, MfBatch> =
            Context { worker: &mut Default::default(), global: &(), iteration: number, seed: 0 };
        let (users, items) = (Step::users(job.config), Step::items(job.config));
        for side in 0..2 {
            for id in (self.number..self.squares[side].len()).step_by(workers) {
                let (mut factor, mut gradient) = (vec![0.0; self.width], vec![0.0; self.width]);
                client.read(FACTORS[side], id, &mut factor)?;
                client.read(GRADIENTS[side], id, &mut gradient)?;
                let (before, master) = (factor.clone(), &mut self.squares[side][id]);
                if side == 0 {
                    let view = MasterView { sync: &mut factor[..], master, delta: &gradient[..] };
                    Apply::<_, batch::User>::apply(&users, view, &mut cx);
                } else {
                    let view = MasterView { sync: &mut factor[..], master, delta: &gradient[..] };
                    Apply::<_, batch::Item>::apply(&items, view, &mut cx);
                }
                let delta: Vec<f32> = factor.iter().zip(&before).map(|(now, old)| now - old).collect();
                client.update(FACTORS[side], id, &delta)?;
                let back: Vec<f32> = gradient.iter().map(|gradient| -gradient).collect();
                client.update(GRADIENTS[side], id, &back)?;
            }
        }
        client.clock()
    }
}

/// A job on this system.
pub struct Trainer<'j> {
    job: Job<'j>,
    team: Team<Naive>,
    workers: Vec<Worker>,
}

impl<'j> Trainer<'j> {
    pub fn new(job: &Job<'j>, run: &Run) -> Result<Self, Error> {
        let Job { ratings, config, .. } = *job;
        let (width, lens) = (row_width(config.row_dims()), [ratings.num_left, ratings.num_right]);
        let mut store = Naive::new(run.workers, run.slack);
        for side in [0, 1, 0, 1] {
            store.table::<f32>(lens[side], width);
        }
        let mut failed = None;
        job.init(run.seed, |side, id, first| {
            let mut row = vec![0.0; width];
            first(&mut row);
            let table = FACTORS[usize::from(side == Side::Right)];
            failed = store.set(table, id, &row).err().or(failed.take());
        });
        failed.map_or(Ok(()), Err)?;
        let mut workers: Vec<Worker> = (0..run.workers)
            .map(|number| Worker { number, ratings: Vec::new(), squares: lens.map(|len| vec![0.0; len]), width })
            .collect();
        for (at, ((&user, &item), &rating)) in ratings.left.iter().zip(&ratings.right).zip(&ratings.data).enumerate() {
            workers[at % run.workers].ratings.push(([user as usize, item as usize], rating));
        }
        Ok(Self { job: *job, team: Team::new(store)?, workers })
    }
}

impl job::Trainer for Trainer<'_> {
    fn iterate(&mut self, number: u64) -> Result<Cost, Error> {
        let (job, num_workers) = (&self.job, self.workers.len());
        match job.form {
            Form::InPlace => {
                self.team.iterate(&mut self.workers, CLOCKS, |worker, client| worker.in_place(job, number, client))
            }
            Form::Batch => {
                self.team.iterate(&mut self.workers, 2, |worker, client| worker.batch(job, num_workers, number, client))
            }
        }
    }

    fn measure(&mut self) -> Result<(f64, BTreeMap<&'static str, f64>), Error> {
        let all = |table| self.team.store.all::<f32>(table, self.team.clocks);
        let (users, items) = (all(FACTORS[0])?, all(FACTORS[1])?);
        Ok(self.job.measure(|user| users.row(user), |item| items.row(item)))
    }

    fn finish(&self) -> Finish {
        let usage = self.team.store.usage();
        let ratings: usize = self.workers.iter().map(|worker| 24 * worker.ratings.len()).sum();
        Finish { staleness: usage.staleness, memory_bytes: usage.memory_bytes + ratings as u64 }
    }
}
