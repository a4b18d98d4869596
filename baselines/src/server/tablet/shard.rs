//! What a tablet server knows and does; no sockets. Messages come in through [`Shard::handle`] and go out through outboxes.
//!
//! **Clocks.** A client process sends its updates of a clock and then `Clock`. The updates wait until then, so that the
//! vector clock, one entry a client, tells exactly what the rows contain. The global clock is its minimum G: all updates of
//! clocks before G, of all clients, are in. A read that asks for version v is answered when G >= v, and the answer says
//! which updates of the reader it contains.

use std::collections::BTreeMap;

use super::checkpoint;
use super::master::MasterTable;
use super::pure::PureCopies;
use crate::Error;
use crate::server::element::Tables;
use crate::server::frame::{CHUNK_BYTES, Frame, Header, Verb, frames};
use crate::server::link::Outbox;
use crate::server::options::ServerOptions;

/// Entry of the vector clock of a client that has left: it holds nobody up.
pub(in crate::server) const LEFT: u32 = u32::MAX;

/// How many lists of rows a client may have for a table: three for each clock of an iteration.
pub(in crate::server) const MAX_LISTS: usize = 3 << 16;

#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) outbox: Option<Outbox>,
    /// The server on its machine, of the same partition of the keys.
    pub(super) own_server: u32,
    clock: u32,
    lost: bool,
    /// Updates of the clock that it is in.
    pending: Vec<Frame>,
    /// Slots of its lists of rows, by table and list.
    plans: Vec<Vec<Vec<u32>>>,
    in_barrier: bool,
}

impl Client {
    /// Returns the slots of the list that a message is about; one that was not announced is empty.
    fn list(&self, header: &Header) -> &[u32] {
        let lists = &self.plans[header.table as usize];
        lists.get(header.flags as usize).map_or(&[], Vec::as_slice)
    }
}

#[derive(Debug)]
pub(super) struct Shard {
    pub(super) options: ServerOptions,
    descriptions: Tables,
    pub(super) tables: Vec<MasterTable>,
    pub(super) clients: Vec<Client>,
    global: u32,
    pure: PureCopies,
    /// Reads that ask for versions beyond the global clock.
    pending_reads: BTreeMap<u32, Vec<(usize, Frame)>>,
    /// Accesses that clients have reported, and how many clients have reported all.
    pub(super) accesses: Vec<(usize, Frame)>,
    pub(super) reporters: usize,
}

impl Shard {
    pub(super) fn new(tables: &Tables, options: ServerOptions) -> Result<Self, Error> {
        let mut masters = Vec::new();
        for table in 0..tables.len() as u32 {
            masters.push(MasterTable::new(tables.kind(table)?.clone()));
        }
        let clock = match &options.resume {
            Some((folder, clock)) => {
                checkpoint::load(folder, *clock, &options, &mut masters)?;
                *clock
            }
            None => 0,
        };
        let plans = vec![Vec::new(); tables.len()];
        let client = || Client { clock, plans: plans.clone(), ..Client::default() };
        Ok(Self {
            descriptions: tables.clone(),
            tables: masters,
            clients: (0..options.clients).map(|_| client()).collect(),
            global: clock,
            pure: PureCopies::new(options.checkpoints.as_ref().filter(|to| to.pure).map(|to| to.every)),
            pending_reads: BTreeMap::new(),
            accesses: Vec::new(),
            reporters: 0,
            options,
        })
    }

    /// Returns how the job ended, if it has.
    pub(super) fn ended(&self) -> Option<Result<(), Error>> {
        if let Some(lost) = self.clients.iter().position(|client| client.lost) {
            return Some(Err(Error::ClientLost { client: lost, clock: self.clients[lost].clock }));
        }
        self.clients.iter().all(|client| client.clock == LEFT && client.outbox.is_none()).then_some(Ok(()))
    }

    pub(super) fn num_rows(&self) -> usize {
        self.tables.iter().map(|table| table.stored().count()).sum()
    }

