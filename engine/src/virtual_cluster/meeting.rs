//! Where virtual workers meet for collectives: they are threads of one process. No virtual time passes.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use megagrid_partition::parallel::lock;

use crate::Error;

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

    /// Returns what everybody brings, when all have come.
    pub fn meet(&self, worker: usize, mine: Vec<u8>) -> Result<Arc<Vec<Vec<u8>>>, Error> {
        let mut state = lock(&self.state);
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

    /// Lets nobody wait for a worker.
    pub fn leave(&self, worker: usize) {
        lock(&self.state).left.get_or_insert(worker);
        self.changed.notify_all();
    }
}

/// What becomes of those who wait for a worker that has ended.
pub fn gone(process: usize) -> Error {
    Error::Elsewhere { process, message: "its part of the work ended before that of others".to_owned() }
}
