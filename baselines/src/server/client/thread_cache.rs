//! The private cache and operation log of one worker thread, in front of the process cache: no locks, and updates of a row
//! are combined until the clock ends.
//!
//! Two policies over one slab of rows: a fixed set, chosen from the gathered accesses, or the rows used last.

use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use rustc_hash::{FxHashMap, FxHashSet};

use super::dynamic::Wanted;
use super::index::Index;
use super::key::{Key, Located};
use super::shared::{Shared, Specialized};
use crate::Error;
use crate::server::element::Kind;
use crate::server::statistics::Statistics;

const NONE: u32 = u32::MAX;
/// A thread cache never has more rows than this, whatever its capacity.
const MAX_ROWS: usize = 1 << 30;
/// Marks the entries among the places of rows; what has no mark is a position in the process cache.
const CACHED: u32 = 1 << 31;

/// What is known of a cached row; it lies before the row's values, so that an access finds both in one place.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Head {
    version: u32,
    /// 1 + the clock in which it was copied from the process cache; 0: not yet.
    copied: u32,
    /// 1 if there are updates since the last clock.
    updated: u64,
}

const HEAD_WORDS: usize = size_of::<Head>() / 8;

/// A cached row.
struct Entry<'e> {
    head: &'e mut Head,
    /// With this thread's updates.
    values: &'e mut [u8],
    /// These updates since the last clock.
    deltas: &'e mut [u8],
}

/// Neighbours in the list from the row used last to the one to evict next.
#[derive(Debug, Clone, Copy)]
struct Neighbours {
    newer: u32,
    older: u32,
}

/// Where a thread finds a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// In this entry of its cache.
    Cached(u32),
    /// In the process cache.
    Shared(Located),
}

/// How rows are found and chosen.
#[derive(Debug)]
enum Policy {
    /// Always the same rows. By table: the places of these and of all other rows of the static process cache, so that the way to a row
    /// takes one look wherever it ends.
    Static(Vec<Index>),
    /// The rows used last, up to the cache's size.
    Lru { slots: FxHashMap<Key, u32>, capacity: usize, newest: u32, oldest: u32 },
}

/// Rows that only one thread uses.
#[derive(Debug)]
pub(super) struct ThreadRows {
    policy: Policy,
    /// Words of the values of the longest row.
    row_words: usize,
    /// Head, values and updates of one entry after the other.
    entries: Vec<u64>,
    /// Of each entry.
    keys: Vec<Key>,
    /// Of each entry of the cache of rows used last.
    neighbours: Vec<Neighbours>,
    /// Entries with updates since the last clock.
    updated: Vec<u32>,
}

impl ThreadRows {
    pub(super) fn lru(capacity: usize, longest_row_bytes: usize) -> Self {
        let capacity = capacity.clamp(1, MAX_ROWS);
        Self::new(Policy::Lru { slots: FxHashMap::default(), capacity, newest: NONE, oldest: NONE }, longest_row_bytes)
    }

    /// Makes a cache of the rows that were chosen for a thread.
    pub(super) fn fixed(
        specialized: &Specialized,
        thread: usize,
        longest_row_bytes: usize,
        shared: &Shared,
    ) -> Result<Self, Error> {
        let mut rows = Self::new(Policy::Static(Vec::new()), longest_row_bytes);
        let mut places = vec![Vec::new(); shared.tables.len()];
        for &key in specialized.pattern.cached[thread].iter().take(MAX_ROWS) {
            let slot = rows.add(key, shared.tables.kind(key.table())?);
            places[key.table() as usize].push((key.row(), CACHED | slot));
        }
        if let Some(fixed) = &specialized.fixed {
            let cached: FxHashSet<Key> = rows.keys.iter().copied().collect();
            for key in specialized.pattern.rows.iter().filter(|key| !cached.contains(key)) {
                let position = fixed.position(*key).filter(|&position| position < CACHED);
                places[key.table() as usize].extend(position.map(|position| (key.row(), position)));
            }
        }
        rows.policy = Policy::Static(places.iter().map(|places| Index::new(places)).collect());
        Ok(rows)
    }

    fn new(policy: Policy, longest_row_bytes: usize) -> Self {
        Self {
            policy,
            row_words: longest_row_bytes.div_ceil(8),
            entries: Vec::new(),
            keys: Vec::new(),
            neighbours: Vec::new(),
            updated: Vec::new(),
        }
    }

    /// Returns the bytes of its rows, with their updates.
    pub(super) fn bytes(&self) -> u64 {
        size_of_val(&self.entries[..]) as u64
    }

    #[inline]
    fn begin(&self, slot: u32) -> usize {
        slot as usize * (HEAD_WORDS + 2 * self.row_words)
    }

    #[inline]
    fn head(&self, slot: u32) -> Head {
        let begin = self.begin(slot);
        cast_slice(&self.entries[begin..begin + HEAD_WORDS])[0]
    }

