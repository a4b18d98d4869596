//! Processes of a job as threads of this one, that meet for each message.

use std::sync::{Arc, Condvar, Mutex};

use megagrid_baselines::{Peers, Processes};

/// Where the processes meet.
struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What the processes have brought to this meeting.
    brought: Vec<Option<Vec<u8>>>,
    /// What the last one ended with, and how many have been.
    found: Vec<Vec<u8>>,
    ended: u64,
}

struct Peer {
    meeting: Arc<Meeting>,
    process: usize,
    processes: usize,
}

impl Peers for Peer {
    fn process(&self) -> usize {
        self.process
    }

    fn processes(&self) -> usize {
        self.processes
    }

    fn all_gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, String> {
        let mut state = self.meeting.state.lock().unwrap();
        let before = state.ended;
        state.brought[self.process] = Some(mine);
        if state.brought.iter().all(Option::is_some) {
            state.found = state.brought.iter_mut().filter_map(Option::take).collect();
            state.ended += 1;
            self.meeting.changed.notify_all();
        }
        // Nobody ends the next meeting before all have been at it, so that what is found is of this one.
        let state = self.meeting.changed.wait_while(state, |state| state.ended == before).unwrap();
        Ok(state.found.clone())
    }
}

/// Runs a job as `processes` processes; returns what each finds.
pub fn across<T: Send>(processes: usize, run: impl Fn(Processes) -> T + Sync) -> Vec<T> {
    let state = State { brought: vec![None; processes], ..State::default() };
    let meeting = Arc::new(Meeting { state: Mutex::new(state), changed: Condvar::new() });
    std::thread::scope(|scope| {
        let start = |process: usize| {
            let (peer, run) = (Peer { meeting: Arc::clone(&meeting), process, processes }, &run);
            scope.spawn(move || run(Processes::new(Arc::new(peer))))
        };
        let all: Vec<_> = (0..processes).map(start).collect();
        all.into_iter().map(|process| process.join().unwrap()).collect()
    })
}
