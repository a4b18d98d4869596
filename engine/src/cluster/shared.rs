//! What the threads of one process know of the others.

use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use megagrid_partition::parallel::lock;

use super::frame::Message;
use super::link::Link;
use super::{ClusterError, Membership};

/// Time between heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// How long an end waits for the other processes to have read why.
const LINGER: Duration = Duration::from_millis(300);

/// Longer than it takes to tell the others.
const PROMPT: Duration = Duration::from_secs(5);

/// Called with the reason when the job ends.
type Handler = Box<dyn Fn(&str) + Send + Sync>;

/// The state of a cluster as one process sees it. Threads wait on `changed` for whatever they wait for.
pub(super) struct Shared {
    pub membership: Membership,
    pub state: Mutex<State>,
    pub changed: Condvar,
    /// The thread that accepts connections.
    pub listener: Mutex<Option<JoinHandle<()>>>,
}

pub(super) struct State {
    /// Control connections, by process: of process 0 to all others, of the others to process 0.
    pub links: Vec<Option<Arc<Link>>>,
    /// Which of them are open.
    pub open: Vec<bool>,
    /// Which processes have said farewell.
    pub left: Vec<bool>,
    /// The number of the job, once all are there.
    pub job: Option<u64>,
    /// The job ends, and the others are being told why.
    ending: bool,
    /// Why the job ends, once they know.
    pub reason: Option<String>,
    /// Whom to tell; gone once it was told.
    handler: Option<Handler>,
    /// Nobody is to be told: this process knows the reason, or goes in peace.
    pub leaving: bool,
    /// The `Cluster` is gone: its threads end.
    pub closing: bool,
    /// Parts of collectives that are complete, by collective and process.
    parts: HashMap<(u64, usize), Vec<u8>>,
    /// Connections for data that nobody has asked for yet.
    pub sockets: Vec<DataSocket>,
}

/// A connection for data of one run.
pub(super) struct DataSocket {
    pub job: u64,
    pub run: u64,
    pub from: usize,
    pub stream: TcpStream,
}

impl Shared {
    pub fn new(membership: Membership) -> Self {
        let processes = membership.addresses.len();
        let state = State {
            links: (0..processes).map(|_| None).collect(),
            open: vec![false; processes],
            left: vec![false; processes],
            job: None,
            ending: false,
            reason: None,
            handler: None,
            leaving: false,
            closing: false,
            parts: HashMap::new(),
            sockets: Vec::new(),
        };
        Self { membership, state: Mutex::new(state), changed: Condvar::new(), listener: Mutex::new(None) }
    }

    /// Changes the state, and wakes all who wait for a change.
    pub fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut lock(&self.state));
        self.changed.notify_all();
        result
    }

    /// Waits until `is_there`, or for `patience`; returns the state then.
    pub fn wait(&self, patience: Duration, mut is_there: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        let state = lock(&self.state);
        let waited = self.changed.wait_timeout_while(state, patience, |state| !is_there(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Names a process for messages.
    pub fn name(&self, process: usize) -> String {
        let address = self.membership.addresses.get(process).map_or("unknown", String::as_str);
        format!("process {process} ({address})")
    }

    /// Waits until the next heartbeat is due, and tells whether a connection stays open until then.
    pub fn stays_open(&self, process: usize) -> bool {
        self.wait(HEARTBEAT, |state| !state.open[process]).open[process]
    }

    pub fn started(&self, job: u64) {
        self.change(|state| state.job = Some(job));
    }

    pub fn left(&self, process: usize) {
        self.change(|state| state.left[process] = true);
    }

    pub fn arrived(&self, collective: u64, from: usize, bytes: Vec<u8>) {
        self.change(|state| state.parts.insert((collective, from), bytes));
    }

    /// Takes note that a connection has ended, which is a loss unless its process said farewell.
    pub fn closed(&self, process: usize, problem: &str) {
        let expected = self.change(|state| {
            state.open[process] = false;
            state.left[process]
        });
        if !expected {
            self.end(&format!("{} is lost: {problem}", self.name(process)), Some(process), true);
        }
    }

    /// Ends the job for a reason, heard from or caused by process `from`: forwards it, and tells the handler if it was not
    /// this process's doing. Only the first reason counts. It shows once the others know: who sees it may exit.
    pub fn end(&self, reason: &str, from: Option<usize>, tell: bool) {
        let first = self.change(|state| {
            if let Some(from) = from {
                state.open[from] = false;
            }
            if state.ending || state.leaving {
                return None;
            }
            (state.ending, state.leaving) = (true, !tell);
            Some(state.links.iter().flatten().cloned().collect::<Vec<_>>())
        });
        let Some(links) = first else { return self.wait_for_end() };
        for link in &links {
            link.send_last(&Message::Stop(reason.to_owned()));
        }
        // The others close when they have read it.
        drop(self.wait(LINGER, |state| !state.open.contains(&true)));
        let handler = self.change(|state| {
            state.reason = Some(reason.to_owned());
            state.handler.take()
        });
        links.iter().for_each(|link| link.close());
        if let Some(handler) = handler.filter(|_| tell) {
            handler(reason);
        }
    }

    /// If the job is about to end, waits until the others know.
    pub fn wait_for_end(&self) {
        drop(self.wait(PROMPT, |state| !state.ending || state.reason.is_some()));
    }

    /// Sets who is told when the job ends, and tells at once if it has.
    pub fn set_handler(&self, handler: Handler) {
        let mut state = lock(&self.state);
        match state.reason.clone() {
            Some(reason) if !state.leaving => {
                drop(state);
                handler(&reason);
            }
            Some(_) => {}
            None => state.handler = Some(handler),
        }
    }

    /// Waits for the part of a process in a collective.
    pub fn part(&self, collective: u64, from: usize) -> Result<Vec<u8>, ClusterError> {
        // What process 0 does not send itself, it forwards.
        let sender = if self.membership.process == 0 { from } else { 0 };
        let mut state = lock(&self.state);
        loop {
            if let Some(bytes) = state.parts.remove(&(collective, from)) {
                return Ok(bytes);
            }
            if let Some(reason) = &state.reason {
                return Err(ClusterError::Ended(reason.clone()));
            }
            if state.left[sender] {
                return Err(self.has_left(sender));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Says why a message could not be sent. The thread that reads knows more, soon.
    pub fn unsent(&self, process: usize, problem: &str) -> ClusterError {
        let state = self.wait(Duration::from_secs(1), |state| state.reason.is_some() || state.left[process]);
        if state.reason.is_none() && state.left[process] {
            return self.has_left(process);
        }
        drop(state);
        self.end(&format!("{} is lost: {problem}", self.name(process)), Some(process), true);
        self.wait_for_end();
        let reason = lock(&self.state).reason.clone();
        ClusterError::Ended(reason.unwrap_or_else(|| "this process has left the others".to_owned()))
    }

    pub fn has_left(&self, process: usize) -> ClusterError {
        ClusterError::Ended(format!("{} has ended, and this process waits for it", self.name(process)))
    }
}
