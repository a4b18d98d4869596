//! The parameter server: of each table every process has some rows, in tablets on its host (section 4.3.2), and workers
//! read and update the rows of all.
//!
//! Lists of rows are known before the first iteration, so each server is told once which of its rows are in them.
//! Afterwards a message has the number of the list and values.

mod division;
mod failure;
mod frame;
mod inbox;
mod link;
mod tablets;

use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

pub(crate) use division::{Division, rows_of};
use failure::Failure;
use frame::{Kind, Message};
use inbox::{Inboxes, Reader, Rows};
use link::{Clients, Link};
use megagrid_partition::parallel::lock;
pub use tablets::Consistency;
use tablets::{Ask, Tablets, Update};

use crate::Error;
use crate::processes::Processes;
use crate::table::{RowList, RowsId, Table, TableId, Tables};

/// What a worker has read.
#[derive(Debug)]
pub(crate) struct Found {
    /// The different rows, ascending.
    pub distinct: Vec<f32>,
    /// Of each part of the list, how many clocks of the worker have their updates in it.
    pub included: Vec<u64>,
}

/// The servers of all processes, as the workers of this one see them.
#[derive(Debug)]
pub struct Servers {
    tables: Tables,
    /// This process, and how many there are.
    own: usize,
    processes: usize,
    /// Workers of all processes.
    workers: usize,
    tablets: Arc<Tablets>,
    inboxes: Arc<Inboxes>,
    failure: Arc<Failure>,
    /// Where workers ask each other server, and where its workers are answered: `None` for this process.
    links: Vec<Option<[Arc<Link>; 2]>>,
    threads: Vec<JoinHandle<()>>,
    /// How often data of each age, minus the reader's clock, was read by this process's workers; −1 is fresh.
    staleness: Mutex<BTreeMap<i64, u64>>,
}

impl Servers {
    /// Makes servers whose tables are zeros, for as many workers in each process, and connects to the others.
    ///
    /// # Errors
    /// Tables that this machine has no memory for; a process that is lost.
    pub fn new(
        tables: Tables,
        workers: usize,
        consistency: Consistency,
        others: &dyn Processes,
    ) -> Result<Self, Error> {
        let (own, processes) = (others.process(), others.processes());
        let part = |table: &Table| Table { rows: rows_of(table.rows, own, processes).len(), ..table.clone() };
        let parts: Vec<Table> = tables.iter().map(|(_, table)| part(table)).collect();
        let tablets = Arc::new(Tablets::new(parts.iter().map(Table::len), workers, consistency)?);
        let per_process = workers / processes;
        let inboxes = Arc::new(Inboxes::new(own, processes, per_process));
        let streams = connections(others)?;
        let all = streams.iter().flatten().flatten();
        let clones = all.map(TcpStream::try_clone).collect::<io::Result<_>>().map_err(|error| lost(own, &error))?;
        let failure = Arc::new(Failure::new(Arc::clone(&inboxes), clones));
        let (links, threads, staleness) = (Vec::new(), Vec::new(), Mutex::default());
        let mut servers =
            Self { tables, own, processes, workers, tablets, inboxes, failure, links, threads, staleness };
        for (process, streams) in streams.into_iter().enumerate() {
            let link = streams.map(|streams| servers.connect(process, streams, &parts, per_process)).transpose();
            let link = link.inspect_err(|error| servers.fail(error.clone()))?;
            servers.links.push(link);
        }
        Ok(servers)
    }

    /// Starts the threads of the connections to a process.
    fn connect(
        &mut self,
        process: usize,
        [asking, answering]: [TcpStream; 2],
        tables: &[Table],
        workers: usize,
    ) -> Result<[Arc<Link>; 2], Error> {
        let link = |stream: &TcpStream| Link::new(stream).map(Arc::new).map_err(|error| lost(process, &error));
        let (questions, answers) = (link(&asking)?, link(&answering)?);
        let inboxes = Arc::clone(&self.inboxes);
        self.start(process, "receives", move || link::receive(&asking, process, &inboxes))?;
        let (tablets, tables, to) = (Arc::clone(&self.tablets), tables.to_vec(), Arc::clone(&answers));
        let workers = process * workers..(process + 1) * workers;
        self.start(process, "serves", move || {
            Clients { tablets: &tablets, tables: &tables, workers, answers: to }.serve(&answering)
        })?;
        Ok([questions, answers])
    }

