//! Multinomial logistic regression: weights w_k of several classes whose chances have a sum of 1,
//!
//! ```text
//! Σ c_i (log Σ_k exp(w_k·x_i) − w_y·x_i) + Σ_k (l1 |w_k|₁ + l2/2 |w_k|²)
//! ```
//!
//! **Turns.** With the scores of all other classes held, the loss by the weights of class k is that of two classes, k and the rest, with an
//! offset: log(exp z + A) − log A = log(1 + exp(z − log A)), where A sums the exponentials of the other scores. So classes take turns at fitting
//! two classes with [`offsets`], by the stages that there are. Each turn lowers the objective, which is convex, with a penalty that is apart by class:
//! rounds of turns end at the optimum (Tseng 2001).
//!
//! **Shifts.** A weight that is added to a feature of all classes changes no chance. After a round each feature is shifted to where its penalty is
//! least (Friedman, Hastie and Tibshirani 2010, §4.1).
//!
//! **Leaps.** Turns alone zigzag where classes are alike, for thousands of rounds. After each round comes the best step in the space of the last few rounds'
//! changes, all classes together, as in [`leap`](super::Leap) after an iteration of two classes; 20 newsgroups with l1 = 0.5 then take 29 rounds to
//! a relative gap of 1e-4. Where classes and features are few it is Newton's step by all weights, to which likeness of features is nothing: see
//! `newton.rs`.
//!
//! The certificate is that of two classes, with the entropy of chances in place of that of a coin: see `certificate.rs`.

mod certificate;
mod leap;
mod newton;

pub use leap::MOST_ROUNDS;

use std::io;

use megagrid_partition::{EdgeSource, Side, parallel};

use super::quality::log_sum;
use super::{Config, scores};

/// A value for each class, and each feature or sample: `[classes][features]`, `[classes][samples]`.
pub type OfClasses = Vec<Vec<f64>>;

/// Weights of classes and the data that they are to fit.
#[derive(Clone, Copy)]
pub struct FitOfClasses<'d> {
    /// x_ij for samples i, left, and features j, right.
    pub values: &'d dyn EdgeSource<f32>,
    /// The class of each sample.
    pub labels: &'d [u32],
    /// Weights c of samples; all 1 if empty.
    pub sample_weights: &'d [f32],
    /// Which feature is the intercept, which has no penalty.
    pub intercept: Option<usize>,
    /// Weights of each class by feature, the intercept among them.
    pub weights: &'d [Vec<f64>],
    /// Scores w_k·x_i of each class by sample.
    pub scores: &'d [Vec<f64>],
}

impl FitOfClasses<'_> {
    /// Returns the loss.
    #[must_use]
    pub fn loss(&self) -> f64 {
        let of = |sample: usize| {
            self.weight(sample) * (self.log_sum(sample) - self.scores[self.labels[sample] as usize][sample])
        };
        parallel::fill(self.labels.len(), of).into_iter().sum()
    }

    /// Returns the objective.
    #[must_use]
    pub fn objective(&self, config: &Config) -> f64 {
        let penalty = |weights: &Vec<f64>| config.penalty(self.penalized().map(|feature| weights[feature]));
        self.loss() + self.weights.iter().map(penalty).sum::<f64>()
    }

    /// Shifts each feature of all classes to where its penalty is least, and the intercepts to a sum of 0. Chances stay as they are.
    #[must_use]
    pub fn shifted(&self, config: &Config) -> OfClasses {
        let of_feature = |feature: usize| {
            let of_classes: Vec<f64> = self.weights.iter().map(|weights| weights[feature]).collect();
            let (l1, l2) = if self.is_free(feature) { (0.0, 1.0) } else { (config.l1, config.l2) };
            shift(of_classes, l1, l2)
        };
        let shifts = parallel::fill(self.values.num_vertices(Side::Right), of_feature);
        let one = |weights: &Vec<f64>| weights.iter().zip(&shifts).map(|(w, shift)| w - shift).collect();
        self.weights.iter().map(one).collect()
    }

    fn weight(&self, sample: usize) -> f64 {
        self.sample_weights.get(sample).map_or(1.0, |&weight| f64::from(weight))
    }

    fn is_free(&self, feature: usize) -> bool {
        self.intercept == Some(feature)
    }

    /// Returns the features with a penalty.
    fn penalized(&self) -> impl Iterator<Item = usize> {
        let free = self.intercept;
        (0..self.values.num_vertices(Side::Right)).filter(move |&feature| free != Some(feature))
    }

    fn log_sum(&self, sample: usize) -> f64 {
        log_sum(self.scores.iter().map(|of_class| of_class[sample]))
    }

    /// Returns by how much the chance of each class is above what the label says: p_ik − [y_i = k].
    fn excess(&self) -> OfClasses {
        let logs = parallel::fill(self.labels.len(), |sample| self.log_sum(sample));
        let of_class = |class: usize| {
            let pairs = self.scores[class].iter().zip(&logs).zip(self.labels);
            pairs.map(|((score, log), &label)| (score - log).exp() - target(label, class)).collect()
        };
        parallel::map(self.scores.len(), of_class)
    }
}

