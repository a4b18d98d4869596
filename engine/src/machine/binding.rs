//! Threads and their memory, kept where the plan wants them.

use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

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

/// Which processors each thread of a run is bound to. Whoever waits for a thread that the system has put aside swaps with it.
#[derive(Debug)]
pub struct Bindings {
    threads: Box<[OnceLock<ThreadId>]>,
    homes: Mutex<Vec<Home>>,
}

/// How long a thread is watched to see whether it runs.
const LOOK: Duration = Duration::from_micros(5);

impl Bindings {
    /// Shares the processors of each home out among the threads that have it.
    pub fn new(homes: &[&Home]) -> Self {
        let share = |(thread, home): (usize, &&Home)| {
            let of_home = |threads: &[&Home]| threads.iter().filter(|&other| other == home).count();
            let (at, threads, processors) = (of_home(&homes[..thread]), of_home(homes), home.processors.len());
            let range = if threads <= processors {
                at * processors / threads..(at + 1) * processors / threads
            } else {
                0..processors
            };
            Home { node: home.node, processors: home.processors[range].to_vec() }
        };
        let threads = homes.iter().map(|_| OnceLock::new()).collect();
        Self { threads, homes: Mutex::new(homes.iter().enumerate().map(share).collect()) }
    }

    /// Keeps the current thread on its processors.
    pub fn bind_current(&self, number: usize) {
        keep_current_thread_at(&lock(&self.homes)[number]);
        let _ = self.threads[number].set(os::current_thread());
    }

    /// Where the system has put a thread of the same node aside, gives it the processors of the current one, `mine`, on which
    /// it goes on at once, and takes its own. Tells whether it did.
    pub fn swap(&self, mine: usize, other: usize) -> bool {
        let [Some(here), Some(there)] = [mine, other].map(|number| self.threads[number].get()) else { return false };
        // One that swaps at this moment has a processor.
        let Ok(mut homes) = self.homes.try_lock() else { return false };
        let changes = homes[mine].node == homes[other].node
            && is_put_aside(*there)
            && os::keep_thread_on(*there, &homes[mine].processors);
        if changes {
            homes.swap(mine, other);
            let processors = homes[mine].processors.clone();
            drop(homes);
            os::keep_thread_on(*here, &processors);
        }
        changes
    }
}

/// Tells whether a thread is on no processor.
fn is_put_aside(thread: ThreadId) -> bool {
    let Some(before) = os::processor_time_of(thread) else { return false };
    let begin = Instant::now();
    while begin.elapsed() < LOOK {
        std::hint::spin_loop();
    }
    os::processor_time_of(thread) == Some(before)
}

#[cfg(all(test, not(loom), target_os = "linux"))]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::machine::topology::Topology;

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn a_thread_swaps_processors_with_one_that_is_on_no_processor() {
        let node = Topology::detect().nodes.swap_remove(0);
        let Some(cores) = node.cores.first_chunk::<2>() else { return };
        let home = Home { node: node.id, processors: cores.to_vec() };
        let bindings = Bindings::new(&[&home, &home]);
        let of = |number: usize| lock(&bindings.homes)[number].processors.clone();
        assert_eq!((of(0), of(1)), (vec![cores[0]], vec![cores[1]]));
        assert!(!bindings.swap(0, 1), "nobody is bound");
        let (stop, stopped) = channel::<()>();
        let (take, taken) = channel();
        std::thread::scope(|scope| {
            let bindings = &bindings;
            scope.spawn(move || {
                bindings.bind_current(1);
                take.send(()).unwrap();
                let _ = stopped.recv();
            });
            scope.spawn(move || {
                bindings.bind_current(0);
                taken.recv().unwrap();
                let _stop = stop;
                let begin = Instant::now();
                while !bindings.swap(0, 1) && begin.elapsed() < Duration::from_secs(20) {}
            });
        });
        assert_eq!((of(0), of(1)), (vec![cores[1]], vec![cores[0]]));
    }
}
