//! The training commands, one for each algorithm: by one process, by several, or by many virtual workers.

use std::cell::Cell;
#[cfg(feature = "serve")]
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use megagrid_engine::virtual_cluster::{Costs, VirtualCluster};
use megagrid_training::input::Source;
use megagrid_training::record::{InputSizes, Machine, Outcome, Phases, Record};
use megagrid_training::{Algorithm, CheckpointOptions, Error, Job, Observer, Processes, RunOptions, Trained, model};

use crate::algorithms::each;
use crate::common::{self, Common};
use crate::entry::{Args, Entry, List, Trains, command, parsed};
use crate::experiment;
use crate::failure::usage;
use crate::interrupt;
use crate::kept::kept;
use crate::output::write_text;
use crate::progress::{self, Progress};
use crate::trace;

/// Classes that a summary names.
const CLASSES: usize = 6;

/// All training commands.
pub struct All;

impl List for All {
    fn entries() -> Vec<Entry> {
        each!(entry)
    }
}

fn entry<A: Trains>() -> Entry {
    Entry { name: A::NAME, command: command::<A, Args<A>>, run: run::<A> }
}

/// Trains, by one process, as one of several, or as each of many virtual workers.
fn run<A: Trains>(matches: &ArgMatches) -> anyhow::Result<()> {
    let mut args: Args<A> = parsed(matches);
    if args.common.experiment.virtual_workers.is_some() {
        return virtually(args);
    }
    let Common { model, json, report, trace, .. } = &args.common;
    let (outputs, traces) = ([model.is_some(), json.is_some(), report.is_some()], trace.is_some());
    args.common.join()?;
    args.common.processes = Processes { outputs, traces, ..args.common.processes };
    train(&args)
}

/// Trains in one process.
fn train<A: Trains>(args: &Args<A>) -> anyhow::Result<()> {
    let (job, common) = (args.job()?, &args.common);
    // The timelines of virtual workers are in one process, and written when all have ended.
    let trace = common.trace.as_deref().filter(|_| common.experiment.virtual_workers.is_none());
    if trace.is_some() {
        trace::begin();
    }
    let trained = observed(job, common)?;
    let traced = trace.map_or(Ok(()), |file| trace::end(file, common.processes.peers.as_deref()));
    // What was trained is not lost with its timeline.
    conclude(trained, common, "")?;
    traced
}

impl<A: Trains> Args<A> {
    /// Checks the options, and reads the data.
    pub fn job(&self) -> anyhow::Result<Job<A>> {
        megagrid_training::Options::check(&self.own)?;
        let run = A::run_options(&self.own, &self.common.run)?;
        self.common.prepare(&run)?;
        let source = self.source()?;
        let _progress = Progress::spinner(self.common.quiet, "loading");
        let job = Job::read((source, &self.data), self.own.clone(), &run, &self.common.processes)?;
        Ok(with_common(job, &self.common))
    }

    /// Returns where the data comes from: the input, or the cache that is kept of it.
    fn source(&self) -> anyhow::Result<Source> {
        let Some(directory) = &self.common.cache else { return Ok(self.source.clone()) };
        if self.common.processes.cluster.is_some() || self.common.experiment.virtual_workers.is_some() {
            return Err(usage("--cache is for one process; convert the input first, and train on the .mgrid cache"));
        }
        let positive = A::kept_positive(&self.data)?;
        kept(&self.source, A::KIND, positive, directory, self.common.quiet)
    }
}

/// Adds to a job what only the command knows.
pub fn with_common<A: Algorithm>(job: Job<A>, common: &Common) -> Job<A> {
    let more = common.experiment.resolved();
    Job { more, is_kept: common.model.is_some(), is_trial: common.is_trial, ..job }
}

/// Trains with a line on the terminal; an interruption leaves a record.
pub fn observed<A: Algorithm>(job: Job<A>, common: &Common) -> anyhow::Result<Trained<A>> {
    let watch = Watch::new(common)?;
    recorded(megagrid_training::train(job, &common.processes, &watch), common)
}

/// Returns what training came to; of one that was interrupted it writes the record.
pub fn recorded<T>(outcome: Result<T, Error>, common: &Common) -> anyhow::Result<T> {
    if let Err(Error::Interrupted { record: Some(record), .. }) = &outcome {
        common.write_record(record)?;
    }
    Ok(outcome?)
}

/// Writes the model and the record, and then says what was found, after a text that comes first: whoever reads that may have had enough.
pub fn conclude<A: Trains>(trained: Trained<A>, common: &Common, text: &str) -> anyhow::Result<()> {
    let Trained { record, model, checksum } = trained;
    if let (Some(directory), Some(model)) = (&common.model, &model) {
        let _progress = Progress::spinner(common.quiet, "writing the model");
        model::save(model, directory, &record, checksum)?;
    }
    common.write_record(&record)?;
    let findings = model.map(|model| A::findings(&record, &model)).unwrap_or_default();
    common.say(&format!("{text}{}{findings}", summary(&record)))
}

