//! What a worker's three threads tell each other, behind one lock (section 4.3.2: "coarse-grained locking"): the
//! application asks and posts, the allocator grants, the reclaimer gives back.
//!
//! Nobody sleeps but on [`Hub::changed`], and whoever changes anything wakes all; so no wake-up can be lost. The
//! allocator waits for the application (without prefetch), for writes that the reclaimer has to do, and for room that
//! it gives back. The application waits for the allocator, the reclaimer for nobody: so there is no circle.

use std::collections::VecDeque;

use crate::Error;
use crate::device::DeviceRange;
use crate::memory::{Moves, Ring};
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};
use crate::trace::Home;

/// What the threads tell each other.
#[derive(Debug)]
pub struct Hub {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Accesses that the application has asked for.
    asked: u64,
    /// Those of them and of later ones that the application has not taken, the next one first.
    granted: VecDeque<DeviceRange>,
    ring: Ring,
    /// Posts that were written, for each table and for local data.
    written: [Vec<u64>; 2],
    /// Tasks of the reclaimer, and those that it has done.
    posted: u64,
    done: u64,
    moves: Moves,
    should_stop: bool,
    failure: Option<Error>,
}

/// Why a wait ended early.
#[derive(Debug, PartialEq)]
pub enum Ended {
    /// The application needs no more.
    Stopped,
    /// The run has failed.
    Failed(Error),
}

impl Hub {
    /// Makes one for a ring of `ring` values, `tables` tables and `locals` local data.
    pub fn new(ring: usize, tables: usize, locals: usize) -> Self {
        let state = State {
            asked: 0,
            granted: VecDeque::new(),
            ring: Ring::new(ring),
            written: [vec![0; tables], vec![0; locals]],
            posted: 0,
            done: 0,
            moves: Moves::default(),
            should_stop: false,
            failure: None,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.changed.notify_all();
        changed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Waits until `ready` finds something.
    fn wait_for<T>(&self, mut ready: impl FnMut(&mut State) -> Option<T>) -> Result<T, Ended> {
        let mut state = self.state();
        loop {
            if let Some(error) = &state.failure {
                return Err(Ended::Failed(error.clone()));
            }
            if let Some(found) = ready(&mut state) {
                return Ok(found);
            }
            if state.should_stop {
                return Err(Ended::Stopped);
            }
            state = wait(&self.changed, state);
        }
    }

    /// The application's next access: waits until it is granted.
    pub fn ask(&self) -> Result<DeviceRange, Error> {
        self.change(|state| state.asked += 1);
        self.wait_for(|state| state.granted.pop_front()).map_err(|ended| self.error(ended))
    }

    /// The application has posted something, or ended a clock.
    pub fn posted(&self) {
        self.change(|state| state.posted += 1);
    }

    /// Waits until the reclaimer has done all that was posted.
    pub fn settle(&self) -> Result<(), Error> {
        self.wait_for(|state| (state.done == state.posted).then_some(())).map_err(|ended| self.error(ended))
    }

    fn error(&self, ended: Ended) -> Error {
        match ended {
            Ended::Failed(error) => error,
            Ended::Stopped => Error::Stopped,
        }
    }

    /// Returns why the run has ended.
    pub fn failure(&self) -> Error {
        self.state().failure.clone().unwrap_or(Error::Stopped)
    }

    /// The allocator waits until an access is asked for.
    pub fn wait_until_asked(&self, access: u64) -> Result<(), Ended> {
        self.wait_for(|state| (state.asked > access).then_some(()))
    }

    /// The allocator waits until `posts` posts to a home were written.
    pub fn wait_until_written(&self, home: Home, posts: u64) -> Result<(), Ended> {
        self.wait_for(|state| (*state.written(home) >= posts).then_some(()))
    }

    /// The allocator takes a buffer as soon as there is room; returns where it begins in the pool.
    pub fn take(&self, ticket: u64, len: usize) -> Result<usize, Ended> {
        self.wait_for(|state| state.ring.take(ticket, len))
    }

    /// The allocator gives the next access to the application.
    pub fn grant(&self, range: DeviceRange) {
        self.change(|state| state.granted.push_back(range));
    }

    /// The reclaimer has done a task: written to a home, and given a buffer back.
    pub fn reclaimed(&self, written: Option<Home>, buffer: Option<u64>) {
        self.change(|state| {
            if let Some(home) = written {
                *state.written(home) += 1;
            }
            if let Some(ticket) = buffer {
                state.ring.give_back(ticket);
            }
            state.done += 1;
        });
    }

    /// Counts what has moved.
    pub fn count(&self, moves: Moves) {
        lock(&self.state).moves += moves;
    }

    /// Returns what has moved.
    pub fn moves(&self) -> Moves {
        self.state().moves
    }

    /// Ends the allocator, which may be far ahead.
    pub fn stop(&self) {
        self.change(|state| state.should_stop = true);
    }

    /// Tells whether the application needs no more.
    pub fn should_stop(&self) -> bool {
        self.state().should_stop
    }

    /// Ends everything. The first reason counts.
    pub fn fail(&self, error: Error) {
        self.change(|state| state.failure.get_or_insert(error).clone());
    }
}

impl State {
    fn written(&mut self, home: Home) -> &mut u64 {
        match home {
            Home::Table(table) => &mut self.written[0][table],
            Home::Local(local) => &mut self.written[1][local],
        }
    }
}
