//! Applies that are given parts of sums: with slack, no worker then waits for the terms of others.
//!
//! A clock of such an Apply ends when what the worker added in it is applied, so that whoever sees the clock sees its changes; what
//! others have added by then may be applied with it. Who applies it:
//!
//! | rows of the side | a worker's part |
//! |---|---|
//! | are added to by workers of one process | is applied by the worker itself, to all rows |
//! | are added to by several processes | goes to the process of the masters with those of its whole process, which applies it as it comes; rows come back by their age |

use megagrid_stages::Side;
use megagrid_stages::mode::Mode;

use super::Plan;
use super::outline::{Outline, StageInfo, StageKind};
use super::schedule::{Scope, Task};
use super::steps::Part;

impl Plan {
    /// Finds what the Apply of a side is given; `None`: whole sums. That is what it gets at slack 0, on square graphs, where it is not
    /// said to be additive, and where a clock has no such Apply, or more than that after it.
    pub(super) fn part(&self, side: Side, body: &[Outline]) -> Option<Part> {
        let adds_elsewhere = self.schedules.iter().flatten().any(|schedule| schedule.reaches(side));
        if self.slack == Some(0) || self.square || !is_in_each_clock(&self.stages, body, side) {
            None
        } else if self.delivers(side) {
            Some(Part::Process)
        } else {
            (adds_elsewhere && !self.is_read_elsewhere(side)).then_some(Part::Worker)
        }
    }

    /// Tells whether a process applies what others send it of a side as it comes.
    pub(crate) fn serves(&self, side: Side) -> bool {
        self.parts[side as usize] == Some(Part::Process)
    }

    /// Tells whether there are rows that come with an age.
    pub(crate) fn has_ages(&self) -> bool {
        self.mirrored || self.serves(Side::Left) || self.serves(Side::Right)
    }

    /// Lets every worker apply what it added to the rows of its process, each beginning with others.
    pub(super) fn tasks_on_parts(&self, side: Side, scope: &Scope) -> Vec<Vec<Task>> {
        let tasks = |worker: usize| {
            let is_here = |shard: &usize| self.keeper(side, *shard) == self.process_of(worker);
            let mut shards: Vec<usize> = scope.shards(side).filter(is_here).collect();
            let thread = worker % self.threads();
            let first = shards.len() * thread / self.threads();
            shards.rotate_left(first);
            let mut copies = [0, 0];
            copies[side as usize] = if self.copies[side as usize] > 1 { thread } else { 0 };
            let task = |shard: usize| match side {
                Side::Left => Task { copies, ..Task::new(shard..shard + 1, 0..0, scope.layers.clone()) },
                Side::Right => Task { copies, ..Task::new(0..0, shard..shard + 1, scope.layers.clone()) },
            };
            shards.into_iter().map(task).collect()
        };
        (0..self.workers).map(tasks).collect()
    }
}

/// Tells whether each clock ends with the only Apply of a side, on all of its vertices and said to be additive, after all that is added
/// to the side.
fn is_in_each_clock(stages: &[StageInfo], body: &[Outline], side: Side) -> bool {
    let uses = |stage: usize| match stages[stage].kind {
        StageKind::Apply(of) | StageKind::Incident(of) => of == side,
        kind => matches!(kind.mode(side), Some(Mode::Add | Mode::Update)),
    };
    let mut clocks = Clocks::default();
    clocks.walk(body, side);
    let [clock] = &clocks.bodies[..] else { return false };
    let mut ends = clock.iter().rev().take_while(|&&stage| match stages[stage].kind {
        StageKind::Apply(_) => true,
        kind => kind == StageKind::GlobalSync(None),
    });
    let Some(&apply) = ends.find(|&&stage| stages[stage].kind == StageKind::Apply(side)) else { return false };
    let adds = |stage: usize| stages[stage].kind.mode(side) == Some(Mode::Add) && clock.contains(&stage);
    let rest = (0..stages.len()).filter(|&stage| stage != apply && uses(stage));
    !clocks.are_cut && stages[apply].additive && rest.into_iter().all(adds)
}

/// What clocks consist of: the bodies without batches in them, and whether these are of some vertices of a side only.
#[derive(Default)]
struct Clocks {
    bodies: Vec<Vec<usize>>,
    are_cut: bool,
}

impl Clocks {
    fn walk(&mut self, body: &[Outline], side: Side) {
        let stage = |outline: &Outline| if let Outline::Stage(stage) = outline { Some(*stage) } else { None };
        match body.iter().map(stage).collect() {
            Some(stages) => self.bodies.push(stages),
            None => body.iter().for_each(|outline| match outline {
                Outline::Stage(_) => {}
                Outline::Vertices(of, _, _, inner) => {
                    self.are_cut |= *of == side;
                    self.walk(inner, side);
                }
                Outline::Edges(_, _, inner) => self.walk(inner, side),
            }),
        }
    }
}
