//! Apply: a function on a vertex at its master.

use crate::program::{Context, Program};
use crate::vertex::Vertex;
use crate::view::{Master, Read};

/// Runs once per vertex of the mini-batch, at its master, on the summed delta of all its replicas (TuX² §3.3). The vertices
/// of a batch are those of its side's range, or all of them.
///
/// A function or a closure does too: see [`IntoApply`](crate::IntoApply). The trait is for those that pass vertices by.
pub trait Apply<P: Program, V: Vertex>: Send + Sync + 'static {
    /// Tells whether [`apply`](Self::apply) runs on a vertex; else it stays as it is, what was added to its delta too. An Apply with
    /// no stage that adds between it and the one before has a zero delta: what was left there waits for one that has.
    ///
    /// Costs a look at the synced data where Apply would load all roles, and write some of them.
    #[inline(always)]
    fn is_active(&self, _vertex: Read<'_, V>, _cx: &Context<'_, P>) -> bool {
        true
    }

    /// Runs on one vertex.
    fn apply(&self, vertex: Master<'_, V>, cx: &mut Context<'_, P>);
}
