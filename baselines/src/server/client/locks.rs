//! Locks that stay usable when a thread panicked with them, and that are counted.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::server::statistics::Statistics;

/// Locks. Whoever panics with it ends the run; what others still read is whole rows.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks shared rows and counts it, and whether another thread held them.
#[inline]
pub(super) fn lock_counted<'a, T>(mutex: &'a Mutex<T>, counters: &mut Statistics) -> MutexGuard<'a, T> {
    counters.row_locks += 1;
    match mutex.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            counters.contended_row_locks += 1;
            lock(mutex)
        }
    }
}
