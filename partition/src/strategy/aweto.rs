//! Aweto: BiCut with places chosen greedily [Chen, Shi, Zang, Guan: Bipartite-oriented Distributed Graph Partitioning
//! for Big Learning, APSys 2014].
//!
//! One vertex of the favourite side after another goes, with all its edges, to the partition p that has the largest
//!
//! ```text
//! |neighbours that have a replica in p already| - sqrt(load(p)),
//! ```
//!
//! the load in edges, as in the authors' program, because edges are the work. Ties go to the lower load, then to the
//! lower number. Unlike there, a partition takes no more vertices once it has [`Aweto::FULL`] times the mean load: on skewed
//! graphs the root without a limit lets the first partitions grow to twice the mean.

use super::rule::{Strategy, favourite};
use crate::grouped::FarEnds;
use crate::replicas::ReplicaSets;
use crate::{Ends, Side};

/// Places the vertices of the favourite side greedily.
#[derive(Clone, Copy, Debug)]
pub struct Aweto {
    /// The side that is not cut; `None` for the one with more vertices.
    pub favourite: Option<Side>,
}

impl Aweto {
    /// A partition is full at this many times the mean load.
    pub const FULL: f64 = 1.1;
}

impl Strategy for Aweto {
    fn name(&self) -> &'static str {
        "aweto"
    }

    fn assign(&self, ends: Ends<'_>, num_partitions: usize) -> Vec<u16> {
        let side = self.favourite.unwrap_or_else(|| favourite(ends));
        let (vertices, num_vertices, neighbours, num_neighbours) = match side {
            Side::Left => (ends.left, ends.num_left, ends.right, ends.num_right),
            Side::Right => (ends.right, ends.num_right, ends.left, ends.num_left),
        };
        let groups = FarEnds::group(vertices, num_vertices, neighbours);
        let mut replicas = ReplicaSets::new(num_neighbours, num_partitions);
        let mut loads = vec![0_u64; num_partitions];
        let full = Self::FULL * ends.num_edges() as f64 / num_partitions as f64;
        let mut shared = vec![0_u64; num_partitions];
        let place = |neighbours: &[u32]| {
            shared.fill(0);
            let present = neighbours.iter().flat_map(|&neighbour| replicas.of(neighbour as usize));
            present.for_each(|partition| shared[partition] += 1);
            let score = |partition: usize| {
                let load = loads[partition] as f64;
                if load < full { shared[partition] as f64 - load.sqrt() } else { f64::NEG_INFINITY }
            };
            let better =
                |a: &usize, b: &usize| score(*a).total_cmp(&score(*b)).then(loads[*b].cmp(&loads[*a])).then(b.cmp(a));
            let best = (0..num_partitions).max_by(better).unwrap_or(0);
            loads[best] += neighbours.len() as u64;
            neighbours.iter().for_each(|&neighbour| replicas.insert(neighbour as usize, best));
            best as u16
        };
        let part_of_vertex: Vec<u16> = groups.iter().map(place).collect();
        vertices.iter().map(|&vertex| part_of_vertex[vertex as usize]).collect()
    }
}
