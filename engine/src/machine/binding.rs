//! Threads and their memory, kept where the plan wants them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use megagrid_partition::parallel::lock;

use super::os::{self, ThreadId};
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

/// Threads that stay at home until one of them finds that the system puts them aside there: then each may run wherever a thread
/// of its node does.
#[derive(Debug, Default)]
pub struct Bound {
    threads: Mutex<Vec<(ThreadId, Home)>>,
    released: AtomicBool,
}

impl Bound {
    /// Keeps the current thread at the home of its first worker.
    pub fn keep_current_thread_at(&self, home: &Home) {
        let mut threads = lock(&self.threads);
        if !self.released.load(Ordering::Relaxed) {
            keep_current_thread_at(home);
            threads.push((os::current_thread(), home.clone()));
        }
    }

    /// Lets all threads go where others of their node are.
    pub fn release(&self) {
        if self.released.swap(true, Ordering::Relaxed) {
            return;
        }
        let threads = lock(&self.threads);
        for (thread, home) in threads.iter() {
            let of_node = threads.iter().filter(|(_, other)| other.node == home.node);
            let processors: Vec<usize> = of_node.flat_map(|(_, home)| home.processors.iter().copied()).collect();
            os::keep_thread_on(*thread, &processors);
        }
    }
}
