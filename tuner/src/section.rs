//! Where to try next along one range, around the best of what was tried there.
//!
//! How fast training converges rises with a step, say, is level around the best one, and falls or breaks off above it. So the best
//! value lies between the neighbours of the best that was tried. Where both of these make progress, the next trial is at the top of
//! the parabola through the three in logarithms of speed (Brent 1973), else halfway to the neighbour above; or halfway to the one
//! below if that is nearly as fast as the best, so that the top lies between the two. The bracket gets narrower with each trial,
//! whichever side wins, until it is too narrow to matter.
//!
//! Where a neighbour is nearly as fast as the best, though not near it, the trials were too short to tell: the next ones take twice
//! as long. Then the neighbours tell where the bracket ends, but not on which side its top is; above is looked first, as larger
//! values tend to win where trials get longer.

use crate::searcher::NEAR;

/// Neighbours that are nearer than this part of the range have nothing between them that is worth a trial: of the range of steps
/// from 1e-5 to 1 that is a factor of 1.4.
const NARROW: f64 = 0.03;
/// A trial is at least this part of the way from a point to the next, so that the bracket gets narrower.
const APART: f64 = 0.15;

/// What came of a trial, for one range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    pub at: f64,
    /// Its speed as a part of that of the best in the same time.
    pub speed: f64,
    /// Whether it ran for a shorter time than the best.
    pub is_short: bool,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// To try this coordinate.
    At(f64),
    /// To let the best go on, and to try for twice the time from now on.
    Longer,
    /// Nothing: the bracket is narrow.
    Narrow,
}

