//! The processes that run an application together, as one of them sees the others.

use std::net::TcpStream;

use crate::Error;

/// This process and the others. All processes call the same in the same order.
pub trait Processes: Sync {
    /// Returns this process's number, from 0.
    fn process(&self) -> usize;

    /// Returns the number of processes.
    fn processes(&self) -> usize;

    /// Gives the first process what each has, in the order of processes; the others `None`.
    ///
    /// # Errors
    /// A process that is lost or has failed.
    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error>;

    /// Gives every process what the first one has.
    ///
    /// # Errors
    /// As [`Processes::gather`].
    fn broadcast(&self, mine: Vec<u8>) -> Result<Vec<u8>, Error>;

    /// Returns new connections to all other processes, `None` at this one's place.
    ///
    /// # Errors
    /// As [`Processes::gather`].
    fn sockets(&self) -> Result<Vec<Option<TcpStream>>, Error>;
}

/// A process without others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Processes for Alone {
    fn process(&self) -> usize {
        0
    }

    fn processes(&self) -> usize {
        1
    }

    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error> {
        Ok(Some(vec![mine]))
    }

    fn broadcast(&self, mine: Vec<u8>) -> Result<Vec<u8>, Error> {
        Ok(mine)
    }

    fn sockets(&self) -> Result<Vec<Option<TcpStream>>, Error> {
        Ok(vec![None])
    }
}
