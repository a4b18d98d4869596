//! Training with any sampler.

use std::cell::Cell;
use std::path::Path;
use std::time::Instant;

use megagrid_algorithms::lda::{
    Config, FoldIn, Model, Occurrences, Sampler, Tokens, Topics, Vertices, log_likelihood, merge_topics,
};
use megagrid_datasets::{Names, Prepared};
use megagrid_engine::{Engine, IterationReport, Settings};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Left, Program, Right};

use super::corpus::NewDocuments;
use super::form::{self, Capacities, Form, ProgramOf};
use super::{saved, topics};
use crate::common::Common;
use crate::failure::usage;
use crate::record::{InputSizes, Machine, Metrics, Phases, Record};
use crate::session::{Measured, Session, Start};

/// What is to be trained.
pub struct Job {
    /// Documents and words.
    pub prepared: Prepared<u32>,
    /// Documents to test on.
    pub test: Option<NewDocuments>,
    /// Tokens of documents and words.
    pub tokens: Tokens,
    /// Parameters, with topics to be given up.
    pub config: Config,
    /// Topics to be left.
    pub topics: usize,
    /// The sampler.
    pub sampler: Sampler,
    /// Checksum of the corpus.
    pub checksum: u64,
    /// Iterations at most.
    pub iterations: u64,
    /// Relative change of the objective that ends the run.
    pub tolerance: f64,
    /// Iterations from one evaluation to the next.
    pub evaluate_every: u64,
    /// Top words of a topic whose coherence is measured.
    pub top_words: usize,
    /// How it is to run.
    pub settings: Settings,
}

/// A trained model and how it came about.
pub struct Trained {
    /// The run.
    pub record: Record,
    /// The model.
    pub model: Model,
    /// Names of documents and words.
    pub names: Names,
    /// For the coherence of topics.
    occurrences: Option<Occurrences>,
    checksum: u64,
    top_words: usize,
}

impl Trained {
    /// Writes a model directory.
    pub fn write(&self, directory: &Path) -> anyhow::Result<()> {
        saved::write(directory, self, self.checksum)
    }

    /// Lists the topics and their coherence, which it adds to the record, below a curve of the likelihood.
    pub fn summary(&mut self) -> anyhow::Result<String> {
        let top = self.model.top_words(self.top_words);
        let coherences = self.occurrences.as_ref().map(|occurrences| topics::coherences(occurrences, &top));
        if let Some(coherences) = &coherences {
            let mean = coherences.iter().sum::<f64>() / coherences.len() as f64;
            self.record.result.metrics.insert("coherence_npmi".into(), mean);
        }
        let words = self.names.get(Side::Right)?;
        let curve = topics::curve(&self.record);
        Ok(format!("{curve}{}", topics::listing(&self.model, &top, coherences.as_deref(), &words, topics::SHOWN)))
    }
}

/// Trains.
pub fn train<F: Form>(
    job: Job,
    common: &Common,
    resolved: serde_json::Value,
    mut phases: Phases,
) -> anyhow::Result<Trained> {
    let begin = Instant::now();
    common.agree("lda", &resolved, job.checksum)?;
    let mut engine = job.build::<F>(&job.config, &job.settings)?;
    if job.config.num_topics > job.topics && engine.plan().processes.count > 1 {
        return Err(usage("extra-topics is for one process"));
    }
    let done = common.checkpoint.begin(&mut engine, &resolved)?;
    phases.plan = begin.elapsed().as_secs_f64();
    let start = Start { done, ..job.start(&engine, phases) };
    let Job { prepared, test, tokens, topics, checksum, iterations, tolerance, evaluate_every, top_words, .. } = job;
    let Prepared { edges, names, .. } = prepared;
    // From here on the grid alone holds the edges.
    let occurrences = (top_words > 0 && common.is_first()).then(|| topics::occurrences(&edges)).transpose()?;
    drop(edges);
    let mut session = Session::begin(common, "lda", resolved, start, iterations);
    let mut before = f64::INFINITY;
    let ended = Cell::new(false);
    let mut after = |engine: &mut Engine<ProgramOf<F>>, report: &IterationReport| {
        let report = &in_tokens::<F>(report, &tokens);
        let is_due = report.iteration == 1 || report.iteration.is_multiple_of(evaluate_every);
        let measure = |engine: &mut Engine<ProgramOf<F>>| {
            F::count(engine);
            engine.collect()?;
            if !common.is_first() {
                return Ok(None);
            }
            let measured = measure::<F>(engine, tokens.total, test.as_ref(), tolerance, before);
            before = measured.objective;
            Ok(Some(measured))
        };
        let flow = match is_due || report.iteration == iterations {
            true => session.iteration(report, engine, measure),
            false => session.unmeasured(report, engine),
        };
        ended.set(flow.is_break());
        Ok(flow.is_break())
    };
    if engine.global().num_kept() > topics {
        engine.run_until(iterations / 2, &mut after)?;
        if !ended.get() {
            let topics = merged::<F>(&engine, topics);
            engine.set_global(topics);
        }
    }
    if !ended.get() {
        engine.run_until(iterations, after)?;
    }
    let record = session.end()?;
    F::count(&mut engine);
    engine.collect()?;
    Ok(Trained { record, model: model::<F>(&engine), names, occurrences, checksum, top_words })
}

