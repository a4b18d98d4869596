//! Rows of numbers that lie one after the other, the first on a cache line.

use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use crate::workers::cut;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// `len` rows of `width` items each.
#[derive(Clone)]
pub struct Rows<T> {
    lines: Vec<Line>,
    width: usize,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Pod> Rows<T> {
    pub fn zeros(len: usize, width: usize) -> Self {
        let lines = (len * width * size_of::<T>()).div_ceil(size_of::<Line>());
        Self { lines: vec![Line::zeroed(); lines], width, len, of: PhantomData }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the items of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    fn item_bytes(&self) -> usize {
        self.len * self.width * size_of::<T>()
    }

    pub fn items(&self) -> &[T] {
        bytemuck::cast_slice(&bytemuck::cast_slice::<_, u8>(&self.lines)[..self.item_bytes()])
    }

    pub fn items_mut(&mut self) -> &mut [T] {
        let bytes = self.item_bytes();
        bytemuck::cast_slice_mut(&mut bytemuck::cast_slice_mut::<_, u8>(&mut self.lines)[..bytes])
    }

    pub fn row(&self, at: usize) -> &[T] {
        &self.items()[at * self.width..(at + 1) * self.width]
    }

    pub fn row_mut(&mut self, at: usize) -> &mut [T] {
        let width = self.width;
        &mut self.items_mut()[at * width..(at + 1) * width]
    }

    /// Cuts the rows where the parts, which follow each other, begin and end.
    pub fn split_mut(&mut self, parts: &[Range<usize>]) -> Vec<&mut [T]> {
        let width = self.width;
        cut(self.items_mut(), width, parts)
    }

    pub fn bytes(&self) -> u64 {
        (self.lines.len() * size_of::<Line>()) as u64
    }
}
