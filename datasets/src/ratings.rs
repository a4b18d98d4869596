//! Ratings by the users and items of a model.

use crate::{Dataset, Dictionary, OtherRating, TestRatings};

/// Renumbers ratings by the users and items of a model.
pub(crate) fn with_names(ratings: Dataset<f32>, left_names: &Dictionary, right_names: &Dictionary) -> TestRatings {
    let left_ids = ratings.left_names.translate(left_names);
    let right_ids = ratings.right_names().translate(right_names);
    let mut test = TestRatings { known: Default::default(), others: Vec::new() };
    let known = &mut test.known;
    (known.num_left, known.num_right) = (left_names.len(), right_names.len());
    let edges = &ratings.edges;
    for ((&left, &right), &rating) in edges.left.iter().zip(&edges.right).zip(&edges.data) {
        match (left_ids[left as usize], right_ids[right as usize]) {
            (Some(left), Some(right)) => {
                known.push(left, right, rating);
            }
            (left, right) => test.others.push(OtherRating { left, right, rating }),
        }
    }
    test
}
