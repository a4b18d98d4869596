//! Rows that are fetched before the edges that need them run.

use megagrid_stages::mode::Mode;
use megagrid_stages::simd::{prefetch, prefetch_to_write};
use megagrid_stages::{Shape, Store, Vertex};

use super::block::Id;
use super::width::Width;

pub type SyncItem<V> = <<V as Vertex>::Sync as Store>::Item;
pub type MirrorItem<V> = <<V as Vertex>::Mirror as Store>::Item;
pub type DeltaItem<V> = <<V as Vertex>::Delta as Store>::Item;

/// Where the synced data and deltas of a side's held rows are. Nothing is read or written there.
pub struct Addresses<V: Vertex, W> {
    pub(super) sync: *mut SyncItem<V>,
    pub(super) delta: *mut DeltaItem<V>,
    pub(super) width: W,
}

impl<V: Vertex, W: Width> Addresses<V, W> {
    /// Whether rows are one large value: those of a shard may not stay near the processor.
    pub const LARGE_VALUE: bool = matches!(V::Sync::SHAPE, Shape::Value) && size_of::<SyncItem<V>>() >= LARGE;

    /// Fetches a row for a mode, where rows fill cache lines of their own.
    #[inline(always)]
    pub fn row(&self, id: impl Id, mode: Mode) {
        let begin = id.index() * self.width.get();
        if V::Sync::SHAPE == Shape::Row {
            prefetch(self.sync.wrapping_add(begin), self.width.get() * size_of::<SyncItem<V>>());
        }
        if mode == Mode::Add && V::Delta::SHAPE == Shape::Row {
            prefetch(self.delta.wrapping_add(begin), self.width.get() * size_of::<DeltaItem<V>>());
        }
    }

    /// Fetches the cache line where a row's value begins, for a mode.
    #[inline(always)]
    pub fn value(&self, id: impl Id, mode: Mode) {
        let value = self.sync.wrapping_add(id.index());
        if mode == Mode::Update { prefetch_to_write(value) } else { prefetch(value, 1) }
    }

    /// Fetches the delta of a row, where it is one value: another worker may have written it last.
    #[inline(always)]
    pub fn delta(&self, id: impl Id) {
        prefetch_to_write(self.delta.wrapping_add(id.index()));
    }
}

/// How many bytes of a value are many.
const LARGE: usize = 32;
