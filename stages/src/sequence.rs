//! Sequences: stages in the order in which they run.
//!
//! A sequence is a list at the level of types, so that an engine compiles its loops for each stage function. It is walked
//! by a [`Visitor`].

use std::marker::PhantomData;
use std::sync::Arc;

use megagrid_partition::Side;

use crate::access::{Access, Mode};
use crate::apply::Apply;
use crate::error::Error;
use crate::exchange::Exchange;
use crate::global_sync::GlobalSync;
use crate::incident::Incident;
use crate::mini_batch::{BatchSize, MiniBatch};
use crate::program::Program;

/// The stages of one iteration, read as they run. `S` is the list of their types; let it be inferred:
/// `fn sequence() -> Result<Sequence<Mf, impl Stages<Mf>>, Error>`.
pub struct Sequence<P, S = ()> {
    stages: S,
    program: PhantomData<fn(P)>,
}

/// A list of stages that a [`Visitor`] can walk.
pub trait Stages<P: Program> {
    /// Shows each stage, in order.
    fn visit<V: Visitor<P>>(&self, visitor: &mut V);
}

/// What an engine does with each stage of a sequence.
pub trait Visitor<P: Program> {
    /// Meets an Exchange.
    fn exchange<E: Exchange<P>>(&mut self, stage: &Arc<E>);
    /// Meets an Incident on the left side.
    fn incident_left<A: Incident<P, P::Left>>(&mut self, stage: &Arc<A>);
    /// Meets an Incident on the right side.
    fn incident_right<A: Incident<P, P::Right>>(&mut self, stage: &Arc<A>);
    /// Meets an Apply on the left side.
    fn apply_left<A: Apply<P, P::Left>>(&mut self, stage: &Arc<A>);
    /// Meets an Apply on the right side.
    fn apply_right<A: Apply<P, P::Right>>(&mut self, stage: &Arc<A>);
    /// Meets a GlobalSync.
    fn global_sync<G: GlobalSync<P>>(&mut self, stage: &Arc<G>);
    /// Enters a mini-batch.
    fn begin_batch(&mut self, batch: MiniBatch);
    /// Leaves the innermost mini-batch.
    fn end_batch(&mut self);
}

impl<P: Program> Default for Sequence<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Program> Sequence<P> {
    /// Begins an empty sequence.
    #[must_use]
    pub fn new() -> Self {
        Self { stages: (), program: PhantomData }
    }
}

impl<P: Program, S: Stages<P>> Sequence<P, S> {
    fn then<T>(self, stage: T) -> Sequence<P, (S, T)> {
        Sequence { stages: (self.stages, stage), program: PhantomData }
    }

    /// Runs `stage` on every edge of the batch.
    pub fn exchange<E: Exchange<P>>(self, stage: E) -> Sequence<P, impl Stages<P> + use<P, S, E>> {
        self.then(ExchangeStage(Arc::new(stage)))
    }

    /// Runs `stage` on every left vertex of the batch with the data of all its edges.
    pub fn incident_left<A: Incident<P, P::Left>>(self, stage: A) -> Sequence<P, impl Stages<P> + use<P, S, A>> {
        self.then(IncidentLeft(Arc::new(stage)))
    }

    /// Runs `stage` on every right vertex of the batch with the data of all its edges.
    pub fn incident_right<A: Incident<P, P::Right>>(self, stage: A) -> Sequence<P, impl Stages<P> + use<P, S, A>> {
        self.then(IncidentRight(Arc::new(stage)))
    }

    /// Runs `stage` on every left vertex of the batch.
    pub fn apply_left<A: Apply<P, P::Left>>(self, stage: A) -> Sequence<P, impl Stages<P> + use<P, S, A>> {
        self.then(ApplyLeft(Arc::new(stage)))
    }

    /// Runs `stage` on every right vertex of the batch.
    pub fn apply_right<A: Apply<P, P::Right>>(self, stage: A) -> Sequence<P, impl Stages<P> + use<P, S, A>> {
        self.then(ApplyRight(Arc::new(stage)))
    }

    /// Folds worker contexts, and vertices if the stage says so, into the shared context.
    pub fn global_sync<G: GlobalSync<P>>(self, stage: G) -> Sequence<P, impl Stages<P> + use<P, S, G>> {
        self.then(GlobalSyncStage(Arc::new(stage)))
    }

    /// Runs the stages of `body` for each mini-batch.
    pub fn mini_batch<M, B, F>(self, batch: M, body: F) -> Sequence<P, impl Stages<P> + use<P, S, M, B, F>>
    where
        M: Into<MiniBatch>,
        B: Stages<P>,
        F: FnOnce(Sequence<P>) -> Sequence<P, B>,
    {
        self.then(BatchStage(batch.into(), body(Sequence::new()).stages))
    }

    /// Ends the sequence and checks it.
    ///
    /// # Errors
    /// An Apply on a side that no earlier stage of the same batch adds to or updates, an Incident in a batch that has part of
    /// a vertex's edges, an empty batch, no stages.
    pub fn build(self) -> Result<Self, Error> {
        let mut check = Check { open: vec![Scope::default()], error: None };
        self.stages.visit(&mut check);
        check.close("the sequence");
        check.error.map_or(Ok(self), Err)
    }

