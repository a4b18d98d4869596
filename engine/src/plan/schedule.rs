//! Schedules: from the access modes of an Exchange, who runs which blocks when, so that every `&mut` is exclusive.

use serde::Serialize;
use std::fmt;
use std::ops::Range;

use megagrid_stages::{Mode, Side};

use super::outline::StageKind;
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
    /// Both sides are written: shards of one side belong to workers, those of the other go from worker to worker.
    Rotation {
        /// The side whose shards belong to workers.
        home: Side,
    },
}

impl Schedule {
    /// Tells whether workers add to, or change, rows of a side that others own.
    pub(super) fn reaches(self, side: Side) -> bool {
        match self {
            Self::Rotation { .. } => true,
            Self::Owned { side: owned, .. } => owned != side,
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
            Self::Rotation { home } => write!(f, "workers own {home} shards, {} shards rotate", home.other()),
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
    /// With several processes, the side whose shards keep their edges in one process.
    pub home: Option<Side>,
}

/// Above this the owner of a heavy vertex would keep the others waiting, and its edges are split among workers.
const SPLIT_ABOVE: f64 = 1.2;

/// Chooses the schedule of an Exchange.
#[must_use]
pub fn choose(left: Mode, right: Mode, costs: Costs) -> Schedule {
    use Mode::{Add, Read, Update};
    let [left_imbalance, right_imbalance] = costs.imbalance;
    let settled = costs.settled.map(|settled| costs.processes == 1 && costs.workers > 1 && settled);
    let split = |here: f64, there: f64| costs.processes == 1 && costs.workers > 1 && here > SPLIT_ABOVE && there < here;
    let owned = |side, partial| Schedule::Owned { side, partial };
    match (left, right) {
        (Read, Add) if costs.home == Some(Side::Left) => owned(Side::Left, true),
        (Add, Read) if costs.home == Some(Side::Right) => owned(Side::Right, true),
        (Read, Read) if costs.home == Some(Side::Left) => owned(Side::Left, false),
        // Rows that workers change in place in another stage lie in the caches of those who own them.
        (Read, Add) if settled[0] => owned(Side::Left, true),
        (Add, Read) if settled[1] => owned(Side::Right, true),
        (Read, Add) if split(right_imbalance, left_imbalance) => owned(Side::Left, true),
        (Add, Read) if split(left_imbalance, right_imbalance) => owned(Side::Right, true),
        (Read, _) => owned(Side::Right, false),
        (_, Read) => owned(Side::Left, false),
        (Add | Update, Add | Update) => Schedule::Rotation { home: costs.home.unwrap_or(Side::Left) },
    }
}

/// Tells whether a stage needs the edges as pairs.
#[must_use]
pub fn rotates(kind: StageKind) -> bool {
    matches!(kind, StageKind::Exchange(left, right) if left != Mode::Read && right != Mode::Read)
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

impl Scope {
    /// Returns the shards of a side.
    #[must_use]
    pub fn of(&self, side: Side) -> &Range<usize> {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }
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
    /// In a rotation: the worker's place in the order in which workers visit the rotating shard. It runs the blocks of those
    /// shards of the other side that it owns.
    pub turn: Option<usize>,
    /// The worker of another process that the rotating shard's rows go to next.
    pub hand_over: Option<usize>,
    /// The stage that then sends the shard's rows to the processes that read them.
    pub publish: Option<usize>,
}

impl Task {
    /// Returns the first shard of a side: the only one, on the side that a task is about.
    #[must_use]
    pub fn shard(&self, side: Side) -> usize {
        match side {
            Side::Left => self.left.start,
            Side::Right => self.right.start,
        }
    }
}

/// Lists what each worker does in one step, in order.
#[must_use]
pub fn tasks(
    kind: StageKind,
    schedule: Option<Schedule>,
    scope: &Scope,
    (left, right): (&SideShape, &SideShape),
    (workers, processes): (usize, usize),
    travels: bool,
) -> Vec<Vec<Task>> {
    let threads = workers / processes;
    let visitors: Vec<Vec<usize>> = match schedule {
        Some(Schedule::Rotation { home }) => {
            let columns = scope.of(home.other()).len();
            (0..columns).map(|at| visitors(at, columns, if travels { workers } else { threads })).collect()
        }
        _ => Vec::new(),
    };
    let whole = |left: Range<usize>, right: Range<usize>| Task {
        left,
        right,
        layers: scope.layers.clone(),
        copies: [0, 0],
        turn: None,
        hand_over: None,
        publish: None,
    };
    (0..workers)
        .map(|worker| {
            let lefts = || owned(left, &scope.left, worker);
            let rights = || owned(right, &scope.right, worker);
            match (kind, schedule) {
                (StageKind::Exchange(..), Some(Schedule::Rotation { home })) => {
                    let group = if travels { 0..workers } else { group_of(worker, threads) };
                    let shape = if home.other() == Side::Left { left } else { right };
                    rotation(scope, home.other(), worker, &group, (threads, &visitors), shape)
                }
                (StageKind::Exchange(..), Some(Schedule::Owned { side: Side::Left, partial })) => lefts()
                    .map(|shard| Task {
                        copies: [0, copy(partial, worker % threads)],
                        ..whole(shard..shard + 1, scope.right.clone())
                    })
                    .collect(),
                (StageKind::Exchange(..), Some(Schedule::Owned { side: Side::Right, partial })) => rights()
                    .map(|shard| Task {
                        copies: [copy(partial, worker % threads), 0],
                        ..whole(scope.left.clone(), shard..shard + 1)
                    })
                    .collect(),
                // Edge data are sent with the tasks that change them.
                (StageKind::Exchange(..), None) | (StageKind::SendEdges(_), _) => Vec::new(),
                (StageKind::Incident(Side::Left), _) => {
                    lefts().map(|shard| whole(shard..shard + 1, scope.right.clone())).collect()
                }
                (StageKind::Incident(Side::Right), _) => {
                    rights().map(|shard| whole(scope.left.clone(), shard..shard + 1)).collect()
                }
                (StageKind::Apply(Side::Left) | StageKind::Publish(Side::Left), _) => {
                    lefts().map(|shard| whole(shard..shard + 1, 0..0)).collect()
                }
                (StageKind::Apply(Side::Right) | StageKind::Publish(Side::Right), _) => {
                    rights().map(|shard| whole(0..0, shard..shard + 1)).collect()
                }
                (StageKind::TakeRows | StageKind::SendChanges, _) => {
                    let mine = scope.right.clone().filter(|shard| shard % threads == worker % threads);
                    let mut mine: Vec<usize> = mine.collect();
                    mine.sort_by_key(|shard| first_round(shard - scope.right.start, scope.right.len(), threads));
                    mine.into_iter().map(|shard| whole(0..0, shard..shard + 1)).collect()
                }
                (StageKind::Deliver(side), _) => {
                    let shape = if side == Side::Left { left } else { right };
                    let shards = if side == Side::Left { scope.left.clone() } else { scope.right.clone() };
                    let foreign = |shard: &usize| shape.owners[*shard] / threads != worker / threads;
                    let mine = shards.filter(foreign).filter(|shard| shard % threads == worker % threads);
                    let of =
                        |shard| if side == Side::Left { (shard..shard + 1, 0..0) } else { (0..0, shard..shard + 1) };
                    mine.map(of).map(|(left, right)| whole(left, right)).collect()
                }
                (StageKind::GlobalSync(on_left, on_right), _) => {
                    let lefts = lefts().filter(|_| on_left).map(|shard| whole(shard..shard + 1, 0..0));
                    let rights = rights().filter(|_| on_right).map(|shard| whole(0..0, shard..shard + 1));
                    lefts.chain(rights).chain([whole(0..0, 0..0)]).collect()
                }
            }
        })
        .collect()
}

fn copy(partial: bool, worker: usize) -> usize {
    if partial { worker } else { 0 }
}

fn owned<'s>(side: &'s SideShape, shards: &Range<usize>, worker: usize) -> impl Iterator<Item = usize> + 's {
    shards.clone().filter(move |&shard| side.owners[shard] == worker)
}

fn group_of(worker: usize, threads: usize) -> Range<usize> {
    let first = worker / threads * threads;
    first..first + threads
}

/// Workers begin at shards of the rotating side that lie as far apart as possible and go round; each runs the blocks of its
/// own shards of the other side with the shard that it holds. After the last visit a shard goes back to its owner.
/// `visitors` lists for each rotating shard who visits it in turn.
fn rotation(
    scope: &Scope,
    rotating: Side,
    worker: usize,
    group: &Range<usize>,
    (threads, visitors): (usize, &[Vec<usize>]),
    shape: &SideShape,
) -> Vec<Task> {
    let rotates = scope.of(rotating);
    let (columns, workers) = (rotates.len(), group.len());
    let begin = |member: usize| member * columns / workers;
    let member = worker - group.start;
    (0..columns)
        .map(|round| {
            let at = (begin(member) + round) % columns;
            let order = &visitors[at];
            let turn = order.iter().position(|&visitor| visitor == member).unwrap_or(0);
            let shard = rotates.start + at;
            let next = order.get(turn + 1).map_or(shape.owners[shard], |next| group.start + next);
            let crosses = workers > threads && next / threads != worker / threads;
            let (left, right) = match rotating {
                Side::Left => (shard..shard + 1, scope.right.clone()),
                Side::Right => (scope.left.clone(), shard..shard + 1),
            };
            Task {
                left,
                right,
                layers: scope.layers.clone(),
                copies: [0, 0],
                turn: Some(turn),
                hand_over: crosses.then_some(next),
                publish: None,
            }
        })
        .collect()
}

/// Returns the workers in the order in which they visit the rotating shard number `at` of `columns`.
///
/// Worker w comes to it in round (at - begin(w)) mod columns; workers that begin together take turns by number.
fn visitors(at: usize, columns: usize, workers: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..workers).collect();
    order.sort_by_key(|&worker| ((at + columns - worker * columns / workers) % columns, worker));
    order
}

/// Returns the round in which the first of so many workers comes to the rotating shard number `at` of `columns`.
fn first_round(at: usize, columns: usize, workers: usize) -> usize {
    (0..workers).map(|worker| (at + columns - worker * columns / workers) % columns).min().unwrap_or(0)
}

/// Returns the worker that visits the rotating shard number `at` of `columns` first.
pub(super) fn first_visitor(at: usize, columns: usize, workers: usize) -> usize {
    visitors(at, columns, workers)[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mode::{Add, Read, Update};

    const EVEN: Costs = Costs { imbalance: [1.0; 2], settled: [false; 2], workers: 2, processes: 1, home: None };

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
    fn one_worker_has_no_caches_to_spare_and_processes_keep_their_home_side() {
        let settled = Costs { settled: [true, true], ..EVEN };
        assert_eq!(choose(Read, Add, Costs { workers: 1, ..settled }), owned(Side::Right, false));
        assert_eq!(
            choose(Read, Add, Costs { processes: 2, home: Some(Side::Right), ..settled }),
            owned(Side::Right, false)
        );
    }
}
