//! What a client process has counted.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use megagrid_partition::parallel::lock;

/// What it took to gather accesses and to specialize to them (IterStore, Figure 6c), each part by the thread that took longest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preprocessing {
    /// A virtual iteration.
    pub gather: Duration,
    /// Bringing together what the threads of the process have gathered.
    pub merge: Duration,
    /// Placing rows on machines.
    pub placement: Duration,
    /// Making the static process cache.
    pub static_structures: Duration,
    /// Choosing the rows that threads cache.
    pub choice: Duration,
    /// Making threads' caches.
    pub thread_caches: Duration,
    /// All of it, with what threads and processes wait for each other.
    pub whole: Duration,
}

impl Preprocessing {
    /// Takes the longer of each part.
    fn take_longer(&mut self, other: &Self) {
        let Self { gather, merge, placement, static_structures, choice, thread_caches, whole } = self;
        let mine = [gather, merge, placement, static_structures, choice, thread_caches, whole];
        let theirs = [
            other.gather,
            other.merge,
            other.placement,
            other.static_structures,
            other.choice,
            other.thread_caches,
            other.whole,
        ];
        mine.into_iter().zip(theirs).for_each(|(mine, theirs)| *mine = theirs.max(*mine));
    }
}

/// Does something, and says how long it took.
pub(super) fn timed<T>(took: &mut Duration, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let done = work();
    *took = begin.elapsed();
    done
}

/// Counts of a client process, over all its threads and connections.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statistics {
    /// Bytes sent to tablet servers.
    pub sent_bytes: u64,
    /// Bytes received from them.
    pub received_bytes: u64,
    /// The part of both that went to or from the client's own server ([`super::Options::own_server`]).
    pub own_server_bytes: u64,
    /// The messages that went there, or came from there.
    pub own_server_messages: u64,
    /// Messages sent.
    pub sent_messages: u64,
    /// Messages received.
    pub received_messages: u64,
    /// Time that worker threads were blocked for rows, summed over threads.
    pub wait: Duration,
    /// Rows read.
    pub reads: u64,
    /// Rows updated.
    pub updates: u64,
    /// Reads and updates that the thread cache served.
    pub thread_cache_hits: u64,
    /// Bytes of rows in threads' caches, with the updates of these.
    pub thread_cache_bytes: u64,
    /// Accesses to rows that were not reported, after accesses were gathered.
    pub unreported: u64,
    /// Locks of shared rows, taken by worker threads.
    pub row_locks: u64,
    /// Those that another thread held at that moment.
    pub contended_row_locks: u64,
    /// How many reads had which staleness: entry i counts reads whose data were of age `clock - 1 - i`, so 0 is fresh.
    pub staleness: Vec<u64>,
    /// What gathering accesses and specializing to them took.
    pub preprocessing: Preprocessing,
}

impl Statistics {
    /// Counts a read of data of this version by a thread at `clock`; versions beyond the clock are fresh.
    #[inline]
    pub(super) fn count_read(&mut self, clock: u32, version: u32) {
        let behind = clock.saturating_sub(version) as usize;
        if behind >= self.staleness.len() {
            self.staleness.resize(behind + 1, 0);
        }
        self.staleness[behind] += 1;
        self.reads += 1;
    }

    /// Locks shared rows and counts it, and whether another thread held them.
    #[inline]
    pub(super) fn lock<'a, T>(&mut self, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
        self.row_locks += 1;
        match mutex.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.contended_row_locks += 1;
                lock(mutex)
            }
        }
    }

    /// Adds what another has counted.
    pub fn add(&mut self, other: &Self) {
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.own_server_bytes += other.own_server_bytes;
        self.own_server_messages += other.own_server_messages;
        self.sent_messages += other.sent_messages;
        self.received_messages += other.received_messages;
        self.wait += other.wait;
        self.reads += other.reads;
        self.updates += other.updates;
        self.thread_cache_hits += other.thread_cache_hits;
        self.thread_cache_bytes += other.thread_cache_bytes;
        self.unreported += other.unreported;
        self.row_locks += other.row_locks;
        self.contended_row_locks += other.contended_row_locks;
        self.preprocessing.take_longer(&other.preprocessing);
        if self.staleness.len() < other.staleness.len() {
            self.staleness.resize(other.staleness.len(), 0);
        }
        for (sum, count) in self.staleness.iter_mut().zip(&other.staleness) {
            *sum += count;
        }
    }
}
