//! What a tuner asks of training: branches that it can fork, run and free.

use crate::history::{Branch, Progress};
use crate::progress::Noise;
use crate::space::Setting;

/// A clock that a branch ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// How long it took: seconds, or samples processed where a run is to be reproducible.
    pub time: f64,
    /// The loss after it, or of the samples that it trained on, which training makes smaller. No finite number means that the branch diverged.
    pub loss: f64,
    /// The error on held-out data after it, where it was measured: finite, and small where the model is good. It decides when a
    /// run is tuned again, and no trial. Where a clock is a part of a pass it is measured after each pass of the branch.
    pub tested: Option<f64>,
    /// Whether training is known to have come to its end.
    pub finished: bool,
}

/// Training that keeps several branches of its state, of which one runs at a time. The branch 0 is there.
pub trait Trainer {
    /// What can go wrong.
    type Error;

    /// Tells how reports come about.
    fn noise(&self) -> Noise;

    /// Returns the clocks of an epoch, a pass over the data: what plateaus count, and what a trial of a later search takes at
    /// most. Where losses are of samples ([`Noise::Sampled`]) a clock is a part of a pass, a mini-batch or some of them.
    fn epoch(&self) -> u64 {
        1
    }

    /// Makes the branch `child`, which begins where `parent` is and goes on with `setting`.
    ///
    /// # Errors
    /// No memory; a setting that training does not take.
    fn fork(&mut self, parent: Branch, child: Branch, setting: &Setting) -> Result<(), Self::Error>;

    /// Runs a branch for one clock.
    ///
    /// # Errors
    /// Training failed, in another way than to diverge.
    fn schedule(&mut self, branch: Branch) -> Result<Clock, Self::Error>;

    /// Reports the loss of a branch as it stands.
    ///
    /// # Errors
    /// It could not be measured.
    fn report(&mut self, branch: Branch) -> Result<f64, Self::Error>;

    /// Ends a branch.
    ///
    /// # Errors
    /// Other processes were lost.
    fn free(&mut self, branch: Branch) -> Result<(), Self::Error>;

    /// Tells that the run has come to a branch and no search is under way: a time to save the branch, and `progress` with it,
    /// from which [`resume`](crate::resume) goes on. It is told after each clock of the run, and of the last one that it is.
    ///
    /// # Errors
    /// It could not be saved; the run is to stop here.
    fn keep(&mut self, branch: Branch, progress: &Progress, is_last: bool) -> Result<(), Self::Error> {
        let _ = (branch, progress, is_last);
        Ok(())
    }
}