    /// Shows each stage, in order.
    pub fn visit<V: Visitor<P>>(&self, visitor: &mut V) {
        self.stages.visit(visitor);
    }
}

struct ExchangeStage<E>(Arc<E>);
struct IncidentLeft<A>(Arc<A>);
struct IncidentRight<A>(Arc<A>);
struct ApplyLeft<A>(Arc<A>);
struct ApplyRight<A>(Arc<A>);
struct GlobalSyncStage<G>(Arc<G>);
struct BatchStage<B>(MiniBatch, B);

impl<P: Program> Stages<P> for () {
    fn visit<V: Visitor<P>>(&self, _: &mut V) {}
}

macro_rules! list_with {
    ($stage:ident, $t:ident: $bound:path, $method:ident) => {
        impl<P: Program, S: Stages<P>, $t: $bound> Stages<P> for (S, $stage<$t>) {
            fn visit<V: Visitor<P>>(&self, visitor: &mut V) {
                self.0.visit(visitor);
                visitor.$method(&self.1.0);
            }
        }
    };
}
list_with!(ExchangeStage, E: Exchange<P>, exchange);
list_with!(IncidentLeft, A: Incident<P, P::Left>, incident_left);
list_with!(IncidentRight, A: Incident<P, P::Right>, incident_right);
list_with!(ApplyLeft, A: Apply<P, P::Left>, apply_left);
list_with!(ApplyRight, A: Apply<P, P::Right>, apply_right);
list_with!(GlobalSyncStage, G: GlobalSync<P>, global_sync);

impl<P: Program, S: Stages<P>, B: Stages<P>> Stages<P> for (S, BatchStage<B>) {
    fn visit<V: Visitor<P>>(&self, visitor: &mut V) {
        self.0.visit(visitor);
        visitor.begin_batch(self.1.0);
        self.1.1.visit(visitor);
        visitor.end_batch();
    }
}

/// What the stages of one batch have done so far.
#[derive(Default)]
struct Scope {
    left: bool,
    right: bool,
    stages: usize,
    /// Whether left, and right, vertices may have but part of their edges in it.
    partial: [bool; 2],
}

struct Check {
    open: Vec<Scope>,
    error: Option<Error>,
}

impl Check {
    fn scope(&mut self) -> &mut Scope {
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    fn apply(&mut self, side: Side) {
        let scope = self.scope();
        scope.stages += 1;
        let written = match side {
            Side::Left => scope.left,
            Side::Right => scope.right,
        };
        if !written {
            self.fail(Error::NothingToApply(side));
        }
    }

    fn incident(&mut self, side: Side) {
        let scope = self.scope();
        scope.stages += 1;
        if scope.partial[usize::from(side == Side::Right)] {
            self.fail(Error::PartOfEdges(side));
        }
    }

    /// Ends a batch: what it wrote and did not apply can be applied by the stages after it.
    fn close(&mut self, what: &'static str) {
        let Some(done) = self.open.pop() else { return };
        if done.stages == 0 {
            self.fail(Error::NoStages(what));
        }
        if let Some(outer) = self.open.last_mut() {
            outer.left |= done.left;
            outer.right |= done.right;
        }
    }
}

impl<P: Program> Visitor<P> for Check {
    fn exchange<E: Exchange<P>>(&mut self, _: &Arc<E>) {
        let scope = self.scope();
        scope.stages += 1;
        scope.left |= E::Left::MODE != Mode::Read;
        scope.right |= E::Right::MODE != Mode::Read;
    }

    fn incident_left<A: Incident<P, P::Left>>(&mut self, _: &Arc<A>) {
        self.incident(Side::Left);
    }

    fn incident_right<A: Incident<P, P::Right>>(&mut self, _: &Arc<A>) {
        self.incident(Side::Right);
    }

    fn apply_left<A: Apply<P, P::Left>>(&mut self, _: &Arc<A>) {
        self.apply(Side::Left);
    }

    fn apply_right<A: Apply<P, P::Right>>(&mut self, _: &Arc<A>) {
        self.apply(Side::Right);
    }

    fn global_sync<G: GlobalSync<P>>(&mut self, _: &Arc<G>) {
        self.scope().stages += 1;
    }

    fn begin_batch(&mut self, batch: MiniBatch) {
        self.scope().stages += 1;
        if batch.size.amount() == 0 {
            self.fail(Error::EmptyBatch(match batch.size {
                BatchSize::Vertices(..) => "vertices",
                BatchSize::Edges(_) | BatchSize::EdgesOf(..) => "edges",
            }));
        }
        let [left, right] = self.scope().partial;
        let partial = match batch.size {
            BatchSize::Edges(_) => [true, true],
            BatchSize::Vertices(Side::Left, _) | BatchSize::EdgesOf(Side::Left, _) => [left, true],
            BatchSize::Vertices(Side::Right, _) | BatchSize::EdgesOf(Side::Right, _) => [true, right],
        };
        self.open.push(Scope { partial, ..Scope::default() });
    }

    fn end_batch(&mut self) {
        self.close("a mini-batch");
    }
}
