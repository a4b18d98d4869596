//! `megagrid mf`: matrix factorization of ratings.

mod form;
pub mod saved;
mod train;

use clap::ValueEnum;
use megagrid_algorithms::mf::Config;
use megagrid_engine::Settings;
use megagrid_partition::EdgeSource;
use serde::Serialize;

use crate::common::{self, Common, Source};
use crate::failure::usage;
use crate::input::{self, TestSet, Unseen};
use crate::record::Phases;
use crate::session;
pub use form::{Batch, Form, InPlace};
pub use train::{Job, Trained};

/// How gradients are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gradient {
    /// Rating by rating, both rows where they are.
    InPlace,
    /// Summed over a batch, then applied.
    Batch,
}

/// Factorizes ratings: finds for every user and item a vector, so that products of vectors predict ratings.
///
/// The model holds users.npy and items.npy ([n, dims], f32), the ids of their rows in users.parquet and items.parquet,
/// and biases if there are some. A prediction is: mean + user · item + biases.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid mf ratings.csv --holdout 0.1 --model movies --report movies.html")]
pub struct Args {
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub unseen: Unseen,
    #[command(flatten)]
    pub options: Options,
    #[command(flatten)]
    pub common: Common,
}

/// Options of the algorithm.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Length of a user's and an item's vector.
    #[arg(long, default_value_t = Config::default().dims, value_name = "K")]
    pub dims: usize,
    /// Weight of the regularizer, for each rating.
    #[arg(long, default_value_t = Config::default().lambda, allow_negative_numbers = true)]
    pub lambda: f32,
    /// Size of a step along the gradient.
    #[arg(long, default_value_t = Config::default().step, allow_negative_numbers = true)]
    pub step: f32,
    /// Standard deviation of the first values.
    #[arg(long, default_value_t = Config::default().init_std, allow_negative_numbers = true)]
    pub init_std: f32,
    /// Plain steps that decay, instead of steps that adapt to each row (AdaGrad).
    #[arg(long)]
    pub plain_sgd: bool,
    /// Decay of plain steps: step / (1 + decay · (iteration − 1)) [default: 0.1].
    #[arg(long, requires = "plain_sgd", allow_negative_numbers = true)]
    pub decay: Option<f32>,
    /// Learn a bias for each user and item, which is the default.
    #[arg(long, overrides_with = "no_biases")]
    pub biases: bool,
    /// Factors alone: a fifth to a half faster, less exact.
    #[arg(long)]
    pub no_biases: bool,
    /// Subtract the mean rating first, which is the default.
    #[arg(long, overrides_with = "no_mean")]
    pub mean: bool,
    /// Leave the mean rating in.
    #[arg(long)]
    pub no_mean: bool,
    /// How gradients are applied.
    #[arg(long, value_enum, default_value = "in-place")]
    pub gradient: Gradient,
    /// Passes over the ratings.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// End when the objective changes by no more than this part of itself [default: 0, never].
    #[arg(long, default_value_t = 0.0, hide_default_value = true, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Ratings in a mini-batch, which is a clock [default: all in place, a 64th for batch].
    #[arg(long, value_name = "RATINGS", value_parser = clap::value_parser!(u64).range(1..))]
    pub batch: Option<u64>,
    /// Size of a mini-batch, as a part of all ratings: above 0, at most 1.
    #[arg(
        long,
        value_name = "X",
        allow_negative_numbers = true,
        conflicts_with = "batch",
        help_heading = "Consistency"
    )]
    pub work_per_clock: Option<f64>,
}

/// Clocks of an iteration in which every process changes its own replica of items: sums of longer clocks' changes diverge.
const MIRRORED_CLOCKS: u64 = 16;
/// Mini-batches in an iteration by batch gradients, if nothing is said.
const BATCHES: u64 = 64;

