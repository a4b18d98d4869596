//! What the applications of parameter servers share: workers that take turns at iterations.

use std::time::Instant;

use crate::Error;
use crate::crew;
use crate::job::Cost;
use crate::store::{Client, Store, Usage};

/// Clients of a parameter server, and what they used before the iteration at hand.
pub(crate) struct Team<S: Store> {
    pub store: S,
    clients: Vec<S::Client>,
    before: Usage,
    /// Clocks that all have ended.
    pub clocks: u64,
}

impl<S: Store> Team<S> {
    /// Begins.
    pub fn new(mut store: S) -> Result<Self, Error> {
        let clients = store.clients()?;
        let before = store.usage();
        Ok(Self { store, clients, before, clocks: 0 })
    }

    /// Runs an iteration of `clocks` clocks: each worker with its client.
    pub fn iterate<W: Send>(
        &mut self,
        workers: &mut [W],
        clocks: u64,
        run: impl Fn(&mut W, &mut S::Client) -> Result<(), Error> + Sync,
    ) -> Result<Cost, Error> {
        let begin = Instant::now();
        let pairs = workers.iter_mut().zip(&mut self.clients).collect();
        let (ended, mut spent) = crew::step(pairs, |_, (worker, client): (&mut W, &mut S::Client)| {
            run(worker, client).map(|()| client.spent())
        })?;
        self.clocks += clocks;
        let mut cost = Cost::default();
        for (ended, spent) in ended.into_iter().zip(&mut spent) {
            let [waited, synced] = ended?;
            let share = 1.0 / self.clients.len() as f64;
            cost.compute_seconds += share * (spent.compute.as_secs_f64() - waited - synced).max(0.0);
            cost.wait_seconds += share * (spent.wait.as_secs_f64() + waited);
            cost.sync_seconds += share * synced;
        }
        debug_assert!(cost.compute_seconds <= begin.elapsed().as_secs_f64());
        let now = self.store.usage();
        cost.sent_bytes = now.sent_bytes - self.before.sent_bytes;
        cost.messages = now.messages - self.before.messages;
        self.before = now;
        Ok(cost)
    }
}
