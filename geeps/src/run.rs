//! Runs an application on several workers of one process or of several, epoch after epoch.
//!
//! Between epochs all workers are done, and the first process measures the application on what the servers have, tells of it,
//! and decides whether there is another one.

mod messages;
mod workers;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use messages::{Arrays, Counted, Next, Told, broadcast, gather, gather_arrays, meet};
use workers::{Member, moves, step};

use crate::Error;
use crate::apps::{Application, Measured, Place};
use crate::client::{Client, Options};
use crate::device::Device;
use crate::memory::{Moves, Plan};
use crate::processes::{Alone, Processes};
use crate::servers::{Consistency, Servers, rows_of};
use crate::table::Tables;
use crate::trace::Trace;
use crate::virtual_iteration::VirtualIteration;

/// How an application is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// How many workers there are, in all processes; each has as many.
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
    /// Bytes between servers and workers, of what was fetched ahead for the next epoch too, also where both are in one process.
    pub sent_bytes: u64,
}

/// The end of a run. All processes are in it, in the first one; in another it is of that one, and has no values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finish {
    /// Epochs that are done.
    pub epochs: u64,
    /// The values of each table.
    pub values: Vec<Vec<f32>>,
    /// How often data of each age, minus the reader's clock, was read; −1 is fresh.
    pub staleness: BTreeMap<i64, u64>,
    /// Bytes of each worker's device that were taken.
    pub resident_bytes: Vec<u64>,
    /// Bytes to each worker's device and from it, as its device counted them.
    pub device_moves: Vec<[u64; 2]>,
    /// Bytes that each process has sent to each other on connections of data: `[from][to]`.
    pub links: Vec<Vec<u64>>,
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

/// Runs an application to its end in this process, from the beginning or from a state that it was in. Each worker's device is made
/// by `device`, which is told its number.
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
    train_together(&Alone, application, run, device, from, report)
}

/// As [`train`], in one of several processes, all of which call it with the same arguments. Each runs a part of the workers, and
/// serves a part of each table's rows; `device` is asked for those of this process, and `report` is called in the first one.
///
/// Bulk synchronous training is the same bit by bit in any number of processes that run as many workers together.
///
/// # Errors
/// As [`train`]; workers that cannot be shared equally; a process that is lost or has failed.
pub fn train_together<A: Application>(
    processes: &dyn Processes,
    application: &A,
    run: &Run,
    device: impl Fn(usize) -> Result<Arc<dyn Device>, Error>,
    from: Option<State>,
    report: Report<'_>,
) -> Result<Finish, Error> {
    let count = processes.processes();
    if run.workers == 0 || run.workers > 4096 || !run.workers.is_multiple_of(count) {
        let (name, found) = ("workers", run.workers.to_string());
        return Err(Error::Setting {
            name,
            found,
            expected: format!("1 to 4096, as many in each of {count} processes"),
        });
    }
    let servers = Arc::new(Servers::new(application.tables(), run.workers, run.consistency, processes)?);
    let trained = begin(processes, application, run, device, from, &servers)
        .and_then(|crew| Training { processes, application, run, servers: &servers, crew }.run(report));
    // Other processes notice that connections are closed.
    trained.inspect_err(|error| servers.fail(error.clone()))
}

/// The workers of this process as they begin, and the epochs that are done.
struct Crew<W> {
    members: Vec<Member<W>>,
    /// The number of the first one.
    first: usize,
    epochs: u64,
}

fn begin<A: Application>(
    processes: &dyn Processes,
    application: &A,
    run: &Run,
    device: impl Fn(usize) -> Result<Arc<dyn Device>, Error>,
    from: Option<State>,
    servers: &Arc<Servers>,
) -> Result<Crew<A::Worker>, Error> {
    let tables = servers.tables();
    let (done, values, locals) = match from {
        Some(state) => {
            state.check(tables.len(), run.workers)?;
            (state.epochs, state.values, Some(state.locals))
        }
        None => (0, application.first_values()?, None),
    };
    if values.len() != tables.len() {
        let problem = format!("{} tables have first values, of {}", values.len(), tables.len());
        return Err(Error::Samples { problem });
    }
    for ((id, _), values) in tables.iter().zip(&values) {
        servers.set(id, values)?;
    }
    // Nobody reads before.
    meet(processes)?;
    let epochs = run.epochs.saturating_sub(done);
    let iterations = epochs.checked_mul(application.iterations()).ok_or_else(|| Error::Setting {
        name: "epochs",
        found: run.epochs.to_string(),
        expected: format!("1 to {}", u64::MAX / application.iterations().max(1)),
    })?;
    let first = processes.process() * servers.workers_here();
    let mut members = Vec::new();
    for worker in first..first + servers.workers_here() {
        let (trace, own) = record(application, worker)?;
        let device = device(worker)?;
        let plan = Plan::new(trace, run.budget, device.staging_bytes())?;
        let options = Options { worker, iterations, prefetch: run.prefetch };
        let lasting = locals.as_ref().map(|locals| &locals[worker][..]);
        let client = Client::start(plan, device, Arc::clone(servers), options, lasting)?;
        members.push(Member { client, own });
    }
    Ok(Crew { members, first, epochs: done })
}

/// A run under way, in one of its processes.
struct Training<'t, A: Application> {
    processes: &'t dyn Processes,
    application: &'t A,
    run: &'t Run,
    servers: &'t Servers,
    crew: Crew<A::Worker>,
}

