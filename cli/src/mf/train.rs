//! Training in either form.

use std::path::Path;
use std::time::Instant;

use megagrid_algorithms::mf::{Config, Model, Objective, SquaredErrors};
use megagrid_datasets::{Edges, Names, OtherRating, Prepared};
use megagrid_engine::{Engine, Settings, Source, Vertices};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::kernels::dot;
use megagrid_stages::{First, Left, Right, Vertex};
use rayon::prelude::*;

use super::form::Form;
use super::saved;
use crate::common::Common;
use crate::input::TestSet;
use crate::record::{InputSizes, Machine, Metrics, Phases, Record};
use crate::session::{Measured, Session, Start};

/// Ratings that a step of an evaluation takes.
const CHUNK: usize = 4096;

/// What is to be trained.
pub struct Job {
    /// The ratings.
    pub prepared: Prepared<f32>,
    /// Ratings to test on.
    pub test: TestSet,
    /// Parameters.
    pub config: Config,
    /// Ratings in a mini-batch.
    pub batch: u64,
    /// What is subtracted from ratings.
    pub mean: f32,
    /// Checksum of the ratings.
    pub checksum: u64,
    /// Iterations at most.
    pub iterations: u64,
    /// Relative change of the objective that ends the run.
    pub tolerance: f64,
    /// How it is to run.
    pub settings: Settings,
}

/// A trained model and how it came about.
pub struct Trained {
    /// The run.
    pub record: Record,
    /// The model.
    pub model: Model,
    /// Names of users and items.
    pub names: Names,
    checksum: u64,
}

impl Trained {
    /// Writes a model directory.
    pub fn write(&self, directory: &Path) -> anyhow::Result<()> {
        saved::write(directory, &self.model, &self.names, &self.record, self.checksum)
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
    common.agree("mf", &resolved, job.checksum)?;
    let mut engine = job.build::<F>(&job.config, job.batch, &job.settings)?;
    let done = common.checkpoint.begin(&mut engine, &resolved)?;
    phases.plan = begin.elapsed().as_secs_f64();
    let start = Start { done, ..job.start::<F>(&engine, phases) };
    // From here on the grid holds the ratings.
    let Job { prepared: Prepared { edges, names, .. }, test, config, mean, checksum, iterations, tolerance, .. } = job;
    drop(edges);
    let mut session = Session::begin(common, "mf", resolved, start, iterations);
    let mut before = f64::INFINITY;
    engine.run_until(iterations, |engine, report| {
        let flow = session.iteration(report, engine, |engine| {
            let measured = measure::<F>(engine, &config, &test, mean, tolerance, before)?;
            before = measured.objective;
            Ok(Some(measured))
        });
        Ok(flow.is_break())
    })?;
    let record = session.end()?;
    engine.collect()?;
    Ok(Trained { record, model: model::<F>(&engine, &config, mean), names, checksum })
}

fn model<F: Form>(engine: &Engine<F::Program>, config: &Config, mean: f32) -> Model {
    let (users, items) = (engine.on(Left), engine.on(Right));
    let rows = (0..users.len()).map(|user| users.sync(user));
    Model::new(config, mean, rows, (0..items.len()).map(|item| items.sync(item)))
}

impl Job {
    /// Returns the number of ratings.
    pub fn num_ratings(&self) -> usize {
        self.prepared.edges.num_edges()
    }

    /// Makes an engine with first values.
    pub fn build<F: Form>(
        &self,
        config: &Config,
        batch: u64,
        settings: &Settings,
    ) -> anyhow::Result<Engine<F::Program>> {
        build::<F>(&self.prepared.edges, config, batch, self.mean, settings)
    }

    /// Lets an engine of this job go on with other parameters.
    pub fn adapt<F: Form>(
        &self,
        engine: &mut Engine<F::Program>,
        config: &Config,
        batch: u64,
        settings: &Settings,
    ) -> anyhow::Result<()> {
        Ok(engine.reconfigure(&self.prepared.edges, F::sequence(*config, batch), settings)?)
    }

    /// Measures what an engine has learned.
    pub fn measure<F: Form>(&self, engine: &mut Engine<F::Program>) -> anyhow::Result<Measured> {
        measure::<F>(engine, &self.config, &self.test, self.mean, 0.0, f64::INFINITY)
    }

