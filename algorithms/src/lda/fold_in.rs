//! New documents: their topics under a trained model, and how well the model foresees their words.

use megagrid_partition::SplitMix;
use megagrid_stages::simd::{Level, RowKernel, Vector, row_kernel};
use megagrid_stages::{ROW_ALIGN, row_width};

use super::model::{Model, mixture};

/// How new documents are folded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldIn {
    /// Sweeps over a document's words.
    pub sweeps: u32,
    /// Deals the tokens of test documents in two halves.
    pub seed: u64,
    /// The instructions that are used.
    pub level: Level,
}

impl Default for FoldIn {
    fn default() -> Self {
        Self { sweeps: 7, seed: 1, level: Level::detect() }
    }
}

impl FoldIn {
    /// Returns the chances of all topics in a new document, `[num_topics]`, with the model's words held fast: each sweep deals the tokens of
    /// a word w to topics in proportion to `phi_wk m_k`, where `m_k` is the weight of a topic (expectation maximization; CVB0 but for a token's
    /// own share: Asuncion, Welling, Smyth and Teh 2009, "On smoothing and inference for topic models"). Of `n_k` tokens dealt to a topic follows
    /// `n_k + alpha_k`, and the weight goes beyond that: `m_k <- m_k ((n_k + alpha_k) / m_k)^1.5` (Salakhutdinov and Roweis 2003, "Adaptive
    /// overrelaxed bound optimization methods"). `words` are ids with counts; unknown ids are skipped. A document without known words gets the
    /// prior. The result depends only on the words and on the vector level.
    ///
    /// # Complexity
    /// O(sweeps * distinct words * K), sixteen topics at a time.
    #[must_use]
    pub fn chances(&self, model: &Model, words: &[(u32, u32)]) -> Vec<f64> {
        self.chances_of(&Words::new(model), words, &mut Vec::new())
    }

    /// With room for the rows of words.
    fn chances_of(&self, of_words: &Words<'_>, words: &[(u32, u32)], rows: &mut Vec<f32>) -> Vec<f64> {
        let (model, num_topics) = (of_words.model, of_words.model.topics.num_topics());
        let known = || words.iter().filter(|&&(word, count)| (word as usize) < model.words.len() && count > 0);
        let counts: Vec<f32> = known().map(|&(_, count)| count as f32).collect();
        if counts.is_empty() {
            return mixture(&model.topics, std::iter::empty());
        }
        rows.clear();
        known().for_each(|&(word, _)| of_words.push(word, rows));
        let sweeps = Sweeps { fold_in: self, num_topics, rows, counts: &counts, alpha: &of_words.alpha };
        let weights = self.level.run(|| row_kernel(sweeps));
        let weights = weights[..num_topics].iter().map(|&weight| f64::from(weight));
        let total: f64 = weights.clone().sum();
        weights.map(|weight| weight / total).collect()
    }

    /// Returns the perplexity of test documents by document completion: each document's tokens are dealt in two halves at
    /// random, the first is folded in, and the second's words are foreseen. `documents` lists ids of words with counts.
    /// Documents that leave nothing to foresee do not count; where all do, it is no number. Runs on `threads` threads, with the same
    /// result on any number.
    #[must_use]
    pub fn perplexity(&self, model: &Model, documents: &[Vec<(u32, u32)>], threads: usize) -> f64 {
        let of_words = &Words::new(model);
        let part = documents.len().div_ceil(threads.max(1)).max(1);
        let mut terms = vec![(0.0, 0_u64); documents.len()];
        std::thread::scope(|scope| {
            for (n, (terms, documents)) in terms.chunks_mut(part).zip(documents.chunks(part)).enumerate() {
                scope.spawn(move || {
                    let mut room = Vec::new();
                    for (i, (term, document)) in terms.iter_mut().zip(documents).enumerate() {
                        *term = self.completion(of_words, (n * part + i) as u64, document, &mut room);
                    }
                });
            }
        });
        let (logs, tokens) = terms.iter().fold((0.0, 0), |sum, term| (sum.0 + term.0, sum.1 + term.1));
        (-logs / tokens as f64).exp()
    }

