//! Scores that say how likely classes are.

use serde::{Deserialize, Serialize};

use super::certificate::log_loss;
use super::quality::weight;
use super::sigmoid::sigmoid;

/// The line by which a score becomes one whose logistic function is a probability: `slope · score + offset` (Platt 1999, §2.2), fitted
/// to samples that the score was not fitted to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// What scores are multiplied by.
    pub slope: f64,
    /// What is added to them.
    pub offset: f64,
}

impl Calibration {
    /// Finds the line of the smallest log loss by Newton's method with backtracking (Lin, Lin and Weng 2007, Algorithm 1). Of N₊
    /// samples of label 1 and N₋ of label −1 the one side has the target (N₊ + 1) / (N₊ + 2), the other 1 / (N₋ + 2): of no class so few
    /// samples are sure, and there is a line even where a score tells all classes apart. Samples count by their weights
    /// (empty: all weigh 1), of which only the ratios matter: those above 0 have the mean 1.
    #[must_use]
    pub fn fit(scores: &[f64], labels: &[f32], weights: &[f32]) -> Self {
        let (number, total) = weights
            .iter()
            .filter(|weight| **weight > 0.0)
            .fold((0.0, 0.0), |(number, total), &weight| (number + 1.0, total + f64::from(weight)));
        let unit = if total > 0.0 { total / number } else { 1.0 };
        let weight = |sample: usize| weight(weights, sample) / unit;
        let of = |is: fn(f32) -> bool| {
            let samples = labels.iter().enumerate().filter(|(_, label)| is(**label));
            samples.map(|(sample, _)| weight(sample)).sum::<f64>()
        };
        let [positive, negative] = [of(|label| label > 0.0), of(|label| label <= 0.0)];
        let [high, low] = [(positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0)];
        let pair = |(sample, (&score, &label)): (usize, (&f64, &f32))| Pair {
            score,
            target: if label > 0.0 { high } else { low },
            weight: weight(sample),
        };
        let pairs: Vec<Pair> = scores.iter().zip(labels).enumerate().map(pair).collect();
        let mut line = Self { slope: 0.0, offset: ((positive + 1.0) / (negative + 1.0)).ln() };
        let mut loss = line.loss(&pairs);
        for _ in 0..MOST_STEPS {
            let Some((better, smaller)) = line.step(&pairs, loss) else { break };
            (line, loss) = (better, smaller);
        }
        line
    }

    /// Returns the calibrated score.
    #[must_use]
    pub fn of(&self, score: f64) -> f64 {
        self.slope * score + self.offset
    }

    /// Returns the log loss of scores with their targets.
    fn loss(&self, pairs: &[Pair]) -> f64 {
        let of = |&Pair { score, target, weight }: &Pair| {
            let score = self.of(score);
            weight * (target * log_loss(score) + (1.0 - target) * log_loss(-score))
        };
        pairs.iter().map(of).sum()
    }

    /// Returns the line after a step, and its loss; nothing where this one is as good as any.
    fn step(&self, pairs: &[Pair], loss: f64) -> Option<(Self, f64)> {
        let (mut by_slope, mut by_offset) = (0.0, 0.0);
        let [mut slopes, mut both, mut offsets] = [RIDGE, 0.0, RIDGE];
        for &Pair { score, target, weight } in pairs {
            let chance = sigmoid(self.of(score));
            let (excess, curvature) = (weight * (chance - target), weight * chance * (1.0 - chance));
            by_slope += excess * score;
            by_offset += excess;
            slopes += curvature * score * score;
            both += curvature * score;
            offsets += curvature;
        }
        if by_slope.abs().max(by_offset.abs()) < NEAR {
            return None;
        }
        let determinant = slopes * offsets - both * both;
        let toward_slope = (both * by_offset - offsets * by_slope) / determinant;
        let toward_offset = (both * by_slope - slopes * by_offset) / determinant;
        let descent = by_slope * toward_slope + by_offset * toward_offset;
        let lengths = std::iter::successors(Some(1.0), |length| Some(length / 2.0));
        lengths.take_while(|length| *length >= SHORTEST).find_map(|length: f64| {
            let line = Self { slope: self.slope + length * toward_slope, offset: self.offset + length * toward_offset };
            let found = line.loss(pairs);
            (found < loss + ENOUGH * length * descent).then_some((line, found))
        })
    }
}

/// A sample to fit to.
struct Pair {
    score: f64,
    target: f64,
    weight: f64,
}

/// Newton's steps at most; a few are enough.
const MOST_STEPS: usize = 100;
/// A gradient that ends them.
const NEAR: f64 = 1e-5;
/// Added to the curvature, which vanishes where all scores are the same.
const RIDGE: f64 = 1e-12;
/// The least length of a step.
const SHORTEST: f64 = 1e-10;
/// The part of what the slope promises that a step has to gain.
const ENOUGH: f64 = 1e-4;

