//! `megagrid lda`: topics of a corpus.

pub mod corpus;
pub mod demo;
mod form;
pub mod saved;
pub mod topics;
mod train;

use std::fmt;
use std::str::FromStr;

use anyhow::Context;
use clap::ValueEnum;
use megagrid_algorithms::lda::{self, Config, DEFAULT_CLOCKS, Prior, Tokens};
use megagrid_datasets::{Edges, Prepared};
use megagrid_engine::Settings;
use serde::Serialize;

use crate::common::{self, Common, Source};
use crate::failure::usage;
use crate::input;
use crate::record::Phases;
use crate::session;
use corpus::{NewDocuments, Unseen, Words};
pub use form::{Dense, Form, Mh, ProgramOf, Sparse};
pub use train::{Job, Trained};

/// Topics, if nothing is said.
const DEFAULT_TOPICS: usize = 100;

/// How topics are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampler {
    /// Whichever is sooner at a likelihood: dense up to 200 topics, sparse above.
    Auto,
    /// Over all topics, with vector instructions.
    Dense,
    /// Over the topics of a document, and the rest at once.
    Sparse,
    /// Metropolis-Hastings, two proposals for each token and iteration: for several thousand topics, with more iterations.
    Mh,
}

/// The prior weight of a topic in a document: a number, or a sum that all topics share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alpha {
    weight: f64,
    shared: bool,
}

impl FromStr for Alpha {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, shared) = text.strip_suffix("/K").map_or((text, false), |number| (number, true));
        let weight = number.parse().map_err(|_| "expected a number, or a number/K".to_owned())?;
        Ok(Self { weight, shared })
    }
}

impl fmt::Display for Alpha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.weight, if self.shared { "/K" } else { "" })
    }
}

impl Alpha {
    /// The usual weight where it stays as given (Griffiths and Steyvers 2004), and one to be fitted.
    const FIXED: Self = Self { weight: 50.0, shared: true };
    const FITTED: Self = Self { weight: 5.0, shared: true };

    fn of_topic(self, num_topics: usize) -> f64 {
        if self.shared { self.weight / num_topics as f64 } else { self.weight }
    }
}

/// Whether the document prior is fitted to the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PriorChoice {
    /// It stays as given.
    Fixed,
    /// One weight for all topics, fitted.
    Symmetric,
    /// A weight for each topic, fitted.
    Asymmetric,
}

impl From<PriorChoice> for Prior {
    fn from(choice: PriorChoice) -> Self {
        match choice {
            PriorChoice::Fixed => Self::Fixed,
            PriorChoice::Symmetric => Self::Symmetric,
            PriorChoice::Asymmetric => Self::Asymmetric,
        }
    }
}

/// Finds the topics of a corpus: for each topic how likely its words are, for each document its mixture of topics.
///
/// Latent Dirichlet allocation by collapsed Gibbs sampling. The input is a UCI bag of words or LDA-C, with the vocabulary
/// in vocab.* beside it, or plain text with one document a line. The model holds topics.parquet (topic, rank, word,
/// probability), word_topics.parquet and document_topics.parquet (word or document, topic, tokens; the first is a row of
/// words.parquet or documents.parquet), topic_tokens.npy and alpha.npy ([topics]).
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  megagrid lda docword.kos.txt.gz --topics 50 --model kos
  megagrid lda posts.txt --lower-case --split punctuation --stop-words english --min-documents 5")]
