//! The driver in earnest: each worker state machine on a timely worker thread, and a coordinator that approves iterations.

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use megagrid_partition::SplitMix;
use megagrid_stages::{Context, Program};

use crate::board::Board;
use crate::engine::Shared;
use crate::metrics::{IterationReport, WorkerReport};
use crate::plan::{StageKind, Task};
use crate::stage::Site;
use crate::worker::{Outcome, Position, Progress, Tasks, Worker};
use crate::{Error, os};

/// What a worker tells the coordinator.
enum Message {
    Ended(WorkerReport),
    Failed(Error),
}

/// Runs iterations `done + 1..=last`, and shows each report between iterations, when no worker runs.
pub(crate) fn run<P: Program>(
    shared: &Arc<Shared<P>>,
    done: u64,
    last: u64,
    mut between: impl FnMut(&IterationReport) -> ControlFlow<()>,
) -> Result<u64, Error> {
    if done >= last {
        return Ok(done);
    }
    let workers = shared.plan.workers;
    let board = Arc::new(Board::new(workers, shared.plan.right.num_shards()));
    let (sender, messages) = channel();
    let sender = Mutex::new(sender);
    let (of_workers, of_board) = (Arc::clone(shared), Arc::clone(&board));
    let config = if workers == 1 { timely::Config::thread() } else { timely::Config::process(workers) };
    board.approve(done + 1);
    let guards = timely::execute(config, move |timely| {
        let sender = sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let id = timely.index();
        os::pin_current_thread(of_workers.plan.homes[id].1);
        let worker = Worker::new(id, Arc::clone(&of_workers.plan), Arc::clone(&of_board), of_workers.seed, done);
        drive(worker, Runner::new(id, &of_workers, &of_board, sender), || {
            timely.step();
        });
    })
    .map_err(Error::Start)?;
    let result = coordinate(&board, &messages, workers, done, last, &mut between);
    board.stop();
    drop(guards);
    result
}

fn coordinate(
    board: &Board,
    messages: &Receiver<Message>,
    workers: usize,
    done: u64,
    last: u64,
    between: &mut impl FnMut(&IterationReport) -> ControlFlow<()>,
) -> Result<u64, Error> {
    for iteration in done + 1..=last {
        let mut parts = Vec::with_capacity(workers);
        while parts.len() < workers {
            match messages.recv() {
                Ok(Message::Ended(part)) => parts.push(part),
                Ok(Message::Failed(error)) => return Err(error),
                Err(_) => return Err(Error::Start("all workers ended without a word".to_owned())),
            }
        }
        if between(&IterationReport::join(iteration, &parts)).is_break() {
            return Ok(iteration);
        }
        if iteration < last {
            board.approve(iteration + 1);
        }
    }
    Ok(last)
}

/// How long a worker that waits spins before it lets others run, and before it sleeps a little.
const SPIN: Duration = Duration::from_micros(50);
const YIELD: Duration = Duration::from_millis(1);
const SLEEP: Duration = Duration::from_micros(100);

/// Steps a worker until it stops. `step_timely` keeps the masters of this thread served between tasks.
fn drive<P: Program>(mut worker: Worker, mut runner: Runner<'_, P>, mut step_timely: impl FnMut()) {
    let mut waiting: Option<Instant> = None;
    loop {
        match worker.step(&mut runner) {
            Progress::Stopped => return,
            Progress::Waiting => {
                let since = *waiting.get_or_insert_with(Instant::now);
                let waited = since.elapsed();
                if waited < SPIN {
                    std::hint::spin_loop();
                } else if waited < YIELD {
                    step_timely();
                    std::thread::yield_now();
                } else {
                    step_timely();
                    std::thread::sleep(SLEEP);
                }
            }
            progress => {
                if let Some(since) = waiting.take() {
                    runner.waited(since.elapsed());
                }
                if let Progress::Ended(_) = progress {
                    runner.end_iteration();
                    step_timely();
                }
            }
        }
    }
}

/// Runs the tasks of one worker on the grid.
struct Runner<'r, P: Program> {
    id: usize,
    shared: &'r Shared<P>,
    board: &'r Board,
    /// Clocks of an iteration.
    clocks: u64,
    context: P::Worker,
    report: Option<WorkerReport>,
    messages: Sender<Message>,
}

impl<'r, P: Program> Runner<'r, P> {
    fn new(id: usize, shared: &'r Shared<P>, board: &'r Board, messages: Sender<Message>) -> Self {
        let clocks = shared.plan.clocks().max(1);
        Self { id, shared, board, clocks, context: P::Worker::default(), report: None, messages }
    }

    fn report(&mut self) -> &mut WorkerReport {
        self.report.get_or_insert_with(WorkerReport::begin)
    }

    /// Counts time without work, but not the coordinator's time between iterations.
    fn waited(&mut self, time: Duration) {
        if let Some(report) = &mut self.report {
            report.wait += time;
        }
    }

    fn end_iteration(&mut self) {
        let mut report = self.report.take().unwrap_or_else(WorkerReport::begin);
        report.span.1 = Instant::now();
        // The coordinator is gone only when the run is over.
        let _ = self.messages.send(Message::Ended(report));
    }

    fn fail(&mut self, at: Position, panic: &(dyn Any + Send)) {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        let error = Error::WorkerPanicked {
            worker: self.id,
            clock: at.clock,
            stage: self.shared.plan.stages[at.stage].name.clone(),
            message: text.unwrap_or("no message").to_owned(),
        };
        let _ = self.messages.send(Message::Failed(error));
        self.board.stop();
    }
}

impl<P: Program> Tasks for Runner<'_, P> {
    fn begin_clock(&mut self, clock: u64, slowest: u64) {
        let staleness = slowest as i64 - clock as i64;
        *self.report().staleness.entry(staleness).or_insert(0) += 1;
    }

    fn run(&mut self, at: Position, task: &Task) -> Outcome {
        let begin = Instant::now();
        let Shared { plan, grid, globals, stages, .. } = self.shared;
        let site = Site { plan, grid, globals, worker: self.id, clock: at.clock, stage: at.stage };
        let global = globals.current();
        let context = &mut self.context;
        let clock = (at.clock - 1) % self.clocks;
        let stream = (clock << 12 | self.id as u64) ^ at.iteration.rotate_right(16);
        let seed = SplitMix::new(self.shared.seed, stream).bits();
        let mut cx = Context { worker: context, global: &*global, iteration: at.iteration, seed };
        let ran = match catch_unwind(AssertUnwindSafe(|| stages[at.stage].run(&site, task, &mut cx))) {
            Ok(ran) => ran,
            Err(panic) => {
                self.fail(at, &*panic);
                return Outcome::Refused;
            }
        };
        let Some(updates) = ran else { return Outcome::Refused };
        let exchange = matches!(plan.stages[at.stage].kind, StageKind::Exchange(..));
        let report = self.report();
        if exchange {
            report.compute += begin.elapsed();
            report.updates += updates;
        } else {
            report.sync += begin.elapsed();
        }
        Outcome::Ran
    }
}
