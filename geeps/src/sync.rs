//! Locks and conditions, which are loom's when loom tests them.

#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

use std::sync::PoisonError;

/// Locks. Whoever panics with it ends the run; what others still read is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until something has changed, or for no reason.
pub(crate) fn wait<'l, T>(changed: &Condvar, guard: MutexGuard<'l, T>) -> MutexGuard<'l, T> {
    changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
