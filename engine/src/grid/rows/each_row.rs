//! Rows that are held alone, one after the other.

use std::ops::Range;

use megagrid_stages::simd::prefetch_to_write;
use megagrid_stages::{Shape, Store, Vertex};

use super::{OwnedRow, OwnedRows, RoleMut, reduce};

/// How many rows ahead what other workers have is fetched (measured: BlockPG).
const ROWS_AHEAD: usize = 32;

/// Rows one after the other; see [`OwnedRows::each_row`].
pub struct EachRow<'r, 'h, V: Vertex> {
    rows: Range<usize>,
    sync: RowsMut<'r, V::Sync>,
    mirror: RowsMut<'r, V::Mirror>,
    master: RowsMut<'r, V::Master>,
    delta: RowsMut<'r, V::Delta>,
    partials: &'r mut [RoleMut<'h, V::Delta>],
}

impl<'r, 'h, V: Vertex> EachRow<'r, 'h, V> {
    pub(super) fn new(owned: &'r mut OwnedRows<'h, V>) -> Self {
        let (delta, partials) = owned.deltas.split_at_mut(1);
        Self {
            rows: owned.rows.clone(),
            sync: RowsMut::new(&mut owned.sync),
            mirror: RowsMut::new(&mut owned.mirror),
            master: RowsMut::new(&mut owned.master),
            delta: RowsMut::new(&mut delta[0]),
            partials,
        }
    }

    /// Reduces the partial deltas of a row that came from here, in ascending worker order.
    #[inline(always)]
    pub fn reduce_row(&mut self, row: &mut OwnedRow<'_, V>) {
        reduce::<V>(self.partials, row.row, row.delta);
    }

    /// Fetches what other workers wrote, or read, of a row some rows after one that came from here, if Apply is to write it.
    #[inline(always)]
    pub fn fetch_after(&self, row: &OwnedRow<'_, V>) {
        if !self.partials.is_empty() {
            self.partials.iter().for_each(|partial| partial.fetch(row.row + ROWS_AHEAD));
            fetch_after::<V::Delta>(row.delta);
            fetch_after::<V::Sync>(row.sync);
            fetch_after::<V::Mirror>(row.mirror);
        }
    }
}

#[inline(always)]
fn fetch_after<S: Store + ?Sized>(items: &[S::Item]) {
    if S::SHAPE == Shape::Value {
        prefetch_to_write(items.as_ptr().wrapping_add(ROWS_AHEAD), 1);
    }
}

impl<'r, V: Vertex> Iterator for EachRow<'r, '_, V> {
    type Item = OwnedRow<'r, V>;

    #[inline(always)]
    fn next(&mut self) -> Option<OwnedRow<'r, V>> {
        let row = self.rows.next()?;
        Some(OwnedRow {
            row,
            sync: self.sync.next(row),
            mirror: self.mirror.next(row),
            master: self.master.next(row),
            delta: self.delta.next(row),
        })
    }
}

/// The rows of one role, one after the other.
struct RowsMut<'r, S: Store + ?Sized> {
    rest: &'r mut [S::Item],
    stride: usize,
    offsets: &'r [usize],
}

impl<'r, S: Store + ?Sized> RowsMut<'r, S> {
    fn new(role: &'r mut RoleMut<'_, S>) -> Self {
        Self { rest: &mut role.items, stride: role.array.stride, offsets: &role.array.offsets }
    }

    #[inline(always)]
    fn next(&mut self, row: usize) -> &'r mut [S::Item] {
        let len = match S::SHAPE {
            Shape::Nothing | Shape::Value => 1,
            Shape::Row => self.stride,
            Shape::Entries => self.offsets[row + 1] - self.offsets[row],
        };
        let (items, rest) = std::mem::take(&mut self.rest).split_at_mut(len);
        self.rest = rest;
        items
    }
}
