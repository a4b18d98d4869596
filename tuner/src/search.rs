//! One search: trials of settings on branches that begin at the same parent, and the best of them (thesis §5.2.3, Algorithm 6).
//!
//! The trial time is found first. It begins with one clock, or the time that the searcher takes to decide if that is longer.
//! While no branch is converging it is doubled: one more setting is tried, and all those before go on for the longer time. Then
//! every setting is tried for that time, and a branch is kept only while it is the best. The search ends when the five best
//! speeds differ by less than 10 %, or where its bounds are reached.
//!
//! A few trials lie far apart, and the first clocks do not tell near ones apart: what is best for one may not be for two. So most
//! of the clocks are kept for a second look at ranges. It tries halfway to where the next trials may have been, above the best
//! setting and, if that is no better, below. Then it takes small steps upwards as long as they lead to faster ones, all for twice
//! the trial time: what serves a little longer has been the larger value.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::branches::{Branches, Event, Live};
use crate::error::{Error, Failure};
use crate::progress::{Label, Noise, Summary, WINDOWS};
use crate::searcher::{Observation, Searcher, is_settled};
use crate::space::{Point, Setting};
use crate::trainer::{Branch, Trainer};

/// A setting that was tried.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// The branch.
    pub branch: Branch,
    /// The search, from 0; later ones are re-tunings.
    pub search: usize,
    /// What it was tried with.
    pub setting: Setting,
    /// Clocks that it ran as a trial.
    pub clocks: u64,
    /// Their time.
    pub time: f64,
    /// The loss after them; `None` if it is no finite number.
    pub loss: Option<f64>,
    /// How fast it converged.
    pub speed: f64,
    /// What to make of that.
    pub label: Label,
    /// Whether training went on with it.
    pub chosen: bool,
}

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

/// Percent of a search's clocks that are kept for a second look.
const SECOND_LOOK: u64 = 67;
/// A small step of the second look, as a part of a range.
const STEP: f64 = 0.045;

/// What a search may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Trials.
    pub trials: usize,
    /// Clocks of all trials.
    pub clocks: u64,
    /// Clocks of a trial.
    pub clocks_of_trial: u64,
    /// Whether the searcher's own time counts: not where time is no time.
    pub decisions_count: bool,
}

