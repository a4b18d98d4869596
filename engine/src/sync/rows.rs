//! Rows as bytes: what a message's body holds, one row after the other.
//!
//! | store | bytes of a row |
//! |---|---|
//! | value | the item |
//! | row of k | the k items, without padding |
//! | counts | the number of items up to the last that is not zero, 4 bytes, and these items |

use bytemuck::{Zeroable, bytes_of, bytes_of_mut, cast_slice, cast_slice_mut};
use megagrid_stages::{Additive, Shape, Store, Vertex};

use super::dirty;
use crate::grid::{OwnedRows, Role, RoleMut, SharedRows};

/// Which rows of a shard a message holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// All of so many.
    All(usize),
    /// Those with these numbers in the shard, ascending.
    Some(Box<[u32]>),
}

impl Pick {
    /// Returns the number of rows.
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
        let (all, some) = match self {
            Self::All(rows) => (0..*rows, &[][..]),
            Self::Some(rows) => (0..0, &rows[..]),
        };
        all.chain(some.iter().map(|&row| row as usize)).map(move |row| first + row)
    }
}

/// A body does not have the bytes that its rows need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Returns the bytes that one row of a store takes; `None` where that depends on the row.
pub fn row_bytes<S: Store>(dims: usize) -> Option<usize> {
    let items = match S::SHAPE {
        Shape::Nothing => 0,
        Shape::Value => 1,
        Shape::Row => dims,
        Shape::Counts => return None,
    };
    Some(items * size_of::<S::Item>())
}

/// Appends rows of a role, in one go where they lie side by side.
fn put_role<S: Store>(role: &Role<'_, S>, pick: &Pick, dims: usize, out: &mut Vec<u8>) {
    if let (Pick::All(_), Some(items)) = (pick, role.side_by_side(dims)) {
        out.extend_from_slice(cast_slice(items));
    } else if let (Pick::Some(rows), Shape::Value, Some(values)) = (pick, S::SHAPE, role.side_by_side(1)) {
        let begin = out.len();
        out.resize(begin + size_of::<S::Item>() * rows.len(), 0);
        let places = out[begin..].chunks_exact_mut(size_of::<S::Item>());
        places.zip(rows).for_each(|(place, &row)| place.copy_from_slice(bytes_of(&values[row as usize])));
    } else {
        pick.rows(role.first()).for_each(|row| put::<S>(role.items(row), dims, out));
    }
}

/// Appends one row.
fn put<S: Store>(items: &[S::Item], dims: usize, out: &mut Vec<u8>) {
    match S::SHAPE {
        Shape::Nothing => {}
        Shape::Value => out.extend_from_slice(cast_slice(items)),
        Shape::Row => out.extend_from_slice(cast_slice(&items[..dims])),
        Shape::Counts => {
            let used =
                items.iter().rposition(|item| bytes_of(item).iter().any(|&byte| byte != 0)).map_or(0, |at| at + 1);
            out.extend_from_slice(&(used as u32).to_le_bytes());
            out.extend_from_slice(cast_slice(&items[..used]));
        }
    }
}

/// Reads one row into `items`.
fn take<S: Store>(items: &mut [S::Item], dims: usize, from: &mut &[u8]) -> Result<(), Malformed> {
    let used = match S::SHAPE {
        Shape::Nothing => return Ok(()),
        Shape::Value => 1,
        Shape::Row => dims,
        Shape::Counts => take_number(from)?,
    };
    let items = match S::SHAPE {
        Shape::Counts => {
            let (items, rest) = items.split_at_mut_checked(used).ok_or(Malformed)?;
            rest.fill(Zeroable::zeroed());
            items
        }
        _ => items.get_mut(..used).ok_or(Malformed)?,
    };
    let bytes = from.split_off(..size_of_val(items)).ok_or(Malformed)?;
    cast_slice_mut(items).copy_from_slice(bytes);
    Ok(())
}

/// Reads rows of a role, in one go where they lie side by side.
fn take_role<S: Store>(role: &mut RoleMut<'_, S>, pick: &Pick, dims: usize, from: &mut &[u8]) -> Result<(), Malformed> {
    if let (Pick::All(_), Some(items)) = (pick, role.side_by_side(dims)) {
        let bytes = from.split_off(..size_of_val(items)).ok_or(Malformed)?;
        cast_slice_mut(items).copy_from_slice(bytes);
    } else if let (Pick::Some(rows), Shape::Value, Some(values)) = (pick, S::SHAPE, role.side_by_side(1)) {
        let bytes = from.split_off(..size_of::<S::Item>() * rows.len()).ok_or(Malformed)?;
        let items = bytes.chunks_exact(size_of::<S::Item>());
        items.zip(rows).for_each(|(item, &row)| bytes_of_mut(&mut values[row as usize]).copy_from_slice(item));
    } else {
        pick.rows(role.first()).try_for_each(|row| take::<S>(role.items(row), dims, from))?;
    }
    Ok(())
}

