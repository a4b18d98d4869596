//! Incident: a function on a vertex and the data of all its edges.

use crate::access::UpdateView;
use crate::edge::EdgeData;
use crate::program::{Context, Program};
use crate::vertex::Vertex;

/// What the array of a program's edge data holds.
pub type EdgeItem<P> = <<P as Program>::Edge as EdgeData>::Item;

/// Runs on every vertex of a side with the data of all its incident edges, which it may change.
///
/// For what no edge can do by itself: counting what a vertex's edges carry before any is changed, or drawing the data of one
/// from another's. The other endpoints are not seen. All edges of a vertex are there, so a stage may stand in mini-batches
/// of its own side's vertices alone.
///
/// A vertex that it changes does not count as touched ([`TRACKED`](Vertex::TRACKED)).
pub trait Incident<P: Program, V: Vertex>: Send + Sync + 'static {
    /// Runs on one vertex. `items` are those of its edges, the items of an edge side by side, edges in an order that is the
    /// same each time; none for a vertex without edges.
    fn visit(&self, vertex: UpdateView<'_, V>, items: &mut [EdgeItem<P>], cx: &mut Context<'_, P>);
}
