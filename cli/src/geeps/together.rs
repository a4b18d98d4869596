//! The processes of `megagrid launch` as the library sees them.

use std::net::TcpStream;
use std::sync::Arc;

use megagrid_engine::cluster::{Cluster, ClusterError};
use megagrid_geeps::Error;
use megagrid_geeps::processes::{Alone, Processes};

/// Returns the others, if there are any.
pub fn of(cluster: Option<&Arc<Cluster>>) -> Box<dyn Processes> {
    match cluster {
        Some(cluster) => Box::new(Together(Arc::clone(cluster))),
        None => Box::new(Alone),
    }
}

/// Processes that know each other.
struct Together(Arc<Cluster>);

impl Processes for Together {
    fn process(&self) -> usize {
        self.0.process()
    }

    fn processes(&self) -> usize {
        self.0.processes()
    }

    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error> {
        self.0.gather(mine).map_err(|error| self.lost(&error))
    }

    fn broadcast(&self, mine: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.0.broadcast(mine).map_err(|error| self.lost(&error))
    }

    fn sockets(&self) -> Result<Vec<Option<TcpStream>>, Error> {
        self.0.sockets().map_err(|error| self.lost(&error))
    }
}

impl Together {
    /// The reason names the process; all say it in the end.
    fn lost(&self, error: &ClusterError) -> Error {
        Error::Process { process: self.0.process(), problem: error.to_string() }
    }
}
