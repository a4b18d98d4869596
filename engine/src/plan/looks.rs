//! Looks: after which iterations all workers meet. And clocks of several iterations.

use megagrid_stages::mode::Mode;

use super::Plan;
use super::outline::StageKind;
use super::steps::After;
use crate::Error;

/// A look makes workers wait for the slowest. After this many times the clocks that the slack lets them be apart, that costs little.
const LOOK_PER_SLACK: u64 = 4;

impl Plan {
    /// Tells whether each step that uses what all workers did waits for them, as with slack 0 and a clock for each iteration.
    pub(super) fn is_bulk(&self) -> bool {
        self.slack == Some(0) && !self.mirrored
    }

    /// Lets iterations flow into each other where slack allows it and no step waits for all workers: a worker ahead of others would
    /// add the terms of its next iteration to a sum that is not applied yet. With slack 0 they do within a clock.
    pub(super) fn let_flow(&mut self, look_every: Option<u64>) {
        let passes = self.passes_per_clock;
        let waits = self.steps.iter().any(|step| step.after == After::All);
        self.flows = if self.slack == Some(0) { self.mirrored } else { !waits };
        let suggested = match self.slack {
            Some(slack @ 1..) => {
                let clocks = LOOK_PER_SLACK.saturating_mul(slack.saturating_add(1));
                clocks.saturating_mul(passes).div_ceil(self.clocks().max(1))
            }
            // Clocks end on all workers; or nothing but looks keeps workers together.
            Some(0) | None => 1,
        };
        let every = if self.flows { look_every.unwrap_or(suggested).max(1) } else { 1 };
        self.look_every = every.checked_next_multiple_of(passes).unwrap_or(every);
    }

    /// Returns the iteration after which the next look is, when `done` are done.
    #[must_use]
    pub fn next_look(&self, done: u64) -> u64 {
        (done / self.look_every + 1).saturating_mul(self.look_every)
    }

    /// Refuses clocks of several passes where a stage needs what all workers did in each pass, or where a pass is several clocks.
    pub(super) fn check_passes(&self) -> Result<(), Error> {
        let passes = self.passes_per_clock;
        if passes == 1 {
            return Ok(());
        }
        let found = passes.to_string();
        if passes == 0 {
            return Err(Error::Setting { name: "passes per clock", found, expected: "1 or more" });
        }
        let in_place = StageKind::Exchange(Mode::Update, Mode::Update);
        let fits = |kind: StageKind| {
            let reads = kind == StageKind::Exchange(Mode::Read, Mode::Read);
            reads || kind == in_place || kind.crosses() || matches!(kind, StageKind::GlobalSync(_))
        };
        if let Some(stage) = self.stages.iter().find(|stage| !fits(stage.kind)) {
            return Err(Error::PassesPerClock(stage.name.clone()));
        }
        if let Some(stage) = self.stages.iter().filter(|stage| stage.kind == in_place).nth(1) {
            return Err(Error::PassesPerClock(stage.name.clone()));
        }
        if self.clocks() > 1 {
            return Err(Error::Setting {
                name: "passes per clock",
                found,
                expected: "1 where an iteration has several clocks",
            });
        }
        Ok(())
    }
}
