//! The servers of several processes as this one reaches them: row by row, by one client that asks for nothing beforehand.

use std::sync::Mutex;

use megagrid_partition::parallel::lock;

use super::table::Erased;
use crate::rows::Rows;
use crate::server::{Element, Options, Prefetch, Preset, Table};
use crate::store::{Client, Store, Tablets, TabletsClient, Usage};
use crate::{Error, Run, System};

pub(super) struct Servers {
    tablets: Tablets,
    /// Present once workers begin.
    client: Option<Mutex<TabletsClient>>,
}

impl Servers {
    pub fn new(run: &Run) -> Result<Self, Error> {
        if run.slack > 0 {
            let (system, advice) = (System::PsNaive.name(), "take a slack of 0, or one process");
            return Err(Error::Unsupported { system, what: "slack in several processes", advice });
        }
        let options = Options { prefetch: Prefetch::Off, ..Options::preset(Preset::LazyTable, 1, 0) };
        Ok(Self { tablets: Tablets::with(options, &run.processes), client: None })
    }

    pub fn table<T: Element>(&mut self, rows: usize, row_len: usize) -> Table<T> {
        self.tablets.table(rows, row_len)
    }

    pub fn set<T: Element>(&mut self, table: Table<T>, first: usize, values: &[T]) -> Result<(), Error> {
        self.tablets.set(table, first, values)
    }

    pub fn begin(&mut self) -> Result<(), Error> {
        self.client = self.tablets.clients()?.pop().map(Mutex::new);
        Ok(())
    }

    fn with_client<R>(&self, act: impl FnOnce(&mut TabletsClient) -> Result<R, Error>) -> Result<R, Error> {
        let client = self.client.as_ref().ok_or_else(|| Error::Options("workers have not begun".to_owned()))?;
        act(&mut lock(client))
    }

    /// Fetches a row with the changes of all clocks that this process has ended, by all processes.
    ///
    /// Whoever waits here holds up no thread of this process that others wait for: those have sent what they wait for.
    pub fn fetch<T: Element>(&self, table: Table<T>, row: usize) -> Result<Vec<T>, Error> {
        let mut values = vec![T::IDENTITY; table.row_len()];
        self.with_client(|client| client.read(table, row, &mut values))?;
        Ok(values)
    }

    /// Sends the logs of tables, as the process ends a clock.
    pub fn take_in(&self, tables: &[Box<dyn Erased>]) -> Result<(), Error> {
        self.with_client(|client| {
            tables.iter().try_for_each(|table| table.flush_to(client))?;
            client.clock()
        })
    }

    pub fn all<T: Element>(&self, table: Table<T>, rows: usize, clocks: u64) -> Result<Rows<T>, Error> {
        self.tablets.all(table, rows, clocks)
    }

    pub fn settle(&self) -> Result<(), Error> {
        self.tablets.settle()
    }

    pub fn usage(&self) -> Usage {
        self.tablets.usage()
    }
}
