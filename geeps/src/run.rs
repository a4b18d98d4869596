//! Runs an application on several workers of this process, epoch after epoch.
//!
//! Between epochs all workers are done and the application is measured on what the server has. Within one each worker
//! is a thread, with a device and two more threads of its own.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use crate::Error;
use crate::apps::{Application, Measured, Place};
use crate::client::{Client, Options};
use crate::device::Device;
use crate::memory::{Moves, Plan};
use crate::server::{Consistency, Server};
use crate::table::TableId;
use crate::trace::Trace;
use crate::virtual_iteration::VirtualIteration;

/// How an application is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// How many workers there are.
    pub workers: usize,
    /// Epochs at most.
    pub epochs: u64,
    /// How fresh parameters are.
    pub consistency: Consistency,
    /// Bytes of each worker's device memory.
    pub budget: u64,
    /// Whether data are fetched before they are asked for.
    pub prefetch: bool,
}

/// One epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Epoch {
    /// Which, from 1.
    pub epoch: u64,
    /// Wall-clock seconds, without measuring.
    pub seconds: f64,
    /// Seconds that each worker was busy, and of these, that it waited for data and memory.
    pub workers: Vec<[f64; 2]>,
    /// The mean loss of samples as they were trained, before the updates that they led to.
    pub loss: f64,
    /// Samples that were trained on.
    pub samples: u64,
    /// What was measured after it.
    pub measured: Measured,
    /// Bytes between hosts and devices, all workers together, what was fetched ahead for the next epoch among them.
    pub moves: Moves,
    /// Bytes between the server and the workers, of what was fetched ahead for the next epoch too.
    pub sent_bytes: u64,
}

/// The end of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finish {
    /// The values of each table.
    pub values: Vec<Vec<f32>>,
    /// How often data of each age, minus the reader's clock, was read; −1 is fresh.
    pub staleness: BTreeMap<i64, u64>,
    /// Bytes of each worker's device that were taken.
    pub resident_bytes: Vec<u64>,
    /// Bytes to each worker's device and from it, as its device counted them.
    pub device_moves: Vec<[u64; 2]>,
}

/// All that a run goes on from after an epoch. Devices, budgets and freshness are none of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Epochs that are done.
    pub epochs: u64,
    /// The values of each table.
    pub values: Vec<Vec<f32>>,
    /// Of each worker, the local data that last from one iteration to the next ([`Trace::lasting`]).
    pub locals: Vec<Vec<Vec<f32>>>,
}

impl State {
    fn check(&self, tables: usize, workers: usize) -> Result<(), Error> {
        let counts = [("tables", self.values.len(), tables), ("workers", self.locals.len(), workers)];
        match counts.into_iter().find(|(_, found, expected)| found != expected) {
            Some((what, found, expected)) => {
                Err(Error::State { problem: format!("it has {found} {what} instead of {expected}") })
            }
            None => Ok(()),
        }
    }
}

/// Takes the state after an epoch. What is copied from devices for it is counted by them, and not in [`Epoch::moves`].
pub type Take<'t> = &'t dyn Fn() -> Result<State, Error>;

