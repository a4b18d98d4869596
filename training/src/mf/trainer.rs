//! Training of all forms.

use std::sync::Arc;

use megagrid_algorithms::fold_in::{Folded, Loss};
use megagrid_algorithms::mf::alternating::{self, MfAlternating};
use megagrid_algorithms::mf::batch::{self, MfBatch};
use megagrid_algorithms::mf::by_coordinate::batch::{self as batch_by_coordinate, MfBatchByCoordinate};
use megagrid_algorithms::mf::by_coordinate::in_place::{self as in_place_by_coordinate, MfByCoordinate};
use megagrid_algorithms::mf::in_place::{self, Mf};
use megagrid_algorithms::mf::{Config, Model, Objective, Optimizer, Rows, SquaredErrors, Sums, TestSet};
use megagrid_engine::{Engine, Settings, Source};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::simd::Level;
use megagrid_stages::{First, Left, Program, Right, Sequence, Stages, Vertex, row_width};
use rayon::prelude::*;

use super::data::Ratings;
use super::model::Factors;
use super::options::{FactorOptions, Gradient};
use super::rankings::rankings;
use super::start::Start;
use super::unseen::Unseen;
use crate::algorithm::{Algorithm, Knob, MakeForm};
use crate::form::form;
use crate::measured::Measured;
use crate::options::{Options, UpdatedOn, passes_per_clock};
use crate::record::Metrics;
use crate::trainer::Trainer;
use crate::{Error, RunOptions};

/// Ratings that a step of an evaluation takes.
const CHUNK: usize = 4096;

/// A worker of steps in place is worth its while where each side has this many rows: with fewer, workers write to rows of the same cache lines
/// (measured: two take 2.4 times the time of one with 3 items, as long with 40, and 0.7 times with 80).
const WORTH_A_WORKER: usize = 32;
/// Of fewer ratings it does not matter.
const MANY_RATINGS: usize = 1 << 16;

/// A form of matrix factorization: in place, by gradients of a batch, or by least squares.
pub trait Form:
    Sized + Program<Left: Vertex<Sync = [f32]>, Right: Vertex<Sync = [f32]>, Edge = f32, Worker: AsMut<Sums>, Global = Sums>
{
    /// Builds the stages of an iteration in mini-batches.
    fn sequence(config: Config, batch: u64) -> Sequence<Self, impl Stages<Self>>;
    /// Returns a user's row, and its sum of mean squared gradients where there is one.
    fn user(first: First<'_, Self::Left>) -> (&mut [f32], Option<&mut f32>) {
        (first.sync, None)
    }
    /// Returns an item's row, and its sum of mean squared gradients where there is one.
    fn item(first: First<'_, Self::Right>) -> (&mut [f32], Option<&mut f32>) {
        (first.sync, None)
    }
    /// Returns the sums of mean squared gradients of users and items, as far as this process knows them.
    fn squares(_: &Engine<Self>) -> Option<[Vec<f32>; 2]> {
        None
    }
}

impl Form for Mf {
    fn sequence(config: Config, batch: u64) -> Sequence<Self, impl Stages<Self>> {
        in_place::sequence(config, batch)
    }

    fn user(first: First<'_, in_place::User>) -> (&mut [f32], Option<&mut f32>) {
        (first.sync, Some(first.mirror))
    }

    fn item(first: First<'_, in_place::Item>) -> (&mut [f32], Option<&mut f32>) {
        (first.sync, Some(first.mirror))
    }

    fn squares(engine: &Engine<Self>) -> Option<[Vec<f32>; 2]> {
        let (users, items) = (engine.on(Left), engine.on(Right));
        let users = (0..users.len()).map(|user| *users.mirror(user)).collect();
        Some([users, (0..items.len()).map(|item| *items.mirror(item)).collect()])
    }
}

impl Form for MfBatch {
    fn sequence(config: Config, batch: u64) -> Sequence<Self, impl Stages<Self>> {
        batch::sequence(config, batch)
    }

    fn user(first: First<'_, batch::User>) -> (&mut [f32], Option<&mut f32>) {
        (first.sync, Some(first.master))
    }

    fn item(first: First<'_, batch::Item>) -> (&mut [f32], Option<&mut f32>) {
        (first.sync, Some(first.master))
    }

    fn squares(engine: &Engine<Self>) -> Option<[Vec<f32>; 2]> {
        let (users, items) = (engine.on(Left), engine.on(Right));
        let users = (0..users.len()).map(|user| *users.master(user)).collect();
        Some([users, (0..items.len()).map(|item| *items.master(item)).collect()])
    }
}