/// Tells what to do after some trials, given the coordinate of the best.
pub fn next(best: f64, tried: &[Tried]) -> Next {
    // The range's ends were not tried, and are no less likely than what lies before them.
    let end = |at| Tried { at, speed: 0.0, is_short: false };
    let below = tried.iter().filter(|one| one.at < best).max_by(|a, b| a.at.total_cmp(&b.at));
    let above = tried.iter().filter(|one| one.at > best).min_by(|a, b| a.at.total_cmp(&b.at));
    let (below, above) = (below.copied().unwrap_or(end(0.0)), above.copied().unwrap_or(end(1.0)));
    let gap = |neighbour: &Tried| (neighbour.at - best).abs();
    if gap(&below).max(gap(&above)) < NARROW {
        return Next::Narrow;
    }
    let is_level = |one: &Tried| one.speed >= 1.0 - NEAR;
    if [below, above].iter().any(|one| is_level(one) && !one.is_short && gap(one) >= NARROW) {
        return Next::Longer;
    }
    let is_known = !below.is_short && !above.is_short;
    let log = |one: &Tried| (one.at - best, one.speed.ln());
    let top = (is_known && below.speed > 0.0 && above.speed > 0.0).then(|| top(log(&below), log(&above)));
    let upwards = match top {
        Some(top) => top >= 0.0,
        None => above.is_short || !below.is_short && !is_level(&below),
    };
    // Where that side is narrow already, the other one is not.
    let is_narrow = gap(if upwards { &above } else { &below }) < NARROW;
    let side = if upwards != is_narrow { &above } else { &below };
    let width = gap(side);
    let far = top.filter(|_| !is_narrow).map_or(0.5 * width, f64::abs);
    let least = (APART * width).max(0.5 * NARROW);
    Next::At(best + far.clamp(least, width - least).copysign(side.at - best))
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

    fn tried(at: f64, speed: f64) -> Tried {
        Tried { at, speed, is_short: false }
    }

    /// Tries points at even distances from `first` on, and then as [`next`] says; returns the best, and the clocks of all trials.
    /// `speed` is at a point after some clocks.
    fn search(speed: impl Fn(f64, usize) -> f64, first: f64, count: usize) -> (f64, usize) {
        let mut points: Vec<(f64, usize)> =
            (0..count).map(|n| ((first + n as f64 / count as f64).fract(), 1)).collect();
        let mut clocks = 1;
        loop {
            let longest = points.iter().filter(|point| point.1 == clocks);
            let best = longest.max_by(|a, b| speed(a.0, clocks).total_cmp(&speed(b.0, clocks))).unwrap().0;
            let along = points.iter().filter(|point| point.0 != best).map(|&(at, ran)| Tried {
                at,
                speed: speed(at, ran) / speed(best, ran).max(f64::MIN_POSITIVE),
                is_short: ran < clocks,
            });
            match next(best, &along.collect::<Vec<_>>()) {
                Next::At(at) => points.push((at, clocks)),
                Next::Longer => {
                    clocks *= 2;
                    points.iter_mut().filter(|point| point.0 == best).for_each(|point| point.1 = clocks);
                }
                Next::Narrow => return (best, points.iter().map(|point| point.1).sum()),
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
    fn what_lies_between_two_level_ones_is_tried_for_longer() {
        // In one pass steps of 0.08 and 0.32 are level, and 0.16 is best.
        assert_eq!(next(0.875, &[tried(0.75, 0.95), tried(0.5, 0.1)]), Next::Longer);
        let level = Tried { at: 0.75, speed: 0.95, is_short: true };
        assert_eq!(next(0.875, &[level, tried(1.0, 0.3)]), Next::At(0.8125));
        // Above first, if that is not known either.
        assert_eq!(next(0.875, &[level, Tried { at: 1.0, speed: 0.95, is_short: true }]), Next::At(0.9375));
    }

    #[test]
    fn a_slope_is_climbed() {
        assert_eq!(next(0.5, &[tried(0.25, 0.1)]), Next::At(0.75));
        assert_eq!(next(0.5, &[tried(0.25, 0.1), tried(0.75, 0.0)]), Next::At(0.625));
        // Both sides of a narrow bracket are too near.
        assert_eq!(next(0.6, &[tried(0.58, 0.99), tried(0.625, 0.0)]), Next::Narrow);
    }

    /// Speed as that of a step: it rises steeply, is level below the top, falls above it, and is 0 beyond a cliff.
    fn hill(top: f64, steep: f64, level: f64, fall: f64, cliff: f64) -> impl Fn(f64, usize) -> f64 {
        move |x, _| match x - top {
            above if above > cliff => 0.0,
            above if above > 0.0 => (-fall * above).exp(),
            below => (-steep * below * below / (level - below)).exp(),
        }
    }

    #[test]
    fn few_clocks_lead_near_the_top_of_most_hills() {
        let mut random = rand::rngs::Xoshiro256PlusPlus::seed_from_u64(1);
        let mut clocks: Vec<usize> = std::iter::from_fn(|| {
            let mut of = |low: f64, high: f64| low + (high - low) * random.random::<f64>();
            let hill = hill(of(0.05, 0.95), of(2.0, 40.0), of(0.001, 0.2), of(1.0, 60.0), of(0.0, 0.1));
            Some(search(hill, of(0.0, 1.0), 3).1)
        })
        .take(1000)
        .collect();
        clocks.sort_unstable();
        assert!(clocks[500] <= 10 && clocks[900] <= 20, "{} {}", clocks[500], clocks[900]);
    }

    #[test]
    fn what_is_level_at_first_and_best_later_is_found() {
        // In the first clock all from 0.76 to 0.86 are about as fast, later the largest of them; larger ones diverge.
        let speed = |x: f64, clocks: usize| match x {
            x if x > 0.88 => 0.0,
            x => (-20.0 * (0.76 - x).max(0.0)).exp() * (if clocks > 1 { 8.0 } else { 0.2 } * x).exp(),
        };
        for seed in 0..50 {
            let (best, clocks) = search(speed, f64::from(seed) / 50.0, 3);
            assert!((0.85..=0.88).contains(&best) && clocks <= 22, "{seed}: {best} in {clocks}");
        }
    }

    proptest! {
        #[test]
        fn the_top_is_found(
            first in 0.0..1.0_f64, count in 2..6_usize, top in 0.02..0.98_f64, steep in 2.0..40.0_f64,
            level in 0.001..0.2_f64, cliff in 0.0..0.1_f64, fall in 1.0..60.0_f64
        ) {
            let speed = hill(top, steep, level, fall, cliff);
            let (best, _) = search(&speed, first, count);
            // Where none of the first makes progress there is nothing to climb.
            prop_assume!(speed(best, 1) > 0.0);
            prop_assert!((best - top).abs() < NARROW, "{best}");
        }

        #[test]
        fn a_trial_lies_apart_from_others_and_within_the_range(
            best in 0.0..=1.0_f64, others in proptest::collection::vec((0.0..=1.0_f64, 0.0..=1.0_f64, any::<bool>()), 0..9)
        ) {
            let others = others.into_iter().filter(|one| one.0 != best);
            let tried: Vec<Tried> = others.map(|(at, speed, is_short)| Tried { at, speed, is_short }).collect();
            if let Next::At(at) = next(best, &tried) {
                prop_assert!((0.0..=1.0).contains(&at));
                prop_assert!((at - best).abs() >= 0.49 * NARROW);
                prop_assert!(tried.iter().all(|one| (one.at - at).abs() >= 0.49 * NARROW), "{at}");
            }
        }
    }
}
