//! What a worker reads the time from: the clock on the wall, or one that passes as a model says.

use std::time::{Duration, Instant};

/// A worker's time.
pub trait Time {
    /// Returns the time. Virtual time is counted from an arbitrary moment.
    fn now(&self) -> Instant;

    fn begin_clock(&mut self, _clock: u64) {}

    /// Returns what a clock takes that has a cost of its own, once in each. Messages are served meanwhile: what stands for
    /// many tasks does not keep masters from others.
    fn rest_of_clock(&mut self) -> Duration {
        Duration::ZERO
    }

    fn begin_task(&mut self) {}

    /// Says that the task, of a stage, has run on `units` edges or rows, and lets as much time pass as it takes.
    fn end_task(&mut self, _stage: usize, _units: u64) {}
}

impl dyn Time + '_ {
    /// Runs a task of a stage, which returns on how many edges or rows it ran; `None`: it did not run, which takes no time.
    pub fn time<T>(&mut self, stage: usize, task: impl FnOnce() -> T, units: impl FnOnce(&T) -> Option<u64>) -> T {
        self.begin_task();
        let done = task();
        if let Some(units) = units(&done) {
            self.end_task(stage, units);
        }
        done
    }
}

pub struct Wall;

impl Time for Wall {
    fn now(&self) -> Instant {
        Instant::now()
    }
}
