//! The connections to the servers, and which of them stores a row.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use megagrid_partition::parallel::lock;
use rustc_hash::FxHashMap;

use super::key::Key;
use crate::server::element::Tables;
use crate::server::frame::{Batch, Frame, Verb};
use crate::server::link::{Counters, Outbox};
use crate::server::tablet::home;

/// Rows in one request.
const REQUEST_ROWS: usize = 1 << 14;

#[derive(Debug)]
pub(super) struct Link {
    /// Empty when it is closed.
    pub(super) outbox: Mutex<Option<Outbox>>,
    pub(super) counters: Arc<Counters>,
    /// The server's global clock, and with it the version of all rows that it pushes here.
    pub(super) global: AtomicU32,
    /// The server has applied this process's updates of all clocks before.
    pub(super) confirmed: AtomicU32,
}

/// The connections, by number of the server.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) all: Vec<Link>,
    /// Rows that are not on the server that their number names.
    places: RwLock<FxHashMap<Key, u32>>,
    /// Whether servers push rows that were requested.
    push: bool,
}

impl Links {
    pub(super) fn new(links: Vec<Link>, push: bool) -> Self {
        Self { all: links, places: RwLock::default(), push }
    }

    pub(super) fn server(&self, key: Key) -> u32 {
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        places.get(&key).copied().unwrap_or_else(|| home(key.row(), self.all.len()) as u32)
    }

    /// Notes where rows are stored, as a server says; returns which rows these are.
    pub(super) fn place(&self, frame: &Frame) -> Vec<Key> {
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<Key> = frame.rows().iter().map(|&row| Key::new(frame.header().table, row)).collect();
        places.extend(keys.iter().copied().zip(bytemuck::cast_slice::<u8, u32>(frame.data()).iter().copied()));
        keys
    }

    /// Whether a row that was requested comes by itself from then on.
    pub(super) fn pushes(&self) -> bool {
        self.push
    }

    /// Returns the version of the rows that a server pushes and that were received once; 0 if servers do not push.
    pub(super) fn pushed(&self, server: u32) -> u32 {
        if self.push { self.all[server as usize].global.load(Ordering::Acquire) } else { 0 }
    }

    /// A server has applied this process's updates of all clocks before this one.
    pub(super) fn confirmed(&self, server: u32) -> u32 {
        self.all[server as usize].confirmed.load(Ordering::Acquire)
    }

    pub(super) fn send(&self, server: u32, frame: Frame) {
        if let Some(outbox) = &*lock(&self.all[server as usize].outbox) {
            // A closed connection is noticed where it is read from.
            let _ = outbox.send(frame);
        }
    }

    pub(super) fn send_all(&self, frame: impl Fn() -> Frame) {
        (0..self.all.len()).for_each(|server| self.send(server as u32, frame()));
    }

    /// Asks the servers for rows of at least this version.
    pub(super) fn request(&self, keys: &[Key], version: u32) {
        let mut keys: Vec<(u32, Key)> = keys.iter().map(|&key| (self.server(key), key)).collect();
        keys.sort_unstable();
        for group in keys.chunk_by(|a, b| a.0 == b.0 && a.1.table() == b.1.table()) {
            for group in group.chunks(REQUEST_ROWS) {
                let rows: Vec<u32> = group.iter().map(|(_, key)| key.row()).collect();
                let frame = Frame::with_rows(Verb::Read, group[0].1.table(), &rows, &[]);
                let frame = frame.set(|header| (header.version, header.flags) = (version, u32::from(self.push)));
                self.send(group[0].0, frame);
            }
        }
    }

    /// Returns what collects rows into messages to their servers.
    pub(super) fn batches(&self, verb: Verb, tables: &Tables) -> Batches<'_> {
        let of_server = || (0..tables.len() as u32).map(|table| Batch::new(verb, table)).collect();
        Batches { links: self, batches: (0..self.all.len()).map(|_| of_server()).collect() }
    }
}

/// Rows on their way into messages, by server and table.
pub(super) struct Batches<'a> {
    links: &'a Links,
    batches: Vec<Vec<Batch>>,
}

impl Batches<'_> {
    /// Adds a row, and sends a message if there is enough for one.
    pub(super) fn push(&mut self, server: u32, key: Key, data: &[u8]) {
        if let Some(frame) = self.batches[server as usize][key.table() as usize].push(key.row(), data) {
            self.links.send(server, frame);
        }
    }

    pub(super) fn finish(self) {
        for (server, batches) in self.batches.into_iter().enumerate() {
            batches.into_iter().filter_map(Batch::finish).for_each(|frame| self.links.send(server as u32, frame));
        }
    }
}
