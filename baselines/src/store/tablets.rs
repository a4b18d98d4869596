//! Tablet servers, one for each partition of the keys, and a client, all in this process, connected by TCP, over the loopback interface;
//! of several processes each has both, and every client is connected to every server.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Client, Store, Usage};
use crate::processes::Processes;
use crate::rows::Rows;
use crate::server::{
    self, Element, Gather, Options, Prefetch, ServerOptions, Statistics, Table, Tables, TabletServer, Worker,
};
use crate::{Error, Run, System};

/// A parameter server that is not naive.
pub struct Tablets {
    tables: Tables,
    row_bytes: Vec<u64>,
    num_rows: usize,
    options: Options,
    gather: Option<Gather>,
    /// Whether rows that workers name are requested before they are read.
    refreshes: bool,
    processes: Processes,
    /// The client first, so that it ends before the servers.
    running: Option<(server::Client, Vec<TabletServer>)>,
}

impl Tablets {
    pub fn new(system: System, run: &Run) -> Result<Self, Error> {
        let slack = u32::try_from(run.slack).map_err(|_| Error::Setting {
            name: "slack",
            found: run.slack,
            expected: "less than 2^32",
        })?;
        let gather = Some(if system == System::IterStore { run.gather } else { Gather::Real });
        let mut options = Options::preset(system.name().parse()?, run.workers, slack);
        options.specializations.placement &= run.placement;
        options.cached_rows = run.cached_rows;
        if !run.prefetch {
            options.prefetch = Prefetch::Off;
        }
        if system == System::IterStore {
            // Section 4.5: half as many as threads.
            options.partitions = (run.workers / 2).max(1);
        }
        let refreshes = options.prefetch != Prefetch::Off;
        Ok(Self { gather, refreshes, ..Self::with(options, &run.processes) })
    }

    /// Says that each clock accesses other rows than the one before, and other ones in each iteration: there is nothing to record, and
    /// rows are requested before they are read only where workers name them.
    pub fn without_pattern(mut self) -> Self {
        (self.options.prefetch, self.gather) = (Prefetch::Off, None);
        self
    }

    /// Makes a server without tables, whose clients have these options, but for their numbers, which processes decide, and gather nothing.
    pub fn with(options: Options, processes: &Processes) -> Self {
        let (client, clients) = (processes.number(), processes.count());
        let options = Options { client, clients, own_server: client, ..options };
        let (tables, row_bytes, processes) = (Tables::new(), Vec::new(), processes.clone());
        Self { tables, row_bytes, num_rows: 0, options, gather: None, refreshes: false, processes, running: None }
    }

    /// Starts servers and client, once all tables are there. All processes do so together.
    fn running(&mut self) -> Result<&server::Client, Error> {
        if self.running.is_none() {
            let Options { client, clients, partitions, .. } = self.options;
            let start = |partition: usize| {
                let options = ServerOptions::new(client * partitions + partition, clients * partitions, clients);
                let address = (self.processes.host(), 0);
                TabletServer::start(address, &self.tables, ServerOptions { partitions, ..options })
            };
            let servers = (0..partitions).map(start).collect::<Result<Vec<_>, _>>()?;
            let mine: Vec<SocketAddr> = servers.iter().map(TabletServer::address).collect();
            let addresses = self.processes.gather(mine)?.concat();
            let client = server::Client::connect(&addresses, &self.tables, self.options.clone())?;
            self.running = Some((client, servers));
        }
        self.running.as_ref().map(|(client, _)| client).ok_or(Error::Options("nothing runs".to_owned()))
    }
}

/// Tells the number of a row as servers do.
fn number(row: usize) -> Result<u32, Error> {
    u32::try_from(row).map_err(|_| Error::Setting { name: "row", found: row as u64, expected: "less than 2^32" })
}

impl Store for Tablets {
    type Client = Access;

    fn table<T: Element>(&mut self, rows: usize, row_len: usize) -> Table<T> {
        self.num_rows += rows;
        self.row_bytes.push((rows * row_len * size_of::<T>()) as u64);
        self.tables.add(row_len)
    }

    fn gather(&self) -> Option<Gather> {
        self.gather
    }

    fn set<T: Element>(&mut self, table: Table<T>, first: usize, values: &[T]) -> Result<(), Error> {
        // Each process sends its share of the rows: of N processes every Nth.
        let (own, all) = (self.processes.number(), self.processes.count());
        let shared = values.chunks_exact(table.row_len()).zip(first..).skip(own).step_by(all);
        let (mut rows, mut mine) = (Vec::new(), Vec::new());
        for (values, row) in shared {
            rows.push(number(row)?);
            mine.extend_from_slice(values);
        }
        self.running()?.store(table, &rows, &mine)
    }

    fn clients(&mut self) -> Result<Vec<Access>, Error> {
        let (slack, refreshes) = (self.options.slack, self.refreshes);
        let client = self.running()?;
        // Then the first values of all processes are there.
        client.barrier()?;
        Ok(client.workers().into_iter().map(|worker| Access { worker, slack, refreshes }).collect())
    }

