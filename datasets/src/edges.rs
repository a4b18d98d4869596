//! Edges from what a program has at hand: pairs, data sets, `petgraph` graphs.

use ::petgraph::Graph;
use ::petgraph::graph::{IndexType, NodeIndex};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side};

use crate::cache::EdgeData;
use crate::{Dataset, Edges, Error};

/// An edge by its ends: `(left, right)`, or `(left, right, data)`; or a reference to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no edge",
    note = "write `(u32, u32)`, or `(u32, u32, data)` with data of `f32`, `f64` or `u32`; edges that carry more are grouped by \
            `megagrid::partition::GroupedEdges`"
)]
pub trait AsEdge {
    /// What it carries.
    type Data;
    /// Returns the ends and the data.
    fn parts(self) -> (u32, u32, Self::Data);
}

impl AsEdge for (u32, u32) {
    type Data = ();

    fn parts(self) -> (u32, u32, ()) {
        (self.0, self.1, ())
    }
}

impl<T: EdgeData> AsEdge for (u32, u32, T) {
    type Data = T;

    fn parts(self) -> (u32, u32, T) {
        self
    }
}

impl<E: AsEdge + Copy> AsEdge for &E {
    type Data = E::Data;

    fn parts(self) -> (u32, u32, E::Data) {
        (*self).parts()
    }
}

impl<T: EdgeData> Edges<T> {
    /// Makes a square graph, whose edges go from a vertex to a vertex, of `n` vertices.
    ///
    /// # Complexity
    /// Twice the memory of the edges while they are grouped.
    ///
    /// # Errors
    /// An end that is not below `n`.
    ///
    /// # Examples
    /// ```
    /// use megagrid_datasets::Edges;
    /// let links = Edges::square(3, [(0, 2), (1, 2), (2, 0)])?;
    /// let roads = Edges::square(2, [(0, 1, 2.5_f32)])?;
    /// let ratings = Edges::bipartite(1, 20, [(0, 19, 4.0_f32)])?;
    /// assert!(Edges::square(3, [(0, 3)]).is_err());
    /// # Ok::<(), megagrid_datasets::Error>(())
    /// ```
    pub fn square<E: AsEdge<Data = T>>(n: usize, edges: impl IntoIterator<Item = E>) -> Result<Self, Error> {
        Self::collect(n, n, true, edges)
    }

    /// Makes a square graph of `n` vertices in which each edge goes both ways; one from a vertex to itself is there once. See
    /// [`square`](Self::square).
    ///
    /// # Errors
    /// An end that is not below `n`.
    ///
    /// # Examples
    /// ```
    /// use megagrid_datasets::Edges;
    /// use megagrid_partition::EdgeSource;
    /// let friends = Edges::undirected(3, [(0, 2), (1, 1)])?;
    /// assert_eq!(friends.num_edges(), 3);
    /// # Ok::<(), megagrid_datasets::Error>(())
    /// ```
    pub fn undirected<E: AsEdge<Data = T>>(n: usize, edges: impl IntoIterator<Item = E>) -> Result<Self, Error> {
        let both = |(left, right, data)| {
            let back = (left != right).then_some((right, left, data));
            std::iter::once((left, right, data)).chain(back)
        };
        Self::square(n, edges.into_iter().map(E::parts).flat_map(both))
    }

    /// Calls `visit` with the left end, the right end and the data of all edges, by ascending right ends.
    ///
    /// # Errors
    /// Edges that cannot be read.
    ///
    /// # Examples
    /// ```
    /// use megagrid_datasets::Edges;
    /// let mut sums = [0.0; 2];
    /// let ratings = Edges::bipartite(2, 2, [(0, 1, 4.0_f64), (1, 0, 5.0), (0, 0, 3.0)])?;
    /// ratings.for_each(|user, _, rating| sums[user as usize] += rating)?;
    /// assert_eq!(sums, [7.0, 5.0]);
    /// # Ok::<(), megagrid_datasets::Error>(())
    /// ```
    pub fn for_each(&self, mut visit: impl FnMut(u32, u32, T)) -> Result<(), Error> {
        for right in 0..self.num_vertices(Side::Right) {
            let of_one = &mut |lefts: &[u32], data: &[T]| {
                lefts.iter().zip(data).for_each(|(&left, &data)| visit(left, right as u32, data));
            };
            self.visit_rows(Side::Right, right..right + 1, of_one).map_err(Error::Edges)?;
        }
        Ok(())
    }

    /// Makes a bipartite graph of `left` and `right` vertices: users and items, say. See [`square`](Self::square).
    ///
    /// # Errors
    /// An end that is not below the number of vertices of its side; more vertices than 32 bits can number.
    pub fn bipartite<E: AsEdge<Data = T>>(
        left: usize,
        right: usize,
        edges: impl IntoIterator<Item = E>,
    ) -> Result<Self, Error> {
        Self::collect(left, right, false, edges)
    }

