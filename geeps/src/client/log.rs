//! A worker's updates of a table that the servers may not have yet: it reads its own writes without waiting for them to arrive.

use crate::servers::{Consistency, Division};
use crate::table::RowsId;

/// Sums of a worker's updates of the different rows of a list.
#[derive(Debug)]
struct Logged {
    rows: RowsId,
    /// Clocks of the table before it, and updates.
    clock: u64,
    number: u64,
    values: Vec<f32>,
}

/// The updates of a table, in their order: those of the clock that it is in, and those on their way.
#[derive(Debug)]
pub(super) struct Log {
    clock: u64,
    updates: u64,
    entries: Vec<Logged>,
    /// Of each server, whether rows are read of it, and the clocks whose updates were in what was read last.
    servers: Vec<Option<u64>>,
    /// Whether updates are needed after their clock: where rows are read, and a read may come before they have arrived.
    is_kept: bool,
}

impl Log {
    /// Makes one of a table that is read by these divisions.
    pub fn new<'d>(read: impl Iterator<Item = &'d Division>, servers: usize, consistency: Consistency) -> Self {
        let mut of_servers = vec![None; servers];
        read.flat_map(Division::parts).for_each(|part| of_servers[part.server] = Some(0));
        // Under BSP a read waits for all clocks, the worker's own among them.
        let is_kept = consistency != Consistency::Bsp && of_servers.iter().any(Option::is_some);
        Self { clock: 0, updates: 0, entries: Vec::new(), servers: of_servers, is_kept }
    }

    /// Adds an update of the clock that the table is in.
    pub fn push(&mut self, rows: RowsId, values: Vec<f32>) {
        self.entries.push(Logged { rows, clock: self.clock, number: self.updates, values });
        self.updates += 1;
    }

    /// Returns how many updates there were.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Ends the clock, and returns its updates.
    pub fn end_clock(&mut self) -> Vec<(RowsId, Vec<f32>)> {
        self.clock += 1;
        if !self.is_kept {
            return self.entries.drain(..).map(|logged| (logged.rows, logged.values)).collect();
        }
        let ended = self.entries.iter().filter(|logged| logged.clock + 1 == self.clock);
        ended.map(|logged| (logged.rows, logged.values.clone())).collect()
    }

    /// Adds to the different rows of a list, which the servers gave, the updates that were not in them; `included` says of each part of
    /// the list how many of the worker's clocks were.
    pub fn add_missing(&mut self, read: &Division, divisions: &[Division], included: &[u64], distinct: &mut [f32]) {
        self.add(read, divisions, distinct, |logged, part| logged.clock >= included[part]);
        for (part, &included) in read.parts().iter().zip(included) {
            self.servers[part.server] = Some(included);
        }
        let Self { clock, entries, servers, .. } = self;
        // What is sent to servers of which nothing is read is needed by nobody here.
        let is_missing = |logged: &Logged, at: usize| servers[at].is_some_and(|included| logged.clock >= included);
        entries.retain(|logged| {
            logged.clock == *clock
                || divisions[logged.rows.0].parts().iter().any(|part| is_missing(logged, part.server))
        });
    }

    /// Adds to the different rows of a list the updates after the first `updates`, all of which are of the clock that the table is in.
    pub fn add_since(&self, updates: u64, read: &Division, divisions: &[Division], distinct: &mut [f32]) {
        self.add(read, divisions, distinct, |logged, _| logged.number >= updates);
    }

    /// Adds to the different rows of a list those updates that `is_missing` says of, by the number of the part.
    fn add(
        &self,
        read: &Division,
        divisions: &[Division],
        distinct: &mut [f32],
        is_missing: impl Fn(&Logged, usize) -> bool,
    ) {
        let mut rest = distinct;
        for (number, part) in read.parts().iter().enumerate() {
            let (rows, after) = rest.split_at_mut(part.list.distinct * part.list.width);
            rest = after;
            for logged in self.entries.iter().filter(|logged| is_missing(logged, number)) {
                if let Some(own) = divisions[logged.rows.0].part(part.server) {
                    own.list.add_to_distinct(&part.list, rows, &own.of(&logged.values));
                }
            }
        }
    }
}
