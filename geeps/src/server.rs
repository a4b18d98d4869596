//! The parameter server on the host: one tablet a table, with its own lock, vector clock and data age (section 4.3.2).

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::Error;
use crate::rows;
use crate::table::{RowList, TableId, Tables};

/// How fresh the parameters are that workers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// A read in a clock sees the updates of all clocks before it of all workers, and no others but its own. Updates
    /// are added in the order of clocks and workers, so that runs are the same bit by bit.
    Bsp,
    /// A read in clock c sees the updates of all clocks before c − slack, and whatever else has arrived.
    Ssp {
        /// Clocks that a worker may be ahead of the slowest.
        slack: u64,
    },
    /// A read sees whatever has arrived.
    Async,
}

impl Consistency {
    /// Returns the clocks of all workers that a read after `clock` clocks of its own worker needs.
    fn needs(self, clock: u64) -> u64 {
        match self {
            Self::Bsp => clock,
            Self::Ssp { slack } => clock.saturating_sub(slack),
            Self::Async => 0,
        }
    }
}

/// Some rows' updates, in the order of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    pub list: RowList,
    pub values: Vec<f32>,
}

/// The server.
#[derive(Debug)]
pub struct Server {
    tables: Tables,
    consistency: Consistency,
    workers: usize,
    tablets: Vec<Tablet>,
    has_failed: AtomicBool,
    failure: Mutex<Option<Error>>,
}

#[derive(Debug)]
struct Tablet {
    state: Mutex<State>,
    /// An age that has grown, a failure, or a worker that waits no longer.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    values: Vec<f32>,
    /// Clocks that each worker has ended.
    clocks: Vec<u64>,
    /// Clocks of each worker that are not added yet, the oldest first.
    held: Vec<VecDeque<Vec<Update>>>,
    /// How often data of each age, minus the reader's clock, was read; −1 is fresh.
    staleness: BTreeMap<i64, u64>,
    /// Bytes of rows that were read and of updates.
    bytes: u64,
}

impl State {
    fn age(&self) -> u64 {
        self.clocks.iter().copied().min().unwrap_or(0)
    }

    fn add(&mut self, updates: &[Update]) {
        updates.iter().for_each(|update| update.list.add_to(&mut self.values, &update.values));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whoever panics with it ends the run; what others still read is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// Makes a server whose tables are zeros.
    ///
    /// # Errors
    /// Tables that this machine has no memory for.
    pub fn new(tables: Tables, workers: usize, consistency: Consistency) -> Result<Self, Error> {
        let tablet = |len: usize| {
            let state = State {
                values: rows::zeros(len)?,
                clocks: vec![0; workers],
                held: vec![VecDeque::new(); workers],
                staleness: BTreeMap::new(),
                bytes: 0,
            };
            Ok::<_, Error>(Tablet { state: Mutex::new(state), changed: Condvar::new() })
        };
        let tablets = tables.iter().map(|(_, table)| tablet(table.len())).collect::<Result<_, _>>()?;
        let (has_failed, failure) = (AtomicBool::new(false), Mutex::new(None));
        Ok(Self { tables, consistency, workers, tablets, has_failed, failure })
    }

    /// Returns the tables.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns how many workers there are.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Sets the first values of a table, before any worker reads.
    ///
    /// # Errors
    /// Another number of values than the table has.
    pub fn set(&self, table: TableId, values: Vec<f32>) -> Result<(), Error> {
        let of = self.tables.get(table);
        if values.len() != of.len() {
            return Err(Error::TableLength { table: of.name.clone(), found: values.len(), expected: of.len() });
        }
        self.state(table).values = values;
        Ok(())
    }

    /// Returns the values of a table, with all that has been added.
    #[must_use]
    pub fn values(&self, table: TableId) -> Vec<f32> {
        self.state(table).values.clone()
    }

    /// Returns how often data of each age, minus the reader's clock, was read; −1 is fresh.
    #[must_use]
    pub fn staleness(&self) -> BTreeMap<i64, u64> {
        let mut all = BTreeMap::new();
        for tablet in &self.tablets {
            for (&age, &reads) in &lock(&tablet.state).staleness {
                *all.entry(age).or_insert(0) += reads;
            }
        }
        all
    }

    /// Returns the bytes of rows that workers have read, and of their updates.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.tablets.iter().map(|tablet| lock(&tablet.state).bytes).sum()
    }

    /// Ends the run of all workers. The first reason counts.
    pub fn fail(&self, error: Error) {
        lock(&self.failure).get_or_insert(error);
        self.has_failed.store(true, Ordering::Release);
        self.wake();
    }

    /// Returns why the run has ended, if it has failed.
    #[must_use]
    pub fn failure(&self) -> Option<Error> {
        if self.has_failed.load(Ordering::Acquire) { lock(&self.failure).clone() } else { None }
    }

    /// Wakes those who wait, so that they look whether they still have to.
    pub(crate) fn wake(&self) {
        for tablet in &self.tablets {
            // Whoever has looked and is about to sleep holds the lock until it sleeps.
            drop(lock(&tablet.state));
            tablet.changed.notify_all();
        }
    }

    /// Ends a clock of a worker on a table.
    pub(crate) fn commit(&self, worker: usize, table: TableId, updates: Vec<Update>) {
        let mut state = self.state(table);
        let before = state.age();
        state.clocks[worker] += 1;
        state.bytes += updates.iter().map(|update| crate::table::bytes(update.values.len())).sum::<u64>();
        if self.consistency == Consistency::Bsp {
            state.held[worker].push_back(updates);
            for _ in before..state.age() {
                for worker in 0..self.workers {
                    let updates = state.held[worker].pop_front().unwrap_or_default();
                    state.add(&updates);
                }
            }
        } else {
            state.add(&updates);
        }
        drop(state);
        self.tablets[table.0].changed.notify_all();
    }

    /// Waits until a table is fresh enough for a read of a worker that has ended `clock` clocks of it; `false`:
    /// `may_stop` said so before.
    ///
    /// # Errors
    /// A run that has failed.
    pub(crate) fn wait(&self, table: TableId, clock: u64, may_stop: impl Fn() -> bool) -> Result<bool, Error> {
        let needed = self.consistency.needs(clock);
        let mut state = self.state(table);
        loop {
            if let Some(error) = self.failure() {
                return Err(error);
            }
            if may_stop() {
                return Ok(false);
            }
            if state.age() >= needed {
                return Ok(true);
            }
            let waited = self.tablets[table.0].changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns the different rows of a list, ascending, to a worker that has ended `clock` clocks of their table.
    pub(crate) fn read(&self, list: &RowList, clock: u64) -> Vec<f32> {
        let mut state = self.state(list.table);
        let staleness = state.age() as i64 - clock as i64 - 1;
        *state.staleness.entry(staleness).or_insert(0) += 1;
        state.bytes += crate::table::bytes(list.distinct * list.width);
        list.distinct_of(&state.values)
    }

    fn state(&self, table: TableId) -> MutexGuard<'_, State> {
        lock(&self.tablets[table.0].state)
    }
}
