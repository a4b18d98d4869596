//! The dense sampler: exact collapsed Gibbs sampling over all topics, for a small number of topics.
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Sample`], each token | n_dk, n_wk, n_k | its topic, n_dk, n_wk, the worker's changes of n_k |
//! | [`MergeTotals`], each clock | the workers' changes | n_k |

use megagrid_stages::kernels::draw::{Change, SmoothedProduct, Sums, draw};
use megagrid_stages::simd::{RowKernel, Vector, row_kernel};
use megagrid_stages::{BatchSize, Exchange, Left, Sequence, Stages, Update, mode};

use super::config::{Config, Sampler, Tokens as Corpus};
use super::prior::FitPrior;
use super::program::{
    Cx, Document, Lda, MergeTotals, Sampling, Topics, UNASSIGNED, Word, Worker, first_topic, growth_without_one,
    invert_totals, refresh_interval,
};

/// The sampler, with a row of counts at each document and word.
#[derive(Default)]
pub struct Dense {
    /// `1 / (n_k + V beta)` for each topic, as of the last refresh, and 0 for padding and topics that were given up.
    inverse: Vec<f32>,
    sums: Vec<Sums>,
}

impl Sampling for Dense {
    type Documents = [f32];
    type Words = [f32];
    type Token = u16;
    const SAMPLER: Sampler = Sampler::Dense;

    /// Tokens in random order.
    fn sequence(config: &Config, corpus: &Corpus) -> Sequence<Lda<Self>, impl Stages<Lda<Self>> + use<>> {
        let sample = Sample::new(config, corpus);
        let batch = BatchSize::Edges(config.batch(corpus));
        Sequence::new()
            .mini_batch(batch, move |b| b.exchange(sample).global_sync(MergeTotals))
            .global_sync_over(Left, FitPrior(*config))
    }
}

/// Draws each token's topic anew: `p_k ~ (n_dk + alpha_k)(n_wk + beta) / (n_k + V beta)`, counts without the token.
pub struct Sample {
    /// Tokens between two copies of the totals.
    pub(super) refresh: u32,
    /// See [`Config::uniform_share`](super::Config).
    pub(super) uniform_share: f32,
}

impl Sample {
    /// Draws with these parameters.
    #[must_use]
    pub fn new(config: &Config, corpus: &Corpus) -> Self {
        let refresh = refresh_interval(config.num_topics, corpus.total);
        Self { refresh, uniform_share: config.uniform_share }
    }

    /// Copies the totals.
    #[cold]
    fn refresh(&self, worker: &mut Worker<Dense>, global: &Topics, seed: u64) {
        worker.begin(global, seed, self.refresh);
        let Dense { inverse, sums } = &mut worker.sampler;
        invert_totals(global, &worker.changes, inverse);
        sums.resize(inverse.len() / 16, [0.0; 16]);
    }
}

impl Exchange<Lda<Dense>> for Sample {
    type Left = mode::Update;
    type Right = mode::Update;

    #[inline(always)]
    fn exchange(
        &self,
        document: Update<'_, Document<[f32]>>,
        word: Update<'_, Word<[f32]>>,
        topics: &mut [u16],
        cx: Cx<'_, '_, Dense>,
    ) {
        let (worker, global) = (&mut *cx.worker, cx.global);
        if worker.fresh == 0 {
            self.refresh(worker, global, cx.seed);
        }
        worker.fresh = worker.fresh.saturating_sub(topics.len() as u32);
        row_kernel(Tokens {
            document: document.sync,
            word: word.sync,
            topics,
            worker,
            global,
            uniform_share: self.uniform_share,
        });
    }
}

/// The tokens of an edge.
struct Tokens<'t> {
    document: &'t mut [f32],
    word: &'t mut [f32],
    topics: &'t mut [u16],
    worker: &'t mut Worker<Dense>,
    global: &'t Topics,
    uniform_share: f32,
}

impl RowKernel for Tokens<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { document, word, topics, worker, global, uniform_share } = self;
        for topic in topics {
            let old = *topic;
            let at = usize::from(old);
            // The counts are not written before the draw, which would have to wait for them.
            let mut change = Change::default();
            if old != UNASSIGNED {
                let (n_d, n_w) = (document[at] + global.alpha[at], word[at] + global.smoothing);
                let inverse = worker.sampler.inverse[at];
                let without = (n_d - 1.0) * (n_w - 1.0) * growth_without_one(inverse);
                let by = (without - n_d * n_w) * inverse;
                change = Change { at, by };
            }
            let uniform = worker.uniform();
            let weights =
                SmoothedProduct::new((document, &global.alpha), (word, global.smoothing), &worker.sampler.inverse);
            let first =
                if old == UNASSIGNED { first_topic(uniform, uniform_share, global.num_topics()) } else { Err(uniform) };
            let drawn = match first {
                Ok(drawn) => drawn,
                Err(uniform) => {
                    let (drawn, mass) = draw::<V, _>(weights, change, 0.0, uniform, &mut worker.sampler.sums);
                    // At its first draw a token's document is not whole.
                    if old != UNASSIGNED {
                        worker.drawn.add(mass);
                    }
                    drawn.unwrap_or(0)
                }
            };
            let new = drawn.min(global.num_topics() - 1);
            if old != UNASSIGNED {
                document[at] -= 1.0;
                word[at] -= 1.0;
            }
            document[new] += 1.0;
            word[new] += 1.0;
            *topic = new as u16;
            worker.move_token(old, new as u16);
        }
    }
}
