//! A training run as its surroundings see it: record, progress, stopping, and what is written at the end.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::Context;
use megagrid_engine::{Engine, IterationReport};
use megagrid_stages::Program;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::common::{self, Common};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::{self, Progress};
use crate::record::{self, InputSizes, Iteration, Machine, Metrics, Outcome, Phases, Record};
use crate::report;

/// What an algorithm measured after an iteration.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What it minimizes.
    pub objective: f64,
    /// Other values.
    pub metrics: Metrics,
    /// Whether the tolerance is reached.
    pub converged: bool,
    /// What to do when the objective is no number.
    pub advice: &'static str,
}

/// A run under way.
pub struct Session<'o> {
    options: &'o Common,
    record: Record,
    progress: Progress,
    last: u64,
    failure: Option<anyhow::Error>,
}

impl<'o> Session<'o> {
    /// Begins a run up to iteration `last`.
    pub fn begin(
        options: &'o Common,
        command: &'static str,
        config: serde_json::Value,
        start: Start,
        last: u64,
    ) -> Self {
        let record = Record {
            megagrid: env!("CARGO_PKG_VERSION").into(),
            command: command.into(),
            config,
            input: start.input,
            machine: start.machine,
            phases: start.phases,
            iterations: Vec::new(),
            staleness: Default::default(),
            result: Outcome { iterations: start.done, ended_by: "iterations".into(), ..Outcome::default() },
            peak_rss_bytes: None,
            tuning: None,
        };
        interrupt::iterations_begin();
        Self { options, record, progress: Progress::iterations(options.quiet, start.done, last), last, failure: None }
    }

    /// Takes an iteration: measures, timed apart, and writes a checkpoint if one is due. Breaks where the run has to end.
    /// With several processes all of them measure, and what the first finds counts: others may return `None`.
    pub fn iteration<P: Program>(
        &mut self,
        report: &IterationReport,
        engine: &mut Engine<P>,
        measure: impl FnOnce(&mut Engine<P>) -> anyhow::Result<Option<Measured>>,
    ) -> ControlFlow<()>
    where
        P::Global: Serialize + DeserializeOwned,
    {
        self.after(report, engine, measure)
    }

    /// Takes an iteration that is not measured; as [`Session::iteration`] otherwise.
    pub fn unmeasured<P: Program>(&mut self, report: &IterationReport, engine: &mut Engine<P>) -> ControlFlow<()>
    where
        P::Global: Serialize + DeserializeOwned,
    {
        self.after(report, engine, |_| Ok(None))
    }

    fn after<P: Program>(
        &mut self,
        report: &IterationReport,
        engine: &mut Engine<P>,
        measure: impl FnOnce(&mut Engine<P>) -> anyhow::Result<Option<Measured>>,
    ) -> ControlFlow<()>
    where
        P::Global: Serialize + DeserializeOwned,
    {
        let flow = self.take(report, || measure(engine));
        self.conclude(report, engine, flow).unwrap_or_else(|failure| {
            self.failure.get_or_insert(failure);
            ControlFlow::Break(())
        })
    }

