//! A job on a baseline, with the run record that a training command would write.

use std::ops::ControlFlow;
use std::time::Instant;

use megagrid_baselines::{Epoch, Error, Finish, Report, Spent};
use megagrid_engine::{Traffic, WorkerSeconds};

use crate::common::Common;
use crate::failure::Failure;
use crate::interrupt;
use crate::record::{self, InputSizes, Iteration, Machine, Metrics, Outcome, Phases, Placement, Record};
use crate::session;

/// What is known before a run.
pub struct Start<'s> {
    /// The command.
    pub command: &'static str,
    /// Every resolved option.
    pub config: serde_json::Value,
    /// Sizes of the input.
    pub input: InputSizes,
    /// What it runs on.
    pub machine: Machine,
    /// What has been done so far.
    pub phases: Phases,
    /// Edges, or tokens, of an iteration.
    pub updates: u64,
    /// Where the record goes.
    pub common: &'s Common,
}

/// Runs a job and writes its record. What is done before the first iteration, accesses recorded say, counts as plan.
pub fn run(start: Start<'_>, job: impl FnOnce(Report<'_>) -> Result<Finish, Error>) -> anyhow::Result<()> {
    let Start { command, config, input, machine, phases, updates, common } = start;
    let mut record = Record {
        megagrid: env!("CARGO_PKG_VERSION").into(),
        command: command.into(),
        config,
        input,
        machine,
        phases,
        iterations: Vec::new(),
        staleness: Default::default(),
        result: Outcome { ended_by: "iterations".into(), ..Outcome::default() },
        peak_rss_bytes: None,
        tuning: None,
    };
    interrupt::iterations_begin();
    let mut clock = Instant::now();
    let finish = job(&mut |epoch| {
        let passed = clock.elapsed().as_secs_f64();
        clock = Instant::now();
        let beside = (passed - epoch.seconds).max(0.0);
        record.phases.train += epoch.seconds;
        record.iterations.push(iteration(epoch, record.phases.train, beside, updates));
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let interrupted = interrupt::asked();
    interrupt::iterations_end();
    if interrupted {
        let iteration = record.iterations.len() as u64;
        return Err(Failure::Interrupted { iteration, left: "nothing was written".to_owned() }.into());
    }
    tell_setup_apart(&mut record);
    record.staleness = finish.staleness;
    record.machine.memory_bytes = finish.memory_bytes;
    let replication_factor = finish.replication_factor;
    record.machine.placement = Some(Placement { replication_factor, edge_balance: None, master_balance: None });
    if let Some(last) = record.iterations.last() {
        let result = &mut record.result;
        result.iterations = last.iteration;
        result.objective = last.objective;
        result.metrics = last.metrics.clone();
    }
    record.result.edges_per_second = record::edges_per_second(&record.iterations);
    record.peak_rss_bytes = record::peak_rss_bytes();
    session::write_record(&record, common)
}

/// Beside the first iteration is what comes before it and an evaluation, beside each other one an evaluation: the median of
/// these is taken for the first too.
fn tell_setup_apart(record: &mut Record) {
    let evaluation = record::median(record.iterations.iter().skip(1).map(|one| one.evaluate_seconds)).unwrap_or(0.0);
    if let Some(first) = record.iterations.first_mut() {
        let evaluation = evaluation.min(first.evaluate_seconds);
        record.phases.plan = first.evaluate_seconds - evaluation;
        first.evaluate_seconds = evaluation;
    }
    record.phases.evaluate = record.iterations.iter().map(|one| one.evaluate_seconds).sum();
}

fn iteration(epoch: &Epoch, train_seconds: f64, evaluate_seconds: f64, updates: u64) -> Iteration {
    let mut sent = Traffic::default();
    sent.deltas.messages = epoch.messages;
    sent.deltas.bytes = epoch.sent_bytes;
    let of_worker = |spent: &Spent| {
        let [compute, sync, wait] = [spent.compute, spent.sync, spent.wait].map(|part| part.as_secs_f64());
        WorkerSeconds { begin: 0.0, seconds: compute + sync + wait, compute, sync, wait }
    };
    Iteration {
        iteration: epoch.iteration,
        seconds: epoch.seconds,
        train_seconds,
        evaluate_seconds,
        objective: Some(epoch.objective),
        metrics: epoch.metrics.iter().map(|(&name, &value)| (name.into(), value)).collect::<Metrics>(),
        compute_seconds: epoch.compute_seconds,
        wait_seconds: epoch.wait_seconds,
        sync_seconds: epoch.sync_seconds,
        imbalance: None,
        workers: epoch.workers.iter().map(of_worker).collect(),
        sent_bytes: epoch.sent_bytes,
        sent,
        unacknowledged_bytes: 0,
        updates,
    }
}
