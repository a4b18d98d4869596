//! Stages on vertices: Apply at their masters, Incident with the data of all their edges, and GlobalSync, which folds
//! worker contexts and vertices into the shared context.

use crate::program::{Context, EdgeItem, Program};
use crate::vertex::Vertex;
use crate::view::{Master, Read, Total, Update};

/// Runs once per vertex of the mini-batch, at its master, on the summed delta of all its replicas (TuX² §3.3). The vertices
/// of a batch are those of its side's range, or all of them.
///
/// A function or a closure does too: see [`IntoApply`](crate::IntoApply). The trait is for those that pass vertices by.
pub trait Apply<P: Program, V: Vertex>: Send + Sync + 'static {
    /// Whether applying parts of the sum, in any order and at different times, is as good as applying the sum, and applying nothing
    /// changes nothing: `w += step * delta`, but not `w = delta`, nor a step that also shrinks w each time. With slack, workers then
    /// need not wait for each other's terms. Without slack the whole sum is applied at once all the same.
    ///
    /// Of a function: [`additive`](crate::additive).
    const ADDITIVE: bool = false;

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

/// Runs on every vertex of a side with the data of all its incident edges, which it may change. A function or a closure
/// does too: see [`IntoIncident`](crate::IntoIncident).
///
/// For what no edge can do by itself: counting what a vertex's edges carry before any is changed, or drawing the data of one
/// from another's. The other endpoints are not seen. All edges of a vertex are there, so a stage may stand only in
/// mini-batches of its own side's vertices.
pub trait Incident<P: Program, V: Vertex>: Send + Sync + 'static {
    /// Runs on one vertex. `items` are those of its edges, the items of an edge side by side, edges in an order that is the
    /// same each time; none for a vertex without edges.
    fn visit(&self, vertex: Update<'_, V>, items: &mut [EdgeItem<P>], cx: &mut Context<'_, P>);
}

/// Folds worker contexts into one total, and the total into the shared context (TuX² §3.3: Combine, Apply). Contexts are
/// combined in ascending worker order. One version of the shared context per clock is in flight.
///
/// A function or a closure does too: see [`IntoGlobalSync`](crate::IntoGlobalSync).
pub trait GlobalSync<P: Program>: Send + Sync + 'static {
    /// Finalizes the total into the next version of the shared context.
    fn apply(&self, total: P::Worker, global: &mut P::Global);
}

/// A [`GlobalSync`] that adds the vertices of a side to worker contexts before these are folded (TuX² §3.3: Aggregate).
pub trait Aggregate<P: Program, V: Vertex>: GlobalSync<P> {
    /// Adds a vertex to a worker context.
    fn aggregate(&self, vertex: Total<'_, V>, worker: &mut P::Worker);
}
