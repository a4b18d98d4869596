//! The transport in earnest: timely's threads and channels between processes. A parcel says how many steps its sender had
//! ended; when one from every worker of the other processes says so, the steps before have arrived.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::communication::{Hooks, Pull};
use timely::worker::Worker;

use super::peers::Peers;
use crate::Error;
use crate::sync::{Message, Outbox, Parcel, Senders};

/// How what a worker sends comes to others, and what is known of messages under way.
pub trait Transport {
    /// Sends what a worker put out since it ended its last step.
    fn send(&mut self, outbox: &Outbox);

    /// Takes down that the worker has ended this many steps; all it sent in them was given to [`Self::send`].
    fn advance(&mut self, steps: u64);

    /// Lets all others know how many steps the worker has ended. It wakes them, so not before they may need it.
    fn announce(&mut self);

    /// Returns how many steps the worker was last said to have ended.
    fn steps(&self) -> u64;

    /// Moves messages on.
    fn step(&mut self);

    /// Returns how many steps all workers of other processes have ended of which all that they sent was taken in.
    fn arrived(&self) -> u64;
}

/// What timely's workers are made from.
pub type Builders = (Vec<AllocatorBuilder>, Box<dyn Any + Send>);

/// Makes `threads` workers of this process, connected to those of all others.
pub fn connect(threads: usize, peers: &dyn Peers) -> Result<Builders, Error> {
    let hooks = Hooks::default();
    let local = ProcessBuilder::new_typed_vector(threads, hooks.refill.clone(), hooks.spill.clone());
    let sockets = peers.sockets()?;
    let (builders, guard) = initialize_networking_from_sockets(local, sockets, peers.process(), threads, hooks)
        .map_err(|error| Error::Start(error.to_string()))?;
    Ok((builders.into_iter().map(AllocatorBuilder::Tcp).collect(), Box::new(guard)))
}

/// How many steps all workers of other processes have ended of which what they sent is here, for each worker of this
/// process.
pub struct Arrived(Box<[AtomicU64]>);

impl Arrived {
    /// Begins with nothing.
    pub fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| AtomicU64::new(0)).collect())
    }
}

/// One worker's end of the transport: where parcels go in and come out. These are timely's channels without a dataflow: its
/// frontier would pass a step only when every process knows that every other has taken in all messages, which is a round trip
/// more than is needed here.
pub struct Timely<'w> {
    worker: &'w mut Worker,
    to: Rc<Senders>,
    from: Box<dyn Pull<Parcel>>,
    receive: Box<dyn Fn(u64, Message) + 'w>,
    /// Steps that this worker has ended, and those that others know of.
    steps: u64,
    announced: u64,
    /// Of each worker of other processes, the steps that it has ended of which all that it sent here has come.
    heard: Vec<u64>,
    arrived: Arc<Arrived>,
}

impl<'w> Timely<'w> {
    /// Begins within a timely worker. `receive` is given what arrives, and how many steps its sender had ended.
    pub fn begin(worker: &'w mut Worker, arrived: &Arc<Arrived>, receive: impl Fn(u64, Message) + 'w) -> Self {
        let channel = worker.new_identifier();
        let (to, from) = worker.allocate(channel, Rc::from([channel]));
        let threads = arrived.0.len();
        let own = worker.index() / threads;
        let heard = (0..worker.peers()).map(|other| if other / threads == own { u64::MAX } else { 0 }).collect();
        let to = Rc::new(Senders { to: RefCell::new(to), worker: worker.index() as u64, steps: Cell::new(0) });
        let (receive, arrived) = (Box::new(receive), Arc::clone(arrived));
        Self { worker, to, from, receive, steps: 0, announced: 0, heard, arrived }
    }

    /// Returns where parcels go in.
    pub fn senders(&self) -> Rc<Senders> {
        Rc::clone(&self.to)
    }

    /// Moves messages on, or waits for some.
    pub fn wait(&mut self, at_most: Duration) {
        self.worker.step_or_park(Some(at_most));
        self.take_in();
    }

    fn take_in(&mut self) {
        while let Some(parcel) = self.from.recv() {
            parcel.messages.into_iter().for_each(|message| (self.receive)(parcel.steps, message));
            // A process of this version names no other worker.
            if let Some(heard) = self.heard.get_mut(parcel.from as usize) {
                *heard = parcel.steps.max(*heard);
            }
        }
        let thread = self.worker.index() % self.arrived.0.len();
        let all = self.heard.iter().copied().min().unwrap_or(u64::MAX);
        self.arrived.0[thread].store(all, Ordering::Release);
    }
}

impl Transport for Timely<'_> {
    fn send(&mut self, outbox: &Outbox) {
        outbox.parcels().for_each(|parcel| self.to.send(parcel));
    }

    fn advance(&mut self, steps: u64) {
        self.steps = steps;
        self.to.steps.set(steps);
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn announce(&mut self) {
        if self.announced == self.steps {
            return;
        }
        self.announced = self.steps;
        for other in (0..self.heard.len()).filter(|&other| self.heard[other] < u64::MAX) {
            self.to.send_to(other, Parcel::default());
        }
        self.step();
    }

    fn step(&mut self) {
        self.worker.step();
        self.take_in();
    }

    fn arrived(&self) -> u64 {
        self.arrived.0.iter().map(|steps| steps.load(Ordering::Acquire)).min().unwrap_or(u64::MAX)
    }
}
