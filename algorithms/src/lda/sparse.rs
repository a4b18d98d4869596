//! The sparse sampler: exact collapsed Gibbs sampling that costs as much as a document has topics, for many topics.
//!
//! The chance of a topic is split in two:
//!
//! ```text
//! p_k  ~  n_dk phi_k  +  alpha_k phi_k          with phi_k = (n_wk + beta) / (n_k + V beta)
//! ```
//!
//! The first part is 0 but for the topics of the document, and has most of the weight. The second does not depend on the
//! document: its sum is kept up to date in O(1) while the tokens of a word run one after the other. This is the family of
//! SparseLDA (Yao, Mimno and McCallum 2009, whose q bucket runs over the topics of the word) and of F+LDA by words (Yu et al.
//! 2015): a document of a few hundred tokens has fewer topics than a frequent word, so it is the better side to be sparse in.
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Sample`], before a word's tokens | n_wk, n_k | phi in the worker context |
//! | each token | n_dk, phi | its topic, n_dk, phi, the worker's changes of n_k |
//! | after a word's tokens | phi's counts | n_wk |
//! | [`MergeTotals`], each clock | the workers' changes | n_k |

use megagrid_stages::kernels::dot;
use megagrid_stages::kernels::draw::{Change, PackedProduct, Product, Sums, draw, find_packed};
use megagrid_stages::simd::{RowKernel, Vector, row_kernel};
use megagrid_stages::{BatchOrder, BatchSize, Exchange, Left, MiniBatch, Read, Sequence, Side, Stages, Update, mode};

use super::config::{Config, Sampler, Tokens as Corpus};
use super::counts::{Packed, Table, each_entry, has_all_topics, topic_bits};
use super::prior::FitPrior;
use super::program::{
    Cx, Document, Lda, MergeTotals, Sampling, Topics, UNASSIGNED, Word, Worker, first_topic, growth_without_one,
    invert_totals, refresh_interval,
};

/// The sampler, with packed counts at documents, at words packed or dense by their number of tokens. A worker has at hand what
/// the tokens of a word need.
#[derive(Default)]
pub struct Sparse {
    /// `1 / (n_k + V beta)` for each topic, as of the last refresh, and 0 for padding and topics that were given up.
    inverse: Vec<f32>,
    /// phi of each topic; between words that of a word without tokens. One entry for each number of `topic_bits` bits.
    phi: Vec<f32>,
    /// sum_k alpha_k phi_k; `base_mass` is that of a word without tokens.
    mass: f32,
    base_mass: f32,
    /// n_wk of a word that is packed; zeros between words.
    counts: Vec<u32>,
    /// Topics that the word did not have before.
    added: Vec<u16>,
    sums: Vec<Sums>,
}

impl Sampling for Sparse {
    type Documents = Packed;
    type Words = Table;
    type Token = u16;
    const SAMPLER: Sampler = Sampler::Sparse;

    /// Random documents together, and their tokens word by word.
    fn sequence(config: &Config, corpus: &Corpus) -> Sequence<Lda<Self>, impl Stages<Lda<Self>> + use<>> {
        let sample = Sample::new(config, corpus);
        let batch =
            MiniBatch { size: BatchSize::EdgesOf(Side::Left, config.batch(corpus)), order: BatchOrder::RandomBlocks };
        Sequence::new()
            .mini_batch(batch, move |b| b.exchange(sample).global_sync(MergeTotals))
            .global_sync_over(Left, FitPrior(*config))
    }
}

/// Draws each token's topic anew.
pub struct Sample {
    pub(super) num_topics: usize,
    pub(super) topic_bits: u32,
    /// See [`Config::uniform_share`](super::Config).
    pub(super) uniform_share: f32,
    /// Tokens between two copies of the totals.
    pub(super) refresh: u32,
}

impl Sample {
    fn new(config: &Config, corpus: &Corpus) -> Self {
        let Config { num_topics, uniform_share, .. } = *config;
        let refresh = refresh_interval(num_topics, corpus.total);
        Self { num_topics, topic_bits: topic_bits(num_topics), uniform_share, refresh }
    }

    /// Copies the totals, and makes phi that of a word without tokens.
    #[cold]
    fn refresh(&self, worker: &mut Worker<Sparse>, global: &Topics, seed: u64) {
        worker.begin(global, seed, self.refresh);
        let Sparse { inverse, phi, base_mass, counts, sums, .. } = &mut worker.sampler;
        invert_totals(global, &worker.changes, inverse);
        let width = inverse.len();
        sums.resize(width / 16, [0.0; 16]);
        phi.resize((1 << self.topic_bits).max(width), 0.0);
        counts.resize(width, 0);
        phi.iter_mut().zip(inverse).for_each(|(phi, inverse)| *phi = global.smoothing * *inverse);
        // Padding has no weight: its alpha is 0, and no token its topic.
        *base_mass = dot(&global.alpha, &phi[..width]);
    }
}

impl Sparse {
    /// Makes phi that of a word.
    #[inline(always)]
    fn expand(&mut self, entries: &[u32], sample: &Sample, global: &Topics) {
        self.mass = self.base_mass;
        if has_all_topics(entries, sample.num_topics) {
            let phi = self.phi[..entries.len()].iter_mut();
            phi.zip(entries)
                .zip(&self.inverse)
                .for_each(|((phi, &count), inverse)| *phi = (count as f32 + global.smoothing) * inverse);
            self.mass = dot(&global.alpha, &self.phi[..entries.len()]);
            return;
        }
        each_entry(entries, sample.topic_bits, |topic, count| {
            self.counts[topic] = count;
            let more = count as f32 * self.inverse[topic];
            self.phi[topic] += more;
            self.mass += global.alpha[topic] * more;
        });
    }

    /// Writes a word's counts back, and makes phi that of a word without tokens.
    #[inline(always)]
    fn collapse(&mut self, entries: &mut [u32], sample: &Sample, beta: f32) {
        if has_all_topics(entries, sample.num_topics) {
            self.phi[..entries.len()].iter_mut().zip(&self.inverse).for_each(|(phi, inverse)| *phi = beta * inverse);
            return;
        }
        let mask = (1 << sample.topic_bits) - 1;
        let mut kept = 0;
        let mut at = 0;
        while at < entries.len() && entries[at] != 0 {
            let topic = entries[at] & mask;
            at += 1;
            kept += self.take(topic, sample.topic_bits, beta).map_or(0, |entry| {
                entries[kept] = entry;
                1
            });
        }
        let used = at;
        while let Some(topic) = self.added.pop() {
            kept += self.take(u32::from(topic), sample.topic_bits, beta).map_or(0, |entry| {
                entries[kept] = entry;
                1
            });
        }
        if kept < used {
            entries[kept..used].fill(0);
        }
    }

    /// Takes a topic's count, if any, as an entry.
    #[inline(always)]
    fn take(&mut self, topic: u32, topic_bits: u32, beta: f32) -> Option<u32> {
        let at = topic as usize;
        self.phi[at] = beta * self.inverse[at];
        let count = std::mem::take(&mut self.counts[at]);
        (count > 0).then_some(count << topic_bits | topic)
    }

    /// Adds a token to a topic, or removes one.
    #[inline(always)]
    fn shift(&mut self, topic: usize, by: f32, global: &Topics) {
        self.phi[topic] += by;
        self.mass += global.alpha[topic] * by;
    }

    /// Moves a token of the word from a topic, if it has one, to another.
    #[inline(always)]
    fn move_token(&mut self, entries: &mut [u32], num_topics: usize, old: u16, new: u16, global: &Topics) {
        let dense = has_all_topics(entries, num_topics);
        let counts = if dense { entries } else { &mut self.counts[..] };
        if old != UNASSIGNED {
            counts[usize::from(old)] -= 1;
        }
        let topic = usize::from(new);
        counts[topic] += 1;
        if !dense && counts[topic] == 1 {
            self.added.push(new);
        }
        if old != UNASSIGNED {
            self.shift(usize::from(old), -self.inverse[usize::from(old)], global);
        }
        self.shift(topic, self.inverse[topic], global);
    }
}

impl Exchange<Lda<Sparse>> for Sample {
    type Left = mode::Update;
    type Right = mode::Update;
    const GROUPED: bool = true;
    const FIXED_WIDTHS: bool = false;

    #[inline(always)]
    fn begin(&self, word: Read<'_, Word<Table>>, cx: Cx<'_, '_, Sparse>) {
        let worker = &mut *cx.worker;
        if worker.fresh == 0 {
            self.refresh(worker, cx.global, cx.seed);
        }
        worker.sampler.expand(&word.sync.0, self, cx.global);
    }

    #[inline(always)]
    fn end(&self, word: Update<'_, Word<Table>>, cx: Cx<'_, '_, Sparse>) {
        cx.worker.sampler.collapse(&mut word.sync.0, self, cx.global.smoothing);
    }

    #[inline(always)]
    fn exchange(
        &self,
        document: Update<'_, Document<Packed>>,
        word: Update<'_, Word<Table>>,
        topics: &mut [u16],
        cx: Cx<'_, '_, Sparse>,
    ) {
        let (worker, global) = (&mut *cx.worker, cx.global);
        worker.fresh = worker.fresh.saturating_sub(topics.len() as u32);
        row_kernel(Tokens {
            document: &mut document.sync.0,
            word: &mut word.sync.0,
            topics,
            worker,
            global,
            sample: self,
        });
    }
}

/// The tokens of an edge.
struct Tokens<'t> {
    document: &'t mut [u32],
    word: &'t mut [u32],
    topics: &'t mut [u16],
    worker: &'t mut Worker<Sparse>,
    global: &'t Topics,
    sample: &'t Sample,
}

impl RowKernel for Tokens<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { document, word, topics, worker, global, sample } = self;
        for topic in topics {
            let old = *topic;
            let new = sample.token::<V>(document, old, worker, global);
            if new == old {
                continue;
            }
            *topic = new;
            worker.move_token(old, new);
            worker.sampler.move_token(word, sample.num_topics, old, new, global);
        }
    }
}

impl Sample {
    /// Draws a topic for a token and moves the token in the document.
    #[inline(always)]
    fn token<V: Vector>(&self, document: &mut [u32], old: u16, worker: &mut Worker<Sparse>, global: &Topics) -> u16 {
        let bits = self.topic_bits;
        let uniform = worker.uniform();
        let Sparse { inverse, phi, mass, sums, .. } = &mut worker.sampler;
        // `used` entries, of which `at` has the token's topic.
        let (at, used) = find_packed::<V>(document, bits, u32::from(old));
        let (mut change, mut phi_change, mut alpha) = (Change::default(), 0.0, 0.0);
        if old != UNASSIGNED {
            let topic = usize::from(old);
            let (count, phi, inverse) = ((document[at] >> bits) as f32, phi[topic], inverse[topic]);
            // phi without the token, exactly: (n_wk - 1 + beta) / (n_k - 1 + V beta).
            let without = (phi - inverse) * growth_without_one(inverse);
            change = Change { at, by: (count - 1.0) * without - count * phi };
            (phi_change, alpha) = (without - phi, global.alpha[topic]);
        }
        let chunks = used.next_multiple_of(16);
        let of_document = PackedProduct::new(&document[..chunks], bits, phi);
        let rest = *mass + alpha * phi_change;
        let first =
            if old == UNASSIGNED { first_topic(uniform, self.uniform_share, self.num_topics) } else { Err(uniform) };
        let drawn = match first {
            Ok(new) => {
                move_to(document, (at, used), find_packed::<V>(document, bits, new as u32).0, new, bits);
                return new as u16;
            }
            Err(uniform) => {
                let (drawn, mass) = draw::<V, _>(of_document, change, rest, uniform, sums);
                // At its first draw a token's document is not whole.
                if old != UNASSIGNED {
                    worker.drawn.add(mass);
                }
                drawn
            }
        };
        match drawn {
            Ok(drawn) if drawn < used => {
                if drawn != at {
                    let new = document[drawn] & ((1 << bits) - 1);
                    document[drawn] += 1 << bits;
                    remove(document, at, used, bits);
                    return new as u16;
                }
                old
            }
            drawn => {
                let within = drawn.err().unwrap_or(0.0) / rest;
                let weights = Product::new(&global.alpha, &phi[..inverse.len()]);
                let change = Change { at: usize::from(old) % self.num_topics, by: alpha * phi_change };
                let (new, _) = draw::<V, _>(weights, change, 0.0, within, sums);
                let new = new.unwrap_or(0).min(self.num_topics - 1);
                if new != usize::from(old) {
                    move_to(document, (at, used), find_packed::<V>(document, bits, new as u32).0, new, bits);
                }
                new as u16
            }
        }
    }
}

/// Moves a token from the entry `at`, if there is one among those `used`, to a topic that stands `there`, if it does.
#[inline(always)]
fn move_to(document: &mut [u32], (at, used): (usize, usize), there: usize, topic: usize, bits: u32) {
    if there < used {
        document[there] += 1 << bits;
        remove(document, at, used, bits);
    } else if at < used && document[at] >> bits == 1 {
        document[at] = 1 << bits | topic as u32;
    } else {
        remove(document, at, used, bits);
        document[used] = 1 << bits | topic as u32;
    }
}

/// Takes a token from an entry, if there is one; an entry without tokens gives its place to the last.
#[inline(always)]
fn remove(document: &mut [u32], at: usize, used: usize, bits: u32) {
    if at >= used {
        return;
    }
    document[at] -= 1 << bits;
    if document[at] >> bits == 0 {
        document[at] = document[used - 1];
        document[used - 1] = 0;
    }
}
