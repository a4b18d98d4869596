//! Multinomial logistic regression: weights of several classes that share their chances,
//!
//! ```text
//! Σ c_i (log Σ_k exp(w_k·x_i) − w_y·x_i) + Σ_k (l1 |w_k|₁ + l2/2 |w_k|²)
//! ```
//!
//! **Turns.** With the scores of all other classes held, the loss by the weights of class k is that of two classes, k and the rest, with
//! an offset: log(exp z + A) − log A = log(1 + exp(z − log A)), where A sums the exponentials of the other scores. So the classes take turns at
//! fitting two classes ([`offsets`]), each exactly, as a descent by blocks: the objective is convex, and its penalty apart by block (Tseng 2001).
//!
//! **Shifts.** A weight added to a feature of all classes changes no chance. Turns find its best only slowly, and [`shift`] finds it at once
//! (Friedman, Hastie and Tibshirani 2010, §4.1).
//!
//! **Bound.** For chances α_i with Σ_k α_ik = 1, |Σ_i c_i (α_ik − [y_i = k]) x_ij| ≤ l1 for each class and feature, and
//! Σ_i c_i (α_ik − [y_i = k]) = 0 where there are intercepts, Σ c_i H(α_i) with the entropy H is a lower bound of the objective; with l2 > 0 features
//! may exceed l1 at a price, as for two classes. The α are the model's chances, mixed with one distribution for all samples until the sums are those
//! of the classes, and drawn towards the labels until no feature exceeds l1.

use std::io;

use megagrid_partition::{EdgeSource, Side, parallel};

use super::{Certificate, Config};

/// A model of several classes and the data that it is to fit.
#[derive(Clone, Copy)]
pub struct FitOfClasses<'d> {
    /// x_ij for samples i, left, and features j, right.
    pub values: &'d dyn EdgeSource<f32>,
    /// The class of each sample.
    pub labels: &'d [u32],
    /// Weights c of samples; all 1 if empty.
    pub sample_weights: &'d [f32],
    /// Which feature is the intercept.
    pub intercept: Option<usize>,
    /// Weights of each class by feature, the intercept among them.
    pub weights: &'d [Vec<f64>],
    /// Scores of each class by sample.
    pub scores: &'d [Vec<f64>],
}

impl FitOfClasses<'_> {
    fn weight(&self, sample: usize) -> f64 {
        self.sample_weights.get(sample).map_or(1.0, |&weight| f64::from(weight))
    }

    /// Returns the loss.
    #[must_use]
    pub fn loss(&self) -> f64 {
        let of = |sample: usize| {
            let scores = || self.scores.iter().map(|of_class| of_class[sample]);
            self.weight(sample) * (log_sum(scores()) - self.scores[self.labels[sample] as usize][sample])
        };
        parallel::fill(self.labels.len(), of).into_iter().sum()
    }

    /// Returns the chances of each class by sample.
    fn chances(&self) -> Vec<Vec<f64>> {
        let of = |sample: usize| log_sum(self.scores.iter().map(|of_class| of_class[sample]));
        let logs = parallel::fill(self.labels.len(), of);
        let of_class = |class: usize| {
            let scores = self.scores[class].iter().zip(&logs);
            scores.map(|(score, log)| (score - log).exp()).collect()
        };
        parallel::map(self.scores.len(), of_class)
    }

    /// Returns 1 for a sample of a class, else 0.
    fn target(&self, sample: usize, class: usize) -> f64 {
        f64::from(u8::from(self.labels[sample] as usize == class))
    }

    /// Mixes chances with one distribution for all samples, so that their sums are those of the classes.
    fn balance(&self, chances: &mut [Vec<f64>]) {
        let samples = 0..self.labels.len();
        let sums = parallel::map(chances.len(), |class| {
            let found: f64 = samples.clone().map(|i| self.weight(i) * chances[class][i]).sum();
            let wanted: f64 = samples.clone().map(|i| self.weight(i) * self.target(i, class)).sum();
            (found, wanted)
        });
        let part = |&(found, wanted): &(f64, f64)| if found > 0.0 { (1.0 - wanted / found).max(0.0) } else { 0.0 };
        let part = sums.iter().map(part).fold(0.0, f64::max);
        if part == 0.0 {
            return;
        }
        let all: f64 = sums.iter().map(|(_, wanted)| wanted).sum();
        for (chances, (found, wanted)) in chances.iter_mut().zip(sums) {
            // Not below 0 but for rounding.
            let share = (wanted - (1.0 - part) * found).max(0.0) / (part * all);
            chances.iter_mut().for_each(|chance| *chance = (1.0 - part) * *chance + part * share);
        }
    }

    /// Returns Σ_i c_i (α_ik − [y_i = k]) x_ij of each class and feature.
    fn products(&self, chances: &[Vec<f64>]) -> io::Result<Vec<Vec<f64>>> {
        let of_class = |class: usize| {
            let part = |(sample, chance): (usize, &f64)| self.weight(sample) * (chance - self.target(sample, class));
            let parts: Vec<f64> = chances[class].iter().enumerate().map(part).collect();
            let mut products = vec![0.0; self.values.num_vertices(Side::Right)];
            for (feature, product) in products.iter_mut().enumerate() {
                self.values.visit_rows(Side::Right, feature..feature + 1, &mut |samples, values| {
                    *product +=
                        samples.iter().zip(values).map(|(&i, &x)| f64::from(x) * parts[i as usize]).sum::<f64>();
                })?;
            }
            Ok(products)
        };
        parallel::map(chances.len(), of_class).into_iter().collect()
    }

    /// Returns the entropy of chances that are drawn towards the labels, which keep this part of themselves.
    fn entropy(&self, chances: &[Vec<f64>], part: f64) -> f64 {
        let of_class = |class: usize| {
            let of = |(sample, chance): (usize, &f64)| {
                let target = self.target(sample, class);
                let a = target + part * (chance - target);
                if a > 0.0 { -self.weight(sample) * a * a.ln() } else { 0.0 }
            };
            chances[class].iter().enumerate().map(of).sum::<f64>()
        };
        parallel::map(chances.len(), of_class).into_iter().sum()
    }
}

