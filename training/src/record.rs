//! The run record: what a run was asked, what it did, and what that cost. Written by `--json` and drawn by `--report`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use megagrid_engine::{IterationReport, Traffic, WorkerSeconds, os};
use serde::{Deserialize, Serialize};

/// A name that the program knows, or that stood in a record.
pub type Name = Cow<'static, str>;

/// Measured values by name.
pub type Metrics = BTreeMap<Name, f64>;

/// The record of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Version of the program.
    pub megagrid: Name,
    /// The command.
    pub command: Name,
    /// Every resolved option.
    pub config: serde_json::Value,
    /// Sizes of the input.
    pub input: InputSizes,
    /// What it ran on.
    pub machine: Machine,
    /// Wall-clock seconds of each phase.
    pub phases: Phases,
    /// Each iteration.
    pub iterations: Vec<Iteration>,
    /// How often data of each age (minus the reader's clock) was read; −1 is fresh.
    pub staleness: BTreeMap<i64, u64>,
    /// The end.
    pub result: Outcome,
    /// The most memory that the process has had; absent where the system does not tell.
    pub peak_rss_bytes: Option<u64>,
    /// How the settings were found; absent where they were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
}

/// How a run found its settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tuning {
    /// What proposed settings.
    pub searcher: String,
    /// The unit of trials' times: seconds or samples.
    pub time: String,
    /// Trials that were not gone on with, as a part of the time of all branches.
    pub part: f64,
    /// Wall-clock seconds of everything but the run's own iterations and measurements.
    pub seconds: f64,
    /// Branches that were alive at a time, at most, the first included.
    pub most_branches: usize,
    /// Why the run ended.
    pub ended_by: String,
    /// Settings of the run, each with the iterations that were done before.
    pub settings: Vec<(u64, String)>,
    /// Where the error on test data stopped falling, by the evaluations that decided it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalled: Vec<megagrid_tuner::Stalled>,
    /// The command line that trains with the first of them, if a command did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Settings that there are, where all that is tuned has lists of values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub possible: Option<usize>,
    /// Every trial.
    pub trials: Vec<Trial>,
}

impl Tuning {
    /// Says how many trials there were, and of how many settings where a search could not try all.
    #[must_use]
    pub fn tried(&self) -> String {
        let (trials, plural) = (self.trials.len(), if self.trials.len() == 1 { "" } else { "s" });
        let mut settings: Vec<&str> = self.trials.iter().map(|trial| &*trial.setting).collect();
        settings.sort_unstable();
        settings.dedup();
        match self.possible.filter(|possible| *possible > settings.len()) {
            Some(possible) => format!("{trials} trial{plural} of {} of {possible} settings", settings.len()),
            None => format!("{trials} trial{plural}"),
        }
    }

    /// Says what the command line makes: it has one setting, and the run may have had several.
    #[must_use]
    pub fn of_command(&self) -> &'static str {
        if self.settings.len() > 1 { "the first setting without trials" } else { "the same without trials" }
    }
}

/// A setting that was tried.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// The branch.
    pub branch: u64,
    /// The search, from 0; later ones are re-tunings.
    pub search: usize,
    /// The setting.
    pub setting: String,
    /// Iterations as a trial.
    pub iterations: u64,
    /// Their time.
    pub time: f64,
    /// What training makes smaller, after them; absent if it is no number.
    pub loss: Option<f64>,
    /// By how much that fell in a unit of time, less its largest rise.
    pub speed: f64,
    /// Converging, unstable or diverged.
    pub label: String,
    /// Whether the run went on with it.
    pub chosen: bool,
}

/// Sizes of the input.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InputSizes {
    /// Left vertices.
    pub left: usize,
    /// Right vertices.
    pub right: usize,
    /// Edges to train on.
    pub edges: usize,
    /// Edges to test on.
    pub test_edges: usize,
    /// Users to test on, where training does not see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_users: Option<usize>,
    /// The column of a table that holds labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_column: Option<String>,
    /// Classes, and how many samples to train on each has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<(String, usize)>,
}

/// Where edges and masters are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Placement {
    /// Masters and mirrors over vertices.
    pub replication_factor: f64,
    /// Edges, and masters, of the process with most of them, over the mean; none where a baseline does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge_balance: Option<f64>,
    /// See `edge_balance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_balance: Option<f64>,
    /// Edges of the worker with most of them, over the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_balance: Option<f64>,
}

