//! Virtual processes, of one worker each, as a run sees them: another thread moves them on in modelled time.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use super::time::Time;
use super::worker::Progress;
use crate::Error;
use crate::plan::Plan;
use crate::sync::{InTransit, Parcel};

/// What moves virtual processes on, as one of them sees it.
pub trait Modelled {
    /// Returns what is the same for all processes, made by the first that asks. All ask for the same things in the same order.
    ///
    /// # Errors
    /// Those of `make`, which the next process calls again.
    fn share(&self, make: &mut dyn FnMut() -> Result<Shared, Error>) -> Result<Shared, Error>;

    /// Lets this process's part of a run begin once all have come, and waits for none.
    ///
    /// # Errors
    /// A stage whose cost is not known; a process that will not come.
    fn enlist(&self, plan: &Plan, worker: MakeWorker) -> Result<(), Error>;

    /// Waits until the run has ended.
    fn wait_for_end(&self);

    /// Returns what is under way between all processes, if that bounds who may go on.
    fn in_transit(&self) -> Option<Arc<InTransit>> {
        None
    }

    /// Returns the model of time, for a record of the run.
    fn model(&self) -> serde_json::Value;
}

/// What processes share.
pub type Shared = Arc<dyn Any + Send + Sync>;

/// Makes a worker, given its time, on the thread that moves it on.
pub type MakeWorker = Box<dyn FnOnce(Box<dyn Time>) -> Box<dyn VirtualWorker> + Send>;

/// A worker that is moved on. It reads and passes time by the [`Time`] that it was made with.
pub trait VirtualWorker {
    /// Does one thing, knowing how many steps have arrived. What it sends is given to [`Self::sent`] by then.
    fn step(&mut self, arrived: u64) -> Progress;

    /// Takes in what another worker sent when it had ended `step` steps.
    fn receive(&mut self, step: u64, parcel: Parcel, arrived: u64);

    /// Returns what is to be sent, each with the steps that were ended before it.
    fn sent(&mut self) -> Vec<(u64, Parcel)>;

    /// Returns the steps that it has ended and sent everything of.
    fn steps(&self) -> u64;

    /// Returns for how long it is stopped by an injection from now on.
    fn pause(&mut self) -> Duration;

    /// Counts time in which it had nothing to do.
    fn waited(&mut self, time: Duration);

    /// Tells its coordinator which iterations have ended.
    fn report(&mut self);

    /// Tells its coordinator that the run has failed, and ends.
    fn fail(&mut self, error: Error);

    /// Returns what its coordinator wants.
    fn approval(&self) -> Approval;
}

/// What a worker's coordinator wants after the iterations that the worker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// It has not decided.
    None,
    /// Another iteration.
    Next,
    /// The end.
    Stop,
}
