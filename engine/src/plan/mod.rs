//! Plans: everything that is decided before the first iteration, as a value.
//!
//! A plan is made from the outline of a sequence, the degrees of the graph and the topology, without the program and
//! without the edges, so that it can be printed, tested and costed by itself. Running is walking it.

mod builder;
mod choice;
mod crossings;
mod display;
mod input;
mod looks;
mod make;
mod nodes;
mod outline;
mod parts;
mod placement;
mod processes;
mod quality;
mod rotation;
mod schedule;
mod shape;
mod sizing;
mod steps;
mod strategy;
mod traffic;
mod walk;

use std::sync::Arc;

use megagrid_stages::Side;
use serde::Serialize;

pub(crate) use choice::needs_whole_vertices;
pub use input::Input;
pub use outline::{Cut, Outline, StageInfo, StageKind};
pub use placement::Placement;
pub use processes::Processes;
pub use quality::Quality;
pub(crate) use schedule::rotates;
pub use schedule::{Schedule, Scope, Task};
pub use shape::SideShape;
pub use steps::{After, Event, Node, Part, Step};
pub use strategy::Strategy;
pub use traffic::{Amount, Traffic};

use crate::machine::topology::Home;

/// What the engine decided.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Worker threads of all processes.
    pub workers: usize,
    /// The processes, which have equally many workers: the first has the first ones.
    pub processes: Processes,
    /// Clocks that a worker may be ahead of the slowest; `None`: any number.
    pub slack: Option<u64>,
    /// Whether a worker goes on to the next iteration while others are in this one, as far as the slack allows: no step waits for
    /// all workers.
    pub flows: bool,
    /// All workers end an iteration before anybody begins the next after each of this many iterations: a *look*, at which the run
    /// can be looked at. Where iterations do not flow into each other each one ends so.
    pub look_every: u64,
    /// Iterations in a clock, where an iteration is not several clocks.
    pub passes_per_clock: u64,
    /// Whether every process changes right rows in place at its own replica, where else they go from process to process: with slack,
    /// or several passes in a clock.
    pub mirrored: bool,
    /// Of each side, whose part of a sum an Apply is given, where slack lets it be given parts.
    pub parts: [Option<Part>; 2],
    /// The stages, in the order of the sequence.
    pub stages: Vec<StageInfo>,
    /// The schedule of each Exchange.
    pub schedules: Vec<Option<Schedule>>,
    /// The left side's shards.
    pub left: SideShape,
    /// The right side's shards.
    pub right: SideShape,
    /// Layers of random edges, 1 without a mini-batch of edges.
    pub layers: usize,
    /// Whether blocks hold right vertices with their edges; else shuffled pairs.
    pub grouped: bool,
    /// Whether each layer of a column is one block, over all left shards.
    pub whole: bool,
    /// Whether local ids have 32 bits; else 16.
    pub wide: bool,
    /// Delta arrays of each side: 1, or one for each worker of a process.
    pub copies: [usize; 2],
    /// Where each worker runs, on its process's machine.
    pub homes: Vec<Home>,
    /// Steps and mini-batches of an iteration.
    pub body: Vec<Node>,
    /// The steps by index. Virtual workers share them.
    #[serde(serialize_with = "as_list")]
    pub steps: Arc<Vec<Step>>,
    /// For each stage, whether it is an Apply to whose deltas stages before it have added since the last one.
    pub reduces: Vec<bool>,
    /// Whether right shards go from process to process to and fro: each iteration begins where the last one ended.
    pub alternates: bool,
    /// Whether both sides index the same vertices.
    pub square: bool,
    /// Edges, for reports.
    pub edges: u64,
    /// Estimated bytes of grid and vertex data in the process that needs most; 0 until the program's types are known.
    pub memory_bytes: u64,
    /// Whether what other processes need first is sent first: a rotating shard at once, changes in the order of visits.
    pub early: bool,
    /// What the processes send each other in an iteration; `None` where that depends on the data or on time, and until the
    /// program's types are known.
    pub traffic: Option<Traffic>,
    /// In which process each edge runs.
    #[serde(skip)]
    pub placement: Arc<Placement>,
    /// How good that is; not known until edges are.
    pub quality: Quality,
}

impl Plan {
    /// Tells whether this plan runs on the grid that was built for another.
    pub(crate) fn has_grid_of(&self, other: &Self) -> bool {
        let sides = |plan: &Self| (plan.left.clone(), plan.right.clone(), plan.copies, plan.homes.clone());
        let blocks = |plan: &Self| (plan.layers, plan.grouped, plan.whole, plan.wide, plan.square);
        let cuts = |plan: &Self| [Side::Left, Side::Right].map(|side| plan.is_cut(side));
        let runs = |plan: &Self| {
            // With slack other stages cross between processes.
            let own = plan.stages.iter().filter(|stage| !stage.kind.crosses()).cloned().collect::<Vec<_>>();
            (plan.workers, plan.processes, Arc::clone(&plan.placement), cuts(plan), own)
        };
        sides(self) == sides(other) && blocks(self) == blocks(other) && runs(self) == runs(other)
    }

    /// Returns the left rows at which blocks begin, and their number.
    pub(crate) fn block_bounds(&self) -> Vec<usize> {
        let bounds = &self.left.bounds;
        let ends = bounds.first().into_iter().chain(bounds.last());
        if self.whole { ends.copied().collect() } else { bounds.clone() }
    }

    /// Returns a side's shards.
    #[must_use]
    pub fn side(&self, side: Side) -> &SideShape {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }
}

fn as_list<S: serde::Serializer>(steps: &Arc<Vec<Step>>, to: S) -> Result<S::Ok, S::Error> {
    steps.as_slice().serialize(to)
}
