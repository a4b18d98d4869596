//! The conductor: one thread that moves all virtual workers on, always the one whose time has come.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::VirtualCluster;
use super::network::{Frontier, Lane, Wire};
use super::peers::gone;
use super::time::{VirtualTime, nanos};
use crate::Error;
use crate::sync::Parcel;
use crate::worker::Progress;

/// A worker as the conductor sees it. It reads and passes time by the [`VirtualTime`] that it was made with.
pub trait Seat {
    /// Does one thing, knowing how many steps have arrived. What it sends is given to [`Self::sent`] by then.
    fn step(&mut self, arrived: u64) -> Progress;

    /// Takes in what another worker sent when it had ended `step` steps.
    fn receive(&mut self, step: u64, parcel: Parcel, arrived: u64);

    /// Returns what is to be sent, each with the steps that were ended before it.
    fn sent(&mut self) -> Vec<(u64, Parcel)>;

    /// Returns the steps that it has ended and sent everything of.
    fn steps(&self) -> u64;

    /// Returns for how long it is stopped by an injection from now on.
    fn pause(&mut self) -> Duration;

    /// Counts time in which it had nothing to do.
    fn waited(&mut self, time: Duration);

    /// Tells its coordinator that the iteration has ended.
    fn report(&mut self);

    /// Tells its coordinator that the run has failed, and ends.
    fn fail(&mut self, error: Error);

    /// Returns what its coordinator wants.
    fn approval(&self) -> Approval;
}

/// What a worker's coordinator wants after an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// It has not decided.
    None,
    /// Another iteration.
    Next,
    /// The end.
    Stop,
}

/// Makes a worker, on the conductor's thread.
pub type Enlisted = Box<dyn FnOnce(Rc<VirtualTime>) -> Box<dyn Seat> + Send>;

/// Who has come for a run.
pub struct Roll {
    state: Mutex<RollState>,
    changed: Condvar,
}

struct RollState {
    enlisted: Vec<Option<Enlisted>>,
    under_way: bool,
    /// The first that will not come any more.
    left: Option<usize>,
}

impl std::fmt::Debug for Roll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Roll").field("under_way", &self.lock().under_way).finish_non_exhaustive()
    }
}

impl Roll {
    pub fn new(workers: usize) -> Self {
        let state = RollState { enlisted: (0..workers).map(|_| None).collect(), under_way: false, left: None };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, RollState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a worker down; the last one begins the run.
    pub fn enlist(&self, cluster: &Arc<VirtualCluster>, worker: usize, enlisted: Enlisted) -> Result<(), Error> {
        let mut state = self.lock();
        if let Some(process) = state.left {
            return Err(gone(process));
        }
        state.enlisted[worker] = Some(enlisted);
        if state.enlisted.iter().any(Option::is_none) {
            return Ok(());
        }
        state.under_way = true;
        let all: Vec<Enlisted> = state.enlisted.iter_mut().filter_map(Option::take).collect();
        let cluster = Arc::clone(cluster);
        let conductor = std::thread::Builder::new().name("conductor".to_owned());
        let started = conductor.spawn(move || {
            let _end = End(&cluster.roll);
            Conductor::new(all, &cluster).run();
        });
        started.map(drop).map_err(|error| {
            state.under_way = false;
            Error::Start(error.to_string())
        })
    }

    /// Lets nobody wait for a worker. Those who have come learn it as what they enlisted is dropped.
    pub fn leave(&self, worker: usize) {
        let mut state = self.lock();
        state.left.get_or_insert(worker);
        let dropped: Vec<_> = state.enlisted.iter_mut().filter_map(Option::take).collect();
        drop(state);
        drop(dropped);
    }

    pub fn wait_for_end(&self) {
        let mut state = self.lock();
        while state.under_way {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Tells that the conductor has ended, also by a panic.
struct End<'r>(&'r Roll);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.lock().under_way = false;
        self.0.changed.notify_all();
    }
}

/// What a worker is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// It has something to do.
    Busy,
    /// It cannot go on, since when.
    Waiting(u64),
    /// An injection stops it, until when.
    Paused(u64),
    /// It has ended the iteration.
    Ended,
    /// It has ended the run.
    Gone,
}

/// A worker and what is kept for it.
struct Slot {
    seat: Box<dyn Seat>,
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
    /// A parcel is there.
    Arrive(u64, Parcel),
    /// All know that a worker has ended so many steps.
    Told(usize, u64),
}

/// An event with its time; those of the same moment happen in the order in which they were foreseen.
struct Foreseen {
    at: u64,
    serial: u64,
    event: Event,
}

impl Ord for Foreseen {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
}

