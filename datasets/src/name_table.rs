//! Distinct names with a hash index.

use std::hash::Hasher;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// Distinct names in order of first appearance, with a hash index.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameTable {
    text: Vec<u8>,
    /// Where each name ends in `text`.
    ends: Vec<u64>,
    /// Entries with the upper half of their hash, so that growing the table and most comparisons do not read `text`.
    index: HashTable<(u32, u32)>,
}

impl NameTable {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, entry: u32) -> &[u8] {
        name_at(&self.text, &self.ends, entry)
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<u32> {
        let hash = hash(name);
        let same = |&(entry, other): &(u32, u32)| other == hash && self.get(entry) == name;
        self.index.find(spread(hash), same).map(|&(entry, _)| entry)
    }

    /// Returns the entry of a name, new if it was not there yet. The caller keeps the table below `u32::MAX` names.
    pub(crate) fn intern(&mut self, name: &[u8]) -> u32 {
        self.intern_hashed(hash(name), name)
    }

    /// [`NameTable::intern`] for a name whose [`hash`] is known.
    #[inline]
    pub(crate) fn intern_hashed(&mut self, hash: u32, name: &[u8]) -> u32 {
        let (text, ends) = (&mut self.text, &mut self.ends);
        let same = |&(entry, other): &(u32, u32)| other == hash && name_at(text, ends, entry) == name;
        let slot = self.index.entry(spread(hash), same, |&(_, hash)| spread(hash));
        let added = slot.or_insert_with(|| {
            let entry = ends.len() as u32;
            text.extend_from_slice(name);
            ends.push(text.len() as u64);
            (entry, hash)
        });
        added.get().0
    }

    /// Adds a name; returns whether it was not there yet.
    pub(crate) fn insert(&mut self, name: &[u8]) -> bool {
        let before = self.len();
        self.intern(name);
        self.len() > before
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len() as u32).map(|entry| self.get(entry))
    }

    /// Returns the names in order of first appearance: name `i` is `text[offsets[i]..offsets[i + 1]]`.
    pub(crate) fn into_arena(self) -> (Vec<u8>, Vec<u64>) {
        let mut offsets = self.ends;
        offsets.insert(0, 0);
        (self.text, offsets)
    }
}

fn name_at<'a>(text: &'a [u8], ends: &[u64], entry: u32) -> &'a [u8] {
    let entry = entry as usize;
    let start = if entry == 0 { 0 } else { ends[entry - 1] };
    &text[start as usize..ends[entry] as usize]
}

#[inline]
pub(crate) fn hash(name: &[u8]) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    (hasher.finish() >> 32) as u32
}

/// Widens a stored hash: the table takes its bucket from the low bits and its tag from the high ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
