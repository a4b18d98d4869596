//! The processes of a job as readers of one input, and as those of a baseline.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use megagrid_datasets::Readers;
use megagrid_engine::cluster::Cluster;

/// Processes that read an input, or run a baseline, together.
#[derive(Debug)]
pub struct Together {
    cluster: Arc<Cluster>,
    read_bytes: AtomicU64,
}

impl Together {
    /// Takes the processes of a cluster.
    pub fn new(cluster: &Arc<Cluster>) -> Self {
        Self { cluster: Arc::clone(cluster), read_bytes: AtomicU64::new(0) }
    }

    /// Ends the process for the reason that made a call of all fail, if there is one: the handler of losses says it.
    fn or_lost<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.inspect_err(|_| crate::cluster::end_if_lost(&self.cluster))
    }
}

#[cfg(feature = "baselines")]
impl megagrid_baselines::Peers for Together {
    fn process(&self) -> usize {
        self.cluster.process()
    }

    fn processes(&self) -> usize {
        self.cluster.processes()
    }

    fn host(&self) -> String {
        let address = self.cluster.address();
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']').to_owned()
    }

    fn all_gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, String> {
        let gathered = self.cluster.all_gather(mine).map_err(io::Error::other);
        self.or_lost(gathered).map_err(|error| error.to_string())
    }

    fn exchange(&self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
        let exchanged = self.cluster.exchange(parts).map_err(io::Error::other);
        self.or_lost(exchanged).map_err(|error| error.to_string())
    }
}

impl Readers for Together {
    fn process(&self) -> usize {
        self.cluster.process()
    }

    fn processes(&self) -> usize {
        self.cluster.processes()
    }

    fn all_gather(&self, mine: Vec<u8>) -> io::Result<Vec<Vec<u8>>> {
        self.or_lost(self.cluster.all_gather(mine).map_err(io::Error::other))
    }

    fn exchange(&self, parts: Vec<Vec<u8>>) -> io::Result<Vec<Vec<u8>>> {
        self.or_lost(self.cluster.exchange(parts).map_err(io::Error::other))
    }

    fn has_read(&self, bytes: u64) {
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }
}
