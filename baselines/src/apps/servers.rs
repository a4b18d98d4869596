//! What the applications of parameter servers share: workers that take turns at iterations.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::job::Cost;
use crate::processes::Processes;
use crate::rows::Rows;
use crate::server::{Element, Gather, Table};
use crate::store::{Client, Store, Usage};
use crate::workers::Threads;
use crate::{Error, Finish, Run};

/// Clients of a parameter server, and what they used before the iteration at hand.
pub(crate) struct Team<S: Store> {
    clients: Vec<S::Client>,
    pub store: S,
    pub processes: Processes,
    pub threads: Threads,
    before: Usage,
    /// Clocks that all have ended.
    pub clocks: u64,
    /// Whether the first iteration records its accesses: all access the same rows in the same order.
    records_first: bool,
    gather_seconds: f64,
}

impl<S: Store> Team<S> {
    pub fn new(mut store: S, run: &Run) -> Result<Self, Error> {
        let clients = store.clients()?;
        let before = store.usage();
        let (records_first, processes) = (store.gather() == Some(Gather::Real), run.processes.clone());
        let threads = Threads::new(run.workers, run.level)?;
        Ok(Self { clients, store, processes, threads, before, clocks: 0, records_first, gather_seconds: 0.0 })
    }

    /// Has workers make the accesses of an iteration before the first one, where the server gathers them so: a virtual iteration.
    pub fn rehearse<W: Send>(
        mut self,
        workers: &mut [W],
        accesses: impl Fn(&mut W, &mut S::Client) -> Result<(), Error> + Sync,
    ) -> Result<Self, Error> {
        if self.store.gather() != Some(Gather::Virtual) {
            return Ok(self);
        }
        let begin = Instant::now();
        let pairs = workers.iter_mut().zip(&mut self.clients).collect();
        let (ended, _) = self.threads.step(pairs, |_, (worker, client): (&mut W, &mut S::Client)| {
            client.start_gather(Gather::Virtual);
            accesses(worker, client)?;
            client.finish_gather()
        })?;
        ended.into_iter().collect::<Result<(), Error>>()?;
        self.gather_seconds = begin.elapsed().as_secs_f64();
        self.before = self.store.usage();
        Ok(self)
    }

    /// Tells what is known at the end: `own_bytes` are the workers', and some vertices are with one worker, the others in the server and
    /// in the caches of client processes.
    pub fn finish(&self, own_bytes: u64, [with_workers, in_server]: [usize; 2]) -> Finish {
        let Usage { memory_bytes, staleness, .. } = self.store.usage();
        let copies = with_workers + (1 + self.processes.count()) * in_server;
        let replication_factor = copies as f64 / (with_workers + in_server).max(1) as f64;
        let gather_seconds = self.gather_seconds;
        Finish { staleness, memory_bytes: memory_bytes + own_bytes, replication_factor, gather_seconds }
    }

    /// Runs an iteration of `clocks` clocks: each worker with its client.
    pub fn iterate<W: Send>(
        &mut self,
        workers: &mut [W],
        clocks: u64,
        run: impl Fn(&mut W, &mut S::Client) -> Result<(), Error> + Sync,
    ) -> Result<Cost, Error> {
        let pairs = workers.iter_mut().zip(&mut self.clients).collect();
        let records = self.records_first && self.clocks == 0;
        let (ended, mut spent) = self.threads.step(pairs, |_, (worker, client): (&mut W, &mut S::Client)| {
            if records {
                client.start_gather(Gather::Real);
            }
            let before = client.waited();
            run(worker, client)?;
            let recorded = Instant::now();
            if records {
                client.finish_gather()?;
            }
            Ok((client.waited() - before, recorded.elapsed()))
        })?;
        let ended = ended.into_iter().collect::<Result<Vec<(Duration, Duration)>, Error>>()?;
        if records {
            self.gather_seconds = ended.iter().map(|(_, gather)| gather.as_secs_f64()).fold(0.0, f64::max);
        }
        for (spent, (waited, _)) in spent.iter_mut().zip(ended) {
            spent.wait += waited;
            spent.compute = spent.compute.saturating_sub(waited);
        }
        self.clocks += clocks;
        Ok(Cost::of(spent))
    }

    /// Ends an iteration that has cost this so far: waits until the servers have all changes of it, which is a round trip, and counts
    /// what was sent.
    pub fn settle(&mut self, mut cost: Cost) -> Result<Cost, Error> {
        let begin = Instant::now();
        self.store.settle()?;
        cost.wait(begin.elapsed());
        let now = self.store.usage();
        cost.sent_bytes += now.sent_bytes - self.before.sent_bytes;
        cost.messages += now.messages - self.before.messages;
        self.before = now;
        Ok(cost)
    }

    /// Returns all rows of a table, for what is measured between iterations. What that sends is of none of them.
    pub fn all<T: Element>(&mut self, table: Table<T>, rows: usize) -> Result<Rows<T>, Error> {
        // Servers here send to other processes too: nobody begins before all have ended an iteration, or goes on before all have the rows.
        self.processes.gather(())?;
        let begin = self.store.usage();
        let found = self.store.all(table, rows, self.clocks)?;
        self.processes.gather(())?;
        let end = self.store.usage();
        self.before.sent_bytes += end.sent_bytes - begin.sent_bytes;
        self.before.messages += end.messages - begin.messages;
        Ok(found)
    }

    /// Gives every process what all have; workers wait meanwhile.
    pub fn gather<T: Serialize + DeserializeOwned>(&self, mine: T, cost: &mut Cost) -> Result<Vec<T>, Error> {
        let begin = Instant::now();
        let all = self.processes.gather(mine)?;
        cost.wait(begin.elapsed());
        Ok(all)
    }
}
