//! GlobalSync: worker contexts and vertices folded into the shared context.

use serde::Serialize;
use serde::de::DeserializeOwned;

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

/// Sums that can be joined: what workers' contexts are made of (TuX²'s Combine).
///
/// Implemented for numbers, arrays of them and `()`. A context's scratch stays where it is: sums alone travel between
/// processes, and scratch is best marked `#[serde(skip)]`.
pub trait Combine: Default + Send + Serialize + DeserializeOwned + 'static {
    /// Moves the sums of `from` into `self`, leaving them at zero in `from`.
    fn combine(&mut self, from: &mut Self);
}

impl Combine for () {
    fn combine(&mut self, (): &mut ()) {}
}

macro_rules! combine_numbers {
    ($($t:ty),*) => { $(
        impl Combine for $t {
            fn combine(&mut self, from: &mut Self) {
                *self += std::mem::take(from);
            }
        }
    )* };
}
combine_numbers!(u32, u64, usize, i32, i64, f32, f64);

impl<T: Combine, const N: usize> Combine for [T; N]
where
    [T; N]: Default + Serialize + DeserializeOwned,
{
    fn combine(&mut self, from: &mut Self) {
        self.iter_mut().zip(from).for_each(|(total, part)| total.combine(part));
    }
}

/// Folds vertices and worker contexts into one total, and the total into the shared context (TuX² §3.3: Aggregate,
/// Combine, Apply). Contexts are combined in ascending worker order. One version of the shared context per clock is in flight.
pub trait GlobalSync<P: Program>: Send + Sync + 'static {
    /// Whether [`Self::aggregate_left`] is to be run.
    const LEFT: bool = false;
    /// Whether [`Self::aggregate_right`] is to be run.
    const RIGHT: bool = false;

    /// Adds a vertex of the left side to a worker context.
    fn aggregate_left(&self, _vertex: TotalView<'_, P::Left>, _worker: &mut P::Worker) {}

    /// Adds a vertex of the right side to a worker context.
    fn aggregate_right(&self, _vertex: TotalView<'_, P::Right>, _worker: &mut P::Worker) {}

    /// Finalizes the total into the next version of the shared context.
    fn apply(&self, total: P::Worker, global: &mut P::Global);
}
