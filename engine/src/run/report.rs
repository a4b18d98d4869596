//! What an iteration cost, and how fresh the data was that it read.

use std::collections::BTreeMap;
use std::ops::Add;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::peers::{Peers, all_gather};
use crate::Error;
use crate::plan::Traffic;

/// One worker's part of an iteration.
#[derive(Clone, Debug)]
pub struct WorkerReport {
    /// When it began and ended.
    pub span: (Instant, Instant),
    /// Time in Exchange, and what an injection takes.
    pub compute: Duration,
    /// Time in Apply and GlobalSync.
    pub sync: Duration,
    /// Time with nothing to do.
    pub wait: Duration,
    /// Edges that Exchanges ran on.
    pub updates: u64,
    /// How often each staleness (age minus clock) was read; −1 is fresh.
    pub staleness: BTreeMap<i64, u64>,
}

impl WorkerReport {
    /// Begins now.
    #[must_use]
    pub fn begin(now: Instant) -> Self {
        let [compute, sync, wait] = [Duration::ZERO; 3];
        Self { span: (now, now), compute, sync, wait, updates: 0, staleness: BTreeMap::new() }
    }
}

/// One worker's part of an iteration, in seconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct WorkerSeconds {
    /// From the start of its process's first worker to its own.
    pub begin: f64,
    /// From its start to its end.
    pub seconds: f64,
    /// In Exchange.
    pub compute: f64,
    /// In Apply and GlobalSync.
    pub sync: f64,
    /// With nothing to do.
    pub wait: f64,
}

/// One iteration over all workers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IterationReport {
    /// Which, from 1.
    pub iteration: u64,
    /// From the first worker's start to the last one's end.
    pub seconds: f64,
    /// Seconds in Exchange, mean over workers.
    pub compute_seconds: f64,
    /// Seconds in Apply and GlobalSync, mean over workers.
    pub sync_seconds: f64,
    /// Seconds with nothing to do, mean over workers.
    pub wait_seconds: f64,
    /// The busiest worker's time in Exchange over the mean.
    pub imbalance: f64,
    /// Each worker's part, by process and worker.
    pub workers: Vec<WorkerSeconds>,
    /// Edges that Exchanges ran on.
    pub updates: u64,
    /// What processes sent each other.
    pub sent: Traffic,
    /// The most bytes of changes in place so far, in a process, that masters were not known to have.
    pub unacknowledged_bytes: u64,
    /// How often each staleness (age minus clock) was read; −1 is fresh.
    pub staleness: BTreeMap<i64, u64>,
}

impl IterationReport {
    /// Joins the workers' parts.
    #[must_use]
    pub fn join(iteration: u64, parts: &[WorkerReport]) -> Self {
        let begin = parts.iter().map(|part| part.span.0).min();
        let end = parts.iter().map(|part| part.span.1).max();
        let seconds = begin.zip(end).map_or(0.0, |(begin, end)| (end - begin).as_secs_f64());
        let mean = |of: fn(&WorkerReport) -> Duration| {
            parts.iter().map(|part| of(part).as_secs_f64()).sum::<f64>() / parts.len().max(1) as f64
        };
        let compute_seconds = mean(|part| part.compute);
        let busiest = parts.iter().map(|part| part.compute.as_secs_f64()).fold(0.0, f64::max);
        let workers = parts.iter().map(|part| WorkerSeconds {
            begin: begin.map_or(0.0, |begin| (part.span.0 - begin).as_secs_f64()),
            seconds: (part.span.1 - part.span.0).as_secs_f64(),
            compute: part.compute.as_secs_f64(),
            sync: part.sync.as_secs_f64(),
            wait: part.wait.as_secs_f64(),
        });
        Self {
            iteration,
            seconds,
            compute_seconds,
            sync_seconds: mean(|part| part.sync),
            wait_seconds: mean(|part| part.wait),
            imbalance: if compute_seconds > 0.0 { busiest / compute_seconds } else { 1.0 },
            workers: workers.collect(),
            updates: parts.iter().map(|part| part.updates).sum(),
            staleness: sum(parts.iter().map(|part| &part.staleness)),
            ..Self::default()
        }
    }

    /// Joins the processes' reports of the same iteration. Every process calls it.
    pub(crate) fn join_processes(&self, peers: &dyn Peers) -> Result<Self, Error> {
        let all = all_gather(Some(peers), vec![self.clone()])?;
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        let compute_seconds = mean(|report| report.compute_seconds);
        let busiest = all.iter().map(|report| report.imbalance * report.compute_seconds).fold(0.0, f64::max);
        Ok(Self {
            iteration: self.iteration,
            seconds: all.iter().map(|report| report.seconds).fold(0.0, f64::max),
            compute_seconds,
            sync_seconds: mean(|report| report.sync_seconds),
            wait_seconds: mean(|report| report.wait_seconds),
            imbalance: if compute_seconds > 0.0 { busiest / compute_seconds } else { 1.0 },
            workers: all.iter().flat_map(|report| report.workers.iter().copied()).collect(),
            updates: all.iter().map(|report| report.updates).sum(),
            unacknowledged_bytes: all.iter().map(|report| report.unacknowledged_bytes).max().unwrap_or(0),
            sent: all.iter().map(|report| report.sent).fold(Traffic::default(), Traffic::add),
            staleness: sum(all.iter().map(|report| &report.staleness)),
        })
    }
}

fn sum<'r>(reads: impl Iterator<Item = &'r BTreeMap<i64, u64>>) -> BTreeMap<i64, u64> {
    let mut all = BTreeMap::new();
    reads.flatten().for_each(|(&age, &reads)| *all.entry(age).or_insert(0) += reads);
    all
}
