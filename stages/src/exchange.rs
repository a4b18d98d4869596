//! Exchange: a function on an edge and its two endpoints.

use crate::mode::{Access, View};
use crate::program::{Context, Program};
use crate::view::Read;

/// Runs on every edge of the mini-batch (TuX² §3.3).
///
/// Most are functions or closures, whose arguments say what they do with either end: see
/// [`IntoExchange`](crate::IntoExchange). The trait is for what these cannot say: [`GROUPED`](Self::GROUPED) with
/// [`is_active`](Self::is_active), [`begin`](Self::begin) and [`end`](Self::end), [`WHOLE`](Self::WHOLE), and code that is sure to be inlined.
///
/// The access modes say what an engine must guarantee and which fields the views have. Fields of the implementing type
/// are the stage's hyper-parameters.
///
/// Write `#[inline(always)]` on `exchange`: it is compiled once for each vector level inside the engine's loop, and gains
/// from the processor only where it is inlined. Row kernels ([`kernels`](crate::kernels)) are *not* inlined through
/// functions and closures: with them an edge takes 1.2 (rows of 100 items) to 3 times (16 items) as long. Use
/// [`edge_stage!`](crate::edge_stage!) or the trait for those. One number a vertex is as fast either way.
///
/// A delta of another vertex type does not fit:
/// ```compile_fail,E0277
/// use megagrid_stages::*;
/// vertex! { struct Word { sync: f32, delta: f32 } }
/// vertex! { struct Document { sync: f32, delta: u32 } }
/// program! { struct Topics { left: Document, right: Word, edge: u32 } }
/// struct Sample;
/// impl Exchange<Topics> for Sample {
///     type Left = mode::Add;
///     type Right = mode::Add;
///     fn exchange(&self, document: Add<'_, Document>, word: Add<'_, Word>, _: &mut u32, _: &mut Context<'_, Topics>) {
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

    /// Whether all edges of a right vertex are in one block, where [`GROUPED`](Self::GROUPED), and run a second time, through
    /// [`answer`](Self::answer), if [`turn`](Self::turn) says so: what a vertex is told by its edges then comes back to them before the
    /// next vertex runs, and right vertices run in an order that is random in each iteration. Workers own right vertices; left ends are read or added to, and a
    /// worker sees what it added itself in their deltas. One process only.
    const WHOLE: bool = false;

    /// Whether one worker runs all right vertices, where [`WHOLE`](Self::WHOLE), so that no two of them run at a time, and left ends
    /// may be changed in place.
    const BY_ONE: bool = false;

    /// Whether the function may change what an edge carries. Of functions and closures: those that take `edge: &mut E` may.
    ///
    /// With several processes, where some stages run edges for their left and others for their right ends, an edge is in the processes
    /// of both, and a stage that may change what it carries is refused.
    const CHANGES_EDGES: bool = true;

    /// Whether the function is compiled for common widths of rows as well, besides for any: loops over a whole row are unrolled then.
    /// `false` where it goes over few of a row's numbers saves much code.
    const FIXED_WIDTHS: bool = true;

    /// Tells whether the stage is left out at present: no vertex is looked at then.
    #[inline(always)]
    fn is_idle(&self, _cx: &Context<'_, P>) -> bool {
        false
    }

    /// Tells whether right vertices that [rest](crate::Vertex::is_resting) are visited too at present, where [`GROUPED`](Self::GROUPED).
    #[inline(always)]
    fn visits_resting(&self, _cx: &Context<'_, P>) -> bool {
        false
    }

    /// Tells whether the edges of a right vertex run, where [`GROUPED`](Self::GROUPED). Asked about many vertices before the
    /// edges of the first run, so that what these need is fetched ahead.
    #[inline(always)]
    fn is_active(&self, _right: Read<'_, P::Right>, _cx: &Context<'_, P>) -> bool {
        true
    }

    /// Runs before the edges of an active right vertex in a block, where [`GROUPED`](Self::GROUPED).
    #[inline(always)]
    fn begin(&self, _right: Read<'_, P::Right>, _cx: &mut Context<'_, P>) {}

    /// Runs after the edges of an active right vertex in a block, where [`GROUPED`](Self::GROUPED).
    #[inline(always)]
    fn end(&self, _right: View<'_, Self::Right, P::Right>, _cx: &mut Context<'_, P>) {}

    /// Tells whether the edges of a right vertex run again, after all of them have run, where [`WHOLE`](Self::WHOLE).
    #[inline(always)]
    fn turn(&self, _right: View<'_, Self::Right, P::Right>, _cx: &mut Context<'_, P>) -> bool {
        false
    }

    /// Runs on one edge the second time, where [`WHOLE`](Self::WHOLE).
    #[inline(always)]
    fn answer(
        &self,
        _left: View<'_, Self::Left, P::Left>,
        _right: View<'_, Self::Right, P::Right>,
        _edge: &mut P::Edge,
        _cx: &mut Context<'_, P>,
    ) {
    }

    /// Runs on one edge.
    fn exchange(
        &self,
        left: View<'_, Self::Left, P::Left>,
        right: View<'_, Self::Right, P::Right>,
        edge: &mut P::Edge,
        cx: &mut Context<'_, P>,
    );
}

