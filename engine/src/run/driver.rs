//! The driver in earnest: each worker state machine on a timely worker thread, and a coordinator that approves iterations.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use megagrid_partition::parallel::lock;
use megagrid_stages::Program;

use super::between;
use super::board::Board;
use super::coordinator::{Notice, coordinate, text};
use super::peers::Peers;
use super::report::IterationReport;
use super::runner::Runner;
use super::state::Run;
use super::time::Wall;
use super::transport::{Arrived, Timely, Transport, connect};
use super::virtual_driver;
use super::worker::{Progress, Worker};
use crate::Error;
use crate::machine::binding::keep_current_thread_at;
use crate::sync::Message;

/// Runs iterations `done + 1..=last`, and shows each report between iterations, when no worker runs.
pub fn run<P: Program>(
    run: &Arc<Run<P>>,
    done: u64,
    last: u64,
    mut look: impl FnMut(&IterationReport) -> ControlFlow<()>,
) -> Result<u64, Error> {
    if done >= last {
        return Ok(done);
    }
    if let Some(modelled) = run.peers.as_deref().and_then(Peers::modelled) {
        return virtual_driver::run(run, modelled, done, last, look);
    }
    let plan = &run.plan;
    let workers = plan.threads();
    let board = Arc::new(Board::new(workers, plan.right.num_shards()));
    let (sender, messages) = channel();
    let sender = Mutex::new(sender);
    let (of_workers, of_board) = (Arc::clone(run), Arc::clone(&board));
    board.approve(done + 1);
    let sent = run.sent();
    let arrived = Arc::new(Arrived::new(workers));
    between::begin(run);
    let (builders, connections) = connect(workers, run.peers.as_deref())?;
    let config = timely::WorkerConfig::default();
    let threads = timely::execute::execute_from(builders, connections, config, move |timely| {
        let sender = lock(&sender).clone();
        let id = timely.index();
        keep_current_thread_at(&of_workers.plan.homes[id]);
        let worker = Worker::new(id, Arc::clone(&of_workers.plan), Arc::clone(&of_board), of_workers.seed, done);
        let runner = Runner::new(id, &of_workers, &of_board, sender.clone(), Box::new(Wall));
        let arrivals = Rc::clone(&runner.arrivals);
        let outbox_of = Rc::clone(&arrivals);
        let receive = move |step, message: Message| arrivals.receive(step, message);
        let transport = Timely::begin(timely, &arrived, of_workers.plan.is_distributed().then_some(receive));
        if let Some(senders) = transport.senders() {
            outbox_of.outbox.connect(senders);
        }
        let driven = catch_unwind(AssertUnwindSafe(|| drive(worker, runner, transport, &of_board)));
        if let Err(panic) = driven {
            let error = Error::EnginePanicked { worker: id, message: text(&*panic).to_owned() };
            let _ = sender.send(Notice::Failed(error));
            of_board.stop();
        }
    });
    let mut threads =
        Threads { board: &board, guards: Some(threads.map_err(Error::Start)?), may_hang: run.peers.is_some() };
    let done = coordinate(run, (&board, sent), &messages, done..last, &mut look)?;
    threads.may_hang = false;
    drop(threads);
    between::refresh(run, done)?;
    Ok(done)
}

/// The workers' threads, which end when this is dropped: between the last iteration and what comes next, or on an error.
struct Threads<'b> {
    board: &'b Board,
    guards: Option<timely::communication::WorkerGuards<()>>,
    /// They wait for threads of other processes, which may never come: after an error nobody waits for them.
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

/// How long a worker that waits spins before it lets others run, and before it sleeps a little. With a core for each worker
/// it does not let others run: they may keep the core for milliseconds, and what it waits for takes microseconds.
const SPIN: Duration = Duration::from_micros(50);
const YIELD: Duration = Duration::from_millis(1);
const SLEEP: Duration = Duration::from_micros(100);
/// How long a worker of several processes waits for a message before it looks at the other workers of its process.
const PARK: Duration = Duration::from_micros(100);

/// Steps a worker until it stops. Between tasks messages are moved on, so that the masters of this thread are served.
fn drive<P: Program>(mut worker: Worker, mut runner: Runner<P>, mut transport: Timely<'_>, board: &Board) {
    let distributed = runner.run.plan.is_distributed();
    let has_cores = std::thread::available_parallelism().is_ok_and(|cores| runner.run.plan.threads() <= cores.get());
    let spin = if has_cores { YIELD } else { SPIN };
    let mut waiting: Option<Instant> = None;
    loop {
        let (steps, until) = (worker.steps(), waiting.map(|_| Instant::now()));
        let progress = worker.step(&mut runner);
        if worker.steps() > steps {
            runner.end_step();
        }
        if distributed {
            runner.pass_messages(&worker, &mut transport, progress);
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
                if let Some((since, until)) = waiting.take().zip(until) {
                    runner.waited_from(since, until);
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
    let takes_cycles = runner.run.inject.is_some_and(|injection| injection.takes_cycles());
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|_| !board.stopped()) {
        if takes_cycles {
            transport.step();
        } else if runner.run.plan.is_distributed() {
            transport.wait(left.min(PARK));
        } else {
            std::thread::sleep(left.min(SLEEP));
        }
        if runner.run.plan.is_distributed() {
            runner.pass_messages(worker, transport, Progress::Waiting);
        }
    }
}
