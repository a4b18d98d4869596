//! The server of one process: of each table its rows, with their own lock, vector clock and data age (section 4.3.2).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use megagrid_partition::parallel::lock;

use super::inbox::{Reader, Rows};
use crate::Error;
use crate::rows;
use crate::table::{RowList, TableId};

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

/// Updates of different rows, ascending: sums of what a worker's batch has of each.
#[derive(Clone, Debug)]
pub(super) struct Update {
    pub list: RowList,
    pub values: Vec<f32>,
}

/// A worker that asks for rows.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub list: RowList,
    pub worker: usize,
    /// Clocks of the table that it has ended.
    pub clock: u64,
    /// Where the rows go.
    pub to: Arc<dyn Reader>,
}

/// The server of a process. Rows have the numbers that they have here.
#[derive(Debug)]
pub(super) struct Tablets {
    pub consistency: Consistency,
    workers: usize,
    tablets: Vec<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    values: Vec<f32>,
    /// Clocks that each worker has ended.
    clocks: Vec<u64>,
    /// Clocks of each worker that are not added yet, the oldest first.
    held: Vec<VecDeque<Vec<Update>>>,
    /// Those who wait until the table is fresh enough.
    waiting: Vec<Ask>,
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

    /// Tells whether a reader can have its rows.
    fn is_ready(&self, ask: &Ask, consistency: Consistency) -> bool {
        self.age() >= consistency.needs(ask.clock)
    }

    fn rows(&mut self, ask: &Ask, consistency: Consistency) -> Rows {
        self.bytes += crate::table::bytes(ask.list.distinct * ask.list.width);
        let included = if consistency == Consistency::Bsp { self.age() } else { self.clocks[ask.worker] };
        let staleness = self.age() as i64 - ask.clock as i64 - 1;
        Rows { staleness, included, values: ask.list.distinct_of(&self.values) }
    }
}

impl Tablets {
    /// Makes a server whose tables are zeros, of as many values each as `lens` says.
    ///
    /// # Errors
    /// Tables that this machine has no memory for.
    pub fn new(lens: impl Iterator<Item = usize>, workers: usize, consistency: Consistency) -> Result<Self, Error> {
        let tablet = |len: usize| {
            let state = State {
                values: rows::zeros(len)?,
                clocks: vec![0; workers],
                held: vec![VecDeque::new(); workers],
                waiting: Vec::new(),
                bytes: 0,
            };
            Ok::<_, Error>(Mutex::new(state))
        };
        Ok(Self { consistency, workers, tablets: lens.map(tablet).collect::<Result<_, _>>()? })
    }

    /// Sets the values of a table, before any worker reads.
    pub fn set(&self, table: TableId, values: &[f32]) {
        lock(&self.tablets[table.0]).values.copy_from_slice(values);
    }

    /// Returns the values of all tables, with all that has been added.
    pub fn values(&self) -> Vec<Vec<f32>> {
        self.tablets.iter().map(|tablet| lock(tablet).values.clone()).collect()
    }

    /// Returns the bytes of rows that workers have read, and of their updates.
    pub fn bytes(&self) -> u64 {
        self.tablets.iter().map(|tablet| lock(tablet).bytes).sum()
    }

    /// Ends a clock of a worker on a table.
    pub fn commit(&self, worker: usize, table: TableId, updates: Vec<Update>) {
        let mut state = lock(&self.tablets[table.0]);
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
        let waiting = std::mem::take(&mut state.waiting);
        let (ready, waiting) = waiting.into_iter().partition(|ask| state.is_ready(ask, self.consistency));
        state.waiting = waiting;
        let ready: Vec<Ask> = ready;
        let answers: Vec<Rows> = ready.iter().map(|ask| state.rows(ask, self.consistency)).collect();
        // Whoever takes them may have to wait for a connection.
        drop(state);
        ready.iter().zip(answers).for_each(|(ask, rows)| ask.to.take(ask.worker, rows));
    }

    /// Gives rows to whoever asks for them, as soon as they are fresh enough.
    pub fn ask(&self, ask: Ask) {
        let mut state = lock(&self.tablets[ask.list.table.0]);
        if state.is_ready(&ask, self.consistency) {
            let rows = state.rows(&ask, self.consistency);
            drop(state);
            ask.to.take(ask.worker, rows);
        } else {
            state.waiting.push(ask);
        }
    }
}
