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
    /// Which iteration, from 1.
    pub iteration: u64,
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
    /// What the worker sent to other processes.
    pub sent: Traffic,
    /// How often each staleness (age minus clock) was read; −1 is fresh.
    pub staleness: BTreeMap<i64, u64>,
}

impl WorkerReport {
    /// Begins now.
    #[must_use]
    pub fn begin(now: Instant) -> Self {
        let [compute, sync, wait] = [Duration::ZERO; 3];
        let (sent, staleness) = (Traffic::default(), BTreeMap::new());
        Self { iteration: 0, span: (now, now), compute, sync, wait, updates: 0, sent, staleness }
    }
}

/// One worker's part of an iteration, in seconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct WorkerSeconds {
    /// Its start, from that of the iteration's seconds; below 0 where it was ahead of others.
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
    /// Until its end on the last worker: from its start on the first one, or from the end of the iteration before where it
    /// began during that.
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
    /// The bytes of it that each process sent, where there are several.
    pub process_bytes: Vec<u64>,
    /// The most bytes of changes in place so far, in a process, that masters were not known to have.
    pub unacknowledged_bytes: u64,
    /// How often each staleness (age minus clock) was read; −1 is fresh.
    pub staleness: BTreeMap<i64, u64>,
}

impl IterationReport {
    /// Joins the workers' parts of iterations, one after the other.
    #[must_use]
    pub fn join(iterations: &[Vec<WorkerReport>]) -> Vec<Self> {
        let mut ended = None;
        iterations.iter().map(|parts| Self::of_workers(parts, &mut ended)).collect()
    }

    /// Joins the workers' parts of an iteration; `ended` is when the one before had ended.
    fn of_workers(parts: &[WorkerReport], ended: &mut Option<Instant>) -> Self {
        let begin = parts.iter().map(|part| part.span.0).min();
        let end = parts.iter().map(|part| part.span.1).max();
        let from = begin.max(std::mem::replace(ended, end));
        let since = |time: Instant| from.map_or(0.0, |from| seconds_between(from, time));
        let seconds = end.map_or(0.0, since);
        let mean = |of: fn(&WorkerReport) -> Duration| {
            parts.iter().map(|part| of(part).as_secs_f64()).sum::<f64>() / parts.len().max(1) as f64
        };
        let compute_seconds = mean(|part| part.compute);
        let busiest = parts.iter().map(|part| part.compute.as_secs_f64()).fold(0.0, f64::max);
        let workers = parts.iter().map(|part| WorkerSeconds {
            begin: since(part.span.0),
            seconds: (part.span.1 - part.span.0).as_secs_f64(),
            compute: part.compute.as_secs_f64(),
            sync: part.sync.as_secs_f64(),
            wait: part.wait.as_secs_f64(),
        });
        Self {
            iteration: parts.first().map_or(0, |part| part.iteration),
            seconds,
            compute_seconds,
            sync_seconds: mean(|part| part.sync),
            wait_seconds: mean(|part| part.wait),
            imbalance: if compute_seconds > 0.0 { busiest / compute_seconds } else { 1.0 },
            workers: workers.collect(),
            updates: parts.iter().map(|part| part.updates).sum(),
            sent: parts.iter().map(|part| part.sent).fold(Traffic::default(), Traffic::add),
            process_bytes: Vec::new(),
            unacknowledged_bytes: 0,
            staleness: sum(parts.iter().map(|part| &part.staleness)),
        }
    }

    /// Joins the processes' reports of the same iterations. Every process calls it.
    pub(crate) fn join_processes(mine: Vec<Self>, peers: &dyn Peers) -> Result<Vec<Self>, Error> {
        let iterations = mine.len();
        let all = all_gather(Some(peers), vec![mine])?;
        // Seconds since the last look: of each process, and until the last of them had ended the iteration before.
        let (mut elapsed, mut ended) = (vec![0.0; all.len()], 0.0);
        let of = |at: usize| all.iter().filter_map(|reports| reports.get(at)).collect::<Vec<_>>();
        let joined = (0..iterations).map(of).map(|reports| {
            let mut workers = Vec::new();
            for (elapsed, report) in elapsed.iter_mut().zip(&reports) {
                let later = *elapsed - ended;
                workers.extend(report.workers.iter().map(|one| WorkerSeconds { begin: one.begin + later, ..*one }));
                *elapsed += report.seconds;
            }
            let end = elapsed.iter().copied().fold(0.0, f64::max);
            Self { seconds: end - std::mem::replace(&mut ended, end), workers, ..Self::of_processes(&reports) }
        });
        Ok(joined.collect())
    }

    /// Joins the processes' reports of an iteration, but for its seconds and workers.
    fn of_processes(all: &[&Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| all.iter().map(|report| of(report)).sum::<f64>() / all.len() as f64;
        let compute_seconds = mean(|report| report.compute_seconds);
        let busiest = all.iter().map(|report| report.imbalance * report.compute_seconds).fold(0.0, f64::max);
        Self {
            iteration: all.first().map_or(0, |report| report.iteration),
            compute_seconds,
            sync_seconds: mean(|report| report.sync_seconds),
            wait_seconds: mean(|report| report.wait_seconds),
            imbalance: if compute_seconds > 0.0 { busiest / compute_seconds } else { 1.0 },
            updates: all.iter().map(|report| report.updates).sum(),
            unacknowledged_bytes: all.iter().map(|report| report.unacknowledged_bytes).max().unwrap_or(0),
            sent: all.iter().map(|report| report.sent).fold(Traffic::default(), Traffic::add),
            process_bytes: all.iter().map(|report| report.sent.total().bytes).collect(),
            staleness: sum(all.iter().map(|report| &report.staleness)),
            ..Self::default()
        }
    }
}

/// Returns the seconds from a moment to another, which may be before it.
fn seconds_between(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64() - from.saturating_duration_since(to).as_secs_f64()
}

fn sum<'r>(reads: impl Iterator<Item = &'r BTreeMap<i64, u64>>) -> BTreeMap<i64, u64> {
    let mut all = BTreeMap::new();
    reads.flatten().for_each(|(&age, &reads)| *all.entry(age).or_insert(0) += reads);
    all
}
