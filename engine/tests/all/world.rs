//! Worker state machines over a plan, driven by hand in one thread: what they do, in which order, who overlaps whom.
//!
//! While a task runs, any other worker that is not in the middle of a task may be stepped, so that tasks overlap as they
//! would on threads.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use megagrid_engine::board::Board;
use megagrid_engine::plan::{Event, Plan, StageKind, Task};
use megagrid_engine::worker::{Outcome, Position, Progress, Tasks, Worker};
use megagrid_partition::{Side, SplitMix};
use megagrid_stages::mode::Mode;

pub const SEED: u64 = 7;
const ITERATIONS: u64 = 3;

/// A task that a worker is to run, and where.
#[derive(Clone, Debug, PartialEq)]
struct Due {
    /// Counts steps since the run began.
    step: usize,
    at: Position,
    task: Task,
}

/// Lists what a worker is to run in all iterations, in the plan's order.
fn due(plan: &Plan, worker: usize) -> Vec<Due> {
    let (mut all, mut clock, mut steps) = (Vec::new(), 1, 0);
    for iteration in 1..=ITERATIONS {
        for event in plan.events(SEED, iteration) {
            let Event::Step { step, .. } = event else {
                clock += 1;
                continue;
            };
            let step = &plan.steps[step];
            let at = Position { iteration, clock, stage: step.stage, back: false };
            all.extend(step.tasks[worker].iter().map(|task| Due { step: steps, at, task: task.clone() }));
            steps += 1;
        }
    }
    all
}

/// Rows that a task uses.
#[derive(Clone, Debug)]
struct Use {
    side: Side,
    rows: Range<usize>,
    /// Whether the synced data are changed.
    alone: bool,
    /// Which delta arrays are changed.
    deltas: Range<usize>,
}

impl Use {
    fn conflicts(&self, other: &Self) -> bool {
        let overlap = |a: &Range<usize>, b: &Range<usize>| a.start.max(b.start) < a.end.min(b.end);
        self.side == other.side
            && overlap(&self.rows, &other.rows)
            && (self.alone || other.alone || overlap(&self.deltas, &other.deltas))
    }
}

fn uses(plan: &Plan, worker: usize, at: Position, task: &Task) -> Vec<Use> {
    let mut uses = Vec::new();
    let mut add = |side: Side, shards: &Range<usize>, alone, deltas: Range<usize>| {
        let rotating = task.turn.is_some() && side == Side::Left;
        for shard in shards.clone().filter(|&shard| !rotating || plan.left.owners[shard] == worker) {
            let rows = plan.side(side).rows(shard);
            let side = if plan.square { Side::Right } else { side };
            uses.push(Use { side, rows, alone, deltas: deltas.clone() });
        }
    };
    match plan.stages[at.stage].kind {
        StageKind::Exchange(left, right) => {
            let deltas = |mode, copy| if mode == Mode::Add { copy..copy + 1 } else { 0..0 };
            add(Side::Left, &task.left, left == Mode::Update, deltas(left, task.copies[0]));
            add(Side::Right, &task.right, right == Mode::Update, deltas(right, task.copies[1]));
        }
        kind => {
            let alone = matches!(kind, StageKind::Apply(_) | StageKind::Incident(_));
            let deltas = 0..usize::from(alone) * plan.workers;
            // An Incident's task names the blocks of its shard, and holds rows of its own side only.
            if kind != StageKind::Incident(Side::Right) {
                add(Side::Left, &task.left, alone, deltas.clone());
            }
            if kind != StageKind::Incident(Side::Left) {
                add(Side::Right, &task.right, alone, deltas);
            }
        }
    }
    uses
}

/// The workers of a run and what they have done.
pub struct World {
    plan: Arc<Plan>,
    board: Arc<Board>,
    random: RefCell<SplitMix>,
    /// Workers that are not in the middle of a task.
    workers: Vec<Cell<Option<Worker>>>,
    due: Vec<Vec<Due>>,
    ran: Vec<RefCell<Vec<(Position, Task)>>>,
    running: Vec<RefCell<Vec<Use>>>,
    ended: Vec<Cell<u64>>,
    /// Refusals in a row while nobody did anything.
    idle: Cell<usize>,
}

