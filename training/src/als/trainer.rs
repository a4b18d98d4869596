//! Training of implicit feedback.

use std::sync::Arc;

use megagrid_algorithms::als::{self, Als, Config, Gramians};
use megagrid_algorithms::fold_in::Loss;
use megagrid_algorithms::mf::{self, Model};
use megagrid_engine::{Engine, Settings, Source};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::simd::Level;
use megagrid_stages::{First, Left, Right, Sequence, Stages};

use super::data::Feedback;
use super::model::Recommender;
use super::options::AlsOptions;
use crate::algorithm::{Algorithm, Knob, MakeForm};
use crate::form::form;
use crate::measured::Measured;
use crate::mf::{Factors, Start, Unseen, rankings};
use crate::record::Metrics;
use crate::trainer::Trainer;
use crate::{Error, UpdatedOn};

/// Matrix factorization of implicit feedback.
#[derive(Clone, Copy, Debug)]
pub struct ImplicitFactorization;

impl Algorithm for ImplicitFactorization {
    const NAME: &'static str = "als";
    const ADVICE: &'static str = "try a larger --lambda";
    const TESTED_BY: Option<&'static str> = Some("test_ndcg");
    const TEST_GROWS: bool = true;
    const KNOBS: &'static [Knob] = &[
        Knob { name: "block", is_layout: false, is_timed: true },
        Knob { name: "workers", is_layout: true, is_timed: true },
    ];
    type Data = Feedback;
    type Options = AlsOptions;
    type Model = Recommender;

    fn start_from(feedback: &mut Feedback, options: &AlsOptions, Recommender(model): Recommender) -> Result<(), Error> {
        let mut start = Start::new(model, &feedback.ratings.names, options.dims, false)?;
        start.forget(&feedback.ratings.taken_back)?;
        feedback.ratings.start = Some(start);
        Ok(())
    }

    fn forget_others(feedback: &mut Feedback) {
        feedback.ratings.start.iter_mut().for_each(Start::forget_others);
    }

    fn updated_on(_: &Recommender) -> Result<UpdatedOn, Error> {
        Ok(UpdatedOn::All)
    }

    /// The weight of feedback by default is that of all of it.
    fn continued(options: AlsOptions, _: &Recommender, _: UpdatedOn) -> AlsOptions {
        AlsOptions { alpha: options.alpha.filter(|_| !options.alpha_by_mean), alpha_by_mean: false, ..options }
    }

    /// A worker that is ahead would take the Gramian of other factors than its neighbours'.
    fn check_settings(_: &AlsOptions, settings: &Settings) -> Result<(), Error> {
        match settings.slack {
            Some(0) => Ok(()),
            _ => Err(Error::option(
                "users and items take turns, and each waits for the Gramian of all others: leave out --consistency and --slack",
            )),
        }
    }

    #[inline(never)]
    fn form(_: &Feedback, _: &AlsOptions) -> MakeForm<Self> {
        form::<Alternating>
    }

    /// Blocks of at least all dimensions are one, and the same.
    fn tuned(_: &Feedback, options: &AlsOptions, _: &Settings) -> Vec<String> {
        let smaller = [16, 32, 64].into_iter().filter(|block| *block < options.dims);
        let all = (options.dims <= 64).then_some(options.dims);
        let blocks: Vec<String> = smaller.chain(all).map(|block| block.to_string()).collect();
        if blocks.len() > 1 { vec![format!("block={}", blocks.join(","))] } else { Vec::new() }
    }
}

/// Trains by alternating least squares.
struct Alternating {
    config: Config,
    /// The objective where no user has a factor yet.
    first_loss: f64,
    /// Users and items.
    vertices: [usize; 2],
    level: Level,
    seed: u64,
}

impl Alternating {
    /// Takes the rows of all items, and of the first users.
    fn factors(&self, engine: &Engine<Als>, num_users: usize) -> Model {
        let config = mf::Config { dims: self.config.dims, biases: false, ..Default::default() };
        let (users, items) = (engine.on(Left), engine.on(Right));
        Model::new(&config, 0.0, (num_users, |user| users.sync(user)), (items.len(), |item| items.sync(item)))
    }
}