impl Form for MfByCoordinate {
    fn sequence(config: Config, batch: u64) -> Sequence<Self, impl Stages<Self>> {
        in_place_by_coordinate::sequence(config, batch)
    }
}

impl Form for MfAlternating {
    fn sequence(config: Config, _: u64) -> Sequence<Self, impl Stages<Self>> {
        alternating::sequence(config)
    }
}

impl Form for MfBatchByCoordinate {
    fn sequence(config: Config, batch: u64) -> Sequence<Self, impl Stages<Self>> {
        batch_by_coordinate::sequence(config, batch)
    }
}

/// Matrix factorization.
#[derive(Clone, Copy, Debug)]
pub struct Factorization;

impl Algorithm for Factorization {
    const NAME: &'static str = "mf";
    const ADVICE: &'static str = "try a smaller --step";
    const TESTED_BY: Option<&'static str> = Some("test_rmse");
    const TUNED_BY_TEST: bool = true;
    const KNOBS: &'static [Knob] = &[
        Knob { name: "step", is_layout: false, is_timed: false },
        Knob { name: "decay", is_layout: false, is_timed: false },
        Knob { name: "momentum", is_layout: false, is_timed: false },
        Knob { name: "rho", is_layout: false, is_timed: false },
        Knob { name: "slack", is_layout: false, is_timed: true },
        Knob { name: "batch", is_layout: true, is_timed: true },
        Knob { name: "workers", is_layout: true, is_timed: true },
    ];
    type Data = Ratings;
    type Options = FactorOptions;
    type Model = Factors;

    #[inline(never)]
    fn form(_: &Ratings, options: &FactorOptions) -> MakeForm<Self> {
        match (options.gradient, options.config().optimizer) {
            (Gradient::InPlace, Optimizer::Sgd | Optimizer::AdaGrad) => form::<Factorizer<Mf>>,
            (Gradient::InPlace, Optimizer::ByCoordinate(_)) => form::<Factorizer<MfByCoordinate>>,
            (Gradient::Batch, Optimizer::Sgd | Optimizer::AdaGrad) => form::<Factorizer<MfBatch>>,
            (Gradient::Batch, Optimizer::ByCoordinate(_)) => form::<Factorizer<MfBatchByCoordinate>>,
            (_, Optimizer::Alternating) => form::<Factorizer<MfAlternating>>,
        }
    }

    fn start_from(ratings: &mut Ratings, options: &FactorOptions, model: Factors) -> Result<(), Error> {
        let mean = model.model.mean;
        if !options.mean && mean != 0.0 {
            return Err(Error::Missing(format!("it adds to a mean rating of {mean}; leave out --no-mean")));
        }
        let unit = model.model.unit;
        if options.unit.is_some_and(|given| given != unit) {
            return Err(Error::Missing(format!("its ratings were divided by {unit}; leave out --unit")));
        }
        let mut start = Start::new(model, &ratings.names, options.dims, options.biases)?;
        start.forget(&ratings.taken_back)?;
        start.fold_in(&ratings.edges, options.config().lambda)?;
        ratings.start = Some(start);
        Ok(())
    }

    fn forget_others(ratings: &mut Ratings) {
        ratings.start.iter_mut().for_each(Start::forget_others);
    }

    /// What a row has learnt of its ratings so far is in the lengths of its steps.
    fn updated_on(model: &Factors) -> Result<UpdatedOn, Error> {
        Ok(if model.squares.is_some() { UpdatedOn::New } else { UpdatedOn::All })
    }

    fn continued(options: FactorOptions, _: &Factors, on: UpdatedOn) -> FactorOptions {
        options.continued(on)
    }

    /// Steps that remember coordinates take the whole sum of a batch.
    fn check_settings(options: &FactorOptions, settings: &Settings) -> Result<(), Error> {
        let by_coordinate = matches!(options.config().optimizer, Optimizer::ByCoordinate(_));
        if by_coordinate && options.gradient == Gradient::Batch && settings.slack != Some(0) {
            let why = "by gradients of a batch momentum, nesterov, rmsprop, adam and adadelta step by whole sums, which workers wait for: have \
                       no slack, or give --optimizer sgd or adagrad, or --gradient in-place";
            return Err(Error::option(why));
        }
        Ok(())
    }

    fn check_run(ratings: &Ratings, _: &FactorOptions, _: &RunOptions, _: bool) -> Result<(), Error> {
        ratings.scale.tell(&ratings.digest, ratings.edges.num_edges());
        Ok(())
    }

    fn tuned(_: &Ratings, _: &FactorOptions, _: &Settings) -> Vec<String> {
        vec!["step=log:1e-5..1".to_owned()]
    }
}

