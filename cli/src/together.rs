//! The processes of a job as readers of one input.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use megagrid_datasets::Readers;
use megagrid_engine::cluster::Cluster;

/// Processes that read an input together, with connections of their own for what they send each other.
#[derive(Debug)]
pub struct Together {
    cluster: Arc<Cluster>,
    /// Made when they are needed first.
    sockets: Mutex<Option<Vec<Option<TcpStream>>>>,
    read_bytes: AtomicU64,
}

impl Together {
    /// Takes the processes of a cluster.
    pub fn new(cluster: &Arc<Cluster>) -> Self {
        Self { cluster: Arc::clone(cluster), sockets: Mutex::default(), read_bytes: AtomicU64::new(0) }
    }

    fn exchange_all(&self, mut parts: Vec<Vec<u8>>) -> io::Result<Vec<Vec<u8>>> {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let sockets = match &*sockets {
            Some(sockets) => sockets,
            None => sockets.insert(self.cluster.sockets().map_err(io::Error::other)?),
        };
        let mut arrived = vec![Vec::new(); parts.len()];
        arrived[self.process()] = std::mem::take(&mut parts[self.process()]);
        thread::scope(|threads| {
            let mut running = Vec::new();
            for ((socket, part), arrived) in sockets.iter().zip(&parts).zip(&mut arrived) {
                let Some(socket) = socket else { continue };
                running.push(threads.spawn(move || send(socket, part)));
                running.push(threads.spawn(move || receive(socket).map(|bytes| *arrived = bytes)));
            }
            let join = |thread: thread::ScopedJoinHandle<'_, io::Result<()>>| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("a thread that sends or receives edges panicked")))
            };
            running.into_iter().map(join).fold(Ok(()), io::Result::and)
        })?;
        Ok(arrived)
    }

    /// Ends the process for the reason that made a call of all fail, if there is one: the handler of losses says it.
    fn or_lost<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.inspect_err(|_| crate::cluster::end_if_lost(&self.cluster))
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
        self.or_lost(self.exchange_all(parts))
    }

    fn has_read(&self, bytes: u64) {
        self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }
}

fn send(mut socket: &TcpStream, part: &[u8]) -> io::Result<()> {
    socket.write_all(&(part.len() as u64).to_le_bytes())?;
    socket.write_all(part)
}

fn receive(mut socket: &TcpStream) -> io::Result<Vec<u8>> {
    let mut len = [0; 8];
    socket.read_exact(&mut len)?;
    // Read as it comes: a length that is wrong takes no memory.
    let (len, mut bytes) = (u64::from_le_bytes(len), Vec::new());
    socket.take(len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