/// A search under way.
pub struct Search<'s, 't, T: Trainer> {
    /// The branches.
    pub branches: &'s mut Branches<'t, T>,
    /// What proposes settings.
    pub searcher: &'s mut dyn Searcher,
    /// What it may take.
    pub bounds: Bounds,
    /// Its number.
    pub number: usize,
    /// Where all trials begin, and the loss there.
    pub parent: (Branch, f64),
    /// What is to be tried first.
    pub first: Option<Point>,
    /// All trials, of searches before too.
    pub trials: &'s mut Vec<Trial>,
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
        let has_ranges = self.branches.space.tunables().iter().any(|tunable| tunable.choices().is_none());
        let kept = if has_ranges { self.bounds.clocks * SECOND_LOOK / 100 } else { 0 };
        let first_end = end - kept.min(self.bounds.clocks - least);
        let (trial_time, mut best) = self.find_trial_time(first_end)?;
        while self.goes_on(begin, first_end) {
            let Some(mut live) = self.next_trial()? else { break };
            self.train(&mut live, trial_time, first_end)?;
            let tried = self.conclude(live);
            best = Some(match best {
                Some(best) if !is_better(&tried, &best) => {
                    self.branches.free(tried.live.branch).map_err(Failure::Trainer)?;
                    best
                }
                Some(worse) => {
                    self.branches.free(worse.live.branch).map_err(Failure::Trainer)?;
                    tried
                }
                None => tried,
            });
        }
        let best = best.filter(|best| best.summary.label != Label::Diverged);
        let Some(best) = best else { return Err(self.all_diverged(begin).into()) };
        let best = self.look_again(best, trial_time, (begin, end))?;
        if let Some(trial) = self.trials.iter_mut().find(|trial| trial.branch == best.live.branch) {
            trial.chosen = true;
        }
        self.branches.tell(&Event::Chosen { branch: best.live.branch });
        Ok(best.live)
    }

    /// Doubles the trial time until a branch converges, and returns it with the best branch.
    fn find_trial_time(&mut self, end: u64) -> Result<(f64, Option<Tried>), Failure<T::Error>> {
        let (mut trial_time, mut alive) = (0.0_f64, Vec::<Live>::new());
        let begin = self.trials.len();
        loop {
            let deciding = Instant::now();
            let mut has_next = self.trials.len() - begin + alive.len() < self.bounds.trials;
            if has_next {
                let next = self.next_trial()?;
                has_next = next.is_some();
                alive.extend(next);
            }
            if self.bounds.decisions_count {
                trial_time = trial_time.max(deciding.elapsed().as_secs_f64());
            }
            for live in &mut alive {
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
            let is_over =
                self.branches.clocks >= end || longest >= self.bounds.clocks_of_trial || alive.is_empty() && !has_next;
            if converges || is_over {
                return Ok((trial_time, self.best_of(alive)?));
            }
            // Diverged ones tell nothing of the time that others need, nor does a single one that may be out of range.
            if alive.len() > 1 || !has_next {
                trial_time *= 2.0;
            }
        }
    }

    /// Frees all branches but the best.
    fn best_of(&mut self, alive: Vec<Live>) -> Result<Option<Tried>, Failure<T::Error>> {
        let mut best: Option<Tried> = None;
        for live in alive {
            let tried = self.conclude(live);
            let worse = match &best {
                Some(so_far) if !is_better(&tried, so_far) => Some(tried),
                _ => best.replace(tried),
            };
            if let Some(worse) = worse {
                self.branches.free(worse.live.branch).map_err(Failure::Trainer)?;
            }
        }
        Ok(best)
    }

    /// Looks around the best of the trials since `begin`, along one range after the other.
    fn look_again(
        &mut self,
        mut best: Tried,
        time: f64,
        (begin, end): (usize, u64),
    ) -> Result<Tried, Failure<T::Error>> {
        let tunables = self.branches.space.tunables().iter().enumerate();
        let ranges: Vec<usize> = tunables.filter(|(_, one)| one.choices().is_none()).map(|(at, _)| at).collect();
        // Points that are spread evenly are twice as far apart.
        let far = (0.5 * ((self.trials.len() - begin) as f64).powf(-1.0 / ranges.len() as f64)).max(STEP);
        for &at in &ranges {
            if !self.challenge(&mut best, (at, far), time, end)? {
                self.challenge(&mut best, (at, -far), time, end)?;
            }
        }
        for &at in &ranges {
            while self.challenge(&mut best, (at, STEP), 2.0 * time, end)? {}
        }
        Ok(best)
    }

    /// Tries the point a step along a range from the best setting, both for a time, and keeps the better one. Tells whether that
    /// is the new one; it is not where the range ends or too few clocks are left.
    fn challenge(
        &mut self,
        best: &mut Tried,
        (at, step): (usize, f64),
        time: f64,
        end: u64,
    ) -> Result<bool, Failure<T::Error>> {
        let Some(point) = stepped(&best.live.point, at, step) else { return Ok(false) };
        let clock = best.live.time() / best.live.clocks().max(1) as f64;
        let clocks = (time / clock).round().max(1.0) as u64;
        let needed = clocks + clocks.saturating_sub(best.live.clocks());
        if self.branches.clocks + needed > end || clocks > self.bounds.clocks_of_trial || best.live.finished {
            return Ok(false);
        }
        // The best itself goes on as well, which is progress.
        self.train(&mut best.live, time, end)?;
        best.summary = self.branches.summarize(&best.live);
        if let Some(trial) = self.trials.iter_mut().find(|trial| trial.branch == best.live.branch) {
            *trial = Trial::of(&best.live, best.summary, self.number);
        }
        self.first = Some(point);
        let Some(mut live) = self.next_trial()? else { return Ok(false) };
        self.train(&mut live, time, end)?;
        let challenger = self.conclude(live);
        let wins = is_better(&challenger, best);
        let worse = if wins { std::mem::replace(best, challenger) } else { challenger };
        self.branches.free(worse.live.branch).map_err(Failure::Trainer)?;
        Ok(wins)
    }

    fn goes_on(&self, begin: usize, end: u64) -> bool {
        let tried = &self.trials[begin..];
        let speeds: Vec<f64> = tried.iter().map(|trial| trial.speed).collect();
        let settled = !self.searcher.is_exhaustive() && is_settled(&speeds);
        !settled && tried.len() < self.bounds.trials && self.branches.clocks < end
    }

    fn next_trial(&mut self) -> Result<Option<Live>, Failure<T::Error>> {
        let Some(point) = self.first.take().or_else(|| self.searcher.propose()) else { return Ok(None) };
        let (parent, loss) = self.parent;
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

/// Returns the point a step along a range, unless that is at its end.
fn stepped(point: &[f64], at: usize, step: f64) -> Option<Point> {
    let mut next = point.to_vec();
    next[at] = (next[at] + step).clamp(0.0, 1.0);
    (next != point).then_some(next)
}

/// A faster branch is better; where neither makes progress, the one with the lower loss.
fn is_better(one: &Tried, other: &Tried) -> bool {
    let diverged = |tried: &Tried| tried.summary.label == Label::Diverged;
    match (diverged(one), diverged(other)) {
        (true, _) => false,
        (false, true) => true,
        (false, false) if one.summary.speed == other.summary.speed => one.live.loss() < other.live.loss(),
        (false, false) => one.summary.speed > other.summary.speed,
    }
}
