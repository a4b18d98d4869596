//! Runs the tasks of one worker on the grid.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use megagrid_partition::{ShardId, SplitMix, WorkerId};
use megagrid_stages::{Context, Program};

use super::board::Board;
use super::coordinator::{Notice, text};
use super::injection::Injection;
use super::report::WorkerReport;
use super::state::Run;
use super::time::Time;
use super::timeline::Timeline;
use super::worker::{Outcome, Position, Tasks};
use crate::Error;
use crate::grid::hold;
use crate::plan::{StageKind, Task, Traffic};
use crate::stages::{Site, hand_over};
use crate::sync::Outbox;

/// What a worker has beside its state machine. Any thread may run its tasks: see [`Runner::on`].
pub struct Runner<P: Program> {
    id: usize,
    pub run: Arc<Run<P>>,
    pub board: Arc<Board>,
    /// Clocks of an iteration.
    clocks: u64,
    context: P::Worker,
    begin: Instant,
    /// What an injection takes of the time to come.
    pause: Duration,
    report: Option<WorkerReport>,
    /// Reports of iterations that have ended, for the coordinator.
    ended: Vec<WorkerReport>,
    timeline: Timeline,
    pub coordinator: Sender<Notice>,
}

impl<P: Program> Runner<P> {
    pub fn new(id: usize, run: &Arc<Run<P>>, board: &Arc<Board>, coordinator: Sender<Notice>, begin: Instant) -> Self {
        Self {
            id,
            run: Arc::clone(run),
            board: Arc::clone(board),
            clocks: run.plan.clocks().max(1),
            context: P::Worker::default(),
            begin,
            pause: Duration::ZERO,
            report: None,
            ended: Vec::new(),
            timeline: Timeline::new(run.plan.processes.this, id),
            coordinator,
        }
    }

    /// Lends the runner to a thread, which has the time and a place for what is sent.
    pub fn on<'r>(&'r mut self, time: &'r mut dyn Time, outbox: &'r Outbox) -> AtWork<'r, P> {
        AtWork { runner: self, time, outbox }
    }

    /// Returns the iteration's report, which begins at `begin` if this is the first that is heard of it.
    fn report_since(&mut self, begin: Instant) -> &mut WorkerReport {
        self.report.get_or_insert_with(|| WorkerReport::begin(begin))
    }

    /// Counts time without work, but not the coordinator's time at a look.
    pub fn waited(&mut self, time: Duration) {
        if let Some(report) = &mut self.report {
            report.wait += time;
        }
    }

    /// As [`Runner::waited`], with the time itself.
    pub fn waited_from(&mut self, since: Instant, until: Instant) {
        self.waited(until - since);
        self.timeline.wait(since, until);
    }

    pub fn end_step(&mut self, time: &dyn Time) {
        if self.timeline.is_on() {
            let stages = &self.run.plan.stages;
            self.timeline.end_step(|stage| &stages[stage].name, time.now());
        }
    }

    pub fn take_pause(&mut self) -> Duration {
        std::mem::take(&mut self.pause)
    }

    /// Tells whether an injection's time is taken by other work, rather than slept through.
    pub fn takes_cycles(&self) -> bool {
        self.run.inject.is_some_and(|injection| injection.takes_cycles())
    }

    /// An iteration has ended in which the worker put these messages out. Where no look comes first, the next begins.
    pub fn end_iteration(&mut self, iteration: u64, sent: Traffic, time: &dyn Time) {
        let now = time.now();
        let next = (self.board.approved() > iteration).then(|| WorkerReport::begin(now));
        self.report_since(now);
        if let Some(mut report) = std::mem::replace(&mut self.report, next) {
            report.iteration = iteration;
            report.span.1 = now;
            report.sent = sent;
            self.timeline.end_iteration(report.span);
            self.ended.push(report);
        }
    }

    /// Hands the reports of iterations that have ended to the coordinator.
    pub fn report(&mut self) {
        for report in self.ended.drain(..) {
            // The coordinator is gone only when the run is over.
            let _ = self.coordinator.send(Notice::Ended(report));
        }
    }

    fn fail(&mut self, at: Position, panic: &(dyn Any + Send)) {
        let error = Error::WorkerPanicked {
            worker: self.id,
            clock: at.clock,
            stage: self.run.plan.stages[at.stage].name.clone(),
            message: text(panic).to_owned(),
        };
        let _ = self.coordinator.send(Notice::Failed(error));
        self.board.stop();
    }
}

