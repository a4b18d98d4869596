//! Whether features are so much alike that Newton's method is worth its while.

use super::quadratic::Quadratic;
use super::stages::{CHOSEN, Chances, multiply};
use crate::blockpg::Config;

/// The model of the loss at weights 0, its curvature made of samples that are chosen by their leverage.
pub struct Trial {
    gradient: Vec<f64>,
    diagonal: Vec<f64>,
    curvature: Vec<f64>,
    /// The chance of each sample that is chosen, 0 of others.
    chances: Vec<f64>,
}

impl Trial {
    /// Chooses samples. `diagonal` is the curvature by each weight, `leverages` are those of samples.
    #[must_use]
    pub fn new(diagonal: &[f64], leverages: &[f64]) -> Self {
        let features = diagonal.len();
        let mut chances = Chances::default();
        let mut chance = |leverage: &f64| {
            let chance = (CHOSEN * leverage).min(1.0);
            if chances.chooses(chance) { chance } else { 0.0 }
        };
        let (gradient, curvature) = (vec![0.0; features], vec![0.0; features * features]);
        Self { gradient, diagonal: diagonal.to_vec(), curvature, chances: leverages.iter().map(&mut chance).collect() }
    }

    /// Adds to the slope by a weight.
    pub fn slope(&mut self, feature: usize, slope: f64) {
        self.gradient[feature] += slope;
    }

    /// Tells whether a sample is chosen.
    #[must_use]
    pub fn is_chosen(&self, sample: usize) -> bool {
        self.chances[sample] > 0.0
    }

    /// Adds a chosen sample's values, by feature; its loss has the curvature `bend` by its margin.
    pub fn meet(&mut self, sample: usize, bend: f64, values: &[(u32, f64)]) {
        if self.is_chosen(sample) {
            multiply(&mut self.curvature, self.gradient.len(), bend / self.chances[sample], values);
        }
    }

    /// Tells whether descent, a feature after the other, is slow on the model.
    #[must_use]
    pub fn is_slow(self, config: &Config, intercept: Option<usize>) -> bool {
        let mut penalties = vec![[config.l1, config.l2]; self.gradient.len()];
        intercept.into_iter().for_each(|feature| penalties[feature] = [0.0; 2]);
        let weights = vec![0.0; self.gradient.len()];
        Quadratic::new(self.curvature, &self.diagonal, self.gradient, &penalties, &weights).is_slow()
    }
}