    #[inline]
    fn entry(&mut self, slot: u32, kind: &Kind) -> Entry<'_> {
        let begin = self.begin(slot);
        let (head, rows) = self.entries[begin..].split_at_mut(HEAD_WORDS);
        let (values, deltas) = rows.split_at_mut(self.row_words);
        let [values, deltas] = [values, deltas].map(|words| &mut cast_slice_mut(words)[..kind.row_bytes]);
        Entry { head: &mut cast_slice_mut(head)[0], values, deltas }
    }

    /// Returns the version of a row, and has it copied if it is not fresh enough.
    #[inline]
    pub(super) fn read(
        &mut self,
        slot: u32,
        wanted: Wanted,
        shared: &Shared,
        counters: &mut Statistics,
    ) -> Result<u32, Error> {
        let Head { version, copied, .. } = self.head(slot);
        if copied == wanted.clock + 1 && version >= wanted.needed {
            counters.thread_cache_hits += 1;
            return Ok(version);
        }
        self.copy(slot, wanted, shared, counters)
    }

    /// Returns the values of a row that was read.
    #[inline]
    pub(super) fn row(&self, slot: u32, bytes: usize) -> &[u8] {
        &cast_slice(&self.entries[self.begin(slot) + HEAD_WORDS..])[..bytes]
    }

    #[inline]
    pub(super) fn update(&mut self, slot: u32, kind: &Kind, delta: &[u8]) {
        let entry = self.entry(slot, kind);
        if entry.head.copied != 0 {
            kind.merge(entry.values, delta);
        }
        kind.merge(entry.deltas, delta);
        if std::mem::replace(&mut entry.head.updated, 1) == 0 {
            self.updated.push(slot);
        }
    }

    /// Hands the updates of a clock to the process.
    pub(super) fn flush(&mut self, clock: u32, shared: &Shared, counters: &mut Statistics) -> Result<(), Error> {
        let mut updated = std::mem::take(&mut self.updated);
        for slot in updated.drain(..) {
            // A row that was evicted meanwhile has handed its updates over.
            self.hand_over(slot, clock, shared, counters)?;
        }
        self.updated = updated;
        Ok(())
    }

    /// Returns where a row is; the cache of rows used last makes place for it.
    #[inline]
    pub(super) fn place(
        &mut self,
        key: Key,
        clock: u32,
        shared: &Shared,
        counters: &mut Statistics,
    ) -> Result<Place, Error> {
        let (found, capacity, oldest) = match &self.policy {
            Policy::Static(places) => {
                return Ok(match places[key.table() as usize].get(key.row()) {
                    Some(place) if place >= CACHED => Place::Cached(place - CACHED),
                    position => Place::Shared(Located { key, position }),
                });
            }
            Policy::Lru { slots, capacity, oldest, .. } => (slots.get(&key).copied(), *capacity, *oldest),
        };
        let slot = match found {
            Some(slot) => {
                self.unlink(slot);
                slot
            }
            None if self.neighbours.len() < capacity => self.add(key, shared.tables.kind(key.table())?),
            None => {
                self.unlink(oldest);
                self.replace(oldest, key, clock, shared, counters)?;
                oldest
            }
        };
        self.link_newest(slot);
        Ok(Place::Cached(slot))
    }

    fn add(&mut self, key: Key, kind: &Kind) -> u32 {
        let slot = self.keys.len() as u32;
        self.keys.push(key);
        self.entries.resize(self.begin(slot + 1), 0);
        self.entry(slot, kind).deltas.copy_from_slice(kind.identity());
        if let Policy::Lru { slots, .. } = &mut self.policy {
            slots.insert(key, slot);
            self.neighbours.push(Neighbours { newer: NONE, older: NONE });
        }
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
        self.hand_over(slot, clock, shared, counters)?;
        let kind = shared.tables.kind(key.table())?;
        let entry = self.entry(slot, kind);
        *entry.head = Head::zeroed();
        entry.deltas.copy_from_slice(kind.identity());
        let old = std::mem::replace(&mut self.keys[slot as usize], key);
        if let Policy::Lru { slots, .. } = &mut self.policy {
            slots.remove(&old);
            slots.insert(key, slot);
        }
        Ok(())
    }

    /// Copies a row from the process cache, and applies to it what the process does not have yet; returns its version.
    fn copy(&mut self, slot: u32, wanted: Wanted, shared: &Shared, counters: &mut Statistics) -> Result<u32, Error> {
        let key = self.keys[slot as usize];
        let kind = shared.tables.kind(key.table())?;
        let Entry { head, values, deltas } = self.entry(slot, kind);
        head.version = shared.read(key.into(), wanted, values, counters)?;
        head.copied = wanted.clock + 1;
        if head.updated != 0 {
            kind.merge(values, deltas);
        }
        Ok(head.version)
    }

    /// Hands the updates of an entry to the process, if there are any.
    fn hand_over(&mut self, slot: u32, clock: u32, shared: &Shared, counters: &mut Statistics) -> Result<(), Error> {
        if self.head(slot).updated == 0 {
            return Ok(());
        }
        let key = self.keys[slot as usize];
        let kind = shared.tables.kind(key.table())?;
        let entry = self.entry(slot, kind);
        shared.update(key.into(), clock, entry.deltas, counters)?;
        entry.head.updated = 0;
        entry.deltas.copy_from_slice(kind.identity());
        Ok(())
    }

    fn unlink(&mut self, slot: u32) {
        let Neighbours { newer, older } = self.neighbours[slot as usize];
        let Policy::Lru { newest, oldest, .. } = &mut self.policy else { return };
        match newer {
            NONE => *newest = older,
            newer => self.neighbours[newer as usize].older = older,
        }
        match older {
            NONE => *oldest = newer,
            older => self.neighbours[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, slot: u32) {
        let Policy::Lru { newest, oldest, .. } = &mut self.policy else { return };
        let second = std::mem::replace(newest, slot);
        self.neighbours[slot as usize] = Neighbours { newer: NONE, older: second };
        match second {
            NONE => *oldest = slot,
            second => self.neighbours[second as usize].newer = slot,
        }
    }
}
