//! The private cache and operation log of one worker thread, in front of the process cache: no locks, and updates of a row
//! are combined until the clock ends.
//!
//! Two policies over one slab of rows: a fixed set, chosen from the gathered accesses, or the rows used last.

use rustc_hash::FxHashMap;

use super::dynamic::Wanted;
use super::index::Index;
use super::key::Key;
use super::shared::Shared;
use crate::Error;
use crate::server::element::Kind;
use crate::server::statistics::Statistics;

/// No entry.
const NONE: u32 = u32::MAX;
/// A thread cache never has more rows than this, whatever its capacity.
const MAX_ROWS: usize = 1 << 30;

/// One cached row.
#[derive(Debug, Clone, Copy)]
struct Entry {
    key: Key,
    version: u32,
    /// 1 + the clock in which it was copied from the process cache; 0: not yet.
    copied: u32,
    updated: bool,
    /// Neighbours in the list from the row used last to the one to evict next.
    newer: u32,
    older: u32,
}

/// How rows are found and chosen.
#[derive(Debug)]
enum Policy {
    /// Always the same rows, which are found by table and number.
    Static(Vec<Index>),
    /// The rows used last, at most so many.
    Lru { slots: FxHashMap<Key, u32>, capacity: usize, newest: u32, oldest: u32 },
}

/// Rows that one thread alone uses.
#[derive(Debug)]
pub(super) struct ThreadRows {
    policy: Policy,
    entries: Vec<Entry>,
    /// Words of the longest row.
    stride: usize,
    /// For each entry values with this thread's updates and, behind them, these updates since the last clock.
    rows: Vec<u64>,
    /// Entries with updates since the last clock.
    updated: Vec<u32>,
}

impl ThreadRows {
    /// Makes a cache of the rows used last.
    pub(super) fn lru(capacity: usize, longest_row_bytes: usize) -> Self {
        let capacity = capacity.clamp(1, MAX_ROWS);
        Self::new(Policy::Lru { slots: FxHashMap::default(), capacity, newest: NONE, oldest: NONE }, longest_row_bytes)
    }

    /// Makes a cache of these rows.
    pub(super) fn fixed(keys: &[Key], longest_row_bytes: usize, shared: &Shared) -> Result<Self, Error> {
        let mut slots = vec![Vec::new(); shared.tables.len()];
        let mut rows = Self::new(Policy::Static(Vec::new()), longest_row_bytes);
        for &key in &keys[..keys.len().min(MAX_ROWS)] {
            slots[key.table() as usize].push((key.row(), rows.add(key, shared.tables.kind(key.table())?)));
        }
        rows.policy = Policy::Static(slots.iter().map(|slots| Index::new(slots)).collect());
        Ok(rows)
    }

    fn new(policy: Policy, longest_row_bytes: usize) -> Self {
        Self {
            policy,
            entries: Vec::new(),
            stride: longest_row_bytes.div_ceil(8),
            rows: Vec::new(),
            updated: Vec::new(),
        }
    }

    /// Returns where the row is and its version, which is fresh enough, if it is or becomes one of the cached.
    #[inline]
    pub(super) fn read(
        &mut self,
        key: Key,
        wanted: Wanted,
        shared: &Shared,
        counters: &mut Statistics,
    ) -> Result<Option<(u32, u32)>, Error> {
        let Some(slot) = self.slot(key, wanted.clock, shared, counters)? else { return Ok(None) };
        let entry = self.entries[slot as usize];
        if entry.copied == wanted.clock + 1 && entry.version >= wanted.needed {
            counters.thread_cache_hits += 1;
            return Ok(Some((slot, entry.version)));
        }
        let version = self.copy(slot, shared.tables.kind(key.table())?, wanted, shared, counters)?;
        Ok(Some((slot, version)))
    }

    /// Returns the values of a row that was read.
    #[inline]
    pub(super) fn row(&self, slot: u32, bytes: usize) -> &[u8] {
        &bytemuck::cast_slice(&self.rows[2 * slot as usize * self.stride..])[..bytes]
    }

    /// Applies and logs an update; `false` if the row is not cached.
    #[inline]
    pub(super) fn update(
        &mut self,
        key: Key,
        clock: u32,
        delta: &[u8],
        shared: &Shared,
        counters: &mut Statistics,
    ) -> Result<bool, Error> {
        let Some(slot) = self.slot(key, clock, shared, counters)? else { return Ok(false) };
        let kind = shared.tables.kind(key.table())?;
        let [values, deltas] = Self::both(&mut self.rows, self.stride, slot, kind);
        let entry = &mut self.entries[slot as usize];
        if !entry.updated {
            entry.updated = true;
            self.updated.push(slot);
        }
        counters.thread_cache_hits += 1;
        if entry.copied != 0 {
            kind.merge(values, delta);
        }
        kind.merge(deltas, delta);
        Ok(true)
    }

