//! The stages of an iteration, and what all workers know.

use bytemuck::{Pod, Zeroable};
use megagrid_stages::{
    Combine, Context, Gather, GlobalSync, Left, Neighbors, Sequence, Stages, Update, program, vertex,
};
use serde::{Deserialize, Serialize};

use super::quadratic::Quadratic;
use crate::blockpg::{Config, Optimality, logistic};

/// What a sample is labelled with.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Label {
    /// y, −1 or 1.
    pub sign: f64,
    /// The sample's weight c.
    pub weight: f64,
    /// What is added to the score w·x.
    pub offset: f64,
}

vertex! {
    /// A sample.
    pub struct Sample { sync: Label }
}

vertex! {
    /// A feature: its row and column in the matrix of curvatures.
    pub struct Feature { sync: u32 }
}

program! {
    /// Sparse logistic regression of few features. An edge carries x_ij.
    pub struct Newton { left: Sample, right: Feature, edge: f32, worker: Sums, global: State }
}

/// What a worker adds up.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Sums {
    /// Σ c log(1 + exp(−m)).
    loss: Losses,
    /// g and the diagonal of H, by feature; empty before the first sample.
    slopes: Vec<[f64; 2]>,
    /// H, `[features, features]`, of the samples that were chosen; of two features that differ in one of both places.
    curvature: Vec<f64>,
    chances: Chances,
    /// The values of a sample, and their features.
    #[serde(skip)]
    values: Vec<(u32, f64)>,
}

impl Sums {
    /// Makes room before the first sample.
    fn begin(&mut self, features: usize, iteration: u64) {
        self.slopes.resize(features, [0.0; 2]);
        self.curvature.resize(features * features, 0.0);
        // Other samples in each iteration.
        self.chances = Chances((iteration as f64 * GOLDEN).fract());
    }

    /// Adds the products of the sample's values.
    #[inline(always)]
    fn multiply(&mut self, bend: f64) {
        multiply(&mut self.curvature, self.slopes.len(), bend, &self.values);
    }
}

/// A sum of weighted losses. Of samples in a row that weigh the same one logarithm is taken, of the product of their factors.
#[derive(Debug, Serialize, Deserialize)]
struct Losses {
    settled: f64,
    /// What is to be added: its weight, and of how many factors it is the product.
    weight: f64,
    product: f64,
    factors: u32,
}

impl Default for Losses {
    fn default() -> Self {
        Self { settled: 0.0, weight: 1.0, product: 1.0, factors: 0 }
    }
}

impl Losses {
    /// Adds `weight` · (log(`factor`) + `rest`), where the factor is 1 to 2.
    #[inline(always)]
    fn add(&mut self, weight: f64, factor: f64, rest: f64) {
        if weight != self.weight || self.factors == MOST_FACTORS {
            *self = Self { settled: self.sum(), weight, ..Self::default() };
        }
        self.settled += weight * rest;
        self.product *= factor;
        self.factors += 1;
    }

    fn sum(&self) -> f64 {
        self.settled + self.weight * self.product.ln()
    }
}

/// Factors of a product: 2 to this power is far from the largest double.
const MOST_FACTORS: u32 = 512;

/// Chances of samples since the last that was chosen.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Chances(f64);

impl Chances {
    /// Tells whether a sample with a chance is chosen: one for each whole that chances add up to.
    #[inline(always)]
    pub(super) fn chooses(&mut self, chance: f64) -> bool {
        self.0 += chance;
        let is_chosen = self.0 >= 1.0;
        self.0 -= f64::from(u8::from(is_chosen));
        is_chosen
    }
}

/// Adds the products of a sample's values to a matrix, of two features in one of both places.
#[inline(always)]
pub(super) fn multiply(curvature: &mut [f64], features: usize, bend: f64, values: &[(u32, f64)]) {
    for (at, &(feature, x)) in values.iter().enumerate() {
        let sums = &mut curvature[feature as usize * features..][..features];
        for &(other, y) in &values[..=at] {
            sums[other as usize] += bend * x * y;
        }
    }
}

impl Combine for Sums {
    fn combine(&mut self, from: &mut Self) {
        let mut from = std::mem::take(from);
        self.loss.settled += from.loss.sum();
        if self.slopes.is_empty() {
            (self.slopes, self.curvature) = (from.slopes, from.curvature);
            return;
        }
        self.slopes.iter_mut().zip(&mut from.slopes).for_each(|(sum, part)| sum.combine(part));
        self.curvature.iter_mut().zip(from.curvature).for_each(|(sum, part)| *sum += part);
    }

    /// Rows have no items: those of the matrix are told here.
    fn sized(features: usize) -> Self {
        let mut sums = Self::default();
        sums.begin(features, 0);
        sums
    }
}

/// What all workers know.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// Iterations done when training at this l1 began.
    pub begun: u64,
    /// Weight of |w|₁.
    pub l1: f64,
    /// Weight of |w|²/2.
    pub l2: f64,
    /// The feature without penalty.
    pub intercept: Option<usize>,
    /// The model: the best weights that samples have met.
    pub weights: Vec<f64>,
    /// Their loss; infinite before samples have met the first.
    pub loss: f64,
    /// How far they are from the optimum.
    pub optimality: Optimality,
    /// The weights that samples meet next.
    next: Vec<f64>,
    /// How much less the objective is there, by the model.
    promise: f64,
    /// One over the diagonal of H, as it was last.
    scale: Vec<f64>,
    /// Whether all samples are chosen.
    chooses_all: bool,
}

