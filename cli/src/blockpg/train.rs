//! Training, one l1 after the other.

use std::path::Path;
use std::time::Instant;

use megagrid_algorithms::blockpg::{
    BlockPg, Certificate, Config, Fit, Margin, Quality, Region, State, log_loss, margins, sequence,
};
use megagrid_datasets::Dictionary;
use megagrid_engine::{Engine, Settings};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Left, Right};

use super::Options;
use super::data::Fitted;
use super::saved::{self, Saved};
use crate::common::Common;
use crate::input::digest;
use crate::record::{InputSizes, Machine, Metrics, Phases, Record};
use crate::session::{Measured, Session, Start};

/// What is to be trained.
pub struct Job {
    /// Samples.
    pub data: Fitted,
    /// Parameters, the largest l1 first.
    pub path: Vec<Config>,
    /// First weights, by feature.
    start: Vec<f64>,
    /// Values of a block.
    pub block_values: u64,
    /// Iterations at most, for each l1.
    iterations: u64,
    /// Relative duality gap that ends the run.
    tolerance: f64,
    settings: Settings,
}

impl Job {
    /// Makes a job from samples and options.
    pub fn new(data: Fitted, path: Vec<Config>, options: &Options, start: Option<Saved>, settings: Settings) -> Self {
        let features = data.signed.num_vertices(Side::Right);
        let block_values = options.block_values(data.signed.num_edges(), features);
        let mut weights = vec![0.0; features];
        if let Some(start) = start {
            for (of, weight) in start.features.translate(&data.features).into_iter().zip(start.weights) {
                if let Some(feature) = of {
                    weights[feature as usize] = weight;
                }
            }
            data.intercept.into_iter().for_each(|feature| weights[feature] = start.intercept);
        }
        let Options { iterations, tolerance, .. } = *options;
        Self { data, path, start: weights, block_values, iterations, tolerance, settings }
    }

    fn fit<'d>(&'d self, weights: &'d [f64]) -> Fit<'d> {
        let Fitted { signed, labels, sample_weights, intercept, .. } = &self.data;
        Fit { signed, labels, sample_weights, intercept: *intercept, weights }
    }
}

/// A trained model and how it came about.
pub struct Trained {
    /// The run.
    pub record: Record,
    /// Weights of features, the intercept last if there is one.
    pub weights: Vec<f64>,
    /// Names of the features, but for the intercept.
    pub features: Dictionary,
    /// What is known of the model of each l1, in their order.
    pub path: Vec<(f64, Certificate)>,
    /// Checksum of the samples.
    pub checksum: u64,
    converged: bool,
}

impl Trained {
    /// Returns the intercept, or 0.
    pub fn intercept(&self) -> f64 {
        self.weights.get(self.features.len()).copied().unwrap_or(0.0)
    }

    /// Writes a model directory.
    pub fn write(&self, directory: &Path) -> anyhow::Result<()> {
        saved::write(directory, self)
    }

    /// Says what is known of the model.
    pub fn findings(&self) -> String {
        let mut text = String::new();
        for (l1, certificate) in &self.path {
            let Certificate { objective, bound, gap, violation, nonzeros, .. } = certificate;
            text.push_str(&format!(
                "  l1 {l1}: objective {objective:.6}, no model below {bound:.6} (gap {gap:.1e}), {nonzeros} weights, \
                 largest violation {violation:.1e}\n"
            ));
        }
        if self.weights[..self.features.len()].iter().all(|&w| w == 0.0) {
            text.push_str("  note: no feature has a weight, l1 is too large for that; try a smaller --l1\n");
        }
        if !self.converged {
            text.push_str("  note: not converged to --tolerance; try more --iterations\n");
        }
        text
    }
}

/// Prints the plan.
pub fn plan(job: &Job) -> anyhow::Result<()> {
    let sequence = sequence(job.block_values);
    crate::plan::show(&megagrid_engine::plan(&job.data.signed, &sequence, &job.settings)?)
}

