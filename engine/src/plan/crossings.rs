//! Several processes: whose shards stay with one process, and what crosses between them.
//!
//! A process is a run of workers. Rows of a side that only their owners touch never leave their process (users of matrix
//! factorization, samples, documents). A *cut* side is touched by workers of several processes:
//!
//! | how a stage uses the cut side | what crosses |
//! |---|---|
//! | `Add` | deltas, to the process that keeps the masters: [`StageKind::Deliver`] |
//! | Apply, or `Update` by its owner | synced rows, to the processes that read them: [`StageKind::Publish`] |
//! | Apply that is given parts of sums, with slack | synced rows with their age, when the consistency model says so |
//! | `Update` in a rotation, mirrored: with slack, or several passes in a clock | what changed, to the masters, and their rows back: [`StageKind::SendChanges`] |
//! | `Update` in a rotation, not mirrored | the rows themselves, from worker to worker, the next time the same way back |
//!
//! Where another stage uses right rows too (Apply, `Read`), or batches are runs of them, they go on to the owner after each rotation.
//!
//! Where stages visit vertices with the data of all their edges, an edge is in the processes of both its ends, and its data go
//! from one to the other after each visit: [`StageKind::SendEdges`].

use megagrid_partition::{ShardId, WorkerId};
use megagrid_stages::Side;
use megagrid_stages::mode::Mode;

use super::Plan;
use super::outline::{Outline, StageInfo, StageKind};
use super::rotation::Rotation;
use super::schedule::{Route, Schedule};
use crate::Error;

