//! Generated inputs, the same in every run.

use megagrid_datasets::synthetic::{RatingsSettings, RmatSettings};
use megagrid_partition::{EdgeList, Relabeling, count_degrees};

/// In which order vertices are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By falling degree.
    Degree,
    /// At random.
    Shuffled,
}

/// Makes an RMAT graph of `2^scale` vertices with 16 edges each, duplicates and self loops removed.
///
/// # Panics
/// When `scale` is not 1 to 31.
pub fn graph(scale: u32, order: Order) -> EdgeList<()> {
    let settings = RmatSettings { scale, ..RmatSettings::default() };
    let mut graph = settings.generate().expect("a scale of 1 to 31");
    if order == Order::Degree {
        let out = count_degrees(&graph.left, graph.num_left);
        let by_degrees = Relabeling::by_degrees(&out, &count_degrees(&graph.right, graph.num_right));
        by_degrees.apply(&mut graph.left);
        by_degrees.apply(&mut graph.right);
    }
    graph
}

/// Makes ratings with planted factors, users and items numbered by falling degree, and takes the mean off them.
///
/// # Panics
/// When there are more ratings than pairs.
pub fn ratings(num_users: usize, num_items: usize, num_ratings: usize) -> EdgeList<f32> {
    let settings = RatingsSettings { num_users, num_items, num_ratings, ..RatingsSettings::default() };
    let made = settings.generate().expect("fewer ratings than pairs");
    let mean = made.truth.mean as f32;
    let mut edges = made.data.in_degree_order().edges;
    edges.data.iter_mut().for_each(|rating| *rating -= mean);
    edges
}
