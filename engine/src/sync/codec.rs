//! Rows as bytes: what a message's body holds, one row after the other, each in its [`Form`].

use std::ops::Range;

use bytemuck::{Zeroable, bytes_of, bytes_of_mut, cast_slice, cast_slice_mut};
use megagrid_stages::{Additive, Item, Shape, Store, Vertex};

use super::form::{Form, row_bytes};
use super::message::Malformed;
use super::pick::{Pick, Slice, slices};
use crate::grid::{OwnedRows, Role, RoleMut, SharedRows};

/// Appends rows of a role, in one go where they lie side by side.
fn put_role<V: Vertex, S: Store + ?Sized>(role: &Role<'_, S>, slice: &Slice<'_>, dims: usize, out: &mut Vec<u8>) {
    let form = Form::of::<V, S>(dims);
    let plain = form.plain_width();
    if let (Slice::Range(rows), Some(items), Some(width)) = (slice, role.side_by_side(dims), plain) {
        out.extend_from_slice(cast_slice(&items[rows.start * width..rows.end * width]));
    } else if let (Slice::List(rows), Shape::Value, Some(values), Some(_)) =
        (slice, S::SHAPE, role.side_by_side(1), plain)
    {
        let begin = out.len();
        out.resize(begin + size_of::<S::Item>() * rows.len(), 0);
        let places = out[begin..].chunks_exact_mut(size_of::<S::Item>());
        places.zip(*rows).for_each(|(place, &row)| place.copy_from_slice(bytes_of(&values[row as usize])));
    } else if let Some((all, width)) = form.counts_together(slice.len()) {
        let mut items = Vec::with_capacity(slice.len() * width);
        slice.rows(role.first()).for_each(|row| items.extend_from_slice(&role.items(row)[..width]));
        all.put(&items, out);
    } else {
        slice.rows(role.first()).for_each(|row| form.put(role.items(row), out));
    }
}

/// Reads rows of a role, in one go where they lie side by side.
fn take_role<V: Vertex, S: Store + ?Sized>(
    role: &mut RoleMut<'_, S>,
    slice: &Slice<'_>,
    dims: usize,
    from: &mut &[u8],
) -> Result<(), Malformed> {
    let form = Form::of::<V, S>(dims);
    let plain = form.plain_width();
    if let (Slice::Range(rows), Some(items), Some(width)) = (slice, role.side_by_side(dims), plain) {
        let items = &mut items[rows.start * width..rows.end * width];
        let bytes = from.split_off(..size_of_val(items)).ok_or(Malformed)?;
        cast_slice_mut(items).copy_from_slice(bytes);
    } else if let (Slice::List(rows), Shape::Value, Some(values), Some(_)) =
        (slice, S::SHAPE, role.side_by_side(1), plain)
    {
        let bytes = from.split_off(..size_of::<S::Item>() * rows.len()).ok_or(Malformed)?;
        let items = bytes.chunks_exact(size_of::<S::Item>());
        items.zip(*rows).for_each(|(item, &row)| bytes_of_mut(&mut values[row as usize]).copy_from_slice(item));
    } else {
        let mut reader = Reader::new(form, slice.len(), from)?;
        slice.rows(role.first()).try_for_each(|row| reader.next(role.items(row), from))?;
    }
    Ok(())
}

/// Reads what [`put_role`] wrote, row by row.
struct Reader<I> {
    form: Form,
    /// The items of all rows, where they went together: of each row this many, and these were read.
    items: Vec<I>,
    width: Option<usize>,
    done: usize,
}

impl<I: Item> Reader<I> {
    fn new(form: Form, rows: usize, from: &mut &[u8]) -> Result<Self, Malformed> {
        let (mut items, together) = (Vec::new(), form.counts_together(rows));
        if let Some((all, _)) = together {
            all.append(&mut items, from)?;
        }
        Ok(Self { form, items, width: together.map(|(_, width)| width), done: 0 })
    }

    fn next(&mut self, items: &mut [I], from: &mut &[u8]) -> Result<(), Malformed> {
        let Some(width) = self.width else { return self.form.read(items, from) };
        items[..width].copy_from_slice(&self.items[self.done..self.done + width]);
        self.done += width;
        Ok(())
    }
}

