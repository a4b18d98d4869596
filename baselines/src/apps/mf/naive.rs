//! Matrix factorization as Petuum 0.93 has it: users and items in the server, ratings dealt to workers one by one.

use megagrid_algorithms::mf::batch::{self, MfBatch, Step};
use megagrid_algorithms::mf::in_place::{self, Descend, Mf};
use megagrid_partition::Side;
use megagrid_stages::kernels::{axpy, dot};
use megagrid_stages::{Apply, Context, Exchange, Master, Update, row_width};

use super::job::{CLOCKS, Form, Job, NOTHING};
use crate::apps::servers::Team;
use crate::job::{self, Cost, Measured};
use crate::naive::Naive;
use crate::rows::Rows;
use crate::server::Table;
use crate::store::{Client, Store};
use crate::workers;
use crate::{Error, Finish, Run};

#[derive(Clone, Copy)]
struct Both {
    /// A factor and, behind it, the sum of its squared gradients.
    factors: [Table<f32>; 2],
    /// Sums of gradients.
    gradients: [Table<f32>; 2],
}

struct Worker {
    tables: Both,
    number: usize,
    ratings: Vec<([usize; 2], f32)>,
    lens: [usize; 2],
    width: usize,
}

impl Worker {
    /// Steps user and item of each rating; changes go to the server in vectors made for them.
    fn in_place(&mut self, job: &Job<'_>, number: u64, client: &mut impl Client) -> Result<(), Error> {
        let descend = Descend::new(job.config);
        let mut cx: Context<'_, Mf> =
            Context { worker: &mut Default::default(), global: &NOTHING, iteration: number, seed: 0 };
        let width = self.width;
        for part in workers::parts(self.ratings.len(), CLOCKS as usize, |at| at as u64) {
            for &(ids, rating) in &self.ratings[part] {
                let mut rows = [vec![0.0; width + 1], vec![0.0; width + 1]];
                for side in 0..2 {
                    client.read(self.tables.factors[side], ids[side], &mut rows[side])?;
                }
                let before = rows.clone();
                let [(p, of_user), (q, of_item)] = rows.each_mut().map(|row| row.split_at_mut(width));
                descend.exchange(
                    Update { sync: p, mirror: &mut of_user[0] },
                    Update::<in_place::Item> { sync: q, mirror: &mut of_item[0] },
                    &mut { rating },
                    &mut cx,
                );
                for side in 0..2 {
                    let delta: Vec<f32> = rows[side].iter().zip(&before[side]).map(|(now, old)| now - old).collect();
                    client.update(self.tables.factors[side], ids[side], &delta)?;
                }
            }
            client.clock()?;
        }
        Ok(())
    }

    /// Sums gradients in one clock, and steps users and items by them in another.
    fn batch(&mut self, job: &Job<'_>, workers: usize, number: u64, client: &mut impl Client) -> Result<(), Error> {
        let width = self.width;
        for &(ids, rating) in &self.ratings {
            let mut rows = [vec![0.0; width + 1], vec![0.0; width + 1]];
            for side in 0..2 {
                client.read(self.tables.factors[side], ids[side], &mut rows[side])?;
            }
            let error = rating - dot(&rows[0][..width], &rows[1][..width]);
            for side in 0..2 {
                let mut gradient = vec![0.0; width];
                axpy(&mut gradient, error, &rows[1 - side][..width]);
                axpy(&mut gradient, -job.config.lambda, &rows[side][..width]);
                client.update(self.tables.gradients[side], ids[side], &gradient)?;
            }
        }
        client.clock()?;

        let mut cx: Context<'_, MfBatch> =
            Context { worker: &mut Default::default(), global: &NOTHING, iteration: number, seed: 0 };
        let (users, items) = (Step::users(job.config), Step::items(job.config));
        for side in 0..2 {
            for id in (self.number..self.lens[side]).step_by(workers) {
                let (mut row, mut gradient) = (vec![0.0; width + 1], vec![0.0; width]);
                client.read(self.tables.factors[side], id, &mut row)?;
                client.read(self.tables.gradients[side], id, &mut gradient)?;
                let before = row.clone();
                let (sync, squares) = row.split_at_mut(width);
                let (master, delta) = (&mut squares[0], &gradient[..]);
                if side == 0 {
                    Apply::<_, batch::User>::apply(&users, Master { sync, master, delta }, &mut cx);
                } else {
                    Apply::<_, batch::Item>::apply(&items, Master { sync, master, delta }, &mut cx);
                }
                let delta: Vec<f32> = row.iter().zip(&before).map(|(now, old)| now - old).collect();
                client.update(self.tables.factors[side], id, &delta)?;
                let back: Vec<f32> = gradient.iter().map(|gradient| -gradient).collect();
                client.update(self.tables.gradients[side], id, &back)?;
            }
        }
        client.clock()
    }
}

pub struct Trainer<'j> {
    job: Job<'j>,
    tables: Both,
    team: Team<Naive>,
    num_workers: usize,
    workers: Vec<Worker>,
}

impl<'j> Trainer<'j> {
    pub fn new(job: &Job<'j>, run: &Run) -> Result<Self, Error> {
        let Job { ratings, config, .. } = *job;
        let (width, lens) = (row_width(config.row_dims()), [ratings.num_left, ratings.num_right]);
        let mut store = Naive::new(run)?;
        let tables = Both {
            factors: lens.map(|len| store.table(len, width + 1)),
            gradients: lens.map(|len| store.table(len, width)),
        };
        let mut rows = lens.map(|len| Rows::<f32>::zeros(len, width + 1));
        job.init(run.seed, |side, id, first| {
            first(&mut rows[usize::from(side == Side::Right)].row_mut(id)[..width]);
        });
        for (table, rows) in tables.factors.into_iter().zip(&rows) {
            store.set(table, 0, rows.items())?;
        }
        let crew = run.crew();
        let rating = |at: usize| ([ratings.left[at] as usize, ratings.right[at] as usize], ratings.data[at]);
        let dealt = |number: usize| (number..ratings.left.len()).step_by(crew.all).map(rating).collect();
        let workers: Vec<Worker> =
            crew.own.clone().map(|number| Worker { tables, number, ratings: dealt(number), lens, width }).collect();
        Ok(Self { job: *job, tables, team: Team::new(store, run)?, num_workers: crew.all, workers })
    }
}

impl job::Trainer for Trainer<'_> {
    fn iterate(&mut self, number: u64) -> Result<Cost, Error> {
        let (job, num_workers) = (&self.job, self.num_workers);
        let cost = match job.form {
            Form::InPlace => {
                self.team.iterate(&mut self.workers, CLOCKS, |worker, client| worker.in_place(job, number, client))?
            }
            Form::Batch => self
                .team
                .iterate(&mut self.workers, 2, |worker, client| worker.batch(job, num_workers, number, client))?,
        };
        self.team.settle(cost)
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let ([users, items], team) = (self.tables.factors, &mut self.team);
        let users = team.all(users, self.job.ratings.num_left)?;
        let items = team.all(items, self.job.ratings.num_right)?;
        let (processes, level) = (&team.processes, team.threads.level());
        let width = users.width() - 1;
        let bound = |process: usize| users.len() * process / processes.count();
        let own = bound(processes.number())..bound(processes.number() + 1);
        self.job.measure((processes, own, level), |user| &users.row(user)[..width], |item| &items.row(item)[..width])
    }

    fn finish(&self) -> Finish {
        let ratings: usize = self.workers.iter().map(|worker| 24 * worker.ratings.len()).sum();
        self.team.finish(ratings as u64, [0, 1])
    }
}
