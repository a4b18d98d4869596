//! Options of topic models.

use std::fmt;
use std::str::FromStr;

use megagrid_algorithms::lda::{self, Config, DEFAULT_CLOCKS, Prior};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::options::{by_default, check_tolerance, check_work_per_clock, passes_per_clock};
use crate::{Error, Options};

/// How topics are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
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

/// Whether the document prior is fitted to the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
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

/// The prior weight of a topic in a document: a number, or a sum that all topics share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alpha {
    /// The number.
    pub weight: f64,
    /// Whether all topics share it.
    pub shared: bool,
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

impl Serialize for Alpha {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.shared { to.collect_str(self) } else { to.serialize_f64(self.weight) }
    }
}

impl<'de> Deserialize<'de> for Alpha {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(f64),
            Text(String),
        }
        match Either::deserialize(from)? {
            Either::Number(weight) => Ok(Self { weight, shared: false }),
            Either::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
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

/// Options of topic models.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct TopicOptions {
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
    #[arg(long, value_enum, default_value_t = PriorChoice::Symmetric)]
    pub prior: PriorChoice,
    /// Fit alpha after every N-th iteration only.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub optimize_every: u64,
    /// Iterations over which topics are drawn with a larger beta than --beta, ten times as large at first, with --extra-topics
    /// thirty times, which lets words find their topics sooner; 0: none [default: 25, with more than 200 topics 10, with
    /// --extra-topics 2/5 of --iterations]. The sampler mh has none.
    #[arg(long, value_name = "N")]
    pub annealing: Option<u64>,
    /// How topics are drawn.
    #[arg(long, value_enum, default_value_t = Sampler::Auto)]
    pub sampler: Sampler,
    /// Passes over the tokens.
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// End when the log likelihood changes by no more than this part of itself [default: 0, never].
    #[arg(long, default_value_t = 0.0, hide_default_value = true, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Top words of each topic that are shown and whose coherence is measured; 0: none.
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub top_words: usize,
    /// Iterations from one clock to the next, at each of which topic totals are merged: above 0, at most 1, or a whole number. The
    /// sampler mh merges them after words and after documents instead.
    #[arg(long, value_name = "X", default_value_t = 1.0 / DEFAULT_CLOCKS as f64, allow_negative_numbers = true, help_heading = "Consistency")]
    pub work_per_clock: f64,
}

/// Passes over new documents, whose words mostly have their topics, if nothing is said.
const PASSES_OF_NEW: u64 = 20;

/// Topics, if nothing is said.
const DEFAULT_TOPICS: usize = 100;

impl Default for TopicOptions {
    fn default() -> Self {
        by_default()
    }
}

impl TopicOptions {
    /// Returns the options with which an update goes on.
    pub(super) fn continued(&self) -> Self {
        let iterations = PASSES_OF_NEW.min(self.iterations);
        Self { iterations, annealing: None, extra_topics: 0, ..self.clone() }
    }

    /// Returns the parameters.
    #[must_use]
    pub fn config(&self) -> Config {
        let defaults = Config::new(self.topics).with_extra_topics(self.extra_topics, self.iterations);
        Config {
            alpha: self.first_alpha() as f32,
            beta: self.beta,
            prior: self.prior.into(),
            optimize_every: self.optimize_every,
            annealing: self.annealing.unwrap_or(defaults.annealing),
            clocks: (1.0 / self.work_per_clock).round().max(1.0) as u64,
            passes_per_clock: passes_per_clock(self.work_per_clock),
            ..defaults
        }
    }

    pub(super) fn first_alpha(&self) -> f64 {
        let default = if self.prior == PriorChoice::Fixed { Alpha::FIXED } else { Alpha::FITTED };
        self.alpha.unwrap_or(default).of_topic(self.topics)
    }

    /// Returns the sampler.
    #[must_use]
    pub fn sampler(&self) -> lda::Sampler {
        match self.sampler {
            Sampler::Auto => lda::Sampler::fastest(self.topics),
            Sampler::Dense => lda::Sampler::Dense,
            Sampler::Sparse => lda::Sampler::Sparse,
            Sampler::Mh => lda::Sampler::Mh,
        }
    }

    fn check_extra_topics(&self) -> Result<(), Error> {
        let Self { topics, extra_topics, iterations, .. } = *self;
        if extra_topics == 0 {
            return Ok(());
        }
        if self.sampler == Sampler::Mh {
            return Err(Error::option("extra-topics is not for the sampler mh"));
        }
        if topics.saturating_add(extra_topics) > lda::MERGE_UP_TO {
            let most = lda::MERGE_UP_TO;
            return Err(Error::option(format!(
                "topics and extra-topics are {topics} and {extra_topics}; expected {most} at most"
            )));
        }
        if iterations < 2 {
            let message = "extra-topics are given up after half of the iterations; expected 2 iterations or more";
            return Err(Error::option(message));
        }
        Ok(())
    }
}

impl Options for TopicOptions {
    const FREE: &'static [&'static str] =
        &["iterations", "tolerance", "top_words", "work_per_clock", "optimize_every", "annealing"];

    fn check(&self) -> Result<(), Error> {
        check_work_per_clock(self.work_per_clock)?;
        self.config().check()?;
        self.check_extra_topics()?;
        if self.optimize_every != 1 && self.prior == PriorChoice::Fixed {
            let message = "optimize-every is for a prior that is fitted; leave it out, or choose another --prior";
            return Err(Error::option(message));
        }
        if self.annealing.unwrap_or(0) > 0 && self.sampler == Sampler::Mh {
            let message = "annealing is not for the sampler mh; leave it out, or choose another --sampler";
            return Err(Error::option(message));
        }
        check_tolerance(self.tolerance)
    }

    fn iterations(&self) -> u64 {
        self.iterations
    }

    fn tolerance(&self) -> f64 {
        self.tolerance
    }
}
