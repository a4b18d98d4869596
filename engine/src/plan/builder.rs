//! From outlines to steps.

use std::sync::Arc;

use megagrid_stages::Side;
use megagrid_stages::mode::Mode;

use super::Plan;
use super::outline::{Outline, StageKind};
use super::schedule::{self, Schedule, Scope};
use super::shape::{self, SideShape, Weights};
use super::steps::{After, Node, Part, Step};

impl Plan {
    /// Returns the steps, to change them while the plan is made.
    pub(super) fn steps_mut(&mut self) -> &mut Vec<Step> {
        Arc::make_mut(&mut self.steps)
    }
}

/// What other processes may have sent since all were known to have ended the same steps.
#[derive(Clone, Copy)]
struct UnderWay {
    rows: bool,
    edges: bool,
    deltas: bool,
    context: bool,
    /// Shards that travel are not at home.
    shards: bool,
}

impl UnderWay {
    /// At the beginning of a batch, and after batches: whatever these ended with.
    const ALL: Self = Self { rows: true, edges: true, deltas: true, context: true, shards: true };
    const NOTHING: Self = Self { rows: false, edges: false, deltas: false, context: false, shards: false };

    /// Tells what a stage at slack 0 waits for: for all processes only where it uses what they may have sent.
    fn wait(&mut self, kind: StageKind) -> After {
        let uses = match kind {
            StageKind::Exchange(..) => self.rows || self.deltas || self.context || self.shards,
            StageKind::Incident(_) => self.edges || self.context,
            StageKind::Apply(_) => self.deltas || self.context || self.shards,
            StageKind::GlobalSync(side) => self.shards && side == Some(Side::Right),
            _ => false,
        };
        if uses {
            *self = Self::NOTHING;
        }
        if uses { After::All } else { After::Process }
    }

    /// Takes down what a stage sends.
    fn send(&mut self, kind: StageKind, travels: bool, crossings: &[StageKind]) {
        self.context |= matches!(kind, StageKind::GlobalSync(..));
        self.shards |= travels && matches!(kind, StageKind::Exchange(..));
        self.deltas |= crossings.iter().any(|kind| matches!(kind, StageKind::Deliver(_)));
        self.edges |= crossings.iter().any(|kind| matches!(kind, StageKind::SendEdges(_)));
        self.rows |= crossings.iter().any(|kind| matches!(kind, StageKind::Publish(_)));
    }
}

/// Turns outlines into steps.
pub(super) struct Builder<'b> {
    pub plan: &'b mut Plan,
    pub weights: &'b [Weights; 2],
}