pub struct Args {
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub words: Words,
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
    /// Topics (K), 1 to 65535.
    #[arg(short = 'k', long, default_value_t = DEFAULT_TOPICS, value_name = "K", allow_negative_numbers = true)]
    pub topics: usize,
    /// Begin with N topics more, and give up as many after half of the iterations: those that are one with another at the
    /// least loss of likelihood. With half as many more, few topics stay merged that documents tell apart. Not for mh.
    #[arg(long, default_value_t = 0, value_name = "N", allow_negative_numbers = true)]
    pub extra_topics: usize,
    /// Prior weight of each topic in a document, the first where it is fitted: a number, or a sum that all topics share,
    /// as 50/K [default: 5/K, with --prior fixed 50/K].
    #[arg(long, allow_hyphen_values = true)]
    pub alpha: Option<Alpha>,
    /// Prior weight of each word in a topic.
    #[arg(long, default_value_t = Config::new(DEFAULT_TOPICS).beta, allow_negative_numbers = true)]
    pub beta: f32,
    /// Whether alpha is fitted to the documents, each iteration once --annealing has ended. A fixed 50/K spreads short
    /// documents over more topics than they have.
    #[arg(long, value_enum, default_value = "symmetric")]
    pub prior: PriorChoice,
    /// Fit alpha after every N-th iteration alone.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub optimize_every: u64,
    /// Iterations over which topics are drawn with a larger beta than --beta, ten times as large at first, with --extra-topics
    /// thirty times, which lets words find their topics sooner; 0: none [default: 25, with more than 200 topics 10, with
    /// --extra-topics 2/5 of --iterations]. The sampler mh has none.
    #[arg(long, value_name = "N")]
    pub annealing: Option<u64>,
    /// How topics are drawn.
    #[arg(long, value_enum, default_value = "auto")]
    pub sampler: Sampler,
    /// Passes over the tokens.
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// End when the log likelihood changes by no more than this part of itself [default: 0, never].
    #[arg(long, default_value_t = 0.0, hide_default_value = true, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Evaluate the first, the last and every N-th iteration alone.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub evaluate_every: u64,
    /// Top words of each topic that are shown and whose coherence is measured; 0: none.
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub top_words: usize,
    /// Part of an iteration between two clocks, at each of which topic totals are merged: above 0, at most 1. The sampler mh merges
    /// them after words and after documents instead.
    #[arg(
        long,
        default_value_t = 1.0 / DEFAULT_CLOCKS as f64,
        value_name = "X",
        allow_negative_numbers = true,
        help_heading = "Consistency"
    )]
    pub work_per_clock: f64,
}

impl Options {
    /// Returns the parameters, checked.
    pub fn config(&self) -> anyhow::Result<Config> {
        let defaults = Config::new(self.topics).with_extra_topics(self.extra_topics, self.iterations);
        let config = Config {
            alpha: self.first_alpha() as f32,
            beta: self.beta,
            prior: self.prior.into(),
            optimize_every: self.optimize_every,
            annealing: self.annealing.unwrap_or(defaults.annealing),
            clocks: (1.0 / self.work_per_clock).round().max(1.0) as u64,
            ..defaults
        };
        config.check()?;
        self.check_extra_topics()?;
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return Err(usage(format!("tolerance is {}; expected 0 or a number above 0", self.tolerance)));
        }
        if !(self.work_per_clock > 0.0 && self.work_per_clock <= 1.0) {
            let found = self.work_per_clock;
            return Err(usage(format!("work-per-clock is {found}; expected a number above 0 and at most 1")));
        }
        if self.optimize_every != 1 && self.prior == PriorChoice::Fixed {
            return Err(usage("optimize-every is for a prior that is fitted; leave it out, or choose another --prior"));
        }
        if self.annealing.unwrap_or(0) > 0 && self.sampler == Sampler::Mh {
            return Err(usage("annealing is not for the sampler mh; leave it out, or choose another --sampler"));
        }
        Ok(config)
    }

    fn first_alpha(&self) -> f64 {
        let default = if self.prior == PriorChoice::Fixed { Alpha::FIXED } else { Alpha::FITTED };
        self.alpha.unwrap_or(default).of_topic(self.topics)
    }

    fn check_extra_topics(&self) -> anyhow::Result<()> {
        let Self { topics, extra_topics, iterations, .. } = *self;
        if extra_topics == 0 {
            return Ok(());
        }
        if self.sampler == Sampler::Mh {
            return Err(usage("extra-topics is not for the sampler mh"));
        }
        if topics.saturating_add(extra_topics) > lda::MERGE_UP_TO {
            let most = lda::MERGE_UP_TO;
            return Err(usage(format!(
                "topics and extra-topics are {topics} and {extra_topics}; expected {most} at most"
            )));
        }
        if iterations < 2 {
            return Err(usage("extra-topics are given up after half of the iterations; expected 2 iterations or more"));
        }
        Ok(())
    }

    /// Returns the sampler.
    pub fn sampler(&self) -> lda::Sampler {
        match self.sampler {
            Sampler::Auto => lda::Sampler::fastest(self.topics),
            Sampler::Dense => lda::Sampler::Dense,
            Sampler::Sparse => lda::Sampler::Sparse,
            Sampler::Mh => lda::Sampler::Mh,
        }
    }

    /// Returns the options as they stand in a run record.
    pub fn resolved(&self, job: &Job) -> serde_json::Value {
        // As it was typed: 0.1, not the nearest f32 written with all the digits of an f64.
        let beta = self.beta.to_string().parse::<f64>().unwrap_or(f64::from(self.beta));
        serde_json::json!({
            "topics": self.topics, "extra_topics": self.extra_topics, "alpha": self.first_alpha(), "beta": beta, "prior": self.prior,
            "optimize_every": self.optimize_every, "annealing": job.config.annealing,
            "sampler": job.sampler, "iterations": self.iterations, "tolerance": self.tolerance,
            "evaluate_every": self.evaluate_every, "top_words": self.top_words, "work_per_clock": self.work_per_clock,
        })
    }
}