    /// Starts a thread of a connection. Whatever ends it early ends the run.
    fn start(
        &mut self,
        process: usize,
        does: &str,
        run: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<(), Error> {
        let failure = Arc::clone(&self.failure);
        let watched = move || match std::panic::catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failure.set(lost(process, &error)),
            Err(_) => failure.set(Error::Process { process, problem: "a thread of it panicked".to_owned() }),
        };
        let thread = std::thread::Builder::new().name(format!("geeps-{does}-{process}")).spawn(watched);
        self.threads.push(thread.map_err(|error| Error::Thread { reason: error.to_string() })?);
        Ok(())
    }

    /// Returns the tables.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns how fresh the parameters are that workers read.
    pub(crate) fn consistency(&self) -> Consistency {
        self.tablets.consistency
    }

    /// Returns how many servers there are: one in each process.
    pub(crate) fn processes(&self) -> usize {
        self.processes
    }

    /// Returns how many workers there are, in all processes.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Returns how many of them are in this process.
    #[must_use]
    pub fn workers_here(&self) -> usize {
        self.workers / self.processes
    }

    /// Sets the first values of a table, before any worker reads: those of the rows that are here.
    ///
    /// # Errors
    /// Another number of values than the table has.
    pub fn set(&self, table: TableId, values: &[f32]) -> Result<(), Error> {
        let of = self.tables.get(table);
        if values.len() != of.len() {
            return Err(Error::TableLength { table: of.name.clone(), found: values.len(), expected: of.len() });
        }
        let rows = rows_of(of.rows, self.own, self.processes);
        self.tablets.set(table, &values[rows.start * of.width..rows.end * of.width]);
        Ok(())
    }

    /// Returns of each table the values of the rows that are here, with all that has been added.
    #[must_use]
    pub fn values(&self) -> Vec<Vec<f32>> {
        self.tablets.values()
    }

    /// Returns how often data of each age, minus the reader's clock, was read by the workers of this process; −1 is fresh.
    #[must_use]
    pub fn staleness(&self) -> BTreeMap<i64, u64> {
        lock(&self.staleness).clone()
    }

    /// Returns the bytes of rows that were read here by workers of all processes, and of their updates.
    #[must_use]
    pub fn served_bytes(&self) -> u64 {
        self.tablets.bytes()
    }

    /// Returns the bytes that were sent to each process.
    #[must_use]
    pub fn sent_bytes(&self) -> Vec<u64> {
        let of = |link: &Option<[Arc<Link>; 2]>| link.iter().flatten().map(|link| link.sent_bytes()).sum();
        self.links.iter().map(of).collect()
    }

    /// Ends the run of all workers. The first reason counts.
    pub fn fail(&self, error: Error) {
        self.failure.set(error);
    }

    /// Returns why the run has ended, if it has failed.
    #[must_use]
    pub fn failure(&self) -> Option<Error> {
        self.failure.get()
    }

    /// Wakes those who wait, so that they look whether they still have to.
    pub(crate) fn wake(&self) {
        self.inboxes.wake();
    }

    /// Divides the different rows of a worker's lists, and tells other servers which of theirs are among them.
    ///
    /// # Errors
    /// A process that is lost.
    pub(crate) fn declare(&self, worker: usize, lists: &[RowList]) -> Result<Vec<Division>, Error> {
        let divide = |(number, list): (usize, &RowList)| {
            let division = Division::new(&list.different(), self.tables.get(list.table), self.processes);
            for part in division.parts() {
                let keys = part.list.index().map_or(&[][..], |index| index.keys());
                let table = part.list.table.0 as u64;
                let message = Message { what: number, number: table, ..Message::new(Kind::List, worker) };
                self.send(part.server, message, keys)?;
            }
            Ok(division)
        };
        lists.iter().enumerate().map(divide).collect()
    }

    /// Sends a message to the server of another process; for this one's there is nothing to do.
    fn send(&self, server: usize, message: Message, words: &[u32]) -> Result<(), Error> {
        let Some([link, _]) = &self.links[server] else { return Ok(()) };
        // Where the run has failed, the connection is closed for that.
        link.send(message, words).map_err(|error| self.failure().unwrap_or_else(|| lost(server, &error)))
    }

