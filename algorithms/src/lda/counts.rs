//! How a vertex keeps its topic counts: dense rows, or packed entries bounded by what can occur.

use megagrid_stages::{Row, Shape, Store, row_width};

/// A store of how many tokens of a vertex have each topic.
pub trait TopicCounts: Store {
    /// Calls `visit` with each topic that occurs at a vertex, and how often, in no particular order.
    fn each(counts: Self::Ref<'_>, num_topics: usize, visit: impl FnMut(usize, u32));
}

/// Dense rows: one number for each topic, exact up to 2^24.
impl TopicCounts for Row<f32> {
    #[inline]
    fn each(counts: &[f32], num_topics: usize, mut visit: impl FnMut(usize, u32)) {
        for (topic, &count) in counts[..num_topics].iter().enumerate() {
            if count != 0.0 {
                visit(topic, count as u32);
            }
        }
    }
}

/// Packed entries, `count << topic_bits | topic`: those in use come first, in no particular order, free ones are 0.
///
/// Capacity: min(K, tokens), rounded up to whole cache lines.
pub struct Packed(());

/// One count for each topic where all may occur, else as [`Packed`].
///
/// Capacity: min(K, tokens), rounded up; it says which form a vertex has.
pub struct Table(());

macro_rules! store_of_entries {
    ($($store:ty),*) => { $(
        impl Store for $store {
            type Item = u32;
            type Ref<'a> = &'a [u32];
            type Mut<'a> = &'a mut [u32];
            const SHAPE: Shape = Shape::Counts;

            #[inline(always)]
            fn view(items: &[u32]) -> &[u32] {
                items
            }

            #[inline(always)]
            fn view_mut(items: &mut [u32]) -> &mut [u32] {
                items
            }
        }
    )* };
}
store_of_entries!(Packed, Table);

impl TopicCounts for Packed {
    #[inline]
    fn each(entries: &[u32], num_topics: usize, mut visit: impl FnMut(usize, u32)) {
        Self::each_entry(entries, topic_bits(num_topics), &mut visit);
    }
}

impl Packed {
    /// Calls `visit` with the topic and the count of each entry in use.
    #[inline(always)]
    pub(super) fn each_entry(entries: &[u32], topic_bits: u32, mut visit: impl FnMut(usize, u32)) {
        for &entry in entries.iter().take_while(|entry| **entry != 0) {
            visit((entry & ((1 << topic_bits) - 1)) as usize, entry >> topic_bits);
        }
    }
}

impl TopicCounts for Table {
    #[inline]
    fn each(entries: &[u32], num_topics: usize, mut visit: impl FnMut(usize, u32)) {
        if !has_all_topics(entries, num_topics) {
            return Packed::each(entries, num_topics, visit);
        }
        for (topic, &count) in entries[..num_topics].iter().enumerate() {
            if count != 0 {
                visit(topic, count);
            }
        }
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
