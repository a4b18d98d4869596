//! Collectives among virtual workers: threads of one process that meet. No virtual time passes.

use std::fmt;
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::VirtualCluster;
use crate::{Error, Peers};

/// Where workers meet.
#[derive(Debug)]
pub struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// What each brought to the meeting under way.
    brought: Vec<Option<Vec<u8>>>,
    /// What all brought to the last meeting that was complete, and how many there were.
    complete: Arc<Vec<Vec<u8>>>,
    meetings: u64,
    /// The first that will not come any more.
    left: Option<usize>,
}

impl Meeting {
    pub fn new(workers: usize) -> Self {
        let brought = vec![None; workers];
        let state = State { brought, complete: Arc::default(), meetings: 0, left: None };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what everybody brings, when all have come.
    fn meet(&self, worker: usize, mine: Vec<u8>) -> Result<Arc<Vec<Vec<u8>>>, Error> {
        let mut state = self.lock();
        let meeting = state.meetings;
        state.brought[worker] = Some(mine);
        if state.brought.iter().all(Option::is_some) {
            state.complete = Arc::new(state.brought.iter_mut().filter_map(Option::take).collect());
            state.meetings += 1;
            self.changed.notify_all();
        }
        while state.meetings == meeting {
            if let Some(process) = state.left {
                return Err(gone(process));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // The next meeting is not complete before this worker comes to it.
        Ok(Arc::clone(&state.complete))
    }

    fn leave(&self, worker: usize) {
        self.lock().left.get_or_insert(worker);
        self.changed.notify_all();
    }
}

/// What becomes of those who wait for a worker that has ended.
pub fn gone(process: usize) -> Error {
    Error::Elsewhere { process, message: "its part of the work ended before that of others".to_owned() }
}

/// One virtual worker's view of the others.
pub struct VirtualPeers {
    cluster: Arc<VirtualCluster>,
    worker: usize,
}

impl VirtualPeers {
    pub fn new(cluster: &Arc<VirtualCluster>, worker: usize) -> Arc<Self> {
        Arc::new(Self { cluster: Arc::clone(cluster), worker })
    }

    pub fn leave(&self) {
        self.cluster.meeting.leave(self.worker);
        self.cluster.roll.leave(self.worker);
    }
}

impl fmt::Debug for VirtualPeers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "virtual worker {} of {}", self.worker, self.cluster.workers)
    }
}

impl Peers for VirtualPeers {
    fn process(&self) -> usize {
        self.worker
    }

    fn processes(&self) -> usize {
        self.cluster.workers
    }

    fn all_gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.cluster.meeting.meet(self.worker, mine)?.to_vec())
    }

    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let all = self.cluster.meeting.meet(self.worker, mine)?;
        Ok((self.worker == 0).then(|| all.to_vec()))
    }

    fn sockets(&self) -> Result<Vec<Option<TcpStream>>, Error> {
        Err(Error::Start("virtual workers have no sockets".to_owned()))
    }

    fn virtual_cluster(&self) -> Option<&Arc<VirtualCluster>> {
        Some(&self.cluster)
    }
}