    /// Takes a client in, or says why not; returns its number.
    pub(super) fn hello(&mut self, frame: &Frame, outbox: &Outbox) -> Result<usize, Error> {
        let refused = |reason: String| Err(Error::Refused(reason));
        if frame.verb() != Verb::Hello {
            return refused("a client begins with who it is".into());
        }
        let (number, clients) = (frame.header().clock as usize, frame.header().first as usize);
        if clients != self.clients.len() || number >= clients {
            let expected = self.clients.len();
            return refused(format!("client {number} of {clients} came to a server for {expected} clients"));
        }
        self.descriptions.compare(&frame.text())?;
        let client = &mut self.clients[number];
        if client.lost {
            return refused(format!(
                "client {number} was lost; restart all processes, from a checkpoint if there is one"
            ));
        }
        if client.outbox.is_some() || client.clock == LEFT {
            return refused(format!("client {number} is there already; give each process its own number"));
        }
        client.outbox = Some(outbox.clone());
        client.own_server = frame.header().version;
        self.tell_foreign_rows(number);
        self.send(number, Frame::new(Verb::Welcome).set(|header| header.version = self.global));
        if let Some(lost) = self.clients.iter().position(|client| client.lost) {
            self.tell_lost(number, lost);
        }
        Ok(number)
    }

    /// Does what a message of a client asks for.
    pub(super) fn handle(&mut self, client: usize, frame: Frame) -> Result<(), Error> {
        let flags = frame.header().flags;
        let changes = matches!(frame.verb(), Verb::Update | Verb::PlanUpdate | Verb::Clock);
        if changes && self.clients[client].clock == LEFT {
            return Err(Error::Refused(format!("client {client} has left; it has no clocks and updates")));
        }
        match frame.verb() {
            Verb::Heartbeat => {}
            Verb::Store => self.store(&frame)?,
            Verb::Read | Verb::PlanRead | Verb::Dump => self.read_or_wait(client, frame)?,
            Verb::Update | Verb::PlanUpdate => {
                self.check(client, &frame)?;
                self.clients[client].pending.push(frame);
            }
            Verb::Clock => self.clock(client, frame.header().clock)?,
            Verb::Leave => {
                self.apply_pending(client);
                self.clients[client].clock = LEFT;
                self.advance();
            }
            Verb::Barrier if flags == 1 => self.send(client, Frame::new(Verb::Barrier)),
            Verb::Barrier => self.barrier(client),
            Verb::Plan => self.extend_plan(client, &frame)?,
            Verb::Access => self.reported(client, frame)?,
            other => return Err(Error::Refused(format!("a client does not send {other:?}"))),
        }
        Ok(())
    }

    /// A client's connection is closed or silent. If it has not left, the others are told.
    pub(super) fn closed(&mut self, client: usize) {
        self.clients[client].outbox = None;
        if self.clients[client].clock == LEFT {
            return;
        }
        self.clients[client].lost = true;
        self.clients[client].pending.clear();
        for other in 0..self.clients.len() {
            self.tell_lost(other, client);
        }
    }

    pub(super) fn send(&self, client: usize, frame: Frame) {
        if let Some(outbox) = &self.clients[client].outbox {
            // Whoever reads from the connection notices that it is closed.
            let _ = outbox.send(frame);
        }
    }

    fn tell_lost(&self, client: usize, lost: usize) {
        let clock = self.clients[lost].clock;
        self.send(client, Frame::new(Verb::Lost).set(|header| (header.first, header.clock) = (lost as u32, clock)));
    }

