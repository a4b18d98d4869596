//! The master copy of the rows that one tablet server stores.

use rustc_hash::FxHashMap;

use crate::server::element::Kind;

/// Rows of one table, contiguous in the order in which they were first named.
#[derive(Debug)]
pub(super) struct MasterTable {
    pub(super) kind: Kind,
    slots: FxHashMap<u32, u32>,
    rows: Vec<Row>,
    /// Rows of `kind.row_bytes` bytes, one after the other.
    data: Vec<u64>,
    /// Slots of registered rows that changed since the last push.
    changed: Vec<u32>,
}

#[derive(Debug)]
struct Row {
    number: u32,
    /// Whether it is among those that changed.
    is_changed: bool,
    /// The clients that it is pushed to, one bit each.
    registered: u64,
}

impl MasterTable {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, slots: FxHashMap::default(), rows: Vec::new(), data: Vec::new(), changed: Vec::new() }
    }

    /// Returns where a row lies; a new one begins with the identity.
    pub(super) fn slot(&mut self, row: u32) -> u32 {
        let next = self.rows.len() as u32;
        let slot = *self.slots.entry(row).or_insert(next);
        if slot == next {
            self.rows.push(Row { number: row, is_changed: false, registered: 0 });
            self.data.resize((self.rows.len() * self.kind.row_bytes).div_ceil(8), 0);
            let (begin, bytes) = (slot as usize * self.kind.row_bytes, bytemuck::cast_slice_mut(&mut self.data));
            bytes[begin..begin + self.kind.row_bytes].copy_from_slice(self.kind.identity());
        }
        slot
    }

    /// Returns where a row lies, if it was named before.
    pub(super) fn find(&self, row: u32) -> Option<u32> {
        self.slots.get(&row).copied()
    }

    /// Returns the number of the row in a slot.
    pub(super) fn row(&self, slot: u32) -> u32 {
        self.rows[slot as usize].number
    }

    /// Returns the bytes of `count` rows from a slot on.
    pub(super) fn data(&self, slot: u32, count: usize) -> &[u8] {
        let begin = slot as usize * self.kind.row_bytes;
        &bytemuck::cast_slice(&self.data)[begin..begin + count * self.kind.row_bytes]
    }

    pub(super) fn store(&mut self, row: u32, value: &[u8]) {
        let slot = self.slot(row);
        let begin = slot as usize * self.kind.row_bytes;
        bytemuck::cast_slice_mut(&mut self.data)[begin..begin + value.len()].copy_from_slice(value);
        self.mark(slot, 1);
    }

    /// Applies updates to consecutive rows.
    pub(super) fn update(&mut self, slot: u32, updates: &[u8]) {
        let begin = slot as usize * self.kind.row_bytes;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.data);
        self.kind.merge(&mut bytes[begin..begin + updates.len()], updates);
        self.mark(slot, updates.len() / self.kind.row_bytes);
    }

    /// Has a row pushed to a client from now on.
    pub(super) fn register(&mut self, slot: u32, client: usize) {
        self.rows[slot as usize].registered |= 1 << client;
    }

    pub(super) fn is_registered(&self, slot: u32, client: usize) -> bool {
        self.rows[slot as usize].registered >> client & 1 == 1
    }

    /// Returns the slots of registered rows that changed since the last call.
    pub(super) fn take_changed(&mut self) -> Vec<u32> {
        for &slot in &self.changed {
            self.rows[slot as usize].is_changed = false;
        }
        std::mem::take(&mut self.changed)
    }

    /// Forgets a row, whose values are returned: it is stored elsewhere. Its slot stays.
    pub(super) fn forget(&mut self, row: u32) -> Option<Vec<u8>> {
        let slot = self.slots.remove(&row)?;
        self.rows[slot as usize].registered = 0;
        Some(self.data(slot, 1).to_vec())
    }

    /// Returns the rows that are stored here, with their slots.
    pub(super) fn stored(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let rows = self.rows.iter().zip(0..).map(|(row, slot)| (row.number, slot));
        rows.filter(|(row, slot)| self.slots.get(row) == Some(slot))
    }

    fn mark(&mut self, slot: u32, count: usize) {
        for (row, slot) in self.rows[slot as usize..][..count].iter_mut().zip(slot..) {
            if row.registered != 0 && !row.is_changed {
                row.is_changed = true;
                self.changed.push(slot);
            }
        }
    }
}
