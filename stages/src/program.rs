//! What a program is made of, and what its stage functions are given beside vertices and edges.

use crate::combine::Combine;
use crate::store::Store;
use crate::vertex::Vertex;

/// The types of a program; its behaviour is a [`Sequence`](crate::Sequence) of stages. [`program!`](crate::program!)
/// declares one.
pub trait Program: 'static {
    /// Vertices of the left side.
    type Left: Vertex;
    /// Vertices of the right side. The same type as the left side's makes it a program on a square graph, whose two sides
    /// are the same vertices.
    type Right: Vertex;
    /// What an edge carries: a plain type, a slice `[T]` whose length is each edge's own, or `()`.
    type Edge: Store + ?Sized;
    /// The worker context (TuX²'s τ): scratch and partial sums of one worker thread.
    type Worker: Combine;
    /// The shared context, written by [`GlobalSync`](crate::GlobalSync) only. Begins as its default.
    type Global: Default + Clone + Send + Sync + 'static;
}

/// What the array of a program's edge data holds.
pub type EdgeItem<P> = <<P as Program>::Edge as Store>::Item;

/// What a stage function sees beside its vertices and its edge.
pub struct Context<'a, P: Program> {
    /// This worker's own context.
    pub worker: &'a mut P::Worker,
    /// The shared context, of the latest clock that the consistency model allows.
    pub global: &'a P::Global,
    /// The current iteration, from 1.
    pub iteration: u64,
    /// What this worker's random numbers begin with in this clock: follows from the run's seed, the worker, the iteration
    /// and the clock within it, so that a run that continues draws what it would have drawn.
    pub seed: u64,
}

/// Declares a program by its types: `left` and `right` vertices, or `vertices` where both sides are the same ones, and
/// `edge`, `worker` and `global` of [`Program`](crate::Program). Of the last three those left out are `()`.
///
/// # Examples
/// ```
/// use megagrid_stages::{program, vertex};
/// vertex! { pub struct Page { sync: f32, delta: f32 } }
/// vertex! { pub struct User { sync: [f32] } }
/// vertex! { pub struct Item { sync: [f32] } }
/// program! { pub struct PageRank { vertices: Page, global: f32 } }
/// program! { pub struct Factors { left: User, right: Item, edge: f32, worker: [f64; 2] } }
/// ```
#[macro_export]
macro_rules! program {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { vertices: $vertices:ty $(, $($rest:tt)*)? }) => {
        $crate::program!($(#[$meta])* $vis struct $name { left: $vertices, right: $vertices $(, $($rest)*)? });
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident { left: $left:ty, right: $right:ty $(, $($rest:tt)*)? }) => {
        $(#[$meta])*
        $vis struct $name;
        $crate::program!(@ $name [$left] [$right] [()] [()] [()] $($($rest)*)?);
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($rest:tt)* }) => {
        compile_error!("a program begins with `vertices: V`, or with `left: L, right: R`, the types of its vertices");
    };
    (@ $name:ident [$left:ty] [$right:ty] [$edge:ty] [$worker:ty] [$global:ty]) => {
        impl $crate::Program for $name {
            type Left = $left;
            type Right = $right;
            type Edge = $edge;
            type Worker = $worker;
            type Global = $global;
        }
    };
    (@ $n:ident [$l:ty] [$r:ty] [$e:ty] [$w:ty] [$g:ty] $(#[$_doc:meta])* edge: $t:ty $(, $($rest:tt)*)?) => {
        $crate::program!(@ $n [$l] [$r] [$t] [$w] [$g] $($($rest)*)?);
    };
    (@ $n:ident [$l:ty] [$r:ty] [$e:ty] [$w:ty] [$g:ty] $(#[$_doc:meta])* worker: $t:ty $(, $($rest:tt)*)?) => {
        $crate::program!(@ $n [$l] [$r] [$e] [$t] [$g] $($($rest)*)?);
    };
    (@ $n:ident [$l:ty] [$r:ty] [$e:ty] [$w:ty] [$g:ty] $(#[$_doc:meta])* global: $t:ty $(, $($rest:tt)*)?) => {
        $crate::program!(@ $n [$l] [$r] [$e] [$w] [$t] $($($rest)*)?);
    };
    (@ $n:ident [$l:ty] [$r:ty] [$e:ty] [$w:ty] [$g:ty] $(#[$_doc:meta])* $other:ident $($rest:tt)*) => {
        compile_error!(concat!("`", stringify!($other), "` is no type of a program: write `edge`, `worker` or `global`"));
    };
}
