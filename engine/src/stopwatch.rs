//! What a worker reads the time from: the clock on the wall, or a virtual cluster's.

use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::virtual_cluster::VirtualTime;

/// A worker's stopwatch.
pub enum Stopwatch {
    /// Time passes by itself.
    Wall,
    /// Time passes as a model says.
    Virtual(Rc<VirtualTime>, crate::virtual_cluster::Charges),
}

impl Stopwatch {
    /// Returns the time. Virtual time is counted from an arbitrary moment.
    pub fn now(&self) -> Instant {
        match self {
            Self::Wall => Instant::now(),
            Self::Virtual(time, _) => time.instant(),
        }
    }

    /// Says that a clock begins.
    pub fn begin_clock(&mut self, clock: u64) {
        if let Self::Virtual(_, charges) = self {
            charges.begin_clock(clock);
        }
    }

    /// Returns what a clock takes that has a cost of its own, once in each. Messages are served meanwhile: what stands for
    /// many tasks does not keep masters from others.
    pub fn rest_of_clock(&mut self) -> Duration {
        match self {
            Self::Wall => Duration::ZERO,
            Self::Virtual(_, charges) => Duration::from_nanos(charges.rest_of_clock()),
        }
    }

    /// Runs a task of a stage, which returns on how many edges or rows it ran, and lets as much time pass as it takes.
    /// `None`: it did not run, which takes no time.
    pub fn time<T>(&mut self, stage: usize, task: impl FnOnce() -> T, units: impl FnOnce(&T) -> Option<u64>) -> T {
        let Self::Virtual(time, charges) = self else { return task() };
        let begin = Instant::now();
        let done = task();
        if let Some(units) = units(&done) {
            time.pass(charges.task(stage, units, begin));
        }
        done
    }
}
