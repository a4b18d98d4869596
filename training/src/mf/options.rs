//! Options of matrix factorization.

use clap::ArgAction;
use megagrid_algorithms::mf::{self, Config, Rule};
use megagrid_engine::Settings;
use serde::{Deserialize, Serialize};

use super::data::Ratings;
use super::start::Start;
use crate::options::{by_default, check_tolerance, check_work_per_clock};
use crate::{Error, Options, UpdatedOn};

/// How gradients are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Gradient {
    /// Rating by rating, both rows where they are.
    InPlace,
    /// Summed over a batch, then applied.
    Batch,
}

/// How gradients become steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// Plain steps.
    Sgd,
    /// A step keeps --momentum of the one before.
    Momentum,
    /// Momentum, with the gradient taken where it leads to.
    Nesterov,
    /// The gradient over the root of its mean square, which keeps --rho at each step.
    Rmsprop,
    /// Steps of a row shrink with its gradients so far.
    Adagrad,
    /// The mean gradient, which keeps --momentum, over the root of the mean square, which keeps --rho.
    Adam,
    /// The gradient times the root mean square of steps over that of gradients, which keep --rho.
    Adadelta,
    /// Alternating least squares: no steps, but the best row of each user, then of each item, that there is where the others stand.
    Als,
}

/// What an optimizer has where nothing is said; `None` is what it has not.
struct Defaults {
    lambda: f32,
    step: Option<f32>,
    decay: Option<f32>,
    momentum: Option<f32>,
    rho: Option<f32>,
}

impl Optimizer {
    /// Momenta and rhos of the papers; steps that do well on ratings, in place and by batches alike.
    fn defaults(self) -> Defaults {
        let Config { lambda, step, decay, .. } = Config::default();
        let of = |step, momentum, rho| Defaults { lambda, step: Some(step), decay: Some(0.0), momentum, rho };
        match self {
            Self::Sgd => Defaults { decay: Some(decay), ..of(0.03, None, None) },
            Self::Momentum | Self::Nesterov => Defaults { decay: Some(decay), ..of(0.003, Some(0.9), None) },
            Self::Rmsprop => of(0.003, None, Some(0.9)),
            Self::Adagrad => Defaults { decay: None, ..of(step, None, None) },
            Self::Adam => of(0.003, Some(0.9), Some(0.999)),
            Self::Adadelta => of(1.0, None, Some(0.95)),
            // Steps that end early regularize too.
            Self::Als => Defaults { lambda: 2.0 * lambda, step: None, decay: None, momentum: None, rho: None },
        }
    }
}

