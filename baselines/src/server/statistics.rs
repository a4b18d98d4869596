//! What a client process has counted.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use crate::crew::lock;

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
    /// Accesses to rows that were not reported, after accesses were gathered.
    pub unreported: u64,
    /// Locks of shared rows, taken by worker threads.
    pub row_locks: u64,
    /// Those that another thread held at that moment.
    pub contended_row_locks: u64,
    /// How many reads had which staleness: entry i counts reads whose data were of age `clock - 1 - i`, so 0 is fresh.
    pub staleness: Vec<u64>,
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
        self.unreported += other.unreported;
        self.row_locks += other.row_locks;
        self.contended_row_locks += other.contended_row_locks;
        if self.staleness.len() < other.staleness.len() {
            self.staleness.resize(other.staleness.len(), 0);
        }
        for (sum, count) in self.staleness.iter_mut().zip(&other.staleness) {
            *sum += count;
        }
    }
}
