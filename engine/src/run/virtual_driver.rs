//! The driver of a virtual worker: the same state machine, moved on by another thread in modelled time.

use std::sync::Arc;
use std::time::Duration;

use megagrid_stages::Program;

use super::arrivals::Arrivals;
use super::begun::Begun;
use super::board::StopAtEnd;
use super::coordinator::Notice;
use super::modelled::{Approval, Modelled, VirtualWorker};
use super::runner::Runner;
use super::state::Run;
use super::time::Time;
use super::transport::Transport;
use super::worker::{Progress, Worker};
use crate::Error;
use crate::sync::{Outbox, Parcel, Replicas};

/// Runs one virtual worker until `coordinate` ends; see [`super::driver::run`].
pub fn run<P: Program>(
    run: &Arc<Run<P>>,
    modelled: &dyn Modelled,
    begun: Begun,
    coordinate: impl FnOnce() -> Result<u64, Error>,
) -> Result<u64, Error> {
    let plan = &run.plan;
    if plan.threads() != 1 {
        let found = plan.threads().to_string();
        return Err(Error::Setting { name: "workers of a virtual worker", found, expected: "1" });
    }
    let id = plan.processes.this;
    let (board, of_worker) = (Arc::clone(&begun.board), Arc::clone(run));
    let make = Box::new(move |time: Box<dyn Time>| {
        let (worker, runner) = begun.worker(id, &of_worker, time.now());
        let arrivals = Arrivals::new(id, &of_worker, &begun.board, begun.coordinator);
        let (transport, ended) = (InMemory::default(), begun.done);
        Box::new(Driven { worker, arrivals, runner, time, transport, ended }) as Box<dyn VirtualWorker>
    });
    modelled.enlist(plan, make)?;
    let stop = StopAtEnd(&board);
    let done = coordinate();
    drop(stop);
    if done.is_ok() {
        // Then nobody else has a hold of the rows.
        modelled.wait_for_end();
    }
    done
}

/// The transport of a virtual worker, up to the conductor.
#[derive(Default)]
struct InMemory {
    /// What is to be sent, with the steps ended before.
    sent: Vec<(u64, Parcel)>,
    steps: u64,
    arrived: u64,
}

impl Transport for InMemory {
    fn send(&mut self, outbox: &Outbox) {
        self.sent.extend(outbox.parcels().map(|parcel| (self.steps, parcel)));
    }

    fn advance(&mut self, steps: u64) {
        self.steps = steps;
    }

    /// The modelled network tells them.
    fn announce(&mut self) {}

    fn steps(&self) -> u64 {
        self.steps
    }

    fn step(&mut self) {}

    fn arrived(&self) -> u64 {
        self.arrived
    }
}

struct Driven<P: Program> {
    worker: Worker,
    arrivals: Arrivals<P>,
    runner: Runner<P>,
    time: Box<dyn Time>,
    transport: InMemory,
    ended: u64,
}

impl<P: Program> Driven<P> {
    fn pass_messages(&mut self, arrived: u64, progress: Progress) {
        self.transport.arrived = arrived;
        let at_work = self.runner.on(&mut *self.time, &self.arrivals.outbox);
        self.arrivals.pass_messages(&self.worker, at_work, &mut self.transport, progress);
    }
}

impl<P: Program> VirtualWorker for Driven<P> {
    fn step(&mut self, arrived: u64) -> Progress {
        self.runner.board.arrive(arrived);
        if let Some(in_transit) = self.runner.run.replicas.as_ref().and_then(Replicas::in_transit) {
            let clock = self.worker.clock();
            let is_allowed = in_transit.allows(self.runner.run.plan.processes.this, clock);
            self.runner.board.allow(if is_allowed { clock } else { clock - 1 });
        }
        let steps = self.worker.steps();
        let progress = self.worker.step(&mut self.runner.on(&mut *self.time, &self.arrivals.outbox));
        if self.worker.steps() > steps {
            self.runner.end_step(&*self.time);
        }
        self.pass_messages(arrived, progress);
        if let Progress::Ended(iteration) = progress {
            self.ended = iteration;
            self.runner.end_iteration(iteration, self.arrivals.outbox.take_sent(), &*self.time);
        }
        progress
    }

    fn receive(&mut self, step: u64, parcel: Parcel, arrived: u64) {
        parcel.messages.into_iter().for_each(|message| self.arrivals.receive(step, message));
        self.pass_messages(arrived, Progress::Waiting);
    }

    fn sent(&mut self) -> Vec<(u64, Parcel)> {
        std::mem::take(&mut self.transport.sent)
    }

    fn steps(&self) -> u64 {
        self.transport.steps
    }

    fn pause(&mut self) -> Duration {
        self.runner.take_pause()
    }

    fn waited(&mut self, time: Duration) {
        self.runner.waited(time);
    }

    fn report(&mut self) {
        self.runner.report();
    }

    fn fail(&mut self, error: Error) {
        let _ = self.runner.coordinator.send(Notice::Failed(error));
        self.runner.board.stop();
    }

    fn approval(&self) -> Approval {
        if self.runner.board.stopped() {
            Approval::Stop
        } else if self.runner.board.approved() > self.ended {
            Approval::Next
        } else {
            Approval::None
        }
    }
}