impl Plan {
    /// Returns the worker threads of a process.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.workers / self.processes.count
    }

    /// Returns the workers of this process.
    #[must_use]
    pub fn local_workers(&self) -> std::ops::Range<usize> {
        let threads = self.threads();
        self.processes.this * threads..(self.processes.this + 1) * threads
    }

    /// Returns the process of a worker.
    #[must_use]
    pub fn process_of(&self, worker: usize) -> usize {
        worker / self.threads()
    }

    /// Tells whether there are other processes.
    #[must_use]
    pub fn is_distributed(&self) -> bool {
        self.processes.count > 1
    }

    /// Returns the process that keeps the masters of a shard.
    #[must_use]
    pub fn keeper(&self, side: Side, shard: usize) -> usize {
        self.process_of(self.side(side).owners[shard])
    }

    /// Tells whether this process is the one that answers for those edges between two shards that it holds: for edges in two
    /// processes the first of them.
    #[must_use]
    pub fn answers_for(&self, left: ShardId, right: ShardId) -> bool {
        let keepers = || [self.keeper(Side::Left, left.0), self.keeper(Side::Right, right.0)];
        !self.placement.is_doubled() || keepers().into_iter().min() == Some(self.processes.this)
    }

    /// Tells whether a worker runs the blocks of a shard in a stage whose workers share out those of its side.
    #[must_use]
    pub fn works_on(&self, worker: WorkerId, side: Side, shard: ShardId) -> bool {
        self.placement.works_on(worker.0, side, (shard.0, self.side(side).owners[shard.0]))
    }

    /// Tells whether a stage adds to, or changes in place, rows of a side that other workers own.
    #[must_use]
    pub fn is_cut(&self, side: Side) -> bool {
        self.is_read_elsewhere(side) || side == Side::Right && self.rotates_updates()
    }

    /// Returns the side whose owners keep the masters of a side: on a square graph the vertices of both sides are the same.
    #[must_use]
    pub fn side_of_masters(&self, side: Side) -> Side {
        if self.square { Side::Right } else { side }
    }

    /// Tells whether a stage adds to rows of a side, left or right ends, of which other processes keep the masters.
    pub(crate) fn delivers(&self, side: Side) -> bool {
        let (mut stages, side) = (0..self.stages.len(), self.side_of_masters(side));
        stages.any(|stage| self.crossings(stage).contains(&StageKind::Deliver(side)))
    }

    /// Tells whether workers add to, or change, rows of a side that others of their process own. The left shards of a square graph
    /// may have other owners than the right ones, who own its vertices: batches of left vertices are cut elsewhere.
    pub(super) fn is_reached(&self, side: Side) -> bool {
        let owners = |of: Side| (&self.side(of).bounds, &self.side(of).owners);
        let differs = self.square && side == Side::Right && owners(Side::Left) != owners(Side::Right);
        let adds_left = |stage: &StageInfo| stage.kind.mode(Side::Left) == Some(Mode::Add);
        self.schedules.iter().flatten().any(|schedule| schedule.reaches(side))
            || differs && self.stages.iter().any(adds_left)
    }

    /// Tells whether right shards go from process to process.
    #[must_use]
    pub fn travels(&self) -> bool {
        !self.mirrored && self.rotates_updates()
    }

    /// Tells how far right shards go in the rotation of a stage.
    pub(super) fn route(&self, stage: usize) -> Route {
        match (self.travels() && self.rotates_update(stage), self.alternates) {
            (false, _) => Route::Process,
            (true, false) => Route::Round,
            (true, true) => Route::ToAndFro,
        }
    }

    /// Returns how often right shards go all their way in an iteration.
    pub(crate) fn passes(&self) -> u64 {
        self.steps.iter().filter(|step| self.rotates_update(step.stage)).count() as u64
    }

    /// Returns the process that has the present rows of a shard between iterations, when this many are done: of shards that
    /// travel to and fro the one where they are, else that of the masters.
    #[must_use]
    pub fn holder(&self, side: Side, shard: usize, iterations: u64) -> usize {
        let away = side == Side::Right && self.alternates && self.passes() % 2 == 1 && iterations % 2 == 1;
        if away { self.last_visitor(shard) } else { self.keeper(side, shard) }
    }

    /// Returns the process that a rotating right shard comes to last.
    fn last_visitor(&self, shard: usize) -> usize {
        let (columns, processes) = (self.right.num_shards(), self.processes.count);
        self.process_of(Rotation { columns, processes, threads: self.threads() }.last(shard))
    }

    /// Tells whether a process is the [holder](Self::holder) of a shard after some number of iterations, with or without slack.
    #[must_use]
    pub fn may_hold(&self, side: Side, shard: usize, process: usize) -> bool {
        let is_last = || side == Side::Right && self.rotates_updates() && self.last_visitor(shard) == process;
        self.keeper(side, shard) == process || is_last()
    }

    /// Tells whether right shards can travel to and fro, so that each waits for the next iteration where the last visit was: every
    /// stage that uses their rows changes them in place, and each of its batches has all of them.
    pub(super) fn can_alternate(&self, body: &[Outline]) -> bool {
        let mut cut = false;
        let of_right = |outline: &Outline| matches!(outline, Outline::Vertices(Side::Right, ..));
        body.iter().for_each(|outline| outline.walk(&mut |inner| cut |= of_right(inner)));
        let stays_away = |stage: usize| match self.stages[stage].kind {
            StageKind::Exchange(..) => self.rotates_update(stage),
            StageKind::GlobalSync(side) => side != Some(Side::Right),
            StageKind::Apply(side) => side == Side::Left,
            _ => false,
        };
        !cut && self.travels() && (0..self.stages.len()).all(stays_away)
    }

    /// Tells whether workers of several processes change the same right rows in place.
    pub(super) fn rotates_updates(&self) -> bool {
        self.is_distributed() && (0..self.stages.len()).any(|stage| self.rotates_update(stage))
    }

    /// Tells whether a stage changes right rows in place in a rotation.
    pub(crate) fn rotates_update(&self, stage: usize) -> bool {
        self.schedules[stage] == Some(Schedule::Rotation)
            && self.stages[stage].kind.mode(Side::Right) == Some(Mode::Update)
    }

    /// Tells whether a process reads synced rows of a side of which another keeps the masters.
    #[must_use]
    pub fn is_read_elsewhere(&self, side: Side) -> bool {
        let is_read = |stage: usize| {
            let cuts = |side: Side| self.schedules[stage].is_some_and(|one| self.placement.cuts(side, one.home()));
            !(side == Side::Right && self.rotates_update(stage)) && (cuts(side) || self.square && cuts(side.other()))
        };
        (0..self.stages.len()).any(is_read)
    }

    /// Lists the shards of a side that a worker keeps for its process: those that it owns, and its share of those that its
    /// process mirrors.
    pub(crate) fn shards_at(&self, side: Side, worker: usize) -> impl Iterator<Item = usize> + '_ {
        let (shape, mirrored, threads) = (self.side(side), self.is_cut(side), self.threads());
        (0..shape.num_shards()).filter(move |&shard| {
            let owner = shape.owners[shard];
            owner == worker || mirrored && owner / threads != worker / threads && shard % threads == worker % threads
        })
    }

    /// Returns how many workers visit a shard in a rotation.
    pub(crate) fn visitors(&self, stage: usize) -> usize {
        if self.route(stage) == Route::Process { self.threads() } else { self.workers }
    }

    /// Lists what has to be done before a stage for other processes.
    pub(super) fn before(&self, stage: usize) -> Option<StageKind> {
        (self.mirrored && self.rotates_update(stage)).then_some(StageKind::TakeRows)
    }

    /// Lists what has to cross after a stage: deltas first, then rows.
    pub(super) fn crossings(&self, stage: usize) -> Vec<StageKind> {
        if !self.is_distributed() {
            return Vec::new();
        }
        let publish = |side: Side| {
            let side = self.side_of_masters(side);
            self.is_read_elsewhere(side).then_some(StageKind::Publish(side))
        };
        if self.mirrored && self.rotates_update(stage) {
            return vec![StageKind::SendChanges];
        }
        let (kind, schedule) = (self.stages[stage].kind, self.schedules[stage]);
        let crossing = |(side, mode): (Side, Mode)| match (mode, schedule) {
            (Mode::Add, Some(schedule)) if self.placement.cuts(side, schedule.home()) => {
                Some(StageKind::Deliver(self.side_of_masters(side)))
            }
            (Mode::Update, _) => publish(side),
            (Mode::Add | Mode::Read, _) => None,
        };
        match kind {
            StageKind::Apply(side) if self.serves(side) => Vec::new(),
            StageKind::Apply(side) => publish(side).into_iter().collect(),
            StageKind::Incident(side) => vec![StageKind::SendEdges(side)],
            StageKind::Exchange(left, right) => {
                [(Side::Left, left), (Side::Right, right)].into_iter().filter_map(crossing).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Appends the stages that cross between processes, each once.
    pub(super) fn add_crossings(&mut self) {
        for stage in 0..self.stages.len() {
            for kind in self.before(stage).into_iter().chain(self.crossings(stage)) {
                if !self.stages.iter().any(|known| known.kind == kind) {
                    let name = match kind {
                        StageKind::Deliver(_) => "Deliver",
                        StageKind::TakeRows => "TakeRows",
                        StageKind::SendChanges => "SendChanges",
                        StageKind::SendEdges(_) => "SendEdges",
                        _ => "Publish",
                    };
                    self.stages.push(StageInfo::new(name, kind));
                    self.schedules.push(None);
                }
            }
        }
    }

    /// Sends changes in the opposite of the order in which they are needed, for comparison.
    pub(super) fn send_last_first(&mut self) {
        let is_sending: Vec<bool> = self.stages.iter().map(|stage| stage.kind == StageKind::SendChanges).collect();
        for step in self.steps_mut() {
            if is_sending[step.stage] {
                step.tasks.iter_mut().for_each(|tasks| tasks.reverse());
            }
        }
    }

    /// Finds that there is a shard with its edges for every process.
    pub(super) fn check_shards(&self) -> Result<(), Error> {
        let runs_edges = |stage: &StageInfo| matches!(stage.kind, StageKind::Exchange(..) | StageKind::Incident(_));
        let has_edges = self.stages.iter().any(runs_edges);
        let sides = [Side::Left, Side::Right].into_iter().filter(|&side| has_edges && self.placement.follows(side));
        let shards = sides.map(|side| self.side(self.side_of_masters(side)).num_shards()).max().unwrap_or(usize::MAX);
        let processes = self.processes.count;
        if processes > 1 && shards < processes { Err(Error::TooManyProcesses { processes, shards }) } else { Ok(()) }
    }

    /// Returns the edges that the process with most of them runs, given the degree of a vertex by side and row; more, where
    /// it runs edges for their left and for their right ends.
    pub(crate) fn most_edges(&self, degree: &dyn Fn(Side, usize) -> u64) -> u64 {
        self.placement.most_edges(degree).unwrap_or(self.edges).min(self.edges)
    }

    /// Returns the most rows of a side that a process touches: all where it may mirror any, else those that it keeps.
    pub(crate) fn most_rows(&self, side: Side) -> usize {
        let shape = self.side(side);
        let all = shape.bounds.last().copied().unwrap_or(0);
        if !self.is_distributed() || self.is_cut(side) {
            return all;
        }
        let mut rows = vec![0; self.processes.count];
        (0..shape.num_shards()).for_each(|shard| rows[self.keeper(side, shard)] += shape.rows(shard).len());
        rows.into_iter().max().unwrap_or(0)
    }

    /// Finds that the first visitor of each shard is in the process that keeps it.
    pub(super) fn check_rotations(&self) -> Result<(), Error> {
        for step in self.steps.iter() {
            let tasks =
                step.tasks.iter().enumerate().flat_map(|(worker, tasks)| tasks.iter().map(move |t| (worker, t)));
            for (worker, task) in tasks.filter(|(_, task)| task.turn == Some(0)) {
                if self.travels()
                    && self.rotates_update(step.stage)
                    && self.keeper(Side::Right, task.right.start) != self.process_of(worker)
                {
                    return Err(Error::NestedRotation(self.stages[step.stage].name.clone()));
                }
            }
        }
        Ok(())
    }
}
