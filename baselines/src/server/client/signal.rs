//! Waiting for something to arrive.

use std::sync::{Condvar, Mutex, PoisonError};

/// Counts arrivals. A waiter notes the count, looks whether what it needs is there, and waits for the count to change:
/// an arrival after the look changes the count, so that no wake-up is lost.
#[derive(Debug, Default)]
pub(super) struct Signal {
    arrivals: Mutex<u64>,
    changed: Condvar,
}

impl Signal {
    /// Returns the count.
    pub(super) fn now(&self) -> u64 {
        *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all who wait.
    pub(super) fn notify(&self) {
        *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    /// Waits until the count is another one.
    pub(super) fn wait_past(&self, seen: u64) {
        let arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let _arrivals =
            self.changed.wait_while(arrivals, |arrivals| *arrivals == seen).unwrap_or_else(PoisonError::into_inner);
    }
}
