//! Quality over time, the smaller the better, and when a curve reaches a goal.

/// Points (progress, quality): progress in iterations or seconds, rising.
pub type Curve = Vec<(f64, f64)>;

/// Where the curve first comes down to `goal`, between two points by a straight line.
pub fn reach(curve: &Curve, goal: f64) -> Option<f64> {
    let mut before = None;
    for &(x, quality) in curve {
        if quality <= goal {
            return Some(match before {
                Some((x0, quality0)) => x0 + (x - x0) * (quality0 - goal) / (quality0 - quality),
                None => x,
            });
        }
        before = Some((x, quality));
    }
    None
}

/// The soonest point that is at `goal` or below, nothing interpolated; the points may be in any order.
pub fn soonest(curve: &Curve, goal: f64) -> Option<f64> {
    curve.iter().filter(|point| point.1 <= goal).map(|point| point.0).reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reach_interpolates() {
        let curve = vec![(1.0, 0.9), (2.0, 0.8), (3.0, 0.7)];
        assert!((reach(&curve, 0.75).expect("reached") - 2.5).abs() < 1e-9);
        assert_eq!(reach(&curve, 0.95), Some(1.0));
        assert_eq!(reach(&curve, 0.6), None);
    }

    #[test]
    fn soonest_does_not() {
        let curve = vec![(1.0, 0.9), (4.0, 0.7), (3.0, 0.6)];
        assert_eq!(soonest(&curve, 0.75), Some(3.0));
        assert_eq!(soonest(&curve, 0.5), None);
    }
}
