//! The document prior, optimized: alpha that makes the document-topic counts most likely (Minka 2000's fixed point).

use megagrid_stages::{Aggregate, GlobalSync, Total};

use super::config::{Config, Prior};
use super::counts::TopicCounts;
use super::drawn::Draws;
use super::histogram::Histogram;
use super::program::{Document, Lda, Sampling, Topics, Worker};

/// Ends an iteration, or a clock of several: lowers the word prior that topics are drawn with, and fits the document prior where that is due: not
/// while the word prior falls, for documents have more topics then than they keep.
pub struct FitPrior(pub Config);

impl<S: Sampling> Aggregate<Lda<S>, Document<S::Documents>> for FitPrior {
    fn aggregate(&self, document: Total<'_, Document<S::Documents>>, worker: &mut Worker<S>) {
        let Config { prior, num_topics, .. } = self.0;
        if prior == Prior::Fixed {
            return;
        }
        let each = |count: &mut dyn FnMut(usize, usize)| {
            document.sync.each(num_topics, |topic, tokens| count(topic, tokens as usize));
        };
        worker.histogram.document(num_topics, each);
    }
}

impl<S: Sampling> GlobalSync<Lda<S>> for FitPrior {
    fn apply(&self, total: Worker<S>, global: &mut Topics) {
        self.end_iteration(&total.histogram, global);
    }
}

impl FitPrior {
    /// Ends an iteration, or a clock, whose documents were counted.
    pub(super) fn end_iteration(&self, histogram: &Histogram, global: &mut Topics) {
        let before = global.iterations;
        global.iterations += self.0.passes_per_clock;
        let prior = global.alpha.iter().map(|&alpha| f64::from(alpha)).sum();
        global.draws = Draws { drawn: std::mem::take(&mut global.drawn), prior };
        // It does not rise again where a run is continued with a longer annealing.
        let now = self.0.smoothing(global.iterations);
        global.smoothing = now.min(global.smoothing);
        let every = self.0.optimize_every;
        let is_due = global.smoothing <= global.beta && global.iterations / every > before / every;
        if self.0.prior != Prior::Fixed && is_due {
            fit(histogram, self.0.prior, global);
        }
    }
}

/// Steps of the fixed point in one iteration: it is continued in the next.
const STEPS: usize = 5;
/// No weight falls below this, so that every topic can come back.
const LEAST: f64 = 1e-5;

/// alpha_k <- alpha_k (sum_d psi(n_dk + alpha_k) - psi(alpha_k)) / (sum_d psi(n_d + A) - psi(A)), A the sum of all alpha.
fn fit(histogram: &Histogram, prior: Prior, global: &mut Topics) {
    // Topics that were given up stay so.
    let kept: Vec<usize> = (0..global.num_topics()).filter(|&topic| global.is_kept(topic)).collect();
    let mut alpha: Vec<f64> = kept.iter().map(|&topic| f64::from(global.alpha[topic])).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    if prior == Prior::Symmetric {
        let mean = mean(&alpha);
        alpha.fill(mean);
    }
    for _ in 0..STEPS {
        let lengths = digamma_differences(&histogram.lengths, alpha.iter().sum());
        if lengths <= 0.0 {
            return;
        }
        let counts = |topic: usize| histogram.topics.get(topic).map_or(&[][..], Vec::as_slice);
        let mut gains: Vec<f64> =
            kept.iter().zip(&alpha).map(|(&topic, &alpha)| digamma_differences(counts(topic), alpha)).collect();
        if prior == Prior::Symmetric {
            let mean = mean(&gains);
            gains.fill(mean);
        }
        alpha.iter_mut().zip(gains).for_each(|(alpha, gain)| *alpha = (*alpha * gain / lengths).max(LEAST));
    }
    kept.into_iter().zip(alpha).for_each(|(topic, fitted)| global.alpha[topic] = fitted as f32);
}

/// Sums `psi(n + alpha) - psi(alpha) = 1/alpha + 1/(alpha + 1) + ... + 1/(alpha + n - 1)` over a histogram of `n`.
fn digamma_differences(histogram: &[u32], alpha: f64) -> f64 {
    let (mut difference, mut sum) = (0.0, 0.0);
    for (n, &documents) in histogram.iter().enumerate() {
        sum += f64::from(documents) * difference;
        difference += 1.0 / (alpha + n as f64);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use megagrid_partition::SplitMix;

    #[test]
    fn the_word_prior_falls_from_ten_times_beta_to_beta() {
        let annealed = |annealing| Config { annealing, ..Config::new(10) };
        let found = [0, 1, 2, 3, 99].map(|iterations| annealed(2).smoothing(iterations));
        for (found, expected) in found.iter().zip([0.1, 0.031_622_8, 0.01, 0.01, 0.01]) {
            assert!((found - expected).abs() < 1e-6, "{found}, expected {expected}");
        }
        assert_eq!(annealed(0).smoothing(0), 0.01);
    }

    #[test]
    fn the_word_prior_does_not_rise_where_a_run_is_continued() {
        let config = |annealing| Config { annealing, ..Config::new(1) };
        let mut global = config(2).topics(10);
        let mut run = |annealing, iterations| {
            let stage = FitPrior(config(annealing));
            (0..iterations).for_each(|_| stage.end_iteration(&Histogram::default(), &mut global));
            global.smoothing
        };
        assert!(run(2, 1) > 0.03);
        assert_eq!(run(2, 1), 0.01);
        assert_eq!(run(100, 5), 0.01);
    }

    #[test]
    fn draws_are_weighed_with_the_prior_that_they_were_made_with() {
        let config = Config { alpha: 1.0, prior: Prior::Symmetric, annealing: 0, ..Config::new(2) };
        let (stage, mut global) = (FitPrior(config), config.topics(10));
        global.drawn.add(0.5);
        let mut histogram = Histogram { topics: vec![Vec::new(); 2], lengths: Vec::new() };
        Histogram::count(&mut histogram.topics[0], 3);
        Histogram::count(&mut histogram.lengths, 3);
        stage.end_iteration(&histogram, &mut global);
        assert_ne!(global.alpha[0], 1.0, "it was fitted");
        let found = global.draws.per_token(&[1]).unwrap();
        assert!((found - 0.25_f64.ln()).abs() < 1e-12, "one token, half of the prior's mass: {found}");
    }

    /// Documents of two topics drawn as a Polya urn, whose law is the one that is fitted.
    #[test]
    fn the_weights_that_documents_were_drawn_with_are_found() {
        let alpha = [0.3, 1.2];
        let mut random = SplitMix::new(1, 1);
        let mut histogram = Histogram { topics: vec![Vec::new(); 2], lengths: Vec::new() };
        for _ in 0..20_000 {
            let mut urn = alpha;
            for _ in 0..30 {
                let drawn = usize::from(random.unit() * (urn[0] + urn[1]) >= urn[0]);
                urn[drawn] += 1.0;
            }
            for topic in 0..2 {
                Histogram::count(&mut histogram.topics[topic], (urn[topic] - alpha[topic]).round() as usize);
            }
            Histogram::count(&mut histogram.lengths, 30);
        }
        let mut global = Topics::new(&[1.0, 1.0], 0.01, 10);
        (0..100).for_each(|_| fit(&histogram, Prior::Asymmetric, &mut global));
        for (found, expected) in global.alpha.iter().zip(alpha) {
            assert!((f64::from(*found) / expected - 1.0).abs() < 0.05, "{found}, expected {expected}");
        }
        (0..100).for_each(|_| fit(&histogram, Prior::Symmetric, &mut global));
        assert_eq!(global.alpha[0], global.alpha[1]);
    }
}
