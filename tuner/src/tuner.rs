//! A training run that tunes itself (Cui's thesis, chapter 5: MLtuner).
//!
//! It searches for the setting that converges fastest, goes on with the best branch, and searches again, within bounds, when
//! progress stops: that of the error on held-out data, or of the loss where there are none (§5.3.4). Where no setting makes
//! further progress, the run has converged.

use serde::Serialize;

use crate::branches::{Branches, Event, Live, Watch};
use crate::error::{Error, Failure};
use crate::history::{Branch, Ended, Progress, ROOT, Stalled, Step, Trial, Tuned};
use crate::progress::{Label, Noise, Report};
use crate::search::{Bounds, Search};
use crate::searcher::Kind;
use crate::space::{Point, Setting, Space};
use crate::trainer::Trainer;

/// When progress has stopped: a run's loss changes by less than a part of itself over some clocks. Where a clock is a part of an
/// epoch, over as many epochs: by their mean losses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Plateau {
    /// Clocks, or epochs, that are looked back.
    pub clocks: usize,
    /// The part of the loss.
    pub change: f64,
}

/// The thesis' rule for matrix factorization: less than 1 % over 10 clocks.
impl Default for Plateau {
    fn default() -> Self {
        Self { clocks: 10, change: 0.01 }
    }
}

impl Plateau {
    /// Tells whether losses, one for each clock, have stopped falling.
    #[must_use]
    pub fn is_reached(&self, losses: &[f64]) -> bool {
        let Some(last) = losses.last() else { return false };
        let Some(before) = losses.len().checked_sub(self.clocks + 1).map(|at| losses[at]) else { return false };
        before - last < self.change * before.abs()
    }

    /// Tells whether held-out errors have stopped falling: the best of the last clocks is no better than the best before. A
    /// single error that noise makes large, or small, is no plateau. Returns the best before, and the last ones.
    pub(crate) fn stalls<'e>(&self, before: &'e [f64], since: &'e [f64]) -> Option<(f64, &'e [f64])> {
        let early = since.len().checked_sub(self.clocks)?;
        let (early, last) = since.split_at(early);
        let best = before.iter().chain(early).copied().min_by(f64::total_cmp)?;
        (!self.has_fallen(best, last)).then_some((best, last))
    }

    fn has_fallen(&self, best: f64, errors: &[f64]) -> bool {
        errors.iter().any(|error| *error < best - self.change * best.abs())
    }

    /// Tells whether a branch falls so slowly that it would be on a plateau.
    fn is_on(&self, live: &Live, epoch: u64) -> bool {
        let fall = live.trace[0].loss - live.loss();
        let epochs = live.clocks().max(1) as f64 / epoch as f64;
        fall * self.clocks as f64 / epochs <= self.change * live.trace[0].loss.abs()
    }
}

/// Returns the mean losses of whole epochs.
pub(crate) fn of_epochs(losses: &[f64], epoch: u64) -> Vec<f64> {
    let epochs = losses.chunks_exact(epoch.max(1) as usize);
    epochs.map(|losses| losses.iter().sum::<f64>() / losses.len() as f64).collect()
}

/// Part of a held-out error by which it falls in the first clocks whatever the steps.
const HARDLY: f64 = 0.005;

/// How a run is to be tuned.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Options {
    /// What proposes settings.
    pub searcher: Kind,
    /// Decides everything random.
    pub seed: u64,
    /// Clocks of the run, without those of trials that are not gone on with.
    pub clocks: u64,
    /// Clocks of all trials of the first search, and again of all searches after it.
    pub budget: u64,
    /// Trials of the first search, at most.
    pub trials: usize,
    /// When to tune again, by losses, where the trainer measures no held-out errors; `None`: never.
    pub retune: Option<Plateau>,
    /// When to tune again, by held-out errors, where the trainer measures them; `None`: never.
    pub held_out: Option<Plateau>,
    /// A loss that ends the run.
    pub target: Option<f64>,
    /// What the run begins with instead of a search; `None`: it searches first.
    pub initial: Option<Setting>,
    /// What the first search tries first: what would be taken without one.
    pub first: Option<Setting>,
    /// Whether the searcher's own time counts: not where time is samples.
    pub decisions_count: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            searcher: Kind::default(),
            seed: 1,
            clocks: 100,
            budget: 12,
            trials: 30,
            retune: Some(Plateau::default()),
            // The thesis ends a run after five epochs that were no better, and tunes again one before (§5.4.1).
            held_out: Some(Plateau { clocks: 4, change: 0.0 }),
            target: None,
            initial: None,
            first: None,
            decisions_count: true,
        }
    }
}

