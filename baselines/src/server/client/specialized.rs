//! What is known of an iteration whose accesses were gathered.

use std::sync::Mutex;

use rustc_hash::FxHashSet;

use super::fixed::FixedCache;
use super::gather::Pattern;
use super::key::Key;
use super::locks::lock;

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
