//! What a comparison asks of every baseline, and what it is told: the same for all systems and algorithms.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;
use std::time::{Duration, Instant};

use megagrid_partition::strategy::{self, Strategy};
use megagrid_partition::{EdgeList, EdgeSource, Side, windows};
use megagrid_stages::simd::Level;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::processes::{Crew, Processes};
use crate::server::Gather;
use crate::workers::Spent;

/// A system that Megagrid is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum System {
    /// Gather, apply, scatter: two passes over edges grouped either way, single precision, no memory taken for an edge.
    Gas,
    /// Gather, apply, scatter as PowerGraph's toolkits do: double precision vectors on the heap, messages along edges.
    GasFaithful,
    /// A parameter server with all data in it, a map for each row's changes, and a look at its age for each access.
    PsNaive,
    /// A parameter server whose clients pull rows that have become too old (stale synchronous parallel).
    LazyTable,
    /// A parameter server that pushes the rows that clients have asked for (eager stale synchronous parallel).
    Essp,
    /// A parameter server that knows the accesses of an iteration beforehand.
    IterStore,
}

impl System {
    /// All of them, the simplest first.
    pub const ALL: [Self; 6] =
        [Self::Gas, Self::GasFaithful, Self::PsNaive, Self::LazyTable, Self::Essp, Self::IterStore];

    /// Returns the name by which it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gas => "gas",
            Self::GasFaithful => "gas-faithful",
            Self::PsNaive => "ps-naive",
            Self::LazyTable => "lazytable",
            Self::Essp => "essp",
            Self::IterStore => "iterstore",
        }
    }

    /// Tells whether it is an engine of gather, apply and scatter.
    pub fn is_gas(self) -> bool {
        matches!(self, Self::Gas | Self::GasFaithful)
    }

    /// Returns how it places edges on processes unless [`Run::cut`] says otherwise: a name of [`strategy::NAMES`]. A parameter server has
    /// none.
    pub fn cut(self) -> Option<&'static str> {
        match self {
            Self::Gas => Some("hybrid"),
            Self::GasFaithful => Some("grid"),
            _ => None,
        }
    }

    /// Tells whether it can place edges as `cut` says: one that `keeps` all edges of a left vertex together, as they change it, takes
    /// [`KEEPS_LEFT`] only.
    pub fn takes(self, cut: Option<&str>, keeps: &[Self]) -> bool {
        !keeps.contains(&self) || cut.is_none_or(|cut| cut == KEEPS_LEFT)
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for System {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|system| system.name() == name);
        found.ok_or_else(|| Error::UnknownSystem(name.to_owned()))
    }
}

/// The strategy by which left vertices keep all their edges in one process.
pub const KEEPS_LEFT: &str = "bicut";

/// How a job is to run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Threads that compute, in each process.
    pub workers: usize,
    /// What hot loops are compiled for.
    pub level: Level,
    /// Iterations at most.
    pub iterations: u64,
    /// Decides everything random.
    pub seed: u64,
    /// Clocks that a worker may be ahead of the slowest; GAS has 0 only.
    pub slack: u64,
    /// How IterStore learns what an iteration accesses; others have no say in it.
    pub gather: Gather,
    /// Whether IterStore then stores a row where it is used most; others leave rows where their numbers say.
    pub placement: bool,
    /// About how many rows each process of LazyTable caches; nothing: all that it uses.
    pub cached_rows: Option<usize>,
    /// Whether LazyTable requests rows before they are read; others have no say in it.
    pub prefetch: bool,
    /// Whether a parameter server steps what is shared itself, by [AdaptiveRevision](crate::server::AdaRevision), instead of adding what workers
    /// change: for matrix factorization in place.
    pub server_steps: bool,
    /// How GAS places edges on processes, a name of [`strategy::NAMES`]; otherwise as [`System::cut`] says: PowerLyra's way, and PowerGraph's.
    /// Where edges change their left vertices these keep all their edges.
    pub cut: Option<&'static str>,
    /// The processes of the job, each of which has all data and calls the same.
    pub processes: Processes,
}

impl Run {
    /// Returns who computes.
    pub(crate) fn crew(&self) -> Crew {
        Crew::new(&self.processes, self.workers)
    }

    /// Returns how a system places edges on processes.
    pub(crate) fn strategy(&self, system: System) -> Result<Box<dyn Strategy>, Error> {
        let name = self.cut.or(system.cut()).unwrap_or_default();
        strategy::by_name(name, self.seed).map_err(|error| Error::Options(error.to_string()))
    }

    /// Checks that nobody asks a system to cut left vertices which it `keeps`, as their edges change them.
    pub(crate) fn check_cut(&self, system: System, keeps: &[System]) -> Result<(), Error> {
        if !system.takes(self.cut, keeps) {
            return Err(Error::Unsupported {
                system: system.name(),
                what: "a cut of samples or documents, which their edges change",
                advice: "take bicut",
            });
        }
        Ok(())
    }