impl Tuned {
    /// Returns the last loss.
    #[must_use]
    pub fn loss(&self) -> f64 {
        self.line.last().map_or(f64::NAN, |step| step.loss)
    }

    /// Returns the setting of the run's end.
    #[must_use]
    pub fn setting(&self) -> Option<&Setting> {
        self.settings.last().map(|(_, setting)| setting)
    }
}

/// Trains and tunes.
///
/// # Errors
/// A budget too small for a trial; all settings diverged; an initial setting that is not in the space; the trainer's errors.
pub fn tune<T: Trainer>(
    trainer: &mut T,
    space: &Space,
    options: &Options,
    watch: Watch<'_>,
) -> Result<Tuned, Failure<T::Error>> {
    let loss = trainer.report(ROOT).map_err(Failure::Trainer)?;
    let mut run = Run { branches: Branches::new(trainer, space, watch), options, progress: Progress::default() };
    let live = match &options.initial {
        Some(setting) => run.begin_with(setting, loss)?,
        None => run.first_search(loss)?,
    };
    run.go_on(live)
}

/// Goes on with a run that was kept ([`Trainer::keep`]), whose branch is now the trainer's root: with its last setting, and
/// without another search until progress stops.
///
/// # Errors
/// [`Error::OtherSpace`]: the progress is of another space, or of no clock; as [`tune`] otherwise.
pub fn resume<T: Trainer>(
    trainer: &mut T,
    space: &Space,
    options: &Options,
    progress: Progress,
    watch: Watch<'_>,
) -> Result<Tuned, Failure<T::Error>> {
    let setting = progress.setting().cloned().ok_or(Error::OtherSpace)?;
    let point = space.point(&setting).ok_or(Error::OtherSpace)?;
    let Step { loss, tested, .. } = *progress.line.last().ok_or(Error::OtherSpace)?;
    let mut branches = Branches::new(trainer, space, watch);
    // A run may have begun with a branch that was no trial.
    let known = progress.trials.iter().map(|trial| trial.branch).chain(progress.line.iter().map(|step| step.branch));
    branches.resume(known.max().unwrap_or(ROOT), progress.elapsed);
    branches.tell(&Event::Chosen { branch: ROOT });
    let live = branches.live(ROOT, setting, point, Report { time: 0.0, loss, tested });
    Run { branches, options, progress }.go_on(live)
}

/// Progress has stopped.
enum Stop {
    /// It is time to search again.
    Plateau(Plateau),
    /// The search before was of no use.
    Converged,
}

struct Run<'t, 'o, T: Trainer> {
    branches: Branches<'t, T>,
    options: &'o Options,
    progress: Progress,
}

impl<T: Trainer> Run<'_, '_, T> {
    fn first_search(&mut self, loss: f64) -> Result<Live, Failure<T::Error>> {
        let Options { trials, budget, clocks, .. } = *self.options;
        let bounds = self.bounds(trials, budget, clocks);
        let first = self.options.first.as_ref().and_then(|setting| self.branches.space.nearest(setting));
        let found = self.search((ROOT, loss), bounds, first.clone())?;
        let live = self.or_first(found, loss, first)?;
        self.branches.free(ROOT).map_err(Failure::Trainer)?;
        self.take(&live);
        Ok(live)
    }

    /// Goes on with what would be taken without a search where trials tell nothing: then nothing speaks against it.
    fn or_first(&mut self, found: Live, loss: f64, first: Option<Point>) -> Result<Live, Failure<T::Error>> {
        let Some(first) = first.filter(|_| !self.tells(&found, loss)) else { return Ok(found) };
        let setting = self.branches.space.setting(&first);
        let has_diverged = |trial: &Trial| trial.setting == setting && trial.label == Label::Diverged;
        if found.setting == setting || self.progress.trials.iter().any(has_diverged) {
            return Ok(found);
        }
        self.branches.free(found.branch).map_err(Failure::Trainer)?;
        self.progress.trials.iter_mut().for_each(|trial| trial.chosen = false);
        let live = self.branches.fork(ROOT, loss, first).map_err(Failure::Trainer)?;
        self.branches.tell(&Event::Chosen { branch: live.branch });
        Ok(live)
    }

