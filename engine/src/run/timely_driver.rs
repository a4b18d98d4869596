//! The driver of several processes: each worker on a timely worker thread, which serves its messages between tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use megagrid_partition::parallel::lock;
use megagrid_stages::Program;

use super::arrivals::Arrivals;
use super::begun::Begun;
use super::board::Board;
use super::coordinator::{Notice, text};
use super::peers::Peers;
use super::runner::Runner;
use super::state::Run;
use super::time::Wall;
use super::transport::{Arrived, Builders, Timely, Transport, connect};
use super::worker::{Progress, Worker};
use crate::Error;
use crate::machine::binding::keep_current_thread_at;
use crate::sync::Message;

/// Runs this process's workers until `coordinate` ends; see [`super::driver::run`].
pub fn run<P: Program>(
    run: &Arc<Run<P>>,
    peers: &dyn Peers,
    begun: Begun,
    coordinate: impl FnOnce() -> Result<u64, Error>,
) -> Result<u64, Error> {
    let workers = run.plan.threads();
    let (board, of_workers) = (Arc::clone(&begun.board), Arc::clone(run));
    let begun = Mutex::new(begun);
    let arrived = Arc::new(Arrived::new(workers));
    let (builders, connections) = connect(workers, peers)?;
    let work = Box::new(move |timely: &mut timely::worker::Worker| {
        let begun = lock(&begun).clone();
        let id = timely.index();
        keep_current_thread_at(&of_workers.plan.homes[id]);
        let (worker, runner) = begun.worker(id, &of_workers, Instant::now());
        let arrivals = Arrivals::new(id, &of_workers, &begun.board, begun.coordinator.clone());
        let transport = Timely::begin(timely, &arrived, |step, message: Message| arrivals.receive(step, message));
        arrivals.outbox.connect(transport.senders());
        let driven = catch_unwind(AssertUnwindSafe(|| drive(worker, runner, &arrivals, transport)));
        if let Err(panic) = driven {
            let error = Error::EnginePanicked { worker: id, message: text(&*panic).to_owned() };
            let _ = begun.coordinator.send(Notice::Failed(error));
            begun.board.stop();
        }
    });
    let mut threads = Threads { board: &board, guards: Some(start((builders, connections), work)?), may_hang: true };
    let done = coordinate()?;
    threads.may_hang = false;
    Ok(done)
}

/// Starts the threads: compiled once, for all programs.
fn start(
    (builders, connections): Builders,
    work: Box<dyn Fn(&mut timely::worker::Worker) + Send + Sync>,
) -> Result<timely::communication::WorkerGuards<()>, Error> {
    let config = timely::WorkerConfig::default();
    timely::execute::execute_from(builders, connections, config, move |timely| work(timely)).map_err(Error::Start)
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

/// How long a worker waits for a message before it looks at the other workers of its process. Spinning would take the
/// processor from the threads that send and receive.
const PARK: Duration = Duration::from_micros(100);

/// Steps a worker until it stops. Between tasks messages are moved on, so that the masters of this thread are served.
fn drive<P: Program>(mut worker: Worker, mut runner: Runner<P>, arrivals: &Arrivals<P>, mut transport: Timely<'_>) {
    let mut waiting: Option<Instant> = None;
    loop {
        let (steps, until) = (worker.steps(), waiting.map(|_| Instant::now()));
        let progress = worker.step(&mut runner.on(&mut Wall, &arrivals.outbox));
        if worker.steps() > steps {
            runner.end_step(&Wall);
        }
        arrivals.pass_messages(&worker, runner.on(&mut Wall, &arrivals.outbox), &mut transport, progress);
        match progress {
            Progress::Stopped => return,
            Progress::Waiting => {
                waiting.get_or_insert_with(Instant::now);
                transport.wait(PARK);
            }
            progress => {
                if let Some((since, until)) = waiting.take().zip(until) {
                    runner.waited_from(since, until);
                }
                let pause = runner.take_pause();
                if !pause.is_zero() {
                    serve(&worker, &mut runner, arrivals, &mut transport, pause);
                }
                if let Progress::Ended(iteration) = progress {
                    runner.end_iteration(iteration, arrivals.outbox.take_sent(), &Wall);
                    runner.report();
                    transport.step();
                }
            }
        }
    }
}

/// Keeps a worker from work for a while. The masters of its thread are served.
fn serve<P: Program>(
    worker: &Worker,
    runner: &mut Runner<P>,
    arrivals: &Arrivals<P>,
    transport: &mut Timely<'_>,
    pause: Duration,
) {
    let end = Instant::now() + pause;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|_| !runner.board.stopped()) {
        if runner.takes_cycles() {
            transport.step();
        } else {
            transport.wait(left.min(PARK));
        }
        arrivals.pass_messages(worker, runner.on(&mut Wall, &arrivals.outbox), transport, Progress::Waiting);
    }
}
