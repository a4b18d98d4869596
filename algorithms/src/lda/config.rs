//! Parameters, and what the engine is to be given for them.

use std::io;

use megagrid_partition::EdgeSource;
use megagrid_stages::Side;

use super::counts::{capacity, topic_bits};
use crate::Error;

/// How topics are drawn. The first two are exact; they differ in speed and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampler {
    /// All topics are weighed with vector instructions, K/16 steps a token. Memory: a row of K at each vertex.
    Dense,
    /// A document's topics are weighed. Memory: min(K, tokens) entries at each vertex.
    Sparse,
    /// One proposal of a document and one of a word are weighed for each token and iteration, whatever K. Memory: 8 bytes a token to
    /// find it from either side, and min(K, tokens) entries at each vertex.
    Mh,
}

/// Whether, and how, the document prior is fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prior {
    /// It stays as given.
    #[default]
    Fixed,
    /// One weight for all topics.
    Symmetric,
    /// A weight for each topic.
    Asymmetric,
}

/// Up to this many topics the dense sampler reaches a likelihood first (measured).
pub const DENSE_UP_TO: usize = 200;

impl Sampler {
    /// Returns the sampler that reaches a likelihood first.
    #[must_use]
    pub fn fastest(num_topics: usize) -> Self {
        if num_topics <= DENSE_UP_TO { Self::Dense } else { Self::Sparse }
    }
}

/// Parameters of latent Dirichlet allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Topics K.
    pub num_topics: usize,
    /// Prior weight of each topic in a document; the first, if it is fitted.
    pub alpha: f32,
    /// Prior weight of each word in a topic.
    pub beta: f32,
    /// Whether and how the document prior is fitted, once annealing has ended. A fixed alpha well above the documents' own blurs
    /// topics: 50/K = 5 where topics were planted with 0.1 recovers next to none.
    pub prior: Prior,
    /// Share of the tokens whose first topic is drawn uniformly; the others' is drawn given the tokens placed before.
    /// 0 begins at the highest likelihood, but often stays with planted topics merged; 1 is the textbook's start.
    pub uniform_share: f32,
    /// Iterations from one fit of the document prior to the next.
    pub optimize_every: u64,
    /// Iterations over which the word prior that topics are drawn with falls from a multiple of beta to beta; 0: it is beta from
    /// the beginning. With a small beta a word hardly enters a topic that it is not in, so that words stay where the first
    /// iterations put them; a larger one lets them move. The likelihood and the model are always those of beta. The
    /// `Mh` sampler draws with beta throughout.
    pub annealing: u64,
    /// How many times beta the word prior is at first, where there is annealing.
    pub annealed_from: f32,
    /// Clocks of an iteration: how often workers tell each other the topic totals.
    pub clocks: u64,
    /// Iterations of a clock, where an iteration is one clock or less.
    pub passes_per_clock: u64,
}

/// Share of uniform first topics: the smallest that finds planted topics nearly as well as a uniform start does.
///
/// | share | topics recovered | log likelihood per token |
/// |---|---|---|
/// | 0 | | -11.52 |
/// | 0.05 | 80 % | -11.70 |
/// | 0.1 | 89 % | -11.76 |
/// | 0.2 | 94 % | -11.83 |
/// | 1 | 99 % | -11.92 |
///
/// Recovered: of ten planted topics, fitting twelve and a symmetric prior, after 200 iterations (mean of 8 runs; after 500 with
/// 0.2 and 1 98 % and 100 %). Likelihood: 3 M generated tokens, 1000 topics, alpha 0.05, after 20 iterations. So less may be better
/// where there are many more topics than the corpus has.
pub const DEFAULT_UNIFORM_SHARE: f32 = 0.2;

/// Returns the iterations of annealing by default: 25, and 10 for more than [`DENSE_UP_TO`] topics. Real texts gain from more,
/// corpora of far fewer topics than are fitted lose:
///
/// | log likelihood per token | none | 10 | 25 | 40 |
/// |---|---|---|---|---|
/// | newsgroups, 100 topics, after 60 iterations | -8.563 | -8.518 | -8.457 | |
/// | uci-kos, 50 topics, after 60 | | | -8.227 | -8.208 |
/// | the same, after 200 | | | -8.117 | -8.113 |
/// | 3 M tokens of 100 planted topics, 100 topics, after 40 | | | -10.485 | -10.520 |
/// | the same, after 60 | -10.403 | | -10.404 | -10.407 |
/// | newsgroups, 1000 topics, after 20 | -9.671 | -8.847 | -8.709 | |
/// | 3 M tokens of 100 planted topics, 1000 topics, after 20 | -11.832 | -11.907 | -12.336 | |
/// | the same, after 30 | -11.729 | -11.764 | -11.844 | |
fn default_annealing(num_topics: usize) -> u64 {
    if num_topics <= DENSE_UP_TO { 25 } else { 10 }
}

/// Clocks of an iteration: more cost waiting, fewer cost likelihood where many workers begin together.
pub const DEFAULT_CLOCKS: u64 = 8;

impl Config {
    /// Returns parameters with the usual priors: alpha = 50/K (Griffiths and Steyvers 2004), beta = 0.01, fixed.
    #[must_use]
    pub fn new(num_topics: usize) -> Self {
        let alpha = 50.0 / num_topics as f32;
        Self {
            num_topics,
            alpha,
            beta: 0.01,
            prior: Prior::Fixed,
            uniform_share: DEFAULT_UNIFORM_SHARE,
            optimize_every: 1,
            annealing: default_annealing(num_topics),
            annealed_from: 10.0,
            clocks: DEFAULT_CLOCKS,
            passes_per_clock: 1,
        }
    }

