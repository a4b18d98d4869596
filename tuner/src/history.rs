//! What a run has come to: its branches by number, trials, and clocks.

use serde::{Deserialize, Serialize};

use crate::progress::Label;
use crate::space::Setting;

/// A branch of training, by its number. The first is 0, the state that training begins with; numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Branch(pub u64);

/// The state that training begins with.
pub const ROOT: Branch = Branch(0);

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

/// A clock of the run: not of trials that were given up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The branch.
    pub branch: Branch,
    /// Time since the beginning, all trials included.
    pub elapsed: f64,
    /// The loss.
    pub loss: f64,
    /// The held-out error, where it is measured. Of a trial that became the run, its last clock has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<f64>,
}

/// The held-out error stopped falling: the errors that decided it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stalled {
    /// Clocks of the run that were done.
    pub after: u64,
    /// The best error before the last clocks.
    pub best: f64,
    /// The errors of the last clocks.
    pub errors: Vec<f64>,
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
    /// It was asked to.
    Interrupted,
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
    /// Where the held-out error stopped falling.
    pub stalled: Vec<Stalled>,
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

/// What a run has come to, but for the state of its branch. Saved with that, the run can be gone on with.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// All trials.
    pub trials: Vec<Trial>,
    /// The clocks of the run.
    pub line: Vec<Step>,
    /// The settings of the run, each with the number of clocks of the run that were done before.
    pub settings: Vec<(u64, Setting)>,
    /// Where the held-out error stopped falling.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalled: Vec<Stalled>,
    /// Searches so far.
    pub(crate) searches: usize,
    /// Clocks of all searches but the first.
    pub(crate) spent: u64,
    /// Clocks of the run before the setting began, from where a plateau counts.
    pub(crate) begun: usize,
    /// Time of all branches.
    pub elapsed: f64,
}

impl Progress {
    /// Returns what a run has come to that ends here, at a branch; `most_alive` branches were alive at a time.
    #[must_use]
    pub fn end(self, branch: Branch, most_alive: usize, ended: Ended) -> Tuned {
        let Self { trials, line, settings, stalled, elapsed, .. } = self;
        let tuning = trials.iter().filter(|trial| !trial.chosen).map(|trial| trial.time).sum();
        Tuned { trials, line, settings, stalled, branch, elapsed, tuning, most_alive, ended }
    }

    /// Returns the setting that the run goes on with.
    #[must_use]
    pub fn setting(&self) -> Option<&Setting> {
        self.settings.last().map(|(_, setting)| setting)
    }

    /// Goes back to when this many clocks of the run were done; trials since stay spent. `None`: there were none yet.
    #[must_use]
    pub fn back_to(mut self, clocks: u64) -> Option<Self> {
        if clocks == 0 || self.line.len() < clocks as usize {
            return None;
        }
        self.line.truncate(clocks as usize);
        self.settings.retain(|(before, _)| *before < clocks);
        self.stalled.retain(|stalled| stalled.after < clocks);
        self.begun = self.begun.min(self.settings.last()?.0 as usize);
        Some(self)
    }
}
