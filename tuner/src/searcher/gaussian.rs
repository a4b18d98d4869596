//! Bayesian optimization with a Gaussian process (Snoek, Larochelle and Adams 2012), Spearmint's algorithm.
//!
//! What was observed is a sample of a smooth random function, up to noise; the kernel is Matérn 5/2. Where it may lie given the
//! observations follows in closed form, and of many candidates the one is proposed whose expected improvement over the best
//! observation is largest. Length and noise of the kernel are those of a few under which the observations are most likely.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

use super::common::{Observation, Searcher, Spread, uniform};
use super::tpe::below;
use crate::space::{Point, Space};

/// Points that are spread evenly before there is a model.
const FIRST: usize = 3;
/// Candidates all over the space, and around the best.
const CANDIDATES: usize = 400;
/// How far from the best a candidate is drawn.
const NEARBY: f64 = 0.05;
/// Lengths over which the function changes, and parts of its variance that are noise, to choose from.
const LENGTHS: [f64; 5] = [0.05, 0.1, 0.2, 0.4, 0.8];
const NOISES: [f64; 3] = [1e-4, 1e-2, 1e-1];
/// Observations that a model takes at most, the latest.
const MOST: usize = 200;

pub struct Gaussian {
    space: Space,
    random: Xoshiro256PlusPlus,
    spread: Spread,
    proposed: usize,
    seen: Vec<Observation>,
}

impl Gaussian {
    pub fn new(space: &Space, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let spread = Spread::new(space, &mut random);
        Self { space: space.clone(), random, spread, proposed: 0, seen: Vec::new() }
    }

    /// Draws a point near another: one tunable of a list may have any value.
    fn near(&mut self, best: &[f64]) -> Point {
        let mut point = best.to_vec();
        let choices: Vec<_> = self.space.tunables().iter().map(|tunable| tunable.choices()).collect();
        for (at, choices) in point.iter_mut().zip(choices) {
            match choices {
                Some(n) if self.random.random_range(0..4) == 0 => *at = self.random.random_range(0..n) as f64,
                Some(_) => {}
                None => {
                    let normal: f64 = StandardNormal.sample(&mut self.random);
                    *at = (*at + NEARBY * normal).clamp(0.0, 1.0);
                }
            }
        }
        point
    }
}

impl Searcher for Gaussian {
    fn propose(&mut self) -> Option<Point> {
        self.proposed += 1;
        if self.proposed <= FIRST || self.seen.len() < 2 {
            return Some(self.spread.next());
        }
        let lists: Vec<bool> = self.space.tunables().iter().map(|tunable| tunable.choices().is_some()).collect();
        let all = std::mem::take(&mut self.seen);
        let seen = &all[all.len().saturating_sub(MOST)..];
        let best = seen.iter().max_by(|a, b| a.value.total_cmp(&b.value)).map(|one| one.point.clone());
        let mut proposal = (f64::NEG_INFINITY, uniform(&self.space, &mut self.random));
        if let Some(model) = Model::fit(seen, &lists) {
            for n in 0..2 * CANDIDATES {
                let candidate = match &best {
                    Some(best) if n >= CANDIDATES => self.near(best),
                    _ => uniform(&self.space, &mut self.random),
                };
                let gain = model.expected_improvement(&candidate);
                if gain > proposal.0 {
                    proposal = (gain, candidate);
                }
            }
        }
        self.seen = all;
        Some(proposal.1)
    }

    fn observe(&mut self, observation: Observation) {
        self.seen.push(observation);
    }
}

/// A Gaussian process given observations, standardized.
struct Model<'o> {
    seen: &'o [Observation],
    lists: &'o [bool],
    length: f64,
    /// The lower factor of the kernel's matrix, row by row.
    factor: Vec<Vec<f64>>,
    /// That matrix's inverse times the values.
    weights: Vec<f64>,
    best: f64,
}

impl<'o> Model<'o> {
    /// Finds the most likely of some models.
    fn fit(seen: &'o [Observation], lists: &'o [bool]) -> Option<Self> {
        let n = seen.len() as f64;
        let mean = seen.iter().map(|one| one.value).sum::<f64>() / n;
        let deviation = (seen.iter().map(|one| (one.value - mean).powi(2)).sum::<f64>() / n).sqrt();
        let values: Vec<f64> = seen.iter().map(|one| (one.value - mean) / deviation.max(f64::MIN_POSITIVE)).collect();
        let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut likeliest: Option<(f64, Self)> = None;
        for length in LENGTHS {
            for noise in NOISES {
                let kernel = |a: usize, b: usize| {
                    matern(distance(&seen[a].point, &seen[b].point, lists) / length) + if a == b { noise } else { 0.0 }
                };
                let Some(factor) = cholesky(seen.len(), kernel) else { continue };
                let weights = solve_transposed(&factor, &solve(&factor, &values));
                let fit: f64 = values.iter().zip(&weights).map(|(value, weight)| value * weight).sum();
                let volume: f64 = factor.iter().enumerate().map(|(at, row)| row[at].ln()).sum();
                let likelihood = -0.5 * fit - volume;
                if likeliest.as_ref().is_none_or(|(most, _)| likelihood > *most) {
                    likeliest = Some((likelihood, Self { seen, lists, length, factor, weights, best }));
                }
            }
        }
        likeliest.map(|(_, model)| model)
    }

