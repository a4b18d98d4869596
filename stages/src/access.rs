//! Access modes: what an edge function may do with an endpoint, and which fields the endpoint's view has.
//!
//! | mode | view | the engine guarantees |
//! |---|---|---|
//! | [`Read`] | `sync: &`, `mirror: &` | nobody writes the row meanwhile |
//! | [`Add`] | `sync: &`, `mirror: &`, `delta: &mut` | the delta is this worker's own |
//! | [`Update`] | `sync: &mut`, `mirror: &mut` | exclusive, in place |

use crate::store::Store;
use crate::vertex::Vertex;

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

type Ref<'a, S> = <S as Store>::Ref<'a>;
type Mut<'a, S> = <S as Store>::Mut<'a>;

/// What [`Read`] shows of a vertex.
pub struct ReadView<'a, V: Vertex> {
    /// The synced data.
    pub sync: Ref<'a, V::Sync>,
    /// The replica's own data.
    pub mirror: Ref<'a, V::Mirror>,
}

/// What [`Add`] shows of a vertex.
pub struct AddView<'a, V: Vertex> {
    /// The synced data.
    pub sync: Ref<'a, V::Sync>,
    /// The replica's own data.
    pub mirror: Ref<'a, V::Mirror>,
    /// What the master will be given at the next Apply.
    pub delta: Mut<'a, V::Delta>,
}

/// What [`Update`] shows of a vertex.
pub struct UpdateView<'a, V: Vertex> {
    /// The synced data.
    pub sync: Mut<'a, V::Sync>,
    /// The replica's own data.
    pub mirror: Mut<'a, V::Mirror>,
}

/// One vertex's data as an engine holds it while it runs an edge. An engine implements it; each method is called only for
/// the mode for which the engine has made the vertex ready.
pub trait Replica<'a, V: Vertex> {
    /// Shows what [`Read`] may see.
    fn read(self) -> ReadView<'a, V>;
    /// Shows what [`Add`] may see.
    fn add(self) -> AddView<'a, V>;
    /// Shows what [`Update`] may see.
    fn update(self) -> UpdateView<'a, V>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Read {}
    impl Sealed for super::Add {}
    impl Sealed for super::Update {}
}

/// An access mode as a type. Sealed: an engine's promises are made for [`Read`], [`Add`] and [`Update`] alone.
pub trait Access<V: Vertex>: sealed::Sealed + 'static {
    /// What the edge function is given.
    type View<'a>;
    /// The mode as a value.
    const MODE: Mode;

    /// Takes from a replica what the mode shows.
    fn view<'a, R: Replica<'a, V>>(replica: R) -> Self::View<'a>;
}

impl<V: Vertex> Access<V> for Read {
    type View<'a> = ReadView<'a, V>;
    const MODE: Mode = Mode::Read;

    #[inline(always)]
    fn view<'a, R: Replica<'a, V>>(replica: R) -> ReadView<'a, V> {
        replica.read()
    }
}

impl<V: Vertex> Access<V> for Add {
    type View<'a> = AddView<'a, V>;
    const MODE: Mode = Mode::Add;

    #[inline(always)]
    fn view<'a, R: Replica<'a, V>>(replica: R) -> AddView<'a, V> {
        replica.add()
    }
}

impl<V: Vertex> Access<V> for Update {
    type View<'a> = UpdateView<'a, V>;
    const MODE: Mode = Mode::Update;

    #[inline(always)]
    fn view<'a, R: Replica<'a, V>>(replica: R) -> UpdateView<'a, V> {
        replica.update()
    }
}
