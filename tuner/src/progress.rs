//! How fast a branch converges, from what it reported (thesis §5.3.1).
//!
//! A trace of reports is divided into K windows, whose means smooth it. With x the windows' losses and t their times,
//!
//! ```text
//! range = x_K − x_1      noise = max(0, max x_(i+1) − x_i)      speed = max(0, −range − noise) / (t_K − t_1)
//! ```
//!
//! A branch is *converging* if `range < 0` and `noise < ε |range|` with ε = 1/K, *diverged* if a loss is no finite number,
//! else *unstable*: a longer trial may tell. K = 10: white noise falls from window to window all the way by a chance below
//! 2^−K. Reports that are the loss itself, of all data, have no noise: then two of them tell.
//!
//! Where losses are of samples, what a branch's loss is now, is the mean of its last window: a tenth of its reports, of an epoch at most.

use serde::{Deserialize, Serialize};

/// Windows of a trace.
pub(crate) const WINDOWS: usize = 10;

/// The loss at a time since the branch was forked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Time since the fork, in the trainer's unit.
    pub time: f64,
    /// The loss, which training makes smaller.
    pub loss: f64,
    /// The held-out error.
    pub tested: Option<f64>,
}

/// What a trace says of its branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// It converges; the speed can be relied on.
    Converging,
    /// It is too early to tell.
    Unstable,
    /// A loss was no finite number.
    Diverged,
}

/// The summary of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// What to make of the branch.
    pub label: Label,
    /// By how much its loss falls in a unit of time, at least; 0 unless it falls.
    pub speed: f64,
}

/// How reports come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// A report is the loss itself.
    Exact,
    /// A report is the loss of some data, others each time.
    Sampled,
}

/// Summarizes a trace, which begins with the loss at the fork.
pub(crate) fn summarize(trace: &[Report], noise: Noise) -> Summary {
    if trace.iter().any(|report| !report.loss.is_finite()) {
        return Summary { label: Label::Diverged, speed: 0.0 };
    }
    let windows = windows(trace);
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
        return Summary { label: Label::Unstable, speed: 0.0 };
    };
    let (range, time) = (last.loss - first.loss, last.time - first.time);
    let rises = windows.windows(2).map(|pair| pair[1].loss - pair[0].loss);
    let highest = rises.fold(0.0, f64::max);
    let enough = match noise {
        Noise::Exact => 2,
        Noise::Sampled => WINDOWS,
    };
    let stable = windows.len() >= enough && range < 0.0 && highest < range.abs() / WINDOWS as f64;
    let speed = if time > 0.0 { ((-range - highest) / time).max(0.0) } else { 0.0 };
    Summary { label: if stable { Label::Converging } else { Label::Unstable }, speed }
}

