//! Connections to another process: one on which workers of this one ask and send updates, and one on which it answers.
//!
//! Whoever writes may wait until the other end reads. It does: a thread that takes rows in waits for nothing, and one that
//! serves waits only for such threads. So there is no circle.

use std::collections::BTreeMap;
use std::io::{self, BufReader, BufWriter};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use megagrid_partition::parallel::lock;

use super::frame::{Kind, Message, invalid};
use super::inbox::{Inboxes, Reader, Rows};
use super::tablets::{Ask, Tablets, Update};
use crate::table::{RowList, Table, TableId};

/// The sending end of a connection.
#[derive(Debug)]
pub(super) struct Link {
    to: Mutex<BufWriter<TcpStream>>,
    sent_bytes: AtomicU64,
}

impl Link {
    /// Takes a connection to send on.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(stream: &TcpStream) -> io::Result<Self> {
        // Messages are written whole, and somebody waits for each.
        stream.set_nodelay(true)?;
        Ok(Self { to: Mutex::new(BufWriter::new(stream.try_clone()?)), sent_bytes: AtomicU64::new(0) })
    }

    /// Sends a message.
    ///
    /// # Errors
    /// A connection that is closed.
    pub fn send(&self, message: Message, words: &[u32]) -> io::Result<()> {
        let bytes = message.write(&mut *lock(&self.to), words)?;
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the bytes that were sent.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }
}

impl Reader for Link {
    fn take(&self, worker: usize, rows: Rows) {
        let what = rows.included as usize;
        let message = Message { number: rows.staleness as u64, what, ..Message::new(Kind::Rows, worker) };
        // Whoever reads from the connection notices that it is closed.
        let _ = self.send(message, bytemuck::cast_slice(&rows.values));
    }
}

/// Takes in what a server answers, until it leaves.
///
/// # Errors
/// A connection that breaks, or brings what cannot be.
pub(super) fn receive(stream: &TcpStream, server: usize, inboxes: &Inboxes) -> io::Result<()> {
    let mut from = BufReader::new(stream);
    loop {
        let (Message { kind, worker, what, number }, words) = Message::read(&mut from)?;
        match kind {
            Kind::Rows => {
                let values = bytemuck::cast_vec(words);
                let rows = Rows { staleness: number as i64, included: what as u64, values };
                if !inboxes.put(worker, server, rows) {
                    return Err(invalid("rows for a worker of another process"));
                }
            }
            Kind::Leave => return Ok(()),
            _ => return Err(invalid("a question where there are answers")),
        }
    }
}

/// The workers of another process, as the server of this one knows them.
pub(super) struct Clients<'s> {
    pub tablets: &'s Tablets,
    /// The tables, with the rows that are here.
    pub tables: &'s [Table],
    /// Their numbers, and behind them that of the process.
    pub workers: Range<usize>,
    pub answers: Arc<Link>,
}

impl Clients<'_> {
    /// Serves them until their process leaves.
    ///
    /// # Errors
    /// A connection that breaks, or brings what cannot be.
    pub fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let mut from = BufReader::new(stream);
        let mut lists: BTreeMap<(usize, usize), RowList> = BTreeMap::new();
        let mut updates: BTreeMap<(usize, TableId), Vec<Update>> = BTreeMap::new();
        loop {
            let (Message { kind, worker, what, number }, words) = Message::read(&mut from)?;
            let is_worker = self.workers.contains(&worker) || kind == Kind::Flush && worker == self.workers.end;
            if !is_worker && kind != Kind::Leave {
                return Err(invalid("a message of a worker of another process"));
            }
            let list = || lists.get(&(worker, what)).cloned().ok_or_else(|| invalid("a list that was not declared"));
            match kind {
                Kind::List => {
                    let list = self.list(number, words)?;
                    lists.insert((worker, what), list);
                }
                Kind::Update => {
                    let list = list()?;
                    if words.len() != list.len() {
                        return Err(invalid("updates of another length than their list"));
                    }
                    let values = bytemuck::cast_vec(words);
                    updates.entry((worker, list.table)).or_default().push(Update { list, values });
                }
                Kind::Clock => {
                    let table = self.table(what as u64)?;
                    self.tablets.commit(worker, table, updates.remove(&(worker, table)).unwrap_or_default());
                }
                Kind::Read => {
                    let to = Arc::clone(&self.answers) as Arc<dyn Reader>;
                    self.tablets.ask(Ask { list: list()?, worker, clock: number, to });
                }
                Kind::Flush => self.answers.take(worker, Rows::default()),
                Kind::Leave => return Ok(()),
                Kind::Rows => return Err(invalid("an answer where there are questions")),
            }
        }
    }

    fn table(&self, number: u64) -> io::Result<TableId> {
        let table = usize::try_from(number).ok().filter(|&table| table < self.tables.len());
        table.map(TableId).ok_or_else(|| invalid("a table that there is not"))
    }

    fn list(&self, table: u64, keys: Vec<u32>) -> io::Result<RowList> {
        let id = self.table(table)?;
        let table = &self.tables[id.0];
        if keys.iter().any(|&key| key as usize >= table.rows) {
            return Err(invalid("a row that there is not"));
        }
        Ok(if keys.is_empty() { RowList::all(id, table) } else { RowList::listed(id, table, keys) })
    }
}
