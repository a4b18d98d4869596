//! Edge data: one value per edge, a slice of values per edge, or nothing.

use std::marker::PhantomData;

use crate::store::Item;

/// What an edge carries. Implemented by the number types, `()` and [`Slice`]; implement [`Scalar`] for a type of your own.
pub trait EdgeData: 'static {
    /// What the array of edge data holds.
    type Item: Item;
    /// An edge function's view.
    type Mut<'a>;
    /// Whether an edge has a slice of items rather than one.
    const SLICE: bool;

    /// Views one edge's items: one item, or as many as the edge has.
    fn view_mut(items: &mut [Self::Item]) -> Self::Mut<'_>;
}

/// A plain type that can be the data of an edge.
pub trait Scalar: Item {}

macro_rules! scalars {
    ($($t:ty),*) => { $(impl Scalar for $t {})* };
}
scalars!((), u8, u16, u32, u64, i8, i16, i32, i64, f32, f64, [f32; 2], [u32; 2]);

impl<T: Scalar> EdgeData for T {
    type Item = T;
    type Mut<'a> = &'a mut T;
    const SLICE: bool = false;

    #[inline(always)]
    fn view_mut(items: &mut [T]) -> &mut T {
        &mut items[0]
    }
}

/// A slice of `T` per edge, lengths fixed by the graph: the topics of a word's occurrences in a document, say.
pub struct Slice<T>(PhantomData<T>);

impl<T: Item> EdgeData for Slice<T> {
    type Item = T;
    type Mut<'a> = &'a mut [T];
    const SLICE: bool = true;

    #[inline(always)]
    fn view_mut(items: &mut [T]) -> &mut [T] {
        items
    }
}