impl Certificate {
    /// Finds how far a model of several classes is from the optimum at most. Passes over the values once or twice for each class.
    ///
    /// # Errors
    /// Values that cannot be read.
    pub fn of_classes(fit: &FitOfClasses<'_>, config: &Config) -> io::Result<Self> {
        let is_free = |feature: usize| fit.intercept == Some(feature);
        let features = || (0..fit.values.num_vertices(Side::Right)).filter(|&feature| !is_free(feature));
        let mut chances = fit.chances();
        let mut products = fit.products(&chances)?;
        let loss = fit.loss();
        let (mut violation, mut violation_at_zero, mut nonzeros, mut penalty) = (0.0_f64, 0.0_f64, 0, 0.0);
        for (weights, slopes) in fit.weights.iter().zip(&products) {
            for (feature, (&w, &slope)) in weights.iter().zip(slopes).enumerate() {
                let (l1, l2) = if is_free(feature) { (0.0, 0.0) } else { (config.l1, config.l2) };
                let gradient = slope + l2 * w;
                match w == 0.0 {
                    true => violation_at_zero = violation_at_zero.max(gradient.abs() - l1),
                    false => violation = violation.max((gradient + l1 * w.signum()).abs()),
                }
                nonzeros += usize::from(w != 0.0 && !is_free(feature));
            }
            penalty += config.penalty(features().map(|feature| weights[feature]));
        }
        if fit.intercept.is_some() {
            fit.balance(&mut chances);
            products = fit.products(&chances)?;
        }
        let sizes = || products.iter().flat_map(|of_class| features().map(|feature| of_class[feature].abs()));
        let dual = |part: f64| {
            let excess = |size: f64| (part * size - config.l1).max(0.0).powi(2);
            let price = if config.l2 > 0.0 { sizes().map(excess).sum::<f64>() / (2.0 * config.l2) } else { 0.0 };
            fit.entropy(&chances, part) - price
        };
        let drawn = dual((config.l1 / sizes().fold(0.0, f64::max)).min(1.0));
        let bound = if config.l2 > 0.0 { drawn.max(dual(1.0)) } else { drawn };
        let objective = loss + penalty;
        let gap = (objective - bound) / objective.max(f64::MIN_POSITIVE);
        let violation = violation.max(violation_at_zero);
        Ok(Self { objective, loss, bound, gap, violation, violation_at_zero, nonzeros })
    }
}

/// Returns the offset of each sample's score for the turn of a class: minus the logarithm of the sum of the other scores' exponentials.
#[must_use]
pub fn offsets(scores: &[Vec<f64>], class: usize) -> Vec<f64> {
    let others = |sample: usize| {
        scores.iter().enumerate().filter(move |(at, _)| *at != class).map(move |(_, of_class)| of_class[sample])
    };
    parallel::fill(scores[class].len(), |sample| -log_sum(others(sample)))
}

/// Returns log Σ exp, without overflow.
fn log_sum(scores: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = scores.clone().fold(f64::NEG_INFINITY, f64::max);
    most + scores.map(|score| (score - most).exp()).sum::<f64>().ln()
}

/// Returns what is to be taken off the weights of one feature, one a class, to make its penalty least: of several values the nearest to 0.
#[must_use]
pub fn shift(weights: &[f64], l1: f64, l2: f64) -> f64 {
    let (number, sum) = (weights.len() as f64, weights.iter().sum::<f64>());
    if l1 == 0.0 {
        return sum / number;
    }
    let mut sorted = weights.to_vec();
    sorted.sort_by(f64::total_cmp);
    // Half the slope of the penalty between two weights is that of so many below.
    let slope = |t: f64, below: usize| l2 * (number * t - sum) + l1 * (2.0 * below as f64 - number);
    for (below, ends) in (1..).zip(sorted.windows(2)) {
        if slope(ends[0], below) >= 0.0 && !(slope(ends[0], below) == 0.0 && l2 == 0.0) {
            return ends[0];
        }
        if slope(ends[1], below) < 0.0 {
            continue;
        }
        let least = if l2 > 0.0 { (sum - l1 / l2 * (2.0 * below as f64 - number)) / number } else { 0.0 };
        return least.clamp(ends[0], ends[1]);
    }
    sorted.last().copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use megagrid_partition::SplitMix;

    #[test]
    fn no_shift_is_better() {
        let mut random = SplitMix::new(5, 0);
        for (l1, l2) in [(1.0, 0.0), (0.0, 1.0), (1.0, 0.5), (0.2, 3.0)] {
            for classes in 2..7 {
                let weights: Vec<f64> =
                    (0..classes).map(|_| if random.unit() < 0.3 { 0.0 } else { 2.0 * random.unit() - 0.7 }).collect();
                let penalty =
                    |t: f64| weights.iter().map(|w| l1 * (w - t).abs() + 0.5 * l2 * (w - t).powi(2)).sum::<f64>();
                let best = shift(&weights, l1, l2);
                for other in (-200..200).map(|at| f64::from(at) / 50.0) {
                    assert!(penalty(best) <= penalty(other) + 1e-12, "{l1} {l2} {weights:?}: {best}, not {other}");
                }
            }
        }
        assert_eq!(shift(&[-1.0, -0.5, 0.5, 1.0], 1.0, 0.0), 0.0, "of several the nearest to 0");
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
