//! Samples of unit length.

use megagrid_partition::EdgeList;

/// Scales the values of each sample to unit length, in whatever order they are; no feature has two of a sample.
pub fn normalize(values: &mut EdgeList<f32>) {
    let mut lengths = vec![0.0; values.num_left];
    for (&sample, &x) in values.left.iter().zip(&values.data) {
        lengths[sample as usize] += f64::from(x).powi(2);
    }
    lengths.iter_mut().for_each(|length| *length = length.sqrt());
    for (&sample, x) in values.left.iter().zip(&mut values.data) {
        let length = lengths[sample as usize];
        *x = if length > 0.0 { (f64::from(*x) / length) as f32 } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_unit_length_or_none() {
        let mut values = EdgeList::with_capacity(5);
        // Feature after feature.
        for (sample, feature, x) in [(0, 0, 4.0), (1, 0, 0.0), (0, 1, 3.0), (2, 2, -7.0)] {
            values.push(sample, feature, x);
        }
        (values.num_left, values.num_right) = (3, 3);
        normalize(&mut values);
        assert_eq!(values.data, [0.8, 0.0, 0.6, -1.0]);
    }
}
