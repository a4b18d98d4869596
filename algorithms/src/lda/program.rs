//! What all samplers share: vertices, the worker context, the shared context, and the merging of topic totals.

use std::marker::PhantomData;

use megagrid_partition::SplitMix;
use megagrid_stages::{Combine, Context, GlobalSync, Item, Program, Sequence, Stages, Store, Vertex, row_width};

use super::config::{Config, Sampler, Tokens};
use super::counts::TopicCounts;
use super::drawn::{Drawn, Draws};
use super::histogram::Histogram;

/// A document: how many of its tokens have each topic.
pub struct Document<S: ?Sized>(PhantomData<S>);

impl<S: Store + ?Sized> Vertex for Document<S> {
    type Sync = S;
    type Delta = ();
    type Master = ();
    type Mirror = ();
    const COUNTS: bool = true;
}

/// A word: how many of its tokens have each topic.
pub struct Word<S: ?Sized>(PhantomData<S>);

impl<S: Store + ?Sized> Vertex for Word<S> {
    type Sync = S;
    type Delta = ();
    type Master = ();
    type Mirror = ();
    const COUNTS: bool = true;
}

/// A sampler: how topics are drawn. The type itself is what a worker has at hand for it.
pub trait Sampling: Default + Send + Sized + 'static {
    /// How documents keep their counts of topics.
    type Documents: TopicCounts + ?Sized;
    /// How words keep theirs.
    type Words: TopicCounts + ?Sized;
    /// What an edge keeps for each occurrence of its word in its document: the topic, and what else the sampler needs.
    type Token: Item;
    /// Its name.
    const SAMPLER: Sampler;
    /// How often an iteration visits each edge.
    const VISITS: u64 = 1;

    /// Returns the stages of an iteration.
    fn sequence(config: &Config, corpus: &Tokens) -> Sequence<Lda<Self>, impl Stages<Lda<Self>> + use<Self>>;
}

/// Topic modelling with a sampler.
pub struct Lda<S>(PhantomData<S>);

impl<S: Sampling> Program for Lda<S> {
    type Left = Document<S::Documents>;
    type Right = Word<S::Words>;
    type Edge = [S::Token];
    type Worker = Worker<S>;
    type Global = Topics;
}

/// The topic of a token that none was drawn for yet: every token's before the first iteration.
pub const UNASSIGNED: u16 = u16::MAX;

/// The shared context: topic totals and priors.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Topics {
    /// Tokens of each topic, `[num_topics]`.
    pub totals: Vec<i64>,
    /// Prior weight of each topic in a document, `[num_topics]`, padded with zeros to the width of a row; 0 for a topic that
    /// was given up, of which no token is drawn.
    pub alpha: Vec<f32>,
    /// Prior weight of each word in a topic.
    pub beta: f32,
    /// The weight that topics are drawn with for now: it falls to `beta` over [`Config::annealing`](super::Config).
    pub smoothing: f32,
    /// Iterations that were done.
    pub iterations: u64,
    /// The draws of the iteration under way.
    pub(super) drawn: Drawn,
    /// Those of the last iteration.
    pub draws: Draws,
    /// Words of the vocabulary.
    pub num_words: usize,
}

impl Topics {
    /// Begins without any token. `alpha` has an entry for each topic.
    #[must_use]
    pub fn new(alpha: &[f32], beta: f32, num_words: usize) -> Self {
        let mut padded = alpha.to_vec();
        padded.resize(row_width(alpha.len()), 0.0);
        Self {
            totals: vec![0; alpha.len()],
            alpha: padded,
            beta,
            smoothing: beta,
            iterations: 0,
            num_words,
            ..Self::default()
        }
    }

    /// Returns the number of topics K, with those that were given up.
    #[must_use]
    pub fn num_topics(&self) -> usize {
        self.totals.len()
    }

    /// Tells whether a topic was not given up by [`merge_topics`](super::merge_topics).
    #[must_use]
    pub fn is_kept(&self, topic: usize) -> bool {
        self.alpha[topic] > 0.0
    }

    /// Returns only these topics, in this order.
    pub(super) fn only(&self, topics: &[usize]) -> Self {
        let alpha: Vec<f32> = topics.iter().map(|&topic| self.alpha[topic]).collect();
        let totals = topics.iter().map(|&topic| self.totals[topic]).collect();
        Self {
            totals,
            smoothing: self.smoothing,
            iterations: self.iterations,
            ..Self::new(&alpha, self.beta, self.num_words)
        }
    }

    /// Returns the number of topics that were not given up.
    #[must_use]
    pub fn num_kept(&self) -> usize {
        (0..self.num_topics()).filter(|&topic| self.is_kept(topic)).count()
    }
}

impl Config {
    /// Returns the shared context to begin with.
    #[must_use]
    pub fn topics(&self, num_words: usize) -> Topics {
        let topics = Topics::new(&vec![self.alpha; self.num_topics], self.beta, num_words);
        Topics { smoothing: self.smoothing(0), ..topics }
    }
}

