//! The process cache and operation log for any rows: a hash map in shards, each with a lock.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use rustc_hash::FxHashMap;

use super::key::Key;
use crate::server::element::Kind;
use crate::server::statistics::Statistics;

/// Shards of the hash map: enough that threads seldom meet by chance.
const SHARDS: usize = 128;

/// A row as this process knows it.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// What the server sent last and the updates of this process after it; empty until something arrived.
    values: Box<[u64]>,
    /// All updates of clocks before this one are in `values`.
    version: u32,
    /// A version that is requested and has not arrived.
    requested: Option<u32>,
    /// The clock in which it was last read.
    used: u32,
    /// The server pushes it.
    registered: bool,
    /// Updates of this process by clock, which the last received values may not contain.
    logs: Vec<(u32, Box<[u64]>)>,
}

#[derive(Debug, Default)]
struct Shard {
    rows: FxHashMap<Key, Row>,
    /// Rows with updates of a clock that is not sent yet.
    unsent: Vec<(u32, Key)>,
}

/// What a look into the cache found.
pub(super) enum Found {
    /// The values were copied; of this version.
    Row(u32),
    /// Not there or too old. `request`: nobody has asked the server for it.
    Absent {
        /// Whether the caller is to do so.
        request: bool,
    },
}

/// Rows by key.
#[derive(Debug)]
pub(super) struct DynamicCache {
    shards: Box<[Mutex<Shard>]>,
}

impl DynamicCache {
    pub(super) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    fn shard(&self, key: Key) -> &Mutex<Shard> {
        &self.shards[key.spread() % SHARDS]
    }

    /// Copies a row of at least version `needed` to `out`. `pushed` is the version of all rows that the server pushes.
    pub(super) fn read(
        &self,
        key: Key,
        (needed, clock): (u32, u32),
        pushed: u32,
        push: bool,
        out: &mut [u8],
        counters: &mut Statistics,
    ) -> Found {
        let mut shard = lock_counted(self.shard(key), counters);
        let row = shard.rows.entry(key).or_default();
        row.used = clock;
        let version = if row.registered { row.version.max(pushed) } else { row.version };
        if !row.values.is_empty() && version >= needed {
            out.copy_from_slice(&bytemuck::cast_slice(&row.values)[..out.len()]);
            return Found::Row(version);
        }
        // A registered row comes by itself.
        let request = !row.registered && row.requested.is_none_or(|requested| requested < needed);
        if request {
            row.requested = Some(needed);
            row.registered = push;
        }
        Found::Absent { request }
    }

    /// Notes that a row is about to be requested; `false` if it need not be. With `freshest`, a row that is fresh enough but
    /// not of version `clock` is requested too.
    pub(super) fn wants(&self, key: Key, (needed, clock): (u32, u32), pushed: u32, push: bool, freshest: bool) -> bool {
        let mut shard = lock(self.shard(key));
        let row = shard.rows.entry(key).or_default();
        row.used = clock;
        row.wants(needed, if freshest { clock } else { needed }, pushed, push)
    }

    /// Adds to `requests` the rows that were used in the clock before `clock` and should be requested again.
    pub(super) fn prefetch(
        &self,
        (needed, clock): (u32, u32),
        pushed: impl Fn(Key) -> u32,
        freshest: bool,
        requests: &mut Vec<Key>,
    ) {
        for shard in &self.shards {
            for (&key, row) in &mut lock(shard).rows {
                let recent = row.used + 1 >= clock && !row.values.is_empty();
                if recent && row.wants(needed, if freshest { clock } else { needed }, pushed(key), false) {
                    requests.push(key);
                }
            }
        }
    }

    /// Applies an update of a clock to the cached values and logs it. `confirmed`: the server has applied all updates of
    /// this process before that clock.
    pub(super) fn update(
        &self,
        key: Key,
        clock: u32,
        kind: &Kind,
        delta: &[u8],
        confirmed: u32,
        counters: &mut Statistics,
    ) {
        let mut shard = lock_counted(self.shard(key), counters);
        let shard = &mut *shard;
        let row = shard.rows.entry(key).or_default();
        if !row.values.is_empty() {
            kind.merge(bytes_mut(&mut row.values, kind), delta);
        }
        // The newest clock is usually the last.
        let position = row.logs.iter().rposition(|&(logged, _)| logged == clock).unwrap_or_else(|| {
            row.logs.retain(|&(logged, _)| logged >= confirmed);
            row.logs.push((clock, (&*kind.identity).into()));
            shard.unsent.push((clock, key));
            row.logs.len() - 1
        });
        kind.merge(bytes_mut(&mut row.logs[position].1, kind), delta);
    }

    /// Takes in what a server sent: `version` as in the cache, `clock`: it contains this process's updates before that.
    pub(super) fn receive(&self, key: Key, kind: &Kind, values: &[u8], version: u32, clock: u32) {
        let mut shard = lock(self.shard(key));
        let row = shard.rows.entry(key).or_default();
        if row.values.is_empty() {
            row.values = (&*kind.identity).into();
        } else if version < row.version {
            return;
        }
        bytes_mut(&mut row.values, kind).copy_from_slice(values);
        row.logs.retain(|&(logged, _)| logged >= clock);
        for (_, delta) in &row.logs {
            let delta: &[u8] = bytemuck::cast_slice(delta);
            kind.merge(bytes_mut(&mut row.values, kind), &delta[..kind.row_bytes]);
        }
        row.version = version;
        row.requested = row.requested.filter(|&requested| requested > version);
    }

    /// Calls `send` with each row and its logged update of clocks up to `clock` that has not been sent. They stay in the log.
    pub(super) fn flush(&self, clock: u32, mut send: impl FnMut(Key, &[u8])) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            let Shard { rows, unsent } = &mut *shard;
            unsent.retain(|&(logged, key)| {
                if logged > clock {
                    return true;
                }
                if let Some(row) = rows.get(&key) {
                    row.logs
                        .iter()
                        .filter(|log| log.0 == logged)
                        .for_each(|log| send(key, bytemuck::cast_slice(&log.1)));
                }
                false
            });
        }
    }

    /// Forgets rows that are cached elsewhere from now on; their updates must have been sent.
    pub(super) fn forget(&self, key: Key) {
        lock(self.shard(key)).rows.remove(&key);
    }
}

impl Row {
    /// Whether to request version `needed`, because the cached one is older than `target`.
    fn wants(&mut self, needed: u32, target: u32, pushed: u32, push: bool) -> bool {
        let version = if self.registered { self.version.max(pushed) } else { self.version };
        let current = !self.values.is_empty() && version >= target;
        if current || self.registered || self.requested.is_some_and(|requested| requested >= needed) {
            return false;
        }
        self.requested = Some(needed);
        self.registered = push;
        true
    }
}

fn bytes_mut<'a>(words: &'a mut [u64], kind: &Kind) -> &'a mut [u8] {
    &mut bytemuck::cast_slice_mut(words)[..kind.row_bytes]
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks shared rows and counts it, and whether another thread held them.
#[inline]
pub(super) fn lock_counted<'a, T>(mutex: &'a Mutex<T>, counters: &mut Statistics) -> MutexGuard<'a, T> {
    counters.row_locks += 1;
    match mutex.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            counters.contended_row_locks += 1;
            lock(mutex)
        }
    }
}
