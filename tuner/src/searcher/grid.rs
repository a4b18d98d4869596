//! All settings of a grid.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::common::{Observation, Searcher};
use crate::space::{Point, Space};

/// Points of a range in the grid.
const POINTS: usize = 10;

/// Proposes each setting of a grid once, in random order. It has no other end.
pub struct Grid {
    /// Those to come, the last first.
    rest: Vec<Point>,
    settings: usize,
}

impl Grid {
    pub fn new(space: &Space, seed: u64) -> Self {
        let mut rest = vec![Vec::new()];
        for tunable in space.tunables() {
            let coordinates: Vec<f64> = match tunable.choices() {
                Some(n) => (0..n).map(|n| n as f64).collect(),
                None => (0..POINTS).map(|n| n as f64 / (POINTS - 1) as f64).collect(),
            };
            let longer = |point: &Point| {
                let extend = |&at: &f64| point.iter().copied().chain([at]).collect();
                coordinates.iter().map(extend).collect::<Vec<Point>>()
            };
            rest = rest.iter().flat_map(longer).collect();
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for at in (1..rest.len()).rev() {
            rest.swap(at, random.random_range(0..=at));
        }
        Self { settings: rest.len(), rest }
    }
}

impl Searcher for Grid {
    fn propose(&mut self) -> Option<Point> {
        self.rest.pop()
    }

    fn observe(&mut self, _: Observation) {}

    fn settings(&self) -> Option<usize> {
        Some(self.settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_comes_once() {
        let space = Space::new(vec!["x=log:1e-3..1".parse().unwrap(), "c=a,b,c".parse().unwrap()]).unwrap();
        let mut grid = Grid::new(&space, 1);
        let mut seen: Vec<String> =
            std::iter::from_fn(|| grid.propose()).map(|p| space.setting(&p).to_string()).collect();
        assert_eq!(seen.len(), 30);
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 30);
        assert!(seen.contains(&"x=0.001 c=a".to_owned()) && seen.contains(&"x=1 c=c".to_owned()), "{seen:?}");
    }
}