/// Means of at most [`WINDOWS`] windows of equally many reports, but for one.
fn windows(trace: &[Report]) -> Vec<Report> {
    let count = trace.len().min(WINDOWS);
    let window = |at: usize| {
        let part = &trace[at * trace.len() / count..(at + 1) * trace.len() / count];
        let mean = |of: fn(&Report) -> f64| part.iter().map(of).sum::<f64>() / part.len() as f64;
        Report { time: mean(|report| report.time), loss: mean(|report| report.loss), tested: None }
    };
    (0..count).map(window).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};

    fn trace(losses: impl IntoIterator<Item = f64>) -> Vec<Report> {
        losses.into_iter().enumerate().map(|(n, loss)| Report { time: n as f64, loss, tested: None }).collect()
    }

    fn white_noise(seed: u64, len: usize) -> impl Iterator<Item = f64> {
        let mut random = rand::rngs::Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..len).map(move |_| random.random::<f64>())
    }

    #[test]
    fn a_straight_line_has_its_own_slope() {
        let found = summarize(&trace((0..100).map(|n| 50.0 - 0.25 * f64::from(n))), Noise::Sampled);
        assert_eq!(found.label, Label::Converging);
        assert!((found.speed - 0.25).abs() < 1e-12);
    }

    #[test]
    fn a_rise_is_a_penalty() {
        // Windows of one report: falls 9 by 3 in 9, rises by 0.5 once.
        let losses = [9.0, 8.0, 7.0, 6.0, 6.5, 5.0, 4.0, 3.0, 2.0, 0.0];
        let found = summarize(&trace(losses), Noise::Sampled);
        assert_eq!(found.label, Label::Converging);
        assert!((found.speed - (9.0 - 0.5) / 9.0).abs() < 1e-12);
        // A tenth of the range is too much.
        let losses = [9.0, 8.0, 7.0, 6.0, 6.9, 5.0, 4.0, 3.0, 2.0, 0.0];
        assert_eq!(summarize(&trace(losses), Noise::Sampled).label, Label::Unstable);
    }

    #[test]
    fn a_plateau_and_a_climb_have_no_speed() {
        for losses in [[1.0; 20].to_vec(), (0..20).map(f64::from).collect()] {
            let found = summarize(&trace(losses), Noise::Exact);
            assert_eq!(found, Summary { label: Label::Unstable, speed: 0.0 });
        }
    }

    #[test]
    fn what_is_no_number_diverged_wherever_it_stands() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for at in 0..20 {
                let mut losses: Vec<f64> = (0..20).map(|n| 20.0 - f64::from(n)).collect();
                losses[at] = bad;
                let found = summarize(&trace(losses), Noise::Exact);
                assert_eq!(found, Summary { label: Label::Diverged, speed: 0.0 });
            }
        }
    }

    #[test]
    fn white_noise_hardly_ever_converges() {
        let is_converging =
            |seed: &u64| summarize(&trace(white_noise(*seed, 10)), Noise::Sampled).label == Label::Converging;
        let found = (0..20_000).filter(is_converging).count();
        assert!(found <= 20, "{found} of 20000");
    }

    #[test]
    fn noise_on_a_slope_is_smoothed_by_a_longer_trace() {
        let noisy = |len: usize| trace(white_noise(3, len).zip(0..).map(|(noise, n)| noise - 0.01 * f64::from(n)));
        assert_eq!(summarize(&noisy(12), Noise::Sampled).label, Label::Unstable);
        let found = summarize(&noisy(2000), Noise::Sampled);
        assert_eq!(found.label, Label::Converging);
        assert!((found.speed - 0.01).abs() < 0.001, "{}", found.speed);
    }

    #[test]
    fn few_reports_tell_only_where_there_is_no_noise() {
        assert_eq!(summarize(&trace([2.0, 1.0]), Noise::Exact), Summary { label: Label::Converging, speed: 1.0 });
        assert_eq!(summarize(&trace([2.0, 1.0]), Noise::Sampled).label, Label::Unstable);
        assert_eq!(summarize(&[], Noise::Exact).label, Label::Unstable);
        assert_eq!(summarize(&trace([2.0]), Noise::Exact), Summary { label: Label::Unstable, speed: 0.0 });
    }

    proptest! {
        #[test]
        fn a_falling_trace_converges(steps in proptest::collection::vec(0.01..1.0_f64, 10..200)) {
            let mut loss = 1000.0;
            let losses: Vec<f64> = steps.iter().map(|step| { loss -= step; loss }).collect();
            let found = summarize(&trace(losses), Noise::Sampled);
            prop_assert_eq!(found.label, Label::Converging);
            prop_assert!(found.speed > 0.0);
        }

        #[test]
        fn speed_is_never_negative_and_scales(
            losses in proptest::collection::vec(-1e3..1e3_f64, 2..100), scale in 0.1..10.0_f64
        ) {
            let found = summarize(&trace(losses.iter().copied()), Noise::Sampled);
            prop_assert!(found.speed >= 0.0);
            let scaled = summarize(&trace(losses.iter().map(|loss| loss * scale)), Noise::Sampled);
            prop_assert!((scaled.speed - scale * found.speed).abs() <= 1e-9 * (1.0 + scaled.speed));
        }
    }
}