/// A runner and what the thread has that runs its tasks.
pub struct AtWork<'r, P: Program> {
    runner: &'r mut Runner<P>,
    time: &'r mut dyn Time,
    outbox: &'r Outbox,
}

impl<P: Program> AtWork<'_, P> {
    /// Stops the worker's work for a while.
    fn stop_for(&mut self, time: Duration) {
        self.runner.pause += time;
        self.runner.report_since(self.time.now()).compute += time;
    }
}

impl<P: Program> Tasks for AtWork<'_, P> {
    fn begin_clock(&mut self, clock: u64, slowest: u64) {
        let staleness = slowest as i64 - clock as i64;
        *self.runner.report_since(self.time.now()).staleness.entry(staleness).or_insert(0) += 1;
        self.time.begin_clock(clock);
        self.runner.timeline.begin_clock(clock, self.time.now());
        if let Some(injection) = self.runner.run.inject {
            self.stop_for(injection.before_clock(self.runner.id, self.runner.run.plan.workers, clock));
        }
    }

    fn run(&mut self, at: Position, task: &Task) -> Outcome {
        let begin = self.time.now();
        let state = Arc::clone(&self.runner.run);
        let Run { plan, grid, globals, stages, dims, sync, replicas, .. } = &*state;
        let site = Site {
            plan,
            grid,
            globals,
            worker: self.runner.id,
            clock: at.clock,
            stage: at.stage,
            dims: *dims,
            sync: sync.as_ref(),
            replicas: replicas.as_ref(),
            outbox: self.outbox,
        };
        let global = globals.current();
        let clock = (at.clock - 1) % self.runner.clocks;
        let seed = SplitMix::seed_of_clock(state.seed, self.runner.id, clock, at.iteration);
        let context = &mut self.runner.context;
        let mut cx = Context { worker: context, global: &*global, iteration: at.iteration, seed };
        let exchange = matches!(plan.stages[at.stage].kind, StageKind::Exchange(..) | StageKind::Incident(_));
        let rows = || (plan.left.rows_of(&task.left) + plan.right.rows_of(&task.right)) as u64;
        let ran = self.time.time(
            at.stage,
            || catch_unwind(AssertUnwindSafe(|| stages[at.stage].run(&site, task, &mut cx))),
            |ran| ran.as_ref().ok()?.map(|edges| if exchange { edges } else { rows() }),
        );
        let ran = match ran {
            Ok(ran) => ran,
            Err(panic) => {
                self.runner.fail(at, &*panic);
                return Outcome::Refused;
            }
        };
        let Some(updates) = ran else { return Outcome::Refused };
        if let Some(to) = task.hand_over[usize::from(at.back)] {
            let shard = task.right.start;
            hand_over(&site, ShardId(shard), WorkerId(to), self.runner.board.visits(shard) + 1);
        }
        if let Some(stage) = task.publish {
            let publish = || hold(|| stages[stage].run(&site, task, &mut cx));
            self.time.time(stage, publish, |_| Some(rows()));
        }
        let end = self.time.now();
        let took = end - begin;
        self.runner.timeline.task(at, &plan.stages[at.stage].name, (begin, end));
        // A clock may go on from the iteration before (stages after the last batch), so no clock begins with this one.
        let report = self.runner.report_since(begin);
        if exchange {
            report.compute += took;
            report.updates += updates;
        } else {
            report.sync += took;
        }
        let more = if exchange { self.time.rest_of_clock() } else { Duration::ZERO };
        let lost =
            |injection: Injection| injection.during(state.seed, self.runner.id, begin - self.runner.begin, took + more);
        self.stop_for(more + state.inject.map_or(Duration::ZERO, lost));
        Outcome::Ran
    }
}
