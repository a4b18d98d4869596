//! Connections for the data of a run, between every two processes.

use std::io;
use std::net::TcpStream;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use megagrid_partition::parallel::lock;

use super::frame::Purpose;
use super::join::{self, Refusal};
use super::shared::DataSocket;
use super::{Cluster, ClusterError};

/// How long a process that is there may take to answer.
const CONNECT: Duration = Duration::from_secs(10);

impl Cluster {
    /// Makes fresh connections to every other process, for the data of one run: what
    /// `timely::communication::initialize::initialize_networking_from_sockets` takes. `None` at this process's place. All
    /// processes call it, as often as they like; it waits for as long as the others live.
    ///
    /// # Errors
    /// A process cannot be reached though it lives (a firewall between two of them), or the end of the job.
    pub fn sockets(&self) -> Result<Vec<Option<TcpStream>>, ClusterError> {
        let mut turn = lock(&self.turn);
        turn.runs += 1;
        let run = turn.runs;
        let mut sockets: Vec<Option<TcpStream>> = (0..self.processes()).map(|_| None).collect();
        for (to, socket) in sockets.iter_mut().enumerate().take(self.process()) {
            *socket = Some(self.connect(to, run)?);
        }
        for (from, socket) in sockets.iter_mut().enumerate().skip(self.process() + 1) {
            *socket = Some(self.accept(from, run)?);
        }
        for (peer, socket) in sockets.iter().enumerate() {
            socket.as_ref().map_or(Ok(()), prepare).map_err(|error| self.unreachable(peer, error.to_string()))?;
        }
        Ok(sockets)
    }

    fn connect(&self, to: usize, run: u64) -> Result<TcpStream, ClusterError> {
        let deadline = Instant::now() + CONNECT;
        loop {
            let state = lock(&self.shared.state);
            if let Some(reason) = &state.reason {
                return Err(ClusterError::Ended(reason.clone()));
            }
            let job = state.job.unwrap_or_default();
            drop(state);
            let problem = match join::greet(&self.shared, to, Purpose::Data { job, run }, deadline) {
                Ok(stream) => return Ok(stream),
                Err(Refusal::Final(error)) => return Err(error),
                Err(Refusal::Yet(problem)) => problem,
            };
            if Instant::now() >= deadline {
                return Err(self.unreachable(to, problem));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits for a process to connect.
    fn accept(&self, from: usize, run: u64) -> Result<TcpStream, ClusterError> {
        let mut state = lock(&self.shared.state);
        loop {
            let job = state.job.unwrap_or_default();
            // What an earlier run, or another job at the same port, has left.
            state.sockets.retain(|socket| socket.job == job && socket.run >= run);
            let is_it = |socket: &DataSocket| socket.from == from && socket.run == run;
            if let Some(at) = state.sockets.iter().position(is_it) {
                return Ok(state.sockets.swap_remove(at).stream);
            }
            if let Some(reason) = &state.reason {
                return Err(ClusterError::Ended(reason.clone()));
            }
            if state.left[from] || state.left[0] {
                return Err(self.shared.has_left(if state.left[from] { from } else { 0 }));
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn unreachable(&self, process: usize, problem: String) -> ClusterError {
        join::unreachable(&self.shared, process, CONNECT, problem)
    }
}

/// Makes a connection for the data of a run as timely wants it: what is written leaves at once, and calls wait for as long as it takes.
///
/// # Errors
/// A connection that is closed.
pub fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    if stream.peer_addr()?.ip() == stream.local_addr()?.ip() {
        send_unpaced(stream);
    }
    Ok(())
}

/// Within a machine there is no network that a rate could spare. Where the system's congestion control is BBR, which sends by a timer,
/// this takes a fifth off the time of large messages; Reno is there on every Linux.
fn send_unpaced(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
        // A system that does not let it is as fast as it is.
        let _ = setsockopt(stream, TcpCongestion, &"reno".into());
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}
