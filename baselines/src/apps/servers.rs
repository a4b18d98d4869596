//! What the applications of parameter servers share: workers that take turns at iterations.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::crew;
use crate::job::Cost;
use crate::processes::Processes;
use crate::store::{Client, Store, Usage};
use crate::{Error, Finish};

/// Clients of a parameter server, and what they used before the iteration at hand.
pub(crate) struct Team<S: Store> {
    clients: Vec<S::Client>,
    pub store: S,
    pub processes: Processes,
    before: Usage,
    /// Clocks that all have ended.
    pub clocks: u64,
    /// Whether every iteration accesses the same rows in the same order.
    repeats: bool,
}

impl<S: Store> Team<S> {
    pub fn new(mut store: S, processes: &Processes) -> Result<Self, Error> {
        let clients = store.clients()?;
        let before = store.usage();
        Ok(Self { clients, store, processes: processes.clone(), before, clocks: 0, repeats: true })
    }

    /// Says that iterations access other rows each, so that there is nothing to record.
    pub fn without_pattern(self) -> Self {
        Self { repeats: false, ..self }
    }

    /// Tells what is known at the end: `own_bytes` are the workers', and some vertices are with one worker, the others in the server and
    /// in the caches of client processes.
    pub fn finish(&self, own_bytes: u64, [with_workers, in_server]: [usize; 2]) -> Finish {
        let Usage { memory_bytes, staleness, .. } = self.store.usage();
        let copies = with_workers + (1 + self.processes.count()) * in_server;
        let replication_factor = copies as f64 / (with_workers + in_server).max(1) as f64;
        Finish { staleness, memory_bytes: memory_bytes + own_bytes, replication_factor }
    }

    /// Runs an iteration of `clocks` clocks: each worker with its client.
    pub fn iterate<W: Send>(
        &mut self,
        workers: &mut [W],
        clocks: u64,
        run: impl Fn(&mut W, &mut S::Client) -> Result<(), Error> + Sync,
    ) -> Result<Cost, Error> {
        let pairs = workers.iter_mut().zip(&mut self.clients).collect();
        let gathers = self.repeats && self.clocks == 0;
        let (ended, mut spent) = crew::step(pairs, |_, (worker, client): (&mut W, &mut S::Client)| {
            if gathers {
                client.start_gather();
            }
            let before = client.waited();
            run(worker, client)?;
            if gathers {
                client.finish_gather()?;
            }
            Ok(client.waited() - before)
        })?;
        let waited = ended.into_iter().collect::<Result<Vec<Duration>, Error>>()?;
        for (spent, waited) in spent.iter_mut().zip(waited) {
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

    /// Gives every process what all have; workers wait meanwhile.
    pub fn gather<T: Serialize + DeserializeOwned>(&self, mine: T, cost: &mut Cost) -> Result<Vec<T>, Error> {
        let begin = Instant::now();
        let all = self.processes.gather(mine)?;
        cost.wait(begin.elapsed());
        Ok(all)
    }
}
