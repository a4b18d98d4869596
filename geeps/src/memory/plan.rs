//! What is pinned and what moves in each iteration, to the byte, before the first one.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::placement::{Held, Need, Placement, Shortage, place};
use crate::Error;
use crate::device::{ALIGNMENT, VALUE_BYTES, padded};
use crate::table::{RowsId, TableId, bytes};
use crate::trace::{Event, Trace, What};

/// Bytes that move between host and device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moves {
    /// Parameters to the device.
    pub read: u64,
    /// Updates to the host.
    pub updates: u64,
    /// Local data to the device.
    pub swapped_in: u64,
    /// Local data to the host.
    pub swapped_out: u64,
    /// What the application copies to the device by itself: its input.
    pub input: u64,
    /// What the application copies to the host by itself.
    pub output: u64,
}

impl Moves {
    /// Returns the bytes to the device and to the host.
    #[must_use]
    pub fn by_direction(&self) -> [u64; 2] {
        [self.read + self.swapped_in + self.input, self.updates + self.swapped_out + self.output]
    }

    /// Returns what has moved since something was counted.
    #[must_use]
    pub fn since(&self, before: Self) -> Self {
        Self {
            read: self.read - before.read,
            updates: self.updates - before.updates,
            swapped_in: self.swapped_in - before.swapped_in,
            swapped_out: self.swapped_out - before.swapped_out,
            input: self.input - before.input,
            output: self.output - before.output,
        }
    }

    /// Returns all bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_direction().iter().sum()
    }
}

impl AddAssign for Moves {
    fn add_assign(&mut self, more: Self) {
        self.read += more.read;
        self.updates += more.updates;
        self.swapped_in += more.swapped_in;
        self.swapped_out += more.swapped_out;
        self.input += more.input;
        self.output += more.output;
    }
}

/// Something that is in the device's memory all the time, or comes and goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The table or local data.
    pub name: String,
    /// Its bytes, of a table with the indexes of its accesses.
    pub bytes: u64,
    /// Whether it is pinned.
    pub is_pinned: bool,
}

/// What a worker does with its device's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub(crate) trace: Trace,
    pub(crate) placement: Placement,
    pub(crate) budget: u64,
    /// What copies take of it.
    staging: u64,
    /// What each event of the first iteration moves, and of later ones. They differ where a table has no clock in an
    /// iteration.
    moves: [Vec<Moves>; 2],
}

impl Plan {
    /// Decides what is pinned under a budget of device memory, of which copies take `staging` bytes
    /// ([`Device::staging_bytes`](crate::device::Device::staging_bytes)).
    ///
    /// # Errors
    /// A budget below what copies take and the application holds at a time.
    pub fn new(trace: Trace, budget: u64, staging: u64) -> Result<Self, Error> {
        // Allocations are whole multiples of the alignment.
        let values = (budget.saturating_sub(staging) / VALUE_BYTES) as usize / ALIGNMENT * ALIGNMENT;
        let placement = place(&need(&trace), values).map_err(|Shortage { lacking, layer }| Error::Budget {
            budget,
            lacking: (bytes(values + lacking) + staging).saturating_sub(budget),
            layer: trace.describe_layer(layer),
        })?;
        let moves = moves(&trace, &placement);
        Ok(Self { trace, placement, budget, staging, moves })
    }

    /// Returns what the virtual iteration found.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the least budget that Algorithm 5 finds a place for, in bytes, without what copies take.
    #[must_use]
    pub fn least_budget(trace: &Trace) -> u64 {
        match place(&need(trace), 0) {
            Ok(_) => 0,
            Err(shortage) => bytes(shortage.lacking),
        }
    }

    /// Returns the budget, in bytes, with which everything is pinned, without what copies take.
    #[must_use]
    pub fn full_budget(trace: &Trace) -> u64 {
        let need = need(trace);
        let buffers = need.layers.iter().map(|held| held.buffers).max().unwrap_or(0);
        let all: usize = need.locals.iter().chain(&need.tables).sum();
        bytes(all + 2 * buffers)
    }

    /// Lists tables and then local data, and tells which are pinned.
    #[must_use]
    pub fn items(&self) -> Vec<Item> {
        let Need { tables, locals, .. } = need(&self.trace);
        let names = self.trace.tables.iter().map(|(_, table)| &table.name);
        let names = names.chain(self.trace.locals.iter().map(|local| &local.name));
        let pinned = self.placement.tables.iter().chain(&self.placement.locals);
        let item = |((name, values), &is_pinned): ((&String, usize), &bool)| Item {
            name: name.clone(),
            bytes: bytes(values),
            is_pinned,
        };
        names.zip(tables.into_iter().chain(locals)).zip(pinned).map(item).collect()
    }

    /// Returns the bytes of pinned local data, and of all.
    #[must_use]
    pub fn local_bytes(&self) -> [u64; 2] {
        pinned(&self.placement.locals, &need(&self.trace).locals)
    }

    /// Returns the bytes of pinned tables with the indexes of their accesses, and of all.
    #[must_use]
    pub fn table_bytes(&self) -> [u64; 2] {
        pinned(&self.placement.tables, &need(&self.trace).tables)
    }

    /// Returns the bytes of access buffers.
    #[must_use]
    pub fn ring_bytes(&self) -> u64 {
        bytes(self.placement.ring)
    }