/// Returns how many workers may change rows in place before they hinder each other.
fn most_workers(ratings: &Ratings, options: &FactorOptions, settings: &Settings) -> usize {
    let in_place = options.gradient == Gradient::InPlace && options.config().optimizer != Optimizer::Alternating;
    // What other processes change lies in another memory.
    if !in_place || ratings.edges.num_edges() < MANY_RATINGS || settings.peers.is_some() {
        return usize::MAX;
    }
    let rows = |side| ratings.edges.num_vertices(side);
    (rows(Side::Left).min(rows(Side::Right)) / WORTH_A_WORKER).max(1)
}

/// Trains factors.
pub struct Factorizer<F> {
    config: Config,
    /// All ratings, and those of a mini-batch.
    ratings: u64,
    batch: u64,
    /// Numbers that steps remember of each user and item.
    remembered: [Vec<u32>; 2],
    /// More workers would take longer.
    most_workers: usize,
    /// What is subtracted from ratings.
    mean: f32,
    level: Level,
    seed: u64,
    passes_per_clock: u64,
    form: std::marker::PhantomData<fn() -> F>,
}

impl<F: Form> Trainer for Factorizer<F> {
    type Algorithm = Factorization;
    type Program = F;
    type Edge = f32;

    fn new(ratings: &Ratings, options: &FactorOptions, settings: &Settings) -> Result<Self, Error> {
        Factorization::check_settings(options, settings)?;
        let config = options.config_for(ratings);
        let remembered = config.optimizer.remembered(config.row_dims());
        let of_each = |side| {
            let vertices = if remembered > 0 { ratings.edges.num_vertices(side) } else { 0 };
            vec![remembered as u32; vertices]
        };
        let own = || if options.mean { ratings.scale.mean as f32 } else { 0.0 };
        let mean = ratings.start.as_ref().map_or_else(own, Start::mean);
        let num_ratings = ratings.edges.num_edges() as u64;
        Ok(Self {
            most_workers: most_workers(ratings, options, settings),
            config,
            remembered: [Side::Left, Side::Right].map(of_each),
            ratings: num_ratings,
            batch: options.batch(num_ratings, settings),
            mean,
            level: settings.level,
            seed: settings.seed,
            passes_per_clock: options.work_per_clock.map_or(1, passes_per_clock),
            form: std::marker::PhantomData,
        })
    }

    fn resolved(&self, ratings: &Ratings, options: &FactorOptions) -> FactorOptions {
        let options = FactorOptions { unit: Some(self.config.unit), ..options.with_defaults() };
        if options.refuses("batch").is_some() {
            return options;
        }
        let part = self.batch as f64 / ratings.edges.num_edges().max(1) as f64;
        let work_per_clock = Some(part * self.passes_per_clock as f64);
        FactorOptions { batch: Some(self.batch), work_per_clock, ..options }
    }

    fn dims(&self) -> usize {
        self.config.row_dims()
    }

    fn passes_per_clock(&self) -> u64 {
        self.passes_per_clock
    }

    fn workers(&self, asked: usize) -> usize {
        asked.min(self.most_workers)
    }

    fn source<'d>(&'d self, ratings: &'d Ratings) -> Source<'d, f32, F> {
        let [users, items] = [&self.remembered[0], &self.remembered[1]].map(|of| (!of.is_empty()).then_some(&of[..]));
        Source::map(&ratings.edges, |&rating| self.config.in_unit(rating, self.mean)).capacities(users, items)
    }

    fn sequence(&self) -> Sequence<F, impl Stages<F>> {
        F::sequence(self.config, self.batch)
    }

