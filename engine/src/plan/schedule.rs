//! Schedules: from the access modes of an Exchange, who runs which blocks when, so that every `&mut` is exclusive.

use serde::Serialize;
use std::fmt;
use std::ops::Range;

use megagrid_stages::Side;
use megagrid_stages::mode::Mode;

use super::outline::{StageInfo, StageKind};
use super::placement::Placement;
use super::rotation::Rotation;
use super::shape::SideShape;

/// How the blocks of an Exchange are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Schedule {
    /// Each worker runs the blocks of its own shards of this side; the other side is only read, or each worker adds to
    /// partial deltas of its own (`partial`), which Apply reduces.
    Owned {
        /// The side whose shards belong to workers.
        side: Side,
        /// Whether the other side's deltas are partial.
        partial: bool,
    },
    /// Both sides are written: left shards belong to workers, right ones go from worker to worker.
    Rotation,
    /// Right shards belong to workers, who visit theirs with all left shards, in random order; left deltas may be `partial`.
    Whole {
        /// Whether the first worker visits all of them.
        by_one: bool,
        /// Whether each worker adds to left deltas of its own.
        partial: bool,
    },
}

impl Schedule {
    /// Returns the side whose shards belong to workers.
    pub(super) fn home(self) -> Side {
        match self {
            Self::Owned { side, .. } => side,
            Self::Rotation => Side::Left,
            Self::Whole { .. } => Side::Right,
        }
    }

    /// Tells whether workers add to, or change, rows of a side that others own.
    pub(super) fn reaches(self, side: Side) -> bool {
        match self {
            Self::Whole { by_one: true, .. } => true,
            _ => side != self.home(),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owned { side, partial: false } => write!(f, "workers own {side} shards, all blocks free"),
            Self::Owned { side, partial: true } => {
                write!(f, "workers own {side} shards and add to partial deltas of the {} side", side.other())
            }
            Self::Rotation => f.write_str("workers own left shards, right shards rotate"),
            Self::Whole { by_one: true, .. } => f.write_str("one worker runs all blocks"),
            Self::Whole { .. } => f.write_str("workers own right shards, and run all edges of a vertex at a time"),
        }
    }
}

/// What the choice of a schedule depends on beside the modes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// The heaviest worker's share of the work over the mean, if workers own shards of the left, and of the right side.
    pub imbalance: [f64; 2],
    /// Whether an Exchange that reads the other side changes the rows of the left side, and of the right side, in place.
    pub settled: [bool; 2],
    /// Workers.
    pub workers: usize,
    /// Processes.
    pub processes: usize,
    /// Whether all edges of a left vertex are in one of several processes.
    pub left_whole: bool,
    /// Whether vertices of both sides are cut, or could be.
    pub cut: bool,
}

/// Above this the owner of a heavy vertex would keep the others waiting, and its edges are split among workers.
const SPLIT_ABOVE: f64 = 1.2;

/// Chooses the schedule of an Exchange.
#[must_use]
pub fn choose(left: Mode, right: Mode, costs: Costs) -> Schedule {
    use Mode::{Add, Read, Update};
    let [left_imbalance, right_imbalance] = costs.imbalance;
    let settled = costs.settled.map(|settled| costs.processes == 1 && costs.workers > 1 && settled);
    let may_split = costs.workers > costs.processes && (costs.processes == 1 || costs.cut);
    let split = |here: f64, there: f64| may_split && here > SPLIT_ABOVE && there < here;
    let owned = |side, partial| Schedule::Owned { side, partial };
    match (left, right) {
        (Read, Add) if costs.left_whole => owned(Side::Left, true),
        (Read, Read) if costs.left_whole => owned(Side::Left, false),
        // Rows that workers change in place in another stage lie in the caches of those who own them.
        (Read, Add) if settled[0] => owned(Side::Left, true),
        (Add, Read) if settled[1] => owned(Side::Right, true),
        (Read, Add) if split(right_imbalance, left_imbalance) => owned(Side::Left, true),
        (Add, Read) if split(left_imbalance, right_imbalance) => owned(Side::Right, true),
        (Read, _) => owned(Side::Right, false),
        (_, Read) => owned(Side::Left, false),
        (Add | Update, Add | Update) => Schedule::Rotation,
    }
}

/// Chooses the schedule of an Exchange beside one that has all edges of a right vertex in one block: right shards belong to
/// workers, or one runs all. `None`: several change left rows in place.
#[must_use]
pub fn choose_whole(left: Mode, by_one: bool) -> Option<Schedule> {
    (by_one || left != Mode::Update).then_some(Schedule::Whole { by_one, partial: !by_one && left == Mode::Add })
}

/// Tells whether a stage writes both ends of edges, so that right shards go from worker to worker.
#[must_use]
pub fn rotates(stage: &StageInfo) -> bool {
    let writes_both =
        matches!(stage.kind, StageKind::Exchange(left, right) if left != Mode::Read && right != Mode::Read);
    writes_both && !stage.whole
}

/// The part of the graph that a batch covers: shards of both sides, and layers of random edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// Left shards.
    pub left: Range<usize>,
    /// Right shards.
    pub right: Range<usize>,
    /// Layers.
    pub layers: Range<usize>,
}

