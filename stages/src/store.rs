//! How one role of vertex data, or the data of an edge, lies in memory: one value, a row of `k` values, entries up to a
//! capacity of its own for each vertex, or nothing.
//!
//! A store never owns memory. It says how many items a vertex has and how a vertex's items are seen; an engine keeps the
//! items of all vertices of a shard in one contiguous array.

use bytemuck::Pod;

/// What an array of vertex data is made of: plain bytes, all-zero at the start.
pub trait Item: Pod + Send + Sync {}
impl<T: Pod + Send + Sync> Item for T {}

/// How many items a vertex has in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One item without bytes: `()`.
    Nothing,
    /// One item: `T`.
    Value,
    /// The row width of the graph, a multiple of [`ROW_ALIGN`]: `[T]`. At an edge: as many items as that edge has.
    Row,
    /// A capacity of its own for each vertex, fixed from the graph.
    Entries,
}

impl Shape {
    /// Tells whether only the graph or the settings say how many items there are.
    #[must_use]
    pub const fn is_slice(self) -> bool {
        matches!(self, Self::Row | Self::Entries)
    }
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
    /// Appends what has to be added to the items before to have those now, in a graph of `dims` items a row: `(now,
    /// before, dims, out)`. Appends nothing where nothing changed.
    pub append: fn(&[I], &[I], usize, &mut Vec<I>),
    /// Adds a change: `(into, change, dims)`. Returns false if it does not fit the vertex.
    pub add: fn(&mut [I], &[I], usize) -> bool,
}

/// What one role of a vertex holds, or an edge: the type that stage functions see.
///
/// | type | of each vertex |
/// |---|---|
/// | `T`, plain data ([`Item`]) | one value |
/// | `[T]` | a row of `k` values, `k` known at run time, padded with zeros to [`row_width`], aligned to 64 bytes |
/// | `()` | nothing |
///
/// A row is shown with its padding. First values and stage functions leave the padding at zero, which debug builds check; `Engine::init`
/// always does.
///
/// For data of another form implement it for an unsized type of your own around a slice: `#[repr(transparent)] struct
/// Packed([u32])`, with [`bytemuck::TransparentWrapper`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the data of a vertex or an edge",
    note = "write a plain type (numbers, arrays of them, a `#[repr(C)]` struct that derives `bytemuck::Pod` and `bytemuck::Zeroable` \
            with `#[bytemuck(crate = \"megagrid::bytemuck\")]`; `u8` in place of `bool`), a slice `[T]` of one, or `()`"
)]
pub trait Store: 'static {
    /// What an array of this store holds.
    type Item: Item;
    /// How many items a vertex has: of [`Shape::Nothing`] only where an item has no bytes, or the program does not compile.
    const SHAPE: Shape;
    /// How changes of entries are summed; `None`: they are not. Values and rows of numbers are summed item by item.
    const CHANGES: Option<Changes<Self::Item>> = None;

    /// Views the items of one vertex; `items` has the length that [`Self::SHAPE`] says.
    fn view(items: &[Self::Item]) -> &Self;

    /// Views the items of one vertex exclusively.
    fn view_mut(items: &mut [Self::Item]) -> &mut Self;
}

/// One `T` a vertex; nothing where `T` has no bytes.
impl<T: Item> Store for T {
    type Item = T;
    const SHAPE: Shape = if size_of::<T>() == 0 { Shape::Nothing } else { Shape::Value };

    #[inline(always)]
    fn view(items: &[T]) -> &T {
        &items[0]
    }

    #[inline(always)]
    fn view_mut(items: &mut [T]) -> &mut T {
        &mut items[0]
    }
}

/// A row a vertex.
impl<T: Item> Store for [T] {
    type Item = T;
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

/// Data whose sum over replicas makes sense; all-zero bytes are its neutral element. Implemented for numbers, arrays and
/// slices of them, `()`, and [`Max`](crate::Max), whose "sum" is the larger one.
///
/// What a function on an edge is shown of a delta may be a part of it, which began at zero: it adds to it, and neither looks at it nor
/// sets it.
///
/// Addition is associative and commutative up to rounding: deltas of several replicas are reduced in a fixed order.
///
/// # Examples
/// ```
/// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// #[repr(C)]
/// struct Votes { yes: u32, no: u32 }
///
/// impl megagrid_stages::Additive for Votes {
///     fn add(&mut self, other: &Self) {
///         self.yes += other.yes;
///         self.no += other.no;
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a delta",
    note = "deltas of several replicas are summed: implement `Additive` for it, or write a number, a slice `[f32]`, or `()`"
)]
pub trait Additive: Store {
    /// Adds `other` to this.
    fn add(&mut self, other: &Self);
}

impl Additive for () {
    #[inline(always)]
    fn add(&mut self, (): &()) {}
}

macro_rules! additive_numbers {
    ($($t:ty)*) => { $(
        impl Additive for $t {
            #[inline(always)]
            fn add(&mut self, other: &Self) {
                *self += *other;
            }
        }
    )* };
}
additive_numbers!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

impl<T: Additive, const N: usize> Additive for [T; N]
where
    Self: Item,
{
    #[inline(always)]
    fn add(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(a, b)| a.add(b));
    }
}

impl<T: Item + Additive> Additive for [T] {
    #[inline(always)]
    fn add(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(a, b)| a.add(b));
    }
}
