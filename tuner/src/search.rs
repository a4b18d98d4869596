//! One search: trials of settings on branches that begin at the same parent, and the best of them (thesis §5.2.3, Algorithm 6).
//!
//! The trial time is found first. It begins with one clock, or the time that the searcher takes to decide if that is longer.
//! While no branch is converging it is doubled: one more setting is tried, and all those before go on for the longer time. Then
//! every setting is tried for that time, and a branch is kept only while it is the best. The search ends when the five best
//! speeds differ by less than 10 %, or where its bounds are reached.
//!
//! A few trials lie far apart. So most of the clocks are kept for a search around the best of them, along one range after the
//! other (`section.rs`), in trials that take longer where the time does not tell near ones apart; it ends when the ranges'
//! brackets are narrow.

use std::time::Instant;

use crate::branches::{Branches, Event, Live};
use crate::error::{Error, Failure};
use crate::history::{Branch, Trial};
use crate::progress::{Label, Noise, Summary, WINDOWS, summarize};
use crate::searcher::{Observation, Searcher, is_settled};
use crate::section::{self, Next};
use crate::space::Point;
use crate::trainer::Trainer;

impl Trial {
    fn of(live: &Live, summary: Summary, search: usize) -> Self {
        Self {
            branch: live.branch,
            search,
            setting: live.setting.clone(),
            clocks: live.clocks(),
            time: live.time(),
            loss: Some(live.loss()).filter(|loss| loss.is_finite()),
            speed: summary.speed,
            label: summary.label,
            chosen: false,
        }
    }
}

/// Percent of a search's clocks that are kept for the search around the best trial.
const KEPT: u64 = 75;

/// What a search may take; clocks are those of all trials.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub trials: usize,
    pub clocks: u64,
    pub clocks_of_trial: u64,
    /// Whether the searcher's own time counts: not where time is no time.
    pub decisions_count: bool,
}

pub struct Search<'s, 't, T: Trainer> {
    pub branches: &'s mut Branches<'t, T>,
    pub searcher: &'s mut dyn Searcher,
    pub bounds: Bounds,
    pub number: usize,
    /// Where all trials begin, and the loss there.
    pub parent: (Branch, f64),
    /// What is to be tried first.
    pub first: Option<Point>,
    /// All trials, of searches before too.
    pub trials: &'s mut Vec<Trial>,
    /// The branches of this search's trials, as they ended.
    pub seen: Vec<Live>,
    /// Seconds that the searcher took to decide, at most.
    pub deciding: f64,
}

/// A trial that was summarized.
struct Tried {
    live: Live,
    summary: Summary,
}

impl<T: Trainer> Search<'_, '_, T> {
    /// Runs the search and returns the best branch, which is alive; the parent is too, others are not.
    ///
    /// # Errors
    /// [`Error::Budget`], [`Error::AllDiverged`]; the trainer's.
    pub fn run(mut self) -> Result<Live, Failure<T::Error>> {
        let least = match self.branches.trainer.noise() {
            Noise::Exact => 1,
            Noise::Sampled => WINDOWS as u64 - 1,
        };
        if self.bounds.clocks < least {
            return Err(Error::Budget { budget: self.bounds.clocks as f64, needed: least as f64 }.into());
        }
        let end = self.branches.clocks + self.bounds.clocks;
        let begin = self.trials.len();
        let kept = if self.ranges().next().is_some() { self.bounds.clocks * KEPT / 100 } else { 0 };
        if let Some(settings) = self.searcher.settings().filter(|_| kept == 0) {
            // Each is to have its trial.
            let part = self.bounds.clocks / settings.clamp(1, self.bounds.trials) as u64;
            self.bounds.clocks_of_trial = self.bounds.clocks_of_trial.min(part.max(least));
        }
        let first_end = end - kept.min(self.bounds.clocks - least);
        let (trial_time, mut best) = self.find_trial_time(first_end)?;
        // Nothing lies around trials of which none makes progress.
        while self.goes_on(begin, if best.as_ref().is_some_and(is_progress) { first_end } else { end }) {
            let Some(live) = self.next_trial()? else { break };
            best = Some(self.contest(best, live, trial_time, end)?);
        }
        let best = best.filter(|best| best.summary.label != Label::Diverged);
        let Some(best) = best else { return Err(self.all_diverged(begin).into()) };
        let best = self.look_around(best, trial_time, (begin, end))?;
        if let Some(trial) = self.trials.iter_mut().find(|trial| trial.branch == best.live.branch) {
            trial.chosen = true;
        }
        self.branches.tell(&Event::Chosen { branch: best.live.branch });
        Ok(best.live)
    }