/// A line on the terminal, and the page of a run.
pub struct Watch {
    quiet: bool,
    #[cfg(feature = "serve")]
    live: Option<megagrid_serve::Live>,
    /// Whether those who watch know what the run is.
    #[cfg(feature = "serve")]
    is_told: Cell<bool>,
    progress: Cell<Option<Progress>>,
    last: Cell<u64>,
}

impl Watch {
    /// Begins without a line.
    pub fn new(common: &Common) -> anyhow::Result<Self> {
        #[cfg(feature = "serve")]
        let live = common.live.map(|address| {
            let started = megagrid_serve::Live::start(address);
            // The same address, where a port of it is free.
            let free = SocketAddr::new(address.ip(), 0);
            started.map_err(|error| crate::serve::failure(error, &format!("--live={free} takes a free port")))
        });
        #[cfg(feature = "serve")]
        let live = live.transpose()?;
        #[cfg(feature = "serve")]
        if let Some(live) = &live {
            eprintln!("megagrid: the run is shown at http://{}", live.address());
        }
        Ok(Self {
            quiet: common.quiet,
            #[cfg(feature = "serve")]
            live,
            #[cfg(feature = "serve")]
            is_told: Cell::new(false),
            progress: Cell::new(None),
            last: Cell::new(0),
        })
    }

    /// Tells those who watch what an iteration did, and before the first one, what the run is.
    #[cfg(feature = "serve")]
    fn tell(&self, record: &Record) {
        let (Some(live), Some(done)) = (&self.live, record.iterations.last()) else { return };
        if !self.is_told.replace(true) {
            let Record { command, config, input, machine, .. } = record;
            let last = self.last.get();
            live.tell("begin", &serde_json::json!({ "command": command, "config": config, "input": input, "machine": machine, "last": last }));
        }
        live.tell("iteration", &serde_json::json!({ "done": done, "memory": megagrid_engine::os::peak_rss_bytes() }));
    }
}

impl Observer for Watch {
    fn begin(&self, done: u64, last: u64) {
        interrupt::iterations_begin();
        self.last.set(last);
        self.progress.set(Some(Progress::iterations(self.quiet, done, last)));
    }

    fn iteration(&self, record: &Record) {
        #[cfg(feature = "serve")]
        self.tell(record);
        let (Some(now), Some(progress)) = (record.iterations.last(), self.progress.take()) else { return };
        let mean = (now.train_seconds + record.phases.evaluate) / record.iterations.len() as f64;
        let left = Duration::from_secs_f64(mean * self.last.get().saturating_sub(now.iteration) as f64);
        let objective = now.objective.map(|objective| format!("objective {objective:.4e}"));
        let others = now.metrics.iter().map(|(name, value)| format!("{name} {}", shown(*value, 4)));
        let found: Vec<String> = objective.into_iter().chain(others).collect();
        progress.show(now.iteration, now.updates as f64 / now.seconds.max(1e-9), &found.join("  "), left);
        self.progress.set(Some(progress));
    }

    fn end(&self) {
        interrupt::iterations_end();
        self.progress.set(None);
    }

    fn asks_to_end(&self) -> bool {
        interrupt::asked()
    }
}

/// Shows a value with as many digits behind the point, or by its power of ten where these would hide it.
fn shown(value: f64, digits: usize) -> String {
    if value != 0.0 && value.abs() < 1e-3 { format!("{value:.3e}") } else { format!("{value:.digits$}") }
}

/// Says which classes samples have, if they have some.
fn labels(InputSizes { label_column, classes, .. }: &InputSizes) -> String {
    if classes.is_empty() {
        return String::new();
    }
    let column = label_column.as_ref().map_or(String::new(), |column| format!(" of column {column}"));
    let mut named: Vec<String> =
        classes.iter().take(CLASSES).map(|(class, samples)| format!("{class} ({samples})")).collect();
    let more = classes.len().saturating_sub(CLASSES);
    named.extend((more > 0).then(|| format!("{more} more")));
    format!("\n  labels{column}: {}", named.join(", "))
}

