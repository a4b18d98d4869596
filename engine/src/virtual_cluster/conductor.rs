//! The conductor: one thread that moves all virtual workers on, always the one whose time has come.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use super::meeting::gone;
use super::model::Link;
use super::network::{Frontier, Lane, Wire};
use super::time::{Charges, ModelledTime, VirtualTime, nanos};
use crate::Error;
use crate::run::worker::Progress;
use crate::run::{Approval, MakeWorker, VirtualWorker};
use crate::sync::Parcel;

/// A worker that is to be made, and what its tasks take.
pub type Enlisted = (MakeWorker, Charges);

/// What a worker is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// It has something to do.
    Busy,
    /// It cannot go on, since when.
    Waiting(u64),
    /// An injection stops it, until when.
    Paused(u64),
    /// It has ended the iteration before a look.
    Ended,
    /// It has ended the run.
    Gone,
}

/// A worker and what is kept for it.
struct Slot {
    worker: Box<dyn VirtualWorker>,
    status: Status,
    /// The end of what it is at.
    busy: u64,
    /// When it is looked at next; the largest number: not by itself.
    turn: u64,
    /// What has arrived and was not taken in, with the steps that its sender had ended.
    inbox: VecDeque<(u64, Parcel)>,
    steps: u64,
    out: Lane,
    into: Lane,
}

/// What happens at a moment.
enum Event {
    /// A worker is looked at.
    Turn(usize),
    /// The first byte of a parcel is at its receiver's link.
    Reach(u64, Parcel),
    Arrive(u64, Parcel),
    /// All know that a worker has ended this many steps.
    Told(usize, u64),
}

/// An event with its time; those of the same moment happen in the order in which they were scheduled.
struct Scheduled {
    at: u64,
    serial: u64,
    event: Event,
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scheduled {}

/// How often coordinators are asked whether they have decided.
const ASK: Duration = Duration::from_micros(50);

pub struct Conductor {
    slots: Vec<Slot>,
    events: BinaryHeap<Reverse<Scheduled>>,
    serial: u64,
    wire: Wire,
    frontier: Frontier,
    time: Rc<VirtualTime>,
    /// Whether workers wait for what others take in.
    values_are_bounded: bool,
}

impl Conductor {
    /// Makes the workers.
    pub fn new(enlisted: Vec<Enlisted>, link: Link, values_are_bounded: bool) -> Self {
        let time = Rc::new(VirtualTime::new());
        let slot = |worker| Slot {
            worker,
            status: Status::Ended,
            busy: 0,
            turn: u64::MAX,
            inbox: VecDeque::new(),
            steps: 0,
            out: Lane::default(),
            into: Lane::default(),
        };
        let of = |(make, charges): Enlisted| slot(make(Box::new(ModelledTime::new(&time, charges))));
        let slots: Vec<Slot> = enlisted.into_iter().map(of).collect();
        let (wire, frontier) = (Wire::from(link), Frontier::new(slots.len()));
        Self { slots, events: BinaryHeap::new(), serial: 0, wire, frontier, time, values_are_bounded }
    }

    /// Runs iterations, from look to look, until no worker wants another.
    pub fn run(mut self) {
        let mut now = 0;
        while self.approved() {
            for worker in 0..self.slots.len() {
                (self.slots[worker].status, self.slots[worker].busy) = (Status::Busy, now);
                self.look_at(worker, now);
            }
            while let Some(Reverse(Scheduled { at, event, .. })) = self.events.pop() {
                now = now.max(at);
                self.happen(at, event);
            }
            if self.slots.iter().any(|slot| slot.status != Status::Ended) {
                return self.fail();
            }
            // Nothing is under way, so that nothing changes while coordinators look at the state of the run.
            self.slots.iter_mut().for_each(|slot| slot.worker.report());
        }
    }

    /// Asks all coordinators whether there is to be another iteration.
    fn approved(&mut self) -> bool {
        loop {
            let wanted: Vec<Approval> = self.slots.iter().map(|slot| slot.worker.approval()).collect();
            if wanted.iter().all(|approval| *approval == Approval::Next) {
                return true;
            }
            if wanted.iter().all(|approval| *approval == Approval::Stop) {
                return false;
            }
            if wanted.iter().all(|approval| *approval != Approval::None) {
                self.fail();
                return false;
            }
            std::thread::sleep(ASK);
        }
    }

    /// Ends the run for whoever cannot go on because of another.
    fn fail(&mut self) {
        let stopped = |slot: &Slot| slot.status == Status::Gone || slot.worker.approval() == Approval::Stop;
        let process = self.slots.iter().position(stopped);
        for slot in self.slots.iter_mut().filter(|slot| slot.status != Status::Gone) {
            slot.worker.fail(process.map_or_else(
                || Error::Start("virtual workers wait for each other, which is a fault of the engine".to_owned()),
                gone,
            ));
        }
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.serial += 1;
        self.events.push(Reverse(Scheduled { at, serial: self.serial, event }));
    }

