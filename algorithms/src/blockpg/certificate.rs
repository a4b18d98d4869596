//! How far a model is from the optimum at most, computed in f64 from the weights only.
//!
//! For any α with 0 ≤ α_i ≤ c_i, |Σ_i α_i y_i x_ij| ≤ l1 for each feature and Σ_i α_i y_i = 0 where there is an intercept,
//!
//! ```text
//! D(α) = Σ c_i H(α_i / c_i),      H(a) = −a log a − (1 − a) log(1 − a)
//! ```
//!
//! is a lower bound of the objective (Yuan, Chang, Hsieh and Lin 2010, §2; Kim, Koh and Boyd 2007). With l2 > 0 features
//! may exceed l1, at the price of (|Σ_i α_i y_i x_ij| − l1)² / (2 l2). The α are cτ of the model, the ones of the class that
//! has more of them shrunk to the others' sum, and all shrunk until no feature exceeds l1.

use std::io;

use megagrid_partition::{EdgeSource, Side};

use super::Config;
use super::optimality::EXCESS;

/// A model and the data that it is to fit.
#[derive(Clone, Copy)]
pub struct Fit<'d> {
    /// x_ij for samples i, left, and features j, right.
    pub values: &'d dyn EdgeSource<f32>,
    /// Labels, −1 or 1.
    pub labels: &'d [f32],
    /// Weights c of samples; all 1 if empty.
    pub sample_weights: &'d [f32],
    /// Which feature is the intercept.
    pub intercept: Option<usize>,
    /// Weights of features, the intercept among them.
    pub weights: &'d [f64],
}

/// What is known for certain of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Certificate {
    /// Loss and penalty.
    pub objective: f64,
    /// Σ c_i log(1 + exp(−m_i)).
    pub loss: f64,
    /// No model has a lower objective than this.
    pub bound: f64,
    /// (objective − bound) / objective.
    pub gap: f64,
    /// The largest violation of the optimality conditions: of |g| ≤ l1 at zero, of g = −l1 sign(w) − l2 w elsewhere.
    pub violation: f64,
    /// The largest |g| − l1 of a feature whose weight is zero, or 0.
    pub violation_at_zero: f64,
    /// Weights that are not zero, the intercept not counted.
    pub nonzeros: usize,
}

impl Certificate {
    /// Passes twice over the values, one thread.
    ///
    /// # Errors
    /// Values that cannot be read.
    pub fn new(fit: &Fit<'_>, config: &Config) -> io::Result<Self> {
        let scores = scores(fit.values, fit.weights)?;
        let label = |sample: usize| f64::from(fit.labels[sample]);
        let margins: Vec<f64> = scores.iter().enumerate().map(|(i, score)| label(i) * score).collect();
        let weight = |sample: usize| fit.sample_weights.get(sample).map_or(1.0, |&weight| f64::from(weight));
        let loss = margins.iter().enumerate().map(|(i, &margin)| weight(i) * log_loss(margin)).sum::<f64>();
        let features = || (0..fit.weights.len()).filter(|&j| fit.intercept != Some(j));
        let objective = loss + config.penalty(features().map(|j| fit.weights[j]));

        let slopes: Vec<f64> =
            margins.iter().enumerate().map(|(i, &margin)| weight(i) / (1.0 + margin.exp())).collect();
        let gradients = products(fit, &slopes)?;
        let (mut violation, mut violation_at_zero) = (0.0_f64, 0.0_f64);
        for (j, (&w, product)) in fit.weights.iter().zip(&gradients).enumerate() {
            let (l1, l2) = if fit.intercept == Some(j) { (0.0, 0.0) } else { (config.l1, config.l2) };
            let gradient = l2 * w - product;
            if w == 0.0 {
                violation_at_zero = violation_at_zero.max(gradient.abs() - l1);
            } else {
                violation = violation.max((gradient + l1 * w.signum()).abs());
            }
        }

        let (alphas, products) = match fit.intercept {
            Some(_) => {
                let balanced = balance(slopes, fit.labels);
                let products = products(fit, &balanced)?;
                (balanced, products)
            }
            None => (slopes, gradients),
        };
        let dual = |scale: f64| {
            let entropy = |(i, &alpha): (usize, &f64)| weight(i) * entropy(scale * alpha / weight(i));
            let excess = |j: usize| (scale * products[j].abs() - config.l1).max(0.0).powi(2);
            let price = if config.l2 > 0.0 { features().map(excess).sum::<f64>() / (2.0 * config.l2) } else { 0.0 };
            alphas.iter().enumerate().filter(|(i, _)| weight(*i) > 0.0).map(entropy).sum::<f64>() - price
        };
        let largest = features().map(|j| products[j].abs()).fold(0.0, f64::max);
        let shrunk = dual((config.l1 / largest).min(1.0));
        let bound = if config.l2 > 0.0 { shrunk.max(dual(1.0)) } else { shrunk };
        let nonzeros = features().filter(|&j| fit.weights[j] != 0.0).count();
        let gap = (objective - bound) / objective.max(f64::MIN_POSITIVE);
        let violation = violation.max(violation_at_zero);
        Ok(Self { objective, loss, bound, gap, violation, violation_at_zero, nonzeros })
    }

