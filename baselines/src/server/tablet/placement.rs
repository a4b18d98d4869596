//! Where rows are stored: by default on the server that their number names, after accesses were gathered on the server of
//! the process that uses them most (IterStore, section 4.4), of the same partition of the keys.
//!
//! The server that stores a row decides where it goes. All clients are told, so that an access that nobody reported finds
//! it too. Values that exist already travel through one of the clients, which all servers have a connection to.

use std::collections::BTreeMap;

use super::shard::Shard;
use crate::Error;
use crate::server::frame::{Frame, Verb, frames};

/// Returns the server that stores a row unless it was placed elsewhere. The server's number modulo that of partitions is the
/// partition, and so is the row's.
pub(in crate::server) fn home(row: u32, servers: usize) -> usize {
    row as usize % servers
}

impl Shard {
    /// Takes in how often a client accesses rows that are stored here. When all have reported, decides.
    pub(super) fn reported(&mut self, client: usize, frame: Frame) -> Result<(), Error> {
        if self.tables.len() <= frame.header().table as usize || frame.data().len() != frame.rows().len() * 4 {
            return Err(Error::Refused("accesses of a table that does not exist, or rows without a count".into()));
        }
        let last = frame.header().flags == 1;
        self.accesses.push((client, frame));
        self.reporters += usize::from(last);
        if self.reporters == self.clients.len() {
            self.reporters = 0;
            self.place();
        }
        Ok(())
    }

    /// Places each reported row on the server of the client with most accesses; ties go to the server with fewest rows, then
    /// to this one.
    fn place(&mut self) {
        let mut users: BTreeMap<(u32, u32), Vec<(u32, usize)>> = BTreeMap::new();
        for (client, frame) in std::mem::take(&mut self.accesses) {
            let counts: &[u32] = bytemuck::cast_slice(frame.data());
            for (&row, &count) in frame.rows().iter().zip(counts) {
                users.entry((frame.header().table, row)).or_default().push((count, client));
            }
        }
        let mut load = vec![0u32; self.options.servers];
        let mut moves: BTreeMap<u32, Vec<(u32, usize)>> = BTreeMap::new();
        for ((table, row), users) in users {
            let most = users.iter().map(|&(count, _)| count).max().unwrap_or(0);
            let servers =
                users.iter().filter(|user| user.0 == most).map(|user| self.clients[user.1].own_server as usize);
            let target = servers
                .filter(|&server| server < load.len())
                .min_by_key(|&to| (load[to], to != self.options.server, to));
            let target = target.unwrap_or(self.options.server);
            load[target] += 1;
            if target != self.options.server {
                moves.entry(table).or_default().push((row, target));
            }
        }
        for (table, moves) in moves {
            self.move_values(table, &moves);
            let (rows, targets): (Vec<u32>, Vec<u32>) = moves.iter().map(|&(row, target)| (row, target as u32)).unzip();
            for client in 0..self.clients.len() {
                self.tell_places(client, table, &rows, &targets);
            }
        }
        for client in 0..self.clients.len() {
            self.send(client, Frame::new(Verb::Placed).set(|header| header.flags = 1));
        }
    }

    /// Sends values that exist to their new server, through the first client that is there.
    fn move_values(&mut self, number: u32, moves: &[(u32, usize)]) {
        let Some(carrier) = self.clients.iter().position(|client| client.outbox.is_some()) else { return };
        for target in 0..self.options.servers {
            let moved = moves.iter().filter(|&&(_, to)| to == target);
            let table = &mut self.tables[number as usize];
            let values: Vec<(u32, Vec<u8>)> = moved.filter_map(|&(row, _)| Some((row, table.forget(row)?))).collect();
            for frame in frames(Verb::Moved, number, values.iter().map(|(row, value)| (*row, &value[..]))) {
                self.send(carrier, frame.set(|header| header.first = target as u32));
            }
        }
    }

    /// Tells a new client which rows are stored here and not where their numbers say; after a restart there may be some.
    pub(super) fn tell_foreign_rows(&self, client: usize) {
        for (number, table) in self.tables.iter().enumerate() {
            let servers = self.options.servers;
            let away = |&row: &u32| home(row, servers) != self.options.server;
            let rows: Vec<u32> = table.stored().map(|(row, _)| row).filter(away).collect();
            self.tell_places(client, number as u32, &rows, &vec![self.options.server as u32; rows.len()]);
        }
    }

    fn tell_places(&self, client: usize, table: u32, rows: &[u32], targets: &[u32]) {
        for (rows, targets) in rows.chunks(1 << 15).zip(targets.chunks(1 << 15)) {
            self.send(client, Frame::with_rows(Verb::Placed, table, rows, bytemuck::cast_slice(targets)));
        }
    }
}