/// Declares a stage on edges that is inlined into the engine's loop: what functions and closures are not sure to be, and
/// what row kernels need (see [`Exchange`](crate::Exchange)). The modes follow from the views; the edge is `&E`, or `&mut E` where the
/// stage changes what it carries.
///
/// # Examples
/// ```
/// use megagrid_stages::kernels::{descend, dot};
/// use megagrid_stages::*;
///
/// vertex! { struct User { sync: [f32] } }
/// vertex! { struct Item { sync: [f32] } }
/// program! { struct Factors { left: User, right: Item, edge: f32 } }
///
/// edge_stage! {
///     /// Steps both factors along the gradient of one rating.
///     struct Descend { step: f32, lambda: f32 }
///     fn exchange(&self, user: Update<User>, item: Update<Item>, rating: &f32) in Factors {
///         let error = *rating - dot(user.sync, item.sync);
///         descend(user.sync, item.sync, error, self.lambda, self.step, self.step);
///     }
/// }
/// let sequence = Sequence::<Factors>::new().exchange(Descend { step: 0.1, lambda: 0.0 });
/// # sequence.check().unwrap();
/// ```
#[macro_export]
macro_rules! edge_stage {
    (
        $(#[$meta:meta])* $vis:vis struct $name:ident { $($fields:tt)* }
        fn exchange(
            &$this:ident, $l:tt: $lm:ident<$lv:ty>, $r:tt: $rm:ident<$rv:ty>, $e:tt: &mut $et:ty
            $(, $c:tt: &mut Context<$ct:ty>)? $(,)?
        ) in $program:ty $body:block
    ) => {
        $(#[$meta])*
        $vis struct $name { $($fields)* }
        $crate::edge_stage! {
            @impl $name in $program, $this, $l: $lm<$lv>, $r: $rm<$rv>, ($e: $et as &mut $et, true), ($($c)?), $body
        }
    };
    (
        $(#[$meta:meta])* $vis:vis struct $name:ident { $($fields:tt)* }
        fn exchange(
            &$this:ident, $l:tt: $lm:ident<$lv:ty>, $r:tt: $rm:ident<$rv:ty>, $e:tt: &$et:ty
            $(, $c:tt: &mut Context<$ct:ty>)? $(,)?
        ) in $program:ty $body:block
    ) => {
        $(#[$meta])*
        $vis struct $name { $($fields)* }
        $crate::edge_stage! {
            @impl $name in $program, $this, $l: $lm<$lv>, $r: $rm<$rv>, ($e: $et as &$et, false), ($($c)?), $body
        }
    };
    (
        @impl $name:ident in $program:ty, $this:ident, $l:tt: $lm:ident<$lv:ty>, $r:tt: $rm:ident<$rv:ty>,
        ($e:tt: $et:ty as $seen:ty, $changes:literal), ($($c:tt)?), $body:block
    ) => {
        impl $crate::Exchange<$program> for $name {
            type Left = $crate::mode::$lm;
            type Right = $crate::mode::$rm;
            const CHANGES_EDGES: bool = $changes;

            #[inline(always)]
            fn exchange(
                &$this,
                $l: $crate::$lm<'_, $lv>,
                $r: $crate::$rm<'_, $rv>,
                _edge: &mut $et,
                _cx: &mut $crate::Context<'_, $program>,
            ) {
                let $e: $seen = _edge;
                $(let $c = _cx;)?
                $body
            }
        }
    };
    ($($other:tt)*) => {
        compile_error!(
            "expected `struct Name { fields } fn exchange(&self, left: Mode<L>, right: Mode<R>, edge: &E) in Program { .. }`: braces even \
             where there are no fields, and `_: &()` where edges carry nothing"
        );
    };
}
