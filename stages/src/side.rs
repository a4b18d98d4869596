//! The sides of a graph as types.

use megagrid_partition::Side;

use crate::program::Program;
use crate::vertex::Vertex;

/// The left side, as in `sequence.apply(Left, stage)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left;
/// The right side. On a square graph both sides are the same vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right;

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Left {}
    impl Sealed for super::Right {}
}

/// A side of a program: [`Left`] or [`Right`].
pub trait On<P: Program>: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The vertices of that side.
    type Vertex: Vertex;
    /// The other side.
    type Other: On<P>;
    /// The side as a value.
    const SIDE: Side;

    /// Picks this side's of two things.
    fn of<T: Sides<P>>(both: &T) -> &T::Of<Self::Vertex>;
}

/// Two things of one kind, one for each side of a program: an engine's vertex arrays, say.
pub trait Sides<P: Program> {
    /// The kind, by the vertices of the side.
    type Of<V: Vertex>;
    /// The left side's.
    fn left(&self) -> &Self::Of<P::Left>;
    /// The right side's.
    fn right(&self) -> &Self::Of<P::Right>;
}

impl<P: Program> On<P> for Left {
    type Vertex = P::Left;
    type Other = Right;
    const SIDE: Side = Side::Left;

    #[inline(always)]
    fn of<T: Sides<P>>(both: &T) -> &T::Of<P::Left> {
        both.left()
    }
}

impl<P: Program> On<P> for Right {
    type Vertex = P::Right;
    type Other = Left;
    const SIDE: Side = Side::Right;

    #[inline(always)]
    fn of<T: Sides<P>>(both: &T) -> &T::Of<P::Right> {
        both.right()
    }
}
