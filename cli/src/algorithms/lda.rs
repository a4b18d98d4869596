//! Options of `megagrid lda`.

use std::path::PathBuf;

use megagrid_algorithms::lda::{Config, DEFAULT_CLOCKS};
use megagrid_datasets::Split;
use megagrid_training::lda::{Alpha, Origin, PriorChoice, Sampler, TopicModel, TopicModels, TopicOptions, Words};
use megagrid_training::record::Record;

use crate::choice::{Choice, choice};
use crate::curve::{Series, draw};
use crate::data::Kind;
use crate::entry::Trains;
use crate::failure::usage;
use crate::source::Source;

impl Choice for Sampler {
    const VALUES: &'static [(&'static str, &'static str)] = &[
        ("auto", "Whichever is sooner at a likelihood: dense up to 200 topics, sparse above"),
        ("dense", "Over all topics, with vector instructions"),
        ("sparse", "Over the topics of a document, and the rest at once"),
        (
            "mh",
            "Metropolis-Hastings, two proposals for each token and iteration: for several thousand topics, with more iterations",
        ),
    ];
}

impl Choice for PriorChoice {
    const VALUES: &'static [(&'static str, &'static str)] = &[
        ("fixed", "It stays as given"),
        ("symmetric", "One weight for all topics, fitted"),
        ("asymmetric", "A weight for each topic, fitted"),
    ];
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
pub struct Options {
    /// Take words in lower case (plain text).
    #[arg(long, help_heading = "Words")]
    pub lower_case: bool,
    /// What separates words in plain text: space, or punctuation as well.
    #[arg(long, value_name = "space|punctuation", default_value = "space", help_heading = "Words")]
    pub split: Split,
    /// Leave out words of fewer characters.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "Words")]
    pub min_word_length: usize,
    /// Leave out words: none, english (a built-in list), or those in a file.
    #[arg(long, value_name = "none|english|FILE", default_value = "none", help_heading = "Words")]
    pub stop_words: PathBuf,
    /// Leave out words that occur in fewer documents; 0 keeps words of the vocabulary that do not occur.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Words")]
    pub min_documents: u64,
    /// Leave out words that occur in more than this part of the documents: above 0, at most 1.
    #[arg(long, value_name = "F", default_value_t = 1.0, allow_negative_numbers = true, help_heading = "Words")]
    pub max_documents: f64,
    /// Documents whose other half is predicted from every other token, at each evaluation, in any text format.
    #[arg(long, value_name = "FILE", conflicts_with = "holdout", help_heading = "Quality on unseen documents")]
    pub test: Option<PathBuf>,
    /// Part of the documents, above 0 and below 1, to keep for that.
    #[arg(long, value_name = "F", allow_negative_numbers = true, help_heading = "Quality on unseen documents")]
    pub holdout: Option<f64>,
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
    #[arg(long, default_value = "symmetric", value_parser = choice::<PriorChoice>())]
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
    #[arg(long, default_value = "auto", value_parser = choice::<Sampler>())]
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

/// Topics, if nothing is said.
const DEFAULT_TOPICS: usize = 100;

impl Trains for Options {
    type Algorithm = TopicModels;
    const KIND: Kind = Kind::Corpus;

    fn options(&self) -> anyhow::Result<TopicOptions> {
        Ok(TopicOptions {
            topics: self.topics,
            extra_topics: self.extra_topics,
            alpha: self.alpha,
            beta: self.beta,
            prior: self.prior,
            optimize_every: self.optimize_every,
            annealing: self.annealing,
            sampler: self.sampler,
            iterations: self.iterations,
            tolerance: self.tolerance,
            top_words: self.top_words,
            work_per_clock: self.work_per_clock,
        })
    }

    fn take_positive(&mut self) -> anyhow::Result<Vec<f32>> {
        if self.lower_case || self.split != Split::Space {
            return Err(usage("--cache keeps words as they are in the text; leave out --lower-case and --split"));
        }
        Ok(Vec::new())
    }

    fn origin(&self, source: &Source) -> Origin {
        let words = Words {
            lower_case: self.lower_case,
            split: self.split,
            min_word_length: self.min_word_length,
            stop_words: self.stop_words.clone(),
            min_documents: self.min_documents,
            max_documents: self.max_documents,
        };
        Origin { source: source.to_read(), words, test: self.test.clone(), holdout: self.holdout }
    }

    /// Lists the topics below a curve of the likelihood.
    fn findings(record: &Record, model: &TopicModel) -> String {
        curve(record) + &megagrid_training::Model::findings(model)
    }
}

/// Points of the curve, at most.
const POINTS: usize = 24;

/// Draws the log likelihood per token over iterations.
fn curve(record: &Record) -> String {
    let values: Vec<(u64, f64)> = record
        .iterations
        .iter()
        .filter_map(|one| one.metrics.get("per_token").map(|&value| (one.iteration, value)))
        .collect();
    let (Some(&(_, last)), true) = (values.last(), values.len() > 2) else { return String::new() };
    let step = values.len().div_ceil(POINTS);
    let drawn: Vec<f64> =
        values.iter().skip((values.len() - 1) % step).step_by(step).map(|&(_, value)| value).collect();
    let mut plot = draw(&[Series { mark: '●', values: &drawn }], last);
    // Its axis counts points, of which some iterations have none.
    plot.truncate(plot.trim_end().rfind('\n').unwrap_or(plot.len()));
    let (first, end) = (values[(values.len() - 1) % step].0, values[values.len() - 1].0);
    format!("\nLog likelihood per token, iterations {first} to {end}\n{plot}\n")
}
