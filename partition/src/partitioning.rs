//! A vertex-cut: the partition of each edge, and where the master of each vertex is.

use crate::grouped::FarEnds;
use crate::strategy::Strategy;
use crate::{Ends, Error, Side};

/// Partitions are kept in 16 bits.
pub const MAX_PARTITIONS: usize = 1 << 16;

/// Every edge in one partition, every vertex with one master; its other replicas are mirrors.
#[derive(Clone, Debug, PartialEq)]
pub struct Partitioning {
    num_partitions: usize,
    part_of_edge: Vec<u16>,
    left: Masters,
    /// `None` where the graph is square: its vertices are those of the left side.
    right: Option<Masters>,
}

/// The vertices of one side.
#[derive(Clone, Debug, Default, PartialEq)]
struct Masters {
    part_of_vertex: Vec<u16>,
    /// Masters and mirrors of the side together.
    num_replicas: u64,
}

impl Partitioning {
    /// Places the edges by a strategy, and each vertex's master in the partition that has most of its edges: of those
    /// that have as many, in the one with the fewest masters so far, then in the first. Vertices are taken in the
    /// order of their ids, left ones before right ones. A vertex without edges has all partitions to choose from.
    ///
    /// # Complexity
    /// That of the strategy, and O(m log m), in 14 bytes an edge (28 if square).
    ///
    /// # Errors
    /// Where `num_partitions` is not 1 to [`MAX_PARTITIONS`].
    ///
    /// # Panics
    /// Where the arrays of `ends` differ in length, an id is out of range, or the strategy breaks its contract.
    ///
    /// # Examples
    /// ```
    /// use megagrid_partition::{EdgeList, Partitioning, Side, strategy::BiCut};
    ///
    /// let list = EdgeList { num_left: 3, num_right: 1, left: vec![0, 1, 2], right: vec![0; 3], data: vec![(); 3], square: false };
    /// let partitioning = Partitioning::new(list.ends(), &BiCut { favourite: Some(Side::Right), seed: 1 }, 4)?;
    /// assert_eq!(partitioning.parts()[0], partitioning.parts()[2]);
    /// assert_eq!(partitioning.masters(Side::Right)[0], partitioning.parts()[0]);
    /// # Ok::<(), megagrid_partition::Error>(())
    /// ```
    pub fn new(ends: Ends<'_>, strategy: &dyn Strategy, num_partitions: usize) -> Result<Self, Error> {
        if !(1..=MAX_PARTITIONS).contains(&num_partitions) {
            return Err(Error::NumPartitions { found: num_partitions, most: MAX_PARTITIONS });
        }
        assert_eq!(ends.left.len(), ends.right.len(), "an edge has two ends");
        let part_of_edge = strategy.assign(ends, num_partitions);
        assert_eq!(part_of_edge.len(), ends.num_edges(), "strategy {} places every edge", strategy.name());
        let parts: Vec<u32> = part_of_edge.iter().map(|&part| u32::from(part)).collect();
        let mut num_masters = vec![0_u64; num_partitions];
        let (left, right) = if ends.square {
            let all_ends = [ends.left, ends.right].concat();
            (Masters::place(&all_ends, ends.num_left, &[&parts[..], &parts].concat(), &mut num_masters), None)
        } else {
            let left = Masters::place(ends.left, ends.num_left, &parts, &mut num_masters);
            (left, Some(Masters::place(ends.right, ends.num_right, &parts, &mut num_masters)))
        };
        Ok(Self { num_partitions, part_of_edge, left, right })
    }

    /// Returns the number of partitions, of which some may be empty.
    #[must_use]
    pub fn num_partitions(&self) -> usize {
        self.num_partitions
    }

    /// Returns the partition of each edge, in the order of the list.
    #[must_use]
    pub fn parts(&self) -> &[u16] {
        &self.part_of_edge
    }

    /// Returns the partition of each master of a side.
    #[must_use]
    pub fn masters(&self, side: Side) -> &[u16] {
        &self.side(side).part_of_vertex
    }

    /// Returns the number of masters and mirrors of a side together.
    #[must_use]
    pub fn num_replicas(&self, side: Side) -> u64 {
        self.side(side).num_replicas
    }

    /// Tells whether both sides are the same vertices.
    #[must_use]
    pub fn is_square(&self) -> bool {
        self.right.is_none()
    }

    fn side(&self, side: Side) -> &Masters {
        match (side, &self.right) {
            (Side::Right, Some(right)) => right,
            _ => &self.left,
        }
    }
}

impl Masters {
    /// Places masters, given the vertex and the partition of each end of an edge.
    fn place(vertices: &[u32], num_vertices: usize, parts: &[u32], num_masters: &mut [u64]) -> Self {
        let mut masters = Self { part_of_vertex: Vec::with_capacity(num_vertices), num_replicas: 0 };
        for parts in FarEnds::group(vertices, num_vertices, parts).iter() {
            let replicas = parts.chunk_by(|a, b| a == b);
            masters.num_replicas += replicas.clone().count().max(1) as u64;
            // The first of several that are as good.
            let best = replicas
                .map(|edges| (std::cmp::Reverse(edges.len()), num_masters[edges[0] as usize], edges[0]))
                .min()
                .map_or_else(|| emptiest(num_masters), |(_, _, part)| part as usize);
            num_masters[best] += 1;
            masters.part_of_vertex.push(best as u16);
        }
        masters
    }
}

fn emptiest(num_masters: &[u64]) -> usize {
    (0..num_masters.len()).min_by_key(|&part| num_masters[part]).unwrap_or(0)
}
