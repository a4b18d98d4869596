//! Edge data in the order of a column's edges.

use bytemuck::Zeroable;
use megagrid_stages::{EdgeItem, Program, Store};

use super::bring::Built;
use super::{Fill, Id, Listed, position};
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

    pub fn extend(&mut self, values: &[T]) -> Result<(), Error> {
        if size_of::<EdgeItem<P>>() == 0 {
            return Ok(());
        }
        if !P::Edge::SHAPE.is_slice() {
            self.write(values, values.len());
            return Ok(());
        }
        for value in values {
            let len = (self.fill.len)(value);
            self.offsets.push(position("items of edge data", self.items.len().saturating_add(len))?);
            self.write(std::slice::from_ref(value), len);
        }
        Ok(())
    }

    fn write(&mut self, values: &[T], items: usize) {
        let begin = self.items.len();
        self.items.resize(begin + items, Zeroable::zeroed());
        (self.fill.write)(values, &mut self.items[begin..]);
    }

    /// Ends a block, after which there are `edges` edges.
    pub fn end_block(&mut self, edges: usize) {
        self.bounds.push(if size_of::<EdgeItem<P>>() == 0 { edges } else { self.items.len() });
    }

    /// Joins them with the edges, whose slices they are where they are in slices.
    pub fn of<I: Id>(self, mut edges: Listed<I>) -> Built<I, P> {
        if P::Edge::SHAPE.is_slice() {
            edges.set_slice_offsets(self.offsets);
        }
        Built { edges, items: self.items, bounds: self.bounds }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use megagrid_stages::{program, vertex};

    use super::*;

    vertex! { struct Word {} }
    program! { struct Words { vertices: Word, edge: [u32] } }

    #[test]
    fn offsets_that_do_not_fit_are_refused_before_memory_is_taken() {
        let fill = Fill { len: Arc::new(|&len: &usize| len), write: Arc::new(|_, items: &mut [u32]| items.fill(7)) };
        let mut values = Values::<usize, Words>::new(&fill);
        values.extend(&[3, 0, 2]).unwrap();
        for len in [1 << 32, u32::MAX as usize, usize::MAX] {
            let error = values.extend(&[len]).unwrap_err();
            assert!(error.to_string().contains("items of edge data"), "{error}");
        }
        assert_eq!((values.offsets, values.items), (vec![0, 3, 3, 5], vec![7; 5]));
    }
}