/// What a worker does at one go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Left shards.
    pub left: Range<usize>,
    /// Right shards.
    pub right: Range<usize>,
    /// Layers of edges.
    pub layers: Range<usize>,
    /// Which delta arrays to add to, left and right.
    pub copies: [usize; 2],
    /// In a rotation: the worker's place in the order in which workers visit the right shard. It runs the blocks of those left
    /// shards that it owns.
    pub turn: Option<usize>,
    /// The worker of another process that the rotating shard's rows go to next: on the way forth, and on the way back.
    pub hand_over: [Option<usize>; 2],
    /// The stage that then sends the shard's rows to the processes that read them.
    pub publish: Option<usize>,
}

/// How far right shards go in a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Route {
    /// From worker to worker of each process.
    Process,
    /// To all workers, and then to the owner.
    Round,
    /// To all workers, and the next time the same way back, from where they are.
    ToAndFro,
}

impl Scope {
    /// Returns the shards of a side.
    #[must_use]
    pub fn shards(&self, side: Side) -> Range<usize> {
        if side == Side::Left { self.left.clone() } else { self.right.clone() }
    }
}

impl Task {
    /// Makes a task outside of rotations that sends nothing.
    #[must_use]
    pub fn new(left: Range<usize>, right: Range<usize>, layers: Range<usize>) -> Self {
        Self { left, right, layers, copies: [0, 0], turn: None, hand_over: [None; 2], publish: None }
    }

    /// Returns the first shard of a side: the only one, on the side that a task is about.
    #[must_use]
    pub fn shard(&self, side: Side) -> usize {
        self.shards(side).start
    }

    /// Returns the shards of a side.
    #[must_use]
    pub fn shards(&self, side: Side) -> Range<usize> {
        if side == Side::Left { self.left.clone() } else { self.right.clone() }
    }
}

/// Lists what each worker does in one step, in order.
#[must_use]
pub fn tasks(
    kind: StageKind,
    schedule: Option<Schedule>,
    scope: &Scope,
    shapes: (&SideShape, &SideShape),
    placement: &Placement,
    route: Route,
) -> Vec<Vec<Task>> {
    let dealing = Dealing::new(schedule, scope, shapes, placement, route);
    (0..placement.processes() * placement.threads()).map(|worker| dealing.of_worker(worker, kind)).collect()
}

/// What the tasks of a step are dealt by.
struct Dealing<'p> {
    schedule: Option<Schedule>,
    scope: &'p Scope,
    shapes: [&'p SideShape; 2],
    placement: &'p Placement,
    route: Route,
    rotation: Rotation,
    /// Of a rotation, who visits each right shard in turn.
    visitors: Vec<Vec<usize>>,
}

impl<'p> Dealing<'p> {
    fn new(
        schedule: Option<Schedule>,
        scope: &'p Scope,
        (left, right): (&'p SideShape, &'p SideShape),
        placement: &'p Placement,
        route: Route,
    ) -> Self {
        let (processes, threads) = (placement.processes(), placement.threads());
        let of_all = Rotation { columns: scope.right.len(), processes, threads };
        let rotation = if route == Route::Process { Rotation { processes: 1, ..of_all } } else { of_all };
        let visitors = match schedule {
            Some(Schedule::Rotation) => (0..rotation.columns).map(|at| rotation.of_shard(at)).collect(),
            _ => Vec::new(),
        };
        Self { schedule, scope, shapes: [left, right], placement, route, rotation, visitors }
    }

    fn of_worker(&self, worker: usize, kind: StageKind) -> Vec<Task> {
        let (scope, threads) = (self.scope, self.placement.threads());
        let mine = |side: Side| scope.shards(side).filter(move |&shard| self.owner(side, shard) == worker);
        let is_seat = |shard: &usize| shard % threads == worker % threads;
        match kind {
            StageKind::Exchange(..) => self.exchange(worker),
            // Edge data are sent with the tasks that change them.
            StageKind::SendEdges(_) => Vec::new(),
            StageKind::Incident(side) => {
                mine(side).map(|shard| self.on(side, shard, scope.shards(side.other()))).collect()
            }
            StageKind::Apply(side) | StageKind::Publish(side) => {
                mine(side).map(|shard| self.on(side, shard, 0..0)).collect()
            }
            StageKind::TakeRows | StageKind::SendChanges => {
                let all = self.rotation.by_first_visit().into_iter().map(|at| scope.right.start + at);
                all.filter(is_seat).map(|shard| self.on(Side::Right, shard, 0..0)).collect()
            }
            StageKind::Deliver(side) => {
                let process = worker / threads;
                let foreign = |shard: &usize| {
                    self.owner(side, *shard) / threads != process && self.placement.adds_to(process, side, *shard)
                };
                let mine = scope.shards(side).filter(foreign).filter(is_seat);
                mine.map(|shard| self.on(side, shard, 0..0)).collect()
            }
            StageKind::GlobalSync(over) => {
                let shards = over.into_iter().flat_map(|side| mine(side).map(move |shard| self.on(side, shard, 0..0)));
                shards.chain([Task::new(0..0, 0..0, scope.layers.clone())]).collect()
            }
        }
    }

