//! Looks: after which iterations all workers meet.

use super::Plan;
use super::steps::After;

/// A look makes workers wait for the slowest. After this many times the clocks that the slack lets them be apart, that costs little.
const LOOK_PER_SLACK: u64 = 4;

impl Plan {
    /// Lets iterations flow into each other where slack allows it and no step waits for all workers: a worker ahead of others would
    /// add the terms of its next iteration to a sum that is not applied yet.
    pub(super) fn let_flow(&mut self, look_every: Option<u64>) {
        self.flows = self.slack != Some(0) && self.steps.iter().all(|step| step.after != After::All);
        if self.flows {
            let clocks = self.clocks().max(1);
            // Without a bound nothing but looks keeps workers together.
            let suggested =
                self.slack.map_or(1, |slack| LOOK_PER_SLACK.saturating_mul(slack.saturating_add(1)).div_ceil(clocks));
            self.look_every = look_every.unwrap_or(suggested).max(1);
        }
    }

    /// Returns the iteration after which the next look is, when `done` are done.
    #[must_use]
    pub fn next_look(&self, done: u64) -> u64 {
        (done / self.look_every + 1).saturating_mul(self.look_every)
    }
}