impl Record {
    /// Begins the record of a run that goes on from `done` iterations.
    #[must_use]
    pub fn begin(
        command: &'static str,
        config: serde_json::Value,
        input: InputSizes,
        machine: Machine,
        phases: Phases,
        done: u64,
    ) -> Self {
        Self {
            megagrid: env!("CARGO_PKG_VERSION").into(),
            command: command.into(),
            config,
            input,
            machine,
            phases,
            iterations: Vec::new(),
            staleness: BTreeMap::new(),
            result: Outcome {
                iterations: done,
                done_before: Some(done).filter(|&done| done > 0),
                ended_by: "iterations".into(),
                ..Outcome::default()
            },
            peak_rss_bytes: None,
            tuning: None,
        }
    }

    /// Adds an iteration, and what was found after it in `evaluate_seconds`.
    pub fn add(&mut self, report: &IterationReport, objective: Option<f64>, metrics: Metrics, evaluate_seconds: f64) {
        self.phases.train += report.seconds;
        self.phases.evaluate += evaluate_seconds;
        for (&age, &reads) in &report.staleness {
            *self.staleness.entry(age).or_insert(0) += reads;
        }
        self.result.iterations = report.iteration;
        self.iterations.push(Iteration {
            iteration: report.iteration,
            seconds: report.seconds,
            train_seconds: self.phases.train,
            evaluate_seconds,
            objective,
            metrics,
            compute_seconds: report.compute_seconds,
            wait_seconds: report.wait_seconds,
            sync_seconds: report.sync_seconds,
            imbalance: Some(report.imbalance),
            workers: report.workers.clone(),
            sent_bytes: report.sent.total().bytes,
            sent: report.sent,
            process_bytes: report.process_bytes.clone(),
            unacknowledged_bytes: report.unacknowledged_bytes,
            updates: report.updates,
        });
    }

    /// Takes what a system does before its first iteration for a part of the plan, where the seconds beside the first iteration have it
    /// and an evaluation, and those beside each other one an evaluation: the median of these is taken for the first too.
    pub fn tell_setup_apart(&mut self) {
        let evaluation = median(self.iterations.iter().skip(1).map(|one| one.evaluate_seconds)).unwrap_or(0.0);
        if let Some(first) = self.iterations.first_mut() {
            let evaluation = evaluation.min(first.evaluate_seconds);
            self.phases.plan += first.evaluate_seconds - evaluation;
            first.evaluate_seconds = evaluation;
        }
        // A sum of nothing is −0.
        self.phases.evaluate = self.iterations.iter().map(|one| one.evaluate_seconds).sum::<f64>() + 0.0;
    }

    /// Ends the record, with what was found of the model: `of`, or what was found last.
    pub fn end(&mut self, of: Option<(Option<f64>, Metrics)>) {
        let last = || self.iterations.last().map(|one| (one.objective, one.metrics.clone()));
        if let Some(found) = of.or_else(last) {
            (self.result.objective, self.result.metrics) = found;
        }
        self.result.edges_per_second = edges_per_second(&self.iterations);
        self.result.imbalance = median(self.iterations.iter().filter_map(|one| one.imbalance));
        self.peak_rss_bytes = os::peak_rss_bytes();
    }
}

impl From<megagrid_engine::plan::Quality> for Placement {
    fn from(of: megagrid_engine::plan::Quality) -> Self {
        Self {
            replication_factor: of.replication_factor,
            edge_balance: Some(of.edge_balance),
            master_balance: Some(of.master_balance),
            worker_balance: Some(of.worker_balance),
        }
    }
}

/// What a run ran on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Worker threads of a process.
    pub workers: usize,
    /// Processes that share the work, where they are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<usize>,
    /// Vector instructions used.
    pub vector: Name,
    /// Bytes of grid and vertex data that the plan expected.
    pub memory_estimate_bytes: u64,
    /// Bytes of grid and vertex data that there are.
    pub memory_bytes: u64,
    /// Bytes of the copy of the model that was best on test data, where one is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_model_bytes: Option<u64>,
    /// Bytes of the input that each process has read, where several read it together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_bytes: Vec<u64>,
    /// Bytes that each process has sent to each other, where that is counted: `[from][to]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Vec<u64>>,
    /// Replication factor and balance of the placement over processes.
    #[serde(flatten)]
    pub placement: Option<Placement>,
}

