//! The driver in earnest: each worker state machine on a timely worker thread, and a coordinator that approves iterations.

mod seat;

use std::any::Any;
use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use megagrid_partition::SplitMix;
use megagrid_stages::{Context, Program};

use crate::board::Board;
use crate::engine::Shared;
use crate::metrics::{IterationReport, WorkerReport};
use crate::plan::{StageKind, Task};
use crate::stage::Site;
use crate::stopwatch::Stopwatch;
use crate::sync::{self, Arrived, Outbox, Peers, Timely, Traffic, Transport, hand_over};
use crate::worker::{Outcome, Position, Progress, Tasks, Worker};
use crate::{Error, os};

/// What a worker tells the coordinator.
enum Message {
    Ended(WorkerReport),
    Failed(Error),
}

/// Runs iterations `done + 1..=last`, and shows each report between iterations, when no worker runs.
pub(crate) fn run<P: Program>(
    shared: &Arc<Shared<P>>,
    done: u64,
    last: u64,
    mut between: impl FnMut(&IterationReport) -> ControlFlow<()>,
) -> Result<u64, Error> {
    if done >= last {
        return Ok(done);
    }
    if let Some(cluster) = shared.peers.as_deref().and_then(Peers::virtual_cluster) {
        return seat::run(shared, cluster, done, last, between);
    }
    let plan = &shared.plan;
    let workers = plan.threads();
    let board = Arc::new(Board::new(workers, plan.right.num_shards()));
    let (sender, messages) = channel();
    let sender = Mutex::new(sender);
    let (of_workers, of_board) = (Arc::clone(shared), Arc::clone(&board));
    board.approve(done + 1);
    let arrived = Arc::new(Arrived::new(workers));
    sync::begin(shared);
    let (builders, connections) = sync::connect(workers, shared.peers.as_deref())?;
    let config = timely::WorkerConfig::default();
    let threads = timely::execute::execute_from(builders, connections, config, move |timely| {
        let sender = sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let id = timely.index();
        os::pin_current_thread(of_workers.plan.homes[id].1);
        let worker = Worker::new(id, Arc::clone(&of_workers.plan), Arc::clone(&of_board), of_workers.seed, done);
        let runner = Runner::new(id, &of_workers, &of_board, sender.clone(), Stopwatch::Wall);
        let arrivals = Rc::clone(&runner.arrivals);
        let receive = move |step, message: sync::Message| arrivals.receive(step, message);
        let transport = Timely::begin(timely, &arrived, of_workers.plan.is_distributed().then_some(receive));
        let driven = catch_unwind(AssertUnwindSafe(|| drive(worker, runner, transport, &of_board)));
        if let Err(panic) = driven {
            let error = Error::EnginePanicked { worker: id, message: text(&*panic).to_owned() };
            let _ = sender.send(Message::Failed(error));
            of_board.stop();
        }
    });
    let mut threads =
        Threads { board: &board, guards: Some(threads.map_err(Error::Start)?), may_hang: shared.peers.is_some() };
    let done = coordinate(shared, &board, &messages, done..last, &mut between)?;
    threads.may_hang = false;
    drop(threads);
    sync::refresh(shared)?;
    Ok(done)
}

/// The workers' threads, which end when this is dropped: between the last iteration and what comes next, or on an error.
struct Threads<'b> {
    board: &'b Board,
    guards: Option<timely::communication::WorkerGuards<()>>,
    /// They wait for threads of other processes, which may never come: after an error they are left alone.
    may_hang: bool,
}

impl Drop for Threads<'_> {
    fn drop(&mut self) {
        self.board.stop();
        let guards = self.guards.take();
        if self.may_hang {
            std::mem::forget(guards);
        }
    }
}

/// Returns what a panic says.
fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no message")
}

