//! Holds, board and worker state machine under every interleaving of two threads, and every value that a weak memory model
//! lets them read, with up to [`PREEMPTIONS`] preemptions (`LOOM_MAX_PREEMPTIONS` overrides).
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p megagrid-engine --test loom`
//!
//! Rows are loom cells: an access that no happens-before orders after a conflicting one fails the model, whether or not
//! the two overlap in the interleaving at hand.
#![cfg(loom)]
#![allow(unsafe_code, reason = "loom's cells are shared between threads to find out whether that is sound")]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use megagrid_engine::Topology;
use megagrid_engine::board::Board;
use megagrid_engine::grid::Hold;
use megagrid_engine::plan::{
    After, Cut, Input, Outline, Plan, Processes, Schedule, StageInfo, StageKind, Strategy, Task,
};
use megagrid_engine::worker::{Outcome, Position, Progress, Tasks, Worker};
use megagrid_partition::Side;
use megagrid_stages::BatchOrder;
use megagrid_stages::mode::Mode;

mod holds;
mod parts;

/// Finds every bug that was put into holds, board and worker on trial; 3 take ten times as long.
const PREEMPTIONS: usize = 2;
const WORKERS: usize = 2;

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.max_branches = 10_000;
    builder.check(check);
}

/// What holds, turns or steps are to protect.
struct Cell<T>(UnsafeCell<T>);

// SAFETY: loom runs one thread at a time and fails the model on an access that is not ordered after conflicting ones.
unsafe impl<T: Send> Sync for Cell<T> {}

impl<T> Cell<T> {
    fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    fn look<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        // SAFETY: loom checks the access.
        self.0.with(|value| look(unsafe { &*value }))
    }

    fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: loom checks the access.
        self.0.with_mut(|value| change(unsafe { &mut *value }))
    }
}

/// A piece of rows and its hold.
struct Piece<T> {
    hold: Hold,
    rows: Cell<T>,
}

impl<T> Piece<T> {
    fn new(rows: T) -> Self {
        Self { hold: Hold::default(), rows: Cell::new(rows) }
    }

    fn try_change(&self, change: impl FnOnce(&mut T)) -> bool {
        let owned = self.hold.try_own();
        if owned {
            self.rows.change(change);
            self.hold.end_own();
        }
        owned
    }

    fn try_look<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.hold.try_share().then(|| {
            let seen = self.rows.look(look);
            self.hold.end_share();
            seen
        })
    }
}

/// With slack an Apply may be given parts of sums.
fn stage(kind: StageKind) -> StageInfo {
    StageInfo { additive: true, ..StageInfo::new(format!("{kind:?}"), kind) }
}

/// Plans stages on a graph with these degrees.
fn plan(kinds: &[StageKind], body: &[Outline], degrees: [&[u64]; 2], slack: u64) -> Arc<Plan> {
    plan_of(kinds, body, degrees, slack, 1)
}

/// Plans them for the first of several processes.
fn plan_of(kinds: &[StageKind], body: &[Outline], degrees: [&[u64]; 2], slack: u64, count: usize) -> Arc<Plan> {
    let input = Input {
        degrees: [Box::new(|row| degrees[0][row]), Box::new(|row| degrees[1][row])],
        rows: degrees.map(<[_]>::len),
        edges: degrees[0].iter().sum(),
        row_bytes: [4, 4],
        edge_bytes: 0,
        square: false,
        workers: count * WORKERS,
        processes: Processes { this: 0, count },
        strategy: Strategy::BiCut,
        crossing_bytes: [[4, 4]; 2],
        slack: Some(slack),
        look_every: None,
        passes_per_clock: 1,
        topology: &Topology::synthetic(1, WORKERS),
        grid: true,
        early: true,
    };
    Arc::new(Plan::make(kinds.iter().copied().map(stage).collect(), body, &input).unwrap())
}

/// Drives a worker to the end of iteration `last`, and calls `between` after each.
fn drive(id: usize, plan: &Arc<Plan>, board: &Arc<Board>, tasks: &mut impl Tasks, last: u64, between: impl Fn(u64)) {
    let mut worker = Worker::new(id, Arc::clone(plan), Arc::clone(board), 1, 0);
    loop {
        match worker.step(tasks) {
            Progress::Ran => {}
            Progress::Waiting => thread::yield_now(),
            Progress::Ended(iteration) => {
                between(iteration);
                if iteration == last {
                    return;
                }
            }
            Progress::Stopped => unreachable!("nobody stops the run"),
        }
    }
}

/// Runs both workers; the first is the run's driver too and approves iterations.
fn run<T: Tasks>(
    plan: &Arc<Plan>,
    last: u64,
    tasks: impl Fn(usize) -> T + Send + Sync + 'static,
    between: impl Fn(u64),
) {
    let board = Arc::new(Board::new(WORKERS, plan.right.num_shards()));
    // Other processes have ended everything.
    board.arrive(u64::MAX);
    board.approve(1);
    let tasks = Arc::new(tasks);
    let (of_plan, of_board, of_tasks) = (Arc::clone(plan), Arc::clone(&board), Arc::clone(&tasks));
    let other = thread::spawn(move || drive(1, &of_plan, &of_board, &mut of_tasks(1), last, |_| {}));
    drive(0, plan, &board, &mut tasks(0), last, |iteration| {
        between(iteration);
        board.approve(iteration + 1);
    });
    other.join().unwrap();
}

/// A column of blocks: how often each was run, and who visited last.
#[derive(Default)]
struct Column {
    blocks: Vec<u64>,
    visits: usize,
}

/// Runs a rotation on cells only.
struct Rotation {
    id: usize,
    plan: Arc<Plan>,
    /// Shards of the left side and columns.
    rows: Arc<(Vec<Cell<u64>>, Vec<Piece<Column>>)>,
}

impl Rotation {
    fn visit(&self, task: &Task, column: &mut Column) {
        for left in task.left.clone().filter(|&left| self.plan.left.owners[left] == self.id) {
            self.rows.0[left].change(|row| *row += 1);
            column.blocks[left] += 1;
        }
        column.visits += 1;
    }
}

impl Tasks for Rotation {
    fn begin_clock(&mut self, _: u64, _: u64) {}

    fn run(&mut self, _: Position, task: &Task) -> Outcome {
        let column = &self.rows.1[task.right.start];
        if self.plan.slack == Some(0) {
            // Only the turns order the visits.
            column.rows.change(|column| {
                assert_eq!(column.visits % WORKERS, task.turn.unwrap(), "visits in the order of the plan");
                self.visit(task, column);
            });
            return Outcome::Ran;
        }
        if column.try_change(|column| self.visit(task, column)) { Outcome::Ran } else { Outcome::Refused }
    }
}

fn check_rotation(right: &'static [u64], slack: u64, last: u64) {
    let kinds = [StageKind::Exchange(Mode::Update, Mode::Update)];
    let plan = plan(&kinds, &[Outline::Stage(0)], [&[2, 2], right], slack);
    assert_eq!(plan.schedules, [Some(Schedule::Rotation)]);
    assert_eq!((plan.left.num_shards(), plan.right.num_shards()), (2, right.len()));
    model(move || {
        let columns = (0..right.len()).map(|_| Piece::new(Column { blocks: vec![0; 2], visits: 0 })).collect();
        let rows = Arc::new(((0..2).map(|_| Cell::new(0)).collect::<Vec<_>>(), columns));
        let check = |rows: &(Vec<Cell<u64>>, Vec<Piece<Column>>), iteration: u64| {
            for column in &rows.1 {
                column.rows.look(|column| assert_eq!(column.blocks, [iteration; 2], "each block once an iteration"));
            }
            let columns = rows.1.len() as u64;
            rows.0.iter().for_each(|row| row.look(|row| assert_eq!(*row, columns * iteration)));
        };
        let (of_plan, of_rows) = (Arc::clone(&plan), Arc::clone(&rows));
        let tasks = move |id| Rotation { id, plan: Arc::clone(&of_plan), rows: Arc::clone(&of_rows) };
        // With slack 0 an iteration that ended on one worker has ended on all: no worker runs in between.
        run(&plan, last, tasks, |iteration| {
            if slack == 0 {
                check(&rows, iteration);
            }
        });
        check(&rows, last);
    });
}

#[test]
fn a_rotation_visits_in_turn_alone() {
    check_rotation(&[2, 2], 0, 2);
}

#[test]
fn a_rotation_with_more_columns_than_workers() {
    check_rotation(&[2, 1, 1], 0, 1);
}

#[test]
fn a_rotation_with_one_column_takes_turns_by_number() {
    check_rotation(&[4], 0, 2);
}

#[test]
fn a_refused_worker_takes_another_task_and_the_run_ends() {
    check_rotation(&[2, 1, 1], 1, 1);
}

/// Adds to partial sums and applies them, on cells only.
struct Reduction {
    id: usize,
    rows: Arc<Sums>,
}

/// For each right shard: the sum that is read and applied, and each worker's part.
struct Sums(Vec<(Cell<u64>, [Cell<u64>; WORKERS])>);

impl Tasks for Reduction {
    fn begin_clock(&mut self, _: u64, _: u64) {}

    fn run(&mut self, at: Position, task: &Task) -> Outcome {
        for shard in task.right.clone() {
            let (sum, parts) = &self.rows.0[shard];
            if at.stage == 0 {
                assert_eq!(task.copies[1], self.id, "each worker adds to its own part");
                let seen = sum.look(|sum| *sum);
                assert_eq!(seen, 2 * (at.iteration - 1), "the last Apply is seen");
                parts[self.id].change(|part| *part += 1);
            } else {
                let total: u64 = parts.iter().map(|part| part.change(std::mem::take)).sum();
                sum.change(|sum| *sum += total);
            }
        }
        Outcome::Ran
    }
}

#[test]
fn an_apply_sees_what_all_workers_added_and_the_next_exchange_sees_the_apply() {
    let kinds = [StageKind::Exchange(Mode::Read, Mode::Add), StageKind::Apply(Side::Right)];
    // One heavy vertex: its edges are split among the workers.
    let plan = plan(&kinds, &[Outline::Stage(0), Outline::Stage(1)], [&[50, 50], &[99, 1]], 0);
    assert_eq!(plan.schedules[0], Some(Schedule::Owned { side: Side::Left, partial: true }));
    assert!(plan.steps[1].after == After::All);
    model(move || {
        let shards = plan.right.num_shards();
        let sums = (0..shards).map(|_| (Cell::new(0), [Cell::new(0), Cell::new(0)])).collect();
        let rows = Arc::new(Sums(sums));
        let of_rows = Arc::clone(&rows);
        run(
            &plan,
            2,
            move |id| Reduction { id, rows: Arc::clone(&of_rows) },
            |iteration| {
                rows.0.iter().for_each(|(sum, _)| sum.look(|sum| assert_eq!(*sum, 2 * iteration)));
            },
        );
    });
}

/// Each stage changes one side and reads the other, on cells only.
struct Sides(Arc<[Vec<Cell<u64>>; 2]>);

impl Tasks for Sides {
    fn begin_clock(&mut self, _: u64, _: u64) {}

    fn run(&mut self, at: Position, task: &Task) -> Outcome {
        let [left, right] = &*self.0;
        let (changed, read) = if at.stage == 0 {
            (&left[task.left.clone()], &right[task.right.clone()])
        } else {
            (&right[task.right.clone()], &left[task.left.clone()])
        };
        changed.iter().for_each(|row| row.change(|row| *row += 1));
        read.iter().for_each(|row| row.look(|row| assert_eq!(*row, at.iteration - 1 + at.stage as u64)));
        Outcome::Ran
    }
}

#[test]
fn with_slack_0_an_exchange_sees_what_all_workers_wrote_in_the_one_before() {
    let kinds = [StageKind::Exchange(Mode::Update, Mode::Read), StageKind::Exchange(Mode::Read, Mode::Update)];
    let plan = plan(&kinds, &[Outline::Stage(0), Outline::Stage(1)], [&[2, 2], &[2, 2]], 0);
    assert!(plan.steps[1].after == After::All);
    model(move || {
        let rows = |shards: usize| (0..shards).map(|_| Cell::new(0)).collect();
        let rows = Arc::new([rows(plan.left.num_shards()), rows(plan.right.num_shards())]);
        run(&plan, 2, move |_| Sides(Arc::clone(&rows)), |_| {});
    });
}

/// Leaves a mark for each clock, and looks at the marks that the consistency model promises.
struct Marks {
    id: usize,
    slack: u64,
    /// By worker and clock.
    marks: Arc<[Vec<Cell<bool>>; WORKERS]>,
}

impl Tasks for Marks {
    fn begin_clock(&mut self, clock: u64, slowest: u64) {
        assert!(slowest < clock && slowest + 1 + self.slack >= clock, "clock {clock} begins at {slowest}");
        for marks in &*self.marks {
            marks[..slowest as usize].iter().for_each(|mark| mark.look(|mark| assert!(mark, "an ended clock is seen")));
        }
    }

    fn run(&mut self, at: Position, _: &Task) -> Outcome {
        self.marks[self.id][at.clock as usize - 1].change(|mark| *mark = true);
        Outcome::Ran
    }
}

/// Runs iterations of `clocks` clocks. A worker may be told to go on after it has ended an iteration, or before.
fn check_slack(slack: u64, clocks: usize, iterations: u64) {
    let kinds = [StageKind::Exchange(Mode::Update, Mode::Read)];
    let batch = Outline::Vertices(Side::Left, Cut::Vertices(2), BatchOrder::Fixed, vec![Outline::Stage(0)]);
    let plan = plan(&kinds, &[batch], [&vec![1; 2 * clocks], &[2 * clocks as u64]], slack);
    assert_eq!((plan.clocks(), plan.flows), (clocks as u64, slack > 0));
    let all = clocks * iterations as usize;
    model(move || {
        let marks = || (0..all).map(|_| Cell::new(false)).collect();
        let marks = Arc::new([marks(), marks()]);
        run(&plan, iterations, move |id| Marks { id, slack, marks: Arc::clone(&marks) }, |_| {});
    });
}

#[test]
fn no_worker_is_more_clocks_ahead_than_the_slack() {
    check_slack(1, 3, 1);
}

#[test]
fn a_slack_of_0_keeps_clocks_together() {
    check_slack(0, 3, 1);
}

#[test]
fn over_iterations_no_worker_is_more_clocks_ahead_than_the_slack() {
    check_slack(1, 1, 3);
    check_slack(1, 2, 2);
}

#[test]
fn over_iterations_a_slack_of_0_keeps_clocks_together() {
    check_slack(0, 1, 3);
}

/// Of several processes, which are approved one iteration at a time: where a worker has ended one, all have.
#[test]
fn a_look_of_processes_comes_when_all_workers_have_ended_the_iteration() {
    let kinds = [StageKind::Exchange(Mode::Update, Mode::Read)];
    let plan = plan_of(&kinds, &[Outline::Stage(0)], [&[1; 4], &[4]], 1, 2);
    assert_eq!((plan.clocks(), plan.flows, plan.is_distributed()), (1, true, true));
    model(move || {
        let marks = || (0..2).map(|_| Cell::new(false)).collect();
        let marks = Arc::new([marks(), marks()]);
        let of_tasks = Arc::clone(&marks);
        let tasks = move |id| Marks { id, slack: 1, marks: Arc::clone(&of_tasks) };
        run(&plan, 2, tasks, |iteration| {
            for marks in &*marks {
                let ended = &marks[..iteration as usize];
                ended.iter().for_each(|mark| mark.look(|mark| assert!(mark, "iteration {iteration} has ended")));
            }
        });
    });
}
