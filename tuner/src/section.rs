//! Where to try next along one range, around the best of what was tried there.
//!
//! How fast training converges rises with a step, say, is level around the best one, and falls or breaks off above it. So the best
//! value lies between the neighbours of the best that was tried. Where both of these make progress, the next trial is at the top of
//! the parabola through the three in logarithms of speed (Brent 1973), else halfway to the neighbour above; or halfway to the one
//! below if that is as fast as the best, so that the top lies between the two. The bracket gets narrower with each trial, whichever
//! side wins, until it is too narrow to matter.

use crate::searcher::NEAR;

/// Neighbours that are nearer than this part of the range have nothing between them that is worth a trial: of the range of steps
/// from 1e-5 to 1 that is a factor of 1.4.
pub const NARROW: f64 = 0.03;
/// A trial is at least this part of the way from a point to the next, so that the bracket gets narrower.
const APART: f64 = 0.15;

/// Returns the coordinate to be tried next, given those that were tried, each with its speed (0: no progress), and the best of
/// them; `None` if there is nothing between it and its neighbours that is worth it.
pub fn next(best: (f64, f64), tried: &[(f64, f64)]) -> Option<f64> {
    let (at, speed) = best;
    let below = tried.iter().filter(|one| one.0 < at).max_by(|a, b| a.0.total_cmp(&b.0));
    let above = tried.iter().filter(|one| one.0 > at).min_by(|a, b| a.0.total_cmp(&b.0));
    // The range's ends were not tried, and are no less likely than what lies before them.
    let (low, low_speed) = below.copied().unwrap_or((0.0, 0.0));
    let (high, high_speed) = above.copied().unwrap_or((1.0, 0.0));
    let top = (low_speed > 0.0 && high_speed > 0.0)
        .then(|| top((low - at, (low_speed / speed).ln()), (high - at, (high_speed / speed).ln())));
    let upwards = top.map_or(low_speed < (1.0 - NEAR) * speed, |top| top >= 0.0);
    let gap = |upwards| if upwards { high - at } else { at - low };
    if gap(true).max(gap(false)) < NARROW {
        return None;
    }
    // Where that side is narrow already, the other one is not.
    let side = if gap(upwards) < NARROW { !upwards } else { upwards };
    let width = gap(side);
    let far = top.filter(|_| side == upwards).map_or(0.5 * width, f64::abs);
    let least = (APART * width).max(0.5 * NARROW);
    let far = far.clamp(least, width - least);
    Some(if side { at + far } else { at - far })
}

/// Returns where the parabola through two points and the origin has its top; neither point is above the origin, one is left of it.
fn top((left, down_left): (f64, f64), (right, down_right): (f64, f64)) -> f64 {
    let (of_left, of_right) = (down_left * right, down_right * left);
    let twice = 2.0 * (of_left - of_right);
    // A level one has its top anywhere.
    if twice < 0.0 { (of_left * right - of_right * left) / twice } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};

    /// Tries points at even distances from `first` on, and then as [`next`] says; returns the best and how many were tried.
    fn search(speed: impl Fn(f64) -> f64, first: f64, count: usize) -> (f64, usize) {
        let mut tried: Vec<(f64, f64)> =
            (0..count).map(|n| (first + n as f64 / count as f64).fract()).map(|at| (at, speed(at))).collect();
        loop {
            let best = *tried.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            match next(best, &tried) {
                Some(at) => tried.push((at, speed(at))),
                None => return (best.0, tried.len()),
            }
        }
    }

    #[test]
    fn a_parabola_has_its_top_between() {
        let curve = |x: f64| -3.0 * (x - 0.2).powi(2) + 3.0 * 0.04;
        assert!((top((-0.5, curve(-0.5)), (0.7, curve(0.7))) - 0.2).abs() < 1e-12);
        assert_eq!(top((-0.5, 0.0), (0.7, 0.0)), 0.0);
    }

    #[test]
    fn what_lies_between_two_level_ones_is_tried() {
        // In one pass steps of 0.08 and 0.32 are level, and 0.16 is best.
        assert!((next((0.9, 1.0), &[(0.9, 1.0), (0.78, 0.95), (0.4, 0.1)]).unwrap() - 0.84).abs() < 1e-9);
        let at = next((0.9, 1.0), &[(0.9, 1.0), (0.78, 0.95), (0.95, 0.3)]).unwrap();
        assert!((0.8..0.88).contains(&at), "{at}");
    }

    #[test]
    fn a_slope_is_climbed() {
        assert_eq!(next((0.6, 1.0), &[(0.6, 1.0), (0.3, 0.1)]), Some(0.8));
        assert_eq!(next((0.6, 1.0), &[(0.6, 1.0), (0.3, 0.1), (0.8, 0.0)]), Some(0.7));
        // Both sides of a narrow bracket are too near.
        assert_eq!(next((0.6, 1.0), &[(0.58, 0.99), (0.6, 1.0), (0.625, 0.0)]), None);
    }

    /// Speed as that of a step: it rises steeply, is level below the top, falls above it, and is 0 beyond a cliff.
    fn hill(top: f64, steep: f64, level: f64, fall: f64, cliff: f64) -> impl Fn(f64) -> f64 {
        move |x| match x - top {
            above if above > cliff => 0.0,
            above if above > 0.0 => (-fall * above).exp(),
            below => (-steep * below * below / (level - below)).exp(),
        }
    }

    #[test]
    fn nine_trials_are_enough_for_half_of_all_hills_and_twelve_for_most() {
        let mut random = rand::rngs::Xoshiro256PlusPlus::seed_from_u64(1);
        let mut tried: Vec<usize> = std::iter::from_fn(|| {
            let mut of = |low: f64, high: f64| low + (high - low) * random.random::<f64>();
            let hill = hill(of(0.05, 0.95), of(2.0, 40.0), of(0.001, 0.2), of(1.0, 60.0), of(0.0, 0.1));
            Some(search(hill, of(0.0, 1.0), 3).1)
        })
        .take(1000)
        .collect();
        tried.sort_unstable();
        assert!(tried[500] <= 9 && tried[950] <= 12, "{} {}", tried[500], tried[950]);
    }

    proptest! {
        #[test]
        fn the_top_is_found(
            first in 0.0..1.0_f64, count in 2..6_usize, top in 0.02..0.98_f64, steep in 2.0..40.0_f64,
            level in 0.001..0.2_f64, cliff in 0.0..0.1_f64, fall in 1.0..60.0_f64
        ) {
            let speed = hill(top, steep, level, fall, cliff);
            let (best, tried) = search(&speed, first, count);
            // Where none of the first makes progress there is nothing to climb.
            prop_assume!(speed(best) > 0.0);
            prop_assert!((best - top).abs() < NARROW, "{best} after {tried}");
            prop_assert!(tried <= count + 16, "{tried}");
        }

        #[test]
        fn a_trial_lies_apart_from_others_and_within_the_range(
            tried in proptest::collection::vec((0.0..=1.0_f64, 0.0..1.0_f64), 1..9)
        ) {
            let best = *tried.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            if let Some(at) = next(best, &tried) {
                prop_assert!((0.0..=1.0).contains(&at));
                prop_assert!(tried.iter().all(|one| (one.0 - at).abs() >= 0.49 * NARROW), "{at}");
            }
        }
    }
}
