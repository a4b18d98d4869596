//! A tablet server: stores rows, applies updates when their client's clock ticks, answers reads when the global clock allows.

mod checkpoint;
mod connection;
mod master;
mod placement;
mod pure;
mod shard;

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use megagrid_partition::parallel::lock;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use super::element::Tables;
use super::numa;
use super::options::{ServerOptions, check_shape};
use crate::Error;
use shard::Shard;

pub use checkpoint::newest_checkpoint;
pub(super) use placement::home;
pub(super) use shard::LEFT;

/// The number of client processes that one server serves at most.
pub const MAX_CLIENTS: usize = 64;

/// A running tablet server. It ends when it is dropped; not to be dropped in an asynchronous context.
#[derive(Debug)]
pub struct TabletServer {
    address: SocketAddr,
    shard: Arc<Mutex<Shard>>,
    runtime: Option<Runtime>,
}

impl TabletServer {
    /// Listens at an address (port 0: a free one, see [`TabletServer::address`]) and serves in a thread of its own.
    ///
    /// # Errors
    /// If it cannot listen there, the options do not go together, or the checkpoint cannot be read.
    pub fn start(address: impl ToSocketAddrs, tables: &Tables, options: ServerOptions) -> Result<Self, Error> {
        let ServerOptions { server, servers, partitions, clients, .. } = options;
        check_shape(servers, partitions, options.max_frame_bytes)?;
        if clients == 0 || clients > MAX_CLIENTS || server >= servers {
            let given = format!("server {server} of {servers} for {clients} clients");
            let expected = format!("there are 1 to {MAX_CLIENTS} clients, and servers count from 0");
            return Err(Error::Options(format!("{given}: {expected}")));
        }
        let shard = Arc::new(Mutex::new(Shard::new(tables, options.clone())?));
        let runtime = runtime("tablet-server", server % partitions, partitions)?;
        let bind = || {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) = bind().map_err(Error::io("listening as a tablet server"))?;
        let listener = {
            let _context = runtime.enter();
            TcpListener::from_std(listener).map_err(Error::io(address))?
        };
        runtime.spawn(connection::accept(listener, shard.clone(), options));
        Ok(Self { address, shard, runtime: Some(runtime) })
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until all clients have come, left and closed their connections.
    ///
    /// # Errors
    /// If a client is lost.
    pub fn wait(&self) -> Result<(), Error> {
        loop {
            if let Some(ended) = lock(&self.shard).ended() {
                return ended;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns how many rows are stored here.
    pub fn num_rows(&self) -> usize {
        lock(&self.shard).num_rows()
    }
}

impl Drop for TabletServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

/// Makes what runs in a thread of its own, which is bound to the node of its partition of the keys, where there are several of both.
pub(super) fn runtime(name: &str, partition: usize, partitions: usize) -> Result<Runtime, Error> {
    let mut builder = Builder::new_multi_thread();
    if partitions > 1 {
        builder.on_thread_start(move || numa::bind_thread(partition, partitions));
    }
    builder.worker_threads(1).thread_name(name).enable_all().build().map_err(Error::io(name))
}
