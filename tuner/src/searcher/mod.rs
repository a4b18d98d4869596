//! Searchers: what setting to try next, given how fast those before converged.

mod common;
mod gaussian;
mod grid;
mod random;
mod tpe;

pub(crate) use common::{Observation, Searcher};
use gaussian::Gaussian;
use grid::Grid;
use random::Random;
use tpe::Tpe;

use crate::space::Space;

/// The searchers by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Settings at random.
    Random,
    /// All settings of a grid.
    Grid,
    /// A tree-structured Parzen estimator (HyperOpt).
    #[default]
    Tpe,
    /// A Gaussian process (Spearmint).
    Gp,
}

impl Kind {
    /// Makes a searcher.
    pub(crate) fn searcher(self, space: &Space, seed: u64) -> Box<dyn Searcher> {
        match self {
            Self::Random => Box::new(Random::new(space, seed)),
            Self::Grid => Box::new(Grid::new(space, seed)),
            Self::Tpe => Box::new(Tpe::new(space, seed)),
            Self::Gp => Box::new(Gaussian::new(space, seed)),
        }
    }
}

/// Best speeds that are compared to end a search, and how near they have to be.
const TOP: usize = 5;
/// The part of the best speed by which they differ at most.
pub(crate) const NEAR: f64 = 0.1;

/// Tells whether a search has found what there is to find: the five best speeds above 0 differ by less than 10 %.
pub(crate) fn is_settled(speeds: &[f64]) -> bool {
    let mut best: Vec<f64> = speeds.iter().copied().filter(|&speed| speed > 0.0).collect();
    best.sort_by(|a, b| b.total_cmp(a));
    best.len() >= TOP && best[0] - best[TOP - 1] < NEAR * best[0]
}

#[cfg(test)]
mod tests {
    use super::common::Spread;
    use super::*;

    #[test]
    fn a_search_is_settled_when_the_five_best_are_near() {
        assert!(!is_settled(&[1.0, 1.0, 1.0, 1.0]));
        assert!(!is_settled(&[1.0, 0.99, 0.98, 0.97, 0.89, 0.0]));
        assert!(is_settled(&[0.1, 1.0, 0.99, 0.5, 0.98, 0.97, 0.901, 0.0]));
        // Speeds of 0 do not count.
        assert!(!is_settled(&[0.0; 10]));
    }

    #[test]
    fn first_points_spread_over_the_range() {
        let space = Space::new(vec!["x=0..1".parse().unwrap()]).unwrap();
        let mut random = <rand::rngs::Xoshiro256PlusPlus as rand::SeedableRng>::seed_from_u64(1);
        let mut spread = Spread::new(&space, &mut random);
        let mut points: Vec<f64> = (0..5).map(|_| spread.next()[0]).collect();
        points.sort_by(f64::total_cmp);
        let widest = points.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        assert!(widest < 0.4, "{points:?}");
    }

    /// A bowl with its top at 0.73, and one of three choices better than the others.
    fn quality(point: &[f64]) -> f64 {
        (1.0 - (point[0] - 0.73).powi(2) * 4.0) * if point[1] == 2.0 { 1.0 } else { 0.7 }
    }

    fn best_of(kind: Kind, seed: u64, trials: usize) -> f64 {
        let space = Space::new(vec!["x=0..1".parse().unwrap(), "c=a,b,c".parse().unwrap()]).unwrap();
        let mut searcher = kind.searcher(&space, seed);
        let mut best = f64::NEG_INFINITY;
        for _ in 0..trials {
            let Some(point) = searcher.propose() else { break };
            assert!((0.0..=1.0).contains(&point[0]) && [0.0, 1.0, 2.0].contains(&point[1]), "{point:?}");
            let value = quality(&point);
            best = best.max(value);
            searcher.observe(Observation { point, value });
        }
        best
    }

    #[test]
    fn every_searcher_comes_near_a_known_optimum() {
        for kind in [Kind::Random, Kind::Grid, Kind::Tpe, Kind::Gp] {
            for seed in 0..5 {
                let best = best_of(kind, seed, 30);
                assert!(best > 0.9, "{kind:?}, seed {seed}: {best}");
                assert_eq!(best_of(kind, seed, 30), best, "a seed decides everything");
            }
        }
    }

    #[test]
    fn models_search_better_than_chance() {
        let mean = |kind| (0..20).map(|seed| 1.0 - best_of(kind, seed, 20)).sum::<f64>() / 20.0;
        let chance = mean(Kind::Random);
        assert!(mean(Kind::Tpe) < chance, "{} {chance}", mean(Kind::Tpe));
        assert!(mean(Kind::Gp) < chance, "{} {chance}", mean(Kind::Gp));
    }
}
