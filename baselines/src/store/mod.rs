//! What applications ask of a parameter server, whichever it is: the algorithms are written against this.

mod tablets;

use std::collections::BTreeMap;
use std::time::Duration;

pub use tablets::{Access as TabletsClient, Tablets};

use crate::Error;
use crate::rows::Rows;
use crate::server::{Element, Gather, Table};

/// One worker's access to the tables of a job.
///
/// A worker at clock c, the first of which is 1, reads all updates of clocks up to c − 1 − slack by all workers, and all its own.
pub trait Client: Send {
    fn read<T: Element>(&mut self, table: Table<T>, row: usize, into: &mut [T]) -> Result<(), Error>;

    /// Says which rows are read next, in this clock: a system that fetches rows may ask for all of them at once. Does not wait.
    fn refresh<T: Element>(&mut self, _: Table<T>, _: &[u32]) -> Result<(), Error> {
        Ok(())
    }

    /// Updates a row; numbers are added.
    fn update<T: Element>(&mut self, table: Table<T>, row: usize, by: &[T]) -> Result<(), Error>;

    /// Begins to record accesses: what is done from now on, later iterations will do too. All workers do so where the server says how
    /// ([`Store::gather`]).
    fn start_gather(&mut self, _: Gather) {}

    fn finish_gather(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns how long this worker has waited for rows so far.
    fn waited(&self) -> Duration;

    /// Ends a clock of this worker.
    fn clock(&mut self) -> Result<(), Error>;
}

/// What a parameter server's tables and traffic were, as this process knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Of several processes, those between a client and servers of others; likewise messages.
    pub sent_bytes: u64,
    pub messages: u64,
    /// Bytes of rows, caches and logs.
    pub memory_bytes: u64,
    /// How often data of each age, minus the reader's clock, was read.
    pub staleness: BTreeMap<i64, u64>,
}

/// A parameter server with the clients of this process. Rows have numbers from 0.
pub trait Store: Sized {
    type Client: Client;

    /// Makes a table of rows that begin with [`Element::IDENTITY`]; before [`Store::clients`].
    fn table<T: Element>(&mut self, rows: usize, row_len: usize) -> Table<T>;

    /// Says how accesses are to be recorded: in an iteration before the first one, or in the first one. `None`: there is no use for it.
    fn gather(&self) -> Option<Gather> {
        None
    }

    /// Sets the first values of rows that follow each other; after all tables were made, before [`Store::clients`]. All processes set
    /// the same.
    fn set<T: Element>(&mut self, table: Table<T>, first: usize, values: &[T]) -> Result<(), Error>;

    /// Begins: returns the access of each worker.
    fn clients(&mut self) -> Result<Vec<Self::Client>, Error>;

    /// Returns the `rows` rows of a table with all changes of `clocks` clocks, which all workers have ended; between iterations.
    fn all<T: Element>(&self, table: Table<T>, rows: usize, clocks: u64) -> Result<Rows<T>, Error>;

    /// Waits until all changes of the clocks that workers have ended are in the servers, of all processes; between iterations.
    fn settle(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Tells what it used so far; workers are between iterations.
    fn usage(&self) -> Usage;
}
