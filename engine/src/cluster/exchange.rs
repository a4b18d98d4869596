//! What each process sends to each other, over connections between every two.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;

use megagrid_partition::parallel::lock;

use super::link::describe_io;
use super::{Cluster, ClusterError};

impl Cluster {
    /// Sends each process its part; returns what each sent to this one, in the order of their numbers.
    ///
    /// # Complexity
    /// Each part goes straight to its process, all at a time.
    ///
    /// # Errors
    /// The end of the job.
    pub fn exchange(&self, mut parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, ClusterError> {
        let mut sockets = lock(&self.exchange);
        let sockets = match &*sockets {
            Some(sockets) => sockets,
            None => sockets.insert(self.sockets()?),
        };
        let mut arrived = vec![Vec::new(); parts.len()];
        arrived[self.process()] = std::mem::take(&mut parts[self.process()]);
        thread::scope(|threads| {
            let mut running = Vec::new();
            for (to, ((socket, part), arrived)) in sockets.iter().zip(&parts).zip(&mut arrived).enumerate() {
                let Some(socket) = socket else { continue };
                running.push((to, threads.spawn(move || send(socket, part))));
                running.push((to, threads.spawn(move || receive(socket).map(|bytes| *arrived = bytes))));
            }
            let join = |(to, thread): (usize, thread::ScopedJoinHandle<'_, io::Result<()>>)| {
                let gone = |_| Err(io::Error::other("a thread that sends or receives panicked"));
                thread.join().unwrap_or_else(gone).map_err(|error| self.shared.unsent(to, &describe_io(&error)))
            };
            running.into_iter().map(join).fold(Ok(()), Result::and)
        })?;
        Ok(arrived)
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
