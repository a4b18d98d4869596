//! Disjoint slices: arrays whose pieces one worker holds, or readers share.
//!
//! This file and `ends.rs`, with the ids that `block/listed.rs` checks, are the whole of the engine's argument that plain references to
//! rows are sound. Here: a [`Disjoint`] array gives out `&mut` to a piece only while its hold word says that nobody else has it.
#![allow(unsafe_code, reason = "references to disjoint parts of one array cannot be expressed otherwise; proofs below")]

use std::ops::{Deref, DerefMut, Range};

use megagrid_stages::Item;

use super::hold::Hold;
use crate::Error;
use crate::machine::os::AlignedBuffer;

/// An array in pieces. Pieces are contiguous and are held by range.
pub struct Disjoint<T> {
    items: *mut T,
    bounds: Box<[usize]>,
    holds: Box<[Hold]>,
    /// Pieces before which pages end: see [`Disjoint::split_pages`].
    joints: Box<[usize]>,
    /// Owns what `items` points to; not touched while the array lives.
    memory: AlignedBuffer<T>,
}

// SAFETY: the pointer owns its memory, and `T` is plain data that may move between threads.
unsafe impl<T: Item> Send for Disjoint<T> {}
// SAFETY: all access goes through holds: shared holds give `&[T]`, exclusive holds give `&mut [T]`, never both (`Hold`).
unsafe impl<T: Item> Sync for Disjoint<T> {}

impl<T: Item> Disjoint<T> {
    /// Allocates an array of zero bytes; panics when `bounds` are none: see [`Disjoint::of`]. An error is for want of memory.
    pub fn new(bounds: Vec<usize>) -> Result<Self, Error> {
        let memory = AlignedBuffer::zeroed(bounds.last().copied().unwrap_or(0))?;
        Ok(Self::of(memory, bounds))
    }

    /// Makes pieces of items; piece `i` is `bounds[i]..bounds[i + 1]`. Panics when `bounds` does not begin at 0, decreases, or does not
    /// end at the number of items.
    pub fn of(mut memory: AlignedBuffer<T>, bounds: Vec<usize>) -> Self {
        assert!(bounds.first() == Some(&0) && bounds.is_sorted(), "bounds of pieces begin at 0 and do not decrease");
        assert!(bounds.last() == Some(&memory.len()), "bounds of pieces end with the items");
        let items = memory.as_mut_ptr();
        let holds = (1..bounds.len()).map(|_| Hold::default()).collect();
        Self { items, bounds: bounds.into(), holds, joints: Box::default(), memory }
    }

    /// Lets the pieces before each of `joints` and those from it on lie on different nodes of memory. Ask before anything is written.
    #[must_use]
    pub fn split_pages(self, joints: &[usize]) -> Self {
        joints.iter().for_each(|&joint| self.memory.split_pages_at(self.bounds[joint]));
        Self { joints: joints.into(), ..self }
    }

    /// Allocates an array of zero bytes in the same pieces, which may lie on the same nodes. An error is for want of memory.
    pub fn like(&self) -> Result<Self, Error> {
        Ok(Self::new(self.bounds.to_vec())?.split_pages(&self.joints))
    }

    /// Returns where the items are in memory.
    pub fn addresses(&self) -> Range<usize> {
        let begin = self.items.addr();
        begin..begin + self.bytes()
    }

    /// Ends the pieces. Nobody holds any, since guards borrow the array.
    pub fn into_items(self) -> AlignedBuffer<T> {
        self.memory
    }

    /// Returns where pieces begin, and the number of items.
    pub fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    /// Takes shared holds on a range of pieces; `None` when any of them is owned.
    pub fn try_share(&self, pieces: Range<usize>) -> Option<Shared<'_, T>> {
        take(&self.holds[pieces.clone()], Hold::try_share, Hold::end_share)?;
        Some(Guard { array: self, pieces })
    }

    /// Takes exclusive holds on a range of pieces; `None` when any of them is held.
    pub fn try_own(&self, pieces: Range<usize>) -> Option<Owned<'_, T>> {
        take(&self.holds[pieces.clone()], Hold::try_own, Hold::end_own)?;
        Some(Guard { array: self, pieces })
    }

    fn span(&self, pieces: &Range<usize>) -> Range<usize> {
        self.bounds[pieces.start]..self.bounds[pieces.end]
    }
}

/// Takes every hold or none.
fn take(holds: &[Hold], take: impl Fn(&Hold) -> bool, give_back: impl Fn(&Hold)) -> Option<()> {
    let refused = holds.iter().position(|hold| !take(hold));
    holds[..refused.unwrap_or(0)].iter().for_each(give_back);
    if refused.is_none() { Some(()) } else { None }
}

/// Pieces that are held: shared with other readers, or by one worker only.
pub struct Guard<'h, T: Item, const OWNED: bool> {
    array: &'h Disjoint<T>,
    pieces: Range<usize>,
}
/// Pieces that readers share.
pub type Shared<'h, T> = Guard<'h, T, false>;
/// Pieces that one worker has for itself.
pub type Owned<'h, T> = Guard<'h, T, true>;

impl<T: Item, const OWNED: bool> Deref for Guard<'_, T, OWNED> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let span = self.array.span(&self.pieces);
        // SAFETY: `span` lies within the allocation (`bounds` ends at its length). While a shared hold on these pieces lasts,
        // `try_own` refuses them, so nobody writes; an exclusive one is as in `deref_mut`, and `&self` keeps `&mut` away.
        unsafe { std::slice::from_raw_parts(self.array.items.add(span.start), span.len()) }
    }
}

impl<T: Item> DerefMut for Owned<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let span = self.array.span(&self.pieces);
        // SAFETY: `span` lies within the allocation, and while the exclusive holds on these pieces last, both
        // `try_share` and `try_own` refuse them, so this is the only reference to these items.
        unsafe { std::slice::from_raw_parts_mut(self.array.items.add(span.start), span.len()) }
    }
}

impl<T: Item, const OWNED: bool> Drop for Guard<'_, T, OWNED> {
    fn drop(&mut self) {
        let give_back = if OWNED { Hold::end_own } else { Hold::end_share };
        self.array.holds[self.pieces.clone()].iter().for_each(give_back);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
