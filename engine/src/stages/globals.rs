//! The shared context: one version per clock in flight, made when the last worker has deposited its sums.

use std::sync::{Arc, Mutex};

use megagrid_partition::parallel::lock;
use megagrid_stages::{Combine, GlobalSync, Program};

/// Versions of the shared context.
pub struct Globals<P: Program> {
    workers: usize,
    state: Mutex<State<P>>,
}

struct State<P: Program> {
    current: Arc<P::Global>,
    /// Deposits by (clock, place among that clock's GlobalSyncs), one slot for each worker: of as few as are in flight.
    pending: Vec<((u64, u64), Slots<P>)>,
}

type Slots<P> = Vec<Option<<P as Program>::Worker>>;

impl<P: Program> Globals<P> {
    /// Begins with the default.
    pub fn new(workers: usize) -> Self {
        let state = State { current: Arc::default(), pending: Vec::new() };
        Self { workers, state: Mutex::new(state) }
    }

    /// Returns the latest version.
    pub fn current(&self) -> Arc<P::Global> {
        Arc::clone(&lock(&self.state).current)
    }

    /// Returns how many workers make a version.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Replaces the current version, between iterations.
    pub fn set(&self, global: P::Global) {
        lock(&self.state).current = Arc::new(global);
    }

    /// Exchanges the current version with another, between iterations.
    pub fn swap(&self, other: &mut Arc<P::Global>) {
        std::mem::swap(&mut lock(&self.state).current, other);
    }

    /// Takes a worker's sums; the last worker of a clock combines them in ascending worker order and
    /// makes the next version.
    pub fn deposit<G: GlobalSync<P>>(&self, stage: &G, key: (u64, u64), worker: usize, sums: P::Worker) {
        let mut state = lock(&self.state);
        let known = state.pending.iter().position(|(pending, _)| *pending == key);
        let at = known.unwrap_or_else(|| {
            state.pending.push((key, (0..self.workers).map(|_| None).collect()));
            state.pending.len() - 1
        });
        let slots = &mut state.pending[at].1;
        slots[worker] = Some(sums);
        if slots.iter().any(Option::is_none) {
            return;
        }
        let (_, deposits) = state.pending.swap_remove(at);
        let mut total = P::Worker::default();
        for mut deposit in deposits.into_iter().flatten() {
            total.combine(&mut deposit);
        }
        let mut next = P::Global::clone(&state.current);
        stage.apply(total, &mut next);
        state.current = Arc::new(next);
    }
}