    /// Returns the places of the tunables that are ranges.
    fn ranges(&self) -> impl Iterator<Item = usize> + use<'_, T> {
        let tunables = self.branches.space.tunables().iter().enumerate();
        tunables.filter(|(_, one)| one.choices().is_none()).map(|(at, _)| at)
    }

    /// Doubles the trial time until a branch converges, and returns it with the best branch.
    fn find_trial_time(&mut self, end: u64) -> Result<(f64, Option<Tried>), Failure<T::Error>> {
        let (mut trial_time, mut alive) = (0.0_f64, Vec::<Live>::new());
        let begin = self.trials.len();
        loop {
            let mut has_next = self.trials.len() - begin + alive.len() < self.bounds.trials;
            if has_next {
                let next = self.next_trial()?;
                has_next = next.is_some();
                alive.extend(next);
            }
            if self.bounds.decisions_count {
                trial_time = trial_time.max(self.deciding);
            }
            // Of the clocks that are left the new one is to have some.
            for live in alive.iter_mut().rev() {
                self.train(live, trial_time, end)?;
            }
            if let Some(longest) = alive.iter().map(Live::time).max_by(f64::total_cmp) {
                trial_time = trial_time.max(longest);
            }
            for live in alive.extract_if(.., |live| live.diverged()).collect::<Vec<_>>() {
                let branch = self.conclude(live).live.branch;
                self.branches.free(branch).map_err(Failure::Trainer)?;
            }
            let converges = alive.iter().any(|live| self.branches.summarize(live).label == Label::Converging);
            let longest = alive.iter().map(Live::clocks).max().unwrap_or(0);
            let goes_on = has_next || alive.iter().any(|live| !live.finished);
            let is_over = self.branches.clocks >= end || longest >= self.bounds.clocks_of_trial || !goes_on;
            if converges || is_over {
                return Ok((trial_time, self.best_of(alive)?));
            }
            // Diverged ones tell nothing of the time that others need, nor does a single one that may be out of range.
            if alive.len() > 1 || !has_next {
                trial_time *= 2.0;
            }
        }
    }

    fn best_of(&mut self, alive: Vec<Live>) -> Result<Option<Tried>, Failure<T::Error>> {
        let mut best = None;
        for live in alive {
            let tried = self.conclude(live);
            best = Some(self.better(best, tried)?);
        }
        Ok(best)
    }

    /// Trains a branch for the trial time, and frees it or the best one so far, whichever is worse.
    fn contest(
        &mut self,
        best: Option<Tried>,
        mut live: Live,
        time: f64,
        end: u64,
    ) -> Result<Tried, Failure<T::Error>> {
        self.train(&mut live, time, end)?;
        let tried = self.conclude(live);
        self.better(best, tried)
    }

    /// Returns the better one, and frees the other.
    fn better(&mut self, best: Option<Tried>, tried: Tried) -> Result<Tried, Failure<T::Error>> {
        let (better, worse) = match best {
            Some(best) if is_better(&tried, &best) => (tried, best),
            Some(best) => (best, tried),
            None => return Ok(tried),
        };
        self.branches.free(worse.live.branch).map_err(Failure::Trainer)?;
        Ok(better)
    }

    /// Tries what lies around the best of the trials since `begin`, along the ranges by turns.
    fn look_around(
        &mut self,
        mut best: Tried,
        mut time: f64,
        (begin, end): (usize, u64),
    ) -> Result<Tried, Failure<T::Error>> {
        let ranges: Vec<usize> = self.ranges().collect();
        let mut narrow = 0;
        for &at in ranges.iter().cycle() {
            // A trial that is cut short tells nothing.
            let is_room = self.branches.clocks + best.live.clocks() <= end && self.is_room(begin, end);
            if narrow == ranges.len() || !is_room || !is_progress(&best) {
                break;
            }
            match section::next(best.live.point[at], &self.along(at, &best.live)) {
                Next::Narrow => narrow += 1,
                Next::Longer => {
                    time = 2.0 * best.live.time();
                    if !self.prolong(&mut best, time, end)? {
                        break;
                    }
                }
                Next::At(next) => {
                    narrow = 0;
                    let mut point = best.live.point.clone();
                    point[at] = next;
                    self.first = Some(point);
                    let Some(live) = self.next_trial()? else { break };
                    best = self.contest(Some(best), live, time, end)?;
                }
            }
        }
        Ok(best)
    }

    /// Returns this search's trials along a range, but for the best, each compared with it over the time that both ran.
    fn along(&mut self, at: usize, best: &Live) -> Vec<section::Tried> {
        let noise = self.branches.trainer.noise();
        let others = self.seen.iter().filter(|live| live.branch != best.branch);
        let compared = others.map(|live| {
            let both = live.trace.len().min(best.trace.len());
            let [speed, of_best] = [live, best].map(|one| summarize(&one.trace[..both], noise).speed);
            let speed = if of_best > 0.0 { speed / of_best } else { 0.0 };
            section::Tried { at: live.point[at], speed, is_short: live.clocks() < best.clocks() }
        });
        compared.collect()
    }

    /// Lets the best trial go on, which is progress. Tells whether it did.
    fn prolong(&mut self, best: &mut Tried, time: f64, end: u64) -> Result<bool, Failure<T::Error>> {
        let clocks = best.live.clocks();
        self.train(&mut best.live, time, end)?;
        best.summary = self.branches.summarize(&best.live);
        if let Some(trial) = self.trials.iter_mut().find(|trial| trial.branch == best.live.branch) {
            *trial = Trial::of(&best.live, best.summary, self.number);
        }
        if let Some(seen) = self.seen.iter_mut().find(|seen| seen.branch == best.live.branch) {
            *seen = best.live.clone();
        }
        Ok(best.live.clocks() > clocks)
    }

    /// Tells whether there may be another trial.
    fn is_room(&self, begin: usize, end: u64) -> bool {
        self.trials.len() - begin < self.bounds.trials && self.branches.clocks < end
    }

    fn goes_on(&self, begin: usize, end: u64) -> bool {
        let speeds: Vec<f64> = self.trials[begin..].iter().map(|trial| trial.speed).collect();
        let settled = self.searcher.settings().is_none() && is_settled(&speeds);
        !settled && self.is_room(begin, end)
    }

    fn next_trial(&mut self) -> Result<Option<Live>, Failure<T::Error>> {
        let begin = Instant::now();
        let point = self.first.take().or_else(|| self.searcher.propose());
        self.deciding = self.deciding.max(begin.elapsed().as_secs_f64());
        let (Some(point), (parent, loss)) = (point, self.parent) else { return Ok(None) };
        self.branches.fork(parent, loss, point).map(Some).map_err(Failure::Trainer)
    }

    /// Trains a branch for the trial time, to the nearest clock, and one clock at least.
    fn train(&mut self, live: &mut Live, time: f64, end: u64) -> Result<(), Failure<T::Error>> {
        while !live.diverged() && self.branches.clocks < end && live.clocks() < self.bounds.clocks_of_trial {
            let clocks = live.clocks();
            if live.finished || clocks > 0 && live.time() * (1.0 + 0.5 / clocks as f64) > time {
                break;
            }
            self.branches.run(live).map_err(Failure::Trainer)?;
        }
        Ok(())
    }

    /// Summarizes a trial that has ended, and lets the searcher learn from it.
    fn conclude(&mut self, live: Live) -> Tried {
        let summary = self.branches.summarize(&live);
        self.searcher.observe(Observation { point: live.point.clone(), value: summary.speed });
        self.seen.push(live.clone());
        self.branches.tell(&Event::Tried { branch: live.branch, summary });
        self.trials.push(Trial::of(&live, summary, self.number));
        Tried { live, summary }
    }

    fn all_diverged(&self, begin: usize) -> Error {
        let tried = &self.trials[begin..];
        let least = tried.iter().max_by_key(|trial| trial.clocks);
        let least_bad =
            least.map_or_else(String::new, |trial| format!("{}, after {} clocks", trial.setting, trial.clocks));
        Error::AllDiverged { trials: tried.len(), least_bad }
    }
}

fn is_progress(tried: &Tried) -> bool {
    tried.summary.label != Label::Diverged && tried.summary.speed > 0.0
}

/// A faster branch is better; where neither makes progress, the one with the lower loss. One that has not run tells nothing.
fn is_better(one: &Tried, other: &Tried) -> bool {
    let is_useless = |tried: &Tried| tried.summary.label == Label::Diverged || tried.live.clocks() == 0;
    match (is_useless(one), is_useless(other)) {
        (true, _) => false,
        (false, true) => true,
        (false, false) if one.summary.speed == other.summary.speed => one.live.loss() < other.live.loss(),
        (false, false) => one.summary.speed > other.summary.speed,
    }
}
