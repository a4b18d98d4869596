//! From a sequence to stages at work, each with the loops that are compiled for its function, and to its outline.

use std::marker::PhantomData;
use std::sync::Arc;

use megagrid_stages::mode::{Access, Mode};
use megagrid_stages::{
    Aggregate, Apply, BatchSize, EdgeItem, Exchange, Gather, GlobalSync, Incident, MiniBatch, On, Program, Sequence,
    Side, Stages, Visitor,
};

use super::apply::RunApply;
use super::crossing::{Deliver, Publish, SendChanges, TakeRows};
use super::edges::SendEdges;
use super::exchange::RunExchange;
use super::gather::RunGather;
use super::global_sync::{RunAggregate, RunGlobalSync};
use super::incident::RunIncident;
use super::site::{RunStage, name};
use crate::Error;
use crate::plan::{Cut, Outline, Plan, StageInfo, StageKind};

/// A sequence that was checked: what a plan is made of, and what runs.
pub struct Collected<P: Program> {
    pub infos: Vec<StageInfo>,
    pub stages: Vec<Arc<dyn RunStage<P>>>,
    pub body: Vec<Outline>,
}

impl<P: Program> Collected<P> {
    /// Checks a sequence, and returns its stages and its outline.
    pub fn of<S: Stages<P>>(sequence: &Sequence<P, S>) -> Result<Self, Error> {
        sequence.check()?;
        let mut collect = Collect { infos: Vec::new(), stages: Vec::new(), open: vec![(None, Vec::new())] };
        sequence.visit(&mut collect);
        let body = collect.open.pop().map(|(_, body)| body).unwrap_or_default();
        Ok(Self { infos: collect.infos, stages: collect.stages, body })
    }

    /// Returns the stages with those that cross between processes behind them.
    pub fn with_crossings(&self, plan: &Plan) -> Vec<Arc<dyn RunStage<P>>> {
        let mut stages = self.stages.clone();
        for stage in &plan.stages[stages.len()..] {
            stages.push(match stage.kind {
                StageKind::Deliver(side) => Arc::new(Deliver(side)),
                StageKind::Publish(side) => Arc::new(Publish(side)),
                StageKind::TakeRows => Arc::new(TakeRows),
                StageKind::SendChanges => Arc::new(SendChanges),
                StageKind::SendEdges(side) => Arc::new(SendEdges(side)),
                _ => unreachable!("a plan adds only stages that cross between processes"),
            });
        }
        stages
    }
}

/// Stages as they are visited, and the mini-batches that they are in.
struct Collect<P: Program> {
    infos: Vec<StageInfo>,
    stages: Vec<Arc<dyn RunStage<P>>>,
    open: Vec<(Option<MiniBatch>, Vec<Outline>)>,
}

impl<P: Program> Collect<P> {
    fn add(&mut self, info: StageInfo, stage: impl RunStage<P> + 'static) {
        self.infos.push(info);
        self.stages.push(Arc::new(stage));
        let index = self.stages.len() - 1;
        self.push(Outline::Stage(index));
    }

    fn push(&mut self, outline: Outline) {
        if let Some((_, body)) = self.open.last_mut() {
            body.push(outline);
        }
    }
}

impl<P: Program> Visitor<P> for Collect<P> {
    fn exchange<E: Exchange<P>>(&mut self, stage: &Arc<E>) {
        let kind = StageKind::Exchange(E::Left::MODE, E::Right::MODE);
        let (grouped, whole) = (E::GROUPED, E::GROUPED && E::WHOLE);
        let (by_one, changes_edges) = (whole && E::BY_ONE, E::CHANGES_EDGES && size_of::<EdgeItem<P>>() > 0);
        let info = StageInfo { grouped, whole, by_one, changes_edges, ..StageInfo::new(name::<E>(), kind) };
        self.add(info, RunExchange(Arc::clone(stage)));
    }

    fn incident<O: On<P>, A: Incident<P, O::Vertex>>(&mut self, stage: &Arc<A>) {
        let info = StageInfo::new(name::<A>(), StageKind::Incident(O::SIDE));
        self.add(info, RunIncident::<P, O, A>::new(stage));
    }

    fn gather<O: On<P>, G: Gather<P, O>>(&mut self, stage: &Arc<G>) {
        let kind = match O::SIDE {
            Side::Left => StageKind::Exchange(Mode::Update, Mode::Read),
            Side::Right => StageKind::Exchange(Mode::Read, Mode::Update),
        };
        let info = StageInfo { gathers: true, ..StageInfo::new(name::<G>(), kind) };
        self.add(info, RunGather::<P, O, G>::new(stage));
    }

    fn apply<O: On<P>, A: Apply<P, O::Vertex>>(&mut self, stage: &Arc<A>) {
        let info = StageInfo { additive: A::ADDITIVE, ..StageInfo::new(name::<A>(), StageKind::Apply(O::SIDE)) };
        self.add(info, RunApply::<O, A>(Arc::clone(stage), PhantomData));
    }

    fn global_sync<G: GlobalSync<P>>(&mut self, stage: &Arc<G>) {
        self.add(StageInfo::new(name::<G>(), StageKind::GlobalSync(None)), RunGlobalSync(Arc::clone(stage)));
    }

    fn global_sync_over<O: On<P>, G: Aggregate<P, O::Vertex>>(&mut self, stage: &Arc<G>) {
        let run = RunAggregate::<O, G>(RunGlobalSync(Arc::clone(stage)), PhantomData);
        self.add(StageInfo::new(name::<G>(), StageKind::GlobalSync(Some(O::SIDE))), run);
    }

    fn begin_batch(&mut self, batch: MiniBatch) {
        self.open.push((Some(batch), Vec::new()));
    }

    fn end_batch(&mut self) {
        if let Some((Some(batch), body)) = self.open.pop() {
            self.push(match batch.size {
                BatchSize::Edges(n) => Outline::Edges(n, batch.order, body),
                BatchSize::Vertices(side, n) => Outline::Vertices(side, Cut::Vertices(n), batch.order, body),
                BatchSize::EdgesOf(side, n) => Outline::Vertices(side, Cut::Edges(n), batch.order, body),
            });
        }
    }
}
