//! What workers do and when, as events of `tracing`: one for each iteration, clock, step, task and wait, when it has ended.
//!
//! Events, since a span takes 0.7 us where an event takes 0.1 (docs/decisions/020-timelines.md). Where nobody listens, a
//! flag is tested. Fields of an event: `kind` (`iteration`, `clock`, `step`, `task`, `wait`), `name` (of the stage), `process`, `worker`,
//! `iteration`, `clock`, and `begin` and `took` in nanoseconds.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use super::worker::Position;

/// The target of the events; their level is `TRACE`.
pub const TIMELINE: &str = "megagrid::timeline";

static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the moment from which `begin` counts: that of the first call in this process.
#[must_use]
pub fn timeline_origin() -> Instant {
    *ORIGIN
}

/// What a worker has begun and not ended.
struct Open {
    begin: Instant,
    at: Position,
}

/// The timeline of one worker. Its parts lie within each other: tasks and waits in steps, steps in clocks, clocks in iterations.
pub struct Timeline {
    is_on: bool,
    process: usize,
    worker: usize,
    step: Option<Open>,
    clock: Option<Open>,
    /// When the last iteration ended. In modelled time the next may begin a message before that: it is shown from then on.
    ended: Instant,
}

impl Timeline {
    pub fn new(process: usize, worker: usize) -> Self {
        let is_on = tracing::enabled!(target: TIMELINE, tracing::Level::TRACE);
        Self { is_on, process, worker, step: None, clock: None, ended: *ORIGIN }
    }

    /// Tells whether anybody listens.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// A clock begins, and the one before it has ended.
    pub fn begin_clock(&mut self, clock: u64, now: Instant) {
        if self.is_on {
            let iteration = self.clock.as_ref().map_or(1, |clock| clock.at.iteration);
            self.end_clock(now);
            self.clock = Some(Open { begin: now, at: Position { iteration, clock, stage: 0, back: false } });
        }
    }

    pub fn task(&mut self, at: Position, name: &str, (begin, end): (Instant, Instant)) {
        if self.is_on {
            self.step.get_or_insert(Open { begin, at });
            // A clock that goes on from the iteration before begins again.
            let clock = self.clock.get_or_insert(Open { begin, at });
            clock.at = Position { clock: clock.at.clock, ..at };
            self.show("task", name, at, begin, end);
        }
    }

    /// The worker had nothing to do.
    pub fn wait(&mut self, begin: Instant, end: Instant) {
        if self.is_on
            && let Some(clock) = &self.clock
        {
            self.show("wait", "", clock.at, begin, end);
        }
    }

    /// The worker has ended the step that its last tasks were of, of a stage named by `name`.
    pub fn end_step<'n>(&mut self, name: impl FnOnce(usize) -> &'n str, now: Instant) {
        if let Some(step) = self.step.take() {
            self.show("step", name(step.at.stage), step.at, step.begin, now);
        }
    }

    fn end_clock(&mut self, now: Instant) {
        if let Some(clock) = self.clock.take() {
            self.show("clock", "", clock.at, clock.begin, now);
        }
    }

    pub fn end_iteration(&mut self, (begin, end): (Instant, Instant)) {
        if let Some(at) = self.clock.as_ref().map(|clock| clock.at) {
            self.end_clock(end);
            // Viewers add what is rounded: of two parts with one end the inner one might seem to end later.
            let end = end + Duration::from_nanos(1);
            self.show("iteration", "", at, begin, end);
            self.ended = end;
        }
    }

    fn show(&self, kind: &str, name: &str, at: Position, begin: Instant, end: Instant) {
        let nanoseconds = |time: Duration| time.as_nanos() as u64;
        let begin = begin.max(self.ended);
        tracing::trace!(
            target: TIMELINE,
            kind,
            name,
            process = self.process as u64,
            worker = self.worker as u64,
            iteration = at.iteration,
            clock = at.clock,
            begin = nanoseconds(begin.saturating_duration_since(*ORIGIN)),
            took = nanoseconds(end.saturating_duration_since(begin)),
        );
    }
}