#[cfg(test)]
mod tests {
    use megagrid_partition::SplitMix;

    use super::*;

    /// Scores, and labels that are 1 with the chance that a line of them says.
    fn drawn(number: usize, line: Calibration, seed: u64) -> (Vec<f64>, Vec<f32>) {
        let mut random = SplitMix::new(seed, 0);
        let scores: Vec<f64> = (0..number).map(|_| 8.0 * random.unit() - 3.0).collect();
        let chance = |score: f64| 1.0 / (1.0 + (-line.of(score)).exp());
        let labels = scores.iter().map(|&score| if random.unit() < chance(score) { 1.0 } else { -1.0 }).collect();
        (scores, labels)
    }

    /// Follows the gradient in small steps, with its formulas written anew.
    fn naive(scores: &[f64], labels: &[f32]) -> [f64; 2] {
        let count = |sign: f32| labels.iter().filter(|label| **label == sign).count() as f64;
        let (positive, negative) = (count(1.0), count(-1.0));
        let (mut slope, mut offset) = (0.0, 0.0);
        for _ in 0..20_000 {
            let (mut along, mut up) = (0.0, 0.0);
            for (score, label) in scores.iter().zip(labels) {
                let target = if *label == 1.0 { (positive + 1.0) / (positive + 2.0) } else { 1.0 / (negative + 2.0) };
                let excess = 1.0 / (1.0 + (-slope * score - offset).exp()) - target;
                along += excess * score;
                up += excess;
            }
            let step = 0.1 / scores.len() as f64;
            (slope, offset) = (slope - step * along, offset - step * up);
        }
        [slope, offset]
    }

    #[test]
    fn the_line_is_that_of_gradient_descent() {
        for (seed, slope, offset) in [(1, 0.4, 0.3), (2, 1.5, -1.0), (3, -0.7, 0.0)] {
            let (scores, labels) = drawn(60, Calibration { slope, offset }, seed);
            let (found, expected) = (Calibration::fit(&scores, &labels, &[]), naive(&scores, &labels));
            let apart = (found.slope - expected[0]).abs().max((found.offset - expected[1]).abs());
            assert!(apart < 1e-4, "{found:?}, expected {expected:?}, seed {seed}");
        }
    }

    #[test]
    fn a_line_that_labels_were_drawn_by_is_found() {
        let line = Calibration { slope: 0.6, offset: -0.4 };
        let (scores, labels) = drawn(100_000, line, 4);
        let found = Calibration::fit(&scores, &labels, &[]);
        assert!((found.slope - line.slope).abs() < 0.02 && (found.offset - line.offset).abs() < 0.03, "{found:?}");
    }

    #[test]
    fn scores_that_tell_all_or_nothing_have_a_line() {
        let sure = Calibration::fit(&[-2.0, -1.0, 1.0, 2.0], &[-1.0, -1.0, 1.0, 1.0], &[]);
        assert!(sure.slope > 0.0 && sure.slope.is_finite() && sure.offset.abs() < 1e-9, "{sure:?}");
        // Of 3 in 4 the target is 4/5, of the other 1/3, which is 41/60 in the mean.
        let alike = Calibration::fit(&[0.0; 4], &[1.0, 1.0, 1.0, -1.0], &[]);
        let expected = (41.0_f64 / 19.0).ln();
        assert!(alike.slope == 0.0 && (alike.offset - expected).abs() < 1e-4, "{alike:?}, expected {expected}");
        let far = Calibration::fit(&[-1e6, 1e6, 1e6, -1e6], &[-1.0, 1.0, -1.0, 1.0], &[]);
        assert!(far.slope.is_finite() && far.offset.is_finite(), "{far:?}");
    }

    #[test]
    fn weights_count_by_their_ratios() {
        let (scores, labels) = ([-2.0, 0.5, 1.0, -0.3, 2.0, 0.1], [-1.0, 1.0, 1.0, 1.0, 1.0, -1.0]);
        let plain = Calibration::fit(&scores, &labels, &[]);
        for weight in [1e-6, 1.0, 1e4] {
            let found = Calibration::fit(&scores, &labels, &[weight; 6]);
            assert!((found.slope - plain.slope).abs() < 1e-6 && (found.offset - plain.offset).abs() < 1e-6, "{weight}");
        }
        let without = Calibration::fit(&scores[..5], &labels[..5], &[]);
        let found = Calibration::fit(&scores, &labels, &[2.0, 2.0, 2.0, 2.0, 2.0, 0.0]);
        assert!((found.slope - without.slope).abs() < 1e-6, "{found:?}, {without:?}");
    }
}