fn coordinate<P: Program>(
    shared: &Shared<P>,
    board: &Board,
    messages: &Receiver<Message>,
    iterations: Range<u64>,
    between: &mut impl FnMut(&IterationReport) -> ControlFlow<()>,
) -> Result<u64, Error> {
    let (workers, last) = (shared.plan.threads(), iterations.end);
    let mut sent = Traffic::default();
    for iteration in iterations.start + 1..=last {
        let mut parts = Vec::with_capacity(workers);
        while parts.len() < workers {
            match messages.recv() {
                Ok(Message::Ended(part)) => parts.push(part),
                Ok(Message::Failed(error)) => return Err(error),
                Err(_) => return Err(Error::Start("all workers ended without a word".to_owned())),
            }
        }
        let mut report = IterationReport::join(iteration, &parts);
        if let Some(sync) = &shared.sync {
            let before = std::mem::replace(&mut sent, sync.sent());
            report.sent = sent - before;
        }
        report.unacknowledged_bytes =
            shared.replicas.as_ref().map_or(0, |replicas| replicas.most_unacknowledged_bytes());
        let peers = shared.peers.as_deref();
        let report = peers.map_or(Ok(report.clone()), |peers| report.join_processes(peers))?;
        let flow = between(&report);
        if agree(peers, flow)?.is_break() {
            return Ok(iteration);
        }
        if iteration < last {
            board.approve(iteration + 1);
        }
    }
    Ok(last)
}

/// Stops all processes where one wants to.
fn agree(peers: Option<&dyn Peers>, flow: ControlFlow<()>) -> Result<ControlFlow<()>, Error> {
    let Some(peers) = peers else { return Ok(flow) };
    let all = peers.all_gather(vec![u8::from(flow.is_break())])?;
    Ok(if all.iter().any(|flow| *flow != [0]) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
}

/// How long a worker that waits spins before it lets others run, and before it sleeps a little. With a core for each worker
/// it does not let others run: they may keep the core for milliseconds, and what it waits for takes microseconds.
const SPIN: Duration = Duration::from_micros(50);
const YIELD: Duration = Duration::from_millis(1);
const SLEEP: Duration = Duration::from_micros(100);
/// How long a worker of several processes waits for a message before it looks at the other workers of its process.
const PARK: Duration = Duration::from_micros(100);

/// Steps a worker until it stops. Between tasks messages are moved on, so that the masters of this thread are served.
fn drive<P: Program>(mut worker: Worker, mut runner: Runner<P>, mut transport: Timely<'_>, board: &Board) {
    let distributed = runner.shared.plan.is_distributed();
    let has_cores = std::thread::available_parallelism().is_ok_and(|cores| runner.shared.plan.threads() <= cores.get());
    let spin = if has_cores { YIELD } else { SPIN };
    let mut waiting: Option<Instant> = None;
    loop {
        let progress = worker.step(&mut runner);
        if distributed {
            exchange(&worker, &runner, &mut transport, board, progress);
        }
        match progress {
            Progress::Stopped => return,
            Progress::Waiting => {
                let since = *waiting.get_or_insert_with(Instant::now);
                let waited = since.elapsed();
                if distributed {
                    // Spinning would take the processor from the threads that send and receive.
                    transport.wait(PARK);
                } else if waited < spin {
                    std::hint::spin_loop();
                } else if waited < YIELD {
                    transport.step();
                    std::thread::yield_now();
                } else {
                    transport.step();
                    std::thread::sleep(SLEEP);
                }
            }
            progress => {
                if let Some(since) = waiting.take() {
                    runner.waited(since.elapsed());
                }
                let pause = runner.take_pause();
                if !pause.is_zero() {
                    serve(&worker, &runner, &mut transport, board, pause);
                }
                if let Progress::Ended(_) = progress {
                    runner.end_iteration();
                    runner.report();
                    transport.step();
                }
            }
        }
    }
}

/// Keeps a worker from work for a while. The masters of its thread are served.
fn serve<P: Program>(worker: &Worker, runner: &Runner<P>, transport: &mut Timely<'_>, board: &Board, pause: Duration) {
    let end = Instant::now() + pause;
    let takes_cycles = runner.shared.inject.is_some_and(|injection| injection.takes_cycles());
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|_| !board.stopped()) {
        if takes_cycles {
            transport.step();
        } else if runner.shared.plan.is_distributed() {
            transport.wait(left.min(PARK));
        } else {
            std::thread::sleep(left.min(SLEEP));
        }
        if runner.shared.plan.is_distributed() {
            exchange(worker, runner, transport, board, Progress::Waiting);
        }
    }
}