impl<A: Application> Training<'_, A> {
    fn run(mut self, report: Report<'_>) -> Result<Finish, Error> {
        let (mut moved, mut served) = (Moves::default(), 0);
        while self.crew.epochs < self.run.epochs {
            let begin = Instant::now();
            let place = [self.crew.first as u64, self.crew.epochs];
            let parts = step(self.application, &mut self.crew.members, self.servers, place)?;
            let seconds = begin.elapsed().as_secs_f64();
            let (moves, served_bytes) = (moves(&self.crew.members), self.servers.served_bytes());
            let own = Told { parts, seconds, moves: moves.since(moved), served_bytes: served_bytes - served };
            (moved, served) = (moves, served_bytes);
            self.crew.epochs += 1;
            let told = gather(self.processes, &own)?;
            // Then servers have the updates of all.
            meet(self.processes)?;
            let values = self.values()?;
            let next = match told.zip(values) {
                Some((told, values)) => self.lead(&told, &values, &mut *report)?,
                None => self.follow()?,
            };
            if next == Next::End {
                break;
            }
        }
        self.finish()
    }

    /// Gives the first process the values of all tables; the others `None`.
    fn values(&self) -> Result<Option<Arrays>, Error> {
        let all = gather_arrays(self.processes, vec![self.servers.values()])?;
        all.map(|all| joined(self.servers.tables(), all)).transpose()
    }

    /// The first process measures what was trained, tells of it, and says how all go on.
    fn lead(&self, told: &[Told], values: &[Vec<f32>], report: Report<'_>) -> Result<Next, Error> {
        let Self { application, run, .. } = self;
        let epoch = self.crew.epochs;
        let samples =
            application.iterations() * (0..run.workers).map(|worker| application.samples(worker)).sum::<u64>();
        let measured = application.measure(values);
        if !measured.objective.is_finite() {
            return Err(Error::NoObjective { objective: measured.objective, epoch });
        }
        let parts = || told.iter().flat_map(|told| &told.parts);
        let mut moves = Moves::default();
        told.iter().for_each(|told| moves += told.moves);
        let done = Epoch {
            epoch,
            seconds: told.iter().map(|told| told.seconds).fold(0.0, f64::max),
            workers: parts().map(|part| [part.seconds, part.stalled]).collect(),
            loss: parts().map(|part| part.loss).sum::<f64>() / samples.max(1) as f64,
            samples,
            measured,
            moves,
            sent_bytes: told.iter().map(|told| told.served_bytes).sum(),
        };
        let take = || {
            // Before the others send theirs: nobody would take them in if these could not be read.
            let own = self.locals()?;
            broadcast(self.processes, Next::TellLocals)?;
            let locals = gather_arrays(self.processes, own)?.unwrap_or_default();
            Ok(State { epochs: epoch, values: values.to_vec(), locals: locals.into_iter().flatten().collect() })
        };
        let next = if report(&done, &take).is_break() { Next::End } else { Next::GoOn };
        broadcast(self.processes, next)
    }

    /// The others do what the first one says.
    fn follow(&self) -> Result<Next, Error> {
        loop {
            match broadcast(self.processes, Next::GoOn)? {
                Next::TellLocals => drop(gather_arrays(self.processes, self.locals()?)?),
                next => return Ok(next),
            }
        }
    }

    /// Returns the local data that last, of each worker of this process.
    fn locals(&self) -> Result<Vec<Arrays>, Error> {
        self.crew.members.iter().map(|member| member.client.lasting()).collect()
    }

    fn finish(&self) -> Result<Finish, Error> {
        let members = &self.crew.members;
        let own = Counted {
            staleness: self.servers.staleness(),
            resident_bytes: members.iter().map(|member| member.client.resident_bytes()).collect(),
            device_moves: members.iter().map(|member| member.client.device_moves()).collect(),
            sent_bytes: self.servers.sent_bytes(),
        };
        let all = gather(self.processes, &own)?.unwrap_or_else(|| vec![own]);
        let mut finish = Finish { epochs: self.crew.epochs, ..Finish::default() };
        finish.values = self.values()?.unwrap_or_default();
        for counted in all {
            counted.staleness.into_iter().for_each(|(age, reads)| *finish.staleness.entry(age).or_insert(0) += reads);
            finish.resident_bytes.extend(counted.resident_bytes);
            finish.device_moves.extend(counted.device_moves);
            finish.links.push(counted.sent_bytes);
        }
        Ok(finish)
    }
}

/// Puts together tables whose rows are in several processes.
fn joined(tables: &Tables, mut parts: Vec<Vec<Arrays>>) -> Result<Vec<Vec<f32>>, Error> {
    let processes = parts.len();
    let mut values = Vec::new();
    for (at, (_, table)) in tables.iter().enumerate() {
        let mut whole = Vec::new();
        for (process, parts) in parts.iter_mut().enumerate() {
            let part = parts.first_mut().and_then(|tables| tables.get_mut(at)).map(std::mem::take).unwrap_or_default();
            if part.len() != rows_of(table.rows, process, processes).len() * table.width {
                let problem = format!("it has {} values of table {}", part.len(), table.name);
                return Err(Error::Process { process, problem });
            }
            // That of one process needs no copy.
            if whole.is_empty() { whole = part } else { whole.extend(part) }
        }
        values.push(whole);
    }
    Ok(values)
}
