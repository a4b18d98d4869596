//! A training run that tunes itself (Cui's thesis, chapter 5: MLtuner).
//!
//! It searches for the setting that converges fastest, goes on with the best branch, and searches again, within bounds, when
//! progress stops. Where no setting makes further progress, the run has converged.

use serde::Serialize;

use crate::branches::{Branches, Live, Watch};
use crate::error::Failure;
use crate::search::{Bounds, Search, Trial};
use crate::searcher::Kind;
use crate::space::{Setting, Space};
use crate::trainer::{Branch, ROOT, Trainer};

/// When progress has stopped: a run's loss changes by less than a part of itself over some clocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Plateau {
    /// Clocks that are looked back.
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
    /// Tells whether losses, one for each clock, have stopped to fall.
    #[must_use]
    pub fn is_reached(&self, losses: &[f64]) -> bool {
        let Some(last) = losses.last() else { return false };
        let Some(before) = losses.len().checked_sub(self.clocks + 1).map(|at| losses[at]) else { return false };
        before - last < self.change * before.abs()
    }

    /// Tells whether a branch falls so slowly that it would be on a plateau.
    fn is_on(&self, live: &Live) -> bool {
        let fall = live.trace[0].loss - live.loss();
        fall * self.clocks as f64 / live.clocks().max(1) as f64 <= self.change * live.trace[0].loss.abs()
    }
}

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
    /// When to tune again; `None`: never.
    pub retune: Option<Plateau>,
    /// A loss that ends the run.
    pub target: Option<f64>,
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
            target: None,
            decisions_count: true,
        }
    }
}

/// A clock of the run: not of trials that were given up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The branch.
    pub branch: Branch,
    /// Time since the beginning, all trials included.
    pub elapsed: f64,
    /// The loss.
    pub loss: f64,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// All clocks are done.
    Clocks,
    /// The target is reached.
    Target,
    /// The trainer says that it is done.
    Finished,
    /// No setting makes further progress.
    Converged,
    /// The chosen setting diverged afterwards.
    Diverged,
}

/// What a run came to.
#[derive(Clone, Debug, Serialize)]
pub struct Tuned {
    /// All trials.
    pub trials: Vec<Trial>,
    /// The clocks of the run.
    pub line: Vec<Step>,
    /// The settings of the run, each with the number of clocks of the run that were done before.
    pub settings: Vec<(u64, Setting)>,
    /// The branch that holds the result.
    pub branch: Branch,
    /// Time of all branches.
    pub elapsed: f64,
    /// Time of trials that were given up.
    pub tuning: f64,
    /// Branches that were alive at a time, at most.
    pub most_alive: usize,
    /// Why it ended.
    pub ended: Ended,
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
/// A budget too small for a trial; all settings diverged; the trainer's errors.
pub fn tune<T: Trainer>(
    trainer: &mut T,
    space: &Space,
    options: &Options,
    watch: Watch<'_>,
) -> Result<Tuned, Failure<T::Error>> {
    let loss = trainer.report(ROOT).map_err(Failure::Trainer)?;
    let branches = Branches::new(trainer, space, watch);
    let mut run = Run { branches, options, trials: Vec::new(), line: Vec::new(), settings: Vec::new(), searches: 0 };
    let live = run.first_search(loss)?;
    run.go_on(live)
}

struct Run<'t, 'o, T: Trainer> {
    branches: Branches<'t, T>,
    options: &'o Options,
    trials: Vec<Trial>,
    line: Vec<Step>,
    settings: Vec<(u64, Setting)>,
    searches: usize,
}

impl<T: Trainer> Run<'_, '_, T> {
    fn first_search(&mut self, loss: f64) -> Result<Live, Failure<T::Error>> {
        let Options { trials, budget, clocks, .. } = *self.options;
        let bounds = self.bounds(trials, budget, clocks);
        let live = self.search((ROOT, loss), bounds, None)?;
        self.branches.free(ROOT).map_err(Failure::Trainer)?;
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
        first: Option<Vec<f64>>,
    ) -> Result<Live, Failure<T::Error>> {
        let seed = self.options.seed ^ (self.searches as u64) << 32;
        let mut searcher = self.options.searcher.searcher(self.branches.space, seed);
        let number = self.searches;
        self.searches += 1;
        let (branches, trials) = (&mut self.branches, &mut self.trials);
        Search { branches, searcher: &mut *searcher, bounds, number, parent, first, trials }.run()
    }

    /// Takes a trial into the run: its clocks are the run's.
    fn take(&mut self, live: &Live) {
        self.settings.push((self.line.len() as u64, live.setting.clone()));
        // Other trials may have run since it did; the run is where it is only now.
        let elapsed = self.branches.elapsed;
        self.line.extend(live.trace[1..].iter().map(|report| Step { branch: live.branch, elapsed, loss: report.loss }));
    }

    fn go_on(mut self, mut live: Live) -> Result<Tuned, Failure<T::Error>> {
        let mut spent = 0;
        // The plateau counts from where the setting began.
        let mut begun = 0;
        let ended = loop {
            if live.diverged() {
                break Ended::Diverged;
            }
            if self.options.target.is_some_and(|target| live.loss() <= target) {
                break Ended::Target;
            }
            if live.finished {
                break Ended::Finished;
            }
            if self.line.len() as u64 >= self.options.clocks {
                break Ended::Clocks;
            }
            let losses: Vec<f64> = self.line[begun..].iter().map(|step| step.loss).collect();
            if let Some(plateau) = self.options.retune.filter(|plateau| plateau.is_reached(&losses)) {
                let left = self.options.budget - spent;
                let before = self.branches.clocks;
                let Some(next) = self.search_again(&live, &plateau, left)? else { break Ended::Converged };
                spent += self.branches.clocks - before;
                let is_over = plateau.is_on(&next);
                let freed = if next.loss() <= live.loss() { std::mem::replace(&mut live, next) } else { next };
                self.branches.free(freed.branch).map_err(Failure::Trainer)?;
                if freed.branch < live.branch {
                    self.take(&live);
                }
                if is_over {
                    break Ended::Converged;
                }
                begun = self.line.len() - live.clocks() as usize;
                continue;
            }
            self.branches.run(&mut live).map_err(Failure::Trainer)?;
            self.line.push(Step { branch: live.branch, elapsed: self.branches.elapsed, loss: live.loss() });
        };
        Ok(self.end(&live, ended))
    }

    /// Searches again from where the run is: no more trials than in the search before, none longer than the plateau, the present
    /// setting first. `None` if there is no budget left or nothing that can be used.
    fn search_again(&mut self, live: &Live, plateau: &Plateau, left: u64) -> Result<Option<Live>, Failure<T::Error>> {
        let before = self.trials.iter().filter(|trial| trial.search + 1 == self.searches).count();
        let bounds = self.bounds(before, left, plateau.clocks as u64);
        match self.search((live.branch, live.loss()), bounds, Some(live.point.clone())) {
            Ok(next) => Ok(Some(next)),
            Err(Failure::Tuning(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn end(self, live: &Live, ended: Ended) -> Tuned {
        let given_up = self.trials.iter().filter(|trial| !trial.chosen);
        Tuned {
            branch: live.branch,
            elapsed: self.branches.elapsed,
            tuning: given_up.map(|trial| trial.time).sum(),
            most_alive: self.branches.most_alive,
            trials: self.trials,
            line: self.line,
            settings: self.settings,
            ended,
        }
    }
}
