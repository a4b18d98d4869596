//! Stages on vertices: Apply at their masters, Incident with the data of all their edges, Gather with the vertices at the other ends
//! too, and GlobalSync, which folds worker contexts and vertices into the shared context.

use crate::program::{Context, EdgeItem, Program};
use crate::side::On;
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

    /// Tells whether vertices that [rest](Vertex::is_resting) are visited too at present.
    #[inline(always)]
    fn visits_resting(&self, _cx: &Context<'_, P>) -> bool {
        false
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

/// Runs on every vertex of a side with all its edges: what they carry, and the synced data of the vertices at their other ends. It
/// changes the vertex in place.
///
/// For what needs a vertex's neighbours together and more than once, so that a sum kept for each vertex would be large: normal
/// equations that are solved at once, or a median. An edge whose data are a slice counts once for each item. As an
/// [`Incident`], it may stand only in mini-batches of its own side's vertices.
pub trait Gather<P: Program, O: On<P>>: Send + Sync + 'static {
    /// Runs on one vertex. Neighbours are in an order that depends on nothing but the graph and the seed.
    fn gather<N: Neighbors<P, O>>(&self, vertex: Update<'_, O::Vertex>, neighbors: &N, cx: &mut Context<'_, P>);
}

/// The edges of a vertex of side `O`, and what is at their other ends. An engine implements it.
pub trait Neighbors<P: Program, O: On<P>> {
    /// Returns the number of edges.
    fn len(&self) -> usize;
    /// Tells whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns what an edge carries.
    fn edge(&self, edge: usize) -> &EdgeItem<P>;
    /// Returns the synced data at the other end of an edge. Best asked for in ascending order: those of later edges are fetched.
    fn sync(&self, edge: usize) -> &<<O::Other as On<P>>::Vertex as Vertex>::Sync;
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
    /// Tells whether vertices that [rest](Vertex::is_resting) are visited too at present.
    #[inline(always)]
    fn visits_resting(&self, _cx: &Context<'_, P>) -> bool {
        false
    }

    /// Adds a vertex to a worker context.
    fn aggregate(&self, vertex: Total<'_, V>, worker: &mut P::Worker);
}
