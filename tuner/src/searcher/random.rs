//! Settings at random.

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use super::common::{Observation, Searcher, uniform};
use crate::space::{Point, Space};

/// Draws settings at random, evenly over the space.
pub struct Random {
    space: Space,
    random: Xoshiro256PlusPlus,
}

impl Random {
    pub fn new(space: &Space, seed: u64) -> Self {
        Self { space: space.clone(), random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }
}

impl Searcher for Random {
    fn propose(&mut self) -> Option<Point> {
        Some(uniform(&self.space, &mut self.random))
    }

    fn observe(&mut self, _: Observation) {}
}