/// Options of matrix factorization.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct FactorOptions {
    /// Length of a user's and an item's vector.
    #[arg(long, default_value_t = Config::default().dims, value_name = "K")]
    pub dims: usize,
    /// Weight of the regularizer, for each rating [default: 0.05, with als 0.1].
    #[arg(long, allow_negative_numbers = true)]
    pub lambda: Option<f32>,
    /// Size of a step [default: 0.03 with sgd, 0.1 with adagrad, 1 with adadelta, else 0.003].
    #[arg(long, allow_negative_numbers = true)]
    pub step: Option<f32>,
    /// Standard deviation of the first values.
    #[arg(long, default_value_t = Config::default().init_std, allow_negative_numbers = true)]
    pub init_std: f32,
    /// How gradients become steps, or als, which has none. In place each rating is a step of its user and its item; with --gradient batch
    /// each batch is a step of all, and all but sgd and adagrad take no slack then.
    #[arg(long, value_enum, default_value_t = Optimizer::Adagrad)]
    pub optimizer: Optimizer,
    /// Decay of the size of steps, which is step / (1 + decay · (iteration − 1)); not with adagrad [default: 0.1 with sgd, momentum and
    /// nesterov, else 0].
    #[arg(long, allow_negative_numbers = true)]
    pub decay: Option<f32>,
    /// What the last step, or the mean gradient, keeps at a step, below 1: momentum, nesterov, adam [default: 0.9].
    #[arg(long, value_name = "PART", allow_negative_numbers = true)]
    pub momentum: Option<f32>,
    /// What mean squares keep at a step, below 1 [default: 0.9 with rmsprop, 0.999 with adam, 0.95 with adadelta].
    #[arg(long, value_name = "PART", allow_negative_numbers = true)]
    pub rho: Option<f32>,
    /// Whether users and items have biases.
    #[arg(long = "no-biases", action = ArgAction::SetFalse, help = "Factors only: a fifth to a half faster, less exact")]
    pub biases: bool,
    /// Whether the mean rating is subtracted first.
    #[arg(long = "no-mean", action = ArgAction::SetFalse, help = "Leave the mean rating in")]
    pub mean: bool,
    /// What ratings are divided by to be trained on, so that --lambda, --step and --init-std are good for stars and percents alike. Models
    /// and errors are of ratings as they are [default: the power of two at or below their standard deviation, 1 for stars].
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub unit: Option<f32>,
    /// How gradients are applied.
    #[arg(long, value_enum, default_value_t = Gradient::InPlace)]
    pub gradient: Gradient,
    /// Passes over the ratings.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// End when the objective changes by no more than this part of itself [default: 0, never].
    #[arg(long, default_value_t = 0.0, hide_default_value = true, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Ratings in a mini-batch, which is a clock [default: in place all, or a 16th in several processes with slack or async; a 64th for
    /// batch].
    #[arg(long, value_name = "RATINGS", value_parser = clap::value_parser!(u64).range(1..))]
    pub batch: Option<u64>,
    /// Iterations from one clock to the next: above 0, at most 1, which makes mini-batches; or a whole number, where steps are in place
    /// and all ratings are a batch [default: as --batch].
    #[arg(
        long,
        value_name = "X",
        allow_negative_numbers = true,
        conflicts_with = "batch",
        help_heading = "Consistency"
    )]
    pub work_per_clock: Option<f64>,
}

impl Default for FactorOptions {
    fn default() -> Self {
        by_default()
    }
}

/// Clocks of an iteration in which every process changes its own replica of items: sums of longer clocks' changes diverge.
const MIRRORED_CLOCKS: u64 = 16;
/// Mini-batches in an iteration by batch gradients, if nothing is said.
const BATCHES: u64 = 64;

/// Passes over new ratings only: with more, rows follow them at the cost of the ratings that they were trained on, which nothing
/// reminds them of (measured: the error on test data is least after 3, and worse than before from 10 on).
const PASSES_OF_NEW: u64 = 3;
/// Passes over all ratings, where a model that has learnt most of them goes on: with more it learns them by heart, and the iteration that was
/// best on test data is past (measured with each optimizer, a tenth of the ratings new, or some removed).
const PASSES_OF_ALL: u64 = 2;

impl FactorOptions {
    /// Returns the options with which an update goes on; a batch is the same part of the ratings.
    pub(super) fn continued(&self, on: UpdatedOn) -> Self {
        let batch = self.batch.filter(|_| self.work_per_clock.is_none());
        let passes = if on == UpdatedOn::New { PASSES_OF_NEW } else { PASSES_OF_ALL };
        let iterations = passes.min(self.iterations);
        Self { batch, iterations, ..self.clone() }
    }

    /// Returns the parameters; those of some data have a unit of these.
    #[must_use]
    pub fn config(&self) -> Config {
        let Self { dims, biases, init_std, .. } = *self;
        let Self { lambda, step, decay, momentum, rho, unit, .. } = self.with_defaults();
        let part = Option::unwrap_or_default;
        let (momentum, rho) = (part(momentum), part(rho));
        let optimizer = match self.optimizer {
            Optimizer::Sgd => mf::Optimizer::Sgd,
            Optimizer::Adagrad => mf::Optimizer::AdaGrad,
            Optimizer::Momentum => mf::Optimizer::ByCoordinate(Rule::Momentum { momentum }),
            Optimizer::Nesterov => mf::Optimizer::ByCoordinate(Rule::Nesterov { momentum }),
            Optimizer::Rmsprop => mf::Optimizer::ByCoordinate(Rule::RmsProp { rho }),
            Optimizer::Adam => mf::Optimizer::ByCoordinate(Rule::Adam { momentum, rho }),
            Optimizer::Adadelta => mf::Optimizer::ByCoordinate(Rule::AdaDelta { rho }),
            Optimizer::Als => mf::Optimizer::Alternating,
        };
        let (step, unit) = (step.unwrap_or(Config::default().step), unit.unwrap_or(1.0));
        Config { dims, lambda: part(lambda), optimizer, step, decay: part(decay), biases, init_std, unit }
    }

