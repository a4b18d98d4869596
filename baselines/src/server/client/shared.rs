//! What the worker threads of a process and its connections share: the process cache, the clocks, the connections.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use megagrid_partition::parallel::lock;
use rustc_hash::FxHashSet;

use super::dynamic::{DynamicCache, Found, Wanted};
use super::fixed::FixedCache;
use super::gather::{Pattern, Recording};
use super::key::{Key, Located};
use super::links::Links;
use super::signal::Signal;
use crate::Error;
use crate::server::element::Tables;
use crate::server::frame::{Frame, Verb};
use crate::server::options::{Options, Prefetch};
use crate::server::statistics::Statistics;
use crate::server::tablet::LEFT;

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

/// What is known of an iteration, and made from it.
#[derive(Debug)]
pub(super) struct Specialized {
    pub(super) pattern: Pattern,
    /// Absent without static structures.
    pub(super) fixed: Option<FixedCache>,
    /// The clock in which the first iteration began.
    pub(super) origin: u32,
    /// By clock of the iteration: rows that were read there though nobody has reported it, and had to be requested one by one. From then
    /// on they are requested with the others.
    pub(super) unlisted: Vec<Mutex<FxHashSet<Key>>>,
}

impl Specialized {
    /// Returns the rows read in a clock, first reads first.
    pub(super) fn reads(&self, clock: u32) -> [&[Key]; 2] {
        let [early, rest, _] = &self.pattern.phases[self.phase(clock)].lists;
        [early, rest]
    }

    /// Notes a row that a read in this clock had to request.
    pub(super) fn list(&self, key: Key, clock: u32) {
        lock(&self.unlisted[self.phase(clock)]).insert(key);
    }

    /// Returns the rows that were noted in the same clock of iterations before.
    pub(super) fn unlisted(&self, clock: u32) -> Vec<Key> {
        lock(&self.unlisted[self.phase(clock)]).iter().copied().collect()
    }

    fn phase(&self, clock: u32) -> usize {
        clock.wrapping_sub(self.origin) as usize % self.pattern.phases.len()
    }
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) tables: Tables,
    pub(super) links: Arc<Links>,
    pub(super) dynamic: DynamicCache,
    /// Set once, when accesses were gathered.
    pub(super) specialized: OnceLock<Specialized>,
    /// Recordings of the threads that have ended gathering.
    pub(super) recordings: Mutex<Vec<Option<Recording>>>,
    progress: Mutex<Progress>,
    /// 1 + the newest clock whose rows were prefetched.
    prefetched: AtomicU32,
    pub(super) signal: Signal,
    pub(super) replies: Mutex<Replies>,
    /// Held by whoever asks all servers for something.
    asking: Mutex<()>,
    pub(super) statistics: Mutex<Statistics>,
    failure: OnceLock<Error>,
}

impl Shared {
    pub(super) fn new(options: Options, tables: Tables, links: Links, clock: u32) -> Self {
        let (clocks, links) = (vec![clock; options.threads], Arc::new(links));
        Self {
            recordings: Mutex::new((0..options.threads).map(|_| None).collect()),
            dynamic: DynamicCache::new(links.clone(), options.cached_rows),
            options,
            tables,
            links,
            specialized: OnceLock::new(),
            progress: Mutex::new(Progress { clocks, unsent: clock, newest: clock }),
            prefetched: AtomicU32::new(0),
            signal: Signal::default(),
            replies: Mutex::default(),
            asking: Mutex::default(),
            statistics: Mutex::default(),
            failure: OnceLock::new(),
        }
    }

    /// Returns the static process cache, if there is one by now.
    #[inline]
    pub(super) fn fixed(&self) -> Option<&FixedCache> {
        self.specialized.get()?.fixed.as_ref()
    }

    /// Ends the run for all threads of this process; the first reason counts.
    pub(super) fn fail(&self, error: Error) {
        let _ = self.failure.set(error);
        self.signal.notify();
    }

    /// Returns the reason if the run has ended.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.failure.get().map_or(Ok(()), |error| Err(error.clone()))
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

    /// Copies a row that is fresh enough from the process cache, and waits for it if it is not there; returns its version.
    pub(super) fn read(
        &self,
        row: Located,
        wanted: Wanted,
        out: &mut [u8],
        counters: &mut Statistics,
    ) -> Result<u32, Error> {
        if let Found::Row(version) = self.look(row, wanted, out, counters) {
            return Ok(version);
        }
        let begin = Instant::now();
        let version = self.wait(|| match self.look(row, wanted, out, counters) {
            Found::Row(version) => Some(version),
            Found::Absent { .. } => None,
        });
        counters.wait += begin.elapsed();
        version
    }

    /// Looks once; requests a row that is not there.
    #[inline]
    fn look(&self, row: Located, wanted: Wanted, out: &mut [u8], counters: &mut Statistics) -> Found {
        let fixed = self.fixed();
        let known = fixed.and_then(|fixed| fixed.read(row, wanted, out, counters));
        let found = known.unwrap_or_else(|| {
            counters.unreported += u64::from(fixed.is_some());
            self.dynamic.read(row.key, wanted, out, counters)
        });
        if let Found::Absent { request } = found {
            if request {
                self.links.request(&[row.key], wanted.needed);
                if let Some(specialized) = self.specialized.get().filter(|_| self.options.prefetch != Prefetch::Off) {
                    specialized.list(row.key, wanted.clock);
                }
            }
            // The first clock after gathering is not begun by a tick.
            self.prefetch(wanted.clock);
        }
        found
    }

