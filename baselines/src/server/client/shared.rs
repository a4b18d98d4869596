//! What the worker threads of a process and its connections share: the process cache, the clocks, the connections.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Instant;

use rustc_hash::FxHashMap;

use super::dynamic::{DynamicCache, Found, lock};
use super::key::Key;
use super::signal::Signal;
use crate::Error;
use crate::server::element::Tables;
use crate::server::frame::{Batch, Frame, Verb};
use crate::server::link::{Counters, Outbox};
use crate::server::options::{Options, Prefetch};
use crate::server::statistics::Statistics;
use crate::server::tablet::{LEFT, home};

/// Rows in one request.
const REQUEST_ROWS: usize = 1 << 14;

/// The connection to one server.
#[derive(Debug)]
pub(super) struct Link {
    /// Empty when it is closed.
    pub(super) outbox: Mutex<Option<Outbox>>,
    pub(super) counters: Arc<Counters>,
    /// The server's global clock, and with it the version of all rows that it pushes here.
    pub(super) global: AtomicU32,
    /// The server has applied this process's updates of all clocks before.
    pub(super) confirmed: AtomicU32,
}

/// The clocks of the worker threads.
#[derive(Debug)]
pub(super) struct Progress {
    clocks: Vec<u32>,
    /// The first clock whose updates are not sent.
    unsent: u32,
    /// The newest clock that a thread is in.
    newest: u32,
}

/// Answers to what one thread at a time asks of all servers.
#[derive(Debug, Default)]
pub(super) struct Replies {
    /// Servers that have answered.
    pub(super) servers: usize,
    /// Rows of a table.
    pub(super) dumped: Vec<Frame>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) tables: Tables,
    pub(super) links: Vec<Link>,
    pub(super) dynamic: DynamicCache,
    /// Rows that are not on the server that their number names.
    pub(super) places: RwLock<FxHashMap<Key, u32>>,
    pub(super) progress: Mutex<Progress>,
    pub(super) signal: Signal,
    pub(super) replies: Mutex<Replies>,
    /// Held by whoever asks all servers for something.
    asking: Mutex<()>,
    pub(super) statistics: Mutex<Statistics>,
    failed: AtomicBool,
    failure: OnceLock<Error>,
}

impl Shared {
    pub(super) fn new(options: Options, tables: Tables, links: Vec<Link>, clock: u32) -> Self {
        let clocks = vec![clock; options.threads];
        Self {
            options,
            tables,
            links,
            dynamic: DynamicCache::new(),
            places: RwLock::default(),
            progress: Mutex::new(Progress { clocks, unsent: clock, newest: clock }),
            signal: Signal::default(),
            replies: Mutex::default(),
            asking: Mutex::default(),
            statistics: Mutex::default(),
            failed: AtomicBool::new(false),
            failure: OnceLock::new(),
        }
    }

    /// Returns the server that stores a row.
    pub(super) fn server(&self, key: Key) -> usize {
        let places = self.places.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        places.get(&key).map_or_else(|| home(key.row(), self.links.len()), |&server| server as usize)
    }

    /// Notes where rows are stored, as a server says.
    pub(super) fn place(&self, frame: &Frame) {
        let mut places = self.places.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (&row, &server) in frame.rows().iter().zip(bytemuck::cast_slice::<u8, u32>(frame.data())) {
            places.insert(Key::new(frame.header().table, row), server);
        }
    }

    pub(super) fn send(&self, server: usize, frame: Frame) {
        if let Some(outbox) = &*lock(&self.links[server].outbox) {
            // A closed connection is noticed where it is read from.
            let _ = outbox.send(frame);
        }
    }

    /// Ends the run for all threads of this process; the first reason counts.
    pub(super) fn fail(&self, error: Error) {
        let _ = self.failure.set(error);
        self.failed.store(true, Ordering::Release);
        self.signal.notify();
    }

    /// Returns the reason if the run has ended.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self.failure.get() {
            Some(error) if self.failed.load(Ordering::Acquire) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Waits until `ready` returns something, which is asked again after each arrival.
    pub(super) fn wait<T>(&self, mut ready: impl FnMut() -> Option<T>) -> Result<T, Error> {
        loop {
            let seen = self.signal.now();
            if let Some(value) = ready() {
                return Ok(value);
            }
            self.check()?;
            self.signal.wait_past(seen);
        }
    }

    fn pushed(&self, key: Key) -> u32 {
        if self.options.push { self.links[self.server(key)].global.load(Ordering::Acquire) } else { 0 }
    }

    /// Copies a row of at least version `needed` from the process cache, and waits for it if it is not there; returns its
    /// version.
    pub(super) fn read(
        &self,
        key: Key,
        (needed, clock): (u32, u32),
        out: &mut [u8],
        counters: &mut Statistics,
    ) -> Result<u32, Error> {
        let mut look = |counters: &mut Statistics| {
            let found = self.dynamic.read(key, (needed, clock), self.pushed(key), self.options.push, out, counters);
            if let Found::Absent { request: true } = found {
                self.request(&mut vec![key], needed);
            }
            found
        };
        if let Found::Row(version) = look(counters) {
            counters.process_cache_hits += 1;
            return Ok(version);
        }
        counters.misses += 1;
        let begin = Instant::now();
        let version = self.wait(|| match look(counters) {
            Found::Row(version) => Some(version),
            Found::Absent { .. } => None,
        });
        counters.wait += begin.elapsed();
        version
    }

