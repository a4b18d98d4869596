//! Exchange: a function on an edge and its two endpoints.

use crate::access::{Access, ReadView};
use crate::edge::EdgeData;
use crate::program::{Context, Program};

/// What an edge function sees of an endpoint of type `V` with access mode `A`.
pub type View<'a, A, V> = <A as Access<V>>::View<'a>;

/// What an edge function sees of its edge.
pub type Edge<'a, P> = <<P as Program>::Edge as EdgeData>::Mut<'a>;

/// Runs on every edge of the mini-batch (TuX² §3.3).
///
/// The access modes say what an engine must guarantee and which fields the views have. Fields of the implementing type
/// are the stage's hyper-parameters.
///
/// Write `#[inline(always)]` on `exchange`: it is compiled once for each vector level inside the engine's loop, and gains
/// from the processor only where it is inlined. Row kernels are in [`kernels`](crate::kernels).
///
/// A delta of another vertex type does not fit:
/// ```compile_fail,E0308
/// use megagrid_stages::*;
/// struct Word;
/// impl Vertex for Word { type Sync = Value<f32>; type Delta = Value<f32>; type Master = (); type Mirror = (); }
/// struct Document;
/// impl Vertex for Document { type Sync = Value<f32>; type Delta = Value<u32>; type Master = (); type Mirror = (); }
/// struct Topics;
/// impl Program for Topics {
///     type Left = Document; type Right = Word; type Edge = u32; type Worker = (); type Global = ();
/// }
/// struct Sample;
/// impl Exchange<Topics> for Sample {
///     type Left = Add;
///     type Right = Add;
///     fn exchange(&self, document: AddView<'_, Document>, word: AddView<'_, Word>, _: &mut u32, _: &mut Context<'_, Topics>) {
///         *document.delta += *word.delta;
///     }
/// }
/// ```
pub trait Exchange<P: Program>: Send + Sync + 'static {
    /// How the left endpoint is used.
    type Left: Access<P::Left>;
    /// How the right endpoint is used.
    type Right: Access<P::Right>;
    /// Whether the edges of a right vertex in a block run one after the other, between [`begin`](Self::begin) and
    /// [`end`](Self::end). Without it a function that changes both ends gets the edges of a block in random order.
    const GROUPED: bool = false;

    /// Tells whether the edges of a right vertex run, where [`GROUPED`](Self::GROUPED). Asked about many vertices before the
    /// edges of the first run, so that what these need is fetched ahead.
    #[inline(always)]
    fn is_active(&self, _right: ReadView<'_, P::Right>, _cx: &Context<'_, P>) -> bool {
        true
    }

    /// Runs before the edges of an active right vertex in a block, where [`GROUPED`](Self::GROUPED).
    #[inline(always)]
    fn begin(&self, _right: ReadView<'_, P::Right>, _cx: &mut Context<'_, P>) {}

    /// Runs after the edges of an active right vertex in a block, where [`GROUPED`](Self::GROUPED).
    #[inline(always)]
    fn end(&self, _right: View<'_, Self::Right, P::Right>, _cx: &mut Context<'_, P>) {}

    /// Runs on one edge.
    fn exchange(
        &self,
        left: View<'_, Self::Left, P::Left>,
        right: View<'_, Self::Right, P::Right>,
        edge: Edge<'_, P>,
        cx: &mut Context<'_, P>,
    );
}