/// What is told of each epoch; breaking ends the run.
pub type Report<'r> = &'r mut dyn FnMut(&Epoch, Take<'_>) -> ControlFlow<()>;

/// Goes through the virtual iteration of a worker.
///
/// # Errors
/// Accesses that no iteration can have.
pub fn record<A: Application>(application: &A, worker: usize) -> Result<(Trace, A::Worker), Error> {
    let mut session = VirtualIteration::new(application.tables());
    let mut own = application.declare(worker, &mut session)?;
    application.iterate(&mut own, Place::default(), &mut session)?;
    Ok((session.finish()?, own))
}

/// Runs an application to its end, from the beginning or from a state that it was in. Each worker's device is made by
/// `device`, which is told its number.
///
/// From a state, bulk synchronous training goes on as it would have without an end, bit by bit on the same kind of
/// device; other consistencies are not the same twice in any case.
///
/// # Errors
/// A budget that is too small; a state of another application or of other workers; whatever goes wrong on a worker,
/// which ends all of them.
pub fn train<A: Application>(
    application: &A,
    run: &Run,
    device: impl Fn(usize) -> Result<Arc<dyn Device>, Error>,
    from: Option<State>,
    report: Report<'_>,
) -> Result<Finish, Error> {
    if run.workers == 0 || run.workers > 4096 {
        return Err(Error::Setting {
            name: "workers",
            found: run.workers.to_string(),
            expected: "1 to 4096".to_owned(),
        });
    }
    let tables = application.tables();
    let ids: Vec<TableId> = tables.iter().map(|(id, _)| id).collect();
    let server = Arc::new(Server::new(tables, run.workers, run.consistency)?);
    let (done, first, locals) = match from {
        Some(state) => {
            state.check(ids.len(), run.workers)?;
            (state.epochs, state.values, Some(state.locals))
        }
        None => (0, application.first_values()?, None),
    };
    if first.len() != ids.len() {
        let problem = format!("{} tables have first values, of {}", first.len(), ids.len());
        return Err(Error::Samples { problem });
    }
    for (&id, values) in ids.iter().zip(first) {
        server.set(id, values)?;
    }
    let epochs = run.epochs.saturating_sub(done);
    let iterations = epochs.checked_mul(application.iterations()).ok_or_else(|| Error::Setting {
        name: "epochs",
        found: run.epochs.to_string(),
        expected: format!("1 to {}", u64::MAX / application.iterations().max(1)),
    })?;
    let mut crew = Vec::new();
    for worker in 0..run.workers {
        let (trace, own) = record(application, worker)?;
        let device = device(worker)?;
        let plan = Plan::new(trace, run.budget, device.staging_bytes())?;
        let options = Options { worker, iterations, prefetch: run.prefetch };
        let lasting = locals.as_ref().map(|locals| &locals[worker][..]);
        let client = Client::start(plan, device, Arc::clone(&server), options, lasting)?;
        crew.push(Member { client, own });
    }
    let values = || ids.iter().map(|&id| server.values(id)).collect::<Vec<_>>();
    let mut before = Total::default();
    for epoch in done..run.epochs {
        let begin = Instant::now();
        let found = step(application, &mut crew, &server, epoch)?;
        let seconds = begin.elapsed().as_secs_f64();
        let now = Total::of(&crew, &server);
        let samples =
            application.iterations() * (0..run.workers).map(|worker| application.samples(worker)).sum::<u64>();
        let measured = application.measure(&values());
        if !measured.objective.is_finite() {
            return Err(Error::NoObjective { objective: measured.objective, epoch: epoch + 1 });
        }
        let done = Epoch {
            epoch: epoch + 1,
            seconds,
            workers: found.iter().map(|part| [part.seconds, part.stalled]).collect(),
            loss: found.iter().map(|part| part.loss).sum::<f64>() / samples.max(1) as f64,
            samples,
            measured,
            moves: now.moves.since(before.moves),
            sent_bytes: now.sent_bytes - before.sent_bytes,
        };
        before = now;
        let take = || {
            let locals = crew.iter().map(|member| member.client.lasting()).collect::<Result<_, _>>()?;
            Ok(State { epochs: epoch + 1, values: values(), locals })
        };
        if report(&done, &take).is_break() {
            break;
        }
    }
    Ok(Finish {
        values: values(),
        staleness: server.staleness(),
        resident_bytes: crew.iter().map(|member| member.client.resident_bytes()).collect(),
        device_moves: crew.iter().map(|member| member.client.device_moves()).collect(),
    })
}

struct Member<W> {
    client: Client,
    own: W,
}

/// What a worker did in an epoch.
struct Part {
    loss: f64,
    seconds: f64,
    stalled: f64,
}

/// What was counted since the beginning, when workers began to fetch ahead.
#[derive(Default)]
struct Total {
    moves: Moves,
    sent_bytes: u64,
}

impl Total {
    fn of<W>(crew: &[Member<W>], server: &Server) -> Self {
        let mut moves = Moves::default();
        crew.iter().for_each(|member| moves += member.client.moves());
        Self { moves, sent_bytes: server.sent_bytes() }
    }
}

/// Runs an epoch on all workers.
fn step<A: Application>(
    application: &A,
    crew: &mut [Member<A::Worker>],
    server: &Server,
    epoch: u64,
) -> Result<Vec<Part>, Error> {
    let parts: Vec<Result<Part, Error>> = std::thread::scope(|scope| {
        let one = |(worker, member)| scope.spawn(move || watched(application, member, server, [worker as u64, epoch]));
        let threads: Vec<_> = crew.iter_mut().enumerate().map(one).collect();
        let lost = |worker| Error::ThreadPanicked { worker };
        threads.into_iter().enumerate().map(|(worker, thread)| thread.join().unwrap_or(Err(lost(worker)))).collect()
    });
    match server.failure() {
        Some(error) => Err(error),
        None => parts.into_iter().collect(),
    }
}

/// Runs an epoch of a worker. Whatever ends it early ends all workers, a panic too.
fn watched<A: Application>(
    application: &A,
    member: &mut Member<A::Worker>,
    server: &Server,
    [worker, epoch]: [u64; 2],
) -> Result<Part, Error> {
    let worker = worker as usize;
    // After a panic the member is of no use but to say where it was.
    let run = AssertUnwindSafe(|| epoch_of(application, member, worker, epoch));
    let part = std::panic::catch_unwind(run).unwrap_or_else(|_| {
        let iteration = member.client.iterations() + 1;
        Err(Error::WorkerLost { worker, iteration })
    });
    if let Err(error) = &part {
        server.fail(error.clone());
    }
    part
}

fn epoch_of<A: Application>(
    application: &A,
    member: &mut Member<A::Worker>,
    worker: usize,
    epoch: u64,
) -> Result<Part, Error> {
    let (begin, stalled) = (Instant::now(), member.client.stalled());
    let mut sum = 0.0;
    for iteration in 0..application.iterations() {
        let done = member.client.iterations();
        let loss = application.iterate(&mut member.own, Place { epoch, iteration }, &mut member.client)?;
        member.client.check_end(done + 1)?;
        if !loss.is_finite() {
            return Err(Error::Diverged { loss, worker, epoch: epoch + 1, iteration: iteration + 1 });
        }
        sum += loss;
    }
    member.client.settle()?;
    let stalled = (member.client.stalled() - stalled).as_secs_f64();
    Ok(Part { loss: sum, seconds: begin.elapsed().as_secs_f64(), stalled })
}
