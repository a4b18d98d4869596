//! The other processes, as far as the engine needs them beside the messages of a run.

use std::net::TcpStream;
use std::sync::Arc;

use crate::Error;
use crate::cluster::Cluster;
use crate::virtual_cluster::VirtualCluster;

/// Processes that do the same things in the same order. Every method is collective: all processes call it, in the same
/// order, and each returns when it has what it needs.
pub trait Peers: std::fmt::Debug + Send + Sync {
    /// Returns this process's number, from 0.
    fn process(&self) -> usize;

    /// Returns the number of processes.
    fn processes(&self) -> usize;

    /// Gives everybody what each has, in the order of processes.
    ///
    /// # Errors
    /// A lost process.
    fn all_gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, Error>;

    /// Gives the first process what each has, in the order of processes; the others `None`.
    ///
    /// # Errors
    /// A lost process.
    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error>;

    /// Returns new connections to all other processes, `None` at this one's place.
    ///
    /// # Errors
    /// A lost process.
    fn sockets(&self) -> Result<Vec<Option<TcpStream>>, Error>;

    /// Returns the virtual cluster that these processes are workers of, if they are none in earnest.
    fn virtual_cluster(&self) -> Option<&Arc<VirtualCluster>> {
        None
    }
}

impl Peers for Cluster {
    fn process(&self) -> usize {
        self.process()
    }

    fn processes(&self) -> usize {
        self.processes()
    }

    fn all_gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.all_gather(mine)?)
    }

    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error> {
        Ok(self.gather(mine)?)
    }

    fn sockets(&self) -> Result<Vec<Option<TcpStream>>, Error> {
        Ok(self.sockets()?)
    }
}