    /// Requests those of the rows that are not cached or too old, without waiting.
    pub(super) fn refresh(&self, table: u32, rows: &[u32], (needed, clock): (u32, u32), freshest: bool) {
        let push = self.options.push;
        let keys = rows.iter().map(|&row| Key::new(table, row));
        let wanted = |&key: &Key| self.dynamic.wants(key, (needed, clock), self.pushed(key), push, freshest);
        self.request(&mut keys.filter(wanted).collect(), needed);
    }

    /// Asks the servers for rows of at least this version.
    fn request(&self, keys: &mut Vec<Key>, version: u32) {
        keys.sort_unstable_by_key(|&key| (self.server(key), key));
        let register = u32::from(self.options.push);
        for group in keys.chunk_by(|&a, &b| self.server(a) == self.server(b) && a.table() == b.table()) {
            for group in group.chunks(REQUEST_ROWS) {
                let rows: Vec<u32> = group.iter().map(|key| key.row()).collect();
                let frame = Frame::with_rows(Verb::Read, group[0].table(), &rows, &[]);
                let frame = frame.set(|header| (header.version, header.flags) = (version, register));
                self.send(self.server(group[0]), frame);
            }
        }
    }

    /// Applies an update of a clock to the process cache and logs it.
    pub(super) fn update(&self, key: Key, clock: u32, delta: &[u8], counters: &mut Statistics) -> Result<(), Error> {
        let kind = self.tables.kind(key.table())?;
        let confirmed = self.links[self.server(key)].confirmed.load(Ordering::Acquire);
        self.dynamic.update(key, clock, kind, delta, confirmed, counters);
        Ok(())
    }

    /// A thread ends a clock. The last of the process sends the process's updates of that clock.
    pub(super) fn tick(&self, thread: usize) -> Result<(), Error> {
        self.check()?;
        let mut progress = lock(&self.progress);
        progress.clocks[thread] += 1;
        let clock = progress.clocks[thread];
        self.send_ended(&mut progress);
        let first = clock > progress.newest;
        progress.newest = progress.newest.max(clock);
        drop(progress);
        if first {
            self.prefetch(clock);
        }
        Ok(())
    }

    /// A thread ends; when all have, the servers are told not to wait for this process.
    pub(super) fn leave(&self, thread: usize) {
        let mut progress = lock(&self.progress);
        progress.clocks[thread] = LEFT;
        self.send_ended(&mut progress);
        if progress.clocks.iter().all(|&clock| clock == LEFT) {
            self.flush(LEFT);
            self.send_all(|| Frame::new(Verb::Leave));
        }
    }

    /// Sends the updates of clocks that all threads have ended.
    fn send_ended(&self, progress: &mut Progress) {
        let ended = progress.clocks.iter().copied().min().unwrap_or(0).min(progress.newest);
        let ended = progress.clocks.iter().copied().filter(|&clock| clock != LEFT).min().unwrap_or(ended);
        while progress.unsent < ended {
            let clock = progress.unsent;
            self.flush(clock);
            self.send_all(|| Frame::new(Verb::Clock).set(|header| header.clock = clock));
            progress.unsent += 1;
        }
    }

    /// Sends the updates of clocks up to this one.
    fn flush(&self, clock: u32) {
        let mut batches: Vec<Vec<Option<Batch>>> = Vec::new();
        batches.resize_with(self.links.len(), || (0..self.tables.len()).map(|_| None).collect());
        self.dynamic.flush(clock, |key, delta| {
            let (server, table) = (self.server(key), key.table());
            let Ok(kind) = self.tables.kind(table) else { return };
            let batch = batches[server][table as usize].get_or_insert_with(|| Batch::new(Verb::Update, table));
            if let Some(frame) = batch.push(key.row(), &delta[..kind.row_bytes]) {
                self.send(server, frame);
            }
        });
        for (server, batches) in batches.into_iter().enumerate() {
            for frame in batches.into_iter().flatten().filter_map(Batch::finish) {
                self.send(server, frame);
            }
        }
    }

    /// The first thread is in a new clock: requests what the process will need.
    fn prefetch(&self, clock: u32) {
        if self.options.prefetch == Prefetch::Off {
            return;
        }
        let needed = clock.saturating_sub(self.options.slack);
        let freshest = self.options.prefetch == Prefetch::Aggressive;
        let mut keys = Vec::new();
        self.dynamic.prefetch((needed, clock), |key| self.pushed(key), freshest, &mut keys);
        self.request(&mut keys, needed);
    }

    pub(super) fn send_all(&self, frame: impl Fn() -> Frame) {
        for server in 0..self.links.len() {
            self.send(server, frame());
        }
    }

    /// Sends the same to all servers and waits until each has answered; returns the rows that came.
    pub(super) fn ask(&self, frame: impl Fn() -> Frame) -> Result<Vec<Frame>, Error> {
        let _turn = lock(&self.asking);
        *lock(&self.replies) = Replies::default();
        self.send_all(frame);
        self.wait(|| {
            let mut replies = lock(&self.replies);
            (replies.servers == self.links.len()).then(|| std::mem::take(&mut replies.dumped))
        })
    }
}
