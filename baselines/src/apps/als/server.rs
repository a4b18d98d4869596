//! Alternating least squares on a parameter server: factors of both sides are in the server, and the Gramians, to which each worker adds
//! what its vertices have. A clock for each side.

use std::ops::Range;

use megagrid_algorithms::als::{Config, GramianOf, OfSide};
use megagrid_algorithms::least_squares::{Known, Neighbor, Solver};
use megagrid_partition::Side;
use megagrid_stages::row_width;
use megagrid_stages::simd::{Kernel, Level};

use super::job::Job;
use crate::apps::servers::Team;
use crate::gas::csr::Csr;
use crate::job::{self, Cost, Measured};
use crate::rows::Rows;
use crate::server::Table;
use crate::store::{Client, Store};
use crate::workers;
use crate::{Error, Finish, Run};

#[derive(Clone, Copy)]
struct Tables {
    /// Factors of users, and of items.
    factors: [Table<f32>; 2],
    /// One row for each side: the Gramian, on and above the diagonal.
    gramians: Table<f64>,
}

/// What workers only read.
struct Shared {
    config: Config,
    tables: Tables,
    /// Feedback by user, and by item.
    edges: [Csr<f32>; 2],
    rhos: [Vec<Option<f32>>; 2],
}

struct Worker {
    /// Own users, and own items.
    own: [Range<usize>; 2],
    /// What they have added to the Gramians.
    parts: [Vec<f64>; 2],
    solver: Solver,
    rows: GramianOf,
    /// A row, what it is changed by, and the rows of the vertex's neighbours.
    row: Vec<f32>,
    delta: Vec<f32>,
    neighbors: Vec<f32>,
}

impl Worker {
    /// Makes the accesses of an iteration, and does nothing else.
    fn accesses(&mut self, Shared { tables, edges, .. }: &Shared, client: &mut impl Client) -> Result<(), Error> {
        let mut gramian = vec![0.0; tables.gramians.row_len()];
        for [near, far] in [[0, 1], [1, 0]] {
            client.read(tables.gramians, far, &mut gramian)?;
            for id in self.own[near].clone() {
                let (ends, _) = edges[near].of(id);
                if ends.is_empty() {
                    continue;
                }
                client.read(tables.factors[near], id, &mut self.row)?;
                for &end in ends {
                    client.read(tables.factors[far], end as usize, &mut self.row)?;
                }
                client.update(tables.factors[near], id, &self.delta)?;
            }
            client.update(tables.gramians, near, &self.parts[near])?;
            client.clock()?;
        }
        Ok(())
    }
}

struct Iteration<'i, C> {
    shared: &'i Shared,
    worker: &'i mut Worker,
    client: &'i mut C,
}

impl<C: Client> Kernel for Iteration<'_, C> {
    type Output = Result<(), Error>;

    #[inline(always)]
    fn run(mut self) -> Result<(), Error> {
        self.solve([0, 1])?;
        self.solve([1, 0])
    }
}

impl<C: Client> Iteration<'_, C> {
    /// Solves for own vertices of a side, given those of the other, as the last clock left them.
    #[inline(always)]
    fn solve(&mut self, [near, far]: [usize; 2]) -> Result<(), Error> {
        let Self { shared: Shared { config, tables, edges, rhos }, worker, client } = self;
        let Worker { own, parts, solver, rows, row, delta, neighbors } = &mut **worker;
        let mut gramian = vec![0.0; tables.gramians.row_len()];
        client.read(tables.gramians, far, &mut gramian)?;
        let of_others = OfSide::new(gramian, 0.0, config);
        let mut part = vec![0.0; tables.gramians.row_len()];
        for id in own[near].clone() {
            let Some(rho) = rhos[near][id] else { continue };
            let (weights, (ends, feedback)) = (of_others.weights(config, rho), edges[near].of(id));
            client.read(tables.factors[near], id, row)?;
            delta.copy_from_slice(row);
            neighbors.resize(neighbors.len().max(ends.len() * row.len()), 0.0);
            for (&end, row) in ends.iter().zip(neighbors.chunks_exact_mut(row.len())) {
                client.read(tables.factors[far], end as usize, row)?;
            }
            let known = Read { rows: neighbors, width: row.len(), feedback, unseen: weights.unseen };
            solver.take_in(row, ends.len(), &known);
            solver.solve(row, config.block_width(), weights);
            rows.push(row, &mut part);
            delta.iter_mut().zip(&*row).for_each(|(delta, now)| *delta = now - *delta);
            client.update(tables.factors[near], id, delta)?;
        }
        rows.flush(&mut part);
        let before = std::mem::replace(&mut parts[near], part);
        let change: Vec<f64> = parts[near].iter().zip(before).map(|(now, before)| now - before).collect();
        client.update(tables.gramians, near, &change)?;
        client.clock()
    }
}