    fn collect<E: AsEdge<Data = T>>(
        num_left: usize,
        num_right: usize,
        square: bool,
        edges: impl IntoIterator<Item = E>,
    ) -> Result<Self, Error> {
        if let Some(vertices) = [num_left, num_right].into_iter().find(|&vertices| u32::try_from(vertices).is_err()) {
            return Err(Error::VerticesOutOfRange(vertices));
        }
        let mut list = EdgeList { num_left, num_right, square, ..EdgeList::with_capacity(0) };
        for (edge, (left, right, data)) in edges.into_iter().map(AsEdge::parts).enumerate() {
            for (side, id, vertices) in [(Side::Left, left, num_left), (Side::Right, right, num_right)] {
                if id as usize >= vertices {
                    return Err(Error::EndOutOfRange { edge, side, id, vertices });
                }
            }
            list.push(left, right, data);
        }
        Ok(Self::of(list))
    }

    fn of(list: EdgeList<T>) -> Self {
        Self::Grouped(GroupedEdges::new(list, &[Side::Right]))
    }

    /// Makes a square graph of a directed `petgraph` graph: vertex `i` is node `i`. Node weights are left out; see
    /// [`Dataset::from_petgraph`] for names.
    ///
    /// # Errors
    /// Where there are more nodes than 32 bits can number.
    pub fn from_petgraph<N, Ix: IndexType>(graph: &Graph<N, T, ::petgraph::Directed, Ix>) -> Result<Self, Error> {
        let (num_vertices, num_edges) = (graph.node_count(), graph.edge_count());
        if num_vertices > u32::MAX as usize {
            return Err(Error::TooLargeForPetgraph { num_vertices, num_edges });
        }
        let edges = graph.raw_edges().iter();
        Self::square(
            num_vertices,
            edges.map(|edge| (edge.source().index() as u32, edge.target().index() as u32, edge.weight)),
        )
    }

    /// Makes a directed `petgraph` graph: a node, weighted with its id, for each vertex, and an edge from left to right for
    /// each edge. Where the graph is not square, the right vertices follow the left ones.
    ///
    /// # Errors
    /// Where vertices or edges are more than `petgraph`'s usual indices of 32 bits can number; edges that cannot be read.
    pub fn to_petgraph(&self) -> Result<Graph<u32, T>, Error> {
        let [num_left, num_right] = [Side::Left, Side::Right].map(|side| self.num_vertices(side));
        let first_right = if self.is_square() { 0 } else { num_left };
        let (num_vertices, num_edges) = (first_right + num_right, self.num_edges());
        // The largest index stands for none.
        if num_vertices.max(num_edges) >= u32::MAX as usize {
            return Err(Error::TooLargeForPetgraph { num_vertices, num_edges });
        }
        let mut graph = Graph::with_capacity(num_vertices, num_edges);
        let ids = (0..first_right as u32).chain(0..num_right as u32);
        ids.for_each(|id| {
            graph.add_node(id);
        });
        self.for_each(|left, right, data| {
            graph.add_edge(NodeIndex::new(left as usize), NodeIndex::new(first_right + right as usize), data);
        })?;
        Ok(graph)
    }
}

/// The edges of a data set, without the names. Vertices keep their ids: see [`Dataset::in_degree_order`].
impl<T: EdgeData> From<Dataset<T>> for Edges<T> {
    fn from(dataset: Dataset<T>) -> Self {
        Self::of(dataset.edges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_survive_the_round_trip_through_petgraph() {
        let graph = Edges::square(4, [(2, 0, 5_u32), (0, 3, 6), (1, 3, 7), (0, 3, 8)]).unwrap().to_petgraph().unwrap();
        assert_eq!(graph.node_weights().copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
        let again = Edges::from_petgraph(&graph).unwrap();
        assert!(again.is_square());
        let edges = |graph: &Graph<u32, u32>| {
            let of = |edge: &::petgraph::graph::Edge<u32>| (edge.source().index(), edge.target().index(), edge.weight);
            graph.raw_edges().iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(edges(&graph), [(2, 0, 5), (0, 3, 6), (0, 3, 8), (1, 3, 7)]);
        assert_eq!(edges(&again.to_petgraph().unwrap()), edges(&graph));
    }

    #[test]
    fn right_vertices_follow_the_left_ones() {
        let graph = Edges::bipartite(2, 3, [(1, 2)]).unwrap().to_petgraph().unwrap();
        assert_eq!(graph.node_weights().copied().collect::<Vec<_>>(), [0, 1, 0, 1, 2]);
        let edge = &graph.raw_edges()[0];
        assert_eq!((edge.source().index(), edge.target().index()), (1, 4));
    }

    #[test]
    fn ends_out_of_range_are_told() {
        let message = Edges::bipartite(2, 3, [(1, 2), (1, 3)]).unwrap_err().to_string();
        assert_eq!(message, "edge 1: the right end is 3, expected a number below 3, the right vertices");
    }
}