    /// Begins with this many topics more, which are to be given up after half of the iterations (see
    /// [`merge_topics`](super::merge_topics)). These are there to find all topics, for which time is taken: annealing lasts
    /// two fifths of the iterations and begins with thirty times beta. None: parameters as they were.
    #[must_use]
    pub fn with_extra_topics(self, extra: usize, iterations: u64) -> Self {
        if extra == 0 {
            return self;
        }
        let num_topics = self.num_topics.saturating_add(extra);
        Self { num_topics, annealing: iterations.saturating_mul(2) / 5, annealed_from: 30.0, ..self }
    }

    /// Checks the ranges of all parameters.
    ///
    /// # Errors
    /// The first that is out of range.
    pub fn check(&self) -> Result<(), Error> {
        if !(1..usize::from(u16::MAX) + 1).contains(&self.num_topics) {
            return Err(Error::setting("topics", self.num_topics, "1 to 65535"));
        }
        for (name, value) in [("alpha", self.alpha), ("beta", self.beta)] {
            // Beside larger ones counts are lost to rounding, and so is the likelihood.
            if !(value > 0.0 && value <= 1e6) {
                return Err(Error::setting(name, value, "a number above 0, at most 1e6"));
            }
        }
        if !(0.0..=1.0).contains(&self.uniform_share) {
            return Err(Error::setting("uniform share", self.uniform_share, "0 to 1"));
        }
        if !(self.annealed_from.is_finite() && self.annealed_from >= 1.0) {
            return Err(Error::setting("annealed from", self.annealed_from, "a number of 1 or more"));
        }
        for (name, value) in [("clocks", self.clocks), ("optimize every", self.optimize_every)] {
            if value == 0 {
                return Err(Error::setting(name, value, "1 or more"));
            }
        }
        Ok(())
    }

    /// Returns the word prior that topics are drawn with after some iterations: it falls geometrically to beta.
    pub(super) fn smoothing(&self, iterations: u64) -> f32 {
        let left = self.annealing.saturating_sub(iterations) as f32 / self.annealing.max(1) as f32;
        self.beta * self.annealed_from.powf(left)
    }

    /// Returns the edges of a clock.
    pub(super) fn batch(&self, corpus: &Tokens) -> u64 {
        corpus.edges.div_ceil(self.clocks.max(1)).max(1)
    }
}

/// The tokens of a corpus, counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens of each document, by id.
    pub of_documents: Vec<u64>,
    /// Tokens of each word, by id.
    pub of_words: Vec<u64>,
    /// All tokens.
    pub total: u64,
    /// Pairs of a document and a word in it.
    pub edges: u64,
}

/// Words looked at together.
const WINDOW: usize = 1024;

impl Tokens {
    /// Counts the tokens of edges that carry how often the word occurs in the document.
    ///
    /// # Errors
    /// Edges that cannot be read.
    pub fn count(source: &dyn EdgeSource<u32>) -> io::Result<Self> {
        let mut of_documents = vec![0; source.num_vertices(Side::Left)];
        let mut of_words = vec![0; source.num_vertices(Side::Right)];
        let offsets = source.offsets(Side::Right);
        for first in (0..of_words.len()).step_by(WINDOW) {
            let words = first..(first + WINDOW).min(of_words.len());
            source.visit_rows(Side::Right, words.clone(), &mut |documents, counts| {
                for (&document, &count) in documents.iter().zip(counts) {
                    of_documents[document as usize] += u64::from(count);
                }
                for word in words.clone() {
                    let span = (offsets[word] - offsets[first]) as usize..(offsets[word + 1] - offsets[first]) as usize;
                    of_words[word] = counts[span].iter().map(|&count| u64::from(count)).sum();
                }
            })?;
        }
        let total = of_words.iter().sum();
        Ok(Self { of_documents, of_words, total, edges: source.num_edges() as u64 })
    }

    /// Returns the capacities of counts that are not dense rows, documents' and words'.
    #[must_use]
    pub fn capacities(&self, num_topics: usize) -> [Vec<u32>; 2] {
        let of = |tokens: &[u64]| tokens.iter().map(|&tokens| capacity(num_topics, tokens)).collect();
        [of(&self.of_documents), of(&self.of_words)]
    }

    /// Checks that a sampler can count the corpus's tokens.
    ///
    /// # Errors
    /// A word or document with more than 2^24 tokens for `Dense` and `Mh`; for `Sparse` a document whose tokens of one topic could
    /// be more than an entry holds, 2^32 / K and no fewer than 65,535, or a word with more than 2^32 - 1 tokens.
    pub fn check(&self, sampler: Sampler, num_topics: usize) -> Result<(), Error> {
        let most = |tokens: &[u64]| tokens.iter().copied().max().unwrap_or(0);
        match sampler {
            // Their counts are in single precision.
            Sampler::Dense | Sampler::Mh if most(&self.of_words).max(most(&self.of_documents)) > 1 << 24 => {
                let found = most(&self.of_words).max(most(&self.of_documents));
                Err(Error::setting(
                    "tokens of a word or document",
                    found,
                    "16777216 or fewer but for the sparse sampler",
                ))
            }
            Sampler::Sparse if most(&self.of_documents) >> (32 - topic_bits(num_topics)) > 0 => {
                let found = most(&self.of_documents);
                Err(Error::setting("tokens of a document", found, "fewer for the sparse sampler with so many topics"))
            }
            Sampler::Sparse if most(&self.of_words) > u64::from(u32::MAX) => {
                Err(Error::setting("tokens of a word", most(&self.of_words), "4294967295 or fewer"))
            }
            Sampler::Dense | Sampler::Sparse | Sampler::Mh => Ok(()),
        }
    }
}
