//! How one role of vertex data lies in memory: one value per vertex, a row of `k` values, sparse counts, or nothing.
//!
//! A store never owns memory. It says how many items a vertex has and how a vertex's items are seen; an engine keeps the
//! items of all vertices of a shard in one contiguous array.

use std::marker::PhantomData;

use bytemuck::Pod;

/// What an array of vertex data is made of: plain bytes, all-zero at the start.
pub trait Item: Pod + Send + Sync {}
impl<T: Pod + Send + Sync> Item for T {}

/// How many items a vertex has in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// No item: `()`.
    Nothing,
    /// One item: [`Value`].
    Value,
    /// The row width of the side, a multiple of [`ROW_ALIGN`]: [`Row`].
    Row,
    /// A capacity of its own for each vertex, fixed from the graph: [`Counts`](crate::Counts).
    Counts,
}

/// Rows are padded to a multiple of this many items, so that vector loops need no remainder.
pub const ROW_ALIGN: usize = 16;

/// Returns the padded width of a row of `dims` items.
#[must_use]
pub const fn row_width(dims: usize) -> usize {
    dims.next_multiple_of(ROW_ALIGN)
}

/// How the items of a vertex that replicas change by themselves are told from what they were, and brought together.
///
/// Changes of several replicas come in any order; the sum of all is what it would be if one had made them.
pub struct Changes<I> {
    /// Appends what has to be added to the items before to have those now, of a side of `dims` items a row: `(now, before,
    /// dims, out)`. Appends nothing where nothing changed.
    pub append: fn(&[I], &[I], usize, &mut Vec<I>),
    /// Adds a change: `(into, change, dims)`. Returns false if it does not fit the vertex.
    pub add: fn(&mut [I], &[I], usize) -> bool,
}

/// One role of the data of a vertex type. See [`Vertex`](crate::Vertex) for the roles.
pub trait Store: 'static {
    /// What an array of this store holds.
    type Item: Item;
    /// A shared view of one vertex's data.
    type Ref<'a>: Copy;
    /// An exclusive view of one vertex's data.
    type Mut<'a>;
    /// How many items a vertex has.
    const SHAPE: Shape;
    /// How changes of counts are summed; `None`: they are not. Values and rows of numbers are summed item by item.
    const CHANGES: Option<Changes<Self::Item>> = None;

    /// Views the items of one vertex; `items` has the length that [`Self::SHAPE`] says.
    fn view(items: &[Self::Item]) -> Self::Ref<'_>;

    /// Views the items of one vertex exclusively.
    fn view_mut(items: &mut [Self::Item]) -> Self::Mut<'_>;
}

/// A store whose replicas' data can be summed; all-zero bytes are its neutral element.
///
/// Addition must be associative and commutative up to rounding: deltas of several replicas are reduced in a fixed order.
pub trait Additive: Store {
    /// Adds the items of one vertex: `into += from`.
    fn add(into: &mut [Self::Item], from: &[Self::Item]);
}

/// No data.
impl Store for () {
    type Item = u8;
    type Ref<'a> = ();
    type Mut<'a> = ();
    const SHAPE: Shape = Shape::Nothing;

    #[inline(always)]
    fn view(_: &[u8]) {}

    #[inline(always)]
    fn view_mut(_: &mut [u8]) {}
}

impl Additive for () {
    #[inline(always)]
    fn add(_: &mut [u8], _: &[u8]) {}
}

/// One `T` per vertex.
pub struct Value<T>(PhantomData<T>);

impl<T: Item> Store for Value<T> {
    type Item = T;
    type Ref<'a> = &'a T;
    type Mut<'a> = &'a mut T;
    const SHAPE: Shape = Shape::Value;

    #[inline(always)]
    fn view(items: &[T]) -> &T {
        &items[0]
    }

    #[inline(always)]
    fn view_mut(items: &mut [T]) -> &mut T {
        &mut items[0]
    }
}

impl<T: Item + std::ops::AddAssign> Additive for Value<T> {
    #[inline(always)]
    fn add(into: &mut [T], from: &[T]) {
        into[0] += from[0];
    }
}

/// A row of `k` values per vertex, `k` known at run time, padded with zeros to [`row_width`] and aligned to 64 bytes.
///
/// A view is the padded row. An edge function must leave zeros at zero.
pub struct Row<T>(PhantomData<T>);

impl<T: Item> Store for Row<T> {
    type Item = T;
    type Ref<'a> = &'a [T];
    type Mut<'a> = &'a mut [T];
    const SHAPE: Shape = Shape::Row;

    #[inline(always)]
    fn view(items: &[T]) -> &[T] {
        items
    }

    #[inline(always)]
    fn view_mut(items: &mut [T]) -> &mut [T] {
        items
    }
}

impl<T: Item + std::ops::AddAssign> Additive for Row<T> {
    #[inline(always)]
    fn add(into: &mut [T], from: &[T]) {
        for (a, b) in into.iter_mut().zip(from) {
            *a += *b;
        }
    }
}
