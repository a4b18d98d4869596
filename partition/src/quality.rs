//! How good a partitioning is: what it copies, and how evenly it spreads edges and masters.

use crate::{Partitioning, Side};

/// Figures of a partitioning. All are at least 1, and better the smaller; 1 where there is nothing to count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Masters and mirrors of the left side, per vertex. A vertex without edges has only its master.
    pub left_replication_factor: f64,
    /// The same of the right side. In a square graph it is that of the left side.
    pub right_replication_factor: f64,
    /// The same of all vertices: memory and messages grow with it.
    pub replication_factor: f64,
    /// Edges in the fullest partition, by their mean: the slowest process computes so much longer.
    pub edge_balance: f64,
    /// Masters, of both sides, in the fullest partition, by their mean.
    pub master_balance: f64,
}

impl Quality {
    /// Computes the figures of a partitioning.
    #[must_use]
    pub fn of(partitioning: &Partitioning) -> Self {
        let sides: &[Side] = if partitioning.is_square() { &[Side::Left] } else { &[Side::Left, Side::Right] };
        let replicas = |side| partitioning.num_replicas(side);
        let vertices = |side| partitioning.masters(side).len() as u64;
        let total = |count: &dyn Fn(Side) -> u64| sides.iter().map(|&side| count(side)).sum::<u64>();
        let masters = sides.iter().map(|&side| partitioning.masters(side));
        Self {
            left_replication_factor: ratio(replicas(Side::Left), vertices(Side::Left)),
            right_replication_factor: ratio(replicas(Side::Right), vertices(Side::Right)),
            replication_factor: ratio(total(&replicas), total(&vertices)),
            edge_balance: balance(&sizes(partitioning.parts().iter(), partitioning.num_partitions())),
            master_balance: balance(&sizes(masters.flatten(), partitioning.num_partitions())),
        }
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// Returns the largest part over the mean; 1 where all are 0.
#[must_use]
pub fn balance(parts: &[u64]) -> f64 {
    ratio(parts.iter().max().copied().unwrap_or(0) * parts.len() as u64, parts.iter().sum())
}

fn sizes<'a>(parts: impl Iterator<Item = &'a u16>, num_partitions: usize) -> Vec<u64> {
    let mut sizes = vec![0; num_partitions];
    parts.for_each(|&part| sizes[usize::from(part)] += 1);
    sizes
}
