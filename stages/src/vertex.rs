//! Vertex types and the four roles of their data.

use crate::store::{Additive, Store};

/// One side of the graph: `User`, `Item`, `Document`, `Word`, `Sample`, `Feature`, `Page`.
///
/// Vertex data is heterogeneous twice over (TuX² §3.1): each type has its own data, and each role is stored, and travels,
/// by itself. Any role may be `()`. The first value of every role is all-zero bytes until the program's user sets it.
pub trait Vertex: 'static {
    /// What master and mirrors agree on at an Apply (TuX²'s `VertexDataSync`). Travels master -> mirrors.
    type Sync: Store;
    /// What a replica accumulates between two Applies. Travels mirrors -> master.
    type Delta: Additive;
    /// Held by the master alone and seen by Apply alone: optimizer state, say. Never travels.
    type Master: Store;
    /// Held by each replica alone: history or a cache built from the synced data. Never travels.
    type Mirror: Store;
    /// Whether Apply runs on those vertices alone that an edge function changed or added to since the last Apply, rather
    /// than on all of the batch. Pays where a batch touches few (TuX² §3.2's dirty tracking); costs a byte for each vertex and a store for each edge.
    const TRACKED: bool = false;

    /// Brings a replica's own data up to date. Runs once per replica when new synced data arrives.
    #[inline(always)]
    fn refresh(
        _mirror: <Self::Mirror as Store>::Mut<'_>,
        _old: <Self::Sync as Store>::Ref<'_>,
        _new: <Self::Sync as Store>::Ref<'_>,
    ) {
    }
}

/// A side without data.
impl Vertex for () {
    type Sync = ();
    type Delta = ();
    type Master = ();
    type Mirror = ();
}