    /// Returns the parameters for some ratings: in the unit of the model that training starts at, if there is one.
    #[must_use]
    pub fn config_for(&self, ratings: &Ratings) -> Config {
        let of_start = ratings.start.as_ref().map(Start::unit);
        Config { unit: of_start.or(self.unit).unwrap_or_else(|| ratings.scale.unit()), ..self.config() }
    }

    /// Returns the options with what the optimizer has where nothing is said.
    pub(super) fn with_defaults(&self) -> Self {
        let Defaults { lambda, step, decay, momentum, rho } = self.optimizer.defaults();
        Self {
            lambda: self.lambda.or(Some(lambda)),
            step: self.step.or(step),
            decay: self.decay.or(decay),
            momentum: self.momentum.or(momentum),
            rho: self.rho.or(rho),
            ..self.clone()
        }
    }

    /// Returns the ratings of a mini-batch.
    pub(super) fn batch(&self, ratings: u64, settings: &Settings) -> u64 {
        let part = |part: f64| ((part.min(1.0) * ratings as f64).ceil() as u64).max(1);
        let mirrored = settings.peers.is_some() && settings.slack != Some(0);
        let default = match self.gradient {
            Gradient::InPlace if mirrored => ratings.div_ceil(MIRRORED_CLOCKS),
            Gradient::InPlace => ratings,
            Gradient::Batch => ratings.div_ceil(BATCHES),
        };
        self.batch.or(self.work_per_clock.map(part)).unwrap_or(default).clamp(1, ratings.max(1))
    }
}

impl Options for FactorOptions {
    /// A batch by default depends on how many processes there are, and what they share.
    const FREE: &'static [&'static str] = &["iterations", "tolerance", "batch", "work_per_clock"];

    fn check(&self) -> Result<(), Error> {
        let given = [
            ("step", self.step.is_some()),
            ("decay", self.decay.is_some()),
            ("momentum", self.momentum.is_some()),
            ("rho", self.rho.is_some()),
            ("batch", self.batch.is_some() || self.work_per_clock.is_some_and(|work| work != 1.0)),
            ("gradient", self.gradient == Gradient::Batch),
        ];
        let refused = given.into_iter().filter(|(_, is_given)| *is_given).find_map(|(name, _)| self.refuses(name));
        if let Some(why) = refused {
            return Err(Error::option(why));
        }
        self.config().check()?;
        check_tolerance(self.tolerance)?;
        self.work_per_clock.map_or(Ok(()), check_work_per_clock)
    }

    fn iterations(&self) -> u64 {
        self.iterations
    }

    fn tolerance(&self) -> f64 {
        self.tolerance
    }

    fn refuses(&self, name: &str) -> Option<&'static str> {
        let Defaults { step, decay, momentum, rho, .. } = self.optimizer.defaults();
        match name {
            "step" | "decay" if step.is_none() => {
                Some("als takes no steps: leave step and decay out, or give another --optimizer")
            }
            "batch" | "work_per_clock" | "gradient" if step.is_none() => Some(
                "als solves for one side after the other, of all ratings: leave batch, work-per-clock and gradient out, or give \
                      another --optimizer",
            ),
            "decay" if decay.is_none() => {
                Some("decay is not of adagrad, whose steps shrink by themselves; give another --optimizer")
            }
            "momentum" if momentum.is_none() => Some("momentum is of --optimizer momentum, nesterov or adam"),
            "rho" if rho.is_none() => Some("rho is of --optimizer rmsprop, adam or adadelta"),
            _ => None,
        }
    }

    fn replaces(name: &str) -> Option<&'static str> {
        (name == "batch").then_some("work_per_clock")
    }
}
