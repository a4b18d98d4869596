//! The board: what workers tell each other. Counters that only grow, one writer each but for turns and approval.
//!
//! | counter | written by | read to decide |
//! |---|---|---|
//! | `steps[w]` | worker w, when it ended a step | slack 0: a step begins when every worker ended all steps before it |
//! | `clocks[w]` | worker w, when it ended a clock | slack s: clock t begins when every worker ended clock t − 1 − s |
//! | `turns[x]` | whoever held rotating shard x | a rotation's visit is due when all earlier visits of the shard ended |
//! | `arrived` | the driver of a process | slack 0, several processes: all workers ended this many steps and what they sent is here |
//! | `early[w]` | worker w of several processes, when rows came before their time | slack 0: a step begins when no rows of the steps before it are left |
//! | `age` | the driver of a process | mirrored rows: clock t begins when they hold all changes of clock t − 1 − s |
//! | `included` | the driver of a process | async: how far the own changes are known to be in |
//! | `allowed` | the driver of a virtual process, where values are bounded | clock t begins when it is allowed |
//! | `approved` | the run's driver | iteration i begins when at least i iterations are approved: all up to the next look |
//!
//! Every write releases and every read acquires, so that whoever sees a counter sees the rows written before it. Nobody
//! sleeps on a counter: a worker that may not go on says so and is asked again, hence no wake-up can be lost.

use crate::machine::atomics::{AtomicBool, AtomicU64, Ordering};

/// A counter on a cache line of its own.
#[repr(align(128))]
#[derive(Debug)]
struct Counter(AtomicU64);

impl Counter {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    /// For several writers that tell of the same progress.
    fn raise(&self, value: u64) {
        self.0.fetch_max(value, Ordering::AcqRel);
    }
}

/// Shared by the workers of a process and by their driver.
#[derive(Debug)]
pub struct Board {
    steps: Box<[Counter]>,
    clocks: Box<[Counter]>,
    turns: Box<[Counter]>,
    arrived: Counter,
    early: Box<[Counter]>,
    age: Counter,
    included: Counter,
    allowed: Counter,
    approved: Counter,
    stop: AtomicBool,
}

impl Board {
    /// Begins with nothing done and no iteration approved.
    #[must_use]
    pub fn new(workers: usize, rotating_shards: usize) -> Self {
        let counters = |n| (0..n).map(|_| Counter::new()).collect();
        Self {
            steps: counters(workers),
            clocks: counters(workers),
            turns: counters(rotating_shards),
            arrived: Counter::new(),
            early: counters(workers),
            age: Counter::new(),
            included: Counter::new(),
            allowed: Counter(AtomicU64::new(u64::MAX)),
            approved: Counter::new(),
            stop: AtomicBool::new(false),
        }
    }

    /// Lets iterations up to `iteration` begin.
    pub fn approve(&self, iteration: u64) {
        self.approved.set(iteration);
    }

    /// Tells how many iterations may begin.
    #[must_use]
    pub fn approved(&self) -> u64 {
        self.approved.get()
    }

    /// Says that all workers of all processes ended this many steps, and that what they sent has arrived.
    pub fn arrive(&self, steps: u64) {
        self.arrived.raise(steps);
    }

    /// Says up to which clock mirrored rows hold all changes, and masters the own changes.
    pub fn freshen(&self, age: u64, included: u64) {
        self.age.raise(age);
        self.included.raise(included);
    }

    /// Says of which step the first rows are that a worker received and has not taken in; `u64::MAX`: of none.
    pub(crate) fn keep_early(&self, worker: usize, step: u64) {
        self.early[worker].set(step.wrapping_add(1));
    }

    /// Tells whether rows that were sent before this many steps ended have been taken in. A counter begins at 0: none are left.
    pub(crate) fn took_in(&self, steps: u64) -> bool {
        self.early.iter().all(|counter| counter.get().wrapping_sub(1) >= steps)
    }

    /// Lets clocks up to this one begin; without a word all may.
    pub(crate) fn allow(&self, clock: u64) {
        self.allowed.set(clock);
    }

    pub(crate) fn allowed(&self) -> u64 {
        self.allowed.get()
    }

    pub(crate) fn age(&self) -> u64 {
        self.age.get()
    }

    pub(crate) fn included(&self) -> u64 {
        self.included.get()
    }

    pub(crate) fn arrived(&self) -> u64 {
        self.arrived.get()
    }

    /// Says how many visits of a rotating shard have ended in all processes, when its rows have come.
    pub(crate) fn receive(&self, shard: usize, visits: u64) {
        self.turns[shard].set(visits);
    }

    /// Makes every worker end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Tells whether workers are to end.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn end_step(&self, worker: usize, steps: u64) {
        self.steps[worker].set(steps);
    }

    /// Tells whether every worker of this process ended this many steps.
    pub(crate) fn all_ended_steps(&self, steps: u64) -> bool {
        self.steps.iter().all(|counter| counter.get() >= steps)
    }

    /// Returns how many steps, and visits of rotating shards, workers of this process have ended, all together.
    pub(crate) fn ended(&self) -> u64 {
        self.steps.iter().chain(&self.turns).map(Counter::get).sum()
    }

    pub(crate) fn end_clock(&self, worker: usize, clock: u64) {
        self.clocks[worker].set(clock);
    }

    /// Returns the last clock that every worker ended.
    pub(crate) fn slowest_clock(&self) -> u64 {
        self.clocks.iter().map(Counter::get).min().unwrap_or(0)
    }

    pub(crate) fn visits(&self, shard: usize) -> u64 {
        self.turns[shard].get()
    }

    /// Ends a visit. Only the holder of the shard may call it.
    pub(crate) fn end_visit(&self, shard: usize) {
        let turn = &self.turns[shard];
        turn.set(turn.get() + 1);
    }
}

/// Makes every worker end when this is dropped: when the run is over, or on an error.
pub struct StopAtEnd<'b>(pub &'b Board);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
