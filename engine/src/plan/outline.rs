//! Outlines: a sequence of stages as plain values, from which a plan is made without knowing the program.

use megagrid_stages::{BatchOrder, Mode, Side};
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
    /// Folds contexts, and the vertices of the sides marked (left, right).
    GlobalSync(bool, bool),
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
