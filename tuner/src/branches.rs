//! Branches at work: what all tuners do with a trainer, and the time that it takes.

use serde::Serialize;

use crate::history::{Branch, ROOT};
use crate::progress::{Noise, Report, Summary, WINDOWS, summarize};
use crate::space::{Point, Setting, Space};
use crate::trainer::Trainer;

/// A branch that is alive, with all that it reported since it was forked.
#[derive(Clone, Debug)]
pub struct Live {
    pub branch: Branch,
    pub setting: Setting,
    /// The same as a point.
    pub point: Point,
    /// The loss at the fork and after each clock.
    pub trace: Vec<Report>,
    /// Whether training has come to its end.
    pub finished: bool,
    /// The reports, at most, of which its loss is the mean.
    pub recent: u64,
}

impl Live {
    pub fn clocks(&self) -> u64 {
        self.trace.len() as u64 - 1
    }

    pub fn time(&self) -> f64 {
        self.trace.last().map_or(0.0, |report| report.time)
    }

    /// Returns the loss now: what was reported last, or where that is of samples the mean of the last window.
    pub fn loss(&self) -> f64 {
        let count = (self.clocks() / WINDOWS as u64).clamp(1, self.recent) as usize;
        self.trace[self.trace.len() - count..].iter().map(|report| report.loss).sum::<f64>() / count as f64
    }

    /// Returns what was reported last.
    pub fn reported(&self) -> f64 {
        self.trace.last().map_or(f64::NAN, |report| report.loss)
    }

    /// Returns the held-out errors since the fork.
    pub fn errors(&self) -> Vec<f64> {
        self.trace.iter().filter_map(|report| report.tested).collect()
    }

    /// The held-out error now.
    pub fn tested(&self) -> Option<f64> {
        self.trace.last().and_then(|report| report.tested)
    }

    /// Tells whether a loss was no finite number.
    pub fn diverged(&self) -> bool {
        !self.reported().is_finite()
    }
}

/// What happens to branches, for who watches.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase", tag = "event")]
pub enum Event<'e> {
    /// A branch was forked.
    Forked {
        /// Its number.
        branch: Branch,
        /// The branch that it began from.
        parent: Branch,
        /// What it trains with.
        setting: &'e Setting,
    },
    /// A branch ran a clock.
    Clock {
        /// Its number.
        branch: Branch,
        /// Clocks of this branch.
        clocks: u64,
        /// The loss after it.
        loss: f64,
        /// Time since the beginning, of all branches.
        elapsed: f64,
    },
    /// A trial ended.
    Tried {
        /// The branch.
        branch: Branch,
        /// What it came to.
        summary: Summary,
    },
    /// A branch is the one to go on with.
    Chosen {
        /// The branch.
        branch: Branch,
    },
}

/// Who watches.
pub type Watch<'t> = &'t mut dyn FnMut(&Event<'_>);

pub struct Branches<'t, T: Trainer> {
    pub trainer: &'t mut T,
    pub space: &'t Space,
    watch: Watch<'t>,
    next: u64,
    alive: usize,
    /// Branches alive at a time, at most.
    pub most_alive: usize,
    /// Time of all branches together.
    pub elapsed: f64,
    /// Clocks of all branches together.
    pub clocks: u64,
}

impl<'t, T: Trainer> Branches<'t, T> {
    /// Begins with only the root.
    pub fn new(trainer: &'t mut T, space: &'t Space, watch: Watch<'t>) -> Self {
        Self { trainer, space, watch, next: ROOT.0 + 1, alive: 1, most_alive: 1, elapsed: 0.0, clocks: 0 }
    }

    /// Goes on with only the root, after branches of other numbers and so much time.
    pub fn resume(&mut self, last: Branch, elapsed: f64) {
        (self.next, self.elapsed) = (last.0 + 1, elapsed);
    }

    /// Forks a branch whose parent has a loss.
    pub fn fork(&mut self, parent: Branch, loss: f64, point: Point) -> Result<Live, T::Error> {
        let (branch, setting) = (Branch(self.next), self.space.setting(&point));
        self.next += 1;
        self.trainer.fork(parent, branch, &setting)?;
        self.alive += 1;
        self.most_alive = self.most_alive.max(self.alive);
        (self.watch)(&Event::Forked { branch, parent, setting: &setting });
        Ok(self.live(branch, setting, point, Report { time: 0.0, loss, tested: None }))
    }

    /// Returns a branch that begins with a report.
    pub fn live(&self, branch: Branch, setting: Setting, point: Point, first: Report) -> Live {
        let recent = match self.trainer.noise() {
            Noise::Exact => 1,
            Noise::Sampled => self.trainer.epoch().max(1),
        };
        Live { branch, setting, point, trace: vec![first], finished: false, recent }
    }

    pub fn run(&mut self, live: &mut Live) -> Result<(), T::Error> {
        let clock = self.trainer.schedule(live.branch)?;
        self.elapsed += clock.time;
        self.clocks += 1;
        live.trace.push(Report { time: live.time() + clock.time, loss: clock.loss, tested: clock.tested });
        live.finished = clock.finished;
        let (branch, clocks, elapsed) = (live.branch, live.clocks(), self.elapsed);
        (self.watch)(&Event::Clock { branch, clocks, loss: clock.loss, elapsed });
        Ok(())
    }

    pub fn summarize(&mut self, live: &Live) -> Summary {
        summarize(&live.trace, self.trainer.noise())
    }

    pub fn free(&mut self, branch: Branch) -> Result<(), T::Error> {
        self.alive -= 1;
        self.trainer.free(branch)
    }

    pub fn tell(&mut self, event: &Event<'_>) {
        (self.watch)(event);
    }
}