    fn expected_improvement(&self, point: &[f64]) -> f64 {
        let kernel: Vec<f64> =
            self.seen.iter().map(|one| matern(distance(&one.point, point, self.lists) / self.length)).collect();
        let mean: f64 = kernel.iter().zip(&self.weights).map(|(k, weight)| k * weight).sum();
        let known = solve(&self.factor, &kernel);
        let deviation = (1.0 - known.iter().map(|v| v * v).sum::<f64>()).max(1e-12).sqrt();
        let z = (mean - self.best) / deviation;
        let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        deviation * (z * below(z) + density)
    }
}

/// Values of a list are equally far from each other.
fn distance(a: &[f64], b: &[f64], lists: &[bool]) -> f64 {
    let of = |((a, b), list): ((&f64, &f64), &bool)| {
        if *list { if a == b { 0.0 } else { LIST_DISTANCE } } else { a - b }
    };
    a.iter().zip(b).zip(lists).map(of).map(|d| d * d).sum::<f64>().sqrt()
}

/// How far two values of a list are from each other, in the unit of a range.
const LIST_DISTANCE: f64 = 0.3;

fn matern(distance: f64) -> f64 {
    let x = 5.0_f64.sqrt() * distance;
    (1.0 + x + x * x / 3.0) * (-x).exp()
}

/// Factors a symmetric matrix; `None` if it is not positive definite.
fn cholesky(n: usize, of: impl Fn(usize, usize) -> f64) -> Option<Vec<Vec<f64>>> {
    let mut factor: Vec<Vec<f64>> = Vec::with_capacity(n);
    for row in 0..n {
        let mut items: Vec<f64> = Vec::with_capacity(row + 1);
        for (column, other) in factor.iter().enumerate() {
            let known: f64 = items.iter().zip(other).map(|(a, b)| a * b).sum();
            items.push((of(row, column) - known) / other[column]);
        }
        let rest = of(row, row) - items.iter().map(|item| item * item).sum::<f64>();
        items.push((rest > 0.0).then(|| rest.sqrt())?);
        factor.push(items);
    }
    Some(factor)
}

/// Solves L x = b.
fn solve(factor: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let mut x: Vec<f64> = Vec::with_capacity(b.len());
    for (row, b) in factor.iter().zip(b) {
        let known: f64 = row.iter().zip(&x).map(|(l, x)| l * x).sum();
        x.push((b - known) / row[x.len()]);
    }
    x
}

/// Solves Lᵀ x = b.
fn solve_transposed(factor: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let mut x = b.to_vec();
    for row in (0..b.len()).rev() {
        x[row] /= factor[row][row];
        for column in 0..row {
            x[column] -= factor[row][column] * x[row];
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_gives_its_matrix_back_and_solves() {
        let matrix = [[4.0, 2.0, 0.6], [2.0, 5.0, 1.0], [0.6, 1.0, 3.0]];
        let factor = cholesky(3, |a, b| matrix[a][b]).unwrap();
        let x = solve_transposed(&factor, &solve(&factor, &[1.0, 2.0, 3.0]));
        for (row, b) in matrix.iter().zip([1.0, 2.0, 3.0]) {
            let product: f64 = row.iter().zip(&x).map(|(a, x)| a * x).sum();
            assert!((product - b).abs() < 1e-12);
        }
        assert!(cholesky(2, |a, b| if a == b { 1.0 } else { 2.0 }).is_none());
    }

    #[test]
    fn improvement_is_expected_between_what_is_known() {
        let at = |x: f64, value: f64| Observation { point: vec![x], value };
        let seen = [at(0.0, 0.0), at(0.2, 1.0), at(0.4, 1.0), at(0.9, 0.0)];
        let model = Model::fit(&seen, &[false]).unwrap();
        assert!(model.expected_improvement(&[0.3]) > model.expected_improvement(&[0.01]));
        assert!(model.expected_improvement(&[0.3]) > model.expected_improvement(&[0.9]));
    }
}
