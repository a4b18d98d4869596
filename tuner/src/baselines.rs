//! Tuners to compare with, on the same trainers: Spearmint-like and Hyperband.
//!
//! Neither goes on with a branch of another setting: each setting trains from the beginning. They have no end of their own: they
//! stop at a target or at a limit. Where the trainer measures held-out errors, these are what a setting is judged by, else losses.

use serde::Serialize;

use crate::branches::{Branches, Live, Watch};
use crate::history::ROOT;
use crate::searcher::{Kind, Observation, Searcher};
use crate::space::{Setting, Space};
use crate::trainer::Trainer;
use crate::tuner::{Plateau, of_epochs};

/// When a baseline stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// At this loss, or held-out error.
    pub target: f64,
    /// At this time.
    pub time: f64,
    /// Clocks of one setting, at most.
    pub clocks: u64,
}

/// What a baseline found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// The time at which the target was reached, if it was.
    pub reached: Option<f64>,
    /// The best loss, or held-out error, and the setting that reached it.
    pub best: Option<(f64, Setting)>,
    /// Settings tried.
    pub trials: usize,
    /// Time of all.
    pub elapsed: f64,
}

impl Found {
    fn take(&mut self, live: &Live, loss: f64) {
        if loss.is_finite() && self.best.as_ref().is_none_or(|(best, _)| loss < *best) {
            self.best = Some((loss, live.setting.clone()));
        }
    }
}

/// Returns what a branch is judged by now; `None`: within an epoch, whose end shows whether there are held-out errors.
fn judged(live: &Live, epoch: u64) -> Option<f64> {
    live.tested().or((live.errors().is_empty() && live.clocks().is_multiple_of(epoch)).then(|| live.loss()))
}

/// Returns what a branch was judged by last. What diverged comes last.
fn last_judged(live: &Live) -> f64 {
    let judged = live.errors().last().copied().unwrap_or(live.loss());
    if live.diverged() { f64::INFINITY } else { judged }
}

struct Baseline<'t, T: Trainer> {
    branches: Branches<'t, T>,
    loss: f64,
    limits: Limits,
    found: Found,
}

impl<'t, T: Trainer> Baseline<'t, T> {
    fn begin(trainer: &'t mut T, space: &'t Space, limits: Limits, watch: Watch<'t>) -> Result<Self, T::Error> {
        let loss = trainer.report(ROOT)?;
        let found = Found { reached: None, best: None, trials: 0, elapsed: 0.0 };
        Ok(Self { branches: Branches::new(trainer, space, watch), loss, limits, found })
    }

    fn fork(&mut self, point: Vec<f64>) -> Result<Live, T::Error> {
        self.found.trials += 1;
        self.branches.fork(ROOT, self.loss, point)
    }

    /// Runs a clock, and tells whether the baseline goes on.
    fn run(&mut self, live: &mut Live) -> Result<bool, T::Error> {
        self.branches.run(live)?;
        self.found.elapsed = self.branches.elapsed;
        if let Some(judged) = judged(live, self.branches.trainer.epoch()) {
            self.found.take(live, judged);
            if judged <= self.limits.target {
                self.found.reached.get_or_insert(self.branches.elapsed);
            }
        }
        Ok(self.found.reached.is_none() && self.branches.elapsed < self.limits.time)
    }
}

/// When a setting's held-out errors have come to their end (thesis §5.4.1).
const STALLED: Plateau = Plateau { clocks: 5, change: 0.0 };

/// Tells whether a setting has trained to its end: a plateau of its held-out errors, or of its losses from that at the fork.
fn is_at_end(live: &Live, epoch: u64) -> bool {
    let errors = live.errors();
    if !errors.is_empty() {
        return STALLED.stalls(&[], &errors).is_some();
    }
    let losses: Vec<f64> = live.trace[1..].iter().map(|report| report.loss).collect();
    Plateau::default().is_reached(&[vec![live.trace[0].loss], of_epochs(&losses, epoch)].concat())
}

/// Tunes as Spearmint does: a Gaussian process proposes, and every setting trains to its end, a plateau. It learns from the
/// logarithm of the loss there; a setting that diverged counts as one that does not train.
///
/// # Errors
/// The trainer's.
pub fn spearmint<T: Trainer>(
    trainer: &mut T,
    space: &Space,
    seed: u64,
    limits: Limits,
    watch: Watch<'_>,
) -> Result<Found, T::Error> {
    let mut searcher = Kind::Gp.searcher(space, seed);
    let mut baseline = Baseline::begin(trainer, space, limits, watch)?;
    while let Some(point) = searcher.propose() {
        let mut live = baseline.fork(point)?;
        let (mut goes_on, epoch) = (true, baseline.branches.trainer.epoch());
        while goes_on && !live.diverged() && live.clocks() < limits.clocks && !is_at_end(&live, epoch) {
            goes_on = baseline.run(&mut live)?;
        }
        let loss = if live.diverged() { baseline.loss } else { last_judged(&live) };
        searcher.observe(Observation { point: live.point.clone(), value: -loss.max(f64::MIN_POSITIVE).ln() });
        baseline.branches.free(live.branch)?;
        if !goes_on {
            break;
        }
    }
    Ok(baseline.found)
}

/// Tunes as Hyperband with an infinite horizon does (Li, Jamieson, DeSalvo, Rostamizadeh and Talwalkar 2018): for each
/// budget 2^k of epochs and each number 2^s of random settings with s ≤ k − log2 s, successive halving.
///
/// # Errors
/// The trainer's.
pub fn hyperband<T: Trainer>(
    trainer: &mut T,
    space: &Space,
    seed: u64,
    limits: Limits,
    watch: Watch<'_>,
) -> Result<Found, T::Error> {
    let mut searcher = Kind::Random.searcher(space, seed);
    let mut baseline = Baseline::begin(trainer, space, limits, watch)?;
    for k in 1..63_u32 {
        for s in (1..=k).filter(|&s| f64::from(k - s) >= f64::from(s).log2()) {
            if !halve(&mut baseline, &mut *searcher, 1 << s, 1 << k)? {
                return Ok(baseline.found);
            }
        }
    }
    Ok(baseline.found)
}

/// Trains some settings, gives up the worse half, trains the others longer, and so on; a budget of clocks is spent in equal parts.
fn halve<T: Trainer>(
    baseline: &mut Baseline<'_, T>,
    searcher: &mut dyn Searcher,
    settings: u64,
    budget: u64,
) -> Result<bool, T::Error> {
    let rounds = u64::from(settings.ilog2()).max(1);
    let epoch = baseline.branches.trainer.epoch();
    let mut alive = Vec::new();
    for _ in 0..settings {
        if let Some(point) = searcher.propose() {
            alive.push(baseline.fork(point)?);
        }
    }
    let mut goes_on = true;
    for _ in 0..rounds {
        let clocks = epoch * (budget / (alive.len() as u64 * rounds)).max(1);
        for live in &mut alive {
            for _ in 0..clocks {
                if !goes_on || live.diverged() || live.clocks() >= baseline.limits.clocks {
                    break;
                }
                goes_on = baseline.run(live)?;
            }
        }
        alive.sort_by(|a, b| last_judged(a).total_cmp(&last_judged(b)));
        for worse in alive.split_off(alive.len().div_ceil(2)) {
            baseline.branches.free(worse.branch)?;
        }
    }
    for live in alive {
        baseline.branches.free(live.branch)?;
    }
    Ok(goes_on)
}
