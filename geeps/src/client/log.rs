//! A worker's updates of a table that the servers may not have yet: it reads its own writes without waiting for them to arrive.

use crate::servers::{Consistency, Division};
use crate::table::RowsId;

/// A worker's updates of some rows, in the order of their list.
#[derive(Debug)]
struct Logged {
    rows: RowsId,
    /// Clocks of the table before it.
    clock: u64,
    values: Vec<f32>,
}

/// The updates of a table, in their order: those of the clock that it is in, and those on their way.
#[derive(Debug)]
pub(super) struct Log {
    clock: u64,
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
        Self { clock: 0, entries: Vec::new(), servers: of_servers, is_kept }
    }

    /// Adds an update of the clock that the table is in.
    pub fn push(&mut self, rows: RowsId, values: Vec<f32>) {
        self.entries.push(Logged { rows, clock: self.clock, values });
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

    /// Adds to the different rows of a list, which the servers gave, the updates that were not in them; `included` says of each server
    /// how many of the worker's clocks were.
    pub fn add_missing(&mut self, read: &Division, divisions: &[Division], included: &[u64], distinct: &mut [f32]) {
        let mut rest = distinct;
        for (part, &included) in read.parts().iter().zip(included) {
            let (rows, after) = rest.split_at_mut(part.list.distinct * part.list.width);
            rest = after;
            for logged in self.entries.iter().filter(|logged| logged.clock >= included) {
                if let Some(own) = divisions[logged.rows.0].part(part.server) {
                    own.list.add_to_distinct(&part.list, rows, &own.of(&logged.values));
                }
            }
            self.servers[part.server] = Some(included);
        }
        let Self { entries, servers, .. } = self;
        // What is sent to servers of which nothing is read is needed by nobody here.
        let is_missing =
            |logged: &Logged, server: usize| servers[server].is_some_and(|included| logged.clock >= included);
        let clock = self.clock;
        entries.retain(|logged| {
            logged.clock == clock || divisions[logged.rows.0].parts().iter().any(|part| is_missing(logged, part.server))
        });
    }
}
