//! What a comparison asks of each algorithm: its job on a baseline.

use anyhow::Context;
use megagrid_algorithms::mf::Config;
use megagrid_baselines::{Error, Finish, Report, Run, System, apps, list_by};
use megagrid_engine::Batches;
use megagrid_geeps::apps::factorization as geeps;
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side};
use megagrid_training::als::ImplicitFactorization;
use megagrid_training::blockpg::Regression;
use megagrid_training::lda::{PriorChoice, Sampler, TopicModels, TopicOptions};
use megagrid_training::mf::{FactorOptions, Factorization, Gradient, Optimizer, RatingOptions};
use megagrid_training::pagerank::{Links, Ranking};
use megagrid_training::{Consistency, Job};

use crate::common::OF_A_RUN;
use crate::entry::{Args, Trains};
use crate::failure::usage;

/// An algorithm whose job runs on several systems.
pub trait Comparable: Trains {
    /// What help says of the comparison.
    const COMPARED: &'static str;

    /// Whether all iterations access the same rows, which IterStore then gathers.
    const GATHERS: bool = true;

    /// Systems on which left vertices keep all their edges in one process.
    const KEEP_LEFT: &'static [System] = &[];

    /// Sets what a comparison decides.
    fn settle(_: &mut Self::Options) -> anyhow::Result<()> {
        Ok(())
    }

    /// Sets what follows from the data, so that all systems do the same.
    fn settle_job(_: &mut Job<Self>) {}

    /// Tells whether a baseline runs the job, or what to do about it.
    fn runs_on(args: &Args<Self>, system: System) -> Result<(), &'static str>;

    /// Tells whether parameter servers can step what is shared themselves, or what to do about it.
    fn steps_by_server(_: &Args<Self>) -> Result<(), &'static str> {
        Err("is for mf, whose items are stepped along gradients; leave it out")
    }

    /// Lays a job out for a baseline.
    fn lay_out(job: Job<Self>) -> anyhow::Result<Laid>;

    /// Tells whether GeePS runs the job, or what to do about it.
    fn runs_on_geeps(_: &Args<Self>) -> Result<(), &'static str> {
        Err("of what is compared it has mf only")
    }

    /// Lays a job out for GeePS, which runs it.
    fn factorization(_: Job<Self>) -> anyhow::Result<geeps::Factorization> {
        Err(usage("geeps does not run this job"))
    }
}

/// A job that a baseline can run.
pub struct Laid {
    /// Edges, or tokens, of an iteration.
    pub updates: u64,
    /// Runs it.
    pub run: RunOn,
}