impl Trainer for Alternating {
    type Algorithm = ImplicitFactorization;
    type Program = Als;
    type Edge = f32;

    fn new(feedback: &Feedback, options: &AlsOptions, settings: &Settings) -> Result<Self, Error> {
        ImplicitFactorization::check_settings(options, settings)?;
        let vertices = [Side::Left, Side::Right].map(|side| feedback.ratings.edges.num_vertices(side));
        let config = options.config_for(feedback);
        let first_loss = feedback.pairs as f64 * (1.0 / f64::from(config.alpha) + f64::from(feedback.mean));
        Ok(Self { config, first_loss, vertices, level: settings.level, seed: settings.seed })
    }

    fn resolved(&self, _: &Feedback, options: &AlsOptions) -> AlsOptions {
        AlsOptions { alpha: Some(self.config.alpha), alpha_by_mean: options.alpha.is_none(), ..options.clone() }
    }

    fn dims(&self) -> usize {
        self.config.dims
    }

    fn source<'d>(&'d self, feedback: &'d Feedback) -> Source<'d, f32, Als> {
        Source::map(feedback, |&feedback| feedback)
    }

    fn sequence(&self) -> Sequence<Als, impl Stages<Als>> {
        als::sequence(self.config, self.vertices)
    }

    fn init(&self, feedback: &Feedback, engine: &mut Engine<Als>) -> Result<(), Error> {
        let Self { config, seed, .. } = *self;
        let start = feedback.ratings.start.as_ref();
        let known = |side, vertex| start.and_then(|start| start.row(side, vertex)).map(|known| known.factor);
        let init = |item: usize, row: &mut [f32]| match known(Side::Right, item) {
            Some(factor) => row[..config.dims].copy_from_slice(factor),
            None => config.init_item(seed, item, row),
        };
        engine.set_global(Gramians::new(&config, self.vertices[1], init));
        engine.init(Right, |item, first: First<'_, als::Item>| init(item, first.sync));
        engine.init(Left, |user, first: First<'_, als::User>| {
            if let Some(factor) = known(Side::Left, user) {
                first.sync[..config.dims].copy_from_slice(factor);
            }
        });
        Ok(())
    }

    fn is_due(&self, _: &Feedback, _: &Engine<Als>) -> bool {
        true
    }

    fn first_loss(&self) -> Option<f64> {
        Some(self.first_loss)
    }

    fn measure(&mut self, _: &Feedback, engine: &mut Engine<Als>) -> Result<Option<Measured>, Error> {
        let objective = engine.global().objective(&self.config);
        Ok(Some(Measured { objective, metrics: Metrics::new(), converged: None }))
    }

    fn test(&mut self, feedback: &Feedback, engine: &mut Engine<Als>) -> Result<Metrics, Error> {
        if feedback.ratings.test.is_empty() {
            return Ok(Metrics::new());
        }
        engine.collect()?;
        let (users, items) = (engine.on(Left), engine.on(Right));
        let fold_in = |unseen: &Unseen| unseen.fold_in(&self.factors(engine, 0), Loss::Feedback(self.config));
        let unseen = feedback.ratings.unseen.as_ref().map(fold_in);
        let user = |id: usize| match &unseen {
            Some(rows) => &rows[id].0[..],
            None => users.sync(id),
        };
        Ok(rankings(&feedback.ratings, self.level, (self.config.dims, items.len()), user, |id| items.sync(id)))
    }

    fn model(&self, feedback: &Feedback, engine: &Engine<Als>) -> Result<Recommender, Error> {
        let model = self.factors(engine, engine.on(Left).len());
        let factors = Factors { model, names: Arc::clone(&feedback.ratings.names), range: None, squares: None };
        match &feedback.ratings.start {
            Some(start) => start.with(factors).map(Recommender),
            None => Ok(Recommender(factors)),
        }
    }
}