    /// Returns the bytes that are taken of the device.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.local_bytes()[0] + self.table_bytes()[0] + self.ring_bytes() + self.staging
    }

    /// Returns the bytes of indexes, which move once, at the start.
    #[must_use]
    pub fn start_bytes(&self) -> u64 {
        let lists = self.trace.lists.iter().filter(|list| self.placement.tables[list.table.0]);
        lists.filter_map(|list| list.index()).map(|index| bytes(index.len())).sum()
    }

    /// Returns what each event of an iteration, the first of which is 0, moves.
    #[must_use]
    pub fn event_moves(&self, iteration: u64) -> &[Moves] {
        &self.moves[usize::from(iteration > 0)]
    }

    /// Returns what each clock of an iteration moves: all from the end of the clock before, of whatever table, to its own. What comes
    /// after the last is its.
    #[must_use]
    pub fn clock_moves(&self, iteration: u64) -> Vec<(TableId, Moves)> {
        let (mut clocks, mut sum) = (Vec::new(), Moves::default());
        for (event, &moves) in self.trace.events.iter().zip(self.event_moves(iteration)) {
            sum += moves;
            if let Event::Clock(table) = *event {
                clocks.push((table, std::mem::take(&mut sum)));
            }
        }
        if let Some((_, last)) = clocks.last_mut() {
            *last += sum;
        }
        clocks
    }

    /// Returns what an iteration, the first of which is 0, moves.
    #[must_use]
    pub fn moves(&self, iteration: u64) -> Moves {
        let mut sum = Moves::default();
        self.event_moves(iteration).iter().for_each(|&moves| sum += moves);
        sum
    }
}

fn pinned(is_pinned: &[bool], lens: &[usize]) -> [u64; 2] {
    let of_pinned = lens.iter().zip(is_pinned).filter(|(_, is_pinned)| **is_pinned).map(|(len, _)| len);
    [bytes(of_pinned.sum()), bytes(lens.iter().sum())]
}

/// Returns what an application needs, in values.
fn need(trace: &Trace) -> Need {
    let mut tables: Vec<usize> = trace.tables.iter().map(|(_, table)| padded(table.len())).collect();
    for list in &trace.lists {
        tables[list.table.0] += list.index().map_or(0, |index| padded(index.len()));
    }
    let layer = |accesses: &[usize]| {
        let mut held = Held::default();
        for &access in accesses {
            match trace.access(access) {
                What::Local { local, .. } => held.locals.push(local.0),
                what => held.buffers += padded(trace.len_of(what)),
            }
        }
        held
    };
    Need {
        locals: trace.locals.iter().map(|local| padded(local.len)).collect(),
        tables,
        layers: trace.layers.iter().map(|layer_| layer(&layer_.accesses)).collect(),
        iteration: trace.accesses.iter().map(|&(what, _)| padded(trace.len_of(what))).sum(),
    }
}

/// Goes through two iterations.
fn moves(trace: &Trace, placement: &Placement) -> [Vec<Moves>; 2] {
    let mut cache = Freshness::new(trace);
    [(); 2].map(|()| trace.events.iter().map(|event| of_event(trace, placement, &mut cache, event)).collect())
}

fn of_event(trace: &Trace, placement: &Placement, cache: &mut Freshness, event: &Event) -> Moves {
    let none = Moves::default();
    match *event {
        Event::Access(what @ What::Local { local, fetch: true }) if !placement.locals[local.0] => {
            Moves { swapped_in: bytes(trace.len_of(what)), ..none }
        }
        Event::Access(What::Read(rows)) => {
            let list = &trace.lists[rows.0];
            let values = match (placement.tables[list.table.0], cache.read(rows, list.table)) {
                (false, _) => list.len(),
                (true, false) => list.distinct * list.width,
                (true, true) => 0,
            };
            Moves { read: bytes(values), ..none }
        }
        Event::Post { access, save: true } => match trace.access(access) {
            what @ What::PreUpdate(_) => Moves { updates: bytes(trace.len_of(what)), ..none },
            what @ What::Local { local, .. } if !placement.locals[local.0] => {
                Moves { swapped_out: bytes(trace.len_of(what)), ..none }
            }
            _ => none,
        },
        Event::Clock(table) => {
            cache.clock(table);
            none
        }
        Event::Upload(values) => Moves { input: bytes(values), ..none },
        Event::Download(values) => Moves { output: bytes(values), ..none },
        _ => none,
    }
}

/// Which lists of pinned tables were brought in the clock that their table is in: others are too old.
#[derive(Debug)]
pub(crate) struct Freshness {
    clocks: Vec<u64>,
    brought: BTreeMap<RowsId, u64>,
}

impl Freshness {
    pub fn new(trace: &Trace) -> Self {
        Self { clocks: vec![0; trace.tables.len()], brought: BTreeMap::new() }
    }

    /// Tells whether rows are fresh, and that they are from now on.
    pub fn read(&mut self, rows: RowsId, table: TableId) -> bool {
        let clock = self.clocks[table.0];
        self.brought.insert(rows, clock) == Some(clock)
    }

    pub fn clock(&mut self, table: TableId) {
        self.clocks[table.0] += 1;
    }

    /// Returns the clocks of a table that have ended.
    pub fn clocks(&self, table: TableId) -> u64 {
        self.clocks[table.0]
    }
}
