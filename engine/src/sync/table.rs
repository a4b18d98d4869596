//! Rows of items one after the other, each of a length of its own; and changes of some rows, as messages hold them.

use megagrid_stages::Item;

use super::dirty;
use super::form::Form;
use super::message::Malformed;

#[derive(Clone, Debug)]
pub struct Table<I> {
    items: Vec<I>,
    ends: Vec<usize>,
}

impl<I> Default for Table<I> {
    fn default() -> Self {
        Self { items: Vec::new(), ends: Vec::new() }
    }
}

impl<I: Item> Table<I> {
    pub fn push(&mut self, row: &[I]) {
        self.push_with(|items| items.extend_from_slice(row));
    }

    /// Appends a row of the items that `append` appends, and tells whether there are any.
    fn push_with(&mut self, append: impl FnOnce(&mut Vec<I>)) -> bool {
        let begin = self.items.len();
        append(&mut self.items);
        self.ends.push(self.items.len());
        self.items.len() > begin
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn bytes(&self) -> u64 {
        size_of_val(&self.items[..]) as u64
    }

    fn span(&self, row: usize) -> std::ops::Range<usize> {
        let begin = if row == 0 { 0 } else { self.ends[row - 1] };
        begin..self.ends[row]
    }

    pub fn row(&self, row: usize) -> &[I] {
        &self.items[self.span(row)]
    }

    pub fn row_mut(&mut self, row: usize) -> &mut [I] {
        let span = self.span(row);
        &mut self.items[span]
    }

    pub fn only(&self, rows: impl Iterator<Item = usize>) -> Self {
        let mut only = Self::default();
        rows.for_each(|row| only.push(self.row(row)));
        only
    }

    /// Appends the rows as bytes.
    pub fn put(&self, form: Form, out: &mut Vec<u8>) {
        match form.together(self.len()) {
            Some(form) => form.put(&self.items, out),
            None => (0..self.len()).for_each(|row| form.put(self.row(row), out)),
        }
    }

    /// Reads rows that [`Self::put`] wrote; those of different lengths as they were written.
    pub fn take(rows: usize, form: Form, from: &mut &[u8]) -> Result<Self, Malformed> {
        let mut table = Self::default();
        if let (Some(together), Some(width)) = (form.together(rows), form.width()) {
            together.append(&mut table.items, from)?;
            table.ends = (1..=rows).map(|row| row * width).collect();
            return Ok(table);
        }
        for _ in 0..rows {
            form.append(&mut table.items, from)?;
            table.ends.push(table.items.len());
        }
        Ok(table)
    }

    /// Fills each row up with zeros to the length of that of another table.
    pub fn padded_as(&self, other: &Self) -> Result<Self, Malformed> {
        let mut padded = Self::default();
        for row in 0..self.len() {
            let (items, len) = (self.row(row), other.row(row).len());
            if items.len() > len {
                return Err(Malformed);
            }
            padded.push_with(|all| {
                all.extend_from_slice(items);
                all.resize(all.len() + len - items.len(), I::zeroed());
            });
        }
        Ok(padded)
    }
}

/// Changes of some rows of a list.
#[derive(Clone, Debug)]
pub struct RowChanges<I> {
    /// The rows that changed, ascending.
    rows: Vec<u32>,
    changes: Table<I>,
}

impl<I: Item> RowChanges<I> {
    /// Takes down for each of this many rows the change that `append` appends, if any.
    pub fn of(rows: usize, append: impl Fn(usize, &mut Vec<I>)) -> Self {
        let mut changed = Self { rows: Vec::new(), changes: Table::default() };
        for row in 0..rows {
            if changed.changes.push_with(|items| append(row, items)) {
                changed.rows.push(row as u32);
            } else {
                changed.changes.ends.pop();
            }
        }
        changed
    }

    pub fn each(&self) -> impl Iterator<Item = (usize, &[I])> {
        self.rows.iter().enumerate().map(|(at, &row)| (row as usize, self.changes.row(at)))
    }

    pub fn bytes(&self) -> u64 {
        self.changes.bytes()
    }

    /// Writes the body of a message, of changes of some of `all` rows.
    pub fn to_bytes(&self, all: usize, form: Form) -> Vec<u8> {
        let mut out = Vec::with_capacity(4 + 4 * self.rows.len() + self.bytes() as usize);
        dirty::put(&self.rows, all, &mut out);
        self.changes.put(form, &mut out);
        out
    }

    /// Reads the body of a message.
    pub fn from_bytes(mut from: &[u8], all: usize, form: Form) -> Result<Self, Malformed> {
        let rows = dirty::take(all, &mut from)?;
        let changes = Table::take(rows.len(), form, &mut from)?;
        if from.is_empty() { Ok(Self { rows, changes }) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use megagrid_stages::{Vertex, vertex};

    use super::*;
    use crate::grid::entries::Entries;

    vertex! { struct Plain { sync: Entries } }

    struct Counted;

    impl Vertex for Counted {
        type Sync = Entries;
        type Delta = ();
        type Master = ();
        type Mirror = ();
        const COUNTS: bool = true;
    }

    #[test]
    fn changes_survive_a_message_and_truncated_ones_are_refused() {
        let now: [&[u32]; 3] = [&[3, 0, 0], &[], &[7, 8, 0]];
        let append = |row: usize, out: &mut Vec<u32>| out.extend_from_slice(now[row]);
        let changes = RowChanges::of(3, append);
        for form in [Form::of::<Plain, Entries>(3), Form::of::<Counted, Entries>(3)] {
            let bytes = changes.to_bytes(3, form);
            let read = RowChanges::<u32>::from_bytes(&bytes, 3, form).unwrap();
            let found: Vec<_> = read.each().collect();
            assert_eq!(found, [(0, &[3][..]), (2, &[7, 8][..])]);
            assert!((0..bytes.len()).all(|len| RowChanges::<u32>::from_bytes(&bytes[..len], 3, form).is_err()));
        }
    }

    #[test]
    fn rows_of_one_length_go_together() {
        let mut table = Table::default();
        [[1.0_f32, 0.0, 0.5], [0.0; 3]].iter().for_each(|row| table.push(row));
        for (form, len) in [(Form::of::<Plain, [f32]>(3), 24), (Form::of::<Counted, [f32]>(3), 7)] {
            let mut bytes = Vec::new();
            table.put(form, &mut bytes);
            assert_eq!(bytes.len(), len);
            let read = Table::<f32>::take(2, form, &mut &bytes[..]).unwrap();
            assert_eq!((read.row(0), read.row(1)), (table.row(0), table.row(1)));
            assert_eq!(Table::<f32>::take(2, form, &mut &bytes[..len - 1]).unwrap_err(), Malformed);
        }
    }

    #[test]
    fn rows_are_filled_up_with_zeros() {
        let mut like = Table::default();
        [&[1_u32, 2, 3][..], &[4]].iter().for_each(|row| like.push(row));
        let mut short = Table::default();
        [&[9_u32][..], &[]].iter().for_each(|row| short.push(row));
        let padded = short.padded_as(&like).unwrap();
        assert_eq!((padded.row(0), padded.row(1)), (&[9, 0, 0][..], &[0][..]));
        assert_eq!(like.padded_as(&short).unwrap_err(), Malformed);
    }
}
