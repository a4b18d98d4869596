//! Waiting for something to arrive.

use std::sync::{Condvar, Mutex, PoisonError};

use megagrid_partition::parallel::lock;

/// Counts arrivals. A waiter notes the count, looks whether what it needs is there, and waits for the count to change:
/// an arrival after the look changes the count, so that no wake-up is lost.
#[derive(Debug, Default)]
pub(super) struct Signal {
    arrivals: Mutex<u64>,
    changed: Condvar,
}

impl Signal {
    pub(super) fn now(&self) -> u64 {
        *lock(&self.arrivals)
    }

    pub(super) fn notify(&self) {
        *lock(&self.arrivals) += 1;
        self.changed.notify_all();
    }

    /// Waits until the count is another one.
    pub(super) fn wait_past(&self, seen: u64) {
        let _arrivals = self
            .changed
            .wait_while(lock(&self.arrivals), |arrivals| *arrivals == seen)
            .unwrap_or_else(PoisonError::into_inner);
    }
}
