//! What the applications of parameter servers share: workers that take turns at iterations.

use crate::Error;
use crate::crew::{self, Spent};
use crate::job::Cost;
use crate::store::{Client, Store, Usage};

/// Clients of a parameter server, and what they used before the iteration at hand.
pub(crate) struct Team<S: Store> {
    pub store: S,
    clients: Vec<S::Client>,
    before: Usage,
    /// Clocks that all have ended.
    pub clocks: u64,
    /// Whether every iteration accesses the same rows in the same order.
    repeats: bool,
}

impl<S: Store> Team<S> {
    /// Begins.
    pub fn new(mut store: S) -> Result<Self, Error> {
        let clients = store.clients()?;
        let before = store.usage();
        Ok(Self { store, clients, before, clocks: 0, repeats: true })
    }

    /// Says that iterations access other rows each, so that there is nothing to record.
    pub fn without_pattern(self) -> Self {
        Self { repeats: false, ..self }
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
        let (ended, spent) = crew::step(pairs, |_, (worker, client): (&mut W, &mut S::Client)| {
            if gathers {
                client.start_gather();
            }
            run(worker, client)?;
            if gathers { client.finish_gather() } else { Ok(()) }
        })?;
        ended.into_iter().collect::<Result<(), Error>>()?;
        self.clocks += clocks;
        let mut cost = Spent::mean(&spent);
        let now = self.store.usage();
        cost.sent_bytes = now.sent_bytes - self.before.sent_bytes;
        cost.messages = now.messages - self.before.messages;
        let waited = (now.wait_seconds - self.before.wait_seconds) / self.clients.len() as f64;
        cost.wait_seconds += waited;
        cost.compute_seconds = (cost.compute_seconds - waited).max(0.0);
        self.before = now;
        Ok(cost)
    }
}
