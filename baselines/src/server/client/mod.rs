//! The client library: one [`Client`] in each process, and one [`Worker`] for each of its threads.

mod block;
mod dynamic;
mod fixed;
mod gather;
mod index;
mod key;
mod links;
mod receive;
mod requests;
mod shared;
mod signal;
mod specialize;
mod thread_cache;
mod worker;

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use megagrid_partition::parallel::lock;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::element::{Element, Table, Tables};
use super::frame::{Frame, Verb};
use super::link::{Counters, heartbeat, prepare, write_frames};
use super::numa;
use super::options::{Options, check_shape};
use super::statistics::Statistics;
use super::tablet::runtime;
use crate::Error;
use key::Key;
use links::{Link, Links};
use shared::Shared;

pub use gather::Gather;
pub use worker::Worker;

/// How long a client waits for servers that have not started yet.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// How long the last messages may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// A process's connection to the tablet servers, and its process cache.
///
/// Drop it after its workers. Not to be dropped, or called, in an asynchronous context.
#[derive(Debug)]
pub struct Client {
    shared: Arc<Shared>,
    workers: Mutex<Vec<Option<Worker>>>,
    writers: Vec<JoinHandle<()>>,
    /// By partition: what pushes updates to its servers, and pulls rows from them, in a thread of its own.
    runtimes: Vec<Runtime>,
}

/// The rows of a table that exist, in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRows<T> {
    /// Their numbers.
    pub rows: Vec<u32>,
    /// Their values, one row after the other.
    pub values: Vec<T>,
}

/// A connection that a server has welcomed.
struct Welcomed {
    link: Link,
    reader: OwnedReadHalf,
    writer: JoinHandle<()>,
    clock: u32,
    placed: Vec<Frame>,
}

impl Client {
    /// Connects to all tablet servers, in the order of their numbers, and waits a few seconds for those that have not
    /// started.
    ///
    /// # Errors
    /// If a server is not there, or refuses: it has other tables, another version or another number of clients, or this
    /// client's number is taken.
    pub fn connect<A: ToSocketAddrs>(servers: &[A], tables: &Tables, options: Options) -> Result<Self, Error> {
        let Options { threads, own_server, partitions, .. } = options;
        if threads == 0 || partitions == 0 || own_server * partitions >= servers.len() {
            let given = format!(
                "{threads} threads, {partitions} partitions and {} servers, of which {own_server} is the own one",
                servers.len()
            );
            return Err(Error::Options(format!("{given}; there is at least one of each")));
        }
        check_shape(servers.len(), partitions, options.max_frame_bytes)?;
        if options.cached_rows.is_some() && (options.push || options.specializations.static_structures) {
            let why = "a bound on cached rows is for rows that are pulled, without static structures";
            return Err(Error::Options(why.to_owned()));
        }
        let runtimes: Vec<Runtime> = (0..partitions)
            .map(|partition| runtime("parameter-client", partition, partitions))
            .collect::<Result<_, _>>()?;
        let (mut links, mut readers, mut writers) = (Vec::new(), Vec::new(), Vec::new());
        let (mut clock, mut placed) = (None, Vec::new());
        for (number, server) in servers.iter().enumerate() {
            let address = server.to_socket_addrs().map_err(Error::io("the address of a tablet server"))?.next();
            let address = address.ok_or_else(|| Error::Options("a server's name has no address".into()))?;
            let welcomed = runtimes[number % partitions].block_on(join(address, tables, &options, number))?;
            let (first, its) = (*clock.get_or_insert(welcomed.clock), welcomed.clock);
            if its != first {
                let clocks = format!("server 0 is at clock {first} and server {number} at {its}");
                return Err(Error::Options(format!("{clocks}; resume all from one clock")));
            }
            links.push(welcomed.link);
            readers.push(welcomed.reader);
            writers.push(welcomed.writer);
            placed.extend(welcomed.placed);
        }
        let clock = clock.unwrap_or(0);
        let links = Links::new(links, options.push);
        for frame in &placed {
            links.place(frame);
        }
        let shared = Arc::new(Shared::new(options, tables.clone(), links, clock));
        for (server, reader) in readers.into_iter().enumerate() {
            runtimes[server % partitions].spawn(receive::receive(shared.clone(), server, reader));
        }
        let workers = (0..threads).map(|thread| Some(Worker::new(shared.clone(), thread, clock))).collect();
        Ok(Self { shared, workers: Mutex::new(workers), writers, runtimes })
    }

