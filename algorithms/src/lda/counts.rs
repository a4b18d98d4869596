//! How a vertex keeps its topic counts: dense rows, or packed entries bounded by what can occur.

use bytemuck::TransparentWrapper;
use megagrid_stages::{Changes, Shape, Store, row_width};

/// A store of how many tokens of a vertex have each topic.
pub trait TopicCounts: Store {
    /// Calls `visit` with each topic that occurs at a vertex, and how often, in no particular order.
    fn each(&self, num_topics: usize, visit: impl FnMut(usize, u32));

    /// Sets the counts of a vertex that has none yet, each topic at most once.
    ///
    /// # Panics
    /// If there are more topics than the vertex has room for.
    fn set(&mut self, num_topics: usize, counts: impl Iterator<Item = (u16, u32)>);
}

/// Dense rows: one number for each topic, exact up to 2^24.
impl TopicCounts for [f32] {
    #[inline]
    fn each(&self, num_topics: usize, mut visit: impl FnMut(usize, u32)) {
        for (topic, &count) in self[..num_topics].iter().enumerate() {
            if count != 0.0 {
                visit(topic, count as u32);
            }
        }
    }

    fn set(&mut self, _: usize, counts: impl Iterator<Item = (u16, u32)>) {
        counts.for_each(|(topic, count)| self[usize::from(topic)] = count as f32);
    }
}

/// Packed entries, `count << topic_bits | topic`: those in use come first, in no particular order, free ones are 0.
///
/// Capacity: min(K, tokens), rounded up to whole cache lines.
#[derive(TransparentWrapper)]
#[repr(transparent)]
pub struct Packed(pub [u32]);

/// One count for each topic where all may occur, else as [`Packed`].
///
/// Capacity: min(K, tokens), rounded up; it says which form a vertex has.
#[derive(TransparentWrapper)]
#[repr(transparent)]
pub struct Table(pub [u32]);

macro_rules! store_of_entries {
    ($($store:ty),*) => { $(
        impl Store for $store {
            type Item = u32;
            const SHAPE: Shape = Shape::Entries;
            const CHANGES: Option<Changes<u32>> = Some(Changes { append: append_change, add: add_change });

            #[inline(always)]
            fn view(items: &[u32]) -> &Self {
                Self::wrap_ref(items)
            }

            #[inline(always)]
            fn view_mut(items: &mut [u32]) -> &mut Self {
                Self::wrap_mut(items)
            }
        }
    )* };
}
store_of_entries!(Packed, Table);

impl TopicCounts for Packed {
    #[inline]
    fn each(&self, num_topics: usize, visit: impl FnMut(usize, u32)) {
        each_entry(&self.0, topic_bits(num_topics), visit);
    }

    fn set(&mut self, num_topics: usize, counts: impl Iterator<Item = (u16, u32)>) {
        set_entries(&mut self.0, topic_bits(num_topics), counts);
    }
}

/// Writes packed entries from the first on.
fn set_entries(entries: &mut [u32], topic_bits: u32, counts: impl Iterator<Item = (u16, u32)>) {
    counts.enumerate().for_each(|(at, (topic, count))| entries[at] = count << topic_bits | u32::from(topic));
}

/// Calls `visit` with the topic and the count of each packed entry in use.
#[inline(always)]
pub(super) fn each_entry(entries: &[u32], topic_bits: u32, mut visit: impl FnMut(usize, u32)) {
    for &entry in entries.iter().take_while(|entry| **entry != 0) {
        visit((entry & ((1 << topic_bits) - 1)) as usize, entry >> topic_bits);
    }
}

impl TopicCounts for Table {
    #[inline]
    fn each(&self, num_topics: usize, mut visit: impl FnMut(usize, u32)) {
        if !has_all_topics(&self.0, num_topics) {
            return each_entry(&self.0, topic_bits(num_topics), visit);
        }
        for (topic, &count) in self.0[..num_topics].iter().enumerate() {
            if count != 0 {
                visit(topic, count);
            }
        }
    }

    fn set(&mut self, num_topics: usize, counts: impl Iterator<Item = (u16, u32)>) {
        if !has_all_topics(&self.0, num_topics) {
            return set_entries(&mut self.0, topic_bits(num_topics), counts);
        }
        counts.for_each(|(topic, count)| self.0[usize::from(topic)] = count);
    }
}

/// Tells whether a [`Table`] has a count for each topic.
#[inline(always)]
#[must_use]
pub fn has_all_topics(entries: &[u32], num_topics: usize) -> bool {
    entries.len() >= row_width(num_topics)
}

/// Returns the bits of a topic in packed entries.
#[inline(always)]
#[must_use]
pub fn topic_bits(num_topics: usize) -> u32 {
    (usize::BITS - (num_topics - 1).leading_zeros()).max(1)
}

/// Returns the entries that a vertex with this many tokens needs.
#[must_use]
pub fn capacity(num_topics: usize, num_tokens: u64) -> u32 {
    let distinct = usize::try_from(num_tokens).map_or(num_topics, |tokens| tokens.min(num_topics));
    row_width(distinct) as u32
}