    /// Checks table, list and lengths of a message with rows.
    fn check(&self, client: usize, frame: &Frame) -> Result<(), Error> {
        let header = frame.header();
        let table = header.table;
        let kind = self.descriptions.kind(table)?;
        let rows = match frame.verb() {
            Verb::PlanUpdate => {
                let rows = frame.data().len() / kind.row_bytes;
                let len = self.clients[client].list(header).len();
                if header.first as usize + rows > len {
                    return Err(Error::Refused(format!("rows beyond the {len} of a list for table {table}")));
                }
                rows
            }
            _ => frame.rows().len(),
        };
        if frame.data().len() != rows * kind.row_bytes {
            let found = format!("{} bytes for {rows} rows", frame.data().len());
            return Err(Error::OtherRows { table, expected: kind.description(), found });
        }
        Ok(())
    }

    fn store(&mut self, frame: &Frame) -> Result<(), Error> {
        self.check(0, frame)?;
        let table = &mut self.tables[frame.header().table as usize];
        let row_bytes = table.kind.row_bytes;
        for (&row, value) in frame.rows().iter().zip(frame.data().chunks_exact(row_bytes)) {
            table.store(row, value);
        }
        Ok(())
    }

    fn read_or_wait(&mut self, client: usize, frame: Frame) -> Result<(), Error> {
        self.descriptions.kind(frame.header().table)?;
        let version = frame.header().version;
        if version > self.global {
            self.pending_reads.entry(version).or_default().push((client, frame));
        } else {
            self.answer(client, &frame);
        }
        Ok(())
    }

    /// Answers a read that the global clock allows.
    fn answer(&mut self, client: usize, frame: &Frame) {
        match frame.verb() {
            Verb::Dump => self.dump(client, frame.header().table),
            Verb::PlanRead => self.answer_list(client, frame.header()),
            _ => self.answer_rows(client, frame),
        }
    }

    fn answer_rows(&mut self, client: usize, frame: &Frame) {
        let number = frame.header().table;
        let table = &mut self.tables[number as usize];
        let slots: Vec<u32> = frame.rows().iter().map(|&row| table.slot(row)).collect();
        if frame.header().flags == 1 {
            slots.iter().for_each(|&slot| table.register(slot, client));
        }
        let table = &self.tables[number as usize];
        let rows = frame.rows().iter().zip(&slots).map(|(&row, &slot)| (row, table.data(slot, 1)));
        frames(Verb::Rows, number, rows).for_each(|frame| self.send_rows(client, frame));
    }

    fn answer_list(&self, client: usize, asked: &Header) {
        let table = &self.tables[asked.table as usize];
        let row_bytes = table.kind.row_bytes;
        let chunk = (CHUNK_BYTES / row_bytes).max(1);
        for (index, slots) in self.clients[client].list(asked).chunks(chunk).enumerate() {
            let mut frame = Frame::new(Verb::PlanRows).set(|header| {
                (header.table, header.flags, header.first) = (asked.table, asked.flags, (index * chunk) as u32);
            });
            let mut data = frame.push_data(slots.len() * row_bytes);
            for run in slots.chunk_by(|a, b| a + 1 == *b) {
                let rows = table.data(run[0], run.len());
                data[..rows.len()].copy_from_slice(rows);
                data = &mut data[rows.len()..];
            }
            self.send_rows(client, frame);
        }
    }

    /// Sends rows with what they contain.
    fn send_rows(&self, client: usize, frame: Frame) {
        let (version, clock) = (self.global, self.clients[client].clock);
        self.send(client, frame.set(|header| (header.version, header.clock) = (version, clock)));
    }

    fn dump(&self, client: usize, number: u32) {
        let table = &self.tables[number as usize];
        let rows = table.stored().map(|(row, slot)| (row, table.data(slot, 1)));
        frames(Verb::Dumped, number, rows).for_each(|frame| self.send(client, frame));
        self.send(client, Frame::with_rows(Verb::Dumped, number, &[], &[]).set(|header| header.flags = 1));
    }

    fn clock(&mut self, client: usize, clock: u32) -> Result<(), Error> {
        let expected = self.clients[client].clock;
        if clock != expected {
            return Err(Error::Refused(format!("client {client} ended clock {clock} while in clock {expected}")));
        }
        self.apply_pending(client);
        self.clients[client].clock += 1;
        self.advance();
        Ok(())
    }

