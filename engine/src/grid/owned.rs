//! Rows that a worker holds for itself, in all roles: what Apply works on, one row after the other.

use std::ops::Range;

use bytemuck::Zeroable;
use megagrid_stages::simd::prefetch_to_write;
use megagrid_stages::{Additive, Shape, Store, Vertex};

use super::array::RoleMut;
use super::awake::Rests;
use super::width::{PADDING, has_zeros};

/// All roles of a range of rows, held exclusively: what Apply works on.
pub struct OwnedRows<'h, V: Vertex> {
    pub rows: Range<usize>,
    pub sync: RoleMut<'h, V::Sync>,
    /// Data of the replica.
    pub mirror: RoleMut<'h, V::Mirror>,
    pub master: RoleMut<'h, V::Master>,
    pub(super) deltas: Vec<RoleMut<'h, V::Delta>>,
    /// The items of a row that are zero.
    pub padding: Range<usize>,
    /// Which rows are awake.
    pub rests: Rests<'h>,
}

/// One row's roles at its master.
pub struct OwnedRow<'r, V: Vertex> {
    pub row: usize,
    pub sync: &'r mut [<V::Sync as Store>::Item],
    /// Data of the replica.
    pub mirror: &'r mut [<V::Mirror as Store>::Item],
    pub master: &'r mut [<V::Master as Store>::Item],
    /// The summed delta.
    pub delta: &'r mut [<V::Delta as Store>::Item],
}

impl<V: Vertex> OwnedRow<'_, V> {
    /// Checks, in debug builds, that the padding of the row is still zero after a stage; its delta was read or reduced.
    ///
    /// # Panics
    /// When it is not, with the stage's name.
    #[inline(always)]
    pub fn check_padding(&self, padding: &Range<usize>, stage: impl Fn() -> String) {
        if cfg!(debug_assertions) {
            self.assert_padding(padding, stage);
        }
    }

    /// Checks, in all builds, that the padding of the row is zero.
    ///
    /// # Panics
    /// When it is not, with the stage's name.
    #[inline(always)]
    pub fn assert_padding(&self, padding: &Range<usize>, stage: impl Fn() -> String) {
        if !padding.is_empty() {
            let is_zero = has_zeros::<V::Sync>(self.sync, padding)
                && has_zeros::<V::Mirror>(self.mirror, padding)
                && has_zeros::<V::Master>(self.master, padding);
            let (row, dims) = (self.row, padding.start);
            assert!(is_zero, "{} wrote to items of row {row} behind its {dims}; {PADDING}", stage());
        }
    }
}

impl<'h, V: Vertex> OwnedRows<'h, V> {
    /// Returns the roles of any of the rows; the delta is the first array's.
    #[inline(always)]
    pub fn row(&mut self, row: usize) -> OwnedRow<'_, V> {
        OwnedRow {
            row,
            sync: self.sync.items(row),
            mirror: self.mirror.items(row),
            master: self.master.items(row),
            delta: self.deltas[0].items(row),
        }
    }

    /// Tells whether deltas are in several parts, which are yet to be reduced.
    pub fn has_partials(&self) -> bool {
        self.deltas.len() > 1
    }

    /// Reduces the partial deltas of all rows, in ascending worker order.
    pub fn reduce(&mut self) {
        if self.has_partials() {
            self.rows.clone().for_each(|row| self.reduce_row(row));
        }
    }

    /// Reduces the partial deltas of a row.
    #[inline(always)]
    pub fn reduce_row(&mut self, row: usize) {
        if let Some((delta, partials)) = self.deltas.split_first_mut() {
            reduce::<V>(partials, row, delta.items(row));
        }
    }

    /// Fetches a row that Apply is to write soon, where it is one value.
    #[inline(always)]
    pub fn fetch(&self, row: usize) {
        self.sync.fetch(row);
        self.mirror.fetch(row);
        self.master.fetch(row);
        self.deltas.iter().for_each(|delta| delta.fetch(row));
    }

    /// Reduces partial deltas, and returns every row's roles, in row order.
    pub fn each_row(&mut self) -> EachRow<'_, 'h, V> {
        self.reduce();
        self.each_row_in_parts()
    }

    /// Returns every row's roles, in row order, with partial deltas that are reduced for each row by itself.
    pub fn each_row_in_parts(&mut self) -> EachRow<'_, 'h, V> {
        EachRow::new(self)
    }
}

/// Adds a row's partial deltas and leaves zeros.
#[inline(always)]
fn reduce<V: Vertex>(partials: &mut [RoleMut<'_, V::Delta>], row: usize, delta: &mut [<V::Delta as Store>::Item]) {
    for partial in partials {
        let from = partial.items(row);
        V::Delta::view_mut(delta).add(V::Delta::view(from));
        from.fill(Zeroable::zeroed());
    }
}

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
    fn new(owned: &'r mut OwnedRows<'h, V>) -> Self {
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
        self.partials.iter().for_each(|partial| partial.fetch(row.row + ROWS_AHEAD));
        fetch_after::<V::Delta>(row.delta);
        fetch_after::<V::Sync>(row.sync);
        fetch_after::<V::Mirror>(row.mirror);
    }
}

#[inline(always)]
fn fetch_after<S: Store + ?Sized>(items: &[S::Item]) {
    if S::SHAPE == Shape::Value {
        prefetch_to_write(items.as_ptr().wrapping_add(ROWS_AHEAD));
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
        let array = role.array;
        Self { rest: &mut role.items, stride: array.stride, offsets: &array.offsets }
    }

    #[inline(always)]
    fn next(&mut self, row: usize) -> &'r mut [S::Item] {
        let len = match S::SHAPE {
            // An item without bytes: nothing is allocated.
            Shape::Nothing => return Box::leak(Box::new([Zeroable::zeroed()])),
            Shape::Value => 1,
            Shape::Row => self.stride,
            Shape::Entries => self.offsets[row + 1] - self.offsets[row],
        };
        let (items, rest) = std::mem::take(&mut self.rest).split_at_mut(len);
        self.rest = rest;
        items
    }
}
