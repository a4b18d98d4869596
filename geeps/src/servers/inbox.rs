//! Where the rows arrive that workers have asked for, from the servers of all processes.

use std::fmt::Debug;
use std::sync::{Condvar, Mutex, PoisonError};

use megagrid_partition::parallel::lock;

use crate::Error;

/// Rows from a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rows {
    /// The age of their table, minus the reader's clock; −1 is fresh.
    pub staleness: i64,
    /// Clocks of the reader whose updates are in them.
    pub included: u64,
    /// The different rows that were asked for, ascending.
    pub values: Vec<f32>,
}

/// Whoever rows go to.
pub(super) trait Reader: Debug + Send + Sync {
    /// Takes rows for a worker, which are dropped where nobody waits for them any more.
    fn take(&self, worker: usize, rows: Rows);
}

/// The inboxes of a process: of its workers, and one of its own.
#[derive(Debug)]
pub(super) struct Inboxes {
    all: Vec<Inbox>,
    /// The first of its workers.
    first: usize,
    /// This process.
    own: usize,
}

/// The place of a reader, which waits for one answer of each server at most.
#[derive(Debug)]
struct Inbox {
    answers: Mutex<Vec<Option<Rows>>>,
    changed: Condvar,
}

impl Inboxes {
    /// Makes them for the workers of process `own`, and as many servers as there are processes.
    pub fn new(own: usize, processes: usize, workers: usize) -> Self {
        let inbox = || Inbox { answers: Mutex::new(vec![None; processes]), changed: Condvar::new() };
        Self { all: (0..=workers).map(|_| inbox()).collect(), first: own * workers, own }
    }

    /// Returns the number that the process has as a reader, behind its workers.
    pub fn of_process(&self) -> usize {
        self.first + self.all.len() - 1
    }

    /// Puts rows into the inbox of a worker; `false`: it is none of this process.
    pub fn put(&self, worker: usize, server: usize, rows: Rows) -> bool {
        let Some(inbox) = worker.checked_sub(self.first).and_then(|own| self.all.get(own)) else { return false };
        lock(&inbox.answers)[server] = Some(rows);
        inbox.changed.notify_all();
        true
    }

    /// Waits for the answers of servers, in their order; `None`: `may_stop` said so before.
    ///
    /// # Errors
    /// What `may_stop` finds.
    pub fn wait(
        &self,
        worker: usize,
        servers: impl Iterator<Item = usize> + Clone,
        may_stop: impl Fn() -> Result<bool, Error>,
    ) -> Result<Option<Vec<Rows>>, Error> {
        let inbox = &self.all[worker - self.first];
        let mut answers = lock(&inbox.answers);
        loop {
            if may_stop()? {
                return Ok(None);
            }
            if servers.clone().all(|server| answers[server].is_some()) {
                return Ok(Some(servers.filter_map(|server| answers[server].take()).collect()));
            }
            answers = inbox.changed.wait(answers).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes all who wait, so that they look whether they still have to.
    pub fn wake(&self) {
        for inbox in &self.all {
            // Whoever has looked and is about to sleep holds the lock until it sleeps.
            drop(lock(&inbox.answers));
            inbox.changed.notify_all();
        }
    }
}

impl Reader for Inboxes {
    fn take(&self, worker: usize, rows: Rows) {
        self.put(worker, self.own, rows);
    }
}
