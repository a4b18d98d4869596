//! The data of a block's edges, in their order.

use std::ops::Range;

use bytemuck::Zeroable;
use megagrid_stages::simd::prefetch;
use megagrid_stages::{EdgeItem, Program, Store};

use super::block::{Id, LocalEdges};

/// Bytes of ids, and of data, that are fetched ahead; what follows the processor predicts.
pub const FETCHED: usize = 256;

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
        assert!(Self::IS_SLICE || items.len() == block.edges.len(), "one item of data for each edge");
        let offsets = if Self::IS_SLICE { edges.slice_offsets(block) } else { &[] };
        Self { items, first: offsets.first().copied().unwrap_or(0), offsets }
    }

    const IS_SLICE: bool = P::Edge::SHAPE.is_slice();
    /// Whether edges carry nothing.
    const EMPTY: bool = size_of::<EdgeItem<P>>() == 0;

    #[inline(always)]
    pub fn part(&mut self, edges: Range<usize>) -> Data<'_, P> {
        let Self { items, offsets, first } = self;
        if Self::IS_SLICE {
            Data { items, offsets: &offsets[edges.start..edges.end + 1], first: *first }
        } else {
            Data { items: if Self::EMPTY { &mut [] } else { &mut items[edges] }, offsets: &[], first: 0 }
        }
    }

    #[inline(always)]
    pub fn at(&mut self, edge: usize) -> &mut P::Edge {
        if Self::IS_SLICE {
            let [begin, end] = [edge, edge + 1].map(|at| (self.offsets[at] - self.first) as usize);
            P::Edge::view_mut(&mut self.items[begin..end])
        } else if Self::EMPTY {
            // What has no bytes is anywhere: this allocates nothing, and asks for no bounds.
            P::Edge::view_mut(std::slice::from_mut(Box::leak(Box::new(Zeroable::zeroed()))))
        } else {
            P::Edge::view_mut(&mut self.items[edge..=edge])
        }
    }

    /// Fetches the first data of some edges.
    #[inline(always)]
    pub fn prefetch(&self, edges: Range<usize>) {
        if !Self::IS_SLICE {
            let bytes = edges.len() * size_of::<EdgeItem<P>>();
            prefetch(self.items.as_ptr().wrapping_add(edges.start), FETCHED.min(bytes));
        }
    }
}