    /// Tells whether the best trial of all says something of its setting: it made progress, and more than the first clocks of steps that are far
    /// too small. Factors that are small at random stay so for a while before they grow, and held-out errors rise at first where steps are good.
    fn tells(&mut self, found: &Live, loss: f64) -> bool {
        let has_grown = found.tested().is_none() || loss - found.loss() > HARDLY * loss.abs();
        has_grown && self.branches.summarize(found).speed > 0.0
    }

    fn begin_with(&mut self, setting: &Setting, loss: f64) -> Result<Live, Failure<T::Error>> {
        let point = self.branches.space.point(setting).ok_or_else(|| Error::Initial(setting.to_string()))?;
        let live = self.branches.fork(ROOT, loss, point).map_err(Failure::Trainer)?;
        self.branches.free(ROOT).map_err(Failure::Trainer)?;
        self.branches.tell(&Event::Chosen { branch: live.branch });
        self.take(&live);
        Ok(live)
    }

    fn bounds(&self, trials: usize, clocks: u64, clocks_of_trial: u64) -> Bounds {
        Bounds { trials, clocks, clocks_of_trial, decisions_count: self.options.decisions_count }
    }

    fn search(
        &mut self,
        parent: (Branch, f64),
        bounds: Bounds,
        first: Option<Point>,
    ) -> Result<Live, Failure<T::Error>> {
        let number = self.progress.searches;
        let seed = self.options.seed ^ (number as u64) << 32;
        let mut searcher = self.options.searcher.searcher(self.branches.space, seed);
        self.progress.searches += 1;
        let (branches, trials) = (&mut self.branches, &mut self.progress.trials);
        let (searcher, seen) = (&mut *searcher, Vec::new());
        Search { branches, searcher, bounds, number, parent, first, trials, seen, deciding: 0.0 }.run()
    }

    /// Takes a trial into the run: its clocks are the run's. Of its held-out errors that of the last clock only is, since the state
    /// that another one is of is gone, and the run cannot go back to it.
    fn take(&mut self, live: &Live) {
        let Progress { line, settings, .. } = &mut self.progress;
        settings.push((line.len() as u64, live.setting.clone()));
        // Other trials may have run since it did; the run is where it is only now.
        let elapsed = self.branches.elapsed;
        let branch = live.branch;
        line.extend(live.trace[1..].iter().map(|report| Step { branch, elapsed, loss: report.loss, tested: None }));
        if let Some(last) = line.last_mut() {
            last.tested = live.tested();
        }
    }

    fn go_on(mut self, mut live: Live) -> Result<Tuned, Failure<T::Error>> {
        let mut ended = self.end_of(&live);
        loop {
            if !live.diverged() {
                self.progress.elapsed = self.branches.elapsed;
                let (branch, is_last) = (live.branch, ended.is_some());
                self.branches.trainer.keep(branch, &self.progress, is_last).map_err(Failure::Trainer)?;
            }
            if let Some(ended) = ended {
                return Ok(self.end(&live, ended));
            }
            let is_over = match self.stop() {
                Some(Stop::Converged) => true,
                Some(Stop::Plateau(plateau)) => !self.tune_again(&mut live, &plateau)?,
                None => {
                    self.branches.run(&mut live).map_err(Failure::Trainer)?;
                    let (branch, elapsed) = (live.branch, self.branches.elapsed);
                    self.progress.line.push(Step { branch, elapsed, loss: live.reported(), tested: live.tested() });
                    false
                }
            };
            ended = self.end_of(&live).or(is_over.then_some(Ended::Converged));
        }
    }

