//! Sequences: stages in the order in which they run.
//!
//! A sequence is a list at the level of types, so that an engine compiles its loops for each stage function. It is walked
//! by a [`Visitor`].

use std::marker::PhantomData;
use std::sync::Arc;

use megagrid_partition::Side;

use crate::error::Error;
use crate::exchange::Exchange;
use crate::functions::{IntoApply, IntoExchange, IntoGlobalSync, IntoIncident};
use crate::mini_batch::{BatchSize, MiniBatch};
use crate::mode::{Access, Mode};
use crate::program::Program;
use crate::side::On;
use crate::vertex_stages::{Aggregate, Apply, Gather, GlobalSync, Incident};

/// The stages of one iteration, read as they run. `S` is the list of their types; let it be inferred:
/// `fn sequence() -> Sequence<Mf, impl Stages<Mf>>`.
///
/// # Examples
/// ```
/// use megagrid_stages::*;
/// vertex! { struct Page { sync: u32, delta: u32 } }
/// program! { struct Links { vertices: Page } }
/// let in_degrees = Sequence::<Links>::new()
///     .exchange(|_: Read<Page>, to: Add<Page>| *to.delta += 1)
///     .apply(Right, |page: Master<Page>| *page.sync = *page.delta);
/// assert_eq!(in_degrees.check(), Ok(()));
/// ```
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
    /// Meets an Incident on a side.
    fn incident<O: On<P>, A: Incident<P, O::Vertex>>(&mut self, stage: &Arc<A>);
    /// Meets a Gather on a side.
    fn gather<O: On<P>, G: Gather<P, O>>(&mut self, stage: &Arc<G>);
    /// Meets an Apply on a side.
    fn apply<O: On<P>, A: Apply<P, O::Vertex>>(&mut self, stage: &Arc<A>);
    /// Meets a GlobalSync of worker contexts.
    fn global_sync<G: GlobalSync<P>>(&mut self, stage: &Arc<G>);
    /// Meets a GlobalSync of worker contexts and the vertices of a side.
    fn global_sync_over<O: On<P>, G: Aggregate<P, O::Vertex>>(&mut self, stage: &Arc<G>);
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
    pub fn exchange<E: IntoExchange<P, F>, F>(self, stage: E) -> Sequence<P, impl Stages<P> + use<P, S, E, F>> {
        self.then(ExchangeStage(Arc::new(stage.into_stage())))
    }

    /// Runs `stage` on every vertex of a side that is in the batch, with the data of all its edges.
    pub fn incident<O, A, F>(self, _: O, stage: A) -> Sequence<P, impl Stages<P> + use<P, S, O, A, F>>
    where
        O: On<P>,
        A: IntoIncident<P, O::Vertex, F>,
    {
        self.then(IncidentStage::<_, O>(Arc::new(stage.into_stage()), PhantomData))
    }

    /// Runs `stage` on every vertex of a side that is in the batch, with its edges and the vertices at their other ends.
    pub fn gather<O, G>(self, _: O, stage: G) -> Sequence<P, impl Stages<P> + use<P, S, O, G>>
    where
        O: On<P>,
        G: Gather<P, O>,
    {
        self.then(GatherStage::<_, O>(Arc::new(stage), PhantomData))
    }

    /// Runs `stage` on every vertex of a side that is in the batch.
    pub fn apply<O, A, F>(self, _: O, stage: A) -> Sequence<P, impl Stages<P> + use<P, S, O, A, F>>
    where
        O: On<P>,
        A: IntoApply<P, O::Vertex, F>,
    {
        self.then(ApplyStage::<_, O>(Arc::new(stage.into_stage()), PhantomData))
    }

    /// Folds worker contexts into the shared context.
    pub fn global_sync<G: IntoGlobalSync<P, F>, F>(self, stage: G) -> Sequence<P, impl Stages<P> + use<P, S, G, F>> {
        self.then(GlobalSyncStage(Arc::new(stage.into_stage())))
    }

    /// Adds all vertices of a side to worker contexts, and folds these into the shared context.
    pub fn global_sync_over<O, G>(self, _: O, stage: G) -> Sequence<P, impl Stages<P> + use<P, S, O, G>>
    where
        O: On<P>,
        G: Aggregate<P, O::Vertex>,
    {
        self.then(AggregateStage::<_, O>(Arc::new(stage), PhantomData))
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

    /// Returns `other`, if that is to run in place of this one.
    pub fn or<T: Stages<P>>(self, other: Sequence<P, T>, is_other: bool) -> Sequence<P, impl Stages<P> + use<P, S, T>> {
        let stages = if is_other { Either::Other(other.stages) } else { Either::This(self.stages) };
        Sequence { stages, program: PhantomData }
    }

    /// Checks that each stage has something to work on. An engine does so before it runs a sequence.
    ///
    /// # Errors
    /// An Apply on a side that no earlier stage of the same batch adds to or updates, an Incident or a Gather in a batch that has part
    /// of a vertex's edges, an empty batch, no stages.
    pub fn check(&self) -> Result<(), Error> {
        let mut check = Check { open: vec![Scope::default()], error: None };
        self.stages.visit(&mut check);
        check.close("the sequence");
        check.error.map_or(Ok(()), Err)
    }

    /// Shows each stage, in order.
    pub fn visit<V: Visitor<P>>(&self, visitor: &mut V) {
        self.stages.visit(visitor);
    }
}

/// One of two lists, decided when a program runs.
enum Either<S, T> {
    This(S),
    Other(T),
}

