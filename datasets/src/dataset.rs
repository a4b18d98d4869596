//! What the readers return: edges with the names of their ends.

use megagrid_partition::EdgeList;

use crate::{Dictionary, Labels};

/// Edges and the names of the vertices they join.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset<T> {
    /// The edges, in the order of the input.
    pub edges: EdgeList<T>,
    /// Names of the left vertices; of all vertices where the graph is square.
    pub left_names: Dictionary,
    /// Names of the right vertices; `None` where the graph is square.
    pub right_names: Option<Dictionary>,
}

impl<T> Dataset<T> {
    /// Returns the names of the right vertices, which are those of the left ones where the graph is square.
    #[must_use]
    pub fn right_names(&self) -> &Dictionary {
        self.right_names.as_ref().unwrap_or(&self.left_names)
    }

    /// Renumbers the right vertices as in `known`, and drops the edges whose right end is not there: features without
    /// a weight, words without a topic. Returns the number of edges dropped beside the rest. The right side afterwards
    /// is all of `known`, and the graph is not square.
    #[must_use]
    pub fn with_right_names(self, known: &Dictionary) -> (Self, usize) {
        let ids = self.right_names().translate(known);
        let before = self.edges.num_edges();
        let (num_left, num_right) = (self.edges.num_left, known.len());
        let mut edges = EdgeList { num_left, num_right, ..EdgeList::with_capacity(before) };
        let ends = self.edges.left.into_iter().zip(self.edges.right);
        for ((left, right), data) in ends.zip(self.edges.data) {
            if let Some(right) = ids[right as usize] {
                edges.push(left, right, data);
            }
        }
        let dropped = before - edges.num_edges();
        (Self { edges, left_names: self.left_names, right_names: Some(known.clone()) }, dropped)
    }

    /// Gives edges other data, in their order.
    ///
    /// # Panics
    /// Where there are not as many of them as edges.
    #[must_use]
    pub fn with_data<U>(self, data: Vec<U>) -> Dataset<U> {
        let Self { edges: EdgeList { num_left, num_right, square, left, right, .. }, left_names, right_names } = self;
        assert_eq!(data.len(), left.len(), "each edge has data");
        Dataset { edges: EdgeList { num_left, num_right, square, left, right, data }, left_names, right_names }
    }
}

impl<T: Copy> Dataset<T> {
    /// Has each edge be followed by the same one the other way, unless it is from a vertex to itself.
    #[must_use]
    pub fn both_ways(self) -> Self {
        let EdgeList { num_left, num_right, square, left, right, data } = self.edges;
        let mut edges = EdgeList { num_left, num_right, square, ..EdgeList::with_capacity(2 * data.len()) };
        for ((left, right), data) in left.into_iter().zip(right).zip(data) {
            edges.push(left, right, data);
            if left != right {
                edges.push(right, left, data);
            }
        }
        Self { edges, ..self }
    }
}

/// Labelled samples: left vertices are samples, named by their number from 1; right vertices are the features that
/// occur, named by their index in the file, ascending; edge data is the feature's value.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// Samples and features.
    pub data: Dataset<f32>,
    /// The class of each sample.
    pub labels: Labels,
    /// What each sample weighs, 0 or above; all 1 if empty.
    pub weights: Vec<f32>,
}

impl Samples {
    /// Takes samples that weigh the same.
    #[must_use]
    pub fn new(data: Dataset<f32>, labels: Labels) -> Self {
        Self { data, labels, weights: Vec::new() }
    }
}

/// Documents and words: left vertices are documents, named by their number from 1; right vertices are words; edge data
/// is how often the word occurs in the document, at least 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Corpus {
    /// Documents and words. The right names are the vocabulary, or the word numbers of the file where there is none.
    pub data: Dataset<u32>,
    /// Word occurrences: the sum of the edge data.
    pub num_tokens: u64,
}

/// Ratings to test a model on, in the numbering of the model's own users and items.
#[derive(Clone, Debug, PartialEq)]
pub struct TestRatings {
    /// The ratings whose user and item are both known.
    pub known: EdgeList<f32>,
    /// The others, of which a model knows at most one end and otherwise has to guess, say by its global mean.
    pub others: Vec<OtherRating>,
}

/// A rating of which the user, the item or both did not occur in training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherRating {
    /// The user, if known.
    pub left: Option<u32>,
    /// The item, if known.
    pub right: Option<u32>,
    /// The rating.
    pub rating: f32,
}
