//! Rows as bytes: what a message's body holds, one row after the other.
//!
//! | store | bytes of a row |
//! |---|---|
//! | value | the item |
//! | row of k | the k items, without padding |
//! | entries | the number of items up to the last that is not zero, 4 bytes, and these items |

use std::ops::Range;

use bytemuck::{Zeroable, bytes_of, bytes_of_mut, cast_slice, cast_slice_mut};
use megagrid_stages::{Additive, Shape, Store, Vertex};

use super::slices::{Pick, Slice, slices};
use crate::grid::{OwnedRows, Role, RoleMut, SharedRows};

/// A body does not have the bytes that its rows need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Returns the items of one row of a store; `None` where that depends on the row.
fn row_items<S: Store + ?Sized>(dims: usize) -> Option<usize> {
    match S::SHAPE {
        Shape::Nothing => Some(0),
        Shape::Value => Some(1),
        Shape::Row => Some(dims),
        Shape::Entries => None,
    }
}

/// Returns the bytes that one row of a store takes; `None` where that depends on the row.
pub fn row_bytes<S: Store + ?Sized>(dims: usize) -> Option<usize> {
    row_items::<S>(dims).map(|items| items * size_of::<S::Item>())
}

/// Appends rows of a role, in one go where they lie side by side.
fn put_role<S: Store + ?Sized>(role: &Role<'_, S>, slice: &Slice<'_>, dims: usize, out: &mut Vec<u8>) {
    if let (Slice::Range(rows), Some(items), Some(width)) = (slice, role.side_by_side(dims), row_items::<S>(dims)) {
        out.extend_from_slice(cast_slice(&items[rows.start * width..rows.end * width]));
    } else if let (Slice::List(rows), Shape::Value, Some(values)) = (slice, S::SHAPE, role.side_by_side(1)) {
        let begin = out.len();
        out.resize(begin + size_of::<S::Item>() * rows.len(), 0);
        let places = out[begin..].chunks_exact_mut(size_of::<S::Item>());
        places.zip(*rows).for_each(|(place, &row)| place.copy_from_slice(bytes_of(&values[row as usize])));
    } else {
        slice.rows(role.first()).for_each(|row| put::<S>(role.items(row), dims, out));
    }
}

/// Appends one row.
fn put<S: Store + ?Sized>(items: &[S::Item], dims: usize, out: &mut Vec<u8>) {
    match S::SHAPE {
        Shape::Nothing => {}
        Shape::Value => out.extend_from_slice(cast_slice(items)),
        Shape::Row => out.extend_from_slice(cast_slice(&items[..dims])),
        Shape::Entries => {
            let used =
                items.iter().rposition(|item| bytes_of(item).iter().any(|&byte| byte != 0)).map_or(0, |at| at + 1);
            out.extend_from_slice(&(used as u32).to_le_bytes());
            out.extend_from_slice(cast_slice(&items[..used]));
        }
    }
}