    /// Tells whether progress has stopped: by held-out errors if there are any, else by losses.
    fn stop(&mut self) -> Option<Stop> {
        let Progress { line, begun, .. } = &self.progress;
        let (before, since) = line.split_at(*begun);
        if line.iter().all(|step| step.tested.is_none()) {
            let plateau = self.options.retune?;
            let losses: Vec<f64> = since.iter().map(|step| step.loss).collect();
            let losses = of_epochs(&losses, self.branches.trainer.epoch());
            return plateau.is_reached(&losses).then_some(Stop::Plateau(plateau));
        }
        let held_out = self.options.held_out?;
        let [before, since] =
            [before, since].map(|steps| steps.iter().filter_map(|step| step.tested).collect::<Vec<_>>());
        let (best, errors) = held_out.stalls(&before, &since)?;
        // Another setting was of no use.
        let of_no_use =
            before.iter().copied().min_by(f64::total_cmp).is_some_and(|best| !held_out.has_fallen(best, &since));
        let (after, errors) = (line.len() as u64, errors.to_vec());
        self.progress.stalled.push(Stalled { after, best, errors });
        Some(if of_no_use { Stop::Converged } else { Stop::Plateau(held_out) })
    }

    /// Tells why the run ends where it is, if it does.
    fn end_of(&self, live: &Live) -> Option<Ended> {
        if live.diverged() {
            Some(Ended::Diverged)
        } else if self.options.target.is_some_and(|target| live.loss() <= target) {
            Some(Ended::Target)
        } else if live.finished {
            Some(Ended::Finished)
        } else {
            (self.progress.line.len() as u64 >= self.options.clocks).then_some(Ended::Clocks)
        }
    }

    /// Searches again on a plateau, and goes on with what it found if that is no worse. Returns whether the run makes progress.
    fn tune_again(&mut self, live: &mut Live, plateau: &Plateau) -> Result<bool, Failure<T::Error>> {
        let before = self.branches.clocks;
        let left = self.options.budget.saturating_sub(self.progress.spent);
        let next = self.search_again(live, plateau, left)?;
        self.progress.spent += self.branches.clocks - before;
        let Some(next) = next else { return Ok(false) };
        let is_better = self.is_better(&next, live);
        // Held-out errors of the clocks to come tell it; trials are compared by their losses, here too.
        let is_tested = self.progress.line.iter().any(|step| step.tested.is_some());
        let progresses = if is_tested { is_better } else { !plateau.is_on(&next, self.branches.trainer.epoch()) };
        let worse = if is_better { std::mem::replace(live, next) } else { next };
        self.branches.free(worse.branch).map_err(Failure::Trainer)?;
        if is_better {
            self.progress.begun = self.progress.line.len();
            self.take(live);
        }
        Ok(progresses)
    }

    /// Tells whether what a search found is better than where the run is: no worse, or by losses of samples, of which a few say
    /// nothing by themselves, converging. (Of many trials on a plateau some have a speed, by chance.)
    fn is_better(&mut self, next: &Live, live: &Live) -> bool {
        match self.branches.trainer.noise() {
            Noise::Exact => next.loss() <= live.loss(),
            Noise::Sampled => self.branches.summarize(next).label == Label::Converging,
        }
    }

    /// Searches again from where the run is: no more trials than in the search before, none longer than the plateau, or than an
    /// epoch where that is longer, the present setting first. `None` if there is no budget left or nothing that can be used.
    fn search_again(&mut self, live: &Live, plateau: &Plateau, left: u64) -> Result<Option<Live>, Failure<T::Error>> {
        // A search for which nothing was left had no trial.
        let last = self.progress.trials.iter().map(|trial| trial.search).max();
        let of_last = |trial: &&Trial| Some(trial.search) == last;
        let before = match last {
            None => self.options.trials,
            Some(_) => self.progress.trials.iter().filter(of_last).count(),
        };
        // What is found is of the run, which is not to become longer than it may.
        let rest = self.options.clocks - self.progress.line.len() as u64;
        let longest = self.branches.trainer.epoch().max(plateau.clocks as u64);
        let bounds = self.bounds(before, left, rest.min(longest));
        // Of a run that goes on only the setting is known, which is rounded: what is tried is not to depend on that.
        let present = self.branches.space.point(&live.setting).unwrap_or_else(|| live.point.clone());
        match self.search((live.branch, live.loss()), bounds, Some(present)) {
            Ok(next) => Ok(Some(next)),
            Err(Failure::Tuning(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn end(self, live: &Live, ended: Ended) -> Tuned {
        let progress = Progress { elapsed: self.branches.elapsed, ..self.progress };
        progress.end(live.branch, self.branches.most_alive, ended)
    }
}
