//! Latent Dirichlet allocation by collapsed Gibbs sampling: finds the topics of a corpus's tokens (Blei, Ng and Jordan 2003;
//! Griffiths and Steyvers 2004).
//!
//! A topic is a distribution over words drawn from Dirichlet(beta), a document's mixture one over topics drawn from
//! Dirichlet(alpha); each token has a topic z drawn from the mixture and a word drawn from the topic. With both distributions
//! integrated out, a token's topic given all others is
//!
//! ```text
//! p(z = k)  ~  (n_dk + alpha_k) (n_wk + beta) / (n_k + V beta)
//! ```
//!
//! with n_dk, n_wk and n_k the tokens of topic k in the document, of the word, and in all, without the token itself. An
//! iteration draws every token's topic anew. [`Sampler`]s: [`dense`] weighs all topics with vector instructions, [`sparse`] those of
//! the document; [`mh`] weighs two proposals, and so needs more iterations, each of which costs the same whatever K.
//!
//! The graph: documents, words, and for each word in a document an edge with the topics of its occurrences. n_dk and n_wk are
//! changed in place, exclusively, or counted from the topics; n_k is a copy of the shared totals and the worker's own changes, merged each clock and
//! looked at every few thousand tokens, so that it may be out of date by what other workers do within a clock.
//!
//! First topics: the first iteration draws most tokens' topics given the tokens placed before (for `mh` only those of the word), the others' uniformly
//! ([`Config::uniform_share`]). The first iterations draw with a larger beta ([`Config::annealing`]). A chain may stay with two
//! true topics in one of its own and another in halves; a few topics more than are wanted make that rare, and [`merge_topics`] gives them up.
//!
//! Input: how often words occur in documents. Memory, beside 2 bytes a token (4 for `mh`) and 8 an edge: see [`Sampler`]. Not for: texts of a
//! few words, whose mixtures are as good as the prior.

mod alias;
mod coherence;
mod config;
pub mod counts;
pub mod dense;
mod drawn;
mod fold_in;
mod histogram;
mod likelihood;
mod map;
mod merge;
pub mod mh;
mod model;
mod prior;
mod program;
pub mod sparse;

use megagrid_stages::Item;

pub use coherence::Occurrences;
pub use config::{Config, DEFAULT_CLOCKS, DEFAULT_UNIFORM_SHARE, DENSE_UP_TO, Prior, Sampler, Tokens};
pub use counts::TopicCounts;
pub use dense::Dense;
pub use fold_in::FoldIn;
pub use likelihood::{Vertices, ln_gamma, log_likelihood, log_likelihood_of_words};
pub use map::{Relevant, TopicMap};
pub use merge::{MERGE_UP_TO, merge_topics};
pub use mh::Mh;
pub use model::{Model, SparseCounts};
pub use prior::FitPrior;
pub use program::{Document, Lda, MergeTotals, Sampling, Topics, UNASSIGNED, Word, Worker};
pub use sparse::Sparse;

/// Returns how many topics an edge carries, whose word occurs so often in its document.
#[must_use]
pub fn edge_len(count: &u32) -> usize {
    *count as usize
}

/// Sets an edge's first topics: none.
pub fn fill_edge<E: Item>(_count: &u32, topics: &mut [E]) {
    bytemuck::cast_slice_mut(topics).fill(UNASSIGNED);
}
