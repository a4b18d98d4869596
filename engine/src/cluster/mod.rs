//! Several processes that run one job: who they are, how they find each other, and how they end together.
//!
//! All processes run the same program with the same options; [`Membership`] tells each its number and where the others
//! listen. Process 0 is the hub of a star of control connections. They carry the handshake, small collectives (facts that have
//! to agree, metrics, models), heartbeats, and the reason for stopping. The data of a run go over connections of their
//! own, between every two processes, which [`Cluster::sockets`] makes for timely.
//!
//! **A process is lost** when its control connection closes, or when nothing came over it for 8 s: a heartbeat is due
//! each second. Process 0 tells the others, so that all say the same one line; if process 0 is lost, each notices itself.
//! Every process that is left is told once, by the handler of [`Cluster::on_loss`], and collectives that wait return the
//! reason as an error. [`Cluster::leave`] is the orderly end, [`Cluster::fail`] the other one.
//!
//! **Strangers** are turned away where the processes share a [`Secret`]. Nothing is encrypted: use it in a network that you trust, or in
//! a tunnel.

mod cluster_error;
mod collective;
mod environment;
mod exchange;
mod frame;
mod join;
mod link;
mod listen;
mod membership;
mod ports;
mod secret;
mod shared;
mod slurm;
mod sockets;

use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use cluster_error::ClusterError;
pub use environment::PROCESS;
pub use membership::{HOSTS, Membership};
pub use ports::FreePorts;
pub use secret::{SECRET, SECRET_FILE, Secret};
pub use sockets::prepare;

use megagrid_partition::parallel::lock;

use frame::Message;
use shared::{Shared, State};

/// How long [`Cluster::join`] usually waits for the others.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How long process 0 tells those that come late why the job ended before it began.
const LATECOMERS: Duration = Duration::from_secs(2);
/// How long an orderly end waits for the others.
const FAREWELL: Duration = Duration::from_secs(5);

/// This process's place among the others.
///
/// Collectives are called by all processes, in the same order; several threads of one process take turns.
pub struct Cluster {
    shared: Arc<Shared>,
    /// Held during a collective.
    turn: Mutex<Turn>,
    /// Connections for [`Cluster::exchange`], made when they are needed first.
    exchange: Mutex<Option<Vec<Option<TcpStream>>>>,
}

/// How often this process has called what all call together.
#[derive(Default)]
struct Turn {
    collectives: u64,
    runs: u64,
}

impl Cluster {
    /// Connects to all other processes; waits at most `patience` for them ([`PATIENCE`]).
    ///
    /// # Errors
    /// Each way in which a process can be missing: nobody listens, a name does not resolve, the port is taken or something
    /// else listens there, a process was started twice, runs another version, or has another secret or list of addresses.
    pub fn join(membership: &Membership, patience: Duration) -> Result<Arc<Self>, ClusterError> {
        membership.check()?;
        let shared = Arc::new(Shared::new(membership.clone()));
        // Closes, when it is dropped on an error, what is open by then.
        let cluster = Arc::new(Self { shared, turn: Mutex::default(), exchange: Mutex::default() });
        join::join(&cluster.shared, patience)?;
        Ok(cluster)
    }

    /// Returns the number of this process.
    pub fn process(&self) -> usize {
        self.shared.membership.process
    }

    /// Returns the number of processes.
    pub fn processes(&self) -> usize {
        self.shared.membership.addresses.len()
    }

    /// Returns `host:port` of this process, as the others reach it.
    pub fn address(&self) -> &str {
        &self.shared.membership.addresses[self.process()]
    }

    /// Sets what is called, once and with a line that names the cause, when another process is lost or fails. It is called
    /// on a thread of the cluster, or at once if it has happened already.
    pub fn on_loss(&self, handler: impl Fn(&str) + Send + Sync + 'static) {
        self.shared.set_handler(Box::new(handler));
    }

    /// Returns why the job ends, waiting at most `patience` for a reason to come. For whoever sees a connection of data break,
    /// and wants to know why before complaining about it.
    pub fn reason(&self, patience: Duration) -> Option<String> {
        self.shared.wait(patience, |state| state.reason.is_some()).reason.clone()
    }

    /// Tells the others that this process stops, and why; returns when they know, or after a moment. Its own handler is
    /// not called.
    pub fn fail(&self, reason: &str) {
        self.shared.end(&format!("{} stopped: {reason}", self.shared.name(self.process())), None, false);
    }