impl State {
    /// Begins with weights, one a feature. `curvature` is the diagonal of H at weights 0.
    #[must_use]
    pub fn new(config: &Config, intercept: Option<usize>, weights: Vec<f64>, curvature: &[f64]) -> Self {
        let Config { l1, l2 } = *config;
        let (loss, next, chooses_all) = (f64::INFINITY, weights.clone(), weights.iter().any(|w| *w != 0.0));
        let scale = inverse(curvature);
        Self { l1, l2, intercept, weights, loss, next, scale, chooses_all, ..Self::default() }
    }

    /// Goes on with other penalties, after `begun` iterations.
    #[must_use]
    pub fn turn_to(&self, config: &Config, begun: u64) -> Self {
        let (Config { l1, l2 }, Self { intercept, scale, weights, .. }) = (*config, self.clone());
        let (loss, next) = (f64::INFINITY, weights.clone());
        Self { begun, l1, l2, intercept, weights, loss, next, scale, ..Self::default() }
    }

    /// Returns l1 and l2 of each feature.
    fn penalties(&self) -> Vec<[f64; 2]> {
        let mut penalties = vec![[self.l1, self.l2]; self.weights.len()];
        self.intercept.into_iter().for_each(|feature| penalties[feature] = [0.0; 2]);
        penalties
    }

    fn penalty(&self, weights: &[f64]) -> f64 {
        let of = |(w, [l1, l2]): (&f64, [f64; 2])| l1 * w.abs() + 0.5 * l2 * w * w;
        weights.iter().zip(self.penalties()).map(of).sum()
    }

    /// Tells whether the objective at the next weights, whose loss this is, is low enough.
    fn is_less(&self, loss: f64) -> bool {
        let (before, now) = (self.loss + self.penalty(&self.weights), loss + self.penalty(&self.next));
        now <= before - LEAST_PART * self.promise + ROUNDING * before || before.is_infinite()
    }

    /// Takes the next weights on, and finds those after them.
    fn go_on(&mut self, loss: f64, sums: Sums) {
        let Sums { slopes, curvature, .. } = sums;
        let (gradient, diagonal): (Vec<f64>, Vec<f64>) = slopes.into_iter().map(|[g, h]| (g, h)).unzip();
        let penalties = self.penalties();
        self.weights.copy_from_slice(&self.next);
        (self.loss, self.scale, self.optimality) = (loss, inverse(&diagonal), Optimality::default());
        for ((&w, &slope), &penalties) in self.weights.iter().zip(&gradient).zip(&penalties) {
            self.optimality.see(w, slope, penalties);
        }
        let mut model = Quadratic::new(curvature, &diagonal, gradient, &penalties, &self.weights);
        self.promise = model.minimize();
        self.next = model.into_weights();
        self.chooses_all |= self.promise < CLOSE * (self.loss + self.penalty(&self.weights));
    }
}

/// Adds a sample's part to the loss and its derivatives.
pub struct Meet;

impl Gather<Newton, Left> for Meet {
    #[inline(always)]
    fn gather<N: Neighbors<Newton, Left>>(&self, sample: Update<'_, Sample>, values: &N, cx: &mut Context<'_, Newton>) {
        let (sums, State { next: weights, scale, chooses_all, .. }) = (&mut *cx.worker, cx.global);
        if sums.slopes.is_empty() {
            sums.begin(weights.len(), cx.iteration);
        }
        sums.values.resize(values.len(), (0, 0.0));
        for (value, slot) in sums.values.iter_mut().enumerate() {
            *slot = (*values.sync(value), f64::from(*values.edge(value)));
        }
        let Label { sign, weight, offset } = *sample.sync;
        let (mut score, mut leverage) = (offset, 0.0);
        for &(feature, x) in &sums.values {
            score += x * weights[feature as usize];
            leverage += x * x * scale[feature as usize];
        }
        let (rate, factor, rest) = logistic(sign * score);
        sums.loss.add(weight, factor, rest);
        let (slope, bend) = (sign * weight * rate, weight * rate * (1.0 - rate));
        for &(feature, x) in &sums.values {
            let [gradient, diagonal] = sums.slopes[feature as usize];
            sums.slopes[feature as usize] = [gradient - slope * x, diagonal + bend * x * x];
        }
        let chance = (CHOSEN * bend * leverage).min(1.0);
        if *chooses_all {
            sums.multiply(bend);
        } else if sums.chances.chooses(chance) {
            sums.multiply(bend / chance);
        }
    }
}

/// Finds the weights of the next iteration.
pub struct Solve;

impl GlobalSync<Newton> for Solve {
    fn apply(&self, sums: Sums, state: &mut State) {
        if sums.slopes.is_empty() {
            return;
        }
        let loss = sums.loss.sum();
        if state.is_less(loss) {
            return state.go_on(loss, sums);
        }
        (state.promise, state.chooses_all) = (0.5 * state.promise, true);
        state.next.iter_mut().zip(&state.weights).for_each(|(next, w)| *next = 0.5 * (*next + w));
    }
}

/// Returns the stages of an iteration.
pub fn sequence() -> Sequence<Newton, impl Stages<Newton>> {
    Sequence::new().gather(Left, Meet).global_sync(Solve)
}

fn inverse(values: &[f64]) -> Vec<f64> {
    values.iter().map(|&value| if value > 0.0 { 1.0 / value } else { 0.0 }).collect()
}

/// Samples that are chosen, for each feature.
pub(super) const CHOSEN: f64 = 16.0;
/// The optimum is close where the model promises less than this part of the objective.
const CLOSE: f64 = 1e-4;
/// A step is taken on where the objective falls by this part of what the model promised (Lee, Sun and Saunders 2014, equation 2.8).
const LEAST_PART: f64 = 1e-3;
/// Or does not rise by more than this part of itself, which is rounding.
const ROUNDING: f64 = 1e-13;
/// Its multiples fall evenly between whole numbers.
const GOLDEN: f64 = 0.618_033_988_749_894_9;