    /// Returns how many rows the process caches now, without those of static structures.
    pub fn cached_rows(&self) -> usize {
        self.shared.dynamic.rows()
    }

    /// Returns the worker of a thread, once. A worker that is not taken leaves the run with the client.
    ///
    /// # Errors
    /// If there is no such thread, or its worker was taken.
    pub fn worker(&self, thread: usize) -> Result<Worker, Error> {
        let taken = lock(&self.workers).get_mut(thread).and_then(Option::take);
        let threads = self.shared.options.threads;
        taken
            .ok_or_else(|| Error::Options(format!("the worker of thread {thread} of {threads} is taken, or not there")))
    }

    /// Returns the workers that have not been taken, in the order of threads.
    pub fn workers(&self) -> Vec<Worker> {
        lock(&self.workers).iter_mut().filter_map(Option::take).collect()
    }

    /// Sets rows to values, before training; `values` has one row after the other. This process's reads see them from now
    /// on, other processes' after a [`Client::barrier`].
    ///
    /// # Errors
    /// If the table is not of this job or there are not as many values as the rows have.
    pub fn store<T: Element>(&self, table: Table<T>, rows: &[u32], values: &[T]) -> Result<(), Error> {
        self.shared.check()?;
        let kind = self.shared.tables.check(table)?;
        if rows.len() * kind.row_len != values.len() {
            let (row_len, rows, found) = (kind.row_len, rows.len(), values.len());
            return Err(Error::RowLength { table: table.number(), row_len, rows, found });
        }
        let mut batches = self.shared.links.batches(Verb::Store, &self.shared.tables);
        for (&row, value) in rows.iter().zip(values.chunks_exact(kind.row_len)) {
            let key = Key::new(table.number(), row);
            batches.push(self.shared.links.server(key), key, bytemuck::cast_slice(value));
        }
        batches.finish();
        Ok(())
    }

    /// Waits until all client processes have called this; the servers have then taken in all that was sent before.
    ///
    /// # Errors
    /// If the run has ended.
    pub fn barrier(&self) -> Result<(), Error> {
        self.shared.ask(|| Frame::new(Verb::Barrier)).map(|_| ())
    }

    /// Returns the rows of a table with all updates of clocks before `version`; waits until these are there.
    ///
    /// # Errors
    /// If the table is not of this job or the run has ended.
    pub fn read_table<T: Element>(&self, table: Table<T>, version: u32) -> Result<TableRows<T>, Error> {
        let kind = self.shared.tables.check(table)?;
        let ask = || Frame::new(Verb::Dump).set(|header| (header.table, header.version) = (table.number(), version));
        let frames = self.shared.ask(ask)?;
        let rows = frames.iter().flat_map(|frame| frame.rows().iter().zip(frame.data().chunks_exact(kind.row_bytes)));
        let mut rows: Vec<(u32, &[u8])> = rows.map(|(&row, value)| (row, value)).collect();
        rows.sort_unstable_by_key(|row| row.0);
        let values = rows.iter().flat_map(|row| bytemuck::cast_slice::<u8, T>(row.1)).copied().collect();
        Ok(TableRows { rows: rows.iter().map(|row| row.0).collect(), values })
    }