    fn apply_pending(&mut self, client: usize) {
        let clock = self.clients[client].clock;
        for frame in std::mem::take(&mut self.clients[client].pending) {
            let number = frame.header().table;
            let (table, pure, global) = (&mut self.tables[number as usize], &mut self.pure, self.global);
            let row_bytes = table.kind.row_bytes;
            let mut update = |table: &mut MasterTable, slot: u32, updates: &[u8]| {
                pure.note(number, table, slot, updates, clock, global);
                table.update(slot, updates);
            };
            if frame.verb() == Verb::PlanUpdate {
                let slots = self.clients[client].list(frame.header());
                let slots = &slots[frame.header().first as usize..];
                let mut data = frame.data();
                for run in slots[..data.len() / row_bytes].chunk_by(|a, b| a + 1 == *b) {
                    let (updates, rest) = data.split_at(run.len() * row_bytes);
                    update(table, run[0], updates);
                    data = rest;
                }
            } else {
                // Rows of a size that is no multiple of 8 are aligned as their elements are.
                for (&row, updates) in frame.rows().iter().zip(frame.data().chunks_exact(row_bytes)) {
                    let slot = table.slot(row);
                    update(table, slot, updates);
                }
            }
        }
    }

    /// If the global clock has advanced: answers reads, pushes rows, tells everyone, and writes a checkpoint if it is time.
    fn advance(&mut self) {
        let global = self.clients.iter().map(|client| client.clock).min().unwrap_or(0);
        if global == self.global {
            return;
        }
        self.global = global;
        while let Some(entry) = self.pending_reads.first_entry() {
            if *entry.key() > global {
                break;
            }
            for (client, frame) in entry.remove() {
                self.answer(client, &frame);
            }
        }
        self.push_changed();
        for client in 0..self.clients.len() {
            self.send_rows(client, Frame::new(Verb::Advanced));
        }
        if let Some(checkpoints) = &self.options.checkpoints
            && global != LEFT
            && global.is_multiple_of(checkpoints.every)
        {
            checkpoint::write_in_background(checkpoints, global, &self.options, (&self.tables, &self.pure));
        }
        self.pure.end(global);
    }

    /// Pushes the registered rows that changed; when all clients have left, nobody needs them.
    fn push_changed(&mut self) {
        if self.global == LEFT {
            return;
        }
        for number in 0..self.tables.len() {
            let changed = self.tables[number].take_changed();
            let table = &self.tables[number];
            for client in 0..self.clients.len() {
                let slots = changed.iter().filter(|&&slot| table.is_registered(slot, client));
                let rows = slots.map(|&slot| (table.row(slot), table.data(slot, 1)));
                frames(Verb::Rows, number as u32, rows).for_each(|frame| self.send_rows(client, frame));
            }
        }
    }

    fn barrier(&mut self, client: usize) {
        self.clients[client].in_barrier = true;
        if self.clients.iter().all(|client| client.in_barrier || client.clock == LEFT) {
            for client in 0..self.clients.len() {
                if std::mem::take(&mut self.clients[client].in_barrier) {
                    self.send(client, Frame::new(Verb::Barrier));
                }
            }
        }
    }

    fn extend_plan(&mut self, client: usize, frame: &Frame) -> Result<(), Error> {
        let (table, list) = (frame.header().table as usize, frame.header().flags as usize);
        self.descriptions.kind(table as u32)?;
        if list >= MAX_LISTS {
            return Err(Error::Refused(format!("a client has at most {MAX_LISTS} lists of rows for a table")));
        }
        let slots = frame.rows().iter().map(|&row| self.tables[table].slot(row));
        let lists = &mut self.clients[client].plans[table];
        lists.resize(lists.len().max(list + 1), Vec::new());
        lists[list].extend(slots);
        Ok(())
    }
}
