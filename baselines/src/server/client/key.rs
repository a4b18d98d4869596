//! A row of a table, as one number, and where it lies.

use bytemuck::{Pod, Zeroable};

/// Table and row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct Key(u64);

impl Key {
    pub(super) fn new(table: u32, row: u32) -> Self {
        Self(u64::from(table) << 32 | u64::from(row))
    }

    pub(super) fn table(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) fn row(self) -> u32 {
        self.0 as u32
    }

    /// Returns a number whose low bits depend on all bits of the key.
    pub(super) fn spread(self) -> usize {
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
    }
}

/// A row, and its position in the static process cache where the caller knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Located {
    pub(super) key: Key,
    pub(super) position: Option<u32>,
}

impl From<Key> for Located {
    fn from(key: Key) -> Self {
        Self { key, position: None }
    }
}
