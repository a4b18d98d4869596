//! The driver in earnest: each worker state machine on a timely worker thread, and a coordinator that approves iterations.

mod runner;
mod seat;

use std::any::Any;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use megagrid_stages::Program;

use crate::board::Board;
use crate::engine::Shared;
use crate::metrics::{IterationReport, WorkerReport};
use crate::stopwatch::Stopwatch;
use crate::sync::{self, Arrived, Peers, Replication, Timely, Traffic, Transport};
use crate::worker::{Progress, Worker};
use crate::{Error, os};
use runner::Runner;

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
    let sent = sent(shared);
    let arrived = Arc::new(Arrived::new(workers));
    sync::begin(shared);
    let (builders, connections) = sync::connect(workers, shared.peers.as_deref())?;
    let config = timely::WorkerConfig::default();
    let threads = timely::execute::execute_from(builders, connections, config, move |timely| {
        let sender = sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let id = timely.index();
        os::keep_current_thread_on(&of_workers.plan.homes[id].processors);
        let worker = Worker::new(id, Arc::clone(&of_workers.plan), Arc::clone(&of_board), of_workers.seed, done);
        let runner = Runner::new(id, &of_workers, &of_board, sender.clone(), Stopwatch::Wall);
        let arrivals = Rc::clone(&runner.arrivals);
        let outbox_of = Rc::clone(&arrivals);
        let receive = move |step, message: sync::Message| arrivals.receive(step, message);
        let transport = Timely::begin(timely, &arrived, of_workers.plan.is_distributed().then_some(receive));
        if let Some(senders) = transport.senders() {
            outbox_of.outbox.connect(senders);
        }
        let driven = catch_unwind(AssertUnwindSafe(|| drive(worker, runner, transport, &of_board)));
        if let Err(panic) = driven {
            let error = Error::EnginePanicked { worker: id, message: text(&*panic).to_owned() };
            let _ = sender.send(Message::Failed(error));
            of_board.stop();
        }
    });
    let mut threads =
        Threads { board: &board, guards: Some(threads.map_err(Error::Start)?), may_hang: shared.peers.is_some() };
    let done = coordinate(shared, (&board, sent), &messages, done..last, &mut between)?;
    threads.may_hang = false;
    drop(threads);
    sync::refresh(shared, done)?;
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

/// Returns what a process has sent in all runs.
fn sent<P: Program>(shared: &Shared<P>) -> Traffic {
    shared.sync.as_ref().map(Replication::sent).unwrap_or_default()
}

/// Approves iterations and reports them; `sent` is what was sent before the first worker began.
fn coordinate<P: Program>(
    shared: &Shared<P>,
    (board, mut sent): (&Board, Traffic),
    messages: &Receiver<Message>,
    iterations: Range<u64>,
    between: &mut impl FnMut(&IterationReport) -> ControlFlow<()>,
) -> Result<u64, Error> {
    let (workers, last) = (shared.plan.threads(), iterations.end);
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
