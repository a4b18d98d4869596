//! The threads of a worker and what they tell each other, under every interleaving with up to [`PREEMPTIONS`]
//! preemptions: none waits for ever, and no buffer is given to two accesses at a time.
//!
//! `cargo loom`
#![cfg(loom)]

use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::mpsc::{Receiver, channel};
use loom::thread;
use megagrid_geeps::Error;
use megagrid_geeps::device::DeviceRange;
use megagrid_geeps::hub::{Ended, Home, Hub};

const PREEMPTIONS: usize = 2;
/// Two layers of two buffers in a ring of one layer: the second waits for what the first gives back.
const LENS: [usize; 4] = [2, 1, 1, 1];
const RING: usize = 3;
const PER_LAYER: usize = 2;
const HOME: Home = Home::Table(0);

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.max_branches = 10_000;
    builder.check(check);
}

/// The buffers that are in use, to find out whether one is given away twice.
type Used = Arc<Mutex<Vec<(u64, usize, usize)>>>;

/// As the allocator does: the third access needs what the post of the first one writes.
fn allocate(hub: &Hub, used: &Used, prefetch: bool) -> Result<(), Ended> {
    for (access, len) in LENS.into_iter().enumerate() {
        if !prefetch {
            hub.wait_until_asked(access as u64)?;
        }
        let start = hub.take(access as u64, len)?;
        if access == 2 {
            hub.wait_until_written(HOME, 1)?;
        }
        let mut used = used.lock().expect("nobody panics with it");
        assert!(used.iter().all(|&(_, other, end)| end <= start || start + len <= other), "{used:?} and {start}");
        used.push((access as u64, start, start + len));
        drop(used);
        hub.grant(DeviceRange { buffer: 0, start, len });
    }
    Ok(())
}

fn reclaim(hub: &Hub, used: &Used, posts: &Receiver<u64>) {
    while let Ok(ticket) = posts.recv() {
        if ticket == u64::MAX {
            return;
        }
        used.lock().expect("nobody panics with it").retain(|buffer| buffer.0 != ticket);
        hub.reclaimed((ticket == 0).then_some(HOME), Some(ticket));
    }
}

fn worker_ends(prefetch: bool) {
    model(move || {
        let (hub, used) = (Arc::new(Hub::new(RING, 1, 0)), Used::default());
        let (send, receive) = channel();
        let allocator = {
            let (hub, used) = (Arc::clone(&hub), Arc::clone(&used));
            thread::spawn(move || allocate(&hub, &used, prefetch))
        };
        let reclaimer = {
            let (hub, used) = (Arc::clone(&hub), Arc::clone(&used));
            thread::spawn(move || reclaim(&hub, &used, &receive))
        };
        for layer in 0..LENS.len() / PER_LAYER {
            for at in 0..PER_LAYER {
                let range = hub.ask().expect("it is granted");
                assert_eq!(range.len, LENS[layer * PER_LAYER + at]);
            }
            for at in (0..PER_LAYER).rev() {
                hub.posted();
                send.send((layer * PER_LAYER + at) as u64).expect("the reclaimer listens");
            }
        }
        hub.settle().expect("all is written");
        send.send(u64::MAX).expect("the reclaimer listens");
        assert_eq!(allocator.join().expect("it ends"), Ok(()));
        reclaimer.join().expect("it ends");
    });
}

#[test]
fn a_worker_that_fetches_ahead_comes_to_its_end() {
    worker_ends(true);
}

#[test]
fn a_worker_that_fetches_when_asked_comes_to_its_end() {
    worker_ends(false);
}

/// Whoever waits, for an access, a write or room, is told of a failure.
#[test]
fn a_failure_ends_every_wait() {
    model(|| {
        let hub = Arc::new(Hub::new(1, 1, 0));
        let error = Error::DeviceMemory { bytes: 1, most: String::new() };
        let waits = {
            let hub = Arc::clone(&hub);
            thread::spawn(move || {
                hub.take(0, 1)?;
                hub.take(1, 1).map(drop)
            })
        };
        let application = {
            let hub = Arc::clone(&hub);
            thread::spawn(move || hub.ask())
        };
        hub.fail(error.clone());
        assert_eq!(waits.join().expect("it ends"), Err(Ended::Failed(error.clone())));
        assert_eq!(application.join().expect("it ends"), Err(error));
    });
}

/// An allocator that waits for room ends when the application needs no more.
#[test]
fn a_stop_ends_the_allocator() {
    model(|| {
        let hub = Arc::new(Hub::new(1, 1, 0));
        let waits = {
            let hub = Arc::clone(&hub);
            thread::spawn(move || {
                hub.take(0, 1)?;
                hub.take(1, 1).map(drop)
            })
        };
        hub.stop();
        assert_eq!(waits.join().expect("it ends"), Err(Ended::Stopped));
    });
}