    fn exchange(&self, worker: usize) -> Vec<Task> {
        let (scope, threads) = (self.scope, self.placement.threads());
        match self.schedule {
            Some(Schedule::Rotation) => {
                let right = self.shapes[Side::Right as usize];
                visits(scope, worker, (self.rotation, &self.visitors), (self.route, right))
            }
            Some(Schedule::Owned { side, partial }) => {
                let mut copies = [0, 0];
                copies[side.other() as usize] = if partial { worker % threads } else { 0 };
                let is_run = |&shard: &usize| self.placement.works_on(worker, side, (shard, self.owner(side, shard)));
                let task = |shard: usize| Task { copies, ..self.on(side, shard, scope.shards(side.other())) };
                scope.shards(side).filter(is_run).map(task).collect()
            }
            Some(Schedule::Whole { by_one, partial }) => {
                let copies = [if partial { worker } else { 0 }, 0];
                let owner = |shard: usize| if by_one { 0 } else { self.owner(Side::Right, shard) };
                let mine: Vec<_> = scope.right.clone().filter(|&shard| owner(shard) == worker).collect();
                let runs = mine.chunk_by(|a, b| a + 1 == *b);
                let rights = runs.map(|run| run[0]..run[0] + run.len());
                rights
                    .map(|right| Task { copies, ..Task::new(scope.left.clone(), right, scope.layers.clone()) })
                    .collect()
            }
            None => Vec::new(),
        }
    }

    fn owner(&self, side: Side, shard: usize) -> usize {
        self.shapes[side as usize].owners[shard]
    }

    /// A task on a shard of a side, with these of the other.
    fn on(&self, side: Side, shard: usize, others: Range<usize>) -> Task {
        let layers = self.scope.layers.clone();
        match side {
            Side::Left => Task::new(shard..shard + 1, others, layers),
            Side::Right => Task::new(others, shard..shard + 1, layers),
        }
    }
}

/// Each worker runs the blocks of its own left shards with the right shard that it visits; the way back is the way forth in
/// reverse. `visitors` lists for each right shard who visits it in turn.
fn visits(
    scope: &Scope,
    worker: usize,
    (rotation, visitors): (Rotation, &[Vec<usize>]),
    (route, right): (Route, &SideShape),
) -> Vec<Task> {
    let threads = rotation.threads;
    // Between the threads of each process workers count from 0.
    let seat = if route == Route::Process { worker % threads } else { worker };
    let task = |at: usize| {
        let order = &visitors[at];
        let turn = order.iter().position(|&visitor| visitor == seat).unwrap_or(0);
        let shard = scope.right.start + at;
        let (next, before) = (order.get(turn + 1).copied(), turn.checked_sub(1).map(|turn| order[turn]));
        let hand_over = match route {
            Route::Process => [None; 2],
            Route::Round => [next.or(Some(right.owners[shard])), None],
            Route::ToAndFro => [next, before],
        };
        let crosses = |next: &usize| next / threads != worker / threads;
        Task {
            turn: Some(turn),
            hand_over: hand_over.map(|next| next.filter(crosses)),
            ..Task::new(scope.left.clone(), shard..shard + 1, scope.layers.clone())
        }
    };
    rotation.of_worker(seat).into_iter().map(task).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mode::{Add, Read, Update};

    const EVEN: Costs =
        Costs { imbalance: [1.0; 2], settled: [false; 2], workers: 2, processes: 1, left_whole: false, cut: false };

    fn owned(side: Side, partial: bool) -> Schedule {
        Schedule::Owned { side, partial }
    }

    #[test]
    fn what_reads_one_side_and_adds_to_the_other_follows_the_owners_of_rows_that_another_stage_updates() {
        assert_eq!(choose(Read, Add, EVEN), owned(Side::Right, false));
        assert_eq!(choose(Add, Read, EVEN), owned(Side::Left, false));
        let settled = |settled| Costs { settled, ..EVEN };
        assert_eq!(choose(Read, Add, settled([true, false])), owned(Side::Left, true));
        assert_eq!(choose(Add, Read, settled([false, true])), owned(Side::Right, true));
        // The stage that updates has the same owners.
        assert_eq!(choose(Update, Read, settled([true, false])), owned(Side::Left, false));
        // Updates of the side that it adds to do not count.
        assert_eq!(choose(Read, Add, settled([false, true])), owned(Side::Right, false));
        assert_eq!(choose(Add, Read, settled([true, false])), owned(Side::Left, false));
    }

    #[test]
    fn one_worker_has_no_caches_to_spare_and_processes_keep_left_shards() {
        let settled = Costs { settled: [true, true], ..EVEN };
        assert_eq!(choose(Read, Add, Costs { workers: 1, ..settled }), owned(Side::Right, false));
        let apart = Costs { settled: [false, true], processes: 2, left_whole: true, ..settled };
        assert_eq!(choose(Read, Add, apart), owned(Side::Left, true));
        assert_eq!(choose(Add, Read, apart), owned(Side::Left, false));
    }
}