impl<P: Program, S: Stages<P>, T: Stages<P>> Stages<P> for Either<S, T> {
    fn visit<V: Visitor<P>>(&self, visitor: &mut V) {
        match self {
            Self::This(stages) => stages.visit(visitor),
            Self::Other(stages) => stages.visit(visitor),
        }
    }
}

struct ExchangeStage<E>(Arc<E>);
struct IncidentStage<A, O>(Arc<A>, PhantomData<O>);
struct GatherStage<G, O>(Arc<G>, PhantomData<O>);
struct ApplyStage<A, O>(Arc<A>, PhantomData<O>);
struct GlobalSyncStage<G>(Arc<G>);
struct AggregateStage<G, O>(Arc<G>, PhantomData<O>);
struct BatchStage<B>(MiniBatch, B);

impl<P: Program> Stages<P> for () {
    fn visit<V: Visitor<P>>(&self, _: &mut V) {}
}

macro_rules! list_with {
    ($stage:ident<$t:ident $(, $side:ident)?>: $bound:path, $method:ident) => {
        impl<P: Program, S: Stages<P>, $t: $bound $(, $side: On<P>)?> Stages<P> for (S, $stage<$t $(, $side)?>) {
            fn visit<V: Visitor<P>>(&self, visitor: &mut V) {
                self.0.visit(visitor);
                visitor.$method::<$($side,)? $t>(&self.1.0);
            }
        }
    };
}
list_with!(ExchangeStage<E>: Exchange<P>, exchange);
list_with!(IncidentStage<A, O>: Incident<P, O::Vertex>, incident);
list_with!(GatherStage<G, O>: Gather<P, O>, gather);
list_with!(ApplyStage<A, O>: Apply<P, O::Vertex>, apply);
list_with!(GlobalSyncStage<G>: GlobalSync<P>, global_sync);
list_with!(AggregateStage<G, O>: Aggregate<P, O::Vertex>, global_sync_over);

impl<P: Program, S: Stages<P>, B: Stages<P>> Stages<P> for (S, BatchStage<B>) {
    fn visit<V: Visitor<P>>(&self, visitor: &mut V) {
        self.0.visit(visitor);
        visitor.begin_batch(self.1.0);
        self.1.1.visit(visitor);
        visitor.end_batch();
    }
}

/// What the stages of one batch have done so far. Sides are in the order left, right.
#[derive(Default)]
struct Scope {
    stages: usize,
    /// Which sides were added to or updated.
    written: [bool; 2],
    /// Of which sides it has part of a vertex's edges.
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

    /// Counts a stage, and refuses it if the batch is not as it `fits`.
    fn stage(&mut self, fits: impl FnOnce(&mut Scope) -> Result<(), Error>) {
        let scope = self.scope();
        scope.stages += 1;
        if let Err(error) = fits(scope) {
            self.error.get_or_insert(error);
        }
    }

    /// Counts a stage that changes the vertices of a side and needs all their edges.
    fn whole(&mut self, side: Side) {
        self.stage(|scope| {
            scope.written[side as usize] = true;
            if scope.partial[side as usize] { Err(Error::PartOfEdges(side)) } else { Ok(()) }
        });
    }

    /// Ends a batch: what it wrote and did not apply can be applied by the stages after it.
    fn close(&mut self, what: &'static str) {
        let Some(done) = self.open.pop() else { return };
        if done.stages == 0 {
            self.error.get_or_insert(Error::NoStages(what));
        }
        if let Some(outer) = self.open.last_mut() {
            (0..2).for_each(|side| outer.written[side] |= done.written[side]);
        }
    }
}

impl<P: Program> Visitor<P> for Check {
    fn exchange<E: Exchange<P>>(&mut self, _: &Arc<E>) {
        self.stage(|scope| {
            scope.written[0] |= E::Left::MODE != Mode::Read;
            scope.written[1] |= E::Right::MODE != Mode::Read;
            Ok(())
        });
    }

    fn incident<O: On<P>, A: Incident<P, O::Vertex>>(&mut self, _: &Arc<A>) {
        self.whole(O::SIDE);
    }

    fn gather<O: On<P>, G: Gather<P, O>>(&mut self, _: &Arc<G>) {
        self.whole(O::SIDE);
    }

    fn apply<O: On<P>, A: Apply<P, O::Vertex>>(&mut self, _: &Arc<A>) {
        self.stage(|scope| if scope.written[O::SIDE as usize] { Ok(()) } else { Err(Error::NothingToApply(O::SIDE)) });
    }

    fn global_sync<G: GlobalSync<P>>(&mut self, _: &Arc<G>) {
        self.stage(|_| Ok(()));
    }

    fn global_sync_over<O: On<P>, G: Aggregate<P, O::Vertex>>(&mut self, _: &Arc<G>) {
        self.stage(|_| Ok(()));
    }

    fn begin_batch(&mut self, batch: MiniBatch) {
        self.stage(|_| match batch.size {
            BatchSize::Vertices(_, 0) => Err(Error::EmptyBatch("vertices")),
            BatchSize::Edges(0) | BatchSize::EdgesOf(_, 0) => Err(Error::EmptyBatch("edges")),
            _ => Ok(()),
        });
        let mut partial = [true, true];
        if let BatchSize::Vertices(side, _) | BatchSize::EdgesOf(side, _) = batch.size {
            partial[side as usize] = self.scope().partial[side as usize];
        }
        self.open.push(Scope { partial, ..Scope::default() });
    }

    fn end_batch(&mut self) {
        self.close("a mini-batch");
    }
}
