//! The data of a block's edges, in their order.

use std::ops::Range;

use megagrid_stages::simd::prefetch;
use megagrid_stages::{EdgeItem, Program, Store};

use super::block::{Id, LocalEdges};

/// Bytes of ids, and of data, that are fetched ahead; what follows the processor predicts.
pub const FETCHED: usize = 256;

/// The data of some edges.
pub struct Data<'d, P: Program> {
    items: &'d mut [EdgeItem<P>],
    /// Where an edge's slice begins, for data in slices; and where the items begin.
    offsets: &'d [u32],
    first: u32,
}

impl<'d, P: Program> Data<'d, P> {
    /// Begins with all edges of a block.
    ///
    /// # Panics
    /// When there is not one item for each edge, of data that are not in slices.
    #[inline(always)]
    pub fn new<I: Id>(edges: &'d LocalEdges<I>, block: usize, items: &'d mut [EdgeItem<P>]) -> Self {
        let block = &edges.blocks()[block];
        let is_slice = P::Edge::SHAPE.is_slice();
        assert!(is_slice || items.len() == block.edges.len(), "one item of data for each edge");
        let offsets = if is_slice { edges.slice_offsets(block) } else { &[] };
        Self { items, first: offsets.first().copied().unwrap_or(0), offsets }
    }

    /// Lends the data of some of the edges.
    #[inline(always)]
    pub fn part(&mut self, edges: Range<usize>) -> Data<'_, P> {
        let Self { items, offsets, first } = self;
        if P::Edge::SHAPE.is_slice() {
            Data { items, offsets: &offsets[edges.start..edges.end + 1], first: *first }
        } else {
            Data { items: &mut items[edges], offsets: &[], first: 0 }
        }
    }

    /// Returns an edge's data.
    #[inline(always)]
    pub fn at(&mut self, edge: usize) -> &mut P::Edge {
        if P::Edge::SHAPE.is_slice() {
            let [begin, end] = [edge, edge + 1].map(|at| (self.offsets[at] - self.first) as usize);
            return P::Edge::view_mut(&mut self.items[begin..end]);
        }
        // Items without bytes are all the same one.
        let edge = if size_of::<EdgeItem<P>>() == 0 { 0 } else { edge };
        P::Edge::view_mut(&mut self.items[edge..=edge])
    }

    /// Fetches the first data of some edges.
    #[inline(always)]
    pub fn prefetch(&self, edge: usize, edges: usize) {
        if !P::Edge::SHAPE.is_slice() {
            let bytes = edges * size_of::<EdgeItem<P>>();
            prefetch(self.items.as_ptr().wrapping_add(edge), FETCHED.min(bytes));
        }
    }
}
