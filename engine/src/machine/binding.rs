//! Threads and their memory, kept where the plan wants them.

use super::os;
use super::topology::Home;
#[cfg(feature = "numa")]
use super::topology::hwloc;

/// Keeps the current thread on the processors of a worker's home; with hwloc it also takes its memory from that node, even where
/// the process has another policy. What the system refuses stays as it was.
pub fn keep_current_thread_at(home: &Home) {
    os::keep_current_thread_on(&home.processors);
    #[cfg(feature = "numa")]
    hwloc::bind_memory_of_current_thread(home.node);
}
