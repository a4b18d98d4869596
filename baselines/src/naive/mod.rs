//! A parameter server as an application of Petuum 0.93 met it, written as simply as that was: rows in hash maps at the server
//! and in the process's cache, changes in a map of columns for each row, and the age of a row looked at for each access.
//!
//! Threads of the process share cache and log. A row that is too old is fetched; when the slowest worker ends a clock, the log goes to the
//! server. It shows what its papers' comparisons measured, and is never to be reported by itself. In one process nothing goes over a network: bytes
//! are counted as if it did, 8 a row and 8 an element (or its size) for changes, 16 a row for rows. Of several processes each has a server of
//! rows, and a client that fetches them one by one.

mod servers;
mod table;

use std::any::Any;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use megagrid_partition::parallel::lock;

use crate::rows::Rows;
use crate::server::{Element, Table, Tables};
use crate::store::{Client, Store, Usage};
use crate::{Error, Run};
use servers::Servers;
use table::{Erased, NaiveTable};

/// What all workers share.
struct Shared {
    tables: Vec<Box<dyn Erased>>,
    /// Clocks that each worker has ended.
    ended: Mutex<Vec<u64>>,
    advanced: Condvar,
    slack: u64,
    /// The servers of all processes; `None`: rows are here.
    servers: Option<Servers>,
}

pub struct Naive {
    handles: Tables,
    tables: Vec<Box<dyn Erased>>,
    /// Until workers begin.
    servers: Option<Servers>,
    shared: Option<Arc<Shared>>,
    workers: usize,
    slack: u64,
}

impl Naive {
    /// Makes a server without tables for some workers.
    pub fn new(run: &Run) -> Result<Self, Error> {
        let servers = (run.processes.count() > 1).then(|| Servers::new(run)).transpose()?;
        let (workers, slack) = (run.workers, run.slack);
        Ok(Self { handles: Tables::new(), tables: Vec::new(), servers, shared: None, workers, slack })
    }

    fn servers(&self) -> Option<&Servers> {
        self.shared.as_ref().map_or(self.servers.as_ref(), |shared| shared.servers.as_ref())
    }
}

impl Store for Naive {
    type Client = Access;

    fn table<T: Element>(&mut self, rows: usize, row_len: usize) -> Table<T> {
        let table = self.handles.add(row_len);
        self.tables.push(Box::new(NaiveTable::new(table)));
        // Both number tables from 0.
        self.servers.as_mut().map(|servers| servers.table::<T>(rows, row_len));
        table
    }

    fn set<T: Element>(&mut self, table: Table<T>, first: usize, values: &[T]) -> Result<(), Error> {
        if let Some(servers) = &mut self.servers {
            return servers.set(table, first, values);
        }
        let rows = values.chunks_exact(table.row_len()).enumerate();
        let of = find(&self.tables, table)?;
        rows.for_each(|(at, values)| of.set(first + at, values));
        Ok(())
    }

    fn all<T: Element>(&self, table: Table<T>, rows: usize, clocks: u64) -> Result<Rows<T>, Error> {
        if let Some(servers) = self.servers() {
            return servers.all(table, rows, clocks);
        }
        let tables = self.shared.as_ref().map_or(&self.tables, |shared| &shared.tables);
        Ok(find(tables, table)?.all(rows))
    }

    fn clients(&mut self) -> Result<Vec<Access>, Error> {
        if let Some(servers) = &mut self.servers {
            servers.begin()?;
        }
        let shared = Arc::new(Shared {
            tables: std::mem::take(&mut self.tables),
            ended: Mutex::new(vec![0; self.workers]),
            advanced: Condvar::new(),
            slack: self.slack,
            servers: self.servers.take(),
        });
        self.shared = Some(Arc::clone(&shared));
        let access = |worker| Access { shared: Arc::clone(&shared), worker, clock: 1, waited: Duration::ZERO };
        Ok((0..self.workers).map(access).collect())
    }

    fn settle(&self) -> Result<(), Error> {
        self.servers().map_or(Ok(()), Servers::settle)
    }

    fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.shared.iter().flat_map(|shared| &shared.tables).for_each(|table| table.add_to(&mut usage));
        match self.servers() {
            None => usage,
            // What it counts as sent went to the servers.
            Some(servers) => {
                let Usage { sent_bytes, messages, memory_bytes, .. } = servers.usage();
                Usage { sent_bytes, messages, memory_bytes: memory_bytes + usage.memory_bytes, ..usage }
            }
        }
    }
}