    fn all<T: Element>(&self, table: Table<T>, rows: usize, clocks: u64) -> Result<Rows<T>, Error> {
        let mut all = Rows::zeros(rows, table.row_len());
        if let Some((client, _)) = &self.running {
            let found = client.read_table(table, clocks as u32)?;
            for (&row, values) in found.rows.iter().zip(found.values.chunks_exact(table.row_len())) {
                all.row_mut(row as usize).copy_from_slice(values);
            }
        }
        Ok(all)
    }

    fn settle(&self) -> Result<(), Error> {
        self.running.as_ref().map_or(Ok(()), |(client, _)| client.barrier())
    }

    fn usage(&self) -> Usage {
        let of_client = self.running.as_ref().map(|(client, _)| client.statistics()).unwrap_or_default();
        let Statistics { sent_bytes, received_bytes, sent_messages, received_messages, staleness, .. } = of_client;
        let is_only = self.processes.count() == 1;
        let rows = self.row_bytes.iter().sum::<u64>();
        let bounded = self.running.as_ref().filter(|_| self.options.cached_rows.is_some());
        let cached = bounded.map_or(1.0, |(client, _)| client.cached_rows() as f64 / self.num_rows.max(1) as f64);
        Usage {
            sent_bytes: sent_bytes + received_bytes - if is_only { 0 } else { of_client.own_server_bytes },
            messages: sent_messages + received_messages - if is_only { 0 } else { of_client.own_server_messages },
            // Rows at the server, which has a part of them, in the process's cache, in its log, and in threads' caches.
            memory_bytes: rows / self.processes.count() as u64
                + (2.0 * cached * rows as f64) as u64
                + of_client.thread_cache_bytes,
            staleness: staleness.into_iter().enumerate().map(|(behind, reads)| (-1 - behind as i64, reads)).collect(),
        }
    }
}

pub struct Access {
    worker: Worker,
    slack: u32,
    refreshes: bool,
}

impl Client for Access {
    #[inline]
    fn read<T: Element>(&mut self, table: Table<T>, row: usize, into: &mut [T]) -> Result<(), Error> {
        into.copy_from_slice(self.worker.read(table, row as u32, self.slack)?);
        Ok(())
    }

    fn refresh<T: Element>(&mut self, table: Table<T>, rows: &[u32]) -> Result<(), Error> {
        if self.refreshes { self.worker.refresh_rows(table, rows, self.slack) } else { Ok(()) }
    }

    #[inline]
    fn update<T: Element>(&mut self, table: Table<T>, row: usize, by: &[T]) -> Result<(), Error> {
        self.worker.update(table, row as u32, by)
    }

    fn waited(&self) -> Duration {
        self.worker.waited()
    }

    fn start_gather(&mut self, how: Gather) {
        self.worker.start_gather(how);
    }

    fn finish_gather(&mut self) -> Result<(), Error> {
        self.worker.finish_gather()
    }

    fn clock(&mut self) -> Result<(), Error> {
        self.worker.clock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The row that one worker waits for is on its way, in a version that cannot be before the other has read it and moved on.
    #[test]
    fn a_reader_ahead_does_not_hold_up_one_behind() {
        for system in [System::LazyTable, System::Essp, System::IterStore] {
            let mut store = Tablets::new(system, &Run { workers: 2, slack: 1, ..Run::default() }).unwrap();
            let table = store.table::<f64>(1, 1);
            store.set(table, 0, &[1.0]).unwrap();
            let Ok([mut ahead, mut behind]) = <[Access; 2]>::try_from(store.clients().unwrap()) else { panic!("two") };
            ahead.update(table, 0, &[1.0]).unwrap();
            ahead.clock().unwrap();
            ahead.clock().unwrap();
            std::thread::scope(|scope| {
                let reader = scope.spawn(move || {
                    let mut row = [0.0];
                    ahead.read(table, 0, &mut row).map(|()| row[0])
                });
                std::thread::sleep(Duration::from_millis(50));
                let mut row = [0.0];
                behind.read(table, 0, &mut row).unwrap();
                behind.update(table, 0, &[10.0]).unwrap();
                behind.clock().unwrap();
                assert_eq!(reader.join().unwrap().unwrap(), 12.0, "{system}");
            });
        }
    }

    #[test]
    fn rows_in_the_caches_of_threads_are_counted() {
        let memory_bytes = |system| {
            let mut store = Tablets::new(system, &Run::default()).unwrap();
            let table = store.table::<f64>(10, 3);
            let [access] = &mut store.clients().unwrap()[..] else { panic!("one") };
            access.start_gather(Gather::Virtual);
            let iterate = |access: &mut Access| {
                // Often enough that it is worth a place in the cache.
                for row in (0..10).flat_map(|row| [row; 10]) {
                    access.read(table, row, &mut [0.0; 3]).unwrap();
                    access.update(table, row, &[1.0; 3]).unwrap();
                }
                access.clock().unwrap();
            };
            iterate(access);
            access.finish_gather().unwrap();
            iterate(access);
            store.usage().memory_bytes
        };
        // Of each row two words, values and updates.
        assert_eq!(memory_bytes(System::IterStore), memory_bytes(System::LazyTable) + 10 * (16 + 2 * 24));
    }
}
