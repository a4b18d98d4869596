//! Clocks: up to which of them a shard's master has what each process changed, which rows it has sent, and how fresh those are that a
//! process has.
//!
//! A master's *age* is the last clock of which every process's changes are in. It is the same for changes of replicas
//! ([`Replicas`](super::Replicas)) and for sums that are applied as they come ([`Served`](super::Served)).

use std::sync::atomic::{AtomicU64, Ordering};

use super::message::Malformed;

/// When rows go from masters to mirrors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// When they would be too old, given the slack.
    WhenNeeded(u64),
    /// Whenever their age grows.
    EveryClock,
    /// In answer to every change.
    EveryChange,
    /// After every change, to all.
    ToAll,
}

/// What a shard's master knows of the processes.
pub struct Ledger {
    /// The last clock whose changes are in, by process; the largest number for one that uses no row, and sends nothing.
    clocks: Vec<u64>,
    /// The age of the rows sent last, by process.
    sent: Vec<u64>,
}

impl Ledger {
    /// Begins with nothing, given which processes use rows.
    pub fn new(uses: impl Iterator<Item = bool>) -> Self {
        let clocks: Vec<u64> = uses.map(unless_used).collect();
        Self { sent: vec![0; clocks.len()], clocks }
    }

    pub fn age(&self) -> u64 {
        self.clocks.iter().copied().min().unwrap_or(0)
    }

    /// Returns the last clock of a process whose changes are in.
    pub fn included(&self, process: usize) -> u64 {
        self.clocks[process]
    }

    /// Returns the last clock of each process whose changes are in.
    pub fn clocks(&self) -> &[u64] {
        &self.clocks
    }

    /// Takes down that a process's changes of a clock are in, and tells whether all processes' of more clocks are than before.
    pub fn enter(&mut self, process: usize, clock: u64) -> Result<bool, Malformed> {
        let before = self.age();
        *self.clocks.get_mut(process).filter(|known| **known < u64::MAX).ok_or(Malformed)? = clock;
        Ok(self.age() > before)
    }

    /// Lists to whom rows are due, now that changes of a process are in, by which the age has grown or has not.
    pub fn due(&mut self, process: usize, has_grown: bool, push: Push) -> Vec<usize> {
        let age = self.age();
        let is_due = |receiver: usize| match push {
            _ if self.clocks[receiver] == u64::MAX => false,
            Push::EveryClock => has_grown,
            Push::EveryChange => receiver == process,
            Push::ToAll => true,
            Push::WhenNeeded(slack) => {
                // Its next clock is one on, and needs rows of one more than the slack before that.
                let needed = self.clocks[receiver].saturating_sub(slack);
                self.sent[receiver] < needed && needed <= age
            }
        };
        let receivers: Vec<usize> = (0..self.clocks.len()).filter(|&receiver| is_due(receiver)).collect();
        receivers.iter().for_each(|&receiver| self.sent[receiver] = age);
        receivers
    }
}

/// What a process has of each shard; the largest numbers where it uses none of it.
pub struct Freshness {
    /// The age of the latest rows.
    ages: Vec<AtomicU64>,
    /// The last clock of its own changes that they are known to hold.
    included: Vec<AtomicU64>,
}

impl Freshness {
    /// Begins with the first rows, given which shards the process uses.
    pub fn new(uses: impl Iterator<Item = bool> + Clone) -> Self {
        let counters = || uses.clone().map(|uses| AtomicU64::new(unless_used(uses))).collect();
        Self { ages: counters(), included: counters() }
    }

    /// Returns the least age of all rows.
    pub fn age(&self) -> u64 {
        least(&self.ages)
    }

    /// Returns the last clock of its own changes that all rows are known to hold.
    pub fn included(&self) -> u64 {
        least(&self.included)
    }

    /// Returns the last clock of its own changes that the rows of a shard are known to hold.
    pub fn included_in(&self, shard: usize) -> u64 {
        self.included[shard].load(Ordering::Acquire)
    }

    /// Tells whether rows are no older than those known: two workers of a process may send a master's rows in turn.
    pub fn is_news(&self, shard: usize, age: u64, included: u64) -> bool {
        age >= self.ages[shard].load(Ordering::Acquire) && included >= self.included_in(shard)
    }

    /// Takes down that the rows of a shard are the first ones again.
    pub fn begin(&self, shard: usize) {
        self.ages[shard].store(0, Ordering::Release);
        self.included[shard].store(0, Ordering::Release);
    }

    /// Takes down that the rows of a shard are at least so fresh. Two threads that do so at once lose neither's news.
    pub fn raise(&self, shard: usize, age: u64, included: u64) {
        self.ages[shard].fetch_max(age, Ordering::AcqRel);
        self.included[shard].fetch_max(included, Ordering::AcqRel);
    }
}

fn unless_used(is_used: bool) -> u64 {
    if is_used { 0 } else { u64::MAX }
}

fn least(counters: &[AtomicU64]) -> u64 {
    counters.iter().map(|counter| counter.load(Ordering::Acquire)).min().unwrap_or(u64::MAX)
}
