//! The transport in earnest: timely dataflow between processes. A message carries the number of steps that its sender had
//! ended; when timely knows that no message of a step is under way any more, the step has arrived.

use std::any::Any;
use std::time::Duration;

use timely::communication::Hooks;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::{Input, Probe};
use timely::dataflow::{InputHandle, ProbeHandle};
use timely::worker::Worker;

use super::message::{Message, Whole, by_name};
use super::{Outbox, Peers};
use crate::Error;

/// How what a worker sends comes to others, and what is known of messages under way.
pub trait Transport {
    /// Sends what a worker put out during a step.
    fn send(&mut self, outbox: &Outbox);

    /// Says that the worker has ended so many steps; all it sent in them was given to [`Self::send`].
    fn advance(&mut self, steps: u64);

    /// Returns how many steps the worker was last said to have ended.
    fn steps(&self) -> u64;

    /// Moves messages on.
    fn step(&mut self);

    /// Returns how many steps all workers of all processes have ended of which all that they sent was taken in.
    fn arrived(&self) -> u64;
}

/// What timely's workers are made from.
pub type Builders = (Vec<AllocatorBuilder>, Box<dyn Any + Send>);

/// Makes `threads` workers of this process, connected to those of all others.
pub fn connect(threads: usize, peers: Option<&dyn Peers>) -> Result<Builders, Error> {
    let Some(peers) = peers else {
        let config = if threads == 1 {
            timely::CommunicationConfig::Thread
        } else {
            timely::CommunicationConfig::Process(threads)
        };
        return config.try_build().map_err(Error::Start);
    };
    let hooks = Hooks::default();
    let local = ProcessBuilder::new_typed_vector(threads, hooks.refill.clone(), hooks.spill.clone());
    let sockets = peers.sockets()?;
    let (builders, guard) = initialize_networking_from_sockets(local, sockets, peers.process(), threads, hooks)
        .map_err(|error| Error::Start(error.to_string()))?;
    Ok((builders.into_iter().map(AllocatorBuilder::Tcp).collect(), Box::new(guard)))
}

/// One worker's end of the transport.
pub struct Timely<'w> {
    worker: &'w mut Worker,
    ends: Option<Ends>,
    steps: u64,
}

/// Where messages go in, and what is known of those under way.
struct Ends {
    input: InputHandle<u64, Whole>,
    probe: ProbeHandle<u64>,
}

impl<'w> Timely<'w> {
    /// Begins within a timely worker. `receive` is given what arrives, and how many steps its sender had ended; without it
    /// nothing is sent.
    pub fn begin(worker: &'w mut Worker, receive: Option<impl Fn(u64, Message) + 'static>) -> Self {
        let ends = receive.map(|receive| {
            let mut input: InputHandle<u64, Whole> = InputHandle::new_with_builder();
            let probe = ProbeHandle::new();
            worker.dataflow(|scope| {
                scope
                    .input_from(&mut input)
                    .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(by_name(), "Receive", |_, _| {
                        move |messages, _| {
                            messages.for_each(|time, parcel| {
                                let messages = std::mem::take(parcel).messages;
                                messages.into_iter().for_each(|message| receive(*time.time(), message));
                            });
                        }
                    })
                    .probe_with(&probe);
            });
            Ends { input, probe }
        });
        Self { worker, ends, steps: 0 }
    }

    /// Moves messages on, or waits for some.
    pub fn wait(&mut self, at_most: Duration) {
        self.worker.step_or_park(Some(at_most));
    }
}

impl Transport for Timely<'_> {
    fn send(&mut self, outbox: &Outbox) {
        let Some(ends) = &mut self.ends else { return };
        outbox.parcels().for_each(|mut parcel| ends.input.send_batch(&mut parcel));
    }

    fn advance(&mut self, steps: u64) {
        if let Some(ends) = &mut self.ends
            && self.steps < steps
        {
            self.steps = steps;
            ends.input.advance_to(steps);
            self.worker.step();
        }
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn step(&mut self) {
        self.worker.step();
    }

    fn arrived(&self) -> u64 {
        let first = |ends: &Ends| ends.probe.with_frontier(|frontier| frontier.first().copied().unwrap_or(u64::MAX));
        self.ends.as_ref().map_or(u64::MAX, first)
    }
}
