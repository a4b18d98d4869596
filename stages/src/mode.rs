//! Access modes: what an edge function may do with an endpoint, and which view it is given.
//!
//! | mode | view | the engine guarantees |
//! |---|---|---|
//! | [`Read`] | [`view::Read`]: `sync: &`, `mirror: &` | nobody writes the row meanwhile |
//! | [`Add`] | [`view::Add`]: `sync: &`, `mirror: &`, `delta: &mut` | the delta is this worker's own |
//! | [`Update`] | [`view::Update`]: `sync: &mut`, `mirror: &mut` | exclusive, in place |

use crate::vertex::Vertex;
use crate::view;

/// The access modes as values, from which an engine derives its schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Mode {
    /// See [`Read`].
    Read,
    /// See [`Add`].
    Add,
    /// See [`Update`].
    Update,
}

/// Endpoint is looked at.
pub enum Read {}
/// Endpoint is looked at, and its delta is added to.
pub enum Add {}
/// Endpoint is changed in place.
pub enum Update {}

/// One vertex's data as an engine holds it while it runs an edge. An engine implements it; each method is called only for
/// the mode for which the engine has made the vertex ready.
pub trait Replica<'a, V: Vertex> {
    /// Shows what [`Read`] may see.
    fn read(self) -> view::Read<'a, V>;
    /// Shows what [`Add`] may see.
    fn add(self) -> view::Add<'a, V>;
    /// Shows what [`Update`] may see.
    fn update(self) -> view::Update<'a, V>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Read {}
    impl Sealed for super::Add {}
    impl Sealed for super::Update {}
}

/// An access mode as a type. Sealed: an engine's promises are made for [`Read`], [`Add`] and [`Update`] only.
pub trait Access<V: Vertex>: sealed::Sealed + 'static {
    /// What the edge function is given.
    type View<'a>;
    /// The mode as a value.
    const MODE: Mode;

    /// Takes from a replica what the mode shows.
    fn view<'a, R: Replica<'a, V>>(replica: R) -> Self::View<'a>;
}

/// What an edge function sees of an endpoint of type `V` with access mode `A`.
pub type View<'a, A, V> = <A as Access<V>>::View<'a>;

macro_rules! modes {
    ($($mode:ident by $method:ident),*) => { $(
        impl<V: Vertex> Access<V> for $mode {
            type View<'a> = view::$mode<'a, V>;
            const MODE: Mode = Mode::$mode;

            #[inline(always)]
            fn view<'a, R: Replica<'a, V>>(replica: R) -> view::$mode<'a, V> {
                replica.$method()
            }
        }
    )* };
}
modes!(Read by read, Add by add, Update by update);
