//! Grid vertex-cut: partitions form rows and columns; the left end of an edge picks the row, its right end the column.
//!
//! A left vertex then has at most as many replicas as there are columns, a right one as there are rows, about the
//! square root of P [two-dimensional partitioning; Jain, Liao, Willke: GraphBuilder, GRADES 2013]. Where P is prime,
//! there is one row or one column, and one side is not cut at all.

use super::rule::{Strategy, hashed};
use crate::parallel;
use crate::{Ends, Side};

/// Places edges by a hash of the left end and one of the right end.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Picks the hash functions.
    pub seed: u64,
}

/// Returns rows and columns, as near to a square as the number of partitions allows. The side with more vertices gets
/// the fewer replicas.
pub(crate) fn shape(ends: Ends<'_>, num_partitions: usize) -> (usize, usize) {
    let is_divisor = |&n: &usize| num_partitions.is_multiple_of(n);
    let short = (1..=num_partitions.isqrt()).rev().find(is_divisor).unwrap_or(1);
    let long = num_partitions / short;
    if ends.num_left >= ends.num_right { (long, short) } else { (short, long) }
}

impl Strategy for Grid {
    fn name(&self) -> &'static str {
        "grid"
    }

    fn assign(&self, ends: Ends<'_>, num_partitions: usize) -> Vec<u16> {
        let (num_rows, num_columns) = shape(ends, num_partitions);
        let place = |edge: usize| {
            let (left, right) = (ends.left[edge], ends.right[edge]);
            let row = usize::from(hashed(self.seed, Side::Left, left, num_rows));
            let column = usize::from(hashed(self.seed, Side::Right, right, num_columns));
            (row * num_columns + column) as u16
        };
        parallel::fill(ends.left.len(), place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_near_squares() {
        let ends = Ends { num_left: 10, num_right: 5, square: false, left: &[], right: &[] };
        assert_eq!([1, 2, 7, 12, 16].map(|n| shape(ends, n)), [(1, 1), (2, 1), (7, 1), (4, 3), (4, 4)]);
        assert_eq!(shape(Ends { num_left: 2, ..ends }, 12), (3, 4));
    }
}
