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
//! | the control connections' collectives | `meeting.rs`: threads of this process that meet; no time passes |
//!
//! Messages are served when they arrive, or when the task that a worker is at ends, as in earnest. What a worker tells of
//! its progress takes the latency and nothing else. Evaluation between iterations takes no time.

mod calibration;
mod conductor;
mod made_once;
mod meeting;
mod model;
mod network;
mod start;
mod time;

use std::fmt;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use megagrid_partition::parallel::lock;

pub use calibration::{Calibration, StageCost};
pub use model::{Costs, Link, Model, NoLink};

use crate::Error;
use crate::plan::Plan;
use crate::run::{MakeWorker, Modelled, Peers, Shared, pack_parts, parts_for};
use crate::sync::InTransit;
use calibration::Samples;
use made_once::MadeOnce;
use meeting::Meeting;
use start::Start;
use time::Charges;

/// Virtual workers and what is modelled of them.
#[derive(Debug)]
pub struct VirtualCluster {
    workers: usize,
    model: Arc<Model>,
    meeting: Meeting,
    made_once: MadeOnce,
    start: Start,
    /// What tasks took, where costs are measured.
    samples: Arc<Mutex<Samples>>,
    /// Where values are bounded: what is under way.
    in_transit: Option<Arc<InTransit>>,
}

impl VirtualCluster {
    /// Makes a cluster.
    #[must_use]
    pub fn new(workers: usize, model: Model) -> Arc<Self> {
        Arc::new(Self::of(workers, model, None))
    }

    /// Makes a cluster in which a worker begins its clock t when none of its changes under way is larger than `first_bound` / √t, each
    /// item by itself (value-bounded asynchronous parallelism, VAP). Nobody knows that but where all processes are in one: it is there
    /// to be compared with. For programs that change rows of both sides in place, with [`Settings::slack`](crate::Settings::slack)
    /// `None`.
    #[must_use]
    pub fn with_bounded_values(workers: usize, model: Model, first_bound: f64) -> Arc<Self> {
        Arc::new(Self::of(workers, model, Some(Arc::new(InTransit::new(first_bound)))))
    }

    fn of(workers: usize, model: Model, in_transit: Option<Arc<InTransit>>) -> Self {
        Self {
            workers,
            model: Arc::new(model),
            meeting: Meeting::new(workers),
            made_once: MadeOnce::new(workers),
            start: Start::new(workers),
            samples: Arc::default(),
            in_transit,
        }
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
                    let (peers, work) = (Arc::new(VirtualPeers { cluster: Arc::clone(self), worker }), &work);
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
        lock(&self.samples).fit()
    }
}

/// Tells the others when a worker's thread ends, by a panic or not: whoever waits for it must not wait for ever.
struct Leave(Arc<VirtualPeers>);

impl Drop for Leave {
    fn drop(&mut self) {
        let VirtualPeers { cluster, worker } = &*self.0;
        cluster.meeting.leave(*worker);
        cluster.start.leave(*worker);
    }
}

/// One virtual worker's view of the others.
struct VirtualPeers {
    cluster: Arc<VirtualCluster>,
    worker: usize,
}

impl fmt::Debug for VirtualPeers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "virtual worker {} of {}", self.worker, self.cluster.workers)
    }
}

impl Peers for VirtualPeers {
    fn process(&self) -> usize {
        self.worker
    }

    fn processes(&self) -> usize {
        self.cluster.workers
    }

    fn all_gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.cluster.meeting.meet(self.worker, mine)?.to_vec())
    }

    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let all = self.cluster.meeting.meet(self.worker, mine)?;
        Ok((self.worker == 0).then(|| all.to_vec()))
    }

    fn exchange(&self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error> {
        // All parts are in memory once.
        parts_for(self.worker, &self.cluster.meeting.meet(self.worker, pack_parts(&parts))?)
    }

    fn sockets(&self) -> Result<Vec<Option<TcpStream>>, Error> {
        Err(Error::Start("virtual workers have no sockets".to_owned()))
    }

    fn modelled(&self) -> Option<&dyn Modelled> {
        Some(self)
    }
}

impl Modelled for VirtualPeers {
    fn share(&self, make: &mut dyn FnMut() -> Result<Shared, Error>) -> Result<Shared, Error> {
        self.cluster.made_once.share(self.worker, make)
    }

    fn enlist(&self, plan: &Plan, worker: MakeWorker) -> Result<(), Error> {
        let VirtualCluster { model, samples, start, .. } = &*self.cluster;
        let charges = Charges::new(Arc::clone(model), Arc::clone(samples), self.worker, plan)?;
        start.enlist((model.link, self.cluster.in_transit.is_some()), self.worker, (worker, charges))
    }

    fn in_transit(&self) -> Option<Arc<InTransit>> {
        self.cluster.in_transit.clone()
    }

    fn wait_for_end(&self) {
        self.cluster.start.wait_for_end();
    }

    fn model(&self) -> serde_json::Value {
        serde_json::to_value(&*self.cluster.model).unwrap_or_default()
    }
}