/// Returns 1 of the class that a sample is of, else 0.
fn target(label: u32, class: usize) -> f64 {
    f64::from(u8::from(label as usize == class))
}

/// Returns the scores of each class.
///
/// # Errors
/// Values that cannot be read.
pub fn scores_of_classes(values: &dyn EdgeSource<f32>, weights: &[Vec<f64>]) -> io::Result<OfClasses> {
    parallel::map(weights.len(), |class| scores(values, &weights[class])).into_iter().collect()
}

/// Returns the offset of each sample's score for the turn of a class: minus the logarithm of the sum of the other scores' exponentials.
#[must_use]
pub fn offsets(scores: &[Vec<f64>], class: usize) -> Vec<f64> {
    let others = |sample: usize| {
        scores.iter().enumerate().filter(move |(at, _)| *at != class).map(move |(_, of_class)| of_class[sample])
    };
    parallel::fill(scores[class].len(), |sample| -log_sum(others(sample)))
}

/// Returns what is to be taken off the weights of one feature, one a class, to make its penalty least: of several values the nearest to 0.
fn shift(mut weights: Vec<f64>, l1: f64, l2: f64) -> f64 {
    let (number, sum) = (weights.len() as f64, weights.iter().sum::<f64>());
    if l1 == 0.0 {
        return sum / number;
    }
    weights.sort_by(f64::total_cmp);
    let [low, high] = [weights[(weights.len() - 1) / 2], weights[weights.len() / 2]];
    if l2 == 0.0 {
        return 0.0_f64.clamp(low, high);
    }
    // The slope at t, with `below` weights below it.
    let slope = |t: f64, below: usize| l2 * (number * t - sum) + l1 * (2.0 * below as f64 - number);
    // The first weight from which the penalty rises; the least is there, or before it.
    let at = (0..weights.len()).find(|&at| slope(weights[at], at + 1) >= 0.0).unwrap_or(weights.len() - 1);
    if slope(weights[at], at) <= 0.0 {
        return weights[at];
    }
    (sum - l1 / l2 * (2.0 * at as f64 - number)) / number
}

#[cfg(test)]
mod tests {
    use super::*;
    use megagrid_partition::SplitMix;

    #[test]
    fn no_shift_is_better() {
        let mut random = SplitMix::new(5, 0);
        for (l1, l2) in [(1.0, 0.0), (0.0, 1.0), (1.0, 0.5), (0.2, 3.0)] {
            for classes in (2..7).cycle().take(60) {
                let weights: Vec<f64> =
                    (0..classes).map(|_| if random.unit() < 0.3 { 0.0 } else { 2.0 * random.unit() - 0.7 }).collect();
                let penalty =
                    |t: f64| weights.iter().map(|w| l1 * (w - t).abs() + 0.5 * l2 * (w - t).powi(2)).sum::<f64>();
                let best = shift(weights.clone(), l1, l2);
                for other in (-200..200).map(|at| f64::from(at) / 50.0).chain(weights.iter().copied()) {
                    assert!(penalty(best) <= penalty(other) + 1e-12, "{l1} {l2} {weights:?}: {best}, not {other}");
                }
            }
        }
        assert_eq!(shift(vec![1.0, -0.5, 0.5, -1.0], 1.0, 0.0), 0.0, "of several the nearest to 0");
    }

    #[test]
    fn an_offset_makes_two_classes_of_many() {
        let scores: Vec<Vec<f64>> = [0.3, -1.0, 2.0].map(|score| vec![score]).to_vec();
        let all: f64 = scores.iter().map(|score| score[0].exp()).sum();
        for (class, score) in scores.iter().enumerate() {
            let margin = score[0] + offsets(&scores, class)[0];
            let chance = 1.0 / (1.0 + (-margin).exp());
            assert!((chance - score[0].exp() / all).abs() < 1e-12);
        }
        assert!(offsets(&[vec![1e4], vec![-1e4]], 0)[0].is_finite());
    }
}
