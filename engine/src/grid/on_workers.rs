//! Work for each worker of this process, where its rows are.

use std::thread::ScopedJoinHandle;

use crate::machine::os;
use crate::plan::Plan;

/// Calls `work` for each worker of this process on a thread of its own, on the worker's processors, and returns the results in
/// order.
///
/// # Panics
/// When `work` panics.
pub fn on_workers<R: Send>(plan: &Plan, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    std::thread::scope(|threads| {
        let work = &work;
        let on_thread = |worker: usize| {
            threads.spawn(move || {
                os::keep_current_thread_on(&plan.homes[worker].processors);
                work(worker)
            })
        };
        let parts: Vec<_> = plan.local_workers().map(on_thread).collect();
        let join = |part: ScopedJoinHandle<'_, R>| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        parts.into_iter().map(join).collect()
    })
}
