//! The branches of a run that tunes itself, on the terminal.

use std::cell::RefCell;
use std::collections::BTreeMap;

use megagrid_training::Observer;
use megagrid_tuner::{Branch, Event, Label, Setting};

use crate::interrupt;
use crate::progress::Progress;

/// What is known of a branch.
struct Seen {
    setting: Setting,
    clocks: u64,
    loss: f64,
}

/// A line that says which branch runs, and which is the best.
pub struct View {
    progress: Progress,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    branches: BTreeMap<Branch, Seen>,
    trials: usize,
    best: Option<(f64, Branch)>,
    chosen: Option<Branch>,
}

impl View {
    /// Begins to show.
    pub fn begin(progress: Progress) -> Self {
        Self { progress, state: RefCell::default() }
    }
}

impl Observer for View {
    fn begin(&self, _: u64, _: u64) {
        interrupt::iterations_begin();
    }

    fn search(&self, event: &Event<'_>) {
        if let Some(text) = self.state.borrow_mut().see(event) {
            self.progress.say(text);
        }
    }

    fn end(&self) {
        interrupt::iterations_end();
        self.progress.end();
    }

    fn asks_to_end(&self) -> bool {
        interrupt::asked()
    }
}

impl State {
    /// Takes down what happens; returns what is to be shown then.
    fn see(&mut self, event: &Event<'_>) -> Option<String> {
        match event {
            Event::Forked { branch, setting, .. } => {
                if self.chosen.take().is_some() {
                    // A new search begins.
                    self.best = None;
                }
                self.trials += 1;
                self.branches.insert(*branch, Seen { setting: (*setting).clone(), clocks: 0, loss: f64::NAN });
            }
            Event::Clock { branch, clocks, loss, .. } => {
                if let Some(seen) = self.branches.get_mut(branch) {
                    (seen.clocks, seen.loss) = (*clocks, *loss);
                }
                return self.text(*branch);
            }
            Event::Tried { branch, summary } => {
                let is_better = self.best.is_none_or(|(speed, _)| summary.speed > speed);
                if summary.label != Label::Diverged && is_better {
                    self.best = Some((summary.speed, *branch));
                }
            }
            Event::Chosen { branch } => self.chosen = Some(*branch),
        }
        None
    }

    fn text(&self, branch: Branch) -> Option<String> {
        let now = self.branches.get(&branch)?;
        let what = if self.chosen == Some(branch) { "training".to_owned() } else { format!("trial {}", self.trials) };
        let mut text = format!("{what}: {}, iteration {}, objective {:.4e}", now.setting, now.clocks, now.loss);
        let best = self.best.and_then(|(_, best)| self.branches.get(&best).filter(|_| best != branch));
        if let Some(best) = best.filter(|_| self.chosen.is_none()) {
            text.push_str(&format!("; best so far: {}", best.setting));
        }
        Some(text)
    }
}
