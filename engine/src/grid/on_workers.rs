//! Work for each worker of this process, where its rows are.

use std::sync::{Mutex, PoisonError};

use megagrid_partition::parallel::lock;

use crate::machine::binding::keep_current_thread_at;
use crate::plan::Plan;

/// Calls `work` for each worker of this process on a thread of its own, on the worker's processors, and returns the results in
/// order.
///
/// # Panics
/// When `work` panics.
pub fn on_workers<R: Send>(plan: &Plan, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let first = plan.local_workers().start;
    let results: Vec<Mutex<Option<R>>> = plan.local_workers().map(|_| Mutex::new(None)).collect();
    on_each_worker(plan, &|worker| {
        let result = work(worker);
        *lock(&results[worker - first]) = Some(result);
    });
    results.into_iter().filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Compiled once, since threads make much code for each closure that they are given.
fn on_each_worker(plan: &Plan, work: &(dyn Fn(usize) + Sync)) {
    std::thread::scope(|threads| {
        let on_thread = |worker: usize| {
            threads.spawn(move || {
                keep_current_thread_at(&plan.homes[worker]);
                work(worker);
            })
        };
        let parts: Vec<_> = plan.local_workers().map(on_thread).collect();
        for part in parts {
            part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}