/// Returns about how many bytes the synced data of a row take: just how many, unless that depends on the row.
pub fn about_sync_bytes<V: Vertex>(rows: &SharedRows<'_, V>, dims: usize) -> usize {
    about_bytes::<V, _>(&rows.sync, rows.rows.len(), dims)
}

/// As [`about_sync_bytes`], of all that is in a row that moves.
pub fn about_whole_bytes<V: Vertex>(rows: &SharedRows<'_, V>, dims: usize) -> usize {
    about_sync_bytes(rows, dims) + about_bytes::<V, _>(&rows.mirror, rows.rows.len(), dims)
}

fn about_bytes<V: Vertex, S: Store + ?Sized>(role: &Role<'_, S>, rows: usize, dims: usize) -> usize {
    Form::of::<V, S>(dims).about_row_bytes::<S::Item>(role.num_items(), rows)
}

/// Writes the synced data of rows.
pub fn pack_sync<V: Vertex>(rows: &SharedRows<'_, V>, slice: &Slice<'_>, dims: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(slice.len() * row_bytes::<V, V::Sync>(dims).unwrap_or(0));
    put_role::<V, _>(&rows.sync, slice, dims, &mut out);
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
        take_role::<V, _>(&mut rows.sync, slice, dims, &mut from)?;
        return ended(from);
    }
    let (mut reader, mut old) = (Reader::new(Form::of::<V, V::Sync>(dims), slice.len(), &mut from)?, Vec::new());
    for row in slice.rows(rows.rows.start) {
        let row = rows.row(row);
        old.clear();
        old.extend_from_slice(row.sync);
        reader.next(row.sync, &mut from)?;
        V::refresh(V::Mirror::view_mut(row.mirror), V::Sync::view(&old), V::Sync::view(row.sync));
    }
    ended(from)
}

/// Writes all that is in rows that move: synced and mirror data, and with `master` the master's.
pub fn pack_whole<V: Vertex>(rows: &SharedRows<'_, V>, slice: &Slice<'_>, dims: usize, master: bool) -> Vec<u8> {
    let mut out = Vec::new();
    put_role::<V, _>(&rows.sync, slice, dims, &mut out);
    put_role::<V, _>(&rows.mirror, slice, dims, &mut out);
    if master {
        put_role::<V, _>(&rows.master, slice, dims, &mut out);
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
    take_role::<V, _>(&mut rows.sync, slice, dims, &mut from)?;
    take_role::<V, _>(&mut rows.mirror, slice, dims, &mut from)?;
    if master {
        take_role::<V, _>(&mut rows.master, slice, dims, &mut from)?;
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
    let form = Form::of::<V, V::Delta>(dims);
    let items = match form.width() {
        Some(_) => 0,
        None => pick.whole().rows(first).map(|row| rows.row(row).delta.len()).sum(),
    };
    let row_bytes = form.about_row_bytes::<<V::Delta as Store>::Item>(items, pick.len());
    for places in slices(pick.len(), row_bytes) {
        let mut out = Vec::with_capacity(places.len() * row_bytes);
        pick.part(places.clone()).rows(first).for_each(|row| take_delta(rows, row, form, &mut out));
        put_slice(places, out);
    }
}

/// Appends the delta of a row, and leaves zeros.
fn take_delta<V: Vertex>(rows: &mut OwnedRows<'_, V>, row: usize, form: Form, out: &mut Vec<u8>) {
    let delta = rows.row(row).delta;
    form.put(delta, out);
    delta.fill(Zeroable::zeroed());
}

/// Adds deltas of another process to those of rows.
pub fn add_deltas<V: Vertex>(
    rows: &mut OwnedRows<'_, V>,
    slice: &Slice<'_>,
    dims: usize,
    mut from: &[u8],
) -> Result<(), Malformed> {
    let form = Form::of::<V, V::Delta>(dims);
    let mut scratch: Vec<<V::Delta as Store>::Item> = Vec::new();
    for row in slice.rows(rows.rows.start) {
        let delta = rows.row(row).delta;
        scratch.clear();
        scratch.resize(delta.len(), Zeroable::zeroed());
        form.read(&mut scratch, &mut from)?;
        V::Delta::view_mut(delta).add(V::Delta::view(&scratch));
    }
    ended(from)
}

fn ended(from: &[u8]) -> Result<(), Malformed> {
    if from.is_empty() { Ok(()) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests;