impl World {
    pub fn new(plan: Arc<Plan>, seed: u64) -> Self {
        let board = Arc::new(Board::new(plan.workers, plan.right.num_shards()));
        let worker = |id| Cell::new(Some(Worker::new(id, Arc::clone(&plan), Arc::clone(&board), SEED, 0)));
        Self {
            workers: (0..plan.workers).map(worker).collect(),
            due: (0..plan.workers).map(|id| due(&plan, id)).collect(),
            ran: vec![RefCell::default(); plan.workers],
            running: vec![RefCell::default(); plan.workers],
            ended: vec![Cell::new(0); plan.workers],
            random: RefCell::new(SplitMix::new(seed, 0)),
            idle: Cell::new(0),
            board,
            plan,
        }
    }

    fn below(&self, bound: usize) -> usize {
        self.random.borrow_mut().below(bound as u64) as usize
    }

    /// Steps a random worker, unless it is in the middle of a task.
    fn step(&self) {
        let id = self.below(self.plan.workers);
        let Some(mut worker) = self.workers[id].take() else { return };
        let progress = worker.step(&mut OfWorker { id, world: self });
        self.workers[id].set(Some(worker));
        match progress {
            Progress::Waiting => self.idle.set(self.idle.get() + 1),
            Progress::Ran => self.idle.set(0),
            Progress::Ended(iteration) => {
                assert_eq!(iteration, self.ended[id].replace(iteration) + 1);
                if self.ended.iter().all(|ended| ended.get() == self.board.approved()) {
                    self.look();
                }
            }
            Progress::Stopped => assert_eq!(self.ended[id].get(), ITERATIONS),
        }
        assert!(self.idle.get() < 1000, "a deadlock");
    }

    fn look(&self) {
        assert!(self.running.iter().all(|uses| uses.borrow().is_empty()), "no task runs at a look");
        if self.board.approved() == ITERATIONS {
            self.board.stop();
        } else {
            self.approve();
        }
    }

    fn approve(&self) {
        self.board.approve(self.plan.next_look(self.board.approved()).min(ITERATIONS));
    }

    /// Runs all iterations, and checks what was run.
    pub fn run(&self) {
        self.approve();
        while !self.board.stopped() {
            self.step();
        }
        check_order(self);
        check_blocks(self);
    }

    /// Tells whether a worker has run everything before a step (by count) or up to a clock.
    fn has_run(&self, worker: usize, before: impl Fn(&Due) -> bool) -> bool {
        self.due[worker].partition_point(before) <= self.ran[worker].borrow().len()
    }
}

impl World {
    /// Tells whether a worker has run all of the steps before one that add to deltas that are to be used.
    fn has_run_additions(&self, worker: usize, step: usize, uses: &[Use]) -> bool {
        let adds = |due: &Due| {
            let of_due = self::uses(&self.plan, worker, due.at, &due.task);
            due.step < step && of_due.iter().any(|a| !a.deltas.is_empty() && uses.iter().any(|b| a.conflicts(b)))
        };
        let last = self.due[worker].iter().filter(|due| adds(due)).map(|due| due.step).max();
        last.is_none_or(|last| self.has_run(worker, |due| due.step <= last))
    }

    /// Tells whether a worker has run anything of a later iteration that adds to deltas that are to be used.
    fn has_run_next_addition(&self, worker: usize, current: &Due, uses: &[Use]) -> bool {
        self.ran[worker].borrow().iter().filter(|(at, _)| at.iteration > current.at.iteration).any(|(at, task)| {
            let added = self::uses(&self.plan, worker, *at, task);
            added.iter().any(|a| !a.deltas.is_empty() && uses.iter().any(|b| a.conflicts(b)))
        })
    }
}

struct OfWorker<'w> {
    id: usize,
    world: &'w World,
}