    /// Ends orderly: from now on nobody takes the end of this process for a loss. Waits shortly for the others to come as far.
    pub fn leave(&self) {
        let links = self.shared.change(|state| {
            let first = !std::mem::replace(&mut state.leaving, true);
            let links = if first && state.reason.is_none() { &state.links[..] } else { &[] };
            links.iter().flatten().cloned().collect::<Vec<_>>()
        });
        for link in &links {
            // Whoever cannot be told is gone already.
            let _ = link.send(&Message::Farewell);
        }
        let is_gone = |process: usize, left: &[bool], open: &[bool]| left[process] || !open[process];
        drop(
            self.shared
                .wait(FAREWELL, |state| links.iter().all(|link| is_gone(link.process, &state.left, &state.open))),
        );
        links.iter().for_each(|link| link.close());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shared.wait_for_end();
        // Who comes a moment later is told why the job ended before it began, too.
        let is_early = |state: &State| state.job.is_none() && state.reason.is_some();
        if self.process() == 0 && is_early(&lock(&self.shared.state)) {
            drop(self.shared.wait(LATECOMERS, |_| false));
        }
        let links = self.shared.change(|state| {
            (state.leaving, state.closing) = (true, true);
            state.sockets.clear();
            state.links.iter_mut().map(Option::take).collect::<Vec<_>>()
        });
        links.iter().flatten().for_each(|link| link.close());
        // Then the port is free again.
        if let Some(listener) = lock(&self.shared.listener).take() {
            let _ = listener.join();
        }
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let links = lock(&self.shared.state).open.clone();
        formatter.debug_struct("Cluster").field("membership", &self.shared.membership).field("open", &links).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::sync::mpsc::channel;

    use super::frame::{self, Hello, Purpose};
    use super::secret;
    use super::*;

    /// Takes part as process 1 would, by hand.
    fn hello(addresses: &[String], version: &str) -> (TcpStream, Message) {
        let stream = loop {
            match TcpStream::connect(&addresses[0]) {
                Ok(stream) => break stream,
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        assert!(secret::connect(&stream, &Secret::default()).unwrap());
        let (version, addresses) = (version.to_owned(), addresses.to_vec());
        let hello = Hello { version, process: 1, addresses, purpose: Purpose::Control };
        frame::write(&stream, &Message::Hello(hello), &[]).unwrap();
        let answer = frame::read(&stream).unwrap().0;
        (stream, answer)
    }

    fn hub(addresses: &[String]) -> std::thread::JoinHandle<Result<Arc<Cluster>, ClusterError>> {
        let membership = Membership { process: 0, addresses: addresses.to_vec(), secret: Secret::default() };
        std::thread::spawn(move || Cluster::join(&membership, PATIENCE))
    }

    #[test]
    fn another_version_is_refused() {
        let ports = FreePorts::find(2).unwrap();
        let addresses = ports.addresses();
        let hub = hub(addresses);
        let (_stream, answer) = hello(addresses, "77.0");
        let message = hub.join().unwrap().unwrap_err().to_string();
        assert_eq!(answer, Message::Refused(message.clone()));
        assert!(message.starts_with("process 1 (127.0.0.1) is megagrid 77.0, process 0 is "), "{message}");
    }

    #[test]
    fn silence_is_a_loss() {
        let ports = FreePorts::find(2).unwrap();
        let addresses = ports.addresses();
        let hub = hub(addresses);
        let (stream, answer) = hello(addresses, env!("CARGO_PKG_VERSION"));
        assert_eq!(answer, Message::Welcome);
        let cluster = hub.join().unwrap().unwrap();
        let (sender, told) = channel();
        cluster.on_loss(move |reason| sender.send(reason.to_owned()).unwrap());
        let message = cluster.gather(Vec::new()).unwrap_err().to_string();
        let expected = format!("process 1 ({}) is lost: no heartbeat for 8 s", addresses[1]);
        assert_eq!(message, expected);
        assert_eq!(told.recv().unwrap(), expected);
        // When the process wakes up it can read why it is alone.
        let mut read = Vec::new();
        while let Ok((message, _)) = frame::read(&stream) {
            read.push(message);
        }
        assert_eq!(read.last(), Some(&Message::Stop(expected)));
        assert!(read.contains(&Message::Heartbeat));
    }
}
