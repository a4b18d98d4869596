//! Sparse counts: how often each of `0..num_topics` occurs at a vertex, with a capacity fixed before the first iteration.

use bytemuck::{Pod, Zeroable};

use crate::store::{Additive, Shape, Store};

/// One counted key; an entry with `count == 0` is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Count {
    /// What is counted, a topic say.
    pub key: u32,
    /// How often; negative in deltas alone.
    pub count: i32,
}

/// Sparse counts per vertex. Capacity: min(K, occurrences) for counts, min(K, 2 · occurrences) for their deltas.
///
/// Entries in use come first, in the order in which they were added; the first free entry ends them.
pub struct Counts(());

/// A shared view of one vertex's counts.
#[derive(Clone, Copy, Debug)]
pub struct CountsRef<'a>(&'a [Count]);

/// An exclusive view of one vertex's counts.
#[derive(Debug)]
pub struct CountsMut<'a>(&'a mut [Count]);

impl Store for Counts {
    type Item = Count;
    type Ref<'a> = CountsRef<'a>;
    type Mut<'a> = CountsMut<'a>;
    const SHAPE: Shape = Shape::Counts;

    #[inline(always)]
    fn view(items: &[Count]) -> CountsRef<'_> {
        CountsRef(items)
    }

    #[inline(always)]
    fn view_mut(items: &mut [Count]) -> CountsMut<'_> {
        CountsMut(items)
    }
}

impl Additive for Counts {
    /// Decrements come first, so that zeros free their entries before new keys need them.
    ///
    /// # Panics
    /// When the sum has more distinct keys than `into` has entries, which the capacity rule excludes.
    fn add(into: &mut [Count], from: &[Count]) {
        let mut sum = CountsMut(into);
        for c in in_use(from).filter(|c| c.count < 0) {
            sum.add(c.key, c.count);
        }
        for c in in_use(from).filter(|c| c.count > 0) {
            sum.add(c.key, c.count);
        }
    }
}

fn in_use(entries: &[Count]) -> impl Iterator<Item = &Count> {
    entries.iter().take_while(|c| c.count != 0)
}

impl<'a> CountsRef<'a> {
    /// Returns the count of `key`. Linear in the number of distinct keys.
    #[must_use]
    pub fn get(&self, key: u32) -> i32 {
        self.iter().find(|c| c.key == key).map_or(0, |c| c.count)
    }

    /// Iterates over the keys that have a count.
    pub fn iter(&self) -> impl Iterator<Item = &'a Count> + use<'a> {
        in_use(self.0)
    }
}

impl CountsMut<'_> {
    /// Returns the count of `key`. Linear in the number of distinct keys.
    #[must_use]
    pub fn get(&self, key: u32) -> i32 {
        CountsRef(self.0).get(key)
    }

    /// Iterates over the keys that have a count.
    pub fn iter(&self) -> impl Iterator<Item = &Count> {
        in_use(self.0)
    }

    /// Adds `by`, which may be negative, to the count of `key`; a count of zero leaves the table. Linear in the number of
    /// distinct keys.
    ///
    /// # Panics
    /// When a new key finds the table full.
    pub fn add(&mut self, key: u32, by: i32) {
        if by == 0 {
            return;
        }
        let used = in_use(self.0).count();
        match self.0[..used].iter().position(|c| c.key == key) {
            Some(at) => {
                self.0[at].count += by;
                if self.0[at].count == 0 {
                    self.0.copy_within(at + 1..used, at);
                    self.0[used - 1] = Count::default();
                }
            }
            None => {
                assert!(used < self.0.len(), "counts are full: {used} keys, adding key {key}");
                self.0[used] = Count { key, count: by };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_returns_to_zero_frees_its_entry() {
        let mut items = [Count::default(); 2];
        let mut counts = Counts::view_mut(&mut items);
        counts.add(7, 2);
        counts.add(3, 1);
        counts.add(7, -2);
        counts.add(9, 4);
        assert_eq!((counts.get(7), counts.get(3), counts.get(9)), (0, 1, 4));
        assert_eq!(counts.iter().count(), 2);
    }

    #[test]
    fn decrements_make_room_before_increments_need_it() {
        let mut items = [Count { key: 1, count: 1 }, Count { key: 2, count: 5 }];
        let delta = [Count { key: 8, count: 1 }, Count { key: 1, count: -1 }];
        Counts::add(&mut items, &delta);
        let counts = Counts::view(&items);
        assert_eq!((counts.get(1), counts.get(2), counts.get(8)), (0, 5, 1));
    }

    #[test]
    #[should_panic(expected = "counts are full")]
    fn a_full_table_refuses_a_new_key() {
        let mut items = [Count { key: 1, count: 1 }];
        Counts::view_mut(&mut items).add(2, 1);
    }
}