    /// Requests those of the rows that are not cached or too old, without waiting.
    pub(super) fn refresh(&self, keys: impl Iterator<Item = Key>, wanted: Wanted) {
        let fixed = self.fixed();
        let wants = |key| fixed.and_then(|fixed| fixed.wants(key, wanted));
        let wants = |&key: &Key| wants(key).unwrap_or_else(|| self.dynamic.wants(key, wanted));
        self.links.request(&keys.filter(wants).collect::<Vec<_>>(), wanted.needed);
    }

    /// Applies an update of a clock to the process cache and logs it.
    pub(super) fn update(
        &self,
        row: Located,
        clock: u32,
        delta: &[u8],
        counters: &mut Statistics,
    ) -> Result<(), Error> {
        let fixed = self.fixed();
        if fixed.is_some_and(|fixed| fixed.update(row, clock, delta, counters)) {
            return Ok(());
        }
        counters.unreported += u64::from(fixed.is_some());
        self.dynamic.update(row.key, clock, self.tables.kind(row.key.table())?, delta, counters);
        Ok(())
    }

    /// A thread ends a clock. The last of the process sends the process's updates of that clock.
    pub(super) fn tick(&self, thread: usize) -> Result<(), Error> {
        self.check()?;
        let mut progress = lock(&self.progress);
        progress.clocks[thread] += 1;
        let clock = progress.clocks[thread];
        self.send_ended(&mut progress);
        progress.newest = progress.newest.max(clock);
        drop(progress);
        self.prefetch(clock);
        Ok(())
    }

    /// A thread ends; when all have, the servers are told not to wait for this process.
    pub(super) fn leave(&self, thread: usize) {
        let mut progress = lock(&self.progress);
        progress.clocks[thread] = LEFT;
        self.send_ended(&mut progress);
        if progress.clocks.iter().all(|&clock| clock == LEFT) {
            self.flush(LEFT);
            self.links.send_all(|| Frame::new(Verb::Leave));
        }
    }

    /// Returns the clock that all threads are in.
    pub(super) fn common_clock(&self) -> Result<u32, Error> {
        let progress = lock(&self.progress);
        if progress.clocks.iter().any(|&clock| clock != progress.newest) {
            return Err(Error::Options("all threads gather the same clocks".into()));
        }
        Ok(progress.newest)
    }

    /// Sends the updates of clocks that all threads have ended. A thread that has left counts as ended.
    fn send_ended(&self, progress: &mut Progress) {
        let present = progress.clocks.iter().copied().filter(|&clock| clock != LEFT).min();
        let ended = present.unwrap_or(progress.newest);
        while progress.unsent < ended {
            let clock = progress.unsent;
            self.flush(clock);
            self.links.send_all(|| Frame::new(Verb::Clock).set(|header| header.clock = clock));
            progress.unsent += 1;
        }
    }

    /// Sends the updates of clocks up to this one.
    fn flush(&self, clock: u32) {
        let mut batches = self.links.batches(Verb::Update, &self.tables);
        let mut send = |server, key: Key, delta: &[u8]| {
            if let Ok(kind) = self.tables.kind(key.table()) {
                batches.push(server, key, &delta[..kind.row_bytes]);
            }
        };
        if let Some(specialized @ Specialized { fixed: Some(fixed), .. }) = self.specialized.get() {
            fixed.flush(clock, specialized.phase(clock), &mut send);
        }
        self.dynamic.flush(clock, &mut send);
        batches.finish();
    }

    /// Requests what will be read in a clock, when the first thread is in it.
    fn prefetch(&self, clock: u32) {
        let first = self.prefetched.load(Ordering::Relaxed) <= clock
            && self.prefetched.fetch_max(clock + 1, Ordering::Relaxed) <= clock;
        if !first || self.options.prefetch == Prefetch::Off {
            return;
        }
        let mut wanted = Wanted::new(clock, self.options.slack);
        if self.options.prefetch == Prefetch::Aggressive {
            wanted.target = clock;
        }
        let Some(specialized) = self.specialized.get() else {
            // Before anything is known, rows are expected again after a clock in which they were read.
            return self.links.request(&self.dynamic.prefetch(wanted), wanted.needed);
        };
        match &specialized.fixed {
            Some(fixed) => fixed.prefetch(wanted, specialized.phase(clock)),
            None => specialized.reads(clock).iter().for_each(|list| self.refresh(list.iter().copied(), wanted)),
        }
        self.refresh(specialized.unlisted(clock).into_iter(), wanted);
    }

    /// Has the rows of this clock prefetched again: what was requested before gathering ended is not kept.
    pub(super) fn forget_prefetch(&self, clock: u32) {
        self.prefetched.store(clock, Ordering::Relaxed);
    }

    /// Sends the same to all servers and waits until each has answered; returns the rows that came.
    pub(super) fn ask(&self, frame: impl Fn() -> Frame) -> Result<Vec<Frame>, Error> {
        let _turn = lock(&self.asking);
        *lock(&self.replies) = Replies::default();
        self.links.send_all(frame);
        self.wait(|| {
            let mut replies = lock(&self.replies);
            (replies.servers == self.links.all.len()).then(|| std::mem::take(&mut replies.dumped))
        })
    }
}