/// Trains.
pub fn train(job: Job, common: &Common, resolved: serde_json::Value, mut phases: Phases) -> anyhow::Result<Trained> {
    let begin = Instant::now();
    let checksum = job.checksum()?;
    common.agree("blockpg", &resolved, checksum)?;
    let mut engine = job.build(job.block_values, &job.settings)?;
    let done = common.checkpoint.begin(&mut engine, &resolved)?;
    phases.plan = begin.elapsed().as_secs_f64();
    let start = Start { done, ..job.start(&engine, phases) };
    let last = done + job.iterations * job.path.len() as u64;
    let mut session = Session::begin(common, "blockpg", resolved, start, last);

    let first = job.path.iter().position(|config| config.l1 == engine.global().l1).unwrap_or(0);
    let (mut path, mut converged) = (Vec::new(), false);
    for (at, config) in job.path.iter().enumerate().skip(first) {
        if at > first {
            let (begun, damping) = (engine.iterations(), engine.global().damping);
            engine.resume(begun, State { begun, damping, ..config.state() });
        }
        let is_last = at + 1 == job.path.len();
        let until = engine.global().begun + job.iterations;
        let (mut stop, mut certified) = (false, None);
        engine.run_until(until, |engine, report| {
            let flow = session.iteration(report, engine, |engine| {
                engine.collect()?;
                if !common.is_first() {
                    return Ok(None);
                }
                let (mut measured, certificate) = measure(&job, config, engine);
                certified = certificate.filter(|certificate| is_converged(certificate, config, job.tolerance));
                measured.converged = is_last && certified.is_some();
                Ok(Some(measured))
            });
            stop = flow.is_break();
            Ok(certified.is_some() || flow.is_break())
        })?;
        let is_certified = common.any(certified.is_some())?;
        engine.collect()?;
        let ended = match certified {
            Some(certificate) => certificate,
            None => Certificate::new(&job.fit(&weights(&engine)), config)?,
        };
        path.push((config.l1, ended));
        converged = is_certified;
        if common.any(stop)? && !converged {
            break;
        }
    }
    let record = with_certificate(session.end()?, &path);
    let weights = weights(&engine);
    let converged = converged || job.tolerance == 0.0;
    Ok(Trained { record, weights, features: job.data.features, path, checksum, converged })
}

impl Job {
    /// Makes an engine with first weights, for blocks of so many values.
    pub fn build(&self, block_values: u64, settings: &Settings) -> anyhow::Result<Engine<BlockPg>> {
        let Fitted { signed, sample_weights, intercept, .. } = &self.data;
        let mut engine = Engine::<BlockPg>::new(signed, sequence(block_values), settings)?;
        engine.set_global(self.path[0].state());
        let (reaches, margins) = (self.data.reaches()?, margins(signed, &self.start)?);
        engine.init(Left, |sample, first| {
            let weight = sample_weights.get(sample).copied().unwrap_or(1.0);
            *first.master = Margin::new(margins[sample], weight);
            *first.sync = first.master.parabola();
        });
        engine.init(Right, |feature, first| {
            let penalty = if *intercept == Some(feature) { 0.0 } else { 1.0 };
            first.sync.value = self.start[feature];
            *first.master = Region::new(penalty, reaches[feature]);
        });
        Ok(engine)
    }

    /// Lets an engine of this job go on with other settings.
    pub fn adapt(&self, engine: &mut Engine<BlockPg>, block_values: u64, settings: &Settings) -> anyhow::Result<()> {
        Ok(engine.reconfigure(&self.data.signed, sequence(block_values), settings)?)
    }

    /// Returns a checksum of the samples.
    pub fn checksum(&self) -> anyhow::Result<u64> {
        Ok(digest(&self.data.signed, |&value| f64::from(value))?.checksum)
    }

    /// Measures what an engine has learned at the first l1, and whether that is known to be near enough to the optimum, in the
    /// first process. All call it.
    pub fn measure(&self, engine: &mut Engine<BlockPg>) -> anyhow::Result<Option<Measured>> {
        engine.collect()?;
        if engine.plan().processes.this > 0 {
            return Ok(None);
        }
        let config = &self.path[0];
        let (measured, certificate) = measure(self, config, engine);
        let converged = certificate.is_some_and(|certificate| is_converged(&certificate, config, self.tolerance));
        Ok(Some(Measured { converged, ..measured }))
    }

    /// Returns the numbers of values and of features, and how the run was to go.
    pub fn sizes(&self) -> (usize, usize, &Settings) {
        (self.data.signed.num_edges(), self.data.signed.num_vertices(Side::Right), &self.settings)
    }

    /// Says what a run begins with.
    pub fn start(&self, engine: &Engine<BlockPg>, phases: Phases) -> Start {
        let signed = &self.data.signed;
        let input = InputSizes {
            left: signed.num_vertices(Side::Left),
            right: self.data.features.len(),
            edges: signed.num_edges(),
            test_edges: self.data.test.as_ref().map_or(0, |test| test.num_values()),
        };
        let machine = Machine {
            workers: engine.plan().threads(),
            vector: self.settings.level.name().into(),
            memory_estimate_bytes: engine.plan().memory_bytes,
            memory_bytes: (engine.grid().edge_bytes() + engine.grid().vertex_bytes()) as u64,
            placement: Some(engine.plan().placement.into()),
        };
        Start { input, machine, done: 0, phases }
    }

