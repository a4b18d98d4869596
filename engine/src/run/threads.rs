//! The driver of one process: as many threads as processors, each of which moves its own workers on.
//!
//! A worker belongs to no thread for good. Where the system puts a thread aside, another one that has nothing to do takes its
//! workers over between two of their tasks, one of the same node of memory at once, others later; which thread runs a task changes no
//! result. Where it was put aside in the middle of a
//! task, the one that waits gives it its processor, and takes the other. A thread that waits for long sleeps.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use megagrid_stages::Program;

use super::begun::Begun;
use super::board::{Board, StopAtEnd};
use super::coordinator::{Notice, text};
use super::runner::Runner;
use super::state::Run;
use super::time::Wall;
use super::worker::{Progress, Worker};
use crate::Error;
use crate::machine::binding::Bindings;
use crate::machine::os::times_put_aside;
use crate::machine::topology::{Home, most_threads};
use crate::plan::{Plan, Traffic};
use crate::sync::Outbox;

/// How long a thread leaves workers to the thread that they belong to: more than that needs to see that they may go on.
const PATIENCE: Duration = Duration::from_micros(30);
/// How long it leaves those of another node of memory to the threads there while nobody ends a step, or a visit of a shard: what these
/// workers need is far from here. Before that the system will have given a thread that it has put aside its turn.
const PATIENCE_ELSEWHERE: Duration = Duration::from_millis(10);
/// After how long it asks first whether one of them is put aside in the middle of a task, and again after twice that.
const ASK_AFTER: Duration = Duration::from_micros(100);
/// How long a thread with nothing to do asks again and again before it sleeps between.
const SPIN: Duration = Duration::from_millis(1);
/// The same where the system has lately put a thread of this run aside.
const SPIN_IN_COMPANY: Duration = Duration::from_micros(100);
/// What "lately" is, and how often a thread asks the system.
const LATELY: Duration = Duration::from_millis(20);
const ASK_EVERY: Duration = Duration::from_millis(1);
/// How long it sleeps: an eighth of what it has waited, within these bounds.
const SLEEP: Range<Duration> = Duration::from_micros(50)..Duration::from_millis(1);

/// Runs all workers until `coordinate` ends; see [`super::driver::run`].
pub fn run<P: Program>(
    run: &Arc<Run<P>>,
    begun: &Begun,
    coordinate: impl FnOnce() -> Result<u64, Error>,
) -> Result<u64, Error> {
    let (plan, board) = (&run.plan, &begun.board);
    let threads = most_threads().min(plan.workers);
    let homes: Vec<&Home> = (0..threads).map(|thread| &plan.homes[thread * plan.workers / threads]).collect();
    let scheduler = Scheduler {
        plan,
        board,
        slots: (0..plan.workers).map(|worker| Slot::new(worker, run, begun)).collect(),
        threads,
        bindings: Bindings::new(&homes),
        begin: Instant::now(),
        put_aside: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(board);
        for thread in 0..scheduler.threads {
            let (scheduler, coordinator) = (&scheduler, begun.coordinator.clone());
            let work = move || {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| scheduler.work(thread))) {
                    let (worker, message) = (scheduler.own(thread).start, text(&*panic).to_owned());
                    let _ = coordinator.send(Notice::Failed(Error::EnginePanicked { worker, message }));
                    scheduler.board.stop();
                }
            };
            let name = format!("worker {}", scheduler.own(thread).start);
            start(scope, name, Box::new(work))?;
        }
        coordinate()
    })
}

/// Starts a thread: compiled once, for all programs.
fn start<'s>(scope: &'s Scope<'s, '_>, name: String, work: Box<dyn FnOnce() + Send + 's>) -> Result<(), Error> {
    let started = std::thread::Builder::new().name(name).spawn_scoped(scope, work);
    started.map(drop).map_err(|error| Error::Start(error.to_string()))
}

/// Lists the workers that do not belong to a thread: those of its node, and the rest.
fn others(plan: &Plan, own: &Range<usize>) -> (Vec<usize>, Vec<usize>) {
    let others = (0..plan.workers).filter(|worker| !own.contains(worker));
    others.partition(|&worker| plan.homes[worker].node == plan.homes[own.start].node)
}