/// Rows of neighbours, as they were read, and their feedback.
struct Read<'r> {
    rows: &'r [f32],
    width: usize,
    feedback: &'r [f32],
    unseen: f32,
}

impl<'r> Known<'r> for Read<'r> {
    #[inline(always)]
    fn neighbor(&self, edge: usize) -> Option<Neighbor<'r>> {
        Some(Neighbor::of_feedback(&self.rows[edge * self.width..][..self.width], self.feedback[edge], self.unseen))
    }
}

pub struct Trainer<'j, S: Store> {
    job: Job<'j>,
    shared: Shared,
    team: Team<S>,
    workers: Vec<Worker>,
    level: Level,
}

impl<'j, S: Store> Trainer<'j, S> {
    pub fn new(job: &Job<'j>, run: &Run, mut store: S) -> Result<Self, Error> {
        let (Job { feedback, config }, sides) = (*job, [Side::Left, Side::Right]);
        let width = row_width(config.dims);
        let tables = Tables {
            factors: sides.map(|side| store.table(job.len(side), width)),
            gramians: store.table(2, width * width),
        };
        let (items, gramian) = job.first(run.seed);
        store.set(tables.factors[1], 0, items.items())?;
        store.set(tables.gramians, 1, &gramian)?;
        let edges = sides.map(|side| Csr::new(feedback, side, |edge| feedback.data[edge]));
        let crew = run.crew();
        let of = |side: &Csr<f32>| workers::parts(side.len(), crew.all, |id| side.offsets[id] + id as u64);
        let own = of(&edges[0]).into_iter().zip(of(&edges[1]));
        let worker = |(number, (users, items))| Worker {
            own: [users, items],
            // What items begin with counts as the first worker's.
            parts: [0.0, if number == 0 { 1.0 } else { 0.0 }]
                .map(|scale| gramian.iter().map(|sum| scale * sum).collect()),
            solver: Solver::default(),
            rows: GramianOf::default(),
            row: vec![0.0; width],
            delta: vec![0.0; width],
            neighbors: Vec::new(),
        };
        let mut workers: Vec<Worker> = crew.pick(own).map(worker).collect();
        let shared = Shared { config, tables, edges, rhos: sides.map(|side| job.rhos(side)) };
        let team = Team::new(store, run)?.rehearse(&mut workers, |worker, client| worker.accesses(&shared, client))?;
        Ok(Self { job: *job, shared, team, workers, level: run.level })
    }
}

impl<S: Store> job::Trainer for Trainer<'_, S> {
    fn iterate(&mut self, _: u64) -> Result<Cost, Error> {
        let Self { shared, team, workers, level, .. } = self;
        let cost = team.iterate(workers, 2, |worker, client| level.run(Iteration { shared, worker, client }))?;
        team.settle(cost)
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let factors = self.shared.tables.factors;
        let users: Rows<f32> = self.team.all(factors[0], self.job.len(Side::Left))?;
        let items = self.team.all(factors[1], self.job.len(Side::Right))?;
        self.job.measure(|side, id| if side == Side::Left { users.row(id) } else { items.row(id) })
    }

    fn finish(&self) -> Finish {
        let room = |worker: &Worker| {
            size_of_val(&worker.neighbors[..]) + worker.parts.iter().map(|part| size_of_val(&part[..])).sum::<usize>()
        };
        let edges: u64 = self.shared.edges.iter().map(Csr::bytes).sum();
        self.team.finish(edges + self.workers.iter().map(room).sum::<usize>() as u64, [0, 1])
    }
}