    /// Hands the updates of a clock to the process.
    pub(super) fn flush(&mut self, clock: u32, shared: &Shared, counters: &mut Statistics) -> Result<(), Error> {
        for index in 0..self.updated.len() {
            // A row that was evicted meanwhile has handed its updates over.
            if self.entries[self.updated[index] as usize].updated {
                self.hand_over(self.updated[index], clock, shared, counters)?;
            }
        }
        self.updated.clear();
        Ok(())
    }

    /// Returns where a row is; the cache of rows used last makes place for it.
    #[inline]
    fn slot(&mut self, key: Key, clock: u32, shared: &Shared, counters: &mut Statistics) -> Result<Option<u32>, Error> {
        let (found, capacity, oldest) = match &self.policy {
            Policy::Static(index) => return Ok(index[key.table() as usize].get(key.row())),
            Policy::Lru { slots, capacity, oldest, .. } => (slots.get(&key).copied(), *capacity, *oldest),
        };
        let slot = match found {
            Some(slot) => {
                self.unlink(slot);
                slot
            }
            None if self.entries.len() < capacity => self.add(key, shared.tables.kind(key.table())?),
            None => {
                self.unlink(oldest);
                self.replace(oldest, key, clock, shared, counters)?;
                oldest
            }
        };
        self.link_newest(slot);
        Ok(Some(slot))
    }

    fn add(&mut self, key: Key, kind: &Kind) -> u32 {
        let slot = self.entries.len() as u32;
        let entry = Entry { key, version: 0, copied: 0, updated: false, newer: NONE, older: NONE };
        self.entries.push(entry);
        if let Policy::Lru { slots, .. } = &mut self.policy {
            slots.insert(key, slot);
        }
        self.rows.resize(2 * self.entries.len() * self.stride, 0);
        self.reset_delta(slot, kind);
        slot
    }

    /// Puts another row in the place of one, whose updates go to the process.
    fn replace(
        &mut self,
        slot: u32,
        key: Key,
        clock: u32,
        shared: &Shared,
        counters: &mut Statistics,
    ) -> Result<(), Error> {
        let old = self.entries[slot as usize];
        if old.updated {
            self.hand_over(slot, clock, shared, counters)?;
        }
        if let Policy::Lru { slots, .. } = &mut self.policy {
            slots.remove(&old.key);
            slots.insert(key, slot);
        }
        let entry = &mut self.entries[slot as usize];
        (entry.key, entry.version, entry.copied) = (key, 0, 0);
        self.reset_delta(slot, shared.tables.kind(key.table())?);
        Ok(())
    }

    /// Copies a row from the process cache, and applies to it what the process does not have yet; returns its version.
    fn copy(
        &mut self,
        slot: u32,
        kind: &Kind,
        wanted: Wanted,
        shared: &Shared,
        counters: &mut Statistics,
    ) -> Result<u32, Error> {
        let [values, deltas] = Self::both(&mut self.rows, self.stride, slot, kind);
        let entry = &mut self.entries[slot as usize];
        entry.version = shared.read(entry.key, wanted, values, counters)?;
        entry.copied = wanted.clock + 1;
        if entry.updated {
            kind.merge(values, deltas);
        }
        Ok(entry.version)
    }

    fn hand_over(&mut self, slot: u32, clock: u32, shared: &Shared, counters: &mut Statistics) -> Result<(), Error> {
        let key = self.entries[slot as usize].key;
        let kind = shared.tables.kind(key.table())?;
        let [_, delta] = Self::both(&mut self.rows, self.stride, slot, kind);
        shared.update(key, clock, delta, counters)?;
        self.entries[slot as usize].updated = false;
        self.reset_delta(slot, kind);
        Ok(())
    }

    fn reset_delta(&mut self, slot: u32, kind: &Kind) {
        let begin = (2 * slot as usize + 1) * self.stride;
        self.rows[begin..begin + kind.identity.len()].copy_from_slice(&kind.identity);
    }

    /// Returns the values and the deltas of an entry.
    #[inline]
    fn both<'r>(rows: &'r mut [u64], stride: usize, slot: u32, kind: &Kind) -> [&'r mut [u8]; 2] {
        let (values, deltas) = rows[2 * slot as usize * stride..].split_at_mut(stride);
        [values, deltas].map(|words| &mut bytemuck::cast_slice_mut(words)[..kind.row_bytes])
    }

    fn unlink(&mut self, slot: u32) {
        let Entry { newer, older, .. } = self.entries[slot as usize];
        let Policy::Lru { newest, oldest, .. } = &mut self.policy else { return };
        match newer {
            NONE => *newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => *oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, slot: u32) {
        let Policy::Lru { newest, oldest, .. } = &mut self.policy else { return };
        let second = std::mem::replace(newest, slot);
        (self.entries[slot as usize].newer, self.entries[slot as usize].older) = (NONE, second);
        match second {
            NONE => *oldest = slot,
            second => self.entries[second as usize].newer = slot,
        }
    }
}