/// The workers of a run and the threads that move them on.
struct Scheduler<'r, P: Program> {
    plan: &'r Plan,
    board: &'r Board,
    slots: Box<[Slot<P>]>,
    threads: usize,
    bindings: Bindings,
    begin: Instant,
    /// Until when the last time counts that a thread was put aside, in nanoseconds from the beginning.
    put_aside: AtomicU64,
}

/// A worker, on cache lines of its own, and whether the thread that it belongs to looks after it.
#[repr(align(128))]
struct Slot<P: Program> {
    worker: Mutex<Driven<P>>,
    attended: AtomicBool,
    /// The thread that moves it on, or did so last.
    holder: AtomicUsize,
}

impl<P: Program> Scheduler<'_, P> {
    /// Returns the workers that belong to a thread.
    fn own(&self, thread: usize) -> Range<usize> {
        let first = |thread: usize| thread * self.slots.len() / self.threads;
        first(thread)..first(thread + 1)
    }

    /// Moves workers on until the run ends.
    fn work(&self, thread: usize) {
        let own = self.own(thread);
        let ((near, far), outbox) = (others(self.plan, &own), Outbox::default());
        self.bindings.bind_current(thread);
        let mut idle: Option<Instant> = None;
        let (mut ask_at, mut ended) = (ASK_AFTER, (0, Instant::now()));
        let (mut asked, mut times) = (Instant::now(), times_put_aside());
        while !self.board.stopped() {
            if asked.elapsed() > ASK_EVERY {
                asked = Instant::now();
                self.look_for_company(&mut times, asked);
            }
            let mut moved = false;
            for slot in &self.slots[own.clone()] {
                slot.attend(true);
                moved |= slot.go_on(thread, &outbox);
            }
            let waited = if moved { Duration::ZERO } else { idle.get_or_insert_with(Instant::now).elapsed() };
            if !moved {
                let mut take_over = |worker: &usize| self.slots[*worker].take_over(thread, waited, &outbox);
                moved = near.iter().any(&mut take_over)
                    || !far.is_empty() && self.is_stuck(&mut ended) && far.iter().any(&mut take_over);
            }
            if moved {
                idle = None;
                ask_at = ASK_AFTER;
            } else if waited >= ask_at {
                ask_at = 2 * waited;
                self.swap_processors(thread);
            } else if waited < if self.has_company() { SPIN_IN_COMPANY } else { SPIN } {
                std::hint::spin_loop();
            } else {
                self.sleep(own.clone(), waited);
            }
        }
    }

    /// Tells whether no worker has ended anything for long; `ended` is what they had when that was last asked of the board.
    fn is_stuck(&self, ended: &mut (u64, Instant)) -> bool {
        if ended.1.elapsed() < PATIENCE_ELSEWHERE {
            return false;
        }
        let now = self.board.ended();
        if now != ended.0 {
            *ended = (now, Instant::now());
            return false;
        }
        true
    }

    /// Lets a thread go on that the system has put aside in the middle of a task: nothing can be done before it is done.
    fn swap_processors(&self, thread: usize) {
        self.slots[self.own(thread)].iter().for_each(|slot| slot.attend(false));
        let holder = self.slots.iter().find_map(Slot::holder);
        if let Some(holder) = holder.filter(|&holder| holder != thread) {
            self.bindings.swap(thread, holder);
        }
    }

    /// Takes down whether the system has put the current thread aside more often than `times`.
    fn look_for_company(&self, times: &mut i64, now: Instant) {
        let before = std::mem::replace(times, times_put_aside());
        if *times > before {
            let until = now - self.begin + LATELY;
            self.put_aside.fetch_max(until.as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// Tells whether others want the processors too.
    fn has_company(&self) -> bool {
        let until = self.put_aside.load(Ordering::Relaxed);
        until > 0 && u128::from(until) > self.begin.elapsed().as_nanos()
    }

    /// Leaves the processor, and the own workers, to others for a while.
    fn sleep(&self, own: Range<usize>, waited: Duration) {
        self.slots[own].iter().for_each(|slot| slot.attend(false));
        std::thread::sleep((waited / 8).clamp(SLEEP.start, SLEEP.end));
    }
}

impl<P: Program> Slot<P> {
    fn new(id: usize, run: &Arc<Run<P>>, begun: &Begun) -> Self {
        let (worker, runner) = begun.worker(id, run, Instant::now());
        let driven = Driven { worker, runner, waiting: None, pause: None };
        Self { worker: Mutex::new(driven), attended: AtomicBool::new(true), holder: AtomicUsize::new(0) }
    }

    /// Says whether the worker's own thread looks after it.
    fn attend(&self, attended: bool) {
        if self.attended.load(Ordering::Relaxed) != attended {
            self.attended.store(attended, Ordering::Relaxed);
        }
    }

    /// Moves the worker on as far as it may go, unless another thread does so. Tells whether it did anything.
    fn go_on(&self, thread: usize, outbox: &Outbox) -> bool {
        let Some(mut worker) = self.lock() else { return false };
        if self.holder.load(Ordering::Relaxed) != thread {
            self.holder.store(thread, Ordering::Relaxed);
        }
        worker.go_on(outbox)
    }

    /// Returns the thread that moves the worker on at this moment.
    fn holder(&self) -> Option<usize> {
        self.lock().is_none().then(|| self.holder.load(Ordering::Relaxed))
    }

    /// Moves on a worker that its own thread does not look after, or has not for a while.
    fn take_over(&self, thread: usize, waited: Duration, outbox: &Outbox) -> bool {
        let attended = self.attended.load(Ordering::Relaxed);
        if attended && waited < PATIENCE || !self.go_on(thread, outbox) {
            return false;
        }
        self.attend(false);
        true
    }

    fn lock(&self) -> Option<MutexGuard<'_, Driven<P>>> {
        match self.worker.try_lock() {
            Ok(worker) => Some(worker),
            Err(TryLockError::Poisoned(worker)) => Some(worker.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A worker and what runs its tasks.
struct Driven<P: Program> {
    worker: Worker,
    runner: Runner<P>,
    /// Since when it waits for others.
    waiting: Option<Instant>,
    /// Until when an injection keeps it from work.
    pause: Option<Instant>,
}

impl<P: Program> Driven<P> {
    fn go_on(&mut self, outbox: &Outbox) -> bool {
        let mut moved = false;
        while !self.is_paused() {
            let (steps, until) = (self.worker.steps(), self.waiting.map(|_| Instant::now()));
            let progress = self.worker.step(&mut self.runner.on(&mut Wall, outbox));
            if self.worker.steps() > steps {
                self.runner.end_step(&Wall);
            }
            match progress {
                Progress::Stopped => break,
                Progress::Waiting => {
                    self.waiting.get_or_insert_with(Instant::now);
                    break;
                }
                Progress::Ran | Progress::Ended(_) => self.went_on(until, progress),
            }
            moved = true;
        }
        moved
    }

    fn went_on(&mut self, until: Option<Instant>, progress: Progress) {
        if let Some((since, until)) = self.waiting.take().zip(until) {
            self.runner.waited_from(since, until);
        }
        let pause = self.runner.take_pause();
        if !pause.is_zero() {
            self.pause = Some(Instant::now() + pause);
        }
        if let Progress::Ended(iteration) = progress {
            self.runner.end_iteration(iteration, Traffic::default(), &Wall);
            self.runner.report();
        }
    }

    /// Tells whether an injection keeps the worker from work; where it takes cycles, it takes them from this thread.
    fn is_paused(&mut self) -> bool {
        let Some(end) = self.pause else { return false };
        while self.runner.takes_cycles() && Instant::now() < end && !self.runner.board.stopped() {
            std::hint::spin_loop();
        }
        if Instant::now() < end {
            return true;
        }
        self.pause = None;
        false
    }
}
