//! Rows that are held alone, one after the other: all of them, or those that were touched.

use std::ops::Range;
use std::slice::ChunksMut;

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
    touched: Touched<'r>,
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
            touched: Touched {
                marks: owned.touched.iter_mut().map(|marks| marks.chunks_mut(GROUP)).collect(),
                group: owned.rows.start,
                next_group: owned.rows.start,
                bits: 0,
            },
        }
    }

    /// Returns the next row that was touched since this was asked last, and forgets that it was. For tracked types; the rows
    /// are those of one piece.
    #[inline(always)]
    pub fn next_touched(&mut self) -> Option<OwnedRow<'r, V>> {
        let row = self.touched.next()?;
        let before = self.rows.start..row;
        self.sync.skip(&before);
        self.mirror.skip(&before);
        self.master.skip(&before);
        self.delta.skip(&before);
        self.rows.start = row;
        self.next()
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
fn fetch_after<S: Store>(items: &[S::Item]) {
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
struct RowsMut<'r, S: Store> {
    rest: &'r mut [S::Item],
    stride: usize,
    offsets: &'r [usize],
}

impl<'r, S: Store> RowsMut<'r, S> {
    fn new(role: &'r mut RoleMut<'_, S>) -> Self {
        Self { rest: &mut role.items, stride: role.array.stride, offsets: &role.array.offsets }
    }

    /// Returns the items of some rows.
    #[inline(always)]
    fn len(&self, rows: &Range<usize>) -> usize {
        match S::SHAPE {
            Shape::Nothing => 0,
            Shape::Value => rows.len(),
            Shape::Row => rows.len() * self.stride,
            Shape::Counts => self.offsets[rows.end] - self.offsets[rows.start],
        }
    }

    #[inline(always)]
    fn next(&mut self, row: usize) -> &'r mut [S::Item] {
        self.take(&(row..row + 1))
    }

    /// Passes rows by.
    #[inline(always)]
    fn skip(&mut self, rows: &Range<usize>) {
        self.take(rows);
    }

    #[inline(always)]
    fn take(&mut self, rows: &Range<usize>) -> &'r mut [S::Item] {
        let (items, rest) = std::mem::take(&mut self.rest).split_at_mut(self.len(rows));
        self.rest = rest;
        items
    }
}

/// Rows whose marks are looked at together.
const GROUP: usize = u64::BITS as usize;

/// Which rows were touched, ascending.
struct Touched<'r> {
    /// The marks beside each delta array, of the groups that follow.
    marks: Vec<ChunksMut<'r, u8>>,
    /// Where the group at hand begins, and the one after it.
    group: usize,
    next_group: usize,
    /// A bit for each touched row of the group that is still to come.
    bits: u64,
}

impl Iterator for Touched<'_> {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        while self.bits == 0 {
            let mut groups = self.marks.iter_mut();
            self.bits = take_bits(groups.next()?.next()?);
            for marks in groups {
                self.bits |= take_bits(marks.next()?);
            }
            (self.group, self.next_group) = (self.next_group, self.next_group + GROUP);
        }
        let row = self.group + self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        Some(row)
    }
}

/// Takes the marks of a group as bits.
#[inline(always)]
fn take_bits(marks: &mut [u8]) -> u64 {
    /// Brings bit 0 of byte i to bit 56 + i.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut taken = [0; GROUP];
    match marks.first_chunk_mut::<GROUP>() {
        Some(marks) => std::mem::swap(&mut taken, marks),
        None => taken[..marks.len()].swap_with_slice(marks),
    }
    let (eights, _) = taken.as_chunks();
    let bits = eights.iter().map(|marks| u64::from_le_bytes(*marks).wrapping_mul(GATHER) >> 56);
    bits.enumerate().fold(0, |all, (n, bits)| all | (bits << (8 * n)))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::grid::rows::VertexArrays;
    use megagrid_partition::SplitMix;
    use megagrid_stages::Value;

    struct Counted;

    impl Vertex for Counted {
        type Sync = Value<u32>;
        type Delta = Value<u32>;
        type Master = ();
        type Mirror = ();
        const TRACKED: bool = true;
    }

    /// Rows of several groups, the last not whole, marked beside two delta arrays.
    #[test]
    fn touched_rows_come_once() {
        let bounds = vec![0, 10, 10 + 3 * GROUP + 13];
        let arrays = VertexArrays::<Counted>::new(bounds.clone(), 1, 2, None).unwrap();
        let mut owned = arrays.try_own(1..2).unwrap();
        let mut random = SplitMix::new(5, 0);
        for of in [1, 2, 3, 40, 1000] {
            let mut touched: Vec<usize> = (bounds[1]..bounds[2]).filter(|_| random.below(of) == 0).collect();
            for &row in &touched {
                owned.sync.items(row)[0] += 1;
                let copy = random.below(2) as usize;
                owned.touched[copy][row - bounds[1]] = 1;
                owned.touched[0][row - bounds[1]] |= random.below(2) as u8;
            }
            let mut rows = owned.each_row_in_parts();
            while let Some(row) = rows.next_touched() {
                assert_eq!((row.row, row.sync[0]), (touched.remove(0), 1), "one of {of}");
                row.sync[0] = 0;
            }
            assert!(touched.is_empty(), "{touched:?} of one in {of}");
            assert!(owned.each_row_in_parts().next_touched().is_none());
        }
        owned.touch(bounds[1]);
        owned.forget_touched();
        assert!(owned.each_row_in_parts().next_touched().is_none());
    }
}
