//! The handle of one worker thread.

use std::sync::Arc;

use super::key::Key;
use super::shared::Shared;
use crate::Error;
use crate::server::element::{Element, Table, zeroed_words};
use crate::server::statistics::Statistics;

/// One worker thread's access to the tables. All methods are synchronous; only those that read wait.
///
/// A worker begins in clock 0 (after a restart: in that of the checkpoint). A read in clock c with slack s returns values
/// that contain all updates of all workers of clocks up to c - 1 - s, all updates of this worker, and possibly others.
///
/// Dropping it says that this thread needs nobody to wait for it any more; updates since the last clock are sent. If it is
/// dropped by a panic, the run of all processes ends with an error.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    thread: usize,
    clock: u32,
    /// The row read last.
    row: Vec<u64>,
    counters: Statistics,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, thread: usize, clock: u32) -> Self {
        let longest =
            (0..shared.tables.len() as u32).filter_map(|table| Some(shared.tables.kind(table).ok()?.row_bytes));
        let row = zeroed_words(longest.max().unwrap_or(0));
        Self { shared, thread, clock, row, counters: Statistics::default() }
    }

    /// Returns the number of this thread within its process.
    pub fn thread(&self) -> usize {
        self.thread
    }

    /// Returns the number of this worker among all workers of all processes, which have the same number of threads.
    pub fn index(&self) -> usize {
        self.shared.options.client * self.shared.options.threads + self.thread
    }

    /// Returns the clock that it is in: how often it called [`Worker::clock`].
    pub fn current_clock(&self) -> u32 {
        self.clock
    }

    /// Returns a row, which is valid until the next call; waits if no fresh enough version is cached.
    ///
    /// # Errors
    /// If the table is not of this job, or the run has ended: a process is lost, say.
    #[inline]
    pub fn read<T: Element>(&mut self, table: Table<T>, row: u32, slack: u32) -> Result<&[T], Error> {
        let bytes = self.shared.tables.check(table)?.row_bytes;
        let needed = self.clock.saturating_sub(slack);
        let out = &mut bytemuck::cast_slice_mut(&mut self.row)[..bytes];
        let key = Key::new(table.number(), row);
        let version = self.shared.read(key, (needed, self.clock), out, &mut self.counters)?;
        self.counters.count_read(self.clock, version);
        Ok(bytemuck::cast_slice(out))
    }

    /// Copies a row, as [`Worker::read`].
    ///
    /// # Errors
    /// As [`Worker::read`], and if `values` is not as long as a row.
    pub fn read_into<T: Element>(
        &mut self,
        table: Table<T>,
        row: u32,
        slack: u32,
        values: &mut [T],
    ) -> Result<(), Error> {
        self.check_len(table, 1, values.len())?;
        values.copy_from_slice(self.read(table, row, slack)?);
        Ok(())
    }

    /// Copies rows one after the other. Those that are not cached are requested together.
    ///
    /// # Errors
    /// As [`Worker::read_into`].
    pub fn read_rows<T: Element>(
        &mut self,
        table: Table<T>,
        rows: &[u32],
        slack: u32,
        values: &mut [T],
    ) -> Result<(), Error> {
        self.check_len(table, rows.len(), values.len())?;
        if rows.len() > 1 {
            self.refresh_rows(table, rows, slack)?;
        }
        for (&row, values) in rows.iter().zip(values.chunks_exact_mut(table.row_len())) {
            values.copy_from_slice(self.read(table, row, slack)?);
        }
        Ok(())
    }

    /// Updates a row; this worker's reads see it at once, others' after the clock.
    ///
    /// # Errors
    /// If the table is not of this job or `delta` is not as long as a row.
    #[inline]
    pub fn update<T: Element>(&mut self, table: Table<T>, row: u32, delta: &[T]) -> Result<(), Error> {
        self.check_len(table, 1, delta.len())?;
        self.counters.updates += 1;
        let key = Key::new(table.number(), row);
        self.shared.update(key, self.clock, bytemuck::cast_slice(delta), &mut self.counters)
    }

    /// Updates rows; `deltas` has one row after the other.
    ///
    /// # Errors
    /// As [`Worker::update`].
    pub fn update_rows<T: Element>(&mut self, table: Table<T>, rows: &[u32], deltas: &[T]) -> Result<(), Error> {
        self.check_len(table, rows.len(), deltas.len())?;
        for (&row, delta) in rows.iter().zip(deltas.chunks_exact(table.row_len())) {
            self.update(table, row, delta)?;
        }
        Ok(())
    }

    /// Requests a row if the cached one is too old for this slack, and does not wait.
    ///
    /// # Errors
    /// If the table is not of this job.
    pub fn refresh<T: Element>(&mut self, table: Table<T>, row: u32, slack: u32) -> Result<(), Error> {
        self.refresh_rows(table, &[row], slack)
    }

    /// Requests those of the rows that are too old for this slack, together, and does not wait.
    ///
    /// # Errors
    /// If the table is not of this job.
    pub fn refresh_rows<T: Element>(&mut self, table: Table<T>, rows: &[u32], slack: u32) -> Result<(), Error> {
        self.shared.tables.check(table)?;
        let needed = self.clock.saturating_sub(slack);
        self.shared.refresh(table.number(), rows, (needed, self.clock), false);
        Ok(())
    }

    /// Ends a clock: the updates of this worker so far become visible to others within their slack. Does not wait.
    ///
    /// # Errors
    /// If the run has ended.
    pub fn clock(&mut self) -> Result<(), Error> {
        self.report();
        self.clock += 1;
        self.shared.tick(self.thread)
    }

    fn check_len<T: Element>(&self, table: Table<T>, rows: usize, found: usize) -> Result<(), Error> {
        let row_len = self.shared.tables.check(table)?.row_len;
        if rows * row_len == found {
            return Ok(());
        }
        Err(Error::RowLength { table: table.number(), row_len, rows, found })
    }

    /// Adds this thread's counts to those of the process.
    fn report(&mut self) {
        super::dynamic::lock(&self.shared.statistics).add(&std::mem::take(&mut self.counters));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.report();
        if std::thread::panicking() {
            self.shared.fail(Error::ThreadPanicked { thread: self.thread, clock: self.clock });
        } else {
            self.shared.leave(self.thread);
        }
    }
}
