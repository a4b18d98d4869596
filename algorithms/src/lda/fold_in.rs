//! New documents: their topics under a trained model, and how well the model foresees their words.

use megagrid_partition::SplitMix;

use super::model::{Model, mixture};
use super::program::UNASSIGNED;

/// How new documents are folded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldIn {
    /// Sweeps over a document's tokens.
    pub sweeps: u32,
    /// Decides what is drawn.
    pub seed: u64,
}

impl Default for FoldIn {
    fn default() -> Self {
        Self { sweeps: 50, seed: 1 }
    }
}

/// Part of the sweeps after which topics are averaged.
const BURN_IN: u32 = 2;

impl FoldIn {
    /// Returns the chances of all topics in a new document, `[num_topics]`: Gibbs sampling of its tokens with the model's
    /// words held fast, averaged over the second half of the sweeps. `words` are ids with counts; unknown ids are skipped.
    /// A document without known words gets the prior. The result depends only on the seed and on `document`.
    ///
    /// # Complexity
    /// O(sweeps * tokens * K).
    #[must_use]
    pub fn chances(&self, model: &Model, document: u64, words: &[(u32, u32)]) -> Vec<f64> {
        let num_topics = model.topics.num_topics();
        let known: Vec<(u32, u32)> =
            words.iter().copied().filter(|&(word, _)| (word as usize) < model.words.len()).collect();
        let tokens: Vec<usize> =
            known.iter().enumerate().flat_map(|(n, &(_, count))| std::iter::repeat_n(n, count as usize)).collect();
        let phi: Vec<Vec<f32>> = known.iter().map(|&(word, _)| word_chances(model, word)).collect();
        let mut weights = model.topics.alpha[..num_topics].to_vec();
        let mut topics = vec![UNASSIGNED; tokens.len()];
        let (mut random, mut running) = (SplitMix::new(self.seed, document), vec![0.0; num_topics]);
        let (mut sum, mut samples) = (vec![0.0; num_topics], 0.0);
        for sweep in 0..self.sweeps.max(1) {
            for (&token, topic) in tokens.iter().zip(&mut topics) {
                if *topic != UNASSIGNED {
                    weights[usize::from(*topic)] -= 1.0;
                }
                *topic = draw(&weights, &phi[token], &mut running, random.unit()) as u16;
                weights[usize::from(*topic)] += 1.0;
            }
            if sweep >= self.sweeps / BURN_IN {
                sum.iter_mut().zip(&weights).for_each(|(sum, &weight)| *sum += f64::from(weight));
                samples += 1.0;
            }
        }
        if samples == 0.0 {
            return mixture(&model.topics, std::iter::empty());
        }
        let total: f64 = sum.iter().sum();
        sum.iter().map(|weight| weight / total).collect()
    }

    /// Returns the perplexity of test documents by document completion: each document's tokens are dealt in two halves at
    /// random, the first is folded in, and the second's words are foreseen. `documents` lists ids of words with counts.
    /// Documents that leave nothing to foresee do not count. Runs on `threads` threads, with the same result on any number.
    #[must_use]
    pub fn perplexity(&self, model: &Model, documents: &[Vec<(u32, u32)>], threads: usize) -> f64 {
        let part = documents.len().div_ceil(threads.max(1)).max(1);
        let mut terms = vec![(0.0, 0_u64); documents.len()];
        std::thread::scope(|scope| {
            for (n, (terms, documents)) in terms.chunks_mut(part).zip(documents.chunks(part)).enumerate() {
                scope.spawn(move || {
                    for (i, (term, document)) in terms.iter_mut().zip(documents).enumerate() {
                        *term = self.completion(model, (n * part + i) as u64, document);
                    }
                });
            }
        });
        let (logs, tokens) = terms.iter().fold((0.0, 0), |sum, term| (sum.0 + term.0, sum.1 + term.1));
        (-logs / tokens.max(1) as f64).exp()
    }

    /// Returns the log likelihood of a document's second half, and its tokens.
    fn completion(&self, model: &Model, id: u64, document: &[(u32, u32)]) -> (f64, u64) {
        let mut random = SplitMix::new(self.seed ^ 1, id);
        let (mut seen, mut hidden) = (Vec::new(), Vec::new());
        for &(word, count) in document.iter().filter(|(word, _)| (*word as usize) < model.words.len()) {
            let first = (0..count).filter(|_| random.below(2) == 0).count() as u32;
            seen.extend((first > 0).then_some((word, first)));
            hidden.extend((first < count).then_some((word, count - first)));
        }
        let chances = self.chances(model, id, &seen);
        let log = |&(word, count): &(u32, u32)| {
            let phi = word_chances(model, word);
            let chance: f64 = chances.iter().zip(&phi).map(|(&topic, &word)| topic * f64::from(word)).sum();
            f64::from(count) * chance.ln()
        };
        (hidden.iter().map(log).sum(), hidden.iter().map(|&(_, count)| u64::from(count)).sum())
    }
}

/// Returns the chance of a word in each topic.
fn word_chances(model: &Model, word: u32) -> Vec<f32> {
    let mut counts = vec![0; model.topics.num_topics()];
    model.words.row(word as usize).for_each(|(topic, count)| counts[usize::from(topic)] = count);
    counts.iter().enumerate().map(|(topic, &count)| model.word_chance(topic, count) as f32).collect()
}

fn draw(a: &[f32], b: &[f32], running: &mut [f32], uniform: f64) -> usize {
    let mut sum = 0.0;
    for ((running, a), b) in running.iter_mut().zip(a).zip(b) {
        sum += a * b;
        *running = sum;
    }
    let target = uniform as f32 * sum;
    running.partition_point(|&sum| sum <= target).min(running.len() - 1)
}
