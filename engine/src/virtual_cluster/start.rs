//! The start of a run: the last worker that comes begins it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use megagrid_partition::parallel::lock;

use super::conductor::{Conductor, Enlisted};
use super::meeting::gone;
use super::model::Link;
use crate::Error;

/// Who has come for a run.
#[derive(Clone)]
pub struct Start(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    enlisted: Vec<Option<Enlisted>>,
    under_way: bool,
    /// The first that will not come any more.
    left: Option<usize>,
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start").field("under_way", &lock(&self.0.state).under_way).finish_non_exhaustive()
    }
}

impl Start {
    pub fn new(workers: usize) -> Self {
        let state = State { enlisted: (0..workers).map(|_| None).collect(), under_way: false, left: None };
        Self(Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }))
    }

    /// Takes a worker down; the last one begins the run.
    pub fn enlist(
        &self,
        (link, values_are_bounded): (Link, bool),
        worker: usize,
        enlisted: Enlisted,
    ) -> Result<(), Error> {
        let mut state = lock(&self.0.state);
        if let Some(process) = state.left {
            return Err(gone(process));
        }
        state.enlisted[worker] = Some(enlisted);
        if state.enlisted.iter().any(Option::is_none) {
            return Ok(());
        }
        state.under_way = true;
        let all: Vec<Enlisted> = state.enlisted.iter_mut().filter_map(Option::take).collect();
        let end = End(self.clone());
        let conductor = std::thread::Builder::new().name("conductor".to_owned());
        let started = conductor.spawn(move || {
            let _end = end;
            Conductor::new(all, link, values_are_bounded).run();
        });
        started.map(drop).map_err(|error| {
            state.under_way = false;
            Error::Start(error.to_string())
        })
    }

    /// Lets nobody wait for a worker. Those who have come learn it as what they enlisted is dropped.
    pub fn leave(&self, worker: usize) {
        let mut state = lock(&self.0.state);
        state.left.get_or_insert(worker);
        let dropped: Vec<_> = state.enlisted.iter_mut().filter_map(Option::take).collect();
        drop(state);
        drop(dropped);
    }

    pub fn wait_for_end(&self) {
        let mut state = lock(&self.0.state);
        while state.under_way {
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Tells that the conductor has ended, also by a panic.
struct End(Start);

impl Drop for End {
    fn drop(&mut self) {
        lock(&self.0.0.state).under_way = false;
        self.0.0.changed.notify_all();
    }
}
