//! How the items of a row travel.

use bytemuck::{cast_slice, cast_slice_mut};
use megagrid_stages::{Item, Shape, Store, Vertex};

use super::counts;
use super::message::Malformed;

/// How the rows of a store travel.
///
/// | store | bytes of a row |
/// |---|---|
/// | value | the item |
/// | row of k | the k items, without padding |
/// | entries | the number of items up to the last that is not zero, in seven bits a byte, and these items |
///
/// Items are the bytes that they have in memory, or [counts](super::counts) where their vertex says so ([`Vertex::COUNTS`]); rows of
/// counts that have one length go as if they were one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Items of a row; `None` where that depends on the row.
    width: Option<usize>,
    counts: bool,
}

/// Returns the bytes that a row of a vertex's role takes; `None` where that depends on the row.
pub fn row_bytes<V: Vertex, S: Store + ?Sized>(dims: usize) -> Option<usize> {
    Form::of::<V, S>(dims).plain_width().map(|width| width * size_of::<S::Item>())
}

impl Form {
    /// Returns how a role of a vertex travels, in rows of `dims` items.
    pub fn of<V: Vertex, S: Store + ?Sized>(dims: usize) -> Self {
        let width = match S::SHAPE {
            Shape::Nothing => Some(0),
            Shape::Value => Some(1),
            Shape::Row => Some(dims),
            Shape::Entries => None,
        };
        Self { width, counts: V::COUNTS }
    }

    /// Returns the items of a row; `None` where that depends on the row.
    pub fn width(self) -> Option<usize> {
        self.width
    }

    /// Returns the items of a row if these travel as they lie in memory.
    pub fn plain_width(self) -> Option<usize> {
        self.width.filter(|_| !self.counts)
    }

    /// Returns about how many bytes each of `rows` rows takes that have `items` items in memory: just how many, unless that depends
    /// on the row.
    pub fn about_row_bytes<I: Item>(self, items: usize, rows: usize) -> usize {
        let of_item = if self.counts { 1 } else { size_of::<I>() };
        of_item * self.width.unwrap_or_else(|| 1 + items / rows.max(1))
    }

    /// Returns how this many rows travel as if they were one.
    pub fn together(self, rows: usize) -> Option<Self> {
        self.width.map(|width| Self { width: Some(rows * width), ..self })
    }

    /// As [`Self::together`], with the items of a row: for rows of counts, which take fewer bytes so.
    pub fn counts_together(self, rows: usize) -> Option<(Self, usize)> {
        self.together(rows).zip(self.width).filter(|(_, width)| self.counts && *width > 0)
    }

    /// Appends a row.
    pub fn put<I: Item>(self, items: &[I], out: &mut Vec<u8>) {
        let used = self.width.unwrap_or_else(|| {
            let used = items.iter().rposition(counts::is_used).map_or(0, |last| last + 1);
            counts::put_number(used as u32, out);
            used
        });
        if self.counts {
            counts::put(&items[..used], out);
        } else {
            out.extend_from_slice(cast_slice(&items[..used]));
        }
    }

    /// Reads a row that [`Self::put`] wrote; items behind it become zero where rows have lengths of their own.
    pub fn read<I: Item>(self, items: &mut [I], from: &mut &[u8]) -> Result<(), Malformed> {
        let used = self.take_used(from)?;
        let (used, rest) = items.split_at_mut_checked(used).ok_or(Malformed)?;
        if self.counts {
            counts::take(used, from)?;
        } else {
            let bytes = cast_slice_mut::<I, u8>(used);
            bytes.copy_from_slice(from.split_off(..bytes.len()).ok_or(Malformed)?);
        }
        if self.width.is_none() {
            rest.fill(I::zeroed());
        }
        Ok(())
    }

    /// Appends the items of a row that [`Self::put`] wrote.
    pub fn append<I: Item>(self, items: &mut Vec<I>, from: &mut &[u8]) -> Result<(), Malformed> {
        let (begin, mut ahead) = (items.len(), *from);
        let used = self.take_used(&mut ahead)?;
        // Bytes that are not there are not made room for.
        let fewest = if self.counts { Some(used.div_ceil(8)) } else { used.checked_mul(size_of::<I>()) };
        if fewest.is_none_or(|bytes| bytes > ahead.len()) {
            return Err(Malformed);
        }
        items.resize(begin + used, I::zeroed());
        self.read(&mut items[begin..], from)
    }

    fn take_used(self, from: &mut &[u8]) -> Result<usize, Malformed> {
        match self.width {
            Some(width) => Ok(width),
            None => counts::take_number(from).map(|used| used as usize),
        }
    }
}