/// The worker context: the worker's own changes of the totals, what it measures, and what its sampler has at hand.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub struct Worker<S> {
    /// What this worker added to the topic totals since the last GlobalSync.
    pub(super) changes: Vec<i64>,
    /// The draws since the last GlobalSync.
    pub(super) drawn: Drawn,
    /// What the optimization of the document prior gathers.
    pub(super) histogram: Histogram,
    #[serde(skip)]
    pub(super) random: Random,
    /// Tokens until the sampler copies the totals again.
    #[serde(skip)]
    pub(super) fresh: u32,
    #[serde(skip)]
    pub(super) sampler: S,
}

/// Random numbers of a clock.
pub(super) struct Random {
    seed: Option<u64>,
    pub(super) numbers: SplitMix,
}

impl Default for Random {
    fn default() -> Self {
        Self { seed: None, numbers: SplitMix::new(0, 0) }
    }
}

impl<S: Default + Send + 'static> Combine for Worker<S> {
    fn combine(&mut self, from: &mut Self) {
        if self.changes.len() < from.changes.len() {
            self.changes.resize(from.changes.len(), 0);
        }
        self.changes.iter_mut().zip(&mut from.changes).for_each(|(sum, part)| sum.combine(part));
        self.histogram.combine(&mut from.histogram);
        self.drawn.combine(&mut from.drawn);
        // The totals that `from` works with are about to change.
        from.fresh = 0;
    }
}

impl<S> Worker<S> {
    /// Returns what this worker added to the topic totals since the last GlobalSync; empty before the first token.
    #[must_use]
    pub fn changes(&self) -> &[i64] {
        &self.changes
    }

    /// Begins to draw for some tokens: makes room for changes, and seeds random numbers for the clock.
    pub(super) fn begin(&mut self, global: &Topics, seed: u64, tokens: u32) {
        self.fresh = tokens;
        self.changes.resize(global.num_topics(), 0);
        if self.random.seed != Some(seed) {
            self.random = Random { seed: Some(seed), numbers: SplitMix::new(seed, 0) };
        }
    }

    /// Returns a number that is uniform in `0..1`.
    #[inline(always)]
    pub(super) fn uniform(&mut self) -> f32 {
        (self.random.numbers.bits() >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// Moves a token from a topic, if it has one, to another in the totals.
    #[inline(always)]
    pub(super) fn move_token(&mut self, old: u16, new: u16) {
        if old != UNASSIGNED {
            self.changes[usize::from(old)] -= 1;
        }
        self.changes[usize::from(new)] += 1;
    }
}

/// Copies the totals that a worker sees, shared ones and its own changes, as `1 / (n_k + V beta)`.
pub(super) fn invert_totals(global: &Topics, changes: &[i64], inverse: &mut Vec<f32>) {
    inverse.resize(global.alpha.len(), 0.0);
    let prior = global.num_words as f32 * global.smoothing;
    let seen = global.totals.iter().zip(changes).zip(&global.alpha);
    for (inverse, ((total, change), &alpha)) in inverse.iter_mut().zip(seen) {
        // With slack a worker may have removed tokens that it does not see in the totals yet.
        *inverse = if alpha > 0.0 { 1.0 / ((total + change).max(0) as f32 + prior) } else { 0.0 };
    }
}

/// Returns the factor that `1 / (n + V beta)` grows by where a topic is without one of its tokens.
#[inline(always)]
pub(super) fn growth_without_one(inverse: f32) -> f32 {
    // A total out of date may be without the token already.
    if inverse < 1.0 { 1.0 / (1.0 - inverse) } else { 1.0 }
}

/// Adds the workers' changes to the topic totals.
pub struct MergeTotals;

impl<S: Sampling> GlobalSync<Lda<S>> for MergeTotals {
    fn apply(&self, mut total: Worker<S>, global: &mut Topics) {
        global.drawn.combine(&mut total.drawn);
        global.totals.iter_mut().zip(&total.changes).for_each(|(total, change)| *total += change);
        debug_assert!(global.totals.iter().all(|&total| total >= 0), "a topic has no fewer than 0 tokens");
    }
}

/// How often a worker copies the totals: after this many tokens for each topic.
const REFRESH: u64 = 8;
/// In a corpus of fewer tokens the copies are made more often, in proportion.
const REFRESHES: u64 = 4096;

/// Returns after how many tokens a worker copies the totals.
#[must_use]
pub(super) fn refresh_interval(num_topics: usize, num_tokens: u64) -> u32 {
    (REFRESH * num_topics as u64).min(num_tokens / REFRESHES).max(1) as u32
}

/// What an edge function of LDA is given beside its vertices.
pub(super) type Cx<'c, 'p, S> = &'c mut Context<'p, Lda<S>>;

/// Splits a uniform number: a topic drawn uniformly for a share of the tokens, else a uniform number for another draw.
#[inline(always)]
pub(super) fn first_topic(uniform: f32, share: f32, num_topics: usize) -> Result<usize, f32> {
    if uniform < share {
        Ok(((uniform / share * num_topics as f32) as usize).min(num_topics - 1))
    } else {
        Err((uniform - share) / (1.0 - share))
    }
}