/// Sends what a task put out, tells how far the worker is, and looks how far all are.
fn exchange<P: Program>(
    worker: &Worker,
    runner: &Runner<P>,
    transport: &mut impl Transport,
    board: &Board,
    progress: Progress,
) {
    let in_step = progress == Progress::Ran && worker.steps() == transport.steps();
    if !in_step || runner.arrivals.outbox.is_due() {
        transport.send(&runner.arrivals.outbox);
        if let Some(sync) = &runner.shared.sync {
            runner.arrivals.outbox.count(sync);
        }
    }
    transport.advance(worker.steps());
    if progress == Progress::Waiting || worker.is_at_barrier() || runner.shared.plan.slack != Some(0) {
        transport.announce();
    }
    if in_step {
        transport.step();
    }
    runner.arrivals.take_in();
    board.arrive(transport.arrived());
    if let Some(replicas) = &runner.shared.replicas {
        board.freshen(replicas.age(), replicas.included());
    }
}

/// Takes in what other processes send to a worker.
struct Arrivals<P: Program> {
    shared: Arc<Shared<P>>,
    board: Arc<Board>,
    /// The worker's number in its process.
    seat: usize,
    /// What it answers, and what the worker sends.
    outbox: Outbox,
    /// Rows that came before this process ended what still reads the old ones, with the steps that their senders had ended.
    early: RefCell<Vec<(u64, sync::Message)>>,
    messages: Sender<Message>,
}

impl<P: Program> Arrivals<P> {
    /// Takes a message in, or keeps it until its time has come.
    fn receive(&self, step: u64, message: sync::Message) {
        if message.waits() {
            self.early.borrow_mut().push((step, message));
            self.keep_early();
        } else {
            self.take(&message);
        }
    }

    fn take(&self, message: &sync::Message) {
        if let Err(error) = sync::receive(&self.shared, &self.board, &self.outbox, message) {
            let _ = self.messages.send(Message::Failed(error));
            self.board.stop();
        }
    }

    /// Says on the board which rows are still to be taken in.
    fn keep_early(&self) {
        let first = self.early.borrow().iter().map(|(step, _)| *step).min();
        self.board.keep_early(self.seat, first.unwrap_or(u64::MAX));
    }

    /// Takes in rows that came early, once the workers of this process have ended what their sender had.
    fn take_in(&self) {
        let due = |(step, _): &mut (u64, _)| self.board.all_ended_steps(*step);
        let due: Vec<_> = self.early.borrow_mut().extract_if(.., due).collect();
        due.iter().for_each(|(_, message)| self.take(message));
        if !due.is_empty() {
            self.keep_early();
        }
    }
}

/// Runs the tasks of one worker on the grid.
struct Runner<P: Program> {
    id: usize,
    shared: Arc<Shared<P>>,
    board: Arc<Board>,
    /// Clocks of an iteration.
    clocks: u64,
    context: P::Worker,
    arrivals: Rc<Arrivals<P>>,
    stopwatch: Stopwatch,
    /// When the run began.
    begin: Instant,
    /// What an injection takes of the time to come.
    pause: Duration,
    report: Option<WorkerReport>,
    messages: Sender<Message>,
}

impl<P: Program> Runner<P> {
    fn new(
        id: usize,
        shared: &Arc<Shared<P>>,
        board: &Arc<Board>,
        messages: Sender<Message>,
        stopwatch: Stopwatch,
    ) -> Self {
        let arrivals = Arrivals {
            shared: Arc::clone(shared),
            board: Arc::clone(board),
            seat: id % shared.plan.threads(),
            outbox: Outbox::new(!shared.plan.early),
            early: RefCell::default(),
            messages: messages.clone(),
        };
        Self {
            id,
            shared: Arc::clone(shared),
            board: Arc::clone(board),
            clocks: shared.plan.clocks().max(1),
            context: P::Worker::default(),
            arrivals: Rc::new(arrivals),
            begin: stopwatch.now(),
            stopwatch,
            pause: Duration::ZERO,
            report: None,
            messages,
        }
    }

    fn report_now(&mut self) -> &mut WorkerReport {
        let now = self.stopwatch.now();
        self.report.get_or_insert_with(|| WorkerReport::begin(now))
    }

