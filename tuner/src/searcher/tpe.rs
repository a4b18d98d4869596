//! A tree-structured Parzen estimator (Bergstra, Bardenet, Bengio and Kégl 2011), HyperOpt's algorithm.
//!
//! What was observed is divided into the best part and the rest; each has a density over the space, tunable by tunable: a
//! mixture of normals around its points for a range, of widths that follow from how far apart they are, and frequencies for
//! a list, each with a prior. Of some candidates drawn from the density of the best, the one is proposed where that exceeds
//! the density of the rest the most, which is where the improvement to be expected is largest.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

use super::common::{Observation, Searcher, Spread};
use crate::space::{Point, Space};

/// Points that are spread evenly before there is an estimate. HyperOpt begins with 20 at random, most of a short search.
const FIRST: usize = 5;
/// Part of the observations that counts as the best: this times their square root.
const BEST: f64 = 0.5;
/// Candidates for a proposal.
const CANDIDATES: usize = 24;

pub struct Tpe {
    choices: Vec<Option<usize>>,
    random: Xoshiro256PlusPlus,
    spread: Spread,
    proposed: usize,
    seen: Vec<Observation>,
}

impl Tpe {
    pub fn new(space: &Space, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let spread = Spread::new(space, &mut random);
        let choices = space.tunables().iter().map(|tunable| tunable.choices()).collect();
        Self { choices, random, spread, proposed: 0, seen: Vec::new() }
    }

    /// Proposes a coordinate of one tunable.
    fn coordinate(&mut self, tunable: usize, best: &[&Observation], rest: &[&Observation]) -> f64 {
        let of = |part: &[&Observation]| -> Vec<f64> { part.iter().map(|one| one.point[tunable]).collect() };
        let (best, rest) = match self.choices[tunable] {
            Some(n) => (Density::of_list(&of(best), n), Density::of_list(&of(rest), n)),
            None => (Density::of_range(&of(best)), Density::of_range(&of(rest))),
        };
        let mut proposal = (f64::NEG_INFINITY, 0.0);
        for _ in 0..CANDIDATES {
            let candidate = best.draw(&mut self.random);
            let gain = best.log(candidate) - rest.log(candidate);
            if gain > proposal.0 {
                proposal = (gain, candidate);
            }
        }
        proposal.1
    }
}

impl Searcher for Tpe {
    fn propose(&mut self) -> Option<Point> {
        self.proposed += 1;
        if self.proposed <= FIRST || self.seen.is_empty() {
            return Some(self.spread.next());
        }
        let mut seen = std::mem::take(&mut self.seen);
        seen.sort_by(|a, b| b.value.total_cmp(&a.value));
        let count = (BEST * (seen.len() as f64).sqrt()).ceil() as usize;
        let (best, rest): (Vec<_>, Vec<_>) = (seen[..count].iter().collect(), seen[count..].iter().collect());
        let point = (0..self.choices.len()).map(|tunable| self.coordinate(tunable, &best, &rest)).collect();
        self.seen = seen;
        Some(point)
    }

    fn observe(&mut self, observation: Observation) {
        self.seen.push(observation);
    }
}

enum Density {
    /// Chances of the values of a list.
    List(Vec<f64>),
    /// Normals within 0 to 1, equally likely: mean and width.
    Range(Vec<(f64, f64)>),
}

impl Density {
    /// Counts, with one of each value beforehand.
    fn of_list(coordinates: &[f64], values: usize) -> Self {
        let mut chances = vec![1.0; values];
        coordinates.iter().for_each(|&at| chances[at as usize] += 1.0);
        let sum: f64 = chances.iter().sum();
        chances.iter_mut().for_each(|chance| *chance /= sum);
        Self::List(chances)
    }

    /// Lays a normal around each point, as wide as the farther of its neighbours, and one over all as the prior.
    fn of_range(coordinates: &[f64]) -> Self {
        let mut points: Vec<f64> = coordinates.to_vec();
        points.sort_by(f64::total_cmp);
        let narrowest = 1.0 / (points.len() as f64 + 1.0).min(100.0) / 4.0;
        let width = |at: usize| {
            let left = if at == 0 { points[at] } else { points[at] - points[at - 1] };
            let right = points.get(at + 1).map_or(1.0, |next| *next) - points[at];
            left.max(right).clamp(narrowest, 1.0)
        };
        let mut normals: Vec<(f64, f64)> = (0..points.len()).map(|at| (points[at], width(at))).collect();
        normals.push((0.5, 1.0));
        Self::Range(normals)
    }

    fn draw(&self, random: &mut Xoshiro256PlusPlus) -> f64 {
        match self {
            Self::List(chances) => {
                let mut rest: f64 = random.random();
                let pick = chances.iter().position(|chance| {
                    rest -= chance;
                    rest < 0.0
                });
                pick.unwrap_or(chances.len() - 1) as f64
            }
            Self::Range(normals) => {
                let (mean, width) = normals[random.random_range(0..normals.len())];
                // Each has its mean within 0 to 1, so that a draw lies there with a chance of a third or more.
                loop {
                    let normal: f64 = StandardNormal.sample(random);
                    let at = mean + width * normal;
                    if (0.0..=1.0).contains(&at) {
                        return at;
                    }
                }
            }
        }
    }

    fn log(&self, at: f64) -> f64 {
        match self {
            Self::List(chances) => chances[at as usize].ln(),
            Self::Range(normals) => {
                let of = |&(mean, width): &(f64, f64)| {
                    let inside = below((1.0 - mean) / width) - below(-mean / width);
                    (-0.5 * ((at - mean) / width).powi(2)).exp() / (width * inside * std::f64::consts::TAU.sqrt())
                };
                (normals.iter().map(of).sum::<f64>() / normals.len() as f64).max(f64::MIN_POSITIVE).ln()
            }
        }
    }
}

/// Returns the chance that a standard normal number is below `x`, up to 1e-7 (Abramowitz and Stegun 7.1.26).
pub(super) fn below(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let terms = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    let sum = terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    let tail = 0.5 * sum * (-z * z).exp();
    if x < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_is_as_in_tables() {
        for (x, chance) in [(0.0, 0.5), (1.0, 0.841_344_7), (-1.96, 0.024_997_9), (3.0, 0.998_650_1)] {
            assert!((below(x) - chance).abs() < 2e-7, "{x}: {}", below(x));
        }
    }

    #[test]
    fn densities_sum_to_one() {
        let range = Density::of_range(&[0.1, 0.15, 0.9]);
        let steps = 20_000;
        let sum: f64 = (0..steps).map(|n| range.log((f64::from(n) + 0.5) / f64::from(steps)).exp()).sum();
        assert!((sum / f64::from(steps) - 1.0).abs() < 1e-4, "{sum}");
        let list = Density::of_list(&[0.0, 0.0, 2.0], 3);
        assert!(((0..3).map(|at| list.log(f64::from(at)).exp()).sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((list.log(0.0).exp() - 0.5).abs() < 1e-12);
    }
}
