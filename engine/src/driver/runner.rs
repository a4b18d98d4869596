//! Runs the tasks of one worker on the grid, and takes in what other processes send to it.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use megagrid_partition::SplitMix;
use megagrid_stages::{Context, Program};

use super::{Message, text};
use crate::Error;
use crate::board::Board;
use crate::engine::Shared;
use crate::metrics::WorkerReport;
use crate::plan::{StageKind, Task};
use crate::stage::Site;
use crate::stopwatch::Stopwatch;
use crate::sync::{self, Outbox, hand_over};
use crate::worker::{Outcome, Position, Tasks};

/// Takes in what other processes send to a worker.
pub struct Arrivals<P: Program> {
    shared: Arc<Shared<P>>,
    board: Arc<Board>,
    /// The worker's number in its process.
    seat: usize,
    /// What it answers, and what the worker sends.
    pub outbox: Outbox,
    /// Rows that came before this process ended what still reads the old ones, with the steps that their senders had ended.
    early: RefCell<Vec<(u64, sync::Message)>>,
    messages: Sender<Message>,
}

impl<P: Program> Arrivals<P> {
    /// Takes a message in, or keeps it until its time has come.
    pub fn receive(&self, step: u64, message: sync::Message) {
        if message.waits() {
            self.early.borrow_mut().push((step, message));
            self.keep_early();
        } else {
            self.take(&message);
        }
    }

    fn take(&self, message: &sync::Message) {
        if let Err(error) = sync::receive(&self.shared, &self.board, &self.outbox, message) {
            let _ = self.messages.send(Message::Failed(error));
            self.board.stop();
        }
    }

    /// Says on the board which rows are still to be taken in.
    fn keep_early(&self) {
        let first = self.early.borrow().iter().map(|(step, _)| *step).min();
        self.board.keep_early(self.seat, first.unwrap_or(u64::MAX));
    }

    /// Takes in rows that came early, once the workers of this process have ended what their sender had.
    pub fn take_in(&self) {
        let due = |(step, _): &mut (u64, _)| self.board.all_ended_steps(*step);
        let due: Vec<_> = self.early.borrow_mut().extract_if(.., due).collect();
        due.iter().for_each(|(_, message)| self.take(message));
        if !due.is_empty() {
            self.keep_early();
        }
    }
}

/// Runs the tasks of one worker on the grid.
pub struct Runner<P: Program> {
    id: usize,
    pub shared: Arc<Shared<P>>,
    board: Arc<Board>,
    /// Clocks of an iteration.
    clocks: u64,
    context: P::Worker,
    pub arrivals: Rc<Arrivals<P>>,
    stopwatch: Stopwatch,
    /// When the run began.
    begin: Instant,
    /// What an injection takes of the time to come.
    pause: Duration,
    report: Option<WorkerReport>,
    pub messages: Sender<Message>,
}

impl<P: Program> Runner<P> {
    pub fn new(
        id: usize,
        shared: &Arc<Shared<P>>,
        board: &Arc<Board>,
        messages: Sender<Message>,
        stopwatch: Stopwatch,
    ) -> Self {
        let arrivals = Arrivals {
            shared: Arc::clone(shared),
            board: Arc::clone(board),
            seat: id % shared.plan.threads(),
            outbox: Outbox::new(!shared.plan.early),
            early: RefCell::default(),
            messages: messages.clone(),
        };
        Self {
            id,
            shared: Arc::clone(shared),
            board: Arc::clone(board),
            clocks: shared.plan.clocks().max(1),
            context: P::Worker::default(),
            arrivals: Rc::new(arrivals),
            begin: stopwatch.now(),
            stopwatch,
            pause: Duration::ZERO,
            report: None,
            messages,
        }
    }

    fn report_now(&mut self) -> &mut WorkerReport {
        let now = self.stopwatch.now();
        self.report_since(now)
    }

    /// Returns the iteration's report, which begins at `begin` if this is the first that is heard of it.
    fn report_since(&mut self, begin: Instant) -> &mut WorkerReport {
        self.report.get_or_insert_with(|| WorkerReport::begin(begin))
    }

    /// Counts time without work, but not the coordinator's time between iterations.
    pub fn waited(&mut self, time: Duration) {
        if let Some(report) = &mut self.report {
            report.wait += time;
        }
    }