impl Tasks for OfWorker<'_> {
    fn begin_clock(&mut self, clock: u64, slowest: u64) {
        let (world, slack) = (self.world, self.world.plan.slack);
        assert!(slowest < clock);
        let promised = slack.map_or(0, |slack| (clock - 1).saturating_sub(slack)).max(slowest);
        assert!(slack.is_none() || slowest == promised, "clock {clock} begins at {slowest}, slack {slack:?}");
        for worker in 0..world.plan.workers {
            assert!(world.has_run(worker, |due| due.at.clock <= promised), "clock {promised} has ended on all workers");
        }
    }

    fn run(&mut self, at: Position, task: &Task) -> Outcome {
        let (world, id) = (self.world, self.id);
        let uses = uses(&world.plan, id, at, task);
        let refused =
            world.running.iter().any(|others| others.borrow().iter().any(|a| uses.iter().any(|b| a.conflicts(b))));
        let in_order = world.plan.slack == Some(0);
        assert!(!(in_order && refused), "worker {id} overlaps another at {at:?}: {task:?}");
        if refused || !in_order && world.below(4) == 0 {
            return Outcome::Refused;
        }
        let current = &world.due[id][world.ran[id].borrow().len()];
        let kind = world.plan.stages[at.stage].kind;
        // What an Incident changes, others' shards have as well.
        let waits = matches!(kind, StageKind::Incident(_));
        let in_parts = |side: Side| world.plan.parts[side as usize].is_some();
        let applies_sums =
            matches!(kind, StageKind::Apply(side) if world.plan.copies[side as usize] > 1 && !in_parts(side));
        // Sums of the workers alone are handed in whenever a worker has them; the last to do so makes the context.
        let hands_in = kind == StageKind::GlobalSync(None);
        if in_order && !hands_in || waits {
            let before = |worker| world.has_run(worker, |due| due.step < current.step);
            assert!((0..world.plan.workers).all(before), "all workers ended what comes before {at:?}");
        }
        if applies_sums {
            let whole = |worker| world.has_run_additions(worker, current.step, &uses);
            assert!((0..world.plan.workers).all(whole), "all workers ended what adds to the sums of {at:?}");
        }
        if matches!(kind, StageKind::Apply(side) if !in_parts(side)) {
            let next = |worker| world.has_run_next_addition(worker, current, &uses);
            assert!(!(0..world.plan.workers).any(next), "no worker added to the sums of the iteration after {at:?}");
        }
        world.running[id].replace(uses);
        (0..world.below(8)).for_each(|_| world.step());
        world.running[id].take();
        world.ran[id].borrow_mut().push((at, task.clone()));
        Outcome::Ran
    }
}

/// Each worker ran the tasks of each step, in the order of steps, and with slack 0 in the order of the plan.
fn check_order(world: &World) {
    for (due, ran) in world.due.iter().zip(&world.ran) {
        let ran = ran.borrow();
        assert_eq!(due.len(), ran.len());
        let mut rest = &ran[..];
        for step in due.chunk_by(|a, b| a.step == b.step) {
            let (now, later) = rest.split_at(step.len());
            rest = later;
            if world.plan.slack == Some(0) {
                assert!(step.iter().zip(now).all(|(due, (at, task))| (due.at, &due.task) == (*at, task)));
            }
            if matches!(world.plan.stages[step[0].at.stage].kind, StageKind::GlobalSync(..)) {
                assert_eq!(now[now.len() - 1].1, step[step.len() - 1].task, "sums are handed in when all are gathered");
            }
            let mut now = now.to_vec();
            for due in step {
                let found = now.iter().position(|(at, task)| (due.at, &due.task) == (*at, task));
                now.swap_remove(found.expect("a due task was run"));
            }
        }
    }
}

/// Each block of each Exchange, and each shard of each Apply, was run once in each iteration.
fn check_blocks(world: &World) {
    let plan = &world.plan;
    let (lefts, rights) = (plan.left.num_shards(), plan.right.num_shards());
    let mut counts = vec![vec![0; lefts * rights * plan.layers]; plan.stages.len()];
    for (id, ran) in world.ran.iter().enumerate() {
        for (at, task) in &*ran.borrow() {
            for left in task.left.clone().filter(|&left| task.turn.is_none() || plan.left.owners[left] == id) {
                for right in task.right.clone() {
                    for layer in task.layers.clone() {
                        counts[at.stage][(layer * lefts + left) * rights + right] += 1;
                    }
                }
            }
        }
    }
    for (stage, counts) in plan.stages.iter().zip(counts) {
        if matches!(stage.kind, StageKind::Exchange(..)) {
            assert!(counts.iter().all(|&count| count == ITERATIONS), "{counts:?}");
        }
    }
}
