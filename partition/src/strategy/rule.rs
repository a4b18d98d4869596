//! What a strategy is, and what several of them need.

use crate::{Ends, Side, SplitMix};

/// A rule that places edges. The same rule, edges and number of partitions always give the same places.
pub trait Strategy: Sync {
    /// Returns the name that [`by_name`](super::by_name) knows it by.
    fn name(&self) -> &'static str;

    /// Returns the partition of each edge, below `num_partitions`, which is 1 to 65,536.
    fn assign(&self, ends: Ends<'_>, num_partitions: usize) -> Vec<u16>;
}

/// Returns the partition that a hash of a vertex picks.
pub(super) fn hashed(seed: u64, side: Side, vertex: u32, num_partitions: usize) -> u16 {
    // The two sides of a bipartite graph are hashed apart: user 7 and item 7 have nothing to do with each other.
    let stream = u64::from(vertex) | u64::from(side == Side::Right) << 32;
    SplitMix::new(seed, stream).below(num_partitions as u64) as u16
}

/// Returns the side to leave uncut where none is asked for: the one with more vertices, whose degrees are lower.
pub(super) fn favourite(ends: Ends<'_>) -> Side {
    if ends.num_left >= ends.num_right { Side::Left } else { Side::Right }
}