/// Wall-clock seconds of each phase.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Phases {
    /// From files to edges.
    pub load: f64,
    /// Relabeling, splitting and grouping.
    pub partition: f64,
    /// Plan, grid and first values.
    pub plan: f64,
    /// Iterations, without evaluation.
    pub train: f64,
    /// Objective and metrics.
    pub evaluate: f64,
    /// Recording the accesses of a parameter server and placing rows by them: in `plan` where a virtual iteration does so, otherwise
    /// in the first iteration.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gather: f64,
}

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// One iteration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Iteration {
    /// Which, from 1.
    pub iteration: u64,
    /// Seconds of this iteration, without evaluation.
    pub seconds: f64,
    /// Seconds of all iterations so far, without evaluation.
    pub train_seconds: f64,
    /// Seconds of evaluation after this iteration.
    pub evaluate_seconds: f64,
    /// What the algorithm minimizes, or maximizes; `None` where it was not evaluated.
    pub objective: Option<f64>,
    /// Measured values.
    pub metrics: Metrics,
    /// Seconds in Exchange, mean over workers.
    pub compute_seconds: f64,
    /// Seconds with nothing to do, mean over workers.
    pub wait_seconds: f64,
    /// Seconds in Apply and GlobalSync, mean over workers.
    pub sync_seconds: f64,
    /// The busiest worker's seconds in Exchange over the mean, where that is recorded.
    pub imbalance: Option<f64>,
    /// Each worker's part.
    pub workers: Vec<WorkerSeconds>,
    /// Bytes sent to other processes.
    pub sent_bytes: u64,
    /// Messages and bytes sent to other processes, by kind.
    pub sent: Traffic,
    /// The bytes of it that each process sent, where there are several; of a parameter server's, that its client sent or received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub process_bytes: Vec<u64>,
    /// The most bytes of changes in place so far, in a process, that masters were not known to have.
    pub unacknowledged_bytes: u64,
    /// Edges that Exchanges ran on.
    pub updates: u64,
}

/// The end of a run. Objective and measured values are those of the model.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The objective.
    pub objective: Option<f64>,
    /// The measured values.
    pub metrics: Metrics,
    /// Iterations done.
    pub iterations: u64,
    /// Those of an earlier run, where this one went on from a checkpoint: its own begin after them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_before: Option<u64>,
    /// What is known of the model of each penalty, where they are a path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<serde_json::Value>,
    /// The iteration that the model is of, where test data chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_iteration: Option<u64>,
    /// Median over iterations after the first.
    pub edges_per_second: Option<f64>,
    /// The busiest worker's seconds in Exchange over the mean, median over iterations.
    pub imbalance: Option<f64>,
    /// Why it ended: `iterations`, `tolerance`, `patience`, `interrupt`; of a run that tuned itself as in [`Tuning`].
    pub ended_by: Name,
}

/// Returns the median edges per second over iterations after the first, or of the only one.
pub fn edges_per_second(iterations: &[Iteration]) -> Option<f64> {
    let counted = if iterations.len() > 1 { &iterations[1..] } else { iterations };
    median(counted.iter().map(|one| one.updates as f64 / one.seconds.max(1e-9)))
}

/// Returns the median; `None` of nothing.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// A median with its range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of values; `None` of nothing.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let median = median(values.clone())?;
        let ends = values.fold((median, median), |(min, max), value| (min.min(value), max.max(value)));
        Some(Self { median, min: ends.0, max: ends.1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_before_the_first_iteration_is_a_part_of_the_plan() {
        let told = |beside: &[f64]| {
            let (input, machine, phases) =
                (InputSizes::default(), Machine::default(), Phases { plan: 1.0, ..Phases::default() });
            let mut record = Record::begin("a", serde_json::Value::Null, input, machine, phases, 0);
            let report = IterationReport::default();
            beside.iter().for_each(|&seconds| record.add(&report, None, Metrics::default(), seconds));
            record.tell_setup_apart();
            let first = record.iterations.first().map_or(0.0, |one| one.evaluate_seconds);
            [record.phases.plan, first, record.phases.evaluate]
        };
        assert_eq!(told(&[8.0, 1.0, 2.0, 4.0]), [7.0, 2.0, 9.0]);
        assert_eq!(told(&[1.0, 2.0]), [1.0, 1.0, 3.0]);
        assert_eq!(told(&[8.0]), [9.0, 0.0, 0.0]);
        assert_eq!(told(&[]), [1.0, 0.0, 0.0]);
    }
}