/// Runs a job on a baseline.
pub type RunOn = Box<dyn FnOnce(System, &Run, Report<'_>) -> Result<Finish, Error>>;

impl<A: Trains> Args<A> {
    /// Checks the options before anything runs.
    pub fn check(&self) -> anyhow::Result<()> {
        megagrid_training::Options::check(&self.own)?;
        let refused = [&["--model", "--checkpoint-model"], &OF_A_RUN[..]].concat();
        self.common.refuse(&refused, "is for the training command, not for a comparison")?;
        self.common.prepare(&A::run_options(&self.own, &self.common.run)?)?;
        let input = &self.source.input;
        if megagrid_datasets::is_pipe(input) {
            return Err(usage(
                "every run of a comparison reads the input, and a pipe can be read once; save it in a file",
            ));
        }
        Ok(megagrid_datasets::files(input).map(drop)?)
    }
}

/// Returns the first option that is given.
pub fn first_given<const N: usize>(options: [(&'static str, bool); N]) -> Option<&'static str> {
    options.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
}

/// Why baselines do not run a job whose clocks have a length of their own.
const OWN_CLOCKS: &str = "its clocks are iterations: leave out --work-per-clock";
/// Why systems that step by batches do not run a job that steps rating by rating.
const NOT_IN_PLACE: &str = "it changes nothing in place: leave it out, or use --gradient batch";
/// Why no other system runs a job with test data.
const NO_TESTS: &str = "leave out --test and --holdout";
/// The same of ratings, which have more options.
const NO_TEST_RATINGS: &str = "leave out --test and whatever begins with --holdout";

fn no_slack(consistency: Consistency, system: System) -> Result<(), &'static str> {
    match consistency {
        Consistency::Bsp => Ok(()),
        Consistency::Async => Err("baselines have no --consistency async"),
        _ if system.is_gas() => Err("it has no slack: leave out --consistency and --slack"),
        _ => Ok(()),
    }
}

/// Lists edges by the vertices of the left side, in which order baselines visit them.
fn by_left<T: Copy + Default + Send + Sync>(edges: &dyn EdgeSource<T>) -> anyhow::Result<EdgeList<T>> {
    let list = list_by(edges, Side::Right, |data| *data).context("reading edges")?;
    list_by(&GroupedEdges::new(list, &[Side::Left]), Side::Left, |data| *data).context("reading edges")
}

impl Comparable for Ranking {
    const COMPARED: &'static str = "Ranks a graph on several systems; the options of `pagerank`";

    fn runs_on(args: &Args<Self>, system: System) -> Result<(), &'static str> {
        if args.data.restart.is_some() || args.data.restart_sets.is_some() || args.data.weights {
            return Err(
                "its links have no weights, and it restarts anywhere: leave out --restart, --restart-sets and --weights",
            );
        }
        no_slack(args.common.run.consistency, system)
    }

    fn lay_out(job: Job<Self>) -> anyhow::Result<Laid> {
        let damping = megagrid_algorithms::pagerank::Damping::new(job.options.damping)?;
        let Links::Plain(graph) = &job.data.links else { return Err(usage("leave out --weights")) };
        let graph = list_by(&graph.edges, Side::Right, |()| ()).context("reading edges")?;
        let updates = graph.left.len() as u64;
        let run: RunOn = Box::new(move |system, run, report| {
            apps::pagerank::run(system, &apps::pagerank::Job { graph: &graph, damping }, run, report)
        });
        Ok(Laid { updates, run })
    }
}

impl Comparable for Factorization {
    const COMPARED: &'static str = "Factorizes ratings on several systems; the options of `mf`. By the gradient of all ratings, \
        which all systems have; with --gradient in-place rating by rating, which GAS has not";

    fn settle(options: &mut FactorOptions) -> anyhow::Result<()> {
        if !matches!(options.optimizer, Optimizer::Sgd | Optimizer::Adagrad) {
            return Err(usage("a comparison takes --optimizer sgd or adagrad, which all systems have"));
        }
        if options.gradient == Gradient::Batch {
            let given = [
                ("--batch", options.batch.is_some()),
                ("--work-per-clock", options.work_per_clock.is_some_and(|work| work != 1.0)),
            ];
            if let Some(option) = first_given(given) {
                return Err(usage(format!(
                    "a comparison by batch gradients takes all ratings at once; leave out {option}"
                )));
            }
            options.work_per_clock = Some(1.0);
        }
        Ok(())
    }

    fn runs_on(args: &Args<Self>, system: System) -> Result<(), &'static str> {
        if system.is_gas() && args.own.gradient == Gradient::InPlace {
            return Err(NOT_IN_PLACE);
        }
        if args.own.batch.is_some() {
            return Err("its clocks are iterations: leave out --batch");
        }
        if args.own.work_per_clock.is_some_and(|work| work != 1.0) {
            return Err(OWN_CLOCKS);
        }
        if args.data.test.is_some() || args.data.holdout().is_some() {
            return Err(NO_TEST_RATINGS);
        }
        no_slack(args.common.run.consistency, system)
    }

    fn steps_by_server(args: &Args<Self>) -> Result<(), &'static str> {
        let is_possible = args.own.gradient == Gradient::InPlace && args.own.optimizer == Optimizer::Adagrad;
        if is_possible { Ok(()) } else { Err("goes with --gradient in-place and --optimizer adagrad") }
    }

    fn lay_out(job: Job<Self>) -> anyhow::Result<Laid> {
        let mut ratings = by_left(&job.data.edges)?;
        let mean = if job.options.mean { job.data.scale.mean as f32 } else { 0.0 };
        let config = job.options.config_for(&job.data);
        ratings.data.iter_mut().for_each(|rating| *rating = config.in_unit(*rating, mean));
        let form = match job.options.gradient {
            Gradient::InPlace => apps::mf::Form::InPlace,
            Gradient::Batch => apps::mf::Form::Batch,
        };
        let updates = ratings.data.len() as u64;
        let run: RunOn = Box::new(move |system, run, report| {
            apps::mf::run(system, &apps::mf::Job { ratings: &ratings, config, form }, run, report)
        });
        Ok(Laid { updates, run })
    }

    fn runs_on_geeps(args: &Args<Self>) -> Result<(), &'static str> {
        let FactorOptions { gradient, optimizer, decay, biases, mean, init_std, .. } = args.own;
        if gradient == Gradient::InPlace {
            return Err(NOT_IN_PLACE);
        }
        if optimizer != Optimizer::Sgd || decay != Some(0.0) || biases {
            return Err("it has plain steps of one size, and no biases: use --optimizer sgd --decay 0 --no-biases");
        }
        if !mean || init_std != Config::default().init_std {
            return Err("leave out --no-mean and --init-std");
        }
        if args.data.test.is_some() || args.data.holdout().is_some() {
            return Err(NO_TEST_RATINGS);
        }
        if args.common.run.consistency != Consistency::Bsp {
            return Err("here its clocks are iterations, which have no slack: leave out --consistency and --slack");
        }
        Ok(())
    }

    /// All ratings of a worker are its mini-batch, so that an iteration is one step along the gradient, as on the others.
    fn factorization(job: Job<Self>) -> anyhow::Result<geeps::Factorization> {
        let EdgeList { num_left, num_right, left, right, data, .. } = by_left(&job.data.edges)?;
        let all = left.into_iter().zip(right).zip(data).map(|((user, item), rating)| (user, item, rating)).collect();
        let ratings = geeps::Ratings { num_users: num_left, num_items: num_right, all };
        let Config { dims, step, lambda, unit, .. } = job.options.config_for(&job.data);
        if unit != 1.0 {
            return Err(usage(format!(
                "GeePS takes ratings as they are, and the others would divide them by {unit}; give --unit 1"
            )));
        }
        let workers = job.settings.workers;
        let batch = ratings.all.len().div_ceil(workers);
        let settings = geeps::Settings { dims, workers, batch, step, lambda, seed: job.settings.seed };
        Ok(geeps::Factorization::new(ratings, settings)?)
    }
}