    /// Returns the log likelihood of a document's second half, and its tokens.
    fn completion(&self, of_words: &Words<'_>, id: u64, document: &[(u32, u32)], room: &mut Vec<f32>) -> (f64, u64) {
        let mut random = SplitMix::new(self.seed ^ 1, id);
        let (mut seen, mut hidden) = (Vec::new(), Vec::new());
        for &(word, count) in document.iter().filter(|(word, _)| (*word as usize) < of_words.model.words.len()) {
            let first = (0..count).filter(|_| random.below(2) == 0).count() as u32;
            seen.extend((first > 0).then_some((word, first)));
            hidden.extend((first < count).then_some((word, count - first)));
        }
        let chances = self.chances_of(of_words, &seen, room);
        (of_words.log_likelihood(&hidden, &chances), hidden.iter().map(|&(_, count)| u64::from(count)).sum())
    }
}

/// Weights are divided by, and a prior of 0 would leave one at 0.
const LEAST_ALPHA: f32 = 1e-20;

/// The chances of a model's words.
struct Words<'m> {
    model: &'m Model,
    /// Of a token in each topic: 1 / (n_k + V beta), and 0 for padding.
    inverse: Vec<f32>,
    /// alpha_k, and 1 for padding: weights are divided by.
    alpha: Vec<f32>,
}

impl<'m> Words<'m> {
    fn new(model: &'m Model) -> Self {
        let num_topics = model.topics.num_topics();
        let inverse = |topic| (1.0 / model.tokens_with_prior(topic)) as f32;
        let mut inverse: Vec<f32> = (0..num_topics).map(inverse).collect();
        let mut alpha: Vec<f32> = model.topics.alpha[..num_topics].iter().map(|alpha| alpha.max(LEAST_ALPHA)).collect();
        inverse.resize(row_width(num_topics), 0.0);
        alpha.resize(row_width(num_topics), 1.0);
        Self { model, inverse, alpha }
    }

    /// Adds the chances of a word in each topic behind others, with padding.
    fn push(&self, word: u32, rows: &mut Vec<f32>) {
        let first = rows.len();
        rows.extend(self.inverse.iter().map(|inverse| self.model.topics.beta * inverse));
        for (topic, count) in self.model.words.row(word as usize) {
            let topic = usize::from(topic);
            rows[first + topic] += count as f32 * self.inverse[topic];
        }
    }

    /// Returns the log likelihood of words in a document whose topics have these chances.
    fn log_likelihood(&self, words: &[(u32, u32)], chances: &[f64]) -> f64 {
        let of_token: Vec<f64> =
            chances.iter().zip(&self.inverse).map(|(&chance, &one)| chance * f64::from(one)).collect();
        let unseen = f64::from(self.model.topics.beta) * of_token.iter().sum::<f64>();
        let log = |&(word, count): &(u32, u32)| {
            let row = self.model.words.row(word as usize);
            let seen: f64 = row.map(|(topic, count)| f64::from(count) * of_token[usize::from(topic)]).sum();
            f64::from(count) * (unseen + seen).ln()
        };
        words.iter().map(log).sum()
    }
}

/// The sweeps over a document.
struct Sweeps<'s> {
    fold_in: &'s FoldIn,
    num_topics: usize,
    /// The chances of its words, `[words, width]`.
    rows: &'s [f32],
    /// `[words]`.
    counts: &'s [f32],
    /// `[width]`.
    alpha: &'s [f32],
}

