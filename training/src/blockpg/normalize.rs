//! Samples of unit length.

use megagrid_partition::EdgeList;

/// Scales the values of each sample to unit length. Values of a feature that a sample has several times count as their sum.
pub fn normalize(values: &mut EdgeList<f32>) {
    let mut squares = vec![0.0_f64; values.num_left];
    for (&sample, &x) in values.left.iter().zip(&values.data) {
        squares[sample as usize] += f64::from(x).powi(2);
    }
    add_products(values, &mut squares);
    for (&sample, x) in values.left.iter().zip(&mut values.data) {
        let length = squares[sample as usize].max(0.0).sqrt();
        *x = if length > 0.0 { (f64::from(*x) / length) as f32 } else { 0.0 };
    }
}

/// Adds what the squares of sums have more than the sums of squares, where a sample has several values of a feature. Those of a sample
/// stand side by side.
fn add_products(values: &EdgeList<f32>, squares: &mut [f64]) {
    let (mut begin, mut sorted) = (0, Vec::new());
    for sample in values.left.chunk_by(|one, next| one == next) {
        let range = begin..begin + sample.len();
        begin = range.end;
        let features = &values.right[range.clone()];
        if features.windows(2).all(|pair| pair[0] < pair[1]) {
            continue;
        }
        sorted.clear();
        sorted.extend(features.iter().zip(&values.data[range]).map(|(&feature, &x)| (feature, f64::from(x))));
        sorted.sort_unstable_by_key(|one| one.0);
        for same in sorted.chunk_by(|one, next| one.0 == next.0).filter(|same| same.len() > 1) {
            let (sum, of_squares) = same.iter().fold((0.0, 0.0), |(sum, squares), (_, x)| (sum + x, squares + x * x));
            squares[sample[0] as usize] += sum * sum - of_squares;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_feature_that_stand_apart_are_one() {
        let mut values = EdgeList::with_capacity(6);
        for (sample, feature, x) in [(0, 1, 1.0), (0, 0, 4.0), (0, 1, 2.0), (1, 0, 1.0), (1, 0, -1.0), (2, 2, 7.0)] {
            values.push(sample, feature, x);
        }
        (values.num_left, values.num_right) = (3, 3);
        normalize(&mut values);
        assert_eq!(values.data, [0.2, 0.8, 0.4, 0.0, 0.0, 1.0]);
    }
}