/// Reads one row into `items`.
fn take<S: Store + ?Sized>(items: &mut [S::Item], dims: usize, from: &mut &[u8]) -> Result<(), Malformed> {
    let used = match S::SHAPE {
        Shape::Nothing => return Ok(()),
        Shape::Value => 1,
        Shape::Row => dims,
        Shape::Entries => take_number(from)?,
    };
    let items = match S::SHAPE {
        Shape::Entries => {
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
fn take_role<S: Store + ?Sized>(
    role: &mut RoleMut<'_, S>,
    slice: &Slice<'_>,
    dims: usize,
    from: &mut &[u8],
) -> Result<(), Malformed> {
    if let (Slice::Range(rows), Some(items), Some(width)) = (slice, role.side_by_side(dims), row_items::<S>(dims)) {
        let items = &mut items[rows.start * width..rows.end * width];
        let bytes = from.split_off(..size_of_val(items)).ok_or(Malformed)?;
        cast_slice_mut(items).copy_from_slice(bytes);
    } else if let (Slice::List(rows), Shape::Value, Some(values)) = (slice, S::SHAPE, role.side_by_side(1)) {
        let bytes = from.split_off(..size_of::<S::Item>() * rows.len()).ok_or(Malformed)?;
        let items = bytes.chunks_exact(size_of::<S::Item>());
        items.zip(*rows).for_each(|(item, &row)| bytes_of_mut(&mut values[row as usize]).copy_from_slice(item));
    } else {
        slice.rows(role.first()).try_for_each(|row| take::<S>(role.items(row), dims, from))?;
    }
    Ok(())
}

fn take_number(from: &mut &[u8]) -> Result<usize, Malformed> {
    let bytes = from.split_off(..4).ok_or(Malformed)?;
    Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
}

/// Returns about how many bytes a row of a role takes: just how many, unless that depends on the row.
pub fn about_row_bytes<S: Store + ?Sized>(role: &Role<'_, S>, rows: usize, dims: usize) -> usize {
    row_bytes::<S>(dims).unwrap_or_else(|| 4 + size_of::<S::Item>() * role.num_items() / rows.max(1))
}

/// Writes the synced data of rows.
pub fn pack_sync<V: Vertex>(rows: &SharedRows<'_, V>, slice: &Slice<'_>, dims: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(slice.len() * row_bytes::<V::Sync>(dims).unwrap_or(0));
    put_role(&rows.sync, slice, dims, &mut out);
    out
}

/// Reads the synced data of rows from their masters, and refreshes the mirror data.
pub fn unpack_sync<V: Vertex>(
    rows: &mut OwnedRows<'_, V>,
    slice: &Slice<'_>,
    dims: usize,
    mut from: &[u8],
) -> Result<(), Malformed> {
    if V::Mirror::SHAPE == Shape::Nothing {
        take_role(&mut rows.sync, slice, dims, &mut from)?;
        return ended(from);
    }
    let mut old = Vec::new();
    for row in slice.rows(rows.rows.start) {
        let row = rows.row(row);
        old.clear();
        old.extend_from_slice(row.sync);
        take::<V::Sync>(row.sync, dims, &mut from)?;
        V::refresh(V::Mirror::view_mut(row.mirror), V::Sync::view(&old), V::Sync::view(row.sync));
    }
    ended(from)
}

/// Writes all that is in rows that move: synced and mirror data, and with `master` the master's.
pub fn pack_whole<V: Vertex>(rows: &SharedRows<'_, V>, slice: &Slice<'_>, dims: usize, master: bool) -> Vec<u8> {
    let mut out = Vec::new();
    put_role(&rows.sync, slice, dims, &mut out);
    put_role(&rows.mirror, slice, dims, &mut out);
    if master {
        put_role(&rows.master, slice, dims, &mut out);
    }
    out
}

/// Reads what [`pack_whole`] wrote.
pub fn unpack_whole<V: Vertex>(
    rows: &mut OwnedRows<'_, V>,
    slice: &Slice<'_>,
    dims: usize,
    master: bool,
    mut from: &[u8],
) -> Result<(), Malformed> {
    take_role(&mut rows.sync, slice, dims, &mut from)?;
    take_role(&mut rows.mirror, slice, dims, &mut from)?;
    if master {
        take_role(&mut rows.master, slice, dims, &mut from)?;
    }
    ended(from)
}

/// Sums this process's deltas of rows, writes them slice by slice and leaves zeros.
pub fn pack_deltas<V: Vertex>(
    rows: &mut OwnedRows<'_, V>,
    pick: &Pick,
    dims: usize,
    mut put_slice: impl FnMut(Range<usize>, Vec<u8>),
) {
    let first = rows.rows.start;
    rows.reduce();
    let row_bytes = row_bytes::<V::Delta>(dims).unwrap_or_else(|| {
        let items: usize = pick.whole().rows(first).map(|row| rows.row(row).delta.len()).sum();
        4 + size_of::<<V::Delta as Store>::Item>() * items / pick.len().max(1)
    });
    for places in slices(pick.len(), row_bytes) {
        let mut out = Vec::with_capacity(places.len() * row_bytes);
        pick.part(places.clone()).rows(first).for_each(|row| take_delta(rows, row, dims, &mut out));
        put_slice(places, out);
    }
}

/// Appends the delta of a row, and leaves zeros.
fn take_delta<V: Vertex>(rows: &mut OwnedRows<'_, V>, row: usize, dims: usize, out: &mut Vec<u8>) {
    let delta = rows.row(row).delta;
    put::<V::Delta>(delta, dims, out);
    delta.fill(Zeroable::zeroed());
}

/// Adds deltas of another process to those of rows.
pub fn add_deltas<V: Vertex>(
    rows: &mut OwnedRows<'_, V>,
    slice: &Slice<'_>,
    dims: usize,
    mut from: &[u8],
) -> Result<(), Malformed> {
    let mut scratch: Vec<<V::Delta as Store>::Item> = Vec::new();
    for row in slice.rows(rows.rows.start) {
        let delta = rows.row(row).delta;
        scratch.clear();
        scratch.resize(delta.len(), Zeroable::zeroed());
        take::<V::Delta>(&mut scratch, dims, &mut from)?;
        V::Delta::view_mut(delta).add(V::Delta::view(&scratch));
    }
    ended(from)
}

fn ended(from: &[u8]) -> Result<(), Malformed> {
    if from.is_empty() { Ok(()) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests;
