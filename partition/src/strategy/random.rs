//! Random vertex-cut: an edge goes where a hash of its two ends says.
//!
//! The best balance and the most replicas: a vertex of degree d has about P (1 - (1 - 1/P)^d) of them
//! [Gonzalez et al.: PowerGraph, OSDI 2012, theorem 5.2]. A yardstick rather than a choice.

use super::rule::Strategy;
use crate::parallel;
use crate::{Ends, SplitMix};

/// Places edges by a hash of both ends; repeated edges stay together.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    /// Picks the hash function.
    pub seed: u64,
}

impl Strategy for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn assign(&self, ends: Ends<'_>, num_partitions: usize) -> Vec<u16> {
        let place = |edge: usize| {
            let (left, right) = (ends.left[edge], ends.right[edge]);
            let stream = u64::from(left) << 32 | u64::from(right);
            SplitMix::new(self.seed, stream).below(num_partitions as u64) as u16
        };
        parallel::fill(ends.left.len(), place)
    }
}