    /// Says what a run begins with.
    pub fn start<F: Form>(&self, engine: &Engine<F::Program>, phases: Phases) -> Start {
        let edges = &self.prepared.edges;
        let input = InputSizes {
            left: edges.num_vertices(Side::Left),
            right: edges.num_vertices(Side::Right),
            edges: edges.num_edges(),
            test_edges: self.test.len(),
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

    /// Takes the model out of an engine. All processes call it.
    pub fn conclude<F: Form>(
        &self,
        engine: &mut Engine<F::Program>,
        names: Names,
        record: Record,
    ) -> anyhow::Result<Trained> {
        engine.collect()?;
        Ok(Trained { record, model: model::<F>(engine, &self.config, self.mean), names, checksum: self.checksum })
    }
}

/// Prints the plan.
pub fn plan<F: Form>(job: &Job) -> anyhow::Result<()> {
    let sequence = F::sequence(job.config, job.batch);
    crate::plan::show(&megagrid_engine::plan(&job.prepared.edges, &sequence, &job.settings)?)
}

fn build<F: Form>(
    edges: &Edges<f32>,
    config: &Config,
    batch: u64,
    mean: f32,
    settings: &Settings,
) -> anyhow::Result<Engine<F::Program>> {
    let ratings = Source::map(edges, |rating| rating - mean);
    let mut engine = Engine::<F::Program>::new(ratings, F::sequence(*config, batch), settings)?;
    let [users, items] = [Side::Left, Side::Right].map(|side| edges.offsets(side));
    let unrated = |offsets: &[u64], id: usize| offsets[id] == offsets[id + 1];
    // A vertex without ratings stays at zero: what is predicted for it is the mean and the other end's bias.
    engine.init(Left, |user, first: First<'_, F::User>| {
        config.init_user(settings.seed, user, first.sync);
        if unrated(users, user) {
            first.sync[..config.dims].fill(0.0);
        }
    });
    engine.init(Right, |item, first: First<'_, F::Item>| {
        config.init_item(settings.seed, item, first.sync);
        if unrated(items, item) {
            first.sync[..config.dims].fill(0.0);
        }
    });
    Ok(engine)
}

fn measure<F: Form>(
    engine: &mut Engine<F::Program>,
    config: &Config,
    test: &TestSet,
    mean: f32,
    tolerance: f64,
    before: f64,
) -> anyhow::Result<Measured> {
    let Objective { value, rmse } = Objective::new(engine.total(SquaredErrors(*config))?, config.lambda);
    let mut metrics = Metrics::from([("train_rmse".into(), rmse)]);
    if test.len() > 0 {
        engine.collect()?;
        metrics.insert("test_rmse".into(), test_rmse(&engine.on(Left), &engine.on(Right), config, test, mean));
    }
    let change = (before - value).abs() / before.abs();
    let converged = tolerance > 0.0 && change <= tolerance;
    Ok(Measured { objective: value, metrics, converged, advice: "try a smaller --step" })
}

/// Returns the error on unseen ratings. The sum's order does not depend on threads.
fn test_rmse<U, I>(users: &Vertices<'_, U>, items: &Vertices<'_, I>, config: &Config, test: &TestSet, mean: f32) -> f64
where
    U: Vertex<Sync = [f32]>,
    I: Vertex<Sync = [f32]>,
{
    let squared = |&(user, item, rating): &(u32, u32, f32)| {
        let (user, item): (&[f32], &[f32]) = (users.sync(user as usize), items.sync(item as usize));
        f64::from(rating - mean - dot(user, item)).powi(2)
    };
    let known: Vec<f64> = test.known.par_chunks(CHUNK).map(|chunk| chunk.iter().map(squared).sum()).collect();
    let bias = |row: Option<&[f32]>, at: usize| match row {
        Some(row) if config.biases => row[at],
        _ => 0.0,
    };
    let guessed = |other: &OtherRating| {
        let user = bias(other.left.map(|user| users.sync(user as usize)), config.dims);
        let item = bias(other.right.map(|item| items.sync(item as usize)), config.dims + 1);
        f64::from(other.rating - mean - user - item).powi(2)
    };
    let others: f64 = test.others.iter().map(guessed).sum();
    ((known.iter().sum::<f64>() + others) / test.len() as f64).sqrt()
}