/// Says in a few lines what a run did.
pub fn summary(record: &Record) -> String {
    let InputSizes { left, right, edges, test_edges, test_users, .. } = record.input;
    let Phases { load, partition, plan, train, evaluate, .. } = record.phases;
    let Outcome { iterations, done_before, best_iteration, edges_per_second, ref ended_by, .. } = record.result;
    let mut text = format!("{}: {left} × {right} vertices, {edges} edges", record.command);
    if test_edges > 0 {
        text.push_str(&format!(" and {test_edges} to test on"));
    }
    if let Some(users) = test_users {
        text.push_str(&format!(", of {users} users who are not in training"));
    }
    text.push_str(&labels(&record.input));
    let before = done_before.map_or(String::new(), |done| format!(", {done} of them before"));
    text.push_str(&format!("\n  {iterations} iterations{before} (ended by {ended_by})"));
    if let Some(best) = best_iteration.filter(|best| *best != iterations) {
        let of = if record.tuning.is_some() { " of those after the trials" } else { "" };
        text.push_str(&format!(", the model is of iteration {best}, the best on test data{of}"));
    }
    if let Some(rate) = edges_per_second {
        let Machine { workers, processes, vector, .. } = &record.machine;
        let unit = if record.command == "lda" { "tokens" } else { "edges" };
        let processes = processes.map_or(String::new(), |processes| format!("{processes} processes of "));
        let workers = progress::counted(*workers, "worker");
        text.push_str(&format!(", {} {unit}/s with {processes}{workers} ({vector})", progress::engineering(rate)));
    }
    if let Some(imbalance) = record.result.imbalance.filter(|_| record.machine.workers > 1) {
        text.push_str(&format!(", busiest worker {imbalance:.2} of the mean"));
    }
    text.push_str(&format!(
        "\n  seconds: load {load:.2}, partition {partition:.2}, plan {plan:.2}, train {train:.2}, evaluate {evaluate:.2}\n"
    ));
    for (name, value) in &record.result.metrics {
        text.push_str(&format!("  {name} {}\n", shown(*value, 6)));
    }
    let tolerance = record.config.get("tolerance").and_then(serde_json::Value::as_f64).unwrap_or(0.0);
    let residual = record.result.metrics.get("residual").filter(|_| tolerance > 0.0 && ended_by != "interrupt");
    if let Some(residual) = residual.filter(|residual| **residual > tolerance) {
        let is_at_rounding = ended_by == "tolerance";
        let advice = if is_at_rounding {
            "single precision comes no nearer"
        } else {
            "try more --iterations, or a larger --tolerance"
        };
        text.push_str(&format!("  note: the residual {residual:.3e} is above --tolerance {tolerance:e}; {advice}\n"));
    }
    if let Some(peak) = record.peak_rss_bytes {
        let of = record.machine.processes.map_or("", |_| " of process 0");
        text.push_str(&format!("  peak memory{of} {}\n", progress::bytes(peak)));
    }
    text
}

/// Trains as many virtual workers.
fn virtually<A: Trains>(mut args: Args<A>) -> anyhow::Result<()> {
    let options = args.common.experiment.clone();
    let Some(workers) = options.virtual_workers else { return train(&args) };
    options.check()?;
    if args.common.run.workers.is_some_and(|threads| threads != 1) {
        return Err(usage("a virtual worker has one thread; leave out --workers"));
    }
    args.common.run.workers = Some(1);
    let seed = args.common.run.seed;
    common::start_readers(std::thread::available_parallelism()?.get())?;
    let cluster = |costs| VirtualCluster::new(workers as usize, options.model(costs, seed));
    let run_as = |cluster: &Arc<VirtualCluster>, is_trial: bool| {
        first_failure(cluster.run(|peers| {
            let mut args = args.clone();
            let of_one = &mut args.common;
            of_one.is_trial = is_trial;
            if is_trial {
                of_one.run = RunOptions { checkpoints: CheckpointOptions::default(), ..of_one.run.clone() };
            }
            if is_trial || peers.process() > 0 {
                of_one.be_silent();
            }
            of_one.experiment.found = Some(cluster.model().clone());
            of_one.processes = Processes { peers: Some(peers), ..Processes::default() };
            train(&args)
        }))
    };
    let costs = match (&options.clock_cost, &options.calibration) {
        (Some(seconds), _) => Costs::Clock(*seconds),
        (None, Some(file)) if file.exists() => Costs::Calibrated(experiment::read(file)?),
        (None, file) => {
            let trial = cluster(Costs::Measured);
            run_as(&trial, true)?;
            let calibration = trial.calibration();
            if let Some(file) = file {
                write_text(file, &(serde_json::to_string_pretty(&calibration)? + "\n"))?;
            }
            Costs::Calibrated(calibration)
        }
    };
    if args.common.trace.is_some() {
        trace::begin();
    }
    run_as(&cluster(costs), false)?;
    args.common.trace.as_deref().map_or(Ok(()), |file| trace::end(file, None))
}

/// Returns the failure that others follow from, if any failed.
fn first_failure(outcomes: Vec<anyhow::Result<()>>) -> anyhow::Result<()> {
    use megagrid_engine::Error::Elsewhere;
    let mut failures: Vec<anyhow::Error> = outcomes.into_iter().filter_map(Result::err).collect();
    let follows =
        |failure: &anyhow::Error| failure.chain().any(|cause| matches!(cause.downcast_ref(), Some(Elsewhere { .. })));
    failures.sort_by_key(follows);
    failures.into_iter().next().map_or(Ok(()), Err)
}