    /// Takes the model of the first l1 out of an engine, with its certificate. All processes call it.
    pub fn conclude(&self, engine: &mut Engine<BlockPg>, record: Record) -> anyhow::Result<Trained> {
        engine.collect()?;
        let (config, weights) = (&self.path[0], weights(engine));
        let certificate = Certificate::new(&self.fit(&weights), config)?;
        let converged = self.tolerance == 0.0 || is_converged(&certificate, config, self.tolerance);
        let checksum = self.checksum()?;
        let (features, path) = (self.data.features.clone(), vec![(config.l1, certificate)]);
        Ok(Trained { record: with_certificate(record, &path), weights, features, path, checksum, converged })
    }
}

/// Adds what is known of the last model to a record.
fn with_certificate(mut record: Record, path: &[(f64, Certificate)]) -> Record {
    if let Some((_, certificate)) = path.last() {
        let Certificate { bound, gap, violation, .. } = *certificate;
        let found = [("bound", bound), ("gap", gap), ("kkt_violation", violation)];
        record.result.metrics.extend(found.map(|(name, value)| (name.into(), value)));
    }
    record
}

fn weights(engine: &Engine<BlockPg>) -> Vec<f64> {
    let features = engine.on(Right);
    (0..features.len()).map(|feature| features.sync(feature).value).collect()
}

/// A weight at zero may exceed l1 by this part of it.
const EXCESS: f64 = 1e-4;

fn is_converged(certificate: &Certificate, config: &Config, tolerance: f64) -> bool {
    certificate.gap <= tolerance && certificate.violation_at_zero <= EXCESS * config.l1
}

/// Measures the objective and the quality; once the run seems to have converged, also makes the certificate.
fn measure(job: &Job, config: &Config, engine: &Engine<BlockPg>) -> (Measured, Option<Certificate>) {
    let weights = weights(engine);
    let samples = engine.on(Left);
    let of = |sample: usize| {
        let kept = samples.master(sample);
        f64::from(kept.weight) * log_loss(kept.margin)
    };
    let loss: f64 = (0..samples.len()).map(of).sum();
    let penalized = &weights[..job.data.features.len()];
    let objective = loss + config.penalty(penalized.iter().copied());
    let State { last, was_full, .. } = *engine.global();
    let nonzeros = penalized.iter().filter(|w| **w != 0.0).count();
    let mut metrics = Metrics::from([
        ("loss".into(), loss),
        ("nonzeros".into(), nonzeros as f64),
        ("kkt_violation".into(), last.violation),
    ]);
    if let Some(test) = &job.data.test {
        let intercept = weights.get(penalized.len()).copied().unwrap_or(0.0);
        let Quality { auc, log_loss, accuracy } = Quality::new(&test.scores(penalized, intercept), &test.labels);
        metrics.extend([("test_log_loss".into(), log_loss), ("test_accuracy".into(), accuracy)]);
        // A test of one class alone has none, and a record takes numbers alone.
        metrics.extend(auc.is_finite().then_some(("test_auc".into(), auc)));
    }
    drop(samples);
    let sizes: f64 = penalized.iter().map(|w| w.abs()).sum();
    let expected = last.slackness.abs() + last.violation * sizes;
    let near = job.tolerance > 0.0 && was_full && expected <= SEEMS * job.tolerance * objective;
    let certificate = if near { Certificate::new(&job.fit(&weights), config).ok() } else { None };
    #[cfg(debug_assertions)]
    check_margins(job, engine, &weights);
    (Measured { objective, metrics, converged: false, advice: "scale the values, with --normalize say" }, certificate)
}

/// A certificate is made when the gap seems to be this many times the tolerance: what it seems is on the safe side.
const SEEMS: f64 = 4.0;

/// Compares the margins kept with those of the weights.
#[cfg(debug_assertions)]
fn check_margins(job: &Job, engine: &Engine<BlockPg>, weights: &[f64]) {
    let samples = engine.on(Left);
    for (sample, margin) in margins(&job.data.signed, weights).unwrap_or_default().into_iter().enumerate() {
        let kept = samples.master(sample).margin;
        assert!(
            (kept - margin).abs() <= 1e-6 * (1.0 + margin.abs()),
            "margin of {sample}: kept {kept}, exactly {margin}"
        );
    }
}