/// Loads documents and makes a job of them, with every option as it stands in a run record.
pub fn prepare(
    args: &Args,
    settings: Settings,
    common: &common::Resolved,
) -> anyhow::Result<(Job, serde_json::Value, Phases)> {
    args.unseen.check()?;
    let mut phases = Phases::default();
    let job = load(args, args.options.config()?, settings, &mut phases)?;
    let own = args.options.resolved(&job);
    let parts = [args.source.resolved(), args.words.resolved(), args.unseen.resolved(), own];
    let resolved = common::join([common::join(parts), serde_json::to_value(common)?]);
    Ok((job, resolved, phases))
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    args.options.config()?;
    args.unseen.check()?;
    let (settings, common) = args.common.prepare()?;
    let (job, resolved, phases) = prepare(args, settings, &common)?;
    let mut trained = train(job, &args.common, resolved, phases)?;
    let summary = trained.summary()?;
    if let Some(directory) = &args.common.model {
        trained.write(directory)?;
    }
    if args.common.wants_summary() {
        common::print(&session::summary(&trained.record))?;
        common::print(&summary)?;
    }
    session::write_record(&trained.record, &args.common)
}

/// Trains.
pub fn train(job: Job, common: &Common, resolved: serde_json::Value, phases: Phases) -> anyhow::Result<Trained> {
    match job.sampler {
        lda::Sampler::Dense => train::train::<Dense>(job, common, resolved, phases),
        lda::Sampler::Sparse => train::train::<Sparse>(job, common, resolved, phases),
        lda::Sampler::Mh => train::train::<Mh>(job, common, resolved, phases),
    }
}

/// Prints what the engine would do.
pub fn plan(args: &Args) -> anyhow::Result<()> {
    let config = args.options.config()?;
    args.unseen.check()?;
    let (settings, _) = args.common.prepare()?;
    let job = load(args, config, settings, &mut Phases::default())?;
    let plan = form::plan(job.sampler, &job.config, &job.tokens, &job.prepared.edges, &job.settings)?;
    crate::plan::show(&plan)
}

/// Returns the bytes that training would need by default.
pub fn memory(edges: &Edges<u32>, settings: &Settings) -> anyhow::Result<u64> {
    let config = Config::new(DEFAULT_TOPICS);
    let tokens = Tokens::count(edges).context("reading edges")?;
    let sampler = lda::Sampler::fastest(config.num_topics);
    Ok(form::plan(sampler, &config, &tokens, edges, settings)?.memory_bytes)
}

/// Loads documents and makes a job of them.
pub fn load(args: &Args, config: Config, settings: Settings, phases: &mut Phases) -> anyhow::Result<Job> {
    let (prepared, test) = corpus::load(&args.source, &args.words, &args.unseen, &args.common, phases)?;
    Job::new(prepared, test, config, &args.options, settings)
}

impl Job {
    /// Makes a job from documents and options.
    pub fn new(
        prepared: Prepared<u32>,
        test: Option<NewDocuments>,
        config: Config,
        options: &Options,
        settings: Settings,
    ) -> anyhow::Result<Self> {
        let tokens = Tokens::count(&prepared.edges).context("reading edges")?;
        let (topics, total) = (config.num_topics, tokens.total);
        if topics as u64 > total {
            return Err(usage(format!("topics is {topics}, more than the {total} tokens; expected fewer")));
        }
        let sampler = options.sampler();
        tokens.check(sampler, topics)?;
        let checksum = input::digest(&prepared.edges, |&count| f64::from(count))?.checksum;
        let Options { topics, iterations, tolerance, evaluate_every, top_words, .. } = *options;
        Ok(Self {
            prepared,
            test,
            tokens,
            config,
            topics,
            sampler,
            checksum,
            iterations,
            tolerance,
            evaluate_every,
            top_words,
            settings,
        })
    }
}