    /// Checks what a system can run of an algorithm whose servers only add.
    pub(crate) fn check(&self, system: System) -> Result<(), Error> {
        if self.server_steps {
            let advice = "leave it out: matrix factorization in place has it";
            return Err(Error::Unsupported {
                system: system.name(),
                what: "steps by the server, of this algorithm",
                advice,
            });
        }
        self.check_with_steps(system)
    }

    /// Checks what a system can run of an algorithm whose servers may step.
    pub(crate) fn check_with_steps(&self, system: System) -> Result<(), Error> {
        if self.workers == 0 || self.workers > 4096 {
            return Err(Error::Setting { name: "workers", found: self.workers as u64, expected: "1 to 4096" });
        }
        if self.cached_rows.is_some() && system != System::LazyTable {
            let advice = "leave it out: lazytable has it";
            return Err(Error::Unsupported { system: system.name(), what: "a bound on cached rows", advice });
        }
        if !self.prefetch && system != System::LazyTable {
            let advice = "leave it on: lazytable can do without";
            return Err(Error::Unsupported { system: system.name(), what: "no prefetch", advice });
        }
        if self.server_steps && system.is_gas() {
            let advice = "leave it out: it has no servers";
            return Err(Error::Unsupported { system: system.name(), what: "steps by the server", advice });
        }
        if self.cut.is_some() && !system.is_gas() {
            let advice = "leave it out: servers place rows";
            return Err(Error::Unsupported { system: system.name(), what: "a cut", advice });
        }
        if self.slack > 0 && system.is_gas() {
            return Err(Error::Unsupported { system: system.name(), what: "slack", advice: "take a slack of 0" });
        }
        Ok(())
    }
}

impl Default for Run {
    fn default() -> Self {
        Self {
            workers: 1,
            level: Level::detect(),
            iterations: 10,
            seed: 1,
            slack: 0,
            gather: Gather::Virtual,
            placement: true,
            cached_rows: None,
            prefetch: true,
            server_steps: false,
            cut: None,
            processes: Processes::default(),
        }
    }
}

/// One iteration.
#[derive(Clone, Debug, Default)]
pub struct Epoch {
    /// Which, from 1.
    pub iteration: u64,
    /// Wall-clock seconds of training; measuring the objective is not in it.
    pub seconds: f64,
    /// Seconds that workers computed, accesses to their own caches included, mean over workers.
    pub compute_seconds: f64,
    /// Seconds that workers waited for data or for each other, mean over workers.
    pub wait_seconds: f64,
    /// Seconds that workers brought data to others or took it from them, mean over workers.
    pub sync_seconds: f64,
    /// Where each worker's time went, by process and worker.
    pub workers: Vec<Spent>,
    /// Bytes sent between servers and clients, frames included; of several processes, between those of different ones. Of GAS in one
    /// process, the bytes of messages along edges.
    pub sent_bytes: u64,
    /// Of several processes, the bytes that each sent; of a parameter server, that the client of each sent to servers of others, and
    /// received from them.
    pub process_bytes: Vec<u64>,
    /// Messages: what `sent_bytes` are the bytes of.
    pub messages: u64,
    /// What the algorithm minimizes, or maximizes: computed by the same code as Megagrid's.
    pub objective: f64,
    /// Measured values, by the names of run records.
    pub metrics: BTreeMap<&'static str, f64>,
}

/// The end of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Finish {
    /// How often data of each age, minus the reader's clock, was read; −1 is fresh. Empty for GAS.
    pub staleness: BTreeMap<i64, u64>,
    /// Bytes of model, edges, caches and logs, of all processes.
    pub memory_bytes: u64,
    /// Replicas of a vertex, mean over vertices: of GAS master and mirrors; otherwise where it is stored, and the caches of client
    /// processes.
    pub replication_factor: f64,
    /// Seconds in which accesses were gathered and rows placed and laid out by them, of the process that took longest: with a virtual
    /// iteration before the first one, otherwise at its end.
    pub gather_seconds: f64,
}

impl Finish {
    /// Joins what all processes know at the end.
    fn joined(self, processes: &Processes) -> Result<Self, Error> {
        let all = processes.gather((self.memory_bytes, self.gather_seconds, self.staleness))?;
        let mut joined = Self { staleness: BTreeMap::new(), memory_bytes: 0, ..self };
        for (memory_bytes, gather_seconds, staleness) in all {
            joined.gather_seconds = joined.gather_seconds.max(gather_seconds);
            joined.memory_bytes += memory_bytes;
            staleness.into_iter().for_each(|(age, reads)| *joined.staleness.entry(age).or_insert(0) += reads);
        }
        Ok(joined)
    }
}

impl Default for Finish {
    fn default() -> Self {
        Self { staleness: BTreeMap::new(), memory_bytes: 0, replication_factor: 1.0, gather_seconds: 0.0 }
    }
}

/// What is told of each iteration; breaking ends the job.
pub type Report<'r> = &'r mut dyn FnMut(&Epoch) -> ControlFlow<()>;

