//! Outlines: a sequence of stages as plain values, from which a plan is made without knowing the program.

use megagrid_stages::mode::Mode;
use megagrid_stages::{BatchOrder, Side};
use serde::Serialize;

/// One stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StageInfo {
    /// The name of the stage's type.
    pub name: String,
    /// What it does.
    pub kind: StageKind,
    /// Whether it asks for the edges of a right vertex together.
    pub grouped: bool,
    /// Whether it asks for all of them in one block.
    pub whole: bool,
    /// Whether one worker then runs all blocks.
    pub by_one: bool,
    /// Of an Apply, whether parts of a sum may be applied by themselves.
    pub additive: bool,
    /// Whether it may change what edges carry, if that is anything.
    pub changes_edges: bool,
    /// Whether it is an Exchange that runs on a vertex with all its edges at a time: on those of the side that it updates.
    pub gathers: bool,
}

impl StageInfo {
    /// Describes a stage that asks for nothing.
    pub fn new(name: impl Into<String>, kind: StageKind) -> Self {
        let name = name.into();
        Self {
            name,
            kind,
            grouped: false,
            whole: false,
            by_one: false,
            additive: false,
            changes_edges: false,
            gathers: false,
        }
    }

    /// Tells whether it needs to know which edges each vertex of a side has.
    #[must_use]
    pub fn indexes(&self, side: Side) -> bool {
        self.kind == StageKind::Incident(side) || self.gathers && self.kind.mode(side) == Some(Mode::Update)
    }
}

/// What a stage does, as far as its schedule depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum StageKind {
    /// Runs on edges, with these access modes left and right.
    Exchange(Mode, Mode),
    /// Runs on the vertices of a side with the data of all their edges.
    Incident(Side),
    /// Runs on the vertices of a side.
    Apply(Side),
    /// Folds contexts, and the vertices of a side if one is named.
    GlobalSync(Option<Side>),
    /// Sends this process's deltas of a side to the masters' keepers.
    Deliver(Side),
    /// Sends synced rows of a side from masters to mirrors.
    Publish(Side),
    /// Takes in right rows that masters sent, before a clock that changes them in place in every process.
    TakeRows,
    /// Sends what such a clock changed to the masters.
    SendChanges,
    /// Sends the data of edges that a visit of a side's vertices changed to the processes that have these edges for their other
    /// ends.
    SendEdges(Side),
}

impl StageKind {
    /// Returns how an Exchange uses the vertices of a side; `None` for other stages.
    #[must_use]
    pub fn mode(self, side: Side) -> Option<Mode> {
        match (self, side) {
            (Self::Exchange(mode, _), Side::Left) | (Self::Exchange(_, mode), Side::Right) => Some(mode),
            _ => None,
        }
    }

    /// Tells whether the stage was added for other processes.
    #[must_use]
    pub fn crosses(self) -> bool {
        matches!(self, Self::Deliver(_) | Self::Publish(_) | Self::TakeRows | Self::SendChanges | Self::SendEdges(_))
    }
}

/// A sequence: stages by index, and mini-batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outline {
    /// The stage with this index.
    Stage(usize),
    /// A mini-batch of vertices of a side.
    Vertices(Side, Cut, BatchOrder, Vec<Outline>),
    /// A mini-batch of random edges.
    Edges(u64, BatchOrder, Vec<Outline>),
}

/// How many rows a batch of vertices has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// This many.
    Vertices(u64),
    /// As many as have about this many edges.
    Edges(u64),
}

impl Outline {
    /// Calls `visit` for this and everything inside it, outer first.
    pub fn walk(&self, visit: &mut impl FnMut(&Outline)) {
        visit(self);
        if let Self::Vertices(.., body) | Self::Edges(.., body) = self {
            body.iter().for_each(|inner| inner.walk(visit));
        }
    }
}

/// Tells for each stage whether it is an Apply that has deltas to reduce: something was added to its side since the last Apply
/// there. Every Apply does where deltas may come another way (`shared`): from the other side of a square graph, or from another
/// process.
pub(super) fn reduces(stages: &[StageInfo], body: &[Outline], shared: bool) -> Vec<bool> {
    let mut walk = Pending { stages, added: [false; 2], reduces: vec![false; stages.len()] };
    // What an iteration ends with comes before what it begins with.
    (0..2).for_each(|_| walk.nodes(body));
    let apply = |stage: &StageInfo| matches!(stage.kind, StageKind::Apply(_));
    walk.reduces.iter().zip(stages).map(|(reduces, stage)| *reduces || shared && apply(stage)).collect()
}

/// What has been added and not yet reduced.
struct Pending<'s> {
    stages: &'s [StageInfo],
    /// To the left, and to the right side.
    added: [bool; 2],
    reduces: Vec<bool>,
}

impl Pending<'_> {
    fn nodes(&mut self, body: &[Outline]) {
        for outline in body {
            match outline {
                Outline::Stage(stage) => self.stage(*stage),
                Outline::Vertices(.., body) | Outline::Edges(.., body) => (0..2).for_each(|_| self.nodes(body)),
            }
        }
    }

    fn stage(&mut self, stage: usize) {
        match self.stages[stage].kind {
            StageKind::Exchange(left, right) => {
                self.added[0] |= left == Mode::Add;
                self.added[1] |= right == Mode::Add;
            }
            StageKind::Apply(side) => {
                let added = &mut self.added[side as usize];
                self.reduces[stage] |= std::mem::take(added);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mode::{Add, Read, Update};

    #[test]
    fn an_apply_reduces_what_was_added_since_the_last_one() {
        let kinds = [
            StageKind::Exchange(Read, Add),
            StageKind::Apply(Side::Right),
            StageKind::Exchange(Update, Read),
            StageKind::Apply(Side::Left),
            StageKind::Apply(Side::Right),
        ];
        let stages = kinds.map(|kind| StageInfo::new("", kind));
        let batch = |body| Outline::Vertices(Side::Right, Cut::Vertices(1), BatchOrder::Fixed, body);
        let [add, apply, update, left, again] = [0, 1, 2, 3, 4].map(Outline::Stage);
        let body = [batch(vec![add.clone(), apply.clone(), update.clone()]), left.clone(), again.clone()];
        assert_eq!(reduces(&stages, &body, false), [false, true, false, false, false]);
        assert_eq!(reduces(&stages, &body, true), [false, true, false, true, true]);
        // What comes last in a batch, or in an iteration, is before what comes first.
        let body = [batch(vec![apply.clone(), add.clone()]), again.clone()];
        assert_eq!(reduces(&stages, &body, false), [false, true, false, false, true]);
        let body = [again, apply, update, left, add];
        assert_eq!(reduces(&stages, &body, false), [false, false, false, false, true]);
    }
}
