//! BiCut: all edges of a vertex of the favourite side stay together, so that only the other side is cut
//! [Chen, Shi, Zang, Guan: Bipartite-oriented Distributed Graph Partitioning for Big Learning, APSys 2014].
//!
//! For skewed bipartite graphs, whose favourite side has many vertices of low degree: users, documents, samples.

use super::rule::{Strategy, favourite, hashed};
use crate::parallel;
use crate::{Ends, Side};

/// Places edges by a hash of their end on the favourite side.
#[derive(Clone, Copy, Debug)]
pub struct BiCut {
    /// The side that is not cut; `None` for the one with more vertices.
    pub favourite: Option<Side>,
    /// Picks the hash function.
    pub seed: u64,
}

impl Strategy for BiCut {
    fn name(&self) -> &'static str {
        "bicut"
    }

    fn assign(&self, ends: Ends<'_>, num_partitions: usize) -> Vec<u16> {
        let side = self.favourite.unwrap_or_else(|| favourite(ends));
        let vertices = match side {
            Side::Left => ends.left,
            Side::Right => ends.right,
        };
        parallel::fill(vertices.len(), |edge| hashed(self.seed, side, vertices[edge], num_partitions))
    }
}
