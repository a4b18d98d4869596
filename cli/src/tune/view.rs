//! The branches of a run that tunes itself, on the terminal.

use std::collections::BTreeMap;

use megagrid_tuner::{Branch, Event, Label, Setting};

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
    branches: BTreeMap<Branch, Seen>,
    trials: usize,
    best: Option<(f64, Branch)>,
    chosen: Option<Branch>,
}

impl View {
    /// Begins to show.
    pub fn begin(quiet: bool) -> Self {
        let progress = Progress::spinner(quiet, "tuning");
        Self { progress, branches: BTreeMap::new(), trials: 0, best: None, chosen: None }
    }

    /// Shows what happens.
    pub fn show(&mut self, event: &Event<'_>) {
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
                self.tell(*branch);
            }
            Event::Tried { branch, summary } => {
                let is_better = self.best.is_none_or(|(speed, _)| summary.speed > speed);
                if summary.label != Label::Diverged && is_better {
                    self.best = Some((summary.speed, *branch));
                }
            }
            Event::Chosen { branch } => self.chosen = Some(*branch),
        }
    }

    fn tell(&self, branch: Branch) {
        let Some(now) = self.branches.get(&branch) else { return };
        let what = if self.chosen == Some(branch) { "training".to_owned() } else { format!("trial {}", self.trials) };
        let mut text = format!("{what}: {}, iteration {}, objective {:.4e}", now.setting, now.clocks, now.loss);
        let best = self.best.and_then(|(_, best)| self.branches.get(&best).filter(|_| best != branch));
        if let Some(best) = best.filter(|_| self.chosen.is_none()) {
            text.push_str(&format!("; best so far: {}", best.setting));
        }
        self.progress.say(text);
    }

    /// Removes the line.
    pub fn end(&self) {
        self.progress.end();
    }
}