    /// Adds what is known of another model that is fitted apart: of both together.
    pub fn join(&mut self, other: &Self) {
        self.objective += other.objective;
        self.loss += other.loss;
        self.bound += other.bound;
        self.gap = (self.objective - self.bound) / self.objective.max(f64::MIN_POSITIVE);
        self.violation = self.violation.max(other.violation);
        self.violation_at_zero = self.violation_at_zero.max(other.violation_at_zero);
        self.nonzeros += other.nonzeros;
    }

    /// Tells whether the objective is within this part of the optimum's, with no weight at zero that ought to be another.
    #[must_use]
    pub fn is_within(&self, tolerance: f64, config: &Config) -> bool {
        // Without l1 no weight is held at zero.
        self.gap <= tolerance && (config.l1 == 0.0 || self.violation_at_zero <= EXCESS * config.l1)
    }
}

/// Returns log(1 + exp(−margin)), without overflow.
#[must_use]
pub fn log_loss(margin: f64) -> f64 {
    (-margin.abs()).exp().ln_1p() + (-margin).max(0.0)
}

/// Returns the entropy of a coin that shows heads with chance `a`, in nats.
fn entropy(a: f64) -> f64 {
    let part = |a: f64| if a > 0.0 { -a * a.ln() } else { 0.0 };
    part(a) + part(1.0 - a)
}

/// Shrinks the α of the class with the larger sum, so that both sums are the same.
fn balance(mut alphas: Vec<f64>, labels: &[f32]) -> Vec<f64> {
    let sum = |positive: bool| -> f64 {
        alphas.iter().zip(labels).filter(|(_, label)| (**label > 0.0) == positive).map(|(alpha, _)| alpha).sum()
    };
    let (positive, negative) = (sum(true), sum(false));
    let shrinks = positive > negative;
    let scale = if shrinks { negative / positive } else { positive / negative.max(f64::MIN_POSITIVE) };
    alphas
        .iter_mut()
        .zip(labels)
        .filter(|(_, label)| (**label > 0.0) == shrinks)
        .for_each(|(alpha, _)| *alpha *= scale);
    alphas
}

/// Returns the score w·x_i of each sample.
///
/// # Errors
/// Values that cannot be read.
pub fn scores(values: &dyn EdgeSource<f32>, weights: &[f64]) -> io::Result<Vec<f64>> {
    let mut scores = vec![0.0; values.num_vertices(Side::Left)];
    for (j, &w) in weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
        values.visit_rows(Side::Right, j..j + 1, &mut |samples, values| {
            samples.iter().zip(values).for_each(|(&i, &x)| scores[i as usize] += f64::from(x) * w);
        })?;
    }
    Ok(scores)
}

/// Returns Σ_i α_i y_i x_ij of each feature.
fn products(fit: &Fit<'_>, alphas: &[f64]) -> io::Result<Vec<f64>> {
    let signed: Vec<f64> = alphas.iter().zip(fit.labels).map(|(alpha, &label)| alpha * f64::from(label)).collect();
    let mut products = vec![0.0; fit.values.num_vertices(Side::Right)];
    for (j, product) in products.iter_mut().enumerate() {
        fit.values.visit_rows(Side::Right, j..j + 1, &mut |samples, values| {
            *product += samples.iter().zip(values).map(|(&i, &x)| f64::from(x) * signed[i as usize]).sum::<f64>();
        })?;
    }
    Ok(products)
}

#[cfg(test)]
mod tests {
    use super::*;
    use megagrid_partition::{EdgeList, GroupedEdges};

    #[test]
    fn the_bound_is_met_at_the_optimum_of_one_feature_and_holds_elsewhere() {
        // Four samples with x = 1, three of label 1: with l1 = λ the optimum has 3 σ(−w) − σ(w) = λ.
        let labels = [1.0, 1.0, 1.0, -1.0];
        let list = EdgeList {
            num_left: 4,
            num_right: 1,
            left: vec![0, 1, 2, 3],
            right: vec![0; 4],
            data: vec![1.0; 4],
            ..EdgeList::default()
        };
        let values = GroupedEdges::new(list, &[Side::Right]);
        let config = Config { l1: 0.5, l2: 0.0 };
        let at = |w: f64| {
            let fit = Fit { values: &values, labels: &labels, sample_weights: &[], intercept: None, weights: &[w] };
            Certificate::new(&fit, &config).unwrap()
        };
        // With s = σ(w): 3 (1 − s) − s = 1/2, so s = 5/8.
        let optimum = (5.0_f64 / 3.0).ln();
        let best = at(optimum);
        assert!(best.gap.abs() < 1e-12 && best.violation < 1e-12, "{best:?}");
        for w in [-1.0, 0.0, 0.3, 2.0] {
            let other = at(w);
            assert!(other.bound <= best.objective && other.objective >= best.objective, "{w}: {other:?}");
        }
    }
}
