//! What stages keep between them: which right vertices of a block were active, where these are few.

use super::block::Block;
use super::disjoint::{Disjoint, Owned};
use crate::Error;

/// One vertex in so many of a block, at most, is kept: more are found as fast by asking all.
const SPARSE: usize = 8;

/// The vertices kept of each block of a column, by their places in the block; a piece for each block. Its first item is one
/// more than their number, and 0 while nothing is kept.
pub struct Kept(Disjoint<u32>);

impl Kept {
    /// Makes room in a column's blocks.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn new(blocks: &[Block]) -> Result<Self, Error> {
        let mut bounds = vec![0];
        for block in blocks {
            bounds.push(bounds[bounds.len() - 1] + 1 + block.rights.len() / SPARSE);
        }
        Disjoint::new(bounds).map(Self)
    }

    /// Holds what is kept of a block; `None`: refused.
    pub fn try_own(&self, block: usize) -> Option<KeptOf<'_>> {
        self.0.try_own(block..block + 1).map(KeptOf)
    }

    /// Forgets what was kept, while no run is under way.
    pub fn forget(&self) {
        for block in 0..self.0.num_pieces() {
            if let Some(mut kept) = self.try_own(block) {
                kept.0[0] = 0;
            }
        }
    }

    /// Returns the bytes of all lists.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// The vertices kept of one block.
pub struct KeptOf<'k>(Owned<'k, u32>);

impl KeptOf<'_> {
    /// Returns the places of those kept, ascending; `None` while nothing is kept.
    #[inline(always)]
    pub fn places(&self) -> Option<&[u32]> {
        let count = (self.0[0] as usize).checked_sub(1)?;
        Some(&self.0[1..][..count])
    }

    /// Puts places after the first `count`, in the order of the block; where there is no room for them, they are dropped.
    #[inline(always)]
    pub fn put(&mut self, count: usize, places: impl ExactSizeIterator<Item = usize>) {
        if let Some(room) = self.0[1..].get_mut(count..count + places.len()) {
            room.iter_mut().zip(places).for_each(|(kept, place)| *kept = place as u32);
        }
    }

    /// Keeps so many that were put, or nothing if some were dropped.
    pub fn end(&mut self, count: usize) {
        self.0[0] = if count < self.0.len() { count as u32 + 1 } else { 0 };
    }
}