impl Builder<'_> {
    /// Makes the steps of a whole iteration.
    pub fn body(&mut self, body: &[Outline], scope: &Scope) {
        let nodes = self.nodes(body, scope);
        self.plan.body = nodes;
    }

    fn nodes(&mut self, body: &[Outline], scope: &Scope) -> Vec<Node> {
        let mut nodes = Vec::with_capacity(body.len() + 1);
        let (mut applied, mut under_way) = ([false; 2], UnderWay::ALL);
        for outline in body {
            if let Outline::Stage(stage) = outline {
                let before = self.plan.before(*stage);
                nodes.extend(self.crossing_steps(before.into_iter().collect(), scope));
            }
            let node = self.node(outline, scope);
            if let (Outline::Stage(stage), Node::Step(step)) = (outline, &node) {
                // What an Apply of this batch set has to be seen: slack is between clocks, not within one.
                let kind = self.plan.stages[*stage].kind;
                if self.uses(kind).into_iter().zip(applied).any(|(uses, applied)| uses && applied) {
                    self.plan.steps_mut()[*step].after = After::All;
                }
                if let StageKind::Apply(side) = kind {
                    applied[side as usize] = true;
                }
                if self.plan.is_distributed() && self.plan.is_bulk() {
                    let after = under_way.wait(kind);
                    self.plan.steps_mut()[*step].after = after;
                    let mut crossings = self.plan.crossings(*stage);
                    crossings.retain(|kind| self.sends(*kind, &self.reach(*stage, scope)));
                    under_way.send(kind, self.plan.travels(), &crossings);
                }
            }
            if let Node::Batches { .. } = node {
                under_way = UnderWay::ALL;
            }
            let step = if let Node::Step(step) = node { Some(step) } else { None };
            nodes.push(node);
            if let (Outline::Stage(stage), Some(step)) = (outline, step) {
                let mut after = self.plan.crossings(*stage);
                after.retain(|kind| !self.sends_with_tasks(step, *kind));
                nodes.extend(self.crossing_steps(after, &self.reach(*stage, scope)));
            }
        }
        // A clock is one run of the innermost batch, or of the sequence if it has none.
        let innermost = body.iter().all(|outline| matches!(outline, Outline::Stage(_)));
        if innermost {
            nodes.push(Node::Clock);
        }
        nodes
    }

    fn node(&mut self, outline: &Outline, scope: &Scope) -> Node {
        match outline {
            Outline::Stage(stage) => Node::Step(self.step(*stage, scope)),
            Outline::Vertices(side, cut, order, body) => {
                let shape = self.plan.side(*side).clone();
                let shards = scope.shards(*side);
                let rows = shape.bounds[shards.start]..shape.bounds[shards.end];
                let weights = &self.weights[*side as usize];
                let batches = shape::batches(weights, rows, *cut);
                let batches: Vec<_> =
                    batches.iter().map(|rows| self.nodes(body, &scope.narrowed(*side, &shape, rows))).collect();
                let lead = batches.first().map_or(0, |batch| self.lead(*side, body, batch));
                Node::Batches { order: *order, batches, lead }
            }
            Outline::Edges(_, order, body) => {
                let layers = scope.layers.clone();
                let batches =
                    layers.map(|layer| self.nodes(body, &Scope { layers: layer..layer + 1, ..scope.clone() }));
                Node::Batches { order: *order, batches: batches.collect(), lead: 0 }
            }
        }
    }

    /// Returns how many nodes of a batch of vertices come before its Apply, if all that they do is to add to the deltas of
    /// these vertices, and no other batch does.
    fn lead(&self, side: Side, body: &[Outline], batch: &[Node]) -> usize {
        use Mode::{Add, Read};
        // On a square graph what a batch adds to the other ends of its edges is other batches' as well.
        let mut adds_elsewhere = false;
        body.iter().for_each(|outline| {
            outline.walk(&mut |inner| {
                if let Outline::Stage(stage) = inner {
                    adds_elsewhere |= self.plan.stages[*stage].kind.mode(side.other()) == Some(Add);
                }
            });
        });
        if self.plan.square && adds_elsewhere {
            return 0;
        }
        let adds = if side == Side::Left { StageKind::Exchange(Add, Read) } else { StageKind::Exchange(Read, Add) };
        let kind = |outline: &Outline| match outline {
            Outline::Stage(stage) => Some(self.plan.stages[*stage].kind),
            _ => None,
        };
        if body.iter().map(kind).find(|kind| *kind != Some(adds)) != Some(Some(StageKind::Apply(side))) {
            return 0;
        }
        let applies = |node: &Node| match node {
            Node::Step(step) => self.plan.stages[self.plan.steps[*step].stage].kind == StageKind::Apply(side),
            _ => false,
        };
        batch.iter().position(applies).unwrap_or(0)
    }

    /// Tells which sides' rows a stage uses.
    fn uses(&self, kind: StageKind) -> [bool; 2] {
        [Side::Left, Side::Right].map(|side| match kind {
            StageKind::Apply(of) => of == side || self.plan.square,
            StageKind::GlobalSync(of) => of.is_some_and(|of| of == side || self.plan.square),
            _ => true,
        })
    }

    /// Returns where a stage changes rows: on a square graph left ends are anywhere among the right rows.
    fn reach(&self, stage: usize, scope: &Scope) -> Scope {
        let plan = &self.plan;
        let anywhere = plan.square && plan.stages[stage].kind.mode(Side::Left) == Some(Mode::Add);
        Scope { right: if anywhere { 0..plan.right.num_shards() } else { scope.right.clone() }, ..scope.clone() }
    }

    /// Tells whether there is anything to send: of a part of the graph deltas may all be at home.
    fn sends(&self, kind: StageKind, scope: &Scope) -> bool {
        let StageKind::Deliver(side) = kind else { return true };
        let plan = &self.plan;
        let adds_elsewhere = |shard| {
            let mut others = plan.processes.others(plan.keeper(side, shard));
            others.any(|process| plan.placement.adds_to(process, side, shard))
        };
        scope.shards(side).any(adds_elsewhere)
    }

    /// Lets each task of a step send the rows that it has settled, where it settles a whole shard: they are in the cache, and
    /// under way while the worker goes on. Tells whether it does.
    fn sends_with_tasks(&mut self, step: usize, kind: StageKind) -> bool {
        let plan = &mut *self.plan;
        let stage = plan.steps[step].stage;
        let settles = match (plan.stages[stage].kind, plan.schedules[stage]) {
            (StageKind::Apply(side), _) => kind == StageKind::Publish(side),
            (StageKind::Incident(side), _) => kind == StageKind::SendEdges(side),
            (_, Some(Schedule::Owned { side, .. })) => kind == StageKind::Publish(side),
            _ => false,
        };
        let at_home = !(plan.travels() && kind == StageKind::Publish(Side::Right));
        let publish = plan.stages.iter().position(|stage| stage.kind == kind).filter(|_| settles && at_home);
        if publish.is_some() {
            plan.steps_mut()[step].tasks.iter_mut().flatten().for_each(|task| task.publish = publish);
        }
        publish.is_some()
    }

    fn crossing_steps(&mut self, kinds: Vec<StageKind>, scope: &Scope) -> Vec<Node> {
        let stages = &self.plan.stages;
        let known = |kind: &StageKind| stages.iter().position(|stage| stage.kind == *kind);
        let stages: Vec<usize> = kinds.iter().filter_map(known).collect();
        stages.into_iter().map(|stage| Node::Step(self.step(stage, scope))).collect()
    }

    fn step(&mut self, stage: usize, scope: &Scope) -> usize {
        let plan = &mut *self.plan;
        let kind = plan.stages[stage].kind;
        let schedule = plan.schedules[stage];
        let route = plan.route(stage);
        let part = if let StageKind::Apply(side) = kind { plan.parts[side as usize] } else { None };
        let tasks = match (kind, part) {
            (StageKind::Apply(side), Some(Part::Worker)) => plan.tasks_on_parts(side, scope),
            _ => schedule::tasks(kind, schedule, scope, (&plan.left, &plan.right), &plan.placement, route),
        };
        // An Apply reduces what other workers added to partial deltas, or to rows that rotate.
        let after = match kind {
            StageKind::Apply(_) if part == Some(Part::Worker) => After::Own,
            StageKind::Apply(_) if part == Some(Part::Process) => After::Process,
            StageKind::Apply(side) if plan.delivers(side) || plan.is_reached(side) => After::All,
            // It changes the data of edges that other workers' shards of the other side have as well.
            StageKind::Incident(_) => After::All,
            // A process's deltas are whole when its workers have ended; rows that travelled are at home when all have.
            StageKind::TakeRows if plan.slack == Some(0) => After::All,
            StageKind::Deliver(_) if tasks.iter().all(Vec::is_empty) => After::Own,
            StageKind::Deliver(_) | StageKind::TakeRows | StageKind::SendChanges => After::Process,
            StageKind::Exchange(..) if plan.before(stage).is_some() => After::Process,
            StageKind::Publish(Side::Right) if plan.travels() => After::All,
            // Whoever hands its sums in last makes the next context: nobody waits for it to do so but the stage that follows.
            StageKind::Publish(_) | StageKind::GlobalSync(None) => After::Own,
            _ if plan.is_bulk() => After::All,
            _ if plan.slack == Some(0) => After::Process,
            _ => After::Own,
        };
        plan.steps_mut().push(Step { stage, scope: scope.clone(), tasks, after });
        plan.steps.len() - 1
    }
}

impl Scope {
    fn narrowed(&self, side: Side, shape: &SideShape, rows: &std::ops::Range<usize>) -> Self {
        let shards = shape.shards(rows);
        match side {
            Side::Left => Self { left: shards, ..self.clone() },
            Side::Right => Self { right: shards, ..self.clone() },
        }
    }
}
