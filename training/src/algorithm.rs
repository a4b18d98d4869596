//! An algorithm: its options, what it is trained on, what comes of it; and a run of it, whatever its program: what `train` and `tune` see.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use megagrid_engine::plan::Plan;
use megagrid_engine::{IterationReport, Settings};

use crate::data::Data;
use crate::error::Error;
use crate::leg::Leg;
use crate::measured::Found;
use crate::model::Model;
use crate::options::{Options, UpdatedOn};
use crate::record::{InputSizes, Machine};
use crate::run_options::RunOptions;

/// Something that `tune` may change.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// The option, as `--tune` names it.
    pub name: &'static str,
    /// Whether it lays out the graph, changes [what edges carry](crate::Trainer::source) or [first values](crate::Trainer::init), or is
    /// another program: it is tuned at the beginning only. Others change what runs from one iteration to the next: the engine keeps what
    /// vertices and edges have.
    pub is_layout: bool,
    /// Whether it changes how long an iteration takes.
    pub is_timed: bool,
}

/// An algorithm: its options, what it is trained on, and what comes of it.
pub trait Algorithm: Sized + Send + Sync + 'static {
    /// The command, and the kind of its models.
    const NAME: &'static str;
    /// Whether the objective grows.
    const MAXIMIZES: bool = false;
    /// The measured value on test data that the best iteration has least of, or most; `None`: there is no test data.
    const TESTED_BY: Option<&'static str> = None;
    /// Whether it has most of it.
    const TEST_GROWS: bool = false;
    /// Whether settings are compared by that value when a run tunes itself, where there is test data, and not by the objective: where what
    /// is tuned also decides how well a model does on what it has not seen.
    const TUNED_BY_TEST: bool = false;
    /// What to do when the objective is no number.
    const ADVICE: &'static str;
    /// Worse evaluations in a row on test data that end a run, if nothing is said.
    const PATIENCE: u64 = 5;
    /// After how many iterations it is tested on test data, if nothing is said: where a test takes as long as an iteration, after several.
    const TEST_EVERY: u64 = 1;
    /// What can be tuned; beside these, `workers` and, where it is named here, `slack`.
    const KNOBS: &'static [Knob] = &[];
    /// What it is trained on.
    type Data: Data;
    /// Its options.
    type Options: Options;
    /// What comes of it.
    type Model: Model;

    /// Returns what makes the form that data and options ask for: [`form`](crate::form) of a [`Trainer`](crate::Trainer). Where it is `#[inline(never)]`, the
    /// programs are compiled with the algorithm; else the compiler finds it small, and compiles them again for each user of it.
    fn form(data: &Self::Data, options: &Self::Options) -> MakeForm<Self>;

    /// Has training begin at a model's values, where it knows a vertex of the data by its name.
    ///
    /// # Errors
    /// A model that these options cannot go on with; names that cannot be read.
    fn start_from(_: &mut Self::Data, _: &Self::Options, _: Self::Model) -> Result<(), Error> {
        Err(no_start(Self::NAME))
    }

    /// Is told that the data that training begins on are all there are: what a model knows beside them is to be forgotten.
    fn forget_others(_: &mut Self::Data) {}

    /// Returns what an update of a model is trained on.
    ///
    /// # Errors
    /// Training that cannot begin at a model.
    fn updated_on(_: &Self::Model) -> Result<UpdatedOn, Error> {
        Err(no_start(Self::NAME))
    }

    /// Returns the options with which an update of a model goes on: without what followed from the data that there were.
    fn continued(options: Self::Options, _: &Self::Model, _: UpdatedOn) -> Self::Options {
        options
    }

    /// Returns what is tuned on data if nothing is said, as `--tune` takes it.
    fn tuned(_: &Self::Data, _: &Self::Options, _: &Settings) -> Vec<String> {
        Vec::new()
    }

    /// Refuses a way to run that data do not allow.
    ///
    /// # Errors
    /// Such options, and what to do.
    fn check_run(
        _data: &Self::Data,
        _options: &Self::Options,
        _run: &RunOptions,
        _is_tuned: bool,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Refuses options that do not go with how a run is set up.
    ///
    /// # Errors
    /// Such options, and what to do.
    fn check_settings(_: &Self::Options, _: &Settings) -> Result<(), Error> {
        Ok(())
    }

    /// Refuses options with which a run cannot be tuned.
    ///
    /// # Errors
    /// Such options, and what to do.
    fn check_tuned(_: &Self::Options) -> Result<(), Error> {
        Ok(())
    }
}

fn no_start(name: &str) -> Error {
    Error::option(format!("training of {name} cannot begin at an earlier model; train on all data anew"))
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
    /// Returns what the engine does.
    fn plan(&mut self) -> &Plan;
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
    /// Returns the model that a run would end with now, which may be of an earlier leg; otherwise as [`Pause::model`].
    ///
    /// # Errors
    /// Data that cannot be read.
    fn model_so_far(&self) -> Result<A::Model, Error>;
}