    /// Tells what NUMA placement can do on this machine.
    pub fn numa_nodes() -> String {
        match numa::nodes().len() {
            0 | 1 => "one NUMA node: not measurable".to_owned(),
            nodes => format!("{nodes} NUMA nodes, threads are bound to them in turn"),
        }
    }

    /// Returns what this process has counted; a worker's counts are added when it ends a clock.
    pub fn statistics(&self) -> Statistics {
        let mut sum = lock(&self.shared.statistics).clone();
        for (server, link) in self.shared.links.all.iter().enumerate() {
            let counters = &link.counters;
            let (sent, received) =
                (counters.sent_bytes.load(Ordering::Relaxed), counters.received_bytes.load(Ordering::Relaxed));
            let sent_messages = counters.sent_messages.load(Ordering::Relaxed);
            let received_messages = counters.received_messages.load(Ordering::Relaxed);
            sum.sent_bytes += sent;
            sum.received_bytes += received;
            sum.sent_messages += sent_messages;
            sum.received_messages += received_messages;
            if server / self.shared.options.partitions == self.shared.options.own_server {
                sum.own_server_bytes += sent + received;
                sum.own_server_messages += sent_messages + received_messages;
            }
        }
        sum
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Workers that were not taken leave here, so that nobody waits for them.
        lock(&self.workers).clear();
        for link in self.shared.links.all.iter() {
            lock(&link.outbox).take();
        }
        let partitions = self.runtimes.len();
        for (server, writer) in self.writers.drain(..).enumerate() {
            // What is not sent by then is lost: the server reads no more.
            let _ = self.runtimes[server % partitions].block_on(async { timeout(FAREWELL, writer).await });
        }
        self.runtimes.drain(..).for_each(|runtime| runtime.shutdown_timeout(Duration::from_secs(1)));
        self.shared.fail(Error::Options("the client is closed; drop workers before it".into()));
    }
}

/// Connects to one server and says who this is, and which server of the same partition is on its machine.
async fn join(address: SocketAddr, tables: &Tables, options: &Options, server: usize) -> Result<Welcomed, Error> {
    let begin = Instant::now();
    let stream = loop {
        match TcpStream::connect(address).await {
            Ok(stream) => break stream,
            Err(_) if begin.elapsed() < CONNECT_PATIENCE => sleep(Duration::from_millis(50)).await,
            Err(error) => return Err(Error::io(format!("tablet server {address}"))(error)),
        }
    };
    prepare(&stream).map_err(Error::io(address))?;
    let (mut reader, writer) = stream.into_split();
    let counters = Arc::new(Counters::default());
    let (outbox, frames) = mpsc::unbounded_channel();
    let writer = tokio::spawn(write_frames(writer, frames, counters.clone()));
    tokio::spawn(heartbeat(outbox.downgrade()));
    let hello = Frame::with_rows(Verb::Hello, tables.len() as u32, &[], tables.descriptions().as_bytes());
    let hello = hello.set(|header| {
        (header.clock, header.first) = (options.client as u32, options.clients as u32);
        header.version = (options.own_server * options.partitions + server % options.partitions) as u32;
    });
    // A connection that closes is noticed by reading from it.
    let _ = outbox.send(hello);
    let peer = format!("tablet server {address}");
    let closed = || Error::Refused(format!("{peer} closed the connection"));
    let mut placed = Vec::new();
    let clock = loop {
        let read = timeout(options.patience, Frame::read(&mut reader, &peer, options.max_frame_bytes));
        let frame = read.await.map_err(|_| closed())??.ok_or_else(closed)?;
        match frame.verb() {
            Verb::Welcome => break frame.header().version,
            Verb::Placed => placed.push(frame),
            Verb::Refused => return Err(Error::Refused(frame.text())),
            _ => {}
        }
    };
    let (global, confirmed) = (AtomicU32::new(clock), AtomicU32::new(clock));
    let link = Link { outbox: Mutex::new(Some(outbox)), counters, global, confirmed };
    Ok(Welcomed { link, reader, writer, clock, placed })
}
