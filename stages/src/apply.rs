//! Apply: a function on a vertex at its master.

use crate::access::ReadView;
use crate::program::{Context, Program};
use crate::store::Store;
use crate::vertex::Vertex;

/// What Apply sees of a vertex.
pub struct MasterView<'a, V: Vertex> {
    /// The synced data; what it is set to goes to the mirrors.
    pub sync: <V::Sync as Store>::Mut<'a>,
    /// The master's own data.
    pub master: <V::Master as Store>::Mut<'a>,
    /// The summed delta of all replicas; zero afterwards.
    pub delta: <V::Delta as Store>::Ref<'a>,
}

/// Runs once per vertex of the mini-batch, at its master, on the summed delta of all its replicas (TuX² §3.3).
///
/// The vertices of a batch are those of its side's range, all of them, or, of a [`TRACKED`](Vertex::TRACKED) type, those that
/// were touched since the last Apply.
pub trait Apply<P: Program, V: Vertex>: Send + Sync + 'static {
    /// Whether it runs on every vertex of a tracked type too, touched or not.
    const ALL: bool = false;

    /// Tells whether [`apply`](Self::apply) runs on a vertex; else it stays as it is, what was added to its delta too. An Apply with
    /// no stage that adds between it and the one before has a zero delta: what was left there waits for one that has.
    ///
    /// Costs a look at the synced data where Apply would load all roles, and write some of them.
    #[inline(always)]
    fn is_active(&self, _vertex: ReadView<'_, V>, _cx: &Context<'_, P>) -> bool {
        true
    }

    /// Runs on one vertex.
    fn apply(&self, vertex: MasterView<'_, V>, cx: &mut Context<'_, P>);
}
