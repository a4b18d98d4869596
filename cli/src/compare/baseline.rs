//! A job on a baseline, with the run record that a training command would write.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use megagrid_baselines::{Epoch, Processes, Run, Spent, System};
use megagrid_engine::cluster::Cluster;
use megagrid_engine::{Traffic, WorkerSeconds};

use megagrid_training::record::{Iteration, Machine, Metrics, Placement, Record};
use megagrid_training::{Algorithm, Data, Error as Training, Job, config};

use super::job::{Comparable, Laid};
use crate::common::Common;
use crate::interrupt;
use crate::together::Together;

/// Runs a job on a baseline, with other processes if there are some, and writes its record. What is done before the first iteration,
/// accesses recorded say, counts as plan. The job decides its workers, vector level,
/// iterations, seed and slack, `how` the rest.
pub fn run<A: Comparable>(
    system: System,
    job: Job<A>,
    common: &Common,
    how: Run,
    others: Option<&Arc<Cluster>>,
) -> anyhow::Result<()> {
    let (job, options) = resolved(job)?;
    let config = config::<A>(&job.origin, &options, &job.run, job.more.clone())?;
    let workers = job.settings.workers;
    let processes = others.map_or_else(Processes::default, |cluster| Processes::new(Arc::new(Together::new(cluster))));
    let machine = Machine {
        workers: workers * processes.count(),
        vector: job.settings.level.name().into(),
        ..Machine::default()
    };
    let mut record = Record::begin(A::NAME, config, job.data.sizes(), machine, job.phases, 0);
    let iterations = megagrid_training::Options::iterations(&job.options);
    let (seed, slack, level) = (job.settings.seed, job.settings.slack.unwrap_or(0), job.settings.level);
    let how = Run { workers, level, iterations, seed, slack, processes, ..how };
    let Laid { updates, run } = A::lay_out(job)?;
    interrupt::iterations_begin();
    let mut clock = Instant::now();
    let finish = run(system, &how, &mut |epoch| {
        let passed = clock.elapsed().as_secs_f64();
        clock = Instant::now();
        let beside = (passed - epoch.seconds).max(0.0);
        record.phases.train += epoch.seconds;
        record.iterations.push(iteration(epoch, record.phases.train, beside, updates));
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    record.staleness = finish.staleness;
    record.phases.gather = finish.gather_seconds;
    record.machine.memory_bytes = finish.memory_bytes;
    conclude(record, finish.replication_factor, common)
}

/// Ends the iterations of a system that has `replication_factor` copies of each row, and writes the record.
pub fn conclude(mut record: Record, replication_factor: f64, common: &Common) -> anyhow::Result<()> {
    let interrupted = interrupt::asked();
    interrupt::iterations_end();
    if interrupted {
        let iteration = record.iterations.len() as u64;
        return Err(Training::Interrupted { iteration, left: "nothing was written".to_owned(), record: None }.into());
    }
    record.tell_setup_apart();
    record.machine.placement =
        Some(Placement { replication_factor, edge_balance: None, master_balance: None, worker_balance: None });
    record.result.iterations = record.iterations.len() as u64;
    record.end(None);
    common.write_record(&record)
}

/// Returns the options with all that follows from the data.
pub fn resolved<A: Algorithm>(job: Job<A>) -> anyhow::Result<(Job<A>, A::Options)> {
    let data = Arc::new(job.data);
    let form = A::form(&data, &job.options)(Arc::clone(&data), job.options.clone(), job.settings.clone())?;
    let options = form.options();
    drop(form);
    let data = Arc::into_inner(data).context("a form kept its data")?;
    Ok((Job { data, ..job }, options))
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
        process_bytes: epoch.process_bytes.clone(),
        unacknowledged_bytes: 0,
        updates,
    }
}