    /// Finds with the other processes whether this was the last iteration, and writes a checkpoint if one is due.
    fn conclude<P: Program>(
        &mut self,
        report: &IterationReport,
        engine: &mut Engine<P>,
        flow: ControlFlow<()>,
    ) -> anyhow::Result<ControlFlow<()>>
    where
        P::Global: Serialize + DeserializeOwned,
    {
        let is_early = report.iteration < self.last;
        let here = [self.failure.is_some(), flow.is_break(), interrupt::asked() && is_early];
        let [failed, ended, interrupted] = self.options.any_of(here)?;
        if failed {
            return Ok(ControlFlow::Break(()));
        }
        if interrupted && !ended {
            self.record.result.ended_by = "interrupt".into();
        }
        let ends = ended || interrupted || self.options.is_trial;
        self.options.checkpoint.after(engine, report.iteration, ends || !is_early)?;
        Ok(if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn take(
        &mut self,
        report: &IterationReport,
        measure: impl FnOnce() -> anyhow::Result<Option<Measured>>,
    ) -> ControlFlow<()> {
        let begin = Instant::now();
        let measured = match measure() {
            Ok(measured) => measured.filter(|_| self.options.is_first()),
            Err(failure) => {
                self.failure = Some(failure);
                return ControlFlow::Break(());
            }
        };
        self.add(report, measured, begin.elapsed().as_secs_f64())
    }

    /// Adds an iteration to the record, and what was measured after it in so many seconds. Breaks where the run has to end.
    pub fn add(
        &mut self,
        report: &IterationReport,
        measured: Option<Measured>,
        evaluate_seconds: f64,
    ) -> ControlFlow<()> {
        let (objective, metrics) = measured.as_ref().map(|one| (one.objective, one.metrics.clone())).unzip();
        let phases = &mut self.record.phases;
        phases.train += report.seconds;
        phases.evaluate += evaluate_seconds;
        for (&age, &reads) in &report.staleness {
            *self.record.staleness.entry(age).or_insert(0) += reads;
        }
        self.record.iterations.push(Iteration {
            iteration: report.iteration,
            seconds: report.seconds,
            train_seconds: phases.train,
            evaluate_seconds,
            objective,
            metrics: metrics.unwrap_or_default(),
            compute_seconds: report.compute_seconds,
            wait_seconds: report.wait_seconds,
            sync_seconds: report.sync_seconds,
            imbalance: Some(report.imbalance),
            workers: report.workers.clone(),
            sent_bytes: report.sent.total().bytes,
            sent: report.sent,
            unacknowledged_bytes: report.unacknowledged_bytes,
            updates: report.updates,
        });
        self.show(report);
        if let Some(measured) = measured.as_ref().filter(|one| !one.objective.is_finite()) {
            let (number, advice) = (measured.objective, measured.advice);
            let iteration = report.iteration;
            self.failure = Some(anyhow::anyhow!("the objective became {number} in iteration {iteration}; {advice}"));
            return ControlFlow::Break(());
        }
        if measured.is_some_and(|one| one.converged) {
            self.record.result.ended_by = "tolerance".into();
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn show(&self, report: &IterationReport) {
        let Some(now) = self.record.iterations.last() else { return };
        let mean = (now.train_seconds + self.record.phases.evaluate) / self.record.iterations.len() as f64;
        let left = Duration::from_secs_f64(mean * self.last.saturating_sub(report.iteration) as f64);
        let Some(evaluated) = self.record.iterations.iter().rfind(|one| one.objective.is_some()) else { return };
        let mut measured = format!("objective {:.4e}", evaluated.objective.unwrap_or(f64::NAN));
        for (name, value) in &evaluated.metrics {
            measured.push_str(&format!("  {name} {value:.4}"));
        }
        self.progress.show(report.iteration, report.updates as f64 / report.seconds.max(1e-9), &measured, left);
    }

    /// Ends a run: writes the record and the report, and fails if the run did.
    pub fn end(mut self) -> anyhow::Result<Record> {
        interrupt::iterations_end();
        self.progress.end();
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let record = &mut self.record;
        if let Some(last) = record.iterations.last() {
            record.result.iterations = last.iteration;
        }
        if let Some(last) = record.iterations.iter().rfind(|one| one.objective.is_some()) {
            record.result.objective = last.objective;
            record.result.metrics = last.metrics.clone();
        }
        record.result.edges_per_second = record::edges_per_second(&record.iterations);
        record.result.imbalance = record::median(record.iterations.iter().filter_map(|one| one.imbalance));
        record.peak_rss_bytes = record::peak_rss_bytes();
        if record.result.ended_by != "interrupt" {
            return Ok(self.record);
        }
        write_record(record, self.options)?;
        let left = match &self.options.checkpoint.checkpoint {
            Some(directory) => format!("continue with --resume {}", directory.display()),
            None => "no model was written, and no checkpoint was asked for".to_owned(),
        };
        Err(Failure::Interrupted { iteration: record.result.iterations, left }.into())
    }
}

/// What a run begins with.
pub struct Start {
    /// Sizes of the input.
    pub input: InputSizes,
    /// What it runs on.
    pub machine: Machine,
    /// Iterations done, by the run that this one continues.
    pub done: u64,
    /// What has been done so far.
    pub phases: Phases,
}

/// Writes what `--json` and `--report` ask for.
pub fn write_record(record: &Record, options: &Common) -> anyhow::Result<()> {
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(record).context("writing the run record")?;
        common::write_text(path, &(text + "\n"))?;
    }
    if let Some(path) = &options.report {
        common::write_text(path, &report::page(record)?)?;
    }
    Ok(())
}

/// Says in a few lines what a run did.
pub fn summary(record: &Record) -> String {
    let InputSizes { left, right, edges, test_edges } = record.input;
    let Phases { load, partition, plan, train, evaluate } = record.phases;
    let Outcome { iterations, edges_per_second, ref ended_by, .. } = record.result;
    let mut text = format!("{}: {left} × {right} vertices, {edges} edges", record.command);
    if test_edges > 0 {
        text.push_str(&format!(", {test_edges} to test on"));
    }
    text.push_str(&format!("\n  {iterations} iterations (ended by {ended_by})"));
    if let Some(rate) = edges_per_second {
        let Machine { workers, vector, .. } = &record.machine;
        let unit = if record.command == "lda" { "tokens" } else { "edges" };
        text.push_str(&format!(", {} {unit}/s with {workers} workers ({vector})", progress::engineering(rate)));
    }
    if let Some(imbalance) = record.result.imbalance.filter(|_| record.machine.workers > 1) {
        text.push_str(&format!(", busiest worker {imbalance:.2} of the mean"));
    }
    text.push_str(&format!(
        "\n  seconds: load {load:.2}, partition {partition:.2}, plan {plan:.2}, train {train:.2}, evaluate {evaluate:.2}\n"
    ));
    for (name, value) in &record.result.metrics {
        text.push_str(&format!("  {name} {value:.6}\n"));
    }
    if let Some(peak) = record.peak_rss_bytes {
        text.push_str(&format!("  peak memory {}\n", progress::bytes(peak)));
    }
    text
}
