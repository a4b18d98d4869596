//! Conversion from and to `petgraph::Graph`.

use ::petgraph::Graph;
use ::petgraph::graph::{IndexType, NodeIndex};

use megagrid_partition::EdgeList;

use crate::text::integer;
use crate::{Dataset, Dictionary, Error};

impl<T: Clone> Dataset<T> {
    /// Makes a directed graph of it: a node, weighted with its name, for each vertex, and an edge from left to right,
    /// weighted with its data, for each edge, in the same order. Where the graph is not square, the right vertices
    /// follow the left ones.
    ///
    /// # Errors
    /// Where vertices or edges are more than `petgraph`'s usual indices of 32 bits can number.
    pub fn to_petgraph(&self) -> Result<Graph<String, T>, Error> {
        let first_right = if self.edges.square { 0 } else { self.edges.num_left };
        let num_vertices = first_right + self.edges.num_right;
        let num_edges = self.edges.num_edges();
        // The largest index stands for none.
        if num_vertices.max(num_edges) >= u32::MAX as usize {
            return Err(Error::TooLargeForPetgraph { num_vertices, num_edges });
        }
        let mut graph = Graph::with_capacity(num_vertices, num_edges);
        for name in self.left_names.iter().chain(self.right_names.iter().flat_map(Dictionary::iter)) {
            graph.add_node(name.into_owned());
        }
        let ends = self.edges.left.iter().zip(&self.edges.right);
        for ((&left, &right), data) in ends.zip(&self.edges.data) {
            let (left, right) = (NodeIndex::new(left as usize), NodeIndex::new(first_right + right as usize));
            graph.add_edge(left, right, data.clone());
        }
        Ok(graph)
    }
}

impl<T> Dataset<T> {
    /// Makes a square data set of a directed graph: vertex `i` is node `i`, named by its weight.
    ///
    /// # Errors
    /// Where there are more nodes than 32 bits can number.
    pub fn from_petgraph<N: ToString, Ix: IndexType>(
        graph: Graph<N, T, ::petgraph::Directed, Ix>,
    ) -> Result<Self, Error> {
        let (num_vertices, num_edges) = (graph.node_count(), graph.edge_count());
        if num_vertices > u32::MAX as usize {
            return Err(Error::TooLargeForPetgraph { num_vertices, num_edges });
        }
        let (nodes, raw_edges) = graph.into_nodes_edges();
        let names: Vec<String> = nodes.iter().map(|node| node.weight.to_string()).collect();
        let [num_left, num_right] = [num_vertices; 2];
        let mut edges = EdgeList { num_left, num_right, square: true, ..EdgeList::with_capacity(num_edges) };
        for edge in raw_edges {
            edges.push(edge.source().index() as u32, edge.target().index() as u32, edge.weight);
        }
        let integers: Option<Vec<u64>> = names.iter().map(|name| integer(name.as_bytes())).collect();
        let left_names = integers.map_or_else(|| Dictionary::from_strings(&names), Dictionary::from_integers);
        Ok(Self { edges, left_names, right_names: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, parse_graph, parse_ratings};

    #[test]
    fn a_graph_survives_the_round_trip() {
        for text in ["3 1\n1 2\n3 1\n2 2\n", "a b\nb zoë\na b\n"] {
            let dataset = parse_graph(text.as_bytes(), Format::Edges).unwrap();
            let graph = dataset.to_petgraph().unwrap();
            assert_eq!((graph.node_count(), graph.edge_count()), (3, text.lines().count()));
            assert_eq!(Dataset::from_petgraph(graph).unwrap(), dataset);
        }
    }

    #[test]
    fn right_vertices_follow_the_left_ones() {
        let ratings = parse_ratings(b"u1 i1 4\nu2 i1 2.5\n", Format::Ratings).unwrap();
        let graph = ratings.to_petgraph().unwrap();
        let edges = graph.raw_edges().iter();
        let named: Vec<_> = edges.map(|e| (&*graph[e.source()], &*graph[e.target()], e.weight)).collect();
        assert_eq!(named, [("u1", "i1", 4.0), ("u2", "i1", 2.5)]);
        assert_eq!(graph.node_count(), 3);
    }

    #[test]
    fn numbers_may_be_node_weights() {
        let mut graph = Graph::<u16, f32, _, u8>::default();
        let (a, b) = (graph.add_node(7), graph.add_node(5));
        graph.add_edge(b, a, 0.5);
        let dataset = Dataset::from_petgraph(graph).unwrap();
        assert_eq!(dataset.left_names.as_integers(), Some(&[7, 5][..]));
        assert_eq!((dataset.edges.left, dataset.edges.right), (vec![1], vec![0]));
    }
}