    /// Looks at a worker when it has time, but not before `at`; or earlier, if that was intended.
    fn look_at(&mut self, worker: usize, at: u64) {
        let slot = &mut self.slots[worker];
        let at = at.max(slot.busy);
        if at < slot.turn {
            slot.turn = at;
            self.schedule(at, Event::Turn(worker));
        }
    }

    fn happen(&mut self, at: u64, event: Event) {
        match event {
            Event::Turn(worker) => {
                // Another turn was scheduled since, and is this one or was before it.
                if self.slots[worker].turn == at {
                    self.slots[worker].turn = u64::MAX;
                    self.turn(worker, at);
                }
            }
            Event::Reach(step, parcel) => {
                let (_, there) = self.slots[parcel.to()].into.carry(at, parcel.wire_bytes(), &self.wire);
                self.schedule(there, Event::Arrive(step, parcel));
            }
            Event::Arrive(step, parcel) => {
                let to = parcel.to();
                self.slots[to].inbox.push_back((step, parcel));
                self.look_at(to, at);
            }
            Event::Told(worker, steps) => {
                if self.frontier.tell(worker, steps) {
                    self.wake(at);
                }
            }
        }
    }

    /// All have ended more steps, for which workers may wait.
    fn wake(&mut self, at: u64) {
        for worker in 0..self.slots.len() {
            if matches!(self.slots[worker].status, Status::Waiting(_)) {
                self.look_at(worker, at);
            }
        }
    }

    /// A worker takes in what has arrived, and does one thing if it can.
    fn turn(&mut self, worker: usize, at: u64) {
        self.time.set(at);
        let takes_in = !self.slots[worker].inbox.is_empty();
        self.take_in(worker);
        self.wake_for(takes_in);
        match self.slots[worker].status {
            Status::Paused(until) if self.time.nanos() < until => self.look_at(worker, until),
            Status::Ended | Status::Gone => {}
            _ => self.step(worker),
        }
    }

    fn take_in(&mut self, worker: usize) {
        while let Some((step, parcel)) = self.slots[worker].inbox.pop_front() {
            self.time.pass(self.wire.message);
            self.frontier.take_in(worker, step);
            self.slots[worker].worker.receive(step, parcel, self.frontier.arrived(worker));
            self.send(worker);
        }
        self.slots[worker].busy = self.time.nanos();
    }

    /// What a worker takes in, others may wait for, where values are bounded.
    fn wake_for(&mut self, takes_in: bool) {
        if takes_in && self.values_are_bounded {
            self.wake(self.time.nanos());
        }
    }

    fn step(&mut self, worker: usize) {
        let begin = self.time.nanos();
        let slot = &mut self.slots[worker];
        let progress = slot.worker.step(self.frontier.arrived(worker));
        if let (Status::Waiting(since), Progress::Ran | Progress::Ended(_)) = (slot.status, progress) {
            slot.worker.waited(Duration::from_nanos(begin - since));
        }
        self.send(worker);
        let slot = &mut self.slots[worker];
        let now = self.time.nanos();
        slot.busy = now;
        match progress {
            Progress::Ran => {
                let pause = nanos(slot.worker.pause().as_secs_f64());
                slot.status = if pause > 0 { Status::Paused(now + pause) } else { Status::Busy };
                self.look_at(worker, now + pause);
            }
            Progress::Waiting => {
                if !matches!(slot.status, Status::Waiting(_)) {
                    slot.status = Status::Waiting(begin);
                }
            }
            Progress::Ended(_) if slot.worker.approval() == Approval::Next => {
                slot.status = Status::Busy;
                self.look_at(worker, now);
            }
            Progress::Ended(_) => slot.status = Status::Ended,
            Progress::Stopped => slot.status = Status::Gone,
        }
    }

    /// Sends what a worker put out, and tells all how far it is.
    fn send(&mut self, worker: usize) {
        for (step, parcel) in self.slots[worker].worker.sent() {
            self.frontier.send(parcel.to(), step);
            if parcel.to() == worker {
                self.schedule(self.time.nanos(), Event::Arrive(step, parcel));
                continue;
            }
            self.time.pass(self.wire.message);
            let (first, _) = self.slots[worker].out.carry(self.time.nanos(), parcel.wire_bytes(), &self.wire);
            self.schedule(first + self.wire.latency, Event::Reach(step, parcel));
        }
        let steps = self.slots[worker].worker.steps();
        if self.slots[worker].steps < steps {
            self.slots[worker].steps = steps;
            self.schedule(self.time.nanos() + self.wire.latency, Event::Told(worker, steps));
        }
    }
}
