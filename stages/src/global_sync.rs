//! GlobalSync: worker contexts and vertices folded into the shared context.

use crate::program::Program;
use crate::store::Store;
use crate::vertex::Vertex;

/// What [`GlobalSync`]'s aggregation sees of a vertex.
pub struct TotalView<'a, V: Vertex> {
    /// The synced data.
    pub sync: <V::Sync as Store>::Ref<'a>,
    /// The master's own data.
    pub master: <V::Master as Store>::Ref<'a>,
}

/// Folds vertices and worker contexts into one total, and the total into the shared context (TuX² §3.3: Aggregate,
/// Combine, Apply). One version of the shared context per clock is in flight.
pub trait GlobalSync<P: Program>: Send + Sync + 'static {
    /// Whether [`Self::aggregate_left`] is to be run.
    const LEFT: bool = false;
    /// Whether [`Self::aggregate_right`] is to be run.
    const RIGHT: bool = false;

    /// Adds a vertex of the left side to a worker context.
    fn aggregate_left(&self, _vertex: TotalView<'_, P::Left>, _worker: &mut P::Worker) {}

    /// Adds a vertex of the right side to a worker context.
    fn aggregate_right(&self, _vertex: TotalView<'_, P::Right>, _worker: &mut P::Worker) {}

    /// Moves the sums of `worker` into `total`, leaving them at zero in `worker`. Runs in ascending worker order.
    fn combine(&self, total: &mut P::Worker, worker: &mut P::Worker);

    /// Finalizes the total into the next version of the shared context.
    fn apply(&self, total: P::Worker, global: &mut P::Global);
}
