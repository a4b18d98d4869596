//! A run under way, whatever the algorithm's program: what `train` and `tune` see of it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use megagrid_engine::plan::Plan;
use megagrid_engine::{IterationReport, Settings};
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::error::Error;
use crate::measured::Found;
use crate::record::{InputSizes, Machine};

/// A part of a run between two changes of what is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// The iterations that were done when it began, or when the first of those began that are evaluated together.
    pub since: u64,
    /// The iteration that ends it at the latest.
    pub until: u64,
    /// Whether it is the last.
    pub is_last: bool,
    /// The measured value on test data whose best iteration is kept of it, and which may end it: [`Algorithm::TESTED_BY`] where the model comes
    /// of it; `None`: none.
    pub tested_by: Option<&'static str>,
}

/// Why a leg ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// All iterations are done.
    Iterations,
    /// The tolerance is reached.
    Tolerance,
    /// It got worse on test data for too long.
    Patience,
    /// The run was asked to end.
    Interrupt,
}

/// Makes a form of data, options and settings.
pub type MakeForm<A> =
    fn(Arc<<A as Algorithm>::Data>, <A as Algorithm>::Options, Settings) -> Result<Box<dyn Form<A>>, Error>;

/// A program of an algorithm with its data and options.
pub trait Form<A: Algorithm> {
    /// Returns the options with all that follows from data and settings.
    fn options(&self) -> A::Options;

    /// Returns what the engine would do.
    ///
    /// # Errors
    /// What making a plan refuses.
    fn plan(&self) -> Result<Plan, Error>;

    /// Makes an engine with first values, whose state is the branch `first`.
    ///
    /// # Errors
    /// Not enough memory; data that cannot be read.
    fn begin(self: Box<Self>, first: u64) -> Result<Box<dyn Run<A>>, Error>;
}

/// A run under way, of several branches one of which is in the engine: the one that was [selected](Run::select) or
/// [forked](Run::fork) last. Every method is called by all processes, unless it says otherwise.
pub trait Run<A: Algorithm> {
    /// Returns the sizes of the input.
    fn input(&self) -> InputSizes;
    /// Describes what it runs on.
    fn machine(&mut self) -> Machine;
    /// Returns the iterations done.
    fn iterations(&mut self) -> u64;
    /// Returns the leg that the run is on.
    fn leg(&mut self) -> Leg;
    /// Returns the iterations of all legs, at most, of a run that begins where this one is.
    fn most_iterations(&mut self) -> u64;

    /// Runs iterations until `last` are done in all, or `between` breaks.
    ///
    /// # Errors
    /// Those of the engine.
    fn iterate(&mut self, last: u64, between: Between<'_, A>) -> Result<(), Error>;
    /// Looks at the run, between iterations.
    fn pause(&mut self) -> Box<dyn Pause<A> + '_>;
    /// Prepares the next leg.
    ///
    /// # Errors
    /// See [`Trainer::next`](crate::Trainer::next).
    fn next(&mut self, best: Option<A::Model>) -> Result<(), Error>;

    /// Tells whether checkpoints can be written to a directory.
    ///
    /// # Errors
    /// Why not.
    fn check_target(&mut self, directory: &Path) -> Result<(), Error>;
    /// Goes on from the last checkpoint in a directory.
    ///
    /// # Errors
    /// No checkpoint that fits.
    fn load(&mut self, directory: &Path) -> Result<(), Error>;

    /// Copies a branch to another, which is then in the engine.
    ///
    /// # Errors
    /// Not enough memory.
    fn fork(&mut self, parent: u64, child: u64) -> Result<(), Error>;
    /// Brings a branch into the engine.
    ///
    /// # Errors
    /// No such branch.
    fn select(&mut self, branch: u64) -> Result<(), Error>;
    /// Ends a branch.
    ///
    /// # Errors
    /// No such branch.
    fn free(&mut self, branch: u64) -> Result<(), Error>;
    /// Goes on with other options and settings, on the same grid.
    ///
    /// # Errors
    /// What needs another grid.
    fn adapt(&mut self, options: &A::Options, settings: &Settings) -> Result<(), Error>;

    /// Gives up the edges, where only the grid needs them and nobody else holds the data.
    ///
    /// # Errors
    /// Data that cannot be read.
    fn release(&mut self) -> Result<(), Error>;
    /// Adds to the final model what is found at the end only. The first process calls it.
    ///
    /// # Errors
    /// Data that cannot be read.
    fn finish(&self, model: &mut A::Model) -> Result<(), Error>;
}

/// What is done at each look: it sees the reports of the iterations since the last one, and the run.
pub type Between<'b, A> = &'b mut dyn FnMut(&[IterationReport], &mut dyn Pause<A>) -> ControlFlow<()>;

/// A run between two iterations.
pub trait Pause<A: Algorithm> {
    /// Tells whether the objective is to be measured; see [`Trainer::is_due`](crate::Trainer::is_due).
    fn is_due(&self) -> bool;
    /// Returns what steps told of themselves, the objective if that `is_due`, and what is measured on test data if it `is_tested`.
    /// All processes call it, and the first one learns all.
    ///
    /// # Errors
    /// A lost process.
    fn look(&mut self, is_due: bool, is_tested: bool) -> Result<Found, Error>;
    /// Returns the loss before the first iteration, where that cannot be measured.
    fn first_loss(&self) -> Option<f64>;
    /// Writes a checkpoint. All processes call it.
    ///
    /// # Errors
    /// A disk that is full or fails.
    fn save(&mut self, directory: &Path) -> Result<(), Error>;
    /// Brings all vertices to the first process. All processes call it.
    ///
    /// # Errors
    /// A lost process.
    fn collect(&mut self) -> Result<(), Error>;
    /// Takes the model out. The first process calls it, where all vertices have been collected.
    ///
    /// # Errors
    /// Data that cannot be read.
    fn model(&self) -> Result<A::Model, Error>;
}
