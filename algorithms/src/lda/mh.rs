//! The Metropolis-Hastings sampler: a cost per token that does not depend on the number of topics.
//!
//! The chance of a topic is a product of a factor that the document knows and one that the word knows:
//!
//! ```text
//! p_k  ~  (n_dk + alpha_k)  *  (n_wk + beta)  /  (n_k + V beta)
//! ```
//!
//! A token has a topic and a *proposal*. Documents are visited one after the other with all their tokens: each token's
//! proposal, which was drawn with a chance proportional to its word's factor, is accepted or not by what is left of the
//! chance, the document's factor and the total; then a new proposal is drawn from the document's factor. Words are visited
//! the same way, and accept or refuse what documents proposed. A draw from a factor takes one step: it is the topic of
//! another token of the document or word, or one by the prior. So one histogram of K entries is at hand at a time, and
//! nothing else is looked up per topic. This is WarpLDA (Chen, Li, Zhu and Chen 2016), and differs from it in that the
//! histogram at hand follows each acceptance, and that a token is left out of the counts that are its own.
//!
//! What the other side knows is as old as its last visit, half an iteration: the chain is not exactly that of the other samplers,
//! and comes near theirs where vertices have many tokens. For several thousand topics; below, an iteration of the others gains more
//! than it costs.
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Words`], all tokens of a word | their topics and proposals, n_k | both, the worker's changes of n_k |
//! | [`MergeTotals`] | the workers' changes | n_k |
//! | [`Documents`], all tokens of a document | as words | as words |
//! | [`MergeDocuments`] | the workers' changes, documents' counts | n_k, alpha if it is fitted |
//! | [`CountTopics`], where the counts are asked for | topics | n_dk or n_wk |

use megagrid_stages::{GlobalSync, Incident, Left, Right, Sequence, Stages, Update};

use super::alias::Alias;
use super::config::{Config, Prior, Sampler, Tokens};
use super::counts::{Table, has_all_topics, topic_bits};
use super::prior::FitPrior;
use super::program::{Cx, Document, Lda, MergeTotals, Sampling, Topics, UNASSIGNED, Word, Worker};

/// A token: its topic, and what it is proposed to become.
pub type Token = [u16; 2];

/// The sampler. Counts of documents and words are those of the last [`CountTopics`]. A worker has at hand what the tokens of a
/// vertex need.
#[derive(Default)]
pub struct Mh {
    /// For each topic the factor of the vertex, tokens and prior, and `n_k + V beta`; between vertices the first is the prior
    /// only.
    topics: Vec<[f32; 2]>,
    /// The priors of documents and words.
    priors: [Alias; 2],
    /// Counts of a vertex; zeros between vertices.
    counts: Vec<u32>,
}

impl Sampling for Mh {
    type Documents = Table;
    type Words = Table;
    type Token = Token;
    const SAMPLER: Sampler = Sampler::Mh;
    const VISITS: u64 = 2;

    /// Words, then documents.
    fn sequence(config: &Config, _: &Tokens) -> Sequence<Lda<Self>, impl Stages<Lda<Self>> + use<>> {
        Sequence::new()
            .incident(Right, Words { uniform_share: config.uniform_share })
            .global_sync(MergeTotals)
            .incident(Left, Documents { fits: config.prior != Prior::Fixed })
            .global_sync(MergeDocuments(FitPrior(Config { annealing: 0, ..*config })))
    }
}

/// Visits documents: accepts what words proposed, and proposes.
pub struct Documents {
    /// Whether topics are counted for the fit of the prior.
    fits: bool,
}

impl Incident<Lda<Mh>, Document<Table>> for Documents {
    #[inline(always)]
    fn visit(&self, _: Update<'_, Document<Table>>, tokens: &mut [Token], cx: Cx<'_, '_, Mh>) {
        let (worker, global) = (&mut *cx.worker, cx.global);
        if worker.fresh == 0 {
            worker.sampler.priors[0].set(global.alpha[..global.num_topics()].iter().copied());
            begin(worker, global, cx.seed, 0);
        }
        accept(tokens, worker);
        if self.fits {
            count_for_prior(tokens, worker, global.num_topics());
        }
        propose(tokens, worker, 0);
    }
}

/// Visits words: accepts what documents proposed, and proposes; the first time draws first topics.
pub struct Words {
    /// See [`Config::uniform_share`](super::Config).
    uniform_share: f32,
}

impl Incident<Lda<Mh>, Word<Table>> for Words {
    #[inline(always)]
    fn visit(&self, _: Update<'_, Word<Table>>, tokens: &mut [Token], cx: Cx<'_, '_, Mh>) {
        let (worker, global) = (&mut *cx.worker, cx.global);
        if worker.fresh == 0 {
            worker.sampler.priors[1].set(std::iter::repeat_n(global.beta, global.num_topics()));
            begin(worker, global, cx.seed, 1);
        }
        if tokens.first().is_some_and(|token| token[0] == UNASSIGNED) {
            first_topics(tokens, self.uniform_share, worker);
        }
        accept(tokens, worker);
        propose(tokens, worker, 1);
    }
}

/// Begins to visit a side: takes the totals that this worker sees, shared ones and its own changes.
#[cold]
fn begin(worker: &mut Worker<Mh>, global: &Topics, seed: u64, side: usize) {
    worker.begin(global, seed, 1);
    let Worker { sampler: Mh { topics, priors, .. }, changes, .. } = worker;
    let words = global.num_words as f32 * global.beta;
    let seen = global.totals.iter().zip(&*changes).map(|(total, change)| (total + change).max(1) as f32 + words);
    let prior = &priors[side];
    topics.clear();
    topics.extend(seen.enumerate().map(|(topic, total)| [prior.weight(topic), total]));
}

/// Draws first topics of a word's tokens: each by the word's factor, of the tokens before it, or uniformly for a share of them.
#[cold]
fn first_topics(tokens: &mut [Token], uniform_share: f32, worker: &mut Worker<Mh>) {
    let Worker { sampler: Mh { topics, priors, .. }, changes, random, .. } = worker;
    let prior = &priors[1];
    for at in 0..tokens.len() {
        let drawn = random.numbers.unit() * (at as f64 + prior.total());
        let by_prior = drawn >= at as f64 || random.numbers.unit() < f64::from(uniform_share);
        let topic = if by_prior { prior.draw(random.numbers.unit()) } else { tokens[drawn as usize][0] };
        tokens[at] = [topic; 2];
        changes[usize::from(topic)] += 1;
        topics[usize::from(topic)][1] += 1.0;
    }
}

/// Counts a vertex's topics, and gives each token the topic that is proposed with the chance that makes up for what the
/// proposal did not know of: `(n_s + prior_s) / (N_s + V beta) * (N_t + V beta) / (n_t + prior_t)` for a step from t to s, n of
/// the vertex and N of all, both without the token.
#[inline(always)]
fn accept(tokens: &mut [Token], worker: &mut Worker<Mh>) {
    let Worker { sampler: Mh { topics, .. }, changes, random, .. } = worker;
    let (topics, changes) = (&mut topics[..], &mut changes[..]);
    for [topic, _] in &*tokens {
        topics[usize::from(*topic)][0] += 1.0;
    }
    for [topic, proposal] in tokens {
        let (old, new) = (usize::from(*topic), usize::from(*proposal));
        let uniform = (random.numbers.bits() >> 40) as f32 / (1_u64 << 24) as f32;
        let (from, to) = (topics[old], topics[new]);
        if uniform * (from[0] - 1.0) * to[1] < to[0] * (from[1] - 1.0) && old != new {
            topics[old] = [from[0] - 1.0, from[1] - 1.0];
            topics[new] = [to[0] + 1.0, to[1] + 1.0];
            changes[old] -= 1;
            changes[new] += 1;
            *topic = *proposal;
        }
    }
}

/// Draws a proposal for each token, with a chance proportional to the vertex's tokens of a topic, others than this, and the
/// prior; leaves only the prior in the vertex's factors.
#[inline(always)]
fn propose(tokens: &mut [Token], worker: &mut Worker<Mh>, side: usize) {
    let Worker { sampler: Mh { topics, priors, .. }, random, .. } = worker;
    let (topics, prior) = (&mut topics[..], &priors[side]);
    let last = tokens.len().saturating_sub(1);
    let others = last as f64;
    let (scale, per_prior) = ((others + prior.total()) / (1_u64 << 53) as f64, 1.0 / prior.total());
    for at in 0..tokens.len() {
        let drawn = (random.numbers.bits() >> 11) as f64 * scale;
        let other = drawn as usize;
        let other = (other + usize::from(other >= at)).min(last);
        let of_other = tokens[other][0];
        let of_prior = prior.draw(((drawn - others) * per_prior).max(0.0));
        let topic = usize::from(tokens[at][0]);
        tokens[at][1] = if drawn < others { of_other } else { of_prior };
        topics[topic][0] = prior.weight(topic);
    }
}

/// Counts a document's topics for the fit of the prior, and leaves only the prior in its factors.
fn count_for_prior(tokens: &[Token], worker: &mut Worker<Mh>, num_topics: usize) {
    let Worker { sampler: Mh { topics, priors, .. }, histogram, .. } = worker;
    histogram.document(num_topics, |count| {
        for &[topic, _] in tokens {
            let topic = usize::from(topic);
            let prior = priors[0].weight(topic);
            let tokens = (std::mem::replace(&mut topics[topic][0], prior) - prior).round() as usize;
            if tokens > 0 {
                count(topic, tokens);
            }
        }
    });
}

/// Adds the workers' changes to the topic totals, and fits the document prior to what they counted.
pub struct MergeDocuments(FitPrior);

impl GlobalSync<Lda<Mh>> for MergeDocuments {
    fn apply(&self, total: Worker<Mh>, global: &mut Topics) {
        self.0.end_iteration(&total.histogram, global);
        <MergeTotals as GlobalSync<Lda<Mh>>>::apply(&MergeTotals, total, global);
    }
}

/// Counts the topics of each document, or word, to be looked at between iterations.
pub struct CountTopics;

impl Incident<Lda<Mh>, Document<Table>> for CountTopics {
    fn visit(&self, document: Update<'_, Document<Table>>, tokens: &mut [Token], cx: Cx<'_, '_, Mh>) {
        count(&mut document.sync.0, tokens, &mut cx.worker.sampler.counts, cx.global.num_topics());
    }
}

impl Incident<Lda<Mh>, Word<Table>> for CountTopics {
    fn visit(&self, word: Update<'_, Word<Table>>, tokens: &mut [Token], cx: Cx<'_, '_, Mh>) {
        count(&mut word.sync.0, tokens, &mut cx.worker.sampler.counts, cx.global.num_topics());
    }
}

fn count(entries: &mut [u32], tokens: &[Token], counts: &mut Vec<u32>, num_topics: usize) {
    entries.fill(0);
    let topics = || tokens.iter().map(|token| token[0]).filter(|&topic| topic != UNASSIGNED);
    if has_all_topics(entries, num_topics) {
        return topics().for_each(|topic| entries[usize::from(topic)] += 1);
    }
    counts.resize(num_topics, 0);
    topics().for_each(|topic| counts[usize::from(topic)] += 1);
    let (bits, mut used) = (topic_bits(num_topics), 0);
    for topic in topics() {
        let count = std::mem::take(&mut counts[usize::from(topic)]);
        if count > 0 {
            entries[used] = count << bits | u32::from(topic);
            used += 1;
        }
    }
}
