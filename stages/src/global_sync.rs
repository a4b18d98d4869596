//! GlobalSync: worker contexts and vertices folded into the shared context.

use crate::program::Program;
use crate::vertex::Vertex;
use crate::view::Total;

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