    /// Counts time without work, but not the coordinator's time between iterations.
    fn waited(&mut self, time: Duration) {
        if let Some(report) = &mut self.report {
            report.wait += time;
        }
    }

    /// Stops the worker's work for a while.
    fn stop_for(&mut self, time: Duration) {
        self.pause += time;
        self.report_now().compute += time;
    }

    fn take_pause(&mut self) -> Duration {
        std::mem::take(&mut self.pause)
    }

    fn end_iteration(&mut self) {
        let now = self.stopwatch.now();
        self.report_now().span.1 = now;
    }

    /// Hands the report of an iteration that has ended to the coordinator.
    fn report(&mut self) {
        if let Some(report) = self.report.take() {
            // The coordinator is gone only when the run is over.
            let _ = self.messages.send(Message::Ended(report));
        }
    }

    fn fail(&mut self, at: Position, panic: &(dyn Any + Send)) {
        let error = Error::WorkerPanicked {
            worker: self.id,
            clock: at.clock,
            stage: self.shared.plan.stages[at.stage].name.clone(),
            message: text(panic).to_owned(),
        };
        let _ = self.messages.send(Message::Failed(error));
        self.board.stop();
    }
}

impl<P: Program> Tasks for Runner<P> {
    fn begin_clock(&mut self, clock: u64, slowest: u64) {
        let staleness = slowest as i64 - clock as i64;
        *self.report_now().staleness.entry(staleness).or_insert(0) += 1;
        self.stopwatch.begin_clock(clock);
        if let Some(injection) = self.shared.inject {
            self.stop_for(injection.before_clock(self.id, self.shared.plan.workers, clock));
        }
    }

    fn run(&mut self, at: Position, task: &Task) -> Outcome {
        let begin = self.stopwatch.now();
        let shared = Arc::clone(&self.shared);
        let Shared { plan, grid, globals, stages, dims, sync, replicas, .. } = &*shared;
        let arrivals = Rc::clone(&self.arrivals);
        let site = Site {
            plan,
            grid,
            globals,
            worker: self.id,
            clock: at.clock,
            stage: at.stage,
            dims: *dims,
            sync: sync.as_ref(),
            replicas: replicas.as_ref(),
            outbox: &arrivals.outbox,
        };
        let global = globals.current();
        let context = &mut self.context;
        let clock = (at.clock - 1) % self.clocks;
        let stream = (clock << 12 | self.id as u64) ^ at.iteration.rotate_right(16);
        let seed = SplitMix::new(shared.seed, stream).bits();
        let mut cx = Context { worker: context, global: &*global, iteration: at.iteration, seed };
        let exchange = matches!(plan.stages[at.stage].kind, StageKind::Exchange(..) | StageKind::Incident(_));
        let rows = || (plan.left.rows_of(&task.left) + plan.right.rows_of(&task.right)) as u64;
        let ran = self.stopwatch.time(
            at.stage,
            || catch_unwind(AssertUnwindSafe(|| stages[at.stage].run(&site, task, &mut cx))),
            |ran| ran.as_ref().ok()?.map(|edges| if exchange { edges } else { rows() }),
        );
        let ran = match ran {
            Ok(ran) => ran,
            Err(panic) => {
                self.fail(at, &*panic);
                return Outcome::Refused;
            }
        };
        let Some(updates) = ran else { return Outcome::Refused };
        if let Some(to) = task.hand_over {
            let shard = task.right.start;
            hand_over(&site, shard, to, self.board.visits(shard) + 1);
        }
        if let Some(stage) = task.publish {
            let publish = || crate::stage::hold(|| stages[stage].run(&site, task, &mut cx));
            self.stopwatch.time(stage, publish, |_| Some(rows()));
        }
        let took = self.stopwatch.now() - begin;
        let report = self.report_now();
        if exchange {
            report.compute += took;
            report.updates += updates;
        } else {
            report.sync += took;
        }
        let more = if exchange { self.stopwatch.rest_of_clock() } else { Duration::ZERO };
        let lost =
            |injection: crate::Injection| injection.during(shared.seed, self.id, begin - self.begin, took + more);
        self.stop_for(more + shared.inject.map_or(Duration::ZERO, lost));
        Outcome::Ran
    }
}
