//! What rows are made of, and the tables that servers and clients agree on.

use std::any::TypeId;
use std::marker::PhantomData;
use std::ops::Add;
use std::sync::Arc;

use bytemuck::Pod;

use crate::Error;

/// One value of a row: plain data with an associative and commutative update, so that updates may be combined on the way
/// and applied in any order.
///
/// A row is a fixed number of elements. A whole row of several fields can be one element: a `Pod` struct, in rows of
/// length 1. The alignment of an element is at most 8.
///
/// # Examples
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use megagrid_baselines::server::Element;
///
/// /// Keeps the largest value.
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// #[repr(transparent)]
/// struct Largest(i64);
/// impl Element for Largest {
///     const NAME: &'static str = "i64 (max)";
///     const IDENTITY: Self = Largest(i64::MIN);
///     fn merge(&mut self, delta: &Self) { self.0 = self.0.max(delta.0); }
/// }
/// ```
pub trait Element: Pod + Send + Sync {
    /// Names type and update; a server and its clients compare it.
    const NAME: &'static str;
    /// The value that a row begins with, and the update that changes nothing.
    const IDENTITY: Self;
    /// Changes `self` by an update, or combines two updates.
    fn merge(&mut self, delta: &Self);
}

macro_rules! sums {
    ($($type:ty => $name:literal, $add:expr);*) => {$(
        /// Updates are added; whole numbers wrap around.
        impl Element for $type {
            const NAME: &'static str = $name;
            const IDENTITY: Self = 0 as $type;
            #[inline]
            fn merge(&mut self, delta: &Self) {
                *self = $add(*self, *delta);
            }
        }
    )*};
}
sums!(
    f32 => "f32 (sum)", Add::add;
    f64 => "f64 (sum)", Add::add;
    i32 => "i32 (sum)", i32::wrapping_add;
    i64 => "i64 (sum)", i64::wrapping_add
);

/// Names a table whose rows are `row_len` elements `T`. Made by [`Tables::add`].
#[derive(Debug)]
pub struct Table<T> {
    number: u32,
    row_len: u32,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Table<T> {}

impl<T> Table<T> {
    /// Returns its number.
    pub fn number(self) -> u32 {
        self.number
    }

    /// Returns how many elements a row has.
    pub fn row_len(self) -> usize {
        self.row_len as usize
    }
}

/// The tables of a job, numbered from 0. Servers and clients are given the same.
#[derive(Debug, Clone, Default)]
pub struct Tables(Vec<Kind>);

impl Tables {
    /// Makes a job without tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a table whose rows have `row_len` elements.
    ///
    /// # Panics
    /// If a row would be empty or its elements need an alignment beyond 8: the program is wrong, not its data.
    pub fn add<T: Element>(&mut self, row_len: usize) -> Table<T> {
        assert!(row_len > 0 && size_of::<T>() > 0, "a row has at least one byte");
        assert!(align_of::<T>() <= 8, "rows are aligned to 8 bytes");
        let number = self.0.len() as u32;
        self.0.push(Kind::of::<T>(row_len));
        Table { number, row_len: row_len as u32, element: PhantomData }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(super) fn kind(&self, number: u32) -> Result<&Kind, Error> {
        match self.0.get(number as usize) {
            Some(kind) => Ok(kind),
            None => Err(Error::UnknownTable { table: number, tables: self.0.len() }),
        }
    }

    /// Checks that the table is of this job and has rows of this type and length.
    #[inline]
    pub(super) fn check<T: Element>(&self, table: Table<T>) -> Result<&Kind, Error> {
        let kind = self.kind(table.number)?;
        if kind.type_id == TypeId::of::<T>() && kind.row_len == table.row_len() {
            return Ok(kind);
        }
        Err(kind.mistaken_for(table))
    }

    /// Returns one line a table, which tells what its rows are.
    pub(super) fn descriptions(&self) -> String {
        self.0.iter().map(|kind| kind.description() + "\n").collect()
    }

    /// Checks that another process has the same tables.
    pub(super) fn compare(&self, theirs: &str) -> Result<(), Error> {
        for (table, found) in theirs.lines().enumerate() {
            let expected = self.kind(table as u32)?.description();
            if expected != found {
                return Err(Error::OtherRows { table: table as u32, expected, found: found.to_owned() });
            }
        }
        match theirs.lines().count() {
            count if count < self.len() => Err(Error::UnknownTable { table: count as u32, tables: count }),
            _ => Ok(()),
        }
    }
}

/// What the rows of a table are, for code that sees them as bytes.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    pub(super) row_len: usize,
    pub(super) row_bytes: usize,
    /// A row that nobody has updated.
    pub(super) identity: Arc<[u64]>,
    name: &'static str,
    type_id: TypeId,
    merge: fn(&mut [u8], &[u8]),
}

impl Kind {
    fn of<T: Element>(row_len: usize) -> Self {
        let mut identity = zeroed_words(row_len * size_of::<T>());
        let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut identity)[..row_len * size_of::<T>()];
        bytemuck::cast_slice_mut::<u8, T>(bytes).fill(T::IDENTITY);
        Self {
            row_len,
            row_bytes: row_len * size_of::<T>(),
            identity: identity.into(),
            name: T::NAME,
            type_id: TypeId::of::<T>(),
            merge: merge::<T>,
        }
    }

    /// Returns what is wrong with a table that is taken for one of these rows; away from accesses, which are checked.
    #[cold]
    fn mistaken_for<T: Element>(&self, table: Table<T>) -> Error {
        let found = Self::of::<T>(table.row_len()).description();
        Error::OtherRows { table: table.number, expected: self.description(), found }
    }

    /// Tells type, update and length.
    pub(super) fn description(&self) -> String {
        format!("{} {}", self.row_len, self.name)
    }

    /// Returns the bytes of a row that nobody has updated.
    pub(super) fn identity(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.identity)[..self.row_bytes]
    }

    /// Changes rows by updates; both of the same length, a number of whole rows, aligned as words are.
    #[inline]
    pub(super) fn merge(&self, rows: &mut [u8], updates: &[u8]) {
        (self.merge)(rows, updates);
    }
}

fn merge<T: Element>(rows: &mut [u8], updates: &[u8]) {
    let rows: &mut [T] = bytemuck::cast_slice_mut(rows);
    let updates: &[T] = bytemuck::cast_slice(updates);
    for (value, update) in rows.iter_mut().zip(updates) {
        value.merge(update);
    }
}

/// Returns aligned memory of some bytes.
pub(super) fn zeroed_words(bytes: usize) -> Vec<u64> {
    vec![0; bytes.div_ceil(8)]
}
