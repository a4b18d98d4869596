//! Incident: a function on a vertex and the data of all its edges.

use crate::program::{Context, EdgeItem, Program};
use crate::vertex::Vertex;
use crate::view::Update;

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