/// What an iteration cost, as the system knows it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub workers: Vec<Spent>,
    pub sent_bytes: u64,
    pub messages: u64,
}

impl Cost {
    /// A step that sends nothing.
    pub fn of(workers: Vec<Spent>) -> Self {
        Self { workers, ..Self::default() }
    }

    /// All workers have waited for so long.
    pub fn wait(&mut self, waited: Duration) {
        self.workers.iter_mut().for_each(|spent| spent.wait += waited);
    }

    /// Adds what steps of an iteration cost.
    pub fn sum(steps: &[Self]) -> Self {
        let mut sum = Self::default();
        for step in steps {
            sum.workers.resize(sum.workers.len().max(step.workers.len()), Spent::default());
            sum.workers.iter_mut().zip(&step.workers).for_each(|(sum, &spent)| *sum += spent);
            sum.sent_bytes += step.sent_bytes;
            sum.messages += step.messages;
        }
        sum
    }

    /// Joins what processes spent.
    fn join(processes: Vec<Self>) -> Self {
        let (sent_bytes, messages) =
            processes.iter().fold((0, 0), |sum, one| (sum.0 + one.sent_bytes, sum.1 + one.messages));
        let workers = processes.into_iter().flat_map(|one| one.workers).collect();
        Self { workers, sent_bytes, messages }
    }

    /// Returns the mean seconds of a part over workers.
    fn mean(&self, part: fn(&Spent) -> Duration) -> f64 {
        self.workers.iter().map(|spent| part(spent).as_secs_f64()).sum::<f64>() / self.workers.len().max(1) as f64
    }
}

/// An objective, and metrics by the names of run records.
pub(crate) type Measured = (f64, BTreeMap<&'static str, f64>);

/// A job under way on one system.
pub(crate) trait Trainer {
    /// Runs an iteration, the first of which is 1, to the end on all workers.
    fn iterate(&mut self, iteration: u64) -> Result<Cost, Error>;
    /// Measures the objective and its metrics.
    fn measure(&mut self) -> Result<Measured, Error>;
    /// Tells what is known at the end.
    fn finish(&self) -> Finish;
}

/// Runs a job to its end; all processes of it are told of each iteration the same.
pub(crate) fn train(mut trainer: impl Trainer, run: &Run, report: Report<'_>) -> Result<Finish, Error> {
    let processes = &run.processes;
    for iteration in 1..=run.iterations {
        let begin = Instant::now();
        let cost = trainer.iterate(iteration)?;
        let seconds = begin.elapsed().as_secs_f64();
        let (objective, metrics) = run.level.run(|| trainer.measure())?;
        // Nobody begins the next iteration before all have measured this one.
        let (seconds, costs): (Vec<f64>, Vec<Cost>) = processes.gather((seconds, cost))?.into_iter().unzip();
        if !objective.is_finite() {
            return Err(Error::Diverged { iteration, objective });
        }
        let process_bytes: Vec<u64> = costs.iter().map(|cost| cost.sent_bytes).collect();
        let cost = Cost::join(costs);
        let epoch = Epoch {
            iteration,
            seconds: seconds.into_iter().fold(0.0, f64::max),
            compute_seconds: cost.mean(|spent| spent.compute),
            wait_seconds: cost.mean(|spent| spent.wait),
            sync_seconds: cost.mean(|spent| spent.sync),
            workers: cost.workers,
            sent_bytes: cost.sent_bytes,
            process_bytes: if processes.count() > 1 { process_bytes } else { Vec::new() },
            messages: cost.messages,
            objective,
            metrics,
        };
        // One that is interrupted interrupts all.
        if processes.gather(report(&epoch).is_break())?.contains(&true) {
            break;
        }
    }
    trainer.finish().joined(processes)
}

/// Lists edges vertex by vertex of a side, each with its data changed by `data`: the order in which a system visits them.
///
/// # Errors
/// Edges that cannot be read.
pub fn list_by<T, U>(source: &dyn EdgeSource<T>, side: Side, data: impl Fn(&T) -> U) -> Result<EdgeList<U>, Error> {
    let (mut near, mut far) = (Vec::with_capacity(source.num_edges()), Vec::with_capacity(source.num_edges()));
    let mut all = Vec::with_capacity(source.num_edges());
    let offsets = source.offsets(side);
    for vertices in windows(offsets) {
        vertices.clone().for_each(|vertex| near.resize(offsets[vertex + 1] as usize, vertex as u32));
        let read = source.visit_rows(side, vertices, &mut |ends, values| {
            far.extend_from_slice(ends);
            all.extend(values.iter().map(&data));
        });
        read.map_err(Error::io("edges"))?;
    }
    let (left, right) = if side == Side::Left { (near, far) } else { (far, near) };
    let [num_left, num_right] = [Side::Left, Side::Right].map(|side| source.num_vertices(side));
    Ok(EdgeList { num_left, num_right, square: source.is_square(), left, right, data: all })
}
