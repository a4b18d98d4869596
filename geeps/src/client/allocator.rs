//! The allocator thread: Read, PreUpdate and LocalAccess, in the order of the virtual iteration and ahead of the
//! application as far as there is room.

use std::collections::BTreeMap;

use super::hub::Ended;
use super::shared::Shared;
use crate::Error;
use crate::device::{Command, Device, DeviceRange, padded};
use crate::memory::{Freshness, Moves};
use crate::servers::Found;
use crate::table::{LocalId, RowsId, bytes};
use crate::trace::{Event, Home, Trace, What};

/// Serves all accesses of all iterations, unless the worker ends before.
pub(super) fn run(shared: &Shared) -> Result<(), Error> {
    match Allocator::new(shared).serve() {
        Ok(()) | Err(Ended::Stopped) => Ok(()),
        Err(Ended::Failed(error)) => Err(error),
    }
}

struct Allocator<'s> {
    shared: &'s Shared,
    /// For each access, how many posts to its home come before it in an iteration, and how many there are in one.
    writes: Vec<[u64; 2]>,
    cache: Freshness,
    /// Lists that are read several times in an iteration and are not of pinned tables: what has come of them.
    kept: BTreeMap<RowsId, Option<Kept>>,
    /// The next access.
    next: u64,
}