impl Options {
    /// Returns the parameters, checked.
    pub fn config(&self) -> anyhow::Result<Config> {
        let config = Config {
            dims: self.dims,
            lambda: self.lambda,
            step: self.step,
            adaptive: !self.plain_sgd,
            decay: self.decay.unwrap_or(Config::default().decay),
            biases: !self.no_biases,
            init_std: self.init_std,
        };
        config.check()?;
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return Err(usage(format!("tolerance is {}; expected 0 or a number above 0", self.tolerance)));
        }
        match self.work_per_clock {
            Some(part) if !(part > 0.0 && part <= 1.0) => {
                Err(usage(format!("work-per-clock is {part}; expected a number above 0 and at most 1")))
            }
            _ => Ok(config),
        }
    }

    /// Returns the ratings of a mini-batch.
    pub fn batch(&self, ratings: usize, settings: &Settings) -> u64 {
        let ratings = ratings as u64;
        let part = |part: f64| ((part * ratings as f64).ceil() as u64).max(1);
        let mirrored = settings.peers.is_some() && settings.slack != Some(0);
        let default = match self.gradient {
            Gradient::InPlace if mirrored => ratings.div_ceil(MIRRORED_CLOCKS),
            Gradient::InPlace => ratings,
            Gradient::Batch => ratings.div_ceil(BATCHES),
        };
        self.batch.or(self.work_per_clock.map(part)).unwrap_or(default).clamp(1, ratings.max(1))
    }

    /// Returns the options as they stand in a run record.
    pub fn resolved(&self, config: &Config, batch: u64, ratings: usize) -> serde_json::Value {
        // As they were typed: 0.1, not the nearest f32 written with all the digits of an f64.
        let [lambda, step, init_std, decay] = [config.lambda, config.step, config.init_std, config.decay]
            .map(|number| number.to_string().parse::<f64>().unwrap_or(f64::from(number)));
        serde_json::json!({
            "dims": config.dims, "lambda": lambda, "step": step, "init_std": init_std,
            "adaptive": config.adaptive, "decay": decay, "biases": config.biases, "mean": !self.no_mean,
            "gradient": self.gradient, "iterations": self.iterations, "tolerance": self.tolerance, "batch": batch,
            "work_per_clock": batch as f64 / ratings.max(1) as f64,
        })
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    args.unseen.check()?;
    let config = args.options.config()?;
    let (settings, common) = args.common.prepare()?;
    let (job, phases) = load(args, config, settings)?;
    let resolved = resolved(args, &job, &config, &common)?;
    let trained = train(job, args.options.gradient, &args.common, resolved, phases)?;
    if let Some(directory) = &args.common.model {
        trained.write(directory)?;
    }
    if args.common.wants_summary() {
        common::print(&session::summary(&trained.record))?;
    }
    session::write_record(&trained.record, &args.common)
}

/// Returns every option as it stands in a run record.
pub fn resolved(
    args: &Args,
    job: &Job,
    config: &Config,
    common: &common::Resolved,
) -> anyhow::Result<serde_json::Value> {
    let own = args.options.resolved(config, job.batch, job.num_ratings());
    let unseen = serde_json::json!({ "test": args.unseen.test, "holdout": args.unseen.holdout });
    Ok(common::join([args.source.resolved(), unseen, own, serde_json::to_value(common)?]))
}

/// Trains in either form.
pub fn train(
    job: Job,
    gradient: Gradient,
    common: &Common,
    resolved: serde_json::Value,
    phases: Phases,
) -> anyhow::Result<Trained> {
    match gradient {
        Gradient::InPlace => train::train::<InPlace>(job, common, resolved, phases),
        Gradient::Batch => train::train::<Batch>(job, common, resolved, phases),
    }
}

/// Prints what the engine would do.
pub fn plan(args: &Args) -> anyhow::Result<()> {
    args.unseen.check()?;
    let config = args.options.config()?;
    let (settings, _) = args.common.prepare()?;
    let (job, _) = load(args, config, settings)?;
    match args.options.gradient {
        Gradient::InPlace => train::plan::<InPlace>(&job),
        Gradient::Batch => train::plan::<Batch>(&job),
    }
}

/// Loads ratings and makes a job of them.
pub fn load(args: &Args, config: Config, settings: Settings) -> anyhow::Result<(Job, Phases)> {
    let mut phases = Phases::default();
    let (prepared, test) = input::ratings(&args.source, &args.unseen, &args.common, &mut phases)?;
    Job::new(prepared, test, config, &args.options, settings).map(|job| (job, phases))
}

impl Job {
    /// Makes a job from ratings and options.
    pub fn new(
        prepared: megagrid_datasets::Prepared<f32>,
        test: TestSet,
        config: Config,
        options: &Options,
        settings: Settings,
    ) -> anyhow::Result<Self> {
        let digest = input::digest(&prepared.edges, |&rating| f64::from(rating))?;
        let batch = options.batch(prepared.edges.num_edges(), &settings);
        let mean = if options.no_mean { 0.0 } else { digest.mean as f32 };
        let settings = Settings { dims: config.row_dims(), ..settings };
        let Options { iterations, tolerance, .. } = *options;
        Ok(Self { prepared, test, config, batch, mean, checksum: digest.checksum, iterations, tolerance, settings })
    }
}
