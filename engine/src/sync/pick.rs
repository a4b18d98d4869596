//! Which rows of a shard a process uses, and how many of them a message holds: a large shard is sent in slices, so that
//! packing, transfer and taking in overlap and their bytes stay in a cache.

use std::ops::Range;

/// Bytes of rows in a message, at most, but for a single row that has more.
pub const SLICE_BYTES: usize = 64 << 10;

/// Cuts rows of this many bytes each into slices.
pub fn slices(rows: usize, row_bytes: usize) -> impl Iterator<Item = Range<usize>> {
    let step = rows_of_slice(row_bytes);
    (0..rows).step_by(step).map(move |begin| begin..(begin + step).min(rows))
}

/// Returns the rows of every slice but the last.
pub fn rows_of_slice(row_bytes: usize) -> usize {
    (SLICE_BYTES / row_bytes.max(1)).max(1)
}

/// The rows of a shard that a process uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// All of this many.
    All(usize),
    /// Those with these numbers in the shard, ascending.
    Some(Box<[u32]>),
}

impl Pick {
    pub fn len(&self) -> usize {
        match self {
            Self::All(rows) => *rows,
            Self::Some(rows) => rows.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number in the shard of the row at a place.
    pub fn number(&self, at: usize) -> Option<usize> {
        match self {
            Self::All(rows) => (at < *rows).then_some(at),
            Self::Some(rows) => rows.get(at).map(|&row| row as usize),
        }
    }

    /// Lists the rows, where the shard begins with row `first`.
    pub fn rows(&self, first: usize) -> impl Iterator<Item = usize> + '_ {
        self.whole().rows(first)
    }

    pub fn whole(&self) -> Slice<'_> {
        self.part(0..self.len())
    }

    /// Returns the rows at these places, as far as there are any.
    pub fn part(&self, places: Range<usize>) -> Slice<'_> {
        let end = places.end.min(self.len());
        let places = places.start.min(end)..end;
        match self {
            Self::All(_) => Slice::Range(places),
            Self::Some(rows) => Slice::List(&rows[places]),
        }
    }
}

/// Rows of a pick one after the other: what a message holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slice<'p> {
    /// Those with numbers from, and to before, others.
    Range(Range<usize>),
    /// Those with these numbers in the shard, ascending.
    List(&'p [u32]),
}

impl<'p> Slice<'p> {
    pub fn len(&self) -> usize {
        match self {
            Self::Range(rows) => rows.len(),
            Self::List(rows) => rows.len(),
        }
    }

    /// Lists the rows, where the shard begins with row `first`.
    pub fn rows(&self, first: usize) -> impl Iterator<Item = usize> + use<'p> {
        let (range, list) = match self {
            Self::Range(rows) => (rows.clone(), &[][..]),
            Self::List(rows) => (0..0, *rows),
        };
        range.chain(list.iter().map(|&row| row as usize)).map(move |row| first + row)
    }
}