/// Appends the entries that lead from the counts before to those now: of each topic whose count changed, by how much modulo
/// what the bits of a count hold. Dense counts: all of them, by how much they changed.
fn append_change(now: &[u32], before: &[u32], num_topics: usize, out: &mut Vec<u32>) {
    if has_all_topics(now, num_topics) {
        out.extend(now.iter().zip(before).map(|(now, before)| now.wrapping_sub(*before)));
        return;
    }
    let bits = topic_bits(num_topics);
    let change = |now: u32, before: u32| (now >> bits).wrapping_sub(before >> bits) << bits;
    merge(now, before, bits, |topic, now, before| {
        let by = change(now, before);
        if by != 0 {
            out.push(by | topic);
        }
    });
}

/// Adds what [`append_change`] appended, to dense counts also without zeros at its end. False: there are more topics than the
/// vertex has room for.
fn add_change(into: &mut [u32], by: &[u32], num_topics: usize) -> bool {
    if has_all_topics(into, num_topics) {
        into.iter_mut().zip(by).for_each(|(count, by)| *count = count.wrapping_add(*by));
        return by.len() <= into.len();
    }
    let bits = topic_bits(num_topics);
    let mut sum = Vec::with_capacity(into.len());
    merge(into, by, bits, |topic, count, by| {
        let count = (count >> bits).wrapping_add(by >> bits) << bits;
        if count != 0 {
            sum.push(count | topic);
        }
    });
    let fits = sum.len() <= into.len();
    if fits {
        into[..sum.len()].copy_from_slice(&sum);
        into[sum.len()..].fill(0);
    }
    fits
}

/// Calls `visit` with each topic of two lists of entries, ascending, and its entry in both, 0 where there is none.
fn merge(one: &[u32], other: &[u32], bits: u32, mut visit: impl FnMut(u32, u32, u32)) {
    let topic = |entry: &u32| entry & ((1 << bits) - 1);
    let sorted = |entries: &[u32]| {
        let mut used: Vec<u32> = entries.iter().copied().take_while(|&entry| entry != 0).collect();
        used.sort_unstable_by_key(topic);
        used.into_iter().peekable()
    };
    let (mut one, mut other) = (sorted(one), sorted(other));
    while let Some(next) = one.peek().into_iter().chain(other.peek()).map(topic).min() {
        let take = |entries: &mut std::iter::Peekable<std::vec::IntoIter<u32>>| {
            entries.next_if(|entry| topic(entry) == next).unwrap_or(0)
        };
        let (first, second) = (take(&mut one), take(&mut other));
        visit(next, first, second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(entries: &[u32], num_topics: usize) -> Vec<u32> {
        let mut counts = vec![0; num_topics];
        Table::view(entries).each(num_topics, |topic, count| counts[topic] += count);
        counts
    }

    /// Packed counts in some order, with as much room as there are topics.
    fn packed(counts: &[u32], room: usize) -> Vec<u32> {
        let bits = topic_bits(counts.len());
        let entries = counts.iter().enumerate().rev().filter(|(_, count)| **count > 0);
        let mut entries: Vec<u32> = entries.map(|(topic, count)| count << bits | topic as u32).collect();
        entries.resize(room, 0);
        entries
    }

    #[test]
    fn changes_of_two_replicas_are_summed_in_either_order() {
        let num_topics = 40;
        let of = |some: &[(usize, u32)]| {
            let mut counts = vec![0; num_topics];
            some.iter().for_each(|&(topic, count)| counts[topic] = count);
            counts
        };
        let before = of(&[(0, 2), (3, 1), (39, 4)]);
        let (one, other) = (of(&[(0, 1), (3, 2), (39, 4)]), of(&[(0, 1), (3, 1), (38, 1), (39, 4)]));
        let both = of(&[(3, 2), (38, 1), (39, 4)]);
        for room in [16, row_width(num_topics)] {
            let form = |counts: &[u32]| {
                if room < row_width(num_topics) {
                    packed(counts, room)
                } else {
                    let mut dense = counts.to_vec();
                    dense.resize(room, 0);
                    dense
                }
            };
            let change = |now: &[u32]| {
                let mut out = Vec::new();
                append_change(&form(now), &form(&before), num_topics, &mut out);
                out
            };
            for changes in [[change(&one), change(&other)], [change(&other), change(&one)]] {
                let mut sum = form(&before);
                assert!(changes.iter().all(|change| add_change(&mut sum, change, num_topics)));
                assert_eq!(counts(&sum, num_topics), both, "room {room}");
            }
        }
    }

    #[test]
    fn counts_that_are_set_are_there() {
        let (num_topics, expected) = (40, [(3_u16, 2_u32), (39, 70_000)]);
        for room in [16, row_width(num_topics)] {
            let mut entries = vec![0; room];
            Table::view_mut(&mut entries).set(num_topics, expected.into_iter());
            let found = counts(&entries, num_topics);
            assert_eq!((found[3], found[39], found.iter().sum::<u32>()), (2, 70_000, 70_002), "room {room}");
        }
    }

    #[test]
    fn a_change_that_does_not_fit_is_refused() {
        let (num_topics, room) = (40, 16);
        let mut full = packed(&[vec![1; 16], vec![0; 24]].concat(), room);
        let mut more = Vec::new();
        append_change(&packed(&[vec![0; 39], vec![1]].concat(), room), &vec![0; room], num_topics, &mut more);
        assert!(!add_change(&mut full, &more, num_topics));
        assert!(!add_change(&mut vec![0; row_width(num_topics)], &[1; 64], num_topics));
    }
}