impl RowKernel for Sweeps<'_> {
    /// `m_k`, in any unit, `[width]`.
    type Output = Vec<f32>;

    #[inline(always)]
    fn run<V: Vector>(self) -> Vec<f32> {
        let Self { fold_in, num_topics, rows, counts, alpha } = self;
        let first = counts.iter().sum::<f32>() / num_topics as f32;
        let mut weights: Vec<f32> = alpha.iter().map(|alpha| alpha + first).collect();
        let mut shares = vec![0.0; alpha.len()];
        for _ in 0..fold_in.sweeps {
            shares.fill(0.0);
            for (row, count) in rows.chunks_exact(alpha.len()).zip(counts) {
                let row = row.as_chunks::<ROW_ALIGN>().0;
                let mut sum = V::splat(0.0);
                for (row, weight) in row.iter().zip(weights.as_chunks().0) {
                    sum = V::load(row).times_plus(V::load(weight), sum);
                }
                let share = V::splat(count / sum.sum());
                for (row, sum) in row.iter().zip(shares.as_chunks_mut().0) {
                    V::load(row).times_plus(share, V::load(sum)).store(sum);
                }
            }
            let rows = weights.as_chunks_mut().0.iter_mut().zip(shares.as_chunks().0).zip(alpha.as_chunks().0);
            for ((weights, shares), alpha) in rows {
                let before = V::load(weights);
                let now = before.times_plus(V::load(shares), V::load(alpha));
                now.times(now.divided_by(before).square_root()).store(weights);
            }
        }
        weights
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::SparseCounts;
    use super::super::program::Topics;
    use super::*;

    /// Counts that differ by word and topic, of which many are 0.
    fn model(num_topics: usize, num_words: usize) -> Model {
        let alpha: Vec<f32> = (0..num_topics).map(|topic| 0.01 + 0.1 * (topic % 3) as f32).collect();
        let mut topics = Topics::new(&alpha, 0.02, num_words);
        let mut words = SparseCounts::default();
        for word in 0..num_words {
            let counts = (0..num_topics).map(|topic| (topic as u16, (word * word + 7 * topic) as u32 % 11));
            let counts = counts.filter(|&(topic, count)| count > 0 && (word + usize::from(topic)).is_multiple_of(3));
            counts.clone().for_each(|(topic, count)| topics.totals[usize::from(topic)] += i64::from(count));
            words.push(counts);
        }
        Model { topics, words, documents: SparseCounts::default() }
    }

    /// The same in double precision, with all chances of words.
    fn naive(model: &Model, words: &[(u32, u32)], sweeps: u32) -> Vec<f64> {
        let num_topics = model.topics.num_topics();
        let alpha: Vec<f64> = (0..num_topics).map(|topic| model.topics.alpha[topic].into()).collect();
        let total: f64 = words.iter().map(|&(_, count)| f64::from(count)).sum();
        let count = |word: u32, of: usize| {
            let mut row = model.words.row(word as usize);
            row.find(|&(topic, _)| usize::from(topic) == of).map_or(0, |(_, count)| count)
        };
        let mut weights: Vec<f64> = alpha.iter().map(|alpha| total / num_topics as f64 + alpha).collect();
        for _ in 0..sweeps {
            let mut dealt = vec![0.0; num_topics];
            for &(word, tokens) in words {
                let chance = |topic: usize| model.word_chance(topic, count(word, topic)) * weights[topic];
                let all: f64 = (0..num_topics).map(chance).sum();
                dealt.iter_mut().enumerate().for_each(|(n, sum)| *sum += f64::from(tokens) * chance(n) / all);
            }
            for ((weight, n), alpha) in weights.iter_mut().zip(dealt).zip(&alpha) {
                *weight *= ((n + alpha) / *weight).powf(1.5);
            }
        }
        let all: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / all).collect()
    }

    #[test]
    fn chances_are_those_of_a_dense_loop_at_each_level() {
        for num_topics in [1, 5, 16, 40] {
            let model = model(num_topics, 60);
            for len in [1, 2, 30] {
                let words: Vec<(u32, u32)> = (0..len).map(|n| (n * 13 % 60, 1 + n % 4)).collect();
                // What is not known, or not there, changes nothing.
                let with_unknown = [&words[..], &[(60, 5), (7, 0)]].concat();
                for level in Level::available() {
                    for sweeps in [1, 20] {
                        let fold_in = FoldIn { sweeps, level, ..FoldIn::default() };
                        let (found, expected) = (fold_in.chances(&model, &with_unknown), naive(&model, &words, sweeps));
                        let furthest = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                        assert!(furthest < 1e-5, "{level}, {num_topics} topics, {len} words: {furthest}");
                    }
                }
            }
        }
    }
}
