//! Edge data in the order of a column's edges.

use bytemuck::Zeroable;
use megagrid_stages::{EdgeItem, Program, Store};

use super::{Disjoint, Fill};
use crate::Error;

/// Edge data that is being filled, block by block.
pub(super) struct Values<'v, T, P: Program> {
    fill: &'v Fill<'v, T, EdgeItem<P>>,
    pub items: Vec<EdgeItem<P>>,
    /// Where each edge's slice begins, for data in slices.
    pub offsets: Vec<u32>,
    /// Where each block begins: its items, or its edges where data has no bytes.
    pub bounds: Vec<usize>,
}

impl<'v, T, P: Program> Values<'v, T, P> {
    pub fn new(fill: &'v Fill<'v, T, EdgeItem<P>>) -> Self {
        Self { fill, items: Vec::new(), offsets: vec![0], bounds: vec![0] }
    }

    pub fn reserve(&mut self, edges: usize) {
        if size_of::<EdgeItem<P>>() > 0 && !P::Edge::SHAPE.is_slice() {
            self.items.reserve_exact(edges);
        }
    }

    pub fn extend(&mut self, values: &[T]) {
        if size_of::<EdgeItem<P>>() == 0 {
            return;
        }
        for value in values {
            let len = if P::Edge::SHAPE.is_slice() { (self.fill.len)(value) } else { 1 };
            let begin = self.items.len();
            self.items.resize(begin + len, Zeroable::zeroed());
            (self.fill.write)(value, &mut self.items[begin..]);
            if P::Edge::SHAPE.is_slice() {
                self.offsets.push(self.items.len() as u32);
            }
        }
    }

    /// Ends a block, after which there are `edges` edges.
    pub fn end_block(&mut self, edges: usize) {
        self.bounds.push(if size_of::<EdgeItem<P>>() == 0 { edges } else { self.items.len() });
    }

    /// Returns the data, one piece for each block, and the offsets of slices.
    pub fn finish(self) -> Result<(Disjoint<EdgeItem<P>>, Vec<u32>), Error> {
        let blocks = self.bounds.len() - 1;
        let data = Disjoint::new(self.bounds)?;
        if !self.items.is_empty()
            && let Some(mut all) = data.try_own(0..blocks)
        {
            all.copy_from_slice(&self.items);
        }
        Ok((data, self.offsets))
    }
}