    /// Returns the different rows of a list to a worker that has ended `clock` clocks of their table, when they are fresh enough; `None`:
    /// `may_stop` said so before.
    ///
    /// # Errors
    /// A run that has failed.
    pub(crate) fn read(
        &self,
        worker: usize,
        (rows, division): (RowsId, &Division),
        clock: u64,
        may_stop: impl Fn() -> bool,
    ) -> Result<Option<Found>, Error> {
        for part in division.parts() {
            if part.server == self.own {
                let to = Arc::clone(&self.inboxes) as Arc<dyn Reader>;
                self.tablets.ask(Ask { list: part.list.clone(), worker, clock, to });
            } else {
                let message = Message { what: rows.0, number: clock, ..Message::new(Kind::Read, worker) };
                self.send(part.server, message, &[])?;
            }
        }
        let servers = division.parts().iter().map(|part| part.server);
        let stops = || self.failure().map_or_else(|| Ok(may_stop()), Err);
        let Some(mut answers) = self.inboxes.wait(worker, servers, stops)? else { return Ok(None) };
        if let Some(oldest) = answers.iter().map(|rows| rows.staleness).min() {
            *lock(&self.staleness).entry(oldest).or_insert(0) += 1;
        }
        let lens = division.parts().iter().map(|part| part.list.distinct * part.list.width);
        if !answers.iter().map(|rows| rows.values.len()).eq(lens) {
            return Err(Error::Process { process: self.own, problem: "rows of another length came".to_owned() });
        }
        let included = answers.iter().map(|rows| rows.included).collect();
        let distinct = match &mut answers[..] {
            [Rows { values, .. }] => std::mem::take(values),
            all => all.iter().flat_map(|rows| &rows.values).copied().collect(),
        };
        Ok(Some(Found { distinct, included }))
    }

    /// Ends a clock of a worker on a table, with its updates.
    ///
    /// # Errors
    /// A process that is lost.
    pub(crate) fn commit<'d>(
        &self,
        worker: usize,
        table: TableId,
        updates: impl Iterator<Item = (RowsId, &'d Division, Vec<f32>)>,
    ) -> Result<(), Error> {
        let mut own = Vec::new();
        for (rows, division, values) in updates {
            for (part, values) in division.divide(values) {
                if part.server == self.own {
                    own.push(Update { list: part.list.clone(), values });
                } else {
                    let message = Message { what: rows.0, ..Message::new(Kind::Update, worker) };
                    self.send(part.server, message, bytemuck::cast_slice(&values))?;
                }
            }
        }
        for server in 0..self.processes {
            self.send(server, Message { what: table.0, ..Message::new(Kind::Clock, worker) }, &[])?;
        }
        self.tablets.commit(worker, table, own);
        Ok(())
    }

    /// Waits until all servers have taken in what the workers of this process have committed.
    ///
    /// # Errors
    /// A run that has failed.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        let reader = self.inboxes.of_process();
        for server in 0..self.processes {
            self.send(server, Message::new(Kind::Flush, reader), &[])?;
        }
        let others = (0..self.processes).filter(|&server| server != self.own);
        self.inboxes.wait(reader, others, || self.failure().map_or(Ok(false), Err))?;
        Ok(())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for link in self.links.iter().flatten().flatten() {
            // Where the run has failed, connections are closed.
            let _ = link.send(Message::new(Kind::Leave, 0), &[]);
        }
        for thread in self.threads.drain(..) {
            // It has said what went wrong.
            let _ = thread.join();
        }
    }
}

/// Returns the connections to each other process: where this one asks, and where it answers.
fn connections(others: &dyn Processes) -> Result<Vec<Option<[TcpStream; 2]>>, Error> {
    if others.processes() == 1 {
        return Ok(vec![None]);
    }
    let (one, two) = (others.sockets()?, others.sockets()?);
    // On the first ones the process of the lower number asks.
    let pair = |(process, (one, two)): (usize, (Option<TcpStream>, Option<TcpStream>))| {
        let (one, two) = one.zip(two)?;
        Some(if others.process() < process { [one, two] } else { [two, one] })
    };
    Ok(one.into_iter().zip(two).enumerate().map(pair).collect())
}

fn lost(process: usize, error: &io::Error) -> Error {
    let problem = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the connection is closed".to_owned(),
        _ => error.to_string(),
    };
    Error::Process { process, problem }
}