/// Counts tokens in the place of edges, each of which has all its tokens drawn.
fn in_tokens<F: Form>(report: &IterationReport, tokens: &Tokens) -> IterationReport {
    let updates = u128::from(report.updates) * u128::from(tokens.total) / u128::from(tokens.edges.max(1) * F::VISITS);
    IterationReport { updates: updates as u64, ..report.clone() }
}

impl Job {
    /// Makes an engine at the beginning of a run.
    pub fn build<F: Form>(&self, config: &Config, settings: &Settings) -> anyhow::Result<Engine<ProgramOf<F>>> {
        let (edges, tokens) = (&self.prepared.edges, &self.tokens);
        let capacities = Capacities::of::<F>(config, tokens);
        let (source, settings) = (capacities.source::<F>(edges), form::settings(config, settings));
        let mut engine = Engine::new(source, F::sequence(config, tokens), &settings)?;
        engine.set_global(config.topics(edges.num_vertices(Side::Right)));
        Ok(engine)
    }

    /// Returns the number of words.
    pub fn num_words(&self) -> usize {
        self.prepared.edges.num_vertices(Side::Right)
    }

    /// Measures what an engine has learned, in the first process. All call it.
    pub fn measure<F: Form>(&self, engine: &mut Engine<ProgramOf<F>>) -> anyhow::Result<Option<Measured>> {
        F::count(engine);
        engine.collect()?;
        let measure = || measure::<F>(engine, self.tokens.total, self.test.as_ref(), 0.0, f64::INFINITY);
        Ok((engine.plan().processes.this == 0).then(measure))
    }

    /// Counts tokens in the place of edges.
    pub fn in_tokens<F: Form>(&self, report: &IterationReport) -> IterationReport {
        in_tokens::<F>(report, &self.tokens)
    }

    /// Says what a run begins with.
    pub fn start<P: Program>(&self, engine: &Engine<P>, phases: Phases) -> Start {
        let edges = &self.prepared.edges;
        let input = InputSizes {
            left: edges.num_vertices(Side::Left),
            right: edges.num_vertices(Side::Right),
            edges: edges.num_edges(),
            test_edges: self.test.as_ref().map_or(0, |test| test.num_edges),
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

    /// Takes the model out of an engine; coherence is not measured. All processes call it.
    pub fn conclude<F: Form>(&self, engine: &mut Engine<ProgramOf<F>>, record: Record) -> anyhow::Result<Trained> {
        F::count(engine);
        engine.collect()?;
        let (names, checksum, top_words) = (self.prepared.names.clone(), self.checksum, self.top_words);
        Ok(Trained { record, model: model::<F>(engine), names, occurrences: None, checksum, top_words })
    }
}

/// Gives up all topics but so many.
fn merged<F: Form>(engine: &Engine<ProgramOf<F>>, topics: usize) -> Topics {
    let (left, right) = (engine.on(Left), engine.on(Right));
    let documents = Vertices { len: left.len(), counts: |id| left.sync(id) };
    let words = Vertices { len: right.len(), counts: |id| right.sync(id) };
    merge_topics(&engine.global(), &documents, &words, topics)
}

fn model<F: Form>(engine: &Engine<ProgramOf<F>>) -> Model {
    let (left, right) = (engine.on(Left), engine.on(Right));
    let documents = Vertices { len: left.len(), counts: |id| left.sync(id) };
    let words = Vertices { len: right.len(), counts: |id| right.sync(id) };
    Model::new(&engine.global(), &documents, &words)
}

fn likelihood<F: Form>(engine: &Engine<ProgramOf<F>>, topics: &Topics) -> f64 {
    let (left, right) = (engine.on(Left), engine.on(Right));
    let documents = Vertices { len: left.len(), counts: |id| left.sync(id) };
    let words = Vertices { len: right.len(), counts: |id| right.sync(id) };
    log_likelihood(topics, &documents, &words, rayon::current_num_threads())
}

fn measure<F: Form>(
    engine: &Engine<ProgramOf<F>>,
    tokens: u64,
    test: Option<&NewDocuments>,
    tolerance: f64,
    before: f64,
) -> Measured {
    let value = likelihood::<F>(engine, &engine.global());
    let mut metrics = Metrics::from([("log_likelihood".into(), value), ("per_token".into(), value / tokens as f64)]);
    if let Some(test) = test {
        let perplexity = FoldIn::default().perplexity(&model::<F>(engine), &test.words, rayon::current_num_threads());
        metrics.insert("test_perplexity".into(), perplexity);
    }
    let change = (before - value).abs() / before.abs();
    let converged = tolerance > 0.0 && change <= tolerance;
    Measured { objective: value, metrics, converged, advice: "try a larger --alpha or --beta" }
}
