//! Edges between the two sides of a graph, in coordinate form and grouped by one side.

use std::ops::Range;

use crate::Side;

/// Edges in coordinate form: edge `i` joins `left[i]` to `right[i]` and carries `data[i]`.
///
/// # Shapes
/// `left`, `right` and `data` have one entry per edge; ids are `0..num_left` and `0..num_right`.
/// A square graph (`square`) has one id space for both sides, and `num_left == num_right`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeList<T> {
    /// Vertices of the left side.
    pub num_left: usize,
    /// Vertices of the right side.
    pub num_right: usize,
    /// Whether both sides index the same vertices.
    pub square: bool,
    /// Left end of each edge.
    pub left: Vec<u32>,
    /// Right end of each edge.
    pub right: Vec<u32>,
    /// Data of each edge.
    pub data: Vec<T>,
}

impl<T> EdgeList<T> {
    /// Makes an empty list, without vertices, that has room for `num_edges`.
    #[must_use]
    pub fn with_capacity(num_edges: usize) -> Self {
        let room = || Vec::with_capacity(num_edges);
        let data = Vec::with_capacity(num_edges);
        Self { num_left: 0, num_right: 0, square: false, left: room(), right: room(), data }
    }

    /// Appends an edge.
    pub fn push(&mut self, left: u32, right: u32, data: T) {
        self.left.push(left);
        self.right.push(right);
        self.data.push(data);
    }

    /// Returns the number of edges.
    #[must_use]
    pub fn num_edges(&self) -> usize {
        self.left.len()
    }

    /// Returns the edges without their data.
    #[must_use]
    pub fn ends(&self) -> Ends<'_> {
        Ends {
            num_left: self.num_left,
            num_right: self.num_right,
            square: self.square,
            left: &self.left,
            right: &self.right,
        }
    }
}

/// The ends of the edges of an [`EdgeList`]: all that a partitioning looks at.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'a> {
    /// Vertices of the left side.
    pub num_left: usize,
    /// Vertices of the right side.
    pub num_right: usize,
    /// Whether both sides index the same vertices.
    pub square: bool,
    /// Left end of each edge.
    pub left: &'a [u32],
    /// Right end of each edge.
    pub right: &'a [u32],
}

impl Ends<'_> {
    /// Returns the number of edges.
    #[must_use]
    pub fn num_edges(&self) -> usize {
        self.left.len()
    }

    /// Returns the number of vertices of both sides together.
    #[must_use]
    pub fn num_vertices(&self) -> usize {
        self.first_right() + self.num_right
    }

    /// Returns the two vertices of each edge, numbered over both sides: left ones, then right ones; in a square graph
    /// by their id.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = [usize; 2]> {
        let first_right = self.first_right();
        self.left.iter().zip(self.right).map(move |(&left, &right)| [left as usize, first_right + right as usize])
    }

    /// Returns the number of the first right vertex, counted over both sides.
    pub(crate) fn first_right(&self) -> usize {
        if self.square { 0 } else { self.num_left }
    }
}

/// Edges that a pass over all of them looks at together, about.
const WINDOW_EDGES: u64 = 1 << 18;

/// Cuts the vertices that have these offsets into ranges of about 260,000 edges, or of one vertex that has more.
///
/// # Panics
/// Where there is no offset at all.
#[must_use]
pub fn windows(offsets: &[u64]) -> Vec<Range<usize>> {
    let vertices = offsets.len() - 1;
    let mut windows = Vec::new();
    let mut start = 0;
    while start < vertices {
        let most = offsets[start] + WINDOW_EDGES;
        let end = offsets.partition_point(|&offset| offset <= most).saturating_sub(1).clamp(start + 1, vertices);
        windows.push(start..end);
        start = end;
    }
    windows
}

/// The processes that are to hold an edge, given the ids of its ends.
pub type Holders<'h> = &'h (dyn Fn(u32, u32) -> [Option<u16>; 2] + Sync);

/// Where a grid gets its edges: an in-memory list grouped by side, or the memory-mapped cache.
///
/// Vertex ids are final (relabeled) ids. `offsets(side)` has `n + 1` entries, non-decreasing, from 0 to the number of edges.
pub trait EdgeSource<T>: Sync {
    /// Returns the number of vertices of a side.
    fn num_vertices(&self, side: Side) -> usize {
        self.offsets(side).len() - 1
    }

    /// Returns the number of edges.
    fn num_edges(&self) -> usize {
        self.offsets(Side::Right).last().map_or(0, |&last| last as usize)
    }

    /// Tells whether both sides index the same vertices.
    fn is_square(&self) -> bool;

    /// Returns, for the edges grouped by vertices of `side`, where each group starts.
    fn offsets(&self, side: Side) -> &[u64];

    /// Returns where the groups of right vertices start among the edges that can be visited: [`offsets`](Self::offsets),
    /// unless this process has only a part of the edges.
    fn held_offsets(&self) -> &[u64] {
        self.offsets(Side::Right)
    }

    /// Sends each edge to its holders, where several processes have read a part of the input each: all of them call it, and
    /// can visit none before. Else there is nothing to do, and all edges can be visited.
    ///
    /// # Errors
    /// A lost process; files that cannot be read or written.
    fn distribute(&self, _: Holders<'_>) -> std::io::Result<()> {
        Ok(())
    }

    /// Cuts the right vertices whose edges can be visited into windows that are visited at little cost.
    fn windows(&self) -> Vec<Range<usize>> {
        windows(self.held_offsets())
    }

    /// Calls `visit` once with the far ends and data of all edges of the vertices `rows` of `side`, grouped by vertex,
    /// far ends ascending within a vertex.
    ///
    /// # Errors
    /// Any failure to bring the edges into memory.
    fn visit_rows(&self, side: Side, rows: Range<usize>, visit: &mut dyn FnMut(&[u32], &[T])) -> std::io::Result<()>;

    /// Calls `visit` with both ends of all edges of the right vertices `rows`, the right ones in the upper halves: some edges and
    /// then others, in any order.
    ///
    /// # Errors
    /// Any failure to bring the edges into memory.
    fn visit_ends(&self, rows: Range<usize>, visit: &mut dyn FnMut(&[u64])) -> std::io::Result<()> {
        let offsets = self.held_offsets();
        self.visit_rows(Side::Right, rows.clone(), &mut |lefts, _| {
            let mut ends = Vec::new();
            for right in rows.clone() {
                let span = [right, right + 1].map(|at| (offsets[at] - offsets[rows.start]) as usize);
                ends.clear();
                ends.extend(lefts[span[0]..span[1]].iter().map(|&left| (right as u64) << 32 | u64::from(left)));
                visit(&ends);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_all_vertices_once() {
        let degrees = [0, 5, WINDOW_EDGES * 3, 0, 0, WINDOW_EDGES / 2, WINDOW_EDGES / 2, 1];
        let mut offsets = vec![0];
        for degree in degrees {
            offsets.push(offsets[offsets.len() - 1] + degree);
        }
        let vertices: Vec<usize> = windows(&offsets).into_iter().flatten().collect();
        assert_eq!(vertices, (0..degrees.len()).collect::<Vec<_>>());
        assert!(windows(&[0]).is_empty());
    }
}
