//! Edge data in the order of a column's edges.

use megagrid_stages::Store;

use super::bring::Built;
use super::{Fill, Id, Listed, position};
use crate::Error;
use crate::machine::os::AlignedBuffer;

/// Edge data that is being filled, block by block.
pub(super) struct Values<'v, T, S: Store + ?Sized> {
    fill: &'v Fill<'v, T, S::Item>,
    items: AlignedBuffer<S::Item>,
    /// How many items have been filled.
    end: usize,
    /// Where each edge's slice begins, for data in slices.
    offsets: Vec<u32>,
    /// Where each block's items begin.
    bounds: Vec<usize>,
}

impl<'v, T, S: Store + ?Sized> Values<'v, T, S> {
    /// Makes room for the data of edges with these values.
    pub fn new(fill: &'v Fill<'v, T, S::Item>, values: &[T]) -> Result<Self, Error> {
        let (mut items, mut offsets) = (values.len(), Vec::new());
        if S::SHAPE.is_slice() {
            items = values.iter().fold(0, |items: usize, value| items.saturating_add((fill.len)(value)));
            position("items of edge data", items)?;
            offsets.reserve_exact(values.len() + 1);
            offsets.push(0);
        }
        Ok(Self { fill, items: AlignedBuffer::zeroed(items)?, end: 0, offsets, bounds: vec![0] })
    }

    /// Fills in the data of the next edges.
    pub fn extend(&mut self, values: &[T]) {
        if !S::SHAPE.is_slice() {
            return self.write(values, values.len());
        }
        for value in values {
            self.write(std::slice::from_ref(value), (self.fill.len)(value));
            self.offsets.push(self.end as u32);
        }
    }

    fn write(&mut self, values: &[T], items: usize) {
        let begin = self.end;
        self.end += items;
        if size_of::<S::Item>() > 0 {
            (self.fill.write)(values, &mut self.items[begin..self.end]);
        }
    }

    pub fn end_block(&mut self) {
        self.bounds.push(self.end);
    }

    /// Joins them with the edges, whose slices they are where they are in slices.
    pub fn of<I: Id>(self, mut edges: Listed<I>) -> Built<I, S::Item> {
        if S::SHAPE.is_slice() {
            edges.set_slice_offsets(self.offsets);
        }
        Built { edges, items: self.items, bounds: self.bounds }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn offsets_that_do_not_fit_are_refused_before_memory_is_taken() {
        let fill = Fill { len: Arc::new(|&len: &usize| len), write: Arc::new(|_, items: &mut [u32]| items.fill(7)) };
        for len in [1 << 32, u32::MAX as usize, usize::MAX] {
            let error = Values::<_, [u32]>::new(&fill, &[3, 0, 2, len]).err().unwrap();
            assert!(error.to_string().contains("items of edge data"), "{error}");
        }
        let mut values = Values::<_, [u32]>::new(&fill, &[3, 0, 2]).unwrap();
        values.extend(&[3, 0]);
        values.extend(&[2]);
        assert_eq!((values.offsets, &*values.items), (vec![0, 3, 3, 5], &[7; 5][..]));
    }
}