fn find<T: Element>(tables: &[Box<dyn Erased>], table: Table<T>) -> Result<&NaiveTable<T>, Error> {
    let found = tables.get(table.number() as usize).and_then(|table| (&**table as &dyn Any).downcast_ref());
    found.ok_or(Error::UnknownTable { table: table.number(), tables: tables.len() })
}

pub struct Access {
    shared: Arc<Shared>,
    worker: usize,
    clock: u64,
    waited: Duration,
}

impl Access {
    /// Waits until all workers have ended some clocks; returns how many they have.
    fn wait(&mut self, clocks: u64) -> u64 {
        let begin = Instant::now();
        let mut ended = lock(&self.shared.ended);
        let mut least = slowest(&ended);
        while least < clocks {
            ended = self.shared.advanced.wait(ended).unwrap_or_else(PoisonError::into_inner);
            least = slowest(&ended);
        }
        drop(ended);
        self.waited += begin.elapsed();
        least
    }
}

/// A worker that is gone, done or failed, is waited for no more.
impl Drop for Access {
    fn drop(&mut self) {
        lock(&self.shared.ended)[self.worker] = u64::MAX;
        self.shared.advanced.notify_all();
    }
}

fn slowest(ended: &[u64]) -> u64 {
    ended.iter().copied().min().unwrap_or(0)
}

impl Client for Access {
    fn read<T: Element>(&mut self, of: Table<T>, row: usize, into: &mut [T]) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let table = find(&shared.tables, of)?;
        let needed = (self.clock - 1).saturating_sub(shared.slack);
        while !table.read_cached(row, needed, self.clock, into) {
            let now = self.wait(needed);
            let Some(servers) = &shared.servers else {
                table.fetch(row, now);
                continue;
            };
            let begin = Instant::now();
            let values = servers.fetch(of, row)?;
            self.waited += begin.elapsed();
            table.keep(row, now, values);
        }
        Ok(())
    }

    fn update<T: Element>(&mut self, table: Table<T>, row: usize, by: &[T]) -> Result<(), Error> {
        find(&self.shared.tables, table)?.update(row, by);
        Ok(())
    }

    fn waited(&self) -> Duration {
        self.waited
    }

    fn clock(&mut self) -> Result<(), Error> {
        let mut ended = lock(&self.shared.ended);
        let before = slowest(&ended);
        ended[self.worker] = self.clock;
        if slowest(&ended) > before {
            let Shared { tables, servers, .. } = &*self.shared;
            match servers {
                None => tables.iter().for_each(|table| table.flush()),
                Some(servers) => servers.take_in(tables)?,
            }
            self.shared.advanced.notify_all();
        }
        self.clock += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_changes_are_read_at_once_and_those_of_others_after_the_clock() {
        let mut naive = Naive::new(&Run { workers: 2, slack: 1, ..Run::default() }).unwrap();
        let table = naive.table::<f64>(4, 2);
        let [mut a, mut b] = <[Access; 2]>::try_from(naive.clients().unwrap()).ok().unwrap();
        let mut row = [0.0; 2];
        a.update(table, 3, &[1.0, 2.0]).unwrap();
        a.read(table, 3, &mut row).unwrap();
        assert_eq!(row, [1.0, 2.0]);
        a.clock().unwrap();
        b.update(table, 3, &[10.0, 0.0]).unwrap();
        b.clock().unwrap();
        b.clock().unwrap();
        b.read(table, 3, &mut row).unwrap();
        assert_eq!(row, [11.0, 2.0]);
        let other = Tables::new().add::<f32>(2);
        assert!(a.read(other, 3, &mut [0.0; 2]).is_err());
        assert!(naive.usage().messages > 0);
    }

    #[test]
    fn no_change_of_many_workers_is_lost() {
        for slack in [0, 2] {
            let mut naive = Naive::new(&Run { workers: 8, slack, ..Run::default() }).unwrap();
            let table = naive.table::<i64>(3, 1);
            let clients = naive.clients().unwrap();
            std::thread::scope(|scope| {
                for mut client in clients {
                    scope.spawn(move || {
                        let mut row = [0];
                        for clock in 1..=50 {
                            client.read(table, clock % 3, &mut row).unwrap();
                            client.update(table, clock % 3, &[1_i64]).unwrap();
                            client.clock().unwrap();
                        }
                    });
                }
            });
            let total = naive.all(table, 3, 50).unwrap().items().iter().sum::<i64>();
            assert_eq!(total, 400);
            let least = naive.usage().staleness.keys().min().copied().unwrap();
            assert!(least >= -1 - slack as i64, "{least}");
        }
    }
}