impl PartialOrd for Foreseen {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Foreseen {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Foreseen {}

/// How often coordinators are asked whether they have decided.
const ASK: Duration = Duration::from_micros(50);

struct Conductor {
    slots: Vec<Slot>,
    events: BinaryHeap<Reverse<Foreseen>>,
    serial: u64,
    wire: Wire,
    frontier: Frontier,
    time: Rc<VirtualTime>,
}

impl Conductor {
    fn new(enlisted: Vec<Enlisted>, cluster: &VirtualCluster) -> Self {
        let time = Rc::new(VirtualTime::new());
        let slot = |seat| Slot {
            seat,
            status: Status::Ended,
            busy: 0,
            turn: u64::MAX,
            inbox: VecDeque::new(),
            steps: 0,
            out: Lane::default(),
            into: Lane::default(),
        };
        let slots: Vec<Slot> = enlisted.into_iter().map(|make| slot(make(Rc::clone(&time)))).collect();
        let (wire, frontier) = (Wire::from(cluster.model.link), Frontier::new(slots.len()));
        Self { slots, events: BinaryHeap::new(), serial: 0, wire, frontier, time }
    }

    fn run(mut self) {
        let mut now = 0;
        while self.approved() {
            for worker in 0..self.slots.len() {
                (self.slots[worker].status, self.slots[worker].busy) = (Status::Busy, now);
                self.look_at(worker, now);
            }
            while let Some(Reverse(Foreseen { at, event, .. })) = self.events.pop() {
                now = now.max(at);
                self.happen(at, event);
            }
            if self.slots.iter().any(|slot| slot.status != Status::Ended) {
                return self.fail();
            }
            // Nothing is under way, so that nothing changes while coordinators look at the state of the run.
            self.slots.iter_mut().for_each(|slot| slot.seat.report());
        }
    }

    /// Asks all coordinators whether there is to be another iteration.
    fn approved(&mut self) -> bool {
        loop {
            let wanted: Vec<Approval> = self.slots.iter().map(|slot| slot.seat.approval()).collect();
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
        let stopped = |slot: &Slot| slot.status == Status::Gone || slot.seat.approval() == Approval::Stop;
        let process = self.slots.iter().position(stopped);
        for slot in self.slots.iter_mut().filter(|slot| slot.status != Status::Gone) {
            slot.seat.fail(process.map_or_else(
                || Error::Start("virtual workers wait for each other, which is a fault of the engine".to_owned()),
                gone,
            ));
        }
    }

    fn foresee(&mut self, at: u64, event: Event) {
        self.serial += 1;
        self.events.push(Reverse(Foreseen { at, serial: self.serial, event }));
    }

    /// Looks at a worker when it has time, but not before `at`; or earlier, if that was intended.
    fn look_at(&mut self, worker: usize, at: u64) {
        let slot = &mut self.slots[worker];
        let at = at.max(slot.busy);
        if at < slot.turn {
            slot.turn = at;
            self.foresee(at, Event::Turn(worker));
        }
    }

    fn happen(&mut self, at: u64, event: Event) {
        match event {
            Event::Turn(worker) => {
                // Another turn was foreseen since, and is this one or was before it.
                if self.slots[worker].turn == at {
                    self.slots[worker].turn = u64::MAX;
                    self.turn(worker, at);
                }
            }
            Event::Reach(step, parcel) => {
                let (_, there) = self.slots[parcel.to()].into.carry(at, parcel.wire_bytes(), &self.wire);
                self.foresee(there, Event::Arrive(step, parcel));
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
        self.take_in(worker);
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
            self.slots[worker].seat.receive(step, parcel, self.frontier.arrived(worker));
            self.send(worker);
        }
        self.slots[worker].busy = self.time.nanos();
    }

    fn step(&mut self, worker: usize) {
        let begin = self.time.nanos();
        let slot = &mut self.slots[worker];
        let progress = slot.seat.step(self.frontier.arrived(worker));
        if let (Status::Waiting(since), Progress::Ran | Progress::Ended(_)) = (slot.status, progress) {
            slot.seat.waited(Duration::from_nanos(begin - since));
        }
        self.send(worker);
        let slot = &mut self.slots[worker];
        let now = self.time.nanos();
        slot.busy = now;
        match progress {
            Progress::Ran => {
                let pause = nanos(slot.seat.pause().as_secs_f64());
                slot.status = if pause > 0 { Status::Paused(now + pause) } else { Status::Busy };
                self.look_at(worker, now + pause);
            }
            Progress::Waiting => {
                if !matches!(slot.status, Status::Waiting(_)) {
                    slot.status = Status::Waiting(begin);
                }
            }
            Progress::Ended(_) => slot.status = Status::Ended,
            Progress::Stopped => slot.status = Status::Gone,
        }
    }

    /// Sends what a worker put out, and tells all how far it is.
    fn send(&mut self, worker: usize) {
        for (step, parcel) in self.slots[worker].seat.sent() {
            self.frontier.send(parcel.to(), step);
            if parcel.to() == worker {
                self.foresee(self.time.nanos(), Event::Arrive(step, parcel));
                continue;
            }
            self.time.pass(self.wire.message);
            let (first, _) = self.slots[worker].out.carry(self.time.nanos(), parcel.wire_bytes(), &self.wire);
            self.foresee(first + self.wire.latency, Event::Reach(step, parcel));
        }
        let steps = self.slots[worker].seat.steps();
        if self.slots[worker].steps < steps {
            self.slots[worker].steps = steps;
            self.foresee(self.time.nanos() + self.wire.latency, Event::Told(worker, steps));
        }
    }
}