impl Comparable for ImplicitFactorization {
    const COMPARED: &'static str = "Factorizes implicit feedback on several systems; the options of `als`. All solve the same blocks of \
        dimensions; GAS takes a superstep for each";

    fn runs_on(args: &Args<Self>, _: System) -> Result<(), &'static str> {
        let RatingOptions { test, ranking, .. } = &args.data.ratings;
        if test.is_some() || ranking.is_some() || args.data.ratings.holdout().is_some() {
            return Err("it ranks nothing: leave out --ranking, --test and whatever begins with --holdout");
        }
        if args.common.run.consistency != Consistency::Bsp {
            return Err("its users and items take turns: leave out --consistency and --slack");
        }
        Ok(())
    }

    fn lay_out(job: Job<Self>) -> anyhow::Result<Laid> {
        let all = by_left(&job.data)?;
        let mut feedback = EdgeList { left: Vec::new(), right: Vec::new(), data: Vec::new(), ..all };
        for ((&user, &item), &value) in all.left.iter().zip(&all.right).zip(&all.data) {
            if value > 0.0 {
                feedback.push(user, item, value);
            }
        }
        let (updates, config) = (feedback.data.len() as u64, job.options.config_for(&job.data));
        let run: RunOn = Box::new(move |system, run, report| {
            apps::als::run(system, &apps::als::Job { feedback: &feedback, config }, run, report)
        });
        Ok(Laid { updates, run })
    }
}