fn take_number(from: &mut &[u8]) -> Result<usize, Malformed> {
    let bytes = from.split_off(..4).ok_or(Malformed)?;
    Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
}

/// Writes the synced data of rows.
pub fn pack_sync<V: Vertex>(rows: &SharedRows<'_, V>, pick: &Pick, dims: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(pick.len() * row_bytes::<V::Sync>(dims).unwrap_or(0));
    put_role(&rows.sync, pick, dims, &mut out);
    out
}

/// Reads the synced data of rows from their masters, and refreshes the mirror data.
pub fn unpack_sync<V: Vertex>(
    rows: &mut OwnedRows<'_, V>,
    pick: &Pick,
    dims: usize,
    mut from: &[u8],
) -> Result<(), Malformed> {
    if V::Mirror::SHAPE == Shape::Nothing {
        take_role(&mut rows.sync, pick, dims, &mut from)?;
        return ended(from);
    }
    let mut old = Vec::new();
    for row in pick.rows(rows.rows.start) {
        let row = rows.row(row);
        old.clear();
        old.extend_from_slice(row.sync);
        take::<V::Sync>(row.sync, dims, &mut from)?;
        V::refresh(V::Mirror::view_mut(row.mirror), V::Sync::view(&old), V::Sync::view(row.sync));
    }
    ended(from)
}

/// Writes all that is in rows that move: synced and mirror data, and with `master` the master's.
pub fn pack_whole<V: Vertex>(rows: &SharedRows<'_, V>, dims: usize, master: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let all = Pick::All(rows.rows.len());
    put_role(&rows.sync, &all, dims, &mut out);
    put_role(&rows.mirror, &all, dims, &mut out);
    if master {
        put_role(&rows.master, &all, dims, &mut out);
    }
    out
}

/// Reads what [`pack_whole`] wrote.
pub fn unpack_whole<V: Vertex>(
    rows: &mut OwnedRows<'_, V>,
    dims: usize,
    master: bool,
    mut from: &[u8],
) -> Result<(), Malformed> {
    let all = Pick::All(rows.rows.len());
    take_role(&mut rows.sync, &all, dims, &mut from)?;
    take_role(&mut rows.mirror, &all, dims, &mut from)?;
    if master {
        take_role(&mut rows.master, &all, dims, &mut from)?;
    }
    ended(from)
}

/// Sums this process's deltas of rows, writes them and leaves zeros. Of a tracked type those of touched rows alone, after
/// a list of these ([`dirty`]).
pub fn pack_deltas<V: Vertex>(rows: &mut OwnedRows<'_, V>, pick: &Pick, dims: usize) -> Vec<u8> {
    let first = rows.rows.start;
    let mut out = Vec::with_capacity(pick.len() * row_bytes::<V::Delta>(dims).unwrap_or(0));
    let put_row = |rows: &mut OwnedRows<'_, V>, row: usize, out: &mut Vec<u8>| {
        let delta = rows.row(row).delta;
        put::<V::Delta>(delta, dims, out);
        delta.fill(Zeroable::zeroed());
    };
    if V::TRACKED {
        let mut touched = Vec::new();
        rows.take_touched(&mut touched);
        let numbers: Vec<u32> = touched.iter().map(|row| (row - first) as u32).collect();
        dirty::put(&numbers, rows.rows.len(), &mut out);
        touched.into_iter().for_each(|row| put_row(rows, row, &mut out));
    } else {
        rows.reduce();
        pick.rows(first).for_each(|row| put_row(rows, row, &mut out));
    }
    out
}

/// Adds deltas of another process to those of rows.
pub fn add_deltas<V: Vertex>(
    rows: &mut OwnedRows<'_, V>,
    pick: &Pick,
    dims: usize,
    mut from: &[u8],
) -> Result<(), Malformed> {
    let first = rows.rows.start;
    let mut scratch: Vec<<V::Delta as Store>::Item> = Vec::new();
    let mut add_row = |rows: &mut OwnedRows<'_, V>, row: usize, from: &mut &[u8]| {
        let delta = rows.row(row).delta;
        scratch.clear();
        scratch.resize(delta.len(), Zeroable::zeroed());
        take::<V::Delta>(&mut scratch, dims, from)?;
        V::Delta::add(delta, &scratch);
        Ok(())
    };
    if V::TRACKED {
        for number in dirty::take(rows.rows.len(), &mut from)? {
            let row = first + number as usize;
            rows.touch(row);
            add_row(rows, row, &mut from)?;
        }
    } else {
        for row in pick.rows(first) {
            add_row(rows, row, &mut from)?;
        }
    }
    ended(from)
}

fn ended(from: &[u8]) -> Result<(), Malformed> {
    if from.is_empty() { Ok(()) } else { Err(Malformed) }
}
