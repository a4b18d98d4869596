//! Samples of unit length.

use megagrid_partition::EdgeList;

/// Scales the values of each sample to unit length. Values of a feature that a sample has several times count as their sum; those of a
/// sample stand side by side.
pub fn normalize(values: &mut EdgeList<f32>) {
    let (mut begin, mut sorted) = (0, Vec::new());
    for sample in values.left.chunk_by(|one, next| one == next) {
        let range = begin..begin + sample.len();
        begin = range.end;
        let (features, data) = (&values.right[range.clone()], &mut values.data[range]);
        let length = length(features, data, &mut sorted);
        data.iter_mut().for_each(|x| *x = if length > 0.0 { (f64::from(*x) / length) as f32 } else { 0.0 });
    }
}

/// Returns the length of a sample; `sorted` is room.
fn length(features: &[u32], data: &[f32], sorted: &mut Vec<(u32, f64)>) -> f64 {
    let square = |x: f64| x * x;
    if features.windows(2).all(|pair| pair[0] < pair[1]) {
        return data.iter().map(|&x| square(f64::from(x))).sum::<f64>().sqrt();
    }
    sorted.clear();
    sorted.extend(features.iter().zip(data).map(|(&feature, &x)| (feature, f64::from(x))));
    sorted.sort_unstable_by_key(|one| one.0);
    let of_features = sorted.chunk_by(|one, next| one.0 == next.0);
    of_features.map(|same| square(same.iter().map(|one| one.1).sum())).sum::<f64>().sqrt()
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
