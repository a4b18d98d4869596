//! The master copy of the rows that one tablet server stores.

use rustc_hash::FxHashMap;

use crate::server::element::Kind;

/// Rows of one table, contiguous in the order in which they were first named.
#[derive(Debug)]
pub(super) struct MasterTable {
    pub(super) kind: Kind,
    slots: FxHashMap<u32, u32>,
    rows: Vec<u32>,
    /// Rows of `kind.row_bytes` bytes, one after the other.
    data: Vec<u64>,
    /// For each row, the clients that it is pushed to, one bit each.
    registered: Vec<u64>,
    /// Registered rows that changed since the last push, and for each row whether it is among them.
    changed: Vec<u32>,
    is_changed: Vec<bool>,
}

impl MasterTable {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            slots: FxHashMap::default(),
            rows: Vec::new(),
            data: Vec::new(),
            registered: Vec::new(),
            changed: Vec::new(),
            is_changed: Vec::new(),
        }
    }

    /// Returns where a row lies; a new one begins with the identity.
    pub(super) fn slot(&mut self, row: u32) -> u32 {
        let next = self.rows.len() as u32;
        let slot = *self.slots.entry(row).or_insert(next);
        if slot == next {
            self.rows.push(row);
            self.registered.push(0);
            self.is_changed.push(false);
            self.data.resize((self.rows.len() * self.kind.row_bytes).div_ceil(8), 0);
            let (identity, begin) = (self.kind.identity.clone(), slot as usize * self.kind.row_bytes);
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.data);
            bytes[begin..begin + self.kind.row_bytes]
                .copy_from_slice(&bytemuck::cast_slice(&identity)[..self.kind.row_bytes]);
        }
        slot
    }

    /// Returns the numbers of the rows, by slot.
    pub(super) fn rows(&self) -> &[u32] {
        &self.rows
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
        self.registered[slot as usize] |= 1 << client;
    }

    pub(super) fn is_registered(&self, slot: u32, client: usize) -> bool {
        self.registered[slot as usize] >> client & 1 == 1
    }

    /// Returns the slots of registered rows that changed since the last call.
    pub(super) fn take_changed(&mut self) -> Vec<u32> {
        for &slot in &self.changed {
            self.is_changed[slot as usize] = false;
        }
        std::mem::take(&mut self.changed)
    }

    /// Forgets a row, whose values are returned: it is stored elsewhere. Its slot stays.
    pub(super) fn forget(&mut self, row: u32) -> Option<Vec<u8>> {
        let slot = self.slots.remove(&row)?;
        self.registered[slot as usize] = 0;
        Some(self.data(slot, 1).to_vec())
    }

    /// Returns the rows that are stored here, with their slots.
    pub(super) fn stored(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let current = |slot: u32| self.slots.get(&self.rows[slot as usize]) == Some(&slot);
        (0..self.rows.len() as u32).filter(move |&slot| current(slot)).map(|slot| (self.rows[slot as usize], slot))
    }

    fn mark(&mut self, slot: u32, count: usize) {
        for slot in slot..slot + count as u32 {
            if self.registered[slot as usize] != 0 && !self.is_changed[slot as usize] {
                self.is_changed[slot as usize] = true;
                self.changed.push(slot);
            }
        }
    }
}
