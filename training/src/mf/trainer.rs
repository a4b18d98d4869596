//! Training of both forms.

use std::sync::Arc;

use megagrid_algorithms::mf::batch::{self, MfBatch};
use megagrid_algorithms::mf::in_place::{self, Mf};
use megagrid_algorithms::mf::{Config, Model, Objective, Rows, SquaredErrors, Sums};
use megagrid_engine::{EdgeInput, Engine, InitView, Input, Settings};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::simd::Level;
use megagrid_stages::{Program, Row, Sequence, Stages, Vertex};
use rayon::prelude::*;

use super::model::Factors;
use super::{FactorOptions, Factorization, Ratings};
use crate::Error;
use crate::algorithm::{Measured, Trainer};
use crate::record::Metrics;

/// Ratings that a step of an evaluation takes.
const CHUNK: usize = 4096;

/// A form of matrix factorization: in place, or by gradients of a batch.
pub trait Form: Program<Left = Self::User, Right = Self::Item, Edge = f32, Worker = Sums, Global = ()> {
    /// A user.
    type User: Vertex<Sync = Row<f32>>;
    /// An item.
    type Item: Vertex<Sync = Row<f32>>;

    /// Builds the stages of an iteration in mini-batches.
    fn sequence(config: Config, batch: u64) -> Result<Sequence<Self, impl Stages<Self>>, megagrid_stages::Error>
    where
        Self: Sized;
}

impl Form for Mf {
    type User = in_place::User;
    type Item = in_place::Item;

    fn sequence(config: Config, batch: u64) -> Result<Sequence<Self, impl Stages<Self>>, megagrid_stages::Error> {
        in_place::sequence(config, batch)
    }
}

impl Form for MfBatch {
    type User = batch::User;
    type Item = batch::Item;

    fn sequence(config: Config, batch: u64) -> Result<Sequence<Self, impl Stages<Self>>, megagrid_stages::Error> {
        batch::sequence(config, batch)
    }
}

/// How a rating is written into the data of its edge.
type Fill = Box<dyn Fn(&f32, &mut [f32]) + Send + Sync>;

/// Trains factors.
pub struct Factorizer<F> {
    config: Config,
    batch: u64,
    /// What is subtracted from ratings.
    mean: f32,
    fill: Fill,
    level: Level,
    seed: u64,
    form: std::marker::PhantomData<fn() -> F>,
}

impl<F: Form> Trainer for Factorizer<F> {
    type Algorithm = Factorization;
    type Program = F;

    fn new(ratings: &Ratings, options: &FactorOptions, settings: &Settings) -> Result<Self, Error> {
        let mean = if options.mean { ratings.digest.mean as f32 } else { 0.0 };
        Ok(Self {
            config: options.config(),
            batch: options.batch(ratings.edges.num_edges() as u64, settings),
            mean,
            fill: Box::new(move |rating, into| into[0] = rating - mean),
            level: settings.level,
            seed: settings.seed,
            form: std::marker::PhantomData,
        })
    }

    fn resolved(&self, ratings: &Ratings, options: &FactorOptions) -> FactorOptions {
        let part = self.batch as f64 / ratings.edges.num_edges().max(1) as f64;
        FactorOptions { batch: Some(self.batch), work_per_clock: Some(part), ..options.clone() }
    }

    fn settings(&self, settings: &Settings) -> Settings {
        Settings { dims: [self.config.row_dims(); 2], ..settings.clone() }
    }

    fn input<'d>(&'d self, ratings: &'d Ratings) -> Input<'d, f32, F> {
        Input { source: &ratings.edges, edge: EdgeInput { len: &|_| 1, fill: &*self.fill }, capacities: [None, None] }
    }

    fn sequence(&self) -> Result<Sequence<F, impl Stages<F>>, megagrid_stages::Error> {
        F::sequence(self.config, self.batch)
    }

    fn engine(&self, ratings: &Ratings, settings: &Settings) -> Result<Engine<F>, Error> {
        let engine = Engine::<F>::bipartite(&self.input(ratings), &self.sequence()?, (), settings)?;
        let [users, items] = [Side::Left, Side::Right].map(|side| ratings.edges.offsets(side));
        let is_unrated = |offsets: &[u64], id: usize| offsets[id] == offsets[id + 1];
        let Self { config, seed, .. } = self;
        engine.init_left(|user, first: InitView<'_, F::User>| {
            config.init_user(*seed, user, first.sync);
            if is_unrated(users, user) {
                config.clear_unrated(first.sync);
            }
        });
        engine.init_right(|item, first: InitView<'_, F::Item>| {
            config.init_item(*seed, item, first.sync);
            if is_unrated(items, item) {
                config.clear_unrated(first.sync);
            }
        });
        Ok(engine)
    }

    fn measure(&mut self, ratings: &Ratings, engine: &Engine<F>) -> Result<Option<Measured>, Error> {
        let Objective { value, rmse } =
            Objective::new(engine.measure(&SquaredErrors(self.config))?, self.config.lambda);
        let mut metrics = Metrics::from([("train_rmse".into(), rmse)]);
        if !ratings.test.is_empty() {
            engine.collect()?;
            metrics.insert("test_rmse".into(), self.test_rmse(ratings, engine));
        }
        Ok(Some(Measured { objective: value, metrics, converged: None, advice: "try a smaller --step" }))
    }

    fn model(&self, ratings: &Ratings, engine: &Engine<F>) -> Result<Factors, Error> {
        let (users, items) = (engine.left(), engine.right());
        let rows = (0..users.len()).map(|user| users.sync(user));
        let model = Model::new(&self.config, self.mean, rows, (0..items.len()).map(|item| items.sync(item)));
        Ok(Factors { model, names: Arc::clone(&ratings.names) })
    }
}

impl<F: Form> Factorizer<F> {
    /// Returns the error on unseen ratings. The sum's order does not depend on threads.
    fn test_rmse(&self, ratings: &Ratings, engine: &Engine<F>) -> f64 {
        let (users, items) = (engine.left(), engine.right());
        let (users, items) = (|id: usize| -> &[f32] { users.sync(id) }, |id: usize| -> &[f32] { items.sync(id) });
        let rows = Rows { config: self.config, mean: self.mean, users, items };
        let test = &ratings.test;
        let chunks = test.known.par_chunks(CHUNK).map(|chunk| rows.squared_errors(self.level, chunk));
        let known: Vec<f64> = chunks.collect();
        let others = rows.squared_errors_of_others(&test.others);
        ((known.iter().sum::<f64>() + others) / test.len() as f64).sqrt()
    }
}
