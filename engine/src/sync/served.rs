//! Sides whose Apply is given each process's part of a sum as it comes, with slack: whose parts the masters of this process have, to
//! whom rows are due, and how fresh those of other masters are here.
//!
//! Masters' rows are those of the grid, and so are mirrors', which are written when they come. What a process adds it sees through
//! Apply, so that nothing is added again to rows that come.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use megagrid_partition::parallel::lock;
use megagrid_partition::{ProcessId, ShardId, Side};

use super::ledger::{Freshness, Ledger, Push};
use super::message::Malformed;
use super::mirrors::Mirrors;
use crate::plan::Plan;

/// Rows that are due to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueRows {
    pub process: ProcessId,
    /// The last clock of which every process's part is applied.
    pub age: u64,
    /// The last clock of the receiver's own parts that is applied.
    pub included: u64,
}

/// One side.
struct Rows {
    /// By shard, where this process keeps the masters.
    ledgers: Vec<Option<Mutex<Ledger>>>,
    fresh: Freshness,
}

impl Rows {
    fn new(plan: &Plan, mirrors: &Mirrors, side: Side) -> Self {
        let uses = uses(plan, mirrors, side);
        let ledger =
            |shard: usize| Mutex::new(Ledger::new((0..plan.processes.count).map(|process| uses(process, shard))));
        let is_here = |shard: usize| plan.keeper(side, shard) == plan.processes.this;
        let shards = 0..plan.side(side).num_shards();
        Self {
            ledgers: shards.clone().map(|shard| is_here(shard).then(|| ledger(shard))).collect(),
            fresh: Freshness::new(shards.map(|shard| uses(plan.processes.this, shard))),
        }
    }

    fn begin(&self, plan: &Plan, mirrors: &Mirrors, side: Side) {
        let uses = uses(plan, mirrors, side);
        for (shard, ledger) in self.ledgers.iter().enumerate() {
            if let Some(ledger) = ledger {
                *lock(ledger) = Ledger::new((0..plan.processes.count).map(|process| uses(process, shard)));
            }
            if uses(plan.processes.this, shard) {
                self.fresh.begin(shard);
            }
        }
    }
}

/// Tells which shards of a side a process uses.
fn uses<'a>(plan: &'a Plan, mirrors: &'a Mirrors, side: Side) -> impl Fn(usize, usize) -> bool + Copy + use<'a> {
    move |process, shard| !mirrors.added(plan, side, ProcessId(process), ShardId(shard)).is_empty()
}

/// The sides of a run that are served.
pub struct Served {
    push: Push,
    sides: [Option<Rows>; 2],
    /// Iterations that were done when the run began.
    begun: AtomicU64,
}

impl Served {
    /// Makes room, if a side is served; [`Self::begin`] begins.
    pub fn new(plan: &Plan, mirrors: &Mirrors, push: Push) -> Option<Self> {
        let rows = |side: Side| plan.serves(side).then(|| Rows::new(plan, mirrors, side));
        let sides = [rows(Side::Left), rows(Side::Right)];
        sides.iter().any(Option::is_some).then_some(Self { push, sides, begun: AtomicU64::new(0) })
    }

    /// Begins a run after `done` iterations: all processes have the same rows.
    pub fn begin(&self, plan: &Plan, mirrors: &Mirrors, done: u64) {
        self.begun.store(done, Ordering::Relaxed);
        for (side, rows) in [Side::Left, Side::Right].into_iter().zip(&self.sides) {
            rows.iter().for_each(|rows| rows.begin(plan, mirrors, side));
        }
    }

    fn rows(&self, side: Side) -> Result<&Rows, Malformed> {
        self.sides[side as usize].as_ref().ok_or(Malformed)
    }

    /// Takes down that a process's part of a clock is applied to the rows of a shard, and returns to whom these are due now.
    pub fn enter(
        &self,
        plan: &Plan,
        (side, shard): (Side, ShardId),
        from: ProcessId,
        clock: u64,
    ) -> Result<Vec<DueRows>, Malformed> {
        let rows = self.rows(side)?;
        let mut ledger = lock(rows.ledgers[shard.0].as_ref().ok_or(Malformed)?);
        let has_grown = ledger.enter(from.0, clock)?;
        let (age, this) = (ledger.age(), plan.processes.this);
        if ledger.included(this) < u64::MAX {
            rows.fresh.raise(shard.0, age, ledger.included(this));
        }
        let due = ledger.due(from.0, has_grown, self.push).into_iter().filter(|&process| process != this);
        Ok(due
            .map(|process| DueRows { process: ProcessId(process), age, included: ledger.included(process) })
            .collect())
    }

    /// Tells whether rows that another process sent are news.
    pub fn is_news(&self, side: Side, shard: usize, age: u64, included: u64) -> Result<bool, Malformed> {
        Ok(self.rows(side)?.fresh.is_news(shard, age, included))
    }

    /// Takes down that rows of a shard have come.
    pub fn arrive(&self, side: Side, shard: usize, age: u64, included: u64) -> Result<(), Malformed> {
        self.rows(side)?.fresh.raise(shard, age, included);
        Ok(())
    }

    /// Returns the least age of the rows that this process uses, and the last clock of its own parts that they are known to hold.
    pub fn age(&self) -> (u64, u64) {
        let of = |read: fn(&Freshness) -> u64| self.sides.iter().flatten().map(|rows| read(&rows.fresh)).min();
        (of(Freshness::age).unwrap_or(u64::MAX), of(Freshness::included).unwrap_or(u64::MAX))
    }

    /// Takes down that all rows are those after this many iterations.
    pub fn settle(&self, plan: &Plan, done: u64) {
        let clocks = done.saturating_sub(self.begun.load(Ordering::Relaxed)) * plan.clocks();
        for rows in self.sides.iter().flatten() {
            (0..rows.ledgers.len()).for_each(|shard| rows.fresh.raise(shard, clocks, clocks));
        }
    }
}