    fn init(&self, ratings: &Ratings, engine: &mut Engine<F>) -> Result<(), Error> {
        let [users, items] = [Side::Left, Side::Right].map(|side| ratings.edges.offsets(side));
        let is_unrated = |offsets: &[u64], id: usize| offsets[id] == offsets[id + 1];
        let Self { config, seed, .. } = self;
        let known = |side, vertex| ratings.start.as_ref().and_then(|start| start.row(side, vertex));
        engine.init(Left, |user, first: First<'_, F::Left>| {
            let (row, squares) = F::user(first);
            config.init_user(*seed, user, row);
            if is_unrated(users, user) {
                config.clear_unrated(row);
            }
            if let Some(known) = known(Side::Left, user) {
                config.set_user(row, known.factor, known.bias);
                squares.into_iter().for_each(|squares| *squares = known.squares);
            }
        });
        engine.init(Right, |item, first: First<'_, F::Right>| {
            let (row, squares) = F::item(first);
            config.init_item(*seed, item, row);
            if is_unrated(items, item) {
                config.clear_unrated(row);
            }
            if let Some(known) = known(Side::Right, item) {
                config.set_item(row, known.factor, known.bias);
                squares.into_iter().for_each(|squares| *squares = known.squares);
            }
        });
        Ok(())
    }

    fn running(&self, _: &Ratings, engine: &Engine<F>) -> Metrics {
        // Sums are those of a clock, which ends after `passes_per_clock` iterations, and at a look.
        let of_clock = engine.iterations().saturating_sub(1) % self.passes_per_clock + 1;
        let iterations = of_clock.min(engine.reports().len() as u64).max(1);
        let mean = engine.global().squared_errors / (iterations * self.ratings).max(1) as f64;
        Metrics::from([("running_rmse".into(), mean.sqrt() * f64::from(self.config.unit))])
    }

    fn measure(&mut self, _: &Ratings, engine: &mut Engine<F>) -> Result<Option<Measured>, Error> {
        let mut total = engine.total(SquaredErrors(self.config))?;
        let Objective { value, rmse } = Objective::new(*total.as_mut(), self.config.lambda);
        let metrics = Metrics::from([("train_rmse".into(), rmse * f64::from(self.config.unit))]);
        Ok(Some(Measured { objective: value, metrics, converged: None }))
    }

    fn test(&mut self, ratings: &Ratings, engine: &mut Engine<F>) -> Result<Metrics, Error> {
        if ratings.test.is_empty() {
            return Ok(Metrics::new());
        }
        engine.collect()?;
        let (users, items) = (engine.on(Left), engine.on(Right));
        let unseen = ratings.unseen.as_ref().map(|unseen| self.fold_in(unseen, engine));
        let user = |id: usize| match &unseen {
            Some(rows) => &rows[id][..],
            None => users.sync(id),
        };
        let item = |id: usize| items.sync(id);
        let mut metrics = Metrics::from([("test_rmse".into(), self.test_rmse(&ratings.test, user, item))]);
        metrics.extend(rankings(ratings, self.level, (self.config.row_dims(), items.len()), user, item));
        Ok(metrics)
    }

    fn model(&self, ratings: &Ratings, engine: &Engine<F>) -> Result<Factors, Error> {
        let (users, items) = (engine.on(Left), engine.on(Right));
        let (users, items) = ((users.len(), |user| users.sync(user)), (items.len(), |item| items.sync(item)));
        let model = Model::new(&self.config, self.mean, users, items);
        let range = ratings.digest.range.map(|ends| ends.map(|end| end as f32));
        let knows_all = self.config.optimizer == Optimizer::AdaGrad && engine.plan().processes.count == 1;
        let squares = knows_all.then(|| F::squares(engine)).flatten();
        let factors = Factors { model, names: Arc::clone(&ratings.names), range, squares };
        match &ratings.start {
            Some(start) => start.with(factors),
            None => Ok(factors),
        }
    }
}

impl<F: Form> Factorizer<F> {
    /// Returns the rows of users whom training has not seen.
    fn fold_in(&self, unseen: &Unseen, engine: &Engine<F>) -> Vec<Vec<f32>> {
        let (config, items) = (self.config, engine.on(Right));
        let item = |item| items.sync(item);
        let model = Model::new(&config, self.mean, (0, item), (items.len(), item));
        let row = |(factor, bias): Folded| {
            let mut row = vec![0.0; row_width(config.row_dims())];
            config.init_user(self.seed, 0, &mut row);
            config.set_user(&mut row, &factor, bias);
            row
        };
        unseen.fold_in(&model, Loss::Ratings { lambda: config.lambda }).into_iter().map(row).collect()
    }

    /// Returns the error on unseen ratings. The sum's order does not depend on threads.
    fn test_rmse<'r>(
        &self,
        test: &TestSet,
        users: impl Fn(usize) -> &'r [f32] + Sync,
        items: impl Fn(usize) -> &'r [f32] + Sync,
    ) -> f64 {
        let rows = Rows { config: self.config, mean: self.mean, users, items };
        let chunks = test.known().par_chunks(CHUNK).map(|chunk| rows.squared_errors(self.level, chunk));
        let known: Vec<f64> = chunks.collect();
        let others = rows.squared_errors_of_others(test.others());
        ((known.iter().sum::<f64>() + others) / test.len() as f64).sqrt()
    }
}
