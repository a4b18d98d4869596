//! Hybrid-cut: the edges into a right vertex of low degree stay together, those into one of high degree are spread by
//! their left ends [Chen, Shi, Chen, Chen: PowerLyra, EuroSys 2015, section 4.1].
//!
//! Vertices of low degree are thus not cut by their own in-edges, and one of high degree has at most P replicas.

use super::rule::{Strategy, hashed};
use crate::degrees::count_degrees;
use crate::parallel;
use crate::{Ends, Side};

/// Places edges by their right ends, and those of heavy right ends by their left ends.
#[derive(Clone, Copy, Debug)]
pub struct Hybrid {
    /// Right vertices with more edges than this are cut.
    pub threshold: u32,
    /// Picks the hash function.
    pub seed: u64,
}

impl Hybrid {
    /// The paper's threshold.
    pub const THRESHOLD: u32 = 100;
}

impl Strategy for Hybrid {
    fn name(&self) -> &'static str {
        "hybrid"
    }

    fn assign(&self, ends: Ends<'_>, num_partitions: usize) -> Vec<u16> {
        let degrees = count_degrees(ends.right, ends.num_right);
        // One hash for both sides of a square graph: a vertex's in-edges and its out-edges to heavy vertices meet.
        let left_side = if ends.square { Side::Right } else { Side::Left };
        let place = |edge: usize| {
            let (left, right) = (ends.left[edge], ends.right[edge]);
            let (side, vertex) =
                if degrees[right as usize] > self.threshold { (left_side, left) } else { (Side::Right, right) };
            hashed(self.seed, side, vertex, num_partitions)
        };
        parallel::fill(ends.left.len(), place)
    }
}
