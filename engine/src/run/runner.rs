//! Runs the tasks of one worker on the grid.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use megagrid_partition::{ShardId, SplitMix, WorkerId};
use megagrid_stages::{Context, Program};

use super::arrivals::Arrivals;
use super::board::Board;
use super::coordinator::{Notice, text};
use super::injection::Injection;
use super::report::WorkerReport;
use super::state::Run;
use super::time::Time;
use super::timeline::Timeline;
use super::transport::Transport;
use super::worker::{Outcome, Position, Progress, Tasks, Worker};
use crate::Error;
use crate::grid::hold;
use crate::plan::{StageKind, Task};
use crate::stages::{Site, hand_over};

pub struct Runner<P: Program> {
    id: usize,
    pub run: Arc<Run<P>>,
    board: Arc<Board>,
    /// Clocks of an iteration.
    clocks: u64,
    context: P::Worker,
    pub arrivals: Rc<Arrivals<P>>,
    time: Box<dyn Time>,
    begin: Instant,
    /// What an injection takes of the time to come.
    pause: Duration,
    report: Option<WorkerReport>,
    timeline: Timeline,
    pub coordinator: Sender<Notice>,
}

impl<P: Program> Runner<P> {
    pub fn new(
        id: usize,
        run: &Arc<Run<P>>,
        board: &Arc<Board>,
        coordinator: Sender<Notice>,
        time: Box<dyn Time>,
    ) -> Self {
        let arrivals = Arrivals::new(id, run, board, coordinator.clone());
        Self {
            id,
            run: Arc::clone(run),
            board: Arc::clone(board),
            clocks: run.plan.clocks().max(1),
            context: P::Worker::default(),
            arrivals: Rc::new(arrivals),
            begin: time.now(),
            time,
            pause: Duration::ZERO,
            report: None,
            timeline: Timeline::new(run.plan.processes.this, id),
            coordinator,
        }
    }

    fn report_now(&mut self) -> &mut WorkerReport {
        let now = self.time.now();
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

    /// As [`Runner::waited`], with the time itself.
    pub fn waited_from(&mut self, since: Instant, until: Instant) {
        self.waited(until - since);
        self.timeline.wait(since, until);
    }

    pub fn end_step(&mut self) {
        if self.timeline.is_on() {
            let stages = &self.run.plan.stages;
            self.timeline.end_step(|stage| &stages[stage].name, self.time.now());
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
        let now = self.time.now();
        let report = self.report_now();
        report.span.1 = now;
        let span = report.span;
        self.timeline.end_iteration(span);
    }

    /// Hands the report of an iteration that has ended to the coordinator.
    pub fn report(&mut self) {
        if let Some(report) = self.report.take() {
            // The coordinator is gone only when the run is over.
            let _ = self.coordinator.send(Notice::Ended(report));
        }
    }

    /// Sends what a task put out, tells how far the worker is, and looks how far all are.
    pub fn pass_messages(&self, worker: &Worker, transport: &mut impl Transport, progress: Progress) {
        let in_step = progress == Progress::Ran && worker.steps() == transport.steps();
        if !in_step || self.arrivals.outbox.is_due() {
            transport.send(&self.arrivals.outbox);
            if let Some(sync) = &self.run.sync {
                self.arrivals.outbox.count(sync);
            }
        }
        transport.advance(worker.steps());
        if progress == Progress::Waiting || worker.is_at_barrier() || self.run.plan.slack != Some(0) {
            transport.announce();
        }
        if in_step {
            transport.step();
        }
        self.arrivals.take_in();
        self.board.arrive(transport.arrived());
        if let Some(replicas) = &self.run.replicas {
            self.board.freshen(replicas.age(), replicas.included());
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

impl<P: Program> Tasks for Runner<P> {
    fn begin_clock(&mut self, clock: u64, slowest: u64) {
        let staleness = slowest as i64 - clock as i64;
        *self.report_now().staleness.entry(staleness).or_insert(0) += 1;
        self.time.begin_clock(clock);
        self.timeline.begin_clock(clock, self.time.now());
        if let Some(injection) = self.run.inject {
            self.stop_for(injection.before_clock(self.id, self.run.plan.workers, clock));
        }
    }

    fn run(&mut self, at: Position, task: &Task) -> Outcome {
        let begin = self.time.now();
        let state = Arc::clone(&self.run);
        let Run { plan, grid, globals, stages, dims, sync, replicas, .. } = &*state;
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
        let seed = SplitMix::seed_of_clock(state.seed, self.id, clock, at.iteration);
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
                self.fail(at, &*panic);
                return Outcome::Refused;
            }
        };
        let Some(updates) = ran else { return Outcome::Refused };
        if let Some(to) = task.hand_over[usize::from(at.back)] {
            let shard = task.right.start;
            hand_over(&site, ShardId(shard), WorkerId(to), self.board.visits(shard) + 1);
        }
        if let Some(stage) = task.publish {
            let publish = || hold(|| stages[stage].run(&site, task, &mut cx));
            self.time.time(stage, publish, |_| Some(rows()));
        }
        let end = self.time.now();
        let took = end - begin;
        self.timeline.task(at, &plan.stages[at.stage].name, (begin, end));
        // A clock may go on from the iteration before (stages after the last batch), so no clock begins with this one.
        let report = self.report_since(begin);
        if exchange {
            report.compute += took;
            report.updates += updates;
        } else {
            report.sync += took;
        }
        let more = if exchange { self.time.rest_of_clock() } else { Duration::ZERO };
        let lost = |injection: Injection| injection.during(state.seed, self.id, begin - self.begin, took + more);
        self.stop_for(more + state.inject.map_or(Duration::ZERO, lost));
        Outcome::Ran
    }
}