impl Comparable for TopicModels {
    const KEEP_LEFT: &'static [System] = &apps::lda::KEEP_LEFT;

    const COMPARED: &'static str = "Finds topics on several systems; the options of `lda`. With the dense sampler, fixed priors and \
        no annealing";

    fn runs_on(args: &Args<Self>, system: System) -> Result<(), &'static str> {
        if args.own.sampler != Sampler::Dense || args.own.extra_topics > 0 {
            return Err("it has the dense sampler only: leave out --sampler and --extra-topics");
        }
        let usual = TopicOptions::default().work_per_clock;
        if ![1.0, usual].contains(&args.own.work_per_clock) {
            return Err(OWN_CLOCKS);
        }
        if args.own.prior != PriorChoice::Fixed || args.own.annealing != Some(0) {
            return Err("it has fixed priors and no annealing: leave out --prior and --annealing");
        }
        if args.data.test.is_some() || args.data.holdout.is_some() {
            return Err(NO_TESTS);
        }
        no_slack(args.common.run.consistency, system)
    }

    fn lay_out(job: Job<Self>) -> anyhow::Result<Laid> {
        let corpus = by_left(&job.data.edges)?;
        let (updates, config) = (job.data.tokens.total, job.options.config());
        let run: RunOn = Box::new(move |system, run, report| {
            apps::lda::run(system, &apps::lda::Job { corpus: &corpus, config, tell: None }, run, report)
        });
        Ok(Laid { updates, run })
    }
}

impl Comparable for Regression {
    const KEEP_LEFT: &'static [System] = &apps::blockpg::KEEP_LEFT;

    const COMPARED: &'static str = "Fits a sparse logistic regression on several systems; the options of `blockpg`";
    const GATHERS: bool = false;

    fn runs_on(args: &Args<Self>, _: System) -> Result<(), &'static str> {
        if args.own.l1.only().is_none() {
            return Err("it has no paths: give one --l1");
        }
        if args.common.run.consistency != Consistency::Bsp || args.own.delay.is_some() {
            return Err("its blocks take turns: leave out --consistency, --slack and --delay");
        }
        if args.data.test.is_some() || args.data.holdout.is_some() {
            return Err(NO_TESTS);
        }
        Ok(())
    }

    /// Features step by blocks, as baselines have it.
    fn settle_job(job: &mut Job<Self>) {
        let values = &job.data.values;
        let blocks = job.options.num_blocks(values.num_edges(), values.num_vertices(Side::Right));
        if job.options.batch.is_none() {
            job.options.blocks = Some(blocks);
        }
    }

    fn lay_out(job: Job<Self>) -> anyhow::Result<Laid> {
        let config = job.options.l1.only().map(|l1| job.options.config(l1));
        let Some(config) = config else { return Err(usage("no --l1")) };
        let samples = job.data;
        if samples.num_models() > 1 {
            return Err(usage("baselines tell two classes apart; name the positive labels with --positive"));
        }
        let labels = samples.signs(0);
        let (values, features) = (samples.values.num_edges(), samples.values.num_vertices(Side::Right));
        let block_values = job.options.block_values(values, features);
        let sequence = megagrid_algorithms::blockpg::sequence(block_values);
        let batches = Batches::new(&samples.values, &sequence, &job.settings, Side::Right)?;
        let run: RunOn = Box::new(move |system, run, report| {
            let blocks = |iteration| batches.of_iteration(iteration);
            let fit = apps::blockpg::Job {
                values: &samples.values,
                labels: &labels,
                sample_weights: &samples.sample_weights,
                intercept: samples.intercept,
                config,
                block_values,
                blocks: Some(&blocks),
            };
            apps::blockpg::run(system, &fit, run, report)
        });
        Ok(Laid { updates: values as u64, run })
    }
}