/// Different rows of a list, as they came from the servers in the clock that their table is in.
struct Kept {
    distinct: Vec<f32>,
    /// How many of the worker's updates are in them.
    updates: u64,
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl<'s> Allocator<'s> {
    fn new(shared: &'s Shared) -> Self {
        let trace = &shared.plan.trace;
        let reads = |rows| trace.accesses.iter().filter(|&&(what, _)| what == What::Read(rows)).count();
        let is_swapped = |rows: &RowsId| shared.tables[trace.lists[rows.0].table.0].is_none();
        let kept = (0..trace.lists.len()).map(RowsId).filter(is_swapped).filter(|&rows| reads(rows) > 1);
        let kept = kept.map(|rows| (rows, None)).collect();
        Self { shared, writes: writes(trace), cache: Freshness::new(trace), kept, next: 0 }
    }

    fn serve(&mut self) -> Result<(), Ended> {
        let shared = self.shared;
        for iteration in 0..shared.options.iterations {
            let mut number = 0;
            for event in &shared.plan.trace.events {
                match *event {
                    Event::Access(what) => {
                        if !shared.options.prefetch {
                            shared.hub.wait_until_asked(self.next)?;
                        }
                        let range = self.access(iteration, number, what)?;
                        shared.hub.grant(range);
                        (number, self.next) = (number + 1, self.next + 1);
                    }
                    Event::Clock(table) => self.cache.clock(table),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn access(&mut self, iteration: u64, number: usize, what: What) -> Result<DeviceRange, Ended> {
        let [before, each] = self.writes[number];
        let needed = iteration * each + before;
        match what {
            What::Local { local, fetch } => self.local(local, fetch, needed),
            What::PreUpdate(_) => {
                let buffer = self.take(what)?;
                self.shared.device.submit(&[Command::Fill { to: buffer, value: 0.0 }])?;
                Ok(buffer)
            }
            What::Read(rows) => self.read(rows, needed),
        }
    }

    fn take(&self, what: What) -> Result<DeviceRange, Ended> {
        let len = self.shared.plan.trace.len_of(what);
        let start = self.shared.hub.take(self.next, padded(len))?;
        Ok(self.shared.buffer(start, len))
    }

    fn local(&self, local: LocalId, fetch: bool, needed: u64) -> Result<DeviceRange, Ended> {
        if let Some(pinned) = self.shared.locals[local.0] {
            return Ok(pinned);
        }
        let buffer = self.take(What::Local { local, fetch })?;
        if fetch {
            self.shared.hub.wait_until_written(Home::Local(local.0), needed)?;
            let values = self.shared.swapped(local.0);
            self.shared.device.upload(buffer, &values)?;
            self.shared.hub.count(Moves { swapped_in: bytes(values.len()), ..Moves::default() });
        }
        Ok(buffer)
    }

    /// Fills a buffer with parameters: from the server, or from the pinned table where that has them from the same
    /// clock.
    fn read(&mut self, rows: RowsId, needed: u64) -> Result<DeviceRange, Ended> {
        let shared = self.shared;
        let list = &shared.plan.trace.lists[rows.0];
        let buffer = self.take(What::Read(rows))?;
        shared.hub.wait_until_written(Home::Table(list.table.0), needed)?;
        let clock = self.cache.clocks(list.table);
        let is_fresh = self.cache.read(rows, list.table);
        let pinned = shared.tables[list.table.0];
        if pinned.is_none() || !is_fresh {
            let distinct = self.distinct(rows, clock, is_fresh)?;
            let values = if pinned.is_some() { distinct } else { list.batch_of(distinct) };
            let to = buffer.part(0, values.len());
            shared.device.upload(to, &values)?;
            shared.hub.count(Moves { read: bytes(values.len()), ..Moves::default() });
            if let Some(table) = pinned {
                self.renew(rows, to, table)?;
            }
        }
        if let Some(table) = pinned
            && let (Some(index), Some(range)) = (list.index(), shared.indexes[rows.0])
        {
            let keys = index.keys_in(range);
            shared.device.submit(&[Command::Gather { table, keys, to: buffer, width: list.width }])?;
        } else if let Some(table) = pinned.filter(|_| is_fresh) {
            shared.device.submit(&[Command::Copy { from: table, to: buffer }])?;
        }
        Ok(buffer)
    }

    /// Returns the different rows of a list, with the worker's own updates: from the servers, or as they came before in this clock.
    fn distinct(&mut self, rows: RowsId, clock: u64, is_fresh: bool) -> Result<Vec<f32>, Ended> {
        let shared = self.shared;
        let (table, division) = (shared.plan.trace.lists[rows.0].table, &shared.divisions[rows.0]);
        let kept = self.kept.get_mut(&rows);
        if let Some(Some(Kept { distinct, updates })) = kept.as_deref().filter(|_| is_fresh) {
            let mut distinct = distinct.clone();
            shared.log(table).add_since(*updates, division, &shared.divisions, &mut distinct);
            return Ok(distinct);
        }
        let worker = shared.options.worker;
        let found = shared.servers.read(worker, (rows, division), clock, || shared.hub.should_stop())?;
        let Found { mut distinct, included } = found.ok_or(Ended::Stopped)?;
        let mut log = shared.log(table);
        log.add_missing(division, &shared.divisions, &included, &mut distinct);
        if let Some(kept) = kept {
            *kept = Some(Kept { distinct: distinct.clone(), updates: log.updates() });
        }
        Ok(distinct)
    }

    /// Brings rows that have come from the server into the pinned table.
    fn renew(&self, rows: RowsId, from: DeviceRange, table: DeviceRange) -> Result<(), Ended> {
        let list = &self.shared.plan.trace.lists[rows.0];
        let command = match (list.index(), self.shared.indexes[rows.0]) {
            (Some(index), Some(range)) => {
                Command::Put { from, keys: index.segments_in(range).targets, table, width: list.width }
            }
            _ => Command::Copy { from, to: table },
        };
        Ok(self.shared.device.submit(&[command])?)
    }
}

/// Counts posts by home, in one pass over the iteration.
fn writes(trace: &Trace) -> Vec<[u64; 2]> {
    let (mut posts, mut before) = (BTreeMap::new(), Vec::new());
    for event in &trace.events {
        match *event {
            Event::Access(what) => before.push(posts.get(&trace.home(what)).copied().unwrap_or(0)),
            Event::Post { access, save: true } => *posts.entry(trace.home(trace.access(access))).or_insert(0) += 1,
            _ => {}
        }
    }
    let each = |&(what, _): &(What, bool)| posts.get(&trace.home(what)).copied().unwrap_or(0);
    before.into_iter().zip(trace.accesses.iter().map(each)).map(|(before, each)| [before, each]).collect()
}
