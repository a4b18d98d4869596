//! A virtual cluster: many workers in one process, in modelled time.
//!
//! Every virtual worker is a process of one worker thread as far as the engine can tell: it has its own rows, makes the
//! same plan, sends the same messages and obeys the same rules of consistency, so that results are those of a cluster. Only time is
//! modelled. A [`Model`] says what tasks cost, which was calibrated or is given, and how long messages take; one thread, the
//! *conductor*, always moves the worker on that is the furthest behind in virtual time. Hence a run is a function of its
//! input, seed, shape and model, virtual times included.
//!
//! | in earnest | here |
//! |---|---|
//! | timely's channels move parcels, which tell how far their senders are | `conductor.rs`: a queue of events by time |
//! | sockets | `network.rs`: a link for each worker, with a bandwidth each way, and a latency between any two |
//! | the wall clock | `VirtualTime`: moved on by what tasks and messages cost |
//! | the control connections' collectives | `peers.rs`: threads of this process that meet; no time passes |
//!
//! Messages are served when they arrive, or when the task that a worker is at ends, as in earnest. What a worker tells of
//! its progress takes the latency and nothing else. Evaluation between iterations takes no time.

mod calibration;
mod conductor;
mod model;
mod network;
mod peers;
mod share;
mod time;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use calibration::{Calibration, StageCost};
pub(crate) use conductor::{Approval, Enlisted, Seat};
pub use model::{Costs, Link, Model, NoLink};
pub(crate) use time::{Charges, VirtualTime};

use crate::{Error, Peers};
use calibration::Samples;
use conductor::Roll;
use peers::{Meeting, VirtualPeers};
use share::Shelf;

/// Virtual workers and what is modelled of them.
#[derive(Debug)]
pub struct VirtualCluster {
    workers: usize,
    model: Model,
    meeting: Meeting,
    shelf: Shelf,
    roll: Roll,
    /// What tasks took, where costs are measured.
    samples: Mutex<Samples>,
}

impl VirtualCluster {
    /// Makes a cluster.
    #[must_use]
    pub fn new(workers: usize, model: Model) -> Arc<Self> {
        let (meeting, roll) = (Meeting::new(workers), Roll::new(workers));
        let shelf = Shelf::new(workers);
        Arc::new(Self { workers, model, meeting, shelf, roll, samples: Mutex::default() })
    }

    /// Runs the same work as every virtual worker, each on a thread of its own, and returns what they return, in order.
    /// The work makes an [`Engine`](crate::Engine) with [`Settings::peers`](crate::Settings::peers) and one worker.
    ///
    /// # Panics
    /// When the work panics.
    pub fn run<T: Send>(self: &Arc<Self>, work: impl Fn(Arc<dyn Peers>) -> T + Sync) -> Vec<T> {
        std::thread::scope(|threads| {
            let running: Vec<_> = (0..self.workers)
                .map(|worker| {
                    let (peers, work) = (VirtualPeers::new(self, worker), &work);
                    let name = format!("virtual worker {worker}");
                    std::thread::Builder::new().name(name).spawn_scoped(threads, move || {
                        let _leave = Leave(Arc::clone(&peers));
                        work(peers)
                    })
                })
                .collect();
            let joined = running.into_iter().map(|thread| match thread.map(|thread| thread.join()) {
                Ok(Ok(result)) => result,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(error) => panic!("starting virtual workers: {error}"),
            });
            joined.collect()
        })
    }

    /// Returns the number of workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns what tasks cost as measured so far, where costs are measured ([`Costs::Measured`]).
    #[must_use]
    pub fn calibration(&self) -> Calibration {
        self.samples().fit()
    }

    fn samples(&self) -> MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is the same for all workers, made by the first that asks. All ask for the same things in the same order.
    pub(crate) fn share<T: Send + Sync + 'static>(
        &self,
        worker: usize,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<Arc<T>, Error> {
        self.shelf.share(worker, make)
    }

    /// Lets a run of one process begin once all have come, and waits for none.
    pub(crate) fn enlist(self: &Arc<Self>, worker: usize, enlisted: Enlisted) -> Result<(), Error> {
        self.roll.enlist(self, worker, enlisted)
    }

    /// Waits until the conductor of the run has ended.
    pub(crate) fn wait_for_end(&self) {
        self.roll.wait_for_end();
    }
}

/// Tells the others when a worker's thread ends, by a panic or not: whoever waits for it must not wait for ever.
struct Leave(Arc<VirtualPeers>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.leave();
    }
}
