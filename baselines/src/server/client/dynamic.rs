//! The process cache and operation log for any rows: a hash map in shards, each with a lock.
//!
//! It may be bounded. Then a row that was not read since it was last looked at makes room for one that comes (second chance), once its server
//! has confirmed all updates of it; until then it stays, and there may be more rows than the bound.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use megagrid_partition::parallel::lock;
use rustc_hash::FxHashMap;

use super::key::Key;
use super::links::Links;
use super::requests::Requests;
use crate::server::element::Kind;
use crate::server::statistics::Statistics;

/// Shards of the hash map: enough that threads seldom meet by chance.
const SHARDS: usize = 128;
/// Rows that are looked at for one that can go when another one comes.
const LOOKS: usize = 8;

/// What a look into the process cache found.
pub(super) enum Found {
    /// The values were copied; of this version.
    Row(u32),
    /// Not there or too old.
    Absent {
        /// Nobody has requested it: the caller is to do so.
        request: bool,
    },
}

/// What a read asks for: a version of at least `needed`, in a clock. Rows are requested that are older than `target`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) needed: u32,
    pub(super) target: u32,
    pub(super) clock: u32,
}

impl Wanted {
    pub(super) fn new(clock: u32, slack: u32) -> Self {
        let needed = clock.saturating_sub(slack);
        Self { needed, target: needed, clock }
    }
}

/// A row as this process knows it.
#[derive(Debug, Default)]
struct Row {
    server: u32,
    /// What the server sent last and the updates of this process after it; empty until something arrived.
    values: Box<[u64]>,
    /// All updates of clocks before this one are in `values`.
    version: u32,
    /// What is on its way.
    requests: Requests,
    /// The clock in which it was last read.
    used: u32,
    /// It was read since it was last looked at for one that can go.
    is_recent: bool,
    /// A thread waits for it.
    is_awaited: bool,
    /// It is among the rows that are held.
    is_held: bool,
    /// Updates of this process by clock, which the last received values may not contain.
    logs: Vec<(u32, Box<[u64]>)>,
}

#[derive(Debug, Default)]
struct Shard {
    rows: FxHashMap<Key, Row>,
    /// Rows with updates of a clock that is not sent yet.
    unsent: Vec<(u32, Key)>,
    /// Rows with values or updates, in the order in which they are looked at; empty without a bound.
    held: VecDeque<Key>,
}

impl Shard {
    fn row(&mut self, key: Key, links: &Links) -> &mut Row {
        self.rows.entry(key).or_insert_with(|| Row { server: links.server(key), ..Row::default() })
    }

