//! Training, with the run record that training commands write.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use megagrid_engine::{Traffic, WorkerSeconds};
use megagrid_geeps::apps::Application as _;
use megagrid_geeps::memory::Plan;
use megagrid_geeps::modelled::{self, Machine, Setting, Time};
use megagrid_geeps::run::{Epoch, Finish, Run, train_together};
use megagrid_training::Error as Training;
use megagrid_training::record::{self as records, Iteration, Metrics, Phases, Record};
use megagrid_training::{join, json};

use super::application::{Application, Prepared};
use super::checkpoint;
use super::options::{DeviceName, Options};
use super::plan::{self, Summary};
use super::together;
use crate::failure::usage;
use crate::progress::{self, Progress};
use crate::train::summary;
use crate::{interrupt, output, report};

/// Iterations whose time is modelled: later ones take as long as the last of these.
const MODELLED: u64 = 24;

/// Runs the command.
pub fn run<A: Application>(application: &A, options: &Options) -> anyhow::Result<()> {
    let cluster = crate::cluster::join()?;
    options.check()?;
    let others = together::of(cluster.as_ref());
    let (processes, is_first) = (others.processes(), others.process() == 0);
    if processes > 1 && options.device == DeviceName::Modelled {
        return Err(usage("--device modelled models machines in one process; leave it out, or train without launch"));
    }
    let workers = options.workers * processes;
    let begin = Instant::now();
    let Prepared { trained, batch, sizes, hash } = application.prepare(options, workers)?;
    let load = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let (plan, found) = plan::make(&trained, options, workers)?;
    let phases = Phases { load, plan: begin.elapsed().as_secs_f64(), ..Phases::default() };
    let times = options.machine().map(|machine| times(&plan, &machine, options));
    let devices = options.open()?;
    let machine = records::Machine {
        workers,
        vector: devices.name.into(),
        memory_estimate_bytes: found.resident * workers as u64,
        ..records::Machine::default()
    };
    let taken = serde_json::json!({ "batch": batch, "processes": processes, "plan": &found });
    let config = join([json(options)?, json(application)?, taken]);
    megagrid_training::Processes { cluster, ..Default::default() }.agree(A::NAME, &config, hash)?;
    let (mut checkpoints, state) = checkpoint::begin(application, options, (&config, workers), hash, is_first)?;
    if checkpoints.saved > options.epochs && is_first {
        let (found, asked) = (checkpoints.saved, options.epochs);
        tracing::warn!("the checkpoint is after epoch {found}, and {asked} were asked for; none is added");
    }
    let mut record = Record::begin(A::NAME, config, sizes.clone(), machine, phases, checkpoints.saved);
    let how = Run {
        workers,
        epochs: options.epochs,
        consistency: options.consistency(),
        budget: found.budget,
        prefetch: !options.no_prefetch,
    };
    let progress = Progress::iterations(options.quiet || !is_first, checkpoints.saved, options.epochs);
    interrupt::iterations_begin();
    let mut clock = Instant::now();
    let mut saved = Ok(());
    let device = |worker: usize| Ok(Arc::clone(&devices.all[worker % options.workers]));
    let finish = train_together(&*others, &trained, &how, device, state, &mut |epoch, take| {
        let passed = clock.elapsed().as_secs_f64();
        let updates = (sizes.edges as u64).min(epoch.samples * sizes.edges as u64 / sizes.left.max(1) as u64);
        let time = times.as_ref().map(|times| total(times, trained.iterations(), epoch.epoch));
        let one = iteration(epoch, time, &mut record, passed, updates);
        show(&progress, &one, record.iterations.len() + 1, options.epochs);
        record.iterations.push(one);
        let ends = interrupt::asked();
        let is_last = ends || epoch.epoch == options.epochs;
        saved = checkpoint::after(epoch.epoch, is_last, &mut checkpoints, take);
        // What a checkpoint takes is no part of an evaluation.
        clock = Instant::now();
        if ends || saved.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    drop(progress);
    saved?;
    // Another process than the first one ends when that does.
    let interrupted = interrupt::asked() && (is_first || finish.epochs < options.epochs);
    interrupt::iterations_end();
    let epochs = finish.epochs;
    if is_first {
        end(&mut record, finish, interrupted);
        write(&record, options)?;
    }
    if interrupted {
        return Err(Training::Interrupted { iteration: epochs, left: checkpoints.left(), record: None }.into());
    }
    if is_first && options.wants_summary() { say(&record, &found) } else { Ok(()) }
}

/// Ends a record with what is known of all epochs.
fn end(record: &mut Record, finish: Finish, interrupted: bool) {
    record.staleness = finish.staleness;
    record.machine.links = if finish.links.len() > 1 { finish.links } else { Vec::new() };
    record.machine.memory_bytes = finish.resident_bytes.iter().sum();
    if let Some(last) = record.iterations.last() {
        record.result.iterations = last.iteration;
    }
    if interrupted {
        record.result.ended_by = "interrupt".into();
    }
    record.tell_setup_apart();
    record.end(None);
}

/// Returns the modelled time of some iterations.
fn times(plan: &Plan, machine: &Machine, options: &Options) -> Vec<Time> {
    let setting = Setting {
        workers: options.workers,
        consistency: options.consistency(),
        prefetch: !options.no_prefetch,
        on_hosts: false,
    };
    modelled::iterations(plan, machine, &setting, MODELLED)
}

/// Returns the modelled time of an epoch, the first of which is 1.
fn total(times: &[Time], iterations: u64, epoch: u64) -> Time {
    let mut sum = Time::default();
    for iteration in (epoch - 1) * iterations..epoch * iterations {
        let time = times.get(iteration as usize).or(times.last()).copied().unwrap_or_default();
        sum = Time { seconds: sum.seconds + time.seconds, stalled: sum.stalled + time.stalled };
    }
    sum
}

/// Returns what a record has of an epoch, whose `updates` took `time` on a modelled machine. `passed` are the seconds since
/// the epoch before.
pub fn iteration(epoch: &Epoch, time: Option<Time>, record: &mut Record, passed: f64, updates: u64) -> Iteration {
    let (seconds, waits) = match time {
        Some(time) => (time.seconds, vec![[time.seconds, time.stalled]; epoch.workers.len()]),
        None => (epoch.seconds, epoch.workers.clone()),
    };
    let evaluate_seconds = (passed - epoch.seconds).max(0.0);
    record.phases.train += seconds;
    record.phases.evaluate += evaluate_seconds;
    let mean = |of: fn(&[f64; 2]) -> f64| waits.iter().map(of).sum::<f64>() / waits.len().max(1) as f64;
    let worker = |&[busy, wait]: &[f64; 2]| WorkerSeconds {
        begin: 0.0,
        seconds: busy,
        compute: (busy - wait).max(0.0),
        sync: 0.0,
        wait,
    };
    let mut metrics: Metrics = epoch.measured.metrics.iter().map(|(&name, &value)| (name.into(), value)).collect();
    metrics.insert("loss".into(), epoch.loss);
    metrics.insert("device_mb".into(), epoch.moves.total() as f64 / 1e6);
    let mut sent = Traffic::default();
    sent.deltas.bytes = epoch.sent_bytes;
    Iteration {
        iteration: epoch.epoch,
        seconds,
        train_seconds: record.phases.train,
        evaluate_seconds,
        objective: Some(epoch.measured.objective),
        metrics,
        compute_seconds: mean(|[busy, wait]| busy - wait),
        wait_seconds: mean(|[_, wait]| *wait),
        sync_seconds: 0.0,
        imbalance: None,
        workers: waits.iter().map(worker).collect(),
        sent_bytes: epoch.sent_bytes,
        sent,
        process_bytes: Vec::new(),
        unacknowledged_bytes: 0,
        updates,
    }
}

/// Shows an epoch, the `done`-th of this command.
fn show(progress: &Progress, one: &Iteration, done: usize, epochs: u64) {
    let rate = one.updates as f64 / one.seconds.max(1e-9);
    let loss = one.metrics.get("loss").copied().unwrap_or_default();
    let each = one.train_seconds / done as f64 + one.evaluate_seconds;
    let left = Duration::try_from_secs_f64(each * (epochs - one.iteration) as f64).unwrap_or_default();
    progress.show(one.iteration, rate, &format!("loss {loss:.5}"), left);
}

/// Writes the record where options say.
fn write(record: &Record, options: &Options) -> anyhow::Result<()> {
    if let Some(path) = &options.report {
        output::write_text(path, &report::page(record)?)?;
    }
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(record).context("writing the run record")?;
        output::write_text(path, &(text + "\n"))?;
    }
    Ok(())
}

/// Says in a few lines what the run did.
fn say(record: &Record, found: &Summary) -> anyhow::Result<()> {
    let memory = format!(
        "  device memory of a worker {} of {}, {:.1} % of time stalled\n",
        progress::bytes(found.resident),
        progress::bytes(found.budget),
        100.0 * (record.iterations.iter().map(|one| one.wait_seconds).sum::<f64>() + 0.0)
            / record.phases.train.max(1e-12),
    );
    output::print(&(summary(record) + &memory))
}
