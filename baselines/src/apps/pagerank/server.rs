//! PageRank on a parameter server: what pages pass on along their links is in the server; each worker keeps the ranks of its pages.

use std::ops::Range;

use megagrid_algorithms::pagerank::{Damping, PageRank, Rank, Settle, State};
use megagrid_partition::Side;
use megagrid_stages::{Apply, Context, Master};

use super::job::{Job, measured};
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
    /// What a page passes on along each link.
    passed: Table<f32>,
    /// One row: sums of scores, of dangling scores and of changes in the last iteration.
    sums: Table<f64>,
}

struct Worker {
    pages: Range<usize>,
    ranks: Vec<Rank>,
    /// By what that which pages pass on changes.
    changes: Vec<f32>,
    /// What the worker's part of the sums was.
    sums: [f64; 3],
    state: State,
}

impl Worker {
    fn iterate(&mut self, job: &Shared, number: u64, client: &mut impl Client) -> Result<(), Error> {
        let Shared { tables, damping, links } = job;
        if number > 1 {
            let mut sums = [0.0; 3];
            client.read(tables.sums, 0, &mut sums)?;
            self.state = State::after(*damping, sums);
        }
        let mut sums = [0.0; 3];
        let mut cx: Context<'_, PageRank> =
            Context { worker: &mut sums, global: &self.state, iteration: number, seed: 0 };
        let mut passed = [0.0];
        for ((page, rank), change) in self.pages.clone().zip(&mut self.ranks).zip(&mut self.changes) {
            let mut sum = 0.0;
            for &from in links.of(page).0 {
                client.read(tables.passed, from as usize, &mut passed)?;
                sum += passed[0];
            }
            let before = rank[0] * rank[1];
            Settle.apply(Master { sync: &mut passed[0], master: rank, delta: &sum }, &mut cx);
            *change = passed[0] - before;
        }
        // A worker reads its own updates at once and others' as they come, but all pages are to be settled from the same: with slack 0 a
        // read waits until all workers are here.
        client.clock()?;
        client.read(tables.sums, 0, &mut [0.0; 3])?;
        for (page, &change) in self.pages.clone().zip(&self.changes).filter(|(_, change)| **change != 0.0) {
            client.update(tables.passed, page, &[change])?;
        }
        let change: [f64; 3] = std::array::from_fn(|at| sums[at] - self.sums[at]);
        client.update(tables.sums, 0, &change)?;
        self.sums = sums;
        client.clock()
    }

    /// Makes the accesses of an iteration, and does nothing else.
    fn accesses(&self, Shared { tables, links, .. }: &Shared, client: &mut impl Client) -> Result<(), Error> {
        client.read(tables.sums, 0, &mut [0.0; 3])?;
        for &from in self.pages.clone().flat_map(|page| links.of(page).0) {
            client.read(tables.passed, from as usize, &mut [0.0])?;
        }
        client.clock()?;
        client.read(tables.sums, 0, &mut [0.0; 3])?;
        for page in self.pages.clone() {
            client.update(tables.passed, page, &[0.0])?;
        }
        client.update(tables.sums, 0, &[0.0; 3])?;
        client.clock()
    }
}

/// What workers only read.
struct Shared {
    tables: Tables,
    damping: Damping,
    /// Links by the page that they lead to.
    links: Csr<()>,
}

pub struct Trainer<S: Store> {
    shared: Shared,
    team: Team<S>,
    workers: Vec<Worker>,
}

impl<S: Store> Trainer<S> {
    pub fn new(job: &Job<'_>, run: &Run, mut store: S) -> Result<Self, Error> {
        let pages = job.graph.num_left;
        let tables = Tables { passed: store.table(pages, 1), sums: store.table(1, 3) };
        let links = Csr::new(job.graph, Side::Right, |_| ());
        let (first, state) =
            job.start(|start| ((0..pages).map(|page| start.page(page)).collect::<Vec<_>>(), start.state()));
        let passed: Vec<f32> = first.iter().map(|(_, passed)| *passed).collect();
        store.set(tables.passed, 0, &passed)?;
        store.set(tables.sums, 0, &[0.0; 3])?;
        let crew = run.crew();
        let mut workers: Vec<Worker> = crew
            .pick(workers::parts(pages, crew.all, |page| links.offsets[page] + page as u64))
            .map(|(_, pages)| Worker {
                ranks: first[pages.clone()].iter().map(|(rank, _)| *rank).collect(),
                changes: vec![0.0; pages.len()],
                pages,
                sums: [0.0; 3],
                state,
            })
            .collect();
        let shared = Shared { tables, damping: job.damping, links };
        let team = Team::new(store, run)?.rehearse(&mut workers, |worker, client| worker.accesses(&shared, client))?;
        Ok(Self { shared, team, workers })
    }
}

impl<S: Store> job::Trainer for Trainer<S> {
    fn iterate(&mut self, number: u64) -> Result<Cost, Error> {
        let shared = &self.shared;
        let cost = self.team.iterate(&mut self.workers, 2, |worker, client| worker.iterate(shared, number, client))?;
        self.team.settle(cost)
    }

    fn measure(&mut self) -> Result<Measured, Error> {
        let sums: Rows<f64> = self.team.all(self.shared.tables.sums, 1)?;
        let row = sums.row(0);
        Ok(measured(&State::after(self.shared.damping, [row[0], row[1], row[2]])))
    }

    fn finish(&self) -> Finish {
        let ranks = (self.shared.links.len() * size_of::<Rank>()) as u64;
        self.team.finish(self.shared.links.bytes() + ranks, [0, 1])
    }
}
