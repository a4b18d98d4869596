//! The accesses of an iteration: what each thread does, and what follows for the process.

use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};

use super::key::Key;
use crate::server::options::ThreadCache;

/// A row is worth caching in a thread if it is accessed more often in a clock. A cached row costs a copy from the process cache
/// and a handing over of its updates, some 60 ns, and an access to it saves about 10 (`server-costs`); IterStore too leaves out
/// rows for which a cache is more work than gain (section 5.4).
const WORTH_CACHING: u32 = 8;

/// How the accesses of an iteration are gathered (IterStore, section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gather {
    /// In an iteration of its own, before the first: nothing is read, updated or waited for, and reads return what a row
    /// begins with. What is done must not depend on it.
    Virtual,
    /// In an iteration that counts.
    Real,
}

/// What one thread did with one row.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    accesses: u32,
    /// Clocks in which it was accessed.
    clocks: u32,
    /// The last clocks in which it was read, and updated, counted from 1.
    last_read: u32,
    last_updated: u32,
}

/// The accesses of one thread in one clock of the iteration.
#[derive(Debug, Default)]
struct Phase {
    /// Rows in the order of their first read, with the number of reads before it.
    reads: Vec<(Key, u32)>,
    num_reads: u32,
    updates: Vec<Key>,
}

/// What one thread has done since gathering began.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) mode: Gather,
    uses: FxHashMap<Key, Use>,
    phases: Vec<Phase>,
    accesses: u64,
    /// Accesses after the last clock.
    open: bool,
    pub(super) begun: Instant,
}

impl Recording {
    pub(super) fn new(mode: Gather) -> Self {
        let (uses, phases, begun) = (FxHashMap::default(), vec![Phase::default()], Instant::now());
        Self { mode, uses, phases, accesses: 0, open: false, begun }
    }

    pub(super) fn access(&mut self, key: Key, is_update: bool) {
        let clock = self.phases.len() as u32;
        let Some(phase) = self.phases.last_mut() else { return };
        let used = self.uses.entry(key).or_default();
        used.clocks += u32::from(used.last_read.max(used.last_updated) < clock);
        used.accesses += 1;
        if is_update {
            if used.last_updated < clock {
                used.last_updated = clock;
                phase.updates.push(key);
            }
        } else {
            if used.last_read < clock {
                used.last_read = clock;
                phase.reads.push((key, phase.num_reads));
            }
            phase.num_reads += 1;
        }
        self.accesses += 1;
        self.open = true;
    }

    pub(super) fn clock(&mut self) {
        self.phases.push(Phase::default());
        self.open = false;
    }

    /// Whether it ends with a clock.
    pub(super) fn is_closed(&self) -> bool {
        !self.open
    }

    /// Chooses the rows to cache in this thread: where the probability of meeting another thread is beyond the bound (IterStore,
    /// equation 1: AF > CPB / (n - 1)), then the most frequent that are accessed often enough to gain from it.
    fn cached(&self, cache: ThreadCache, threads_of: &FxHashMap<Key, u32>) -> Vec<Key> {
        let ThreadCache::Static { capacity, contention_bound } = cache else { return Vec::new() };
        let contended = |key: &Key, used: &Use| {
            let others = threads_of.get(key).map_or(0, |&threads| threads - 1);
            let frequency = f64::from(used.accesses) / self.accesses.max(1) as f64;
            others > 0 && frequency > contention_bound / f64::from(others)
        };
        let mut candidates: Vec<(bool, u32, Key)> = Vec::new();
        for (&key, used) in &self.uses {
            let contended = contended(&key, used);
            if contended || used.accesses > WORTH_CACHING * used.clocks {
                candidates.push((!contended, u32::MAX - used.accesses, key));
            }
        }
        candidates.sort_unstable();
        candidates.truncate(capacity);
        candidates.into_iter().map(|(_, _, key)| key).collect()
    }
}

/// The rows that a process accesses in one clock of the iteration.
#[derive(Debug, Default, Clone)]
pub(super) struct PhaseRows {
    /// Rows of the first reads, of the other reads, and of the updates.
    pub(super) lists: [Vec<Key>; 3],
}

/// What a process does in an iteration.
#[derive(Debug)]
pub(super) struct Pattern {
    /// All rows, in the order of their first access.
    pub(super) rows: Vec<Key>,
    /// In how many clocks each is accessed.
    pub(super) clocks_of: FxHashMap<Key, u32>,
    /// By clock of the iteration.
    pub(super) phases: Vec<PhaseRows>,
    /// The rows that each thread caches; none before they are chosen.
    pub(super) cached: Vec<Vec<Key>>,
}

impl Pattern {
    /// Puts the recordings of all threads together.
    pub(super) fn new(recordings: &[Recording], early_ratio: f64) -> Self {
        // A recording that ends with a clock has an empty phase at its end.
        let num_phases = |recording: &Recording| recording.phases.len() - usize::from(recording.is_closed());
        let phases = recordings.iter().map(num_phases).max().unwrap_or(0).max(1);
        let mut pattern = Self {
            rows: Vec::new(),
            clocks_of: FxHashMap::default(),
            phases: (0..phases).map(|phase| phase_rows(recordings, phase, early_ratio)).collect(),
            cached: Vec::new(),
        };
        for phase in &pattern.phases {
            let mut in_phase = FxHashSet::default();
            for &key in phase.lists.iter().flatten().filter(|&&key| in_phase.insert(key)) {
                let clocks = pattern.clocks_of.entry(key).or_default();
                if *clocks == 0 {
                    pattern.rows.push(key);
                }
                *clocks += 1;
            }
        }
        pattern
    }

    /// Chooses the rows that each thread caches.
    pub(super) fn choose_cached(&mut self, recordings: &[Recording], cache: ThreadCache) {
        let mut threads_of: FxHashMap<Key, u32> = FxHashMap::default();
        for key in recordings.iter().flat_map(|recording| recording.uses.keys()) {
            *threads_of.entry(*key).or_default() += 1;
        }
        self.cached = recordings.iter().map(|recording| recording.cached(cache, &threads_of)).collect();
    }
}

fn phase_rows(recordings: &[Recording], phase: usize, early_ratio: f64) -> PhaseRows {
    let phases = || recordings.iter().filter_map(|recording| recording.phases.get(phase));
    let early = |phase: &Phase, before: u32| f64::from(before) < early_ratio * f64::from(phase.num_reads);
    let mut seen = FxHashSet::default();
    let mut rows = PhaseRows::default();
    for (list, is_early) in [(0, true), (1, false)] {
        for phase in phases() {
            let reads = phase.reads.iter().filter(|read| early(phase, read.1) == is_early).map(|read| read.0);
            rows.lists[list].extend(reads.filter(|&key| seen.insert(key)));
        }
    }
    let mut seen = FxHashSet::default();
    let updates = phases().flat_map(|phase| phase.updates.iter().copied());
    rows.lists[2].extend(updates.filter(|&key| seen.insert(key)));
    rows
}
