//! The handle of one worker thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use megagrid_partition::parallel::lock;

use super::dynamic::Wanted;
use super::gather::{Gather, Recording};
use super::key::Key;
use super::shared::Shared;
use super::thread_cache::{Place, ThreadRows};
use crate::Error;
use crate::server::element::{Element, Table, zeroed_words};
use crate::server::numa;
use crate::server::options::ThreadCache;
use crate::server::statistics::{Preprocessing, Statistics, timed};

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
    /// The row read last, as long as the longest.
    row: Vec<u64>,
    cache: Option<ThreadRows>,
    /// Bytes of the cache that were reported.
    cache_bytes: u64,
    /// While accesses are gathered.
    recording: Option<Recording>,
    counters: Statistics,
    /// Time blocked for rows, up to what `counters` has.
    waited: Duration,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, thread: usize, clock: u32) -> Self {
        let longest =
            (0..shared.tables.len() as u32).filter_map(|table| Some(shared.tables.kind(table).ok()?.row_bytes));
        let longest = longest.max().unwrap_or(0);
        let cache = match shared.options.specializations.thread_cache {
            ThreadCache::Lru { capacity } if capacity > 0 => Some(ThreadRows::lru(capacity, longest)),
            _ => None,
        };
        let counters = Statistics::default();
        Self {
            shared,
            thread,
            clock,
            row: zeroed_words(longest),
            cache,
            cache_bytes: 0,
            recording: None,
            counters,
            waited: Duration::ZERO,
        }
    }

    /// Returns the number of this thread within its process.
    pub fn thread(&self) -> usize {
        self.thread
    }

    /// Returns the number of this worker among all workers of all processes, which have the same number of threads.
    pub fn index(&self) -> usize {
        self.shared.options.client * self.shared.options.threads + self.thread
    }

    /// Returns how long it was blocked for rows so far.
    pub fn waited(&self) -> Duration {
        self.waited + self.counters.wait
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
        let key = Key::new(table.number(), row);
        if let Some(recording) = &mut self.recording {
            recording.access(key, false);
            if recording.mode == Gather::Virtual {
                return Ok(bytemuck::cast_slice(self.shared.tables.kind(key.table())?.identity()));
            }
        }
        let wanted = Wanted::new(self.clock, slack);
        let row = match &mut self.cache {
            Some(cache) => match cache.place(key, self.clock, &self.shared, &mut self.counters)? {
                Place::Cached(slot) => {
                    let version = cache.read(slot, wanted, &self.shared, &mut self.counters)?;
                    self.counters.count_read(self.clock, version);
                    return Ok(bytemuck::cast_slice(cache.row(slot, bytes)));
                }
                Place::Shared(row) => row,
            },
            None => key.into(),
        };
        let out = &mut bytemuck::cast_slice_mut(&mut self.row)[..bytes];
        let version = self.shared.read(row, wanted, out, &mut self.counters)?;
        self.counters.count_read(self.clock, version);
        Ok(bytemuck::cast_slice(out))
    }

    /// Copies rows one after the other. Those that are not cached are requested together.
    ///
    /// # Errors
    /// As [`Worker::read`], and if `values` is not as long as the rows.
    pub fn read_rows<T: Element>(
        &mut self,
        table: Table<T>,
        rows: &[u32],
        slack: u32,
        values: &mut [T],
    ) -> Result<(), Error> {
        self.check_len(table, rows.len(), values.len())?;
        if rows.len() > 1 && self.cache.is_none() {
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
        let key = Key::new(table.number(), row);
        if let Some(recording) = &mut self.recording {
            recording.access(key, true);
            if recording.mode == Gather::Virtual {
                return Ok(());
            }
        }
        self.counters.updates += 1;
        let delta = bytemuck::cast_slice(delta);
        let row = match &mut self.cache {
            Some(cache) => match cache.place(key, self.clock, &self.shared, &mut self.counters)? {
                Place::Cached(slot) => {
                    self.counters.thread_cache_hits += 1;
                    cache.update(slot, self.shared.tables.kind(table.number())?, delta);
                    return Ok(());
                }
                Place::Shared(row) => row,
            },
            None => key.into(),
        };
        self.shared.update(row, self.clock, delta, &mut self.counters)
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

    /// Requests those of the rows that are too old for this slack, together, and does not wait.
    ///
    /// # Errors
    /// If the table is not of this job.
    pub fn refresh_rows<T: Element>(&mut self, table: Table<T>, rows: &[u32], slack: u32) -> Result<(), Error> {
        self.shared.tables.check(table)?;
        if !self.is_virtual() {
            let keys = rows.iter().map(|&row| Key::new(table.number(), row));
            self.shared.refresh(keys, Wanted::new(self.clock, slack));
        }
        Ok(())
    }

    /// Ends a clock: the updates of this worker so far become visible to others within their slack. Does not wait.
    ///
    /// # Errors
    /// If the run has ended.
    pub fn clock(&mut self) -> Result<(), Error> {
        if let Some(recording) = &mut self.recording {
            recording.clock();
        }
        if self.is_virtual() {
            return Ok(());
        }
        self.hand_over()?;
        self.report();
        self.clock += 1;
        self.shared.tick(self.thread)
    }

    /// Begins to gather the accesses of an iteration. All workers of all processes do so in the same clock, once.
    pub fn start_gather(&mut self, how: Gather) {
        self.recording = Some(Recording::new(how));
    }

    /// Ends it, and waits for all workers of all processes: rows are placed, laid out and cached as
    /// [`Specializations`](crate::server::Specializations) say. An iteration may have several clocks. Nothing happens if
    /// gathering has not begun.
    ///
    /// Accesses of later iterations that differ are correct, and slower.
    ///
    /// # Errors
    /// If accesses were gathered before, threads are in different clocks, or the run has ended.
    pub fn finish_gather(&mut self) -> Result<(), Error> {
        let Some(recording) = self.recording.take() else { return Ok(()) };
        let (mut took, ended) = (Preprocessing::default(), Instant::now());
        if recording.mode == Gather::Virtual {
            took.gather = ended - recording.begun;
        }
        let options = &self.shared.options;
        if options.specializations.numa {
            numa::bind_thread(self.thread, options.threads);
        }
        let specialized = self.shared.finish_gather(self.thread, recording)?;
        if matches!(options.specializations.thread_cache, ThreadCache::Static { .. }) {
            let longest = size_of_val(self.row.as_slice());
            let make = || ThreadRows::fixed(specialized, self.thread, longest, &self.shared);
            self.cache = Some(timed(&mut took.thread_caches, make)?);
        }
        took.whole = took.gather + ended.elapsed();
        self.counters.add(&Statistics { preprocessing: took, ..Statistics::default() });
        Ok(())
    }

    fn is_virtual(&self) -> bool {
        self.recording.as_ref().is_some_and(|recording| recording.mode == Gather::Virtual)
    }

    /// Hands the updates in the thread cache to the process.
    fn hand_over(&mut self) -> Result<(), Error> {
        match &mut self.cache {
            Some(cache) => cache.flush(self.clock, &self.shared, &mut self.counters),
            None => Ok(()),
        }
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
        self.waited += self.counters.wait;
        let bytes = self.cache.as_ref().map_or(0, ThreadRows::bytes);
        self.counters.thread_cache_bytes += bytes - std::mem::replace(&mut self.cache_bytes, bytes);
        lock(&self.shared.statistics).add(&std::mem::take(&mut self.counters));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.fail(Error::ThreadPanicked { thread: self.thread, clock: self.clock });
            return;
        }
        if let Err(error) = self.hand_over() {
            self.shared.fail(error);
        }
        self.report();
        self.shared.leave(self.thread);
    }
}
