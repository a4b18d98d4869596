//! Features whose values single precision hardly tells apart, as times in seconds since 1970.

use megagrid_partition::{EdgeSource, Side};

use super::data::Samples;
use crate::Error;
use crate::error::reading;

/// Fewer steps of single precision between the least and the greatest value are few.
const FEW: f32 = 256.0;
/// From here on whole numbers are not all numbers of single precision, so that those which differed may be one.
const WHOLE: f32 = (1 << f32::MANTISSA_DIGITS) as f32;
/// Features that a line to the user names.
const LISTED: usize = 3;

/// Warns of features whose values are large and differ by little, in one line.
pub(super) fn warn(samples: &Samples) -> Result<(), Error> {
    let found = coarse(samples)?;
    if !found.is_empty() {
        let more = if found.len() > LISTED { format!(" and {} more", found.len() - LISTED) } else { String::new() };
        let named: Vec<_> = found.iter().take(LISTED).map(|&feature| samples.features.name(feature)).collect();
        tracing::warn!(
            "{}{more}: values of a feature differ by less than single precision tells apart at their size; subtract a constant",
            named.join(", ")
        );
    }
    Ok(())
}

/// Returns these features. One that some samples lack has the value 0 there, from which others are far enough.
fn coarse(samples: &Samples) -> Result<Vec<u32>, Error> {
    let (all, offsets) = (samples.values.num_vertices(Side::Left) as u64, samples.values.offsets(Side::Right));
    let mut found = Vec::new();
    for feature in (0..samples.features.len()).filter(|&feature| offsets[feature + 1] - offsets[feature] == all) {
        let look = &mut |_: &[u32], values: &[f32]| {
            if are_coarse(values) {
                found.push(feature as u32);
            }
        };
        samples.values.visit_rows(Side::Right, feature..feature + 1, look).map_err(reading)?;
    }
    Ok(found)
}

fn are_coarse(values: &[f32]) -> bool {
    let ends = (f32::INFINITY, f32::NEG_INFINITY);
    let (least, greatest) = values.iter().fold(ends, |(least, greatest), &x| (x.min(least), x.max(greatest)));
    let size = greatest.max(-least);
    greatest - least < FEW * (size.next_up() - size) && (least < greatest || size >= WHOLE)
}

#[cfg(test)]
mod tests {
    use super::are_coarse;

    #[test]
    fn values_are_coarse_where_few_steps_lie_between_them() {
        let spread = |from: f64, by: f64| (0..9).map(|at| (from + f64::from(at) * by) as f32).collect::<Vec<_>>();
        for (from, by) in [(1.7e9, 75.0), (1.7e9, 1.0), (-1.7e9, 75.0), (1e6, 0.1), (1e-3, 1e-10)] {
            assert!(are_coarse(&spread(from, by)), "{from} by {by}");
        }
        for (from, by) in [(0.0, 75.0), (1.7e9, 1e5), (2020.0, 1.0), (1.0, 0.0), (2024.0, 0.0), (-4.0, 1.0), (0.0, 0.0)]
        {
            assert!(!are_coarse(&spread(from, by)), "{from} by {by}");
        }
    }
}
