//! What a program is made of, and what its stage functions are given beside vertices and edges.

use crate::edge::EdgeData;
use crate::global_sync::Combine;
use crate::vertex::Vertex;

/// The types of a program; its behaviour is a [`Sequence`](crate::Sequence) of stages.
pub trait Program: 'static {
    /// Vertices of the left side.
    type Left: Vertex;
    /// Vertices of the right side; the same type on a square graph.
    type Right: Vertex;
    /// What an edge carries.
    type Edge: EdgeData;
    /// The worker context (TuX²'s τ): scratch and partial sums of one worker thread.
    type Worker: Combine;
    /// The shared context, written by [`GlobalSync`](crate::GlobalSync) alone.
    type Global: Clone + Send + Sync + 'static;
}

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