    /// Counts a row among those that are held, of which there are to be `most`, and lets others go.
    fn hold(&mut self, key: Key, most: usize, links: &Links) {
        if let Some(row) = self.rows.get_mut(&key).filter(|row| !row.is_held) {
            row.is_held = true;
            self.held.push_back(key);
        }
        for _ in 0..LOOKS.min(self.held.len()) {
            let oldest = if self.held.len() > most { self.held.pop_front() } else { None };
            let Some(oldest) = oldest else { return };
            let Some(row) = self.rows.get_mut(&oldest) else { continue };
            if oldest != key && row.can_go(links) {
                // What is on its way comes all the same.
                self.rows.remove(&oldest);
            } else {
                self.held.push_back(oldest);
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct DynamicCache {
    links: Arc<Links>,
    shards: Box<[Mutex<Shard>]>,
    /// Rows that a shard is to hold at most, if there is a bound.
    most: Option<usize>,
}

impl DynamicCache {
    /// Makes a cache of about `most` rows, if that is said.
    pub(super) fn new(links: Arc<Links>, most: Option<usize>) -> Self {
        let shards = most.map_or(SHARDS, |most| most.clamp(1, SHARDS));
        let most = most.map(|most| most.div_ceil(shards));
        Self { links, shards: (0..shards).map(|_| Mutex::default()).collect(), most }
    }

    fn shard(&self, key: Key) -> &Mutex<Shard> {
        &self.shards[key.spread() % self.shards.len()]
    }

    /// Returns how many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).rows.len()).sum()
    }

    /// Copies a row to `out` if it is fresh enough.
    pub(super) fn read(&self, key: Key, wanted: Wanted, out: &mut [u8], counters: &mut Statistics) -> Found {
        let mut shard = counters.lock(self.shard(key));
        let row = shard.row(key, &self.links);
        row.used = wanted.clock;
        let found = row.version(&self.links).filter(|version| *version >= wanted.needed);
        (row.is_recent, row.is_awaited) = (true, found.is_none());
        match found {
            Some(version) => {
                out.copy_from_slice(&bytemuck::cast_slice(&row.values)[..out.len()]);
                Found::Row(version)
            }
            None => Found::Absent { request: row.request(wanted, &self.links) },
        }
    }

    /// Notes that a row is about to be requested; `false` if it need not be.
    pub(super) fn wants(&self, key: Key, wanted: Wanted) -> bool {
        let mut shard = lock(self.shard(key));
        let row = shard.row(key, &self.links);
        row.used = wanted.clock;
        row.request(wanted, &self.links)
    }

    /// Returns the rows that were used in the clock before and are to be requested again.
    pub(super) fn prefetch(&self, wanted: Wanted) -> Vec<Key> {
        let mut keys = Vec::new();
        for shard in &self.shards {
            for (&key, row) in &mut lock(shard).rows {
                let recent = row.used + 1 >= wanted.clock && !row.values.is_empty();
                if recent && row.request(wanted, &self.links) {
                    keys.push(key);
                }
            }
        }
        keys
    }

    /// Applies an update of a clock to the cached values and logs it.
    pub(super) fn update(&self, key: Key, clock: u32, kind: &Kind, delta: &[u8], counters: &mut Statistics) {
        let mut shard = counters.lock(self.shard(key));
        let row = shard.row(key, &self.links);
        if !row.values.is_empty() {
            kind.merge(bytes_mut(&mut row.values, kind), delta);
        }
        // The newest clock is usually the last.
        if let Some((_, log)) = row.logs.iter_mut().rev().find(|log| log.0 == clock) {
            kind.merge(bytes_mut(log, kind), delta);
            return;
        }
        let confirmed = self.links.confirmed(row.server);
        row.logs.retain(|&(logged, _)| logged >= confirmed);
        let mut log: Box<[u64]> = (&*kind.identity).into();
        kind.merge(bytes_mut(&mut log, kind), delta);
        row.logs.push((clock, log));
        shard.unsent.push((clock, key));
        self.most.into_iter().for_each(|most| shard.hold(key, most, &self.links));
    }

    /// Takes in what a server sent: `version` as in the cache; it contains this process's updates of clocks before `clock`.
    pub(super) fn receive(&self, key: Key, kind: &Kind, values: &[u8], version: u32, clock: u32) {
        let mut shard = lock(self.shard(key));
        let row = shard.row(key, &self.links);
        if row.values.is_empty() {
            row.values = (&*kind.identity).into();
        }
        bytes_mut(&mut row.values, kind).copy_from_slice(values);
        row.logs.retain(|&(logged, _)| logged >= clock);
        for (_, delta) in &row.logs {
            let delta: &[u8] = bytemuck::cast_slice(delta);
            kind.merge(bytes_mut(&mut row.values, kind), &delta[..kind.row_bytes]);
        }
        row.version = version;
        row.requests.arrived(version);
        self.most.into_iter().for_each(|most| shard.hold(key, most, &self.links));
    }

    /// Calls `send` with server and update of each row that has updates of clocks up to `clock` which have not been sent.
    /// They stay in the log until the server has confirmed them.
    pub(super) fn flush(&self, clock: u32, mut send: impl FnMut(u32, Key, &[u8])) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            let Shard { rows, unsent, .. } = &mut *shard;
            unsent.retain(|&(logged, key)| {
                if logged > clock {
                    return true;
                }
                if let Some(row) = rows.get(&key) {
                    let logs = row.logs.iter().filter(|log| log.0 == logged);
                    logs.for_each(|log| send(row.server, key, bytemuck::cast_slice(&log.1)));
                }
                false
            });
        }
    }

    /// Forgets a row, whose updates have been applied by its server.
    pub(super) fn forget(&self, key: Key) {
        lock(self.shard(key)).rows.remove(&key);
    }
}

impl Row {
    /// Tells whether it can go: nobody has read it of late or waits for it, and its server has all updates.
    fn can_go(&mut self, links: &Links) -> bool {
        let confirmed = links.confirmed(self.server);
        self.logs.retain(|&(logged, _)| logged >= confirmed);
        !std::mem::take(&mut self.is_recent) && !self.is_awaited && self.logs.is_empty()
    }

    /// Returns the version of its values, if there are any.
    fn version(&self, links: &Links) -> Option<u32> {
        (!self.values.is_empty()).then(|| self.version.max(links.pushed(self.server)))
    }

    /// Whether to request what is wanted, because the cached version is too old and none is on its way.
    fn request(&mut self, wanted: Wanted, links: &Links) -> bool {
        let comes = links.pushes() && (!self.values.is_empty() || self.requests.any_before(wanted.clock));
        let current = self.version(links).is_some_and(|version| version >= wanted.target);
        if comes || current || self.requests.cover(wanted.needed, wanted.clock) {
            return false;
        }
        self.requests.add(wanted.needed);
        true
    }
}

fn bytes_mut<'a>(words: &'a mut [u64], kind: &Kind) -> &'a mut [u8] {
    &mut bytemuck::cast_slice_mut(words)[..kind.row_bytes]
}