    /// Stops the worker's work for a while.
    fn stop_for(&mut self, time: Duration) {
        self.pause += time;
        self.report_now().compute += time;
    }

    pub fn take_pause(&mut self) -> Duration {
        std::mem::take(&mut self.pause)
    }

    pub fn end_iteration(&mut self) {
        let now = self.stopwatch.now();
        self.report_now().span.1 = now;
    }

    /// Hands the report of an iteration that has ended to the coordinator.
    pub fn report(&mut self) {
        if let Some(report) = self.report.take() {
            // The coordinator is gone only when the run is over.
            let _ = self.messages.send(Message::Ended(report));
        }
    }

    fn fail(&mut self, at: Position, panic: &(dyn Any + Send)) {
        let error = Error::WorkerPanicked {
            worker: self.id,
            clock: at.clock,
            stage: self.shared.plan.stages[at.stage].name.clone(),
            message: text(panic).to_owned(),
        };
        let _ = self.messages.send(Message::Failed(error));
        self.board.stop();
    }
}

impl<P: Program> Tasks for Runner<P> {
    fn begin_clock(&mut self, clock: u64, slowest: u64) {
        let staleness = slowest as i64 - clock as i64;
        *self.report_now().staleness.entry(staleness).or_insert(0) += 1;
        self.stopwatch.begin_clock(clock);
        if let Some(injection) = self.shared.inject {
            self.stop_for(injection.before_clock(self.id, self.shared.plan.workers, clock));
        }
    }

    fn run(&mut self, at: Position, task: &Task) -> Outcome {
        let begin = self.stopwatch.now();
        let shared = Arc::clone(&self.shared);
        let Shared { plan, grid, globals, stages, dims, sync, replicas, .. } = &*shared;
        let arrivals = Rc::clone(&self.arrivals);
        let site = Site {
            plan,
            grid,
            globals,
            worker: self.id,
            clock: at.clock,
            stage: at.stage,
            dims: *dims,
            sync: sync.as_ref(),
            replicas: replicas.as_ref(),
            outbox: &arrivals.outbox,
        };
        let global = globals.current();
        let context = &mut self.context;
        let clock = (at.clock - 1) % self.clocks;
        let seed = SplitMix::seed_of_clock(shared.seed, self.id, clock, at.iteration);
        let mut cx = Context { worker: context, global: &*global, iteration: at.iteration, seed };
        let exchange = matches!(plan.stages[at.stage].kind, StageKind::Exchange(..) | StageKind::Incident(_));
        let rows = || (plan.left.rows_of(&task.left) + plan.right.rows_of(&task.right)) as u64;
        let ran = self.stopwatch.time(
            at.stage,
            || catch_unwind(AssertUnwindSafe(|| stages[at.stage].run(&site, task, &mut cx))),
            |ran| ran.as_ref().ok()?.map(|edges| if exchange { edges } else { rows() }),
        );
        let ran = match ran {
            Ok(ran) => ran,
            Err(panic) => {
                self.fail(at, &*panic);
                return Outcome::Refused;
            }
        };
        let Some(updates) = ran else { return Outcome::Refused };
        if let Some(to) = task.hand_over[usize::from(at.back)] {
            let shard = task.right.start;
            hand_over(&site, shard, to, self.board.visits(shard) + 1);
        }
        if let Some(stage) = task.publish {
            let publish = || crate::stage::hold(|| stages[stage].run(&site, task, &mut cx));
            self.stopwatch.time(stage, publish, |_| Some(rows()));
        }
        let took = self.stopwatch.now() - begin;
        // A clock may go on from the iteration before (stages after the last batch), so no clock begins with this one.
        let report = self.report_since(begin);
        if exchange {
            report.compute += took;
            report.updates += updates;
        } else {
            report.sync += took;
        }
        let more = if exchange { self.stopwatch.rest_of_clock() } else { Duration::ZERO };
        let lost =
            |injection: crate::Injection| injection.during(shared.seed, self.id, begin - self.begin, took + more);
        self.stop_for(more + shared.inject.map_or(Duration::ZERO, lost));
        Outcome::Ran
    }
}
