//! Workers of one process belong to no thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use megagrid_engine::{Engine, Topology};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Add, Master, Read, Right, Sequence, program, vertex};

use crate::made::{links, settings};

vertex! { struct Page { sync: u32, delta: u32, master: usize } }
program! { struct Links { vertices: Page } }

/// The first thread's two workers each begin a task and wait for the other to begin one: another thread has to take one over.
#[test]
fn a_thread_that_waits_takes_over_a_worker_whose_thread_is_in_a_task() {
    static BEGUN: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];
    static LATE: LazyLock<Instant> = LazyLock::new(|| Instant::now() + Duration::from_secs(20));
    let threads = Topology::detect().max_threads;
    if threads < 2 {
        return;
    }
    let edges = links(64 * threads, 2000 * threads);
    let sequence =
        Sequence::new().exchange(|_: Read<Page>, to: Add<Page>| *to.delta += 1).apply(Right, |page: Master<Page>| {
            *page.sync = *page.delta;
            let worker = *page.master;
            if worker < 2 {
                BEGUN[worker].store(true, Ordering::Relaxed);
                while !BEGUN[1 - worker].load(Ordering::Relaxed) && Instant::now() < *LATE {
                    std::thread::yield_now();
                }
            }
        });
    let mut engine = Engine::<Links>::new(&edges, sequence, &settings(2 * threads, 1)).unwrap();
    let right = Arc::new(engine.plan().right.clone());
    engine.init(Right, |page, first| {
        *first.master = right.owners[right.bounds.partition_point(|&bound| bound <= page) - 1];
    });
    engine.iterate(1).unwrap();
    assert!(Instant::now() < *LATE, "workers 0 and 1 ran at the same time");
    let offsets = edges.offsets(Side::Right);
    assert!(
        engine.on(Right).iter().zip(offsets.windows(2)).all(|(&count, ends)| u64::from(count) == ends[1] - ends[0])
    );
}
