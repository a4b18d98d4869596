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
use crate::sync::{Malformed, Message, Outbox};

/// What a worker has beside its state machine. Any thread may run its tasks: see [`Runner::on`].
pub struct Runner<P: Program> {
    id: usize,
    pub run: Arc<Run<P>>,
    pub board: Arc<Board>,
    /// Clocks of an iteration, and the first one of the run.
    clocks: u64,
    first: u64,
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
    /// Begins after `done` iterations.
    pub fn new(
        id: usize,
        run: &Arc<Run<P>>,
        (board, done): (&Arc<Board>, u64),
        coordinator: Sender<Notice>,
        begin: Instant,
    ) -> Self {
        Self {
            id,
            run: Arc::clone(run),
            board: Arc::clone(board),
            clocks: run.plan.clocks().max(1),
            first: done + 1,
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

    /// Does something of a stage, which takes what tasks of `cost` take; `None`: it panicked, and the run ends.
    fn work<R>(
        &mut self,
        (at, cost): (Position, usize),
        work: impl FnOnce(&Site<'_, P>, &mut Context<'_, P>) -> R,
        units: impl FnOnce(&R) -> Option<u64>,
    ) -> Option<R> {
        let state = Arc::clone(&self.runner.run);
        let Run { plan, grid, globals, dims, sync, replicas, served, .. } = &*state;
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
            served: served.as_ref(),
            outbox: self.outbox,
        };
        let global = globals.current();
        let clock = (at.clock - 1) % self.runner.clocks;
        let seed = SplitMix::seed_of_clock(state.seed, self.runner.id, clock, at.iteration);
        let context = &mut self.runner.context;
        let mut cx = Context { worker: context, global: &*global, iteration: at.iteration, seed };
        let done = self.time.time(
            cost,
            || catch_unwind(AssertUnwindSafe(|| work(&site, &mut cx))),
            |done| done.as_ref().ok().and_then(units),
        );
        done.map_err(|panic| self.runner.fail(at, &*panic)).ok()
    }

    /// Applies deltas that another process sent, as its worker context and iteration have it; `None`: a hold was refused.
    pub fn serve(&mut self, message: &Message) -> Option<Result<(), Malformed>> {
        let state = Arc::clone(&self.runner.run);
        let apply = StageKind::Apply(message.side);
        let Some(stage) = state.plan.stages.iter().position(|stage| stage.kind == apply) else {
            return Some(Err(Malformed));
        };
        let clock = message.number.max(1);
        let iteration = self.runner.first + (clock - 1) / self.runner.clocks;
        let at = Position { iteration, clock, stage, back: false };
        let serve = |site: &Site<'_, P>, cx: &mut Context<'_, P>| state.stages[stage].serve(site, message, cx);
        // A panic has ended the run.
        let served = self.work((at, stage), serve, |rows| *rows.as_ref().ok()?).unwrap_or(Ok(Some(0)));
        served.map(|rows| rows.map(drop)).transpose()
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
        let plan = &state.plan;
        let exchange = matches!(plan.stages[at.stage].kind, StageKind::Exchange(..) | StageKind::Incident(_));
        let rows = || (plan.left.rows_of(&task.left) + plan.right.rows_of(&task.right)) as u64;
        let ran = self.work(
            (at, at.stage),
            |site, cx| state.stages[at.stage].run(site, task, cx),
            |ran| ran.map(|edges| if exchange { edges } else { rows() }),
        );
        let Some(updates) = ran.flatten() else { return Outcome::Refused };
        if let Some(to) = task.hand_over[usize::from(at.back)] {
            let shard = task.right.start;
            let visits = self.runner.board.visits(shard) + 1;
            self.work((at, at.stage), |site, _| hand_over(site, ShardId(shard), WorkerId(to), visits), |()| None);
        }
        if let Some(stage) = task.publish {
            self.work((at, stage), |site, cx| hold(|| state.stages[stage].run(site, task, cx)), |_| Some(rows()));
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
