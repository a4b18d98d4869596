//! What the author of an algorithm writes: what it is trained on, its programs, and how each is trained.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use megagrid_datasets::cache::EdgeData;
use megagrid_engine::plan::Plan;
use megagrid_engine::{Engine, IterationReport, Settings, Source};
use megagrid_stages::{Program, Sequence, Stages};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::data::Data;
use crate::error::Error;
use crate::model::Model;
use crate::options::{Options, RunOptions, UpdatedOn};
use crate::record::{InputSizes, Machine, Metrics, Name};

/// Something that `tune` may change.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// The option, as `--tune` names it.
    pub name: &'static str,
    /// Whether it lays out the graph, or is another program: it is tuned at the beginning only.
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
    /// What to do when the objective is no number.
    const ADVICE: &'static str;
    /// Worse evaluations in a row on test data that end a run, if nothing is said.
    const PATIENCE: u64 = 5;
    /// What can be tuned; beside these, `workers` and, where it is named here, `slack`.
    const KNOBS: &'static [Knob] = &[];
    /// What it is trained on.
    type Data: Data;
    /// Its options.
    type Options: Options;
    /// What comes of it.
    type Model: Model;

    /// Returns what makes the form that data and options ask for: [`form`](crate::form) of a [`Trainer`]. Where it is `#[inline(never)]`, the
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

    /// Returns what is tuned on data if nothing is said, as `--tune` takes it.
    fn tuned(_: &Self::Data, _: &Self::Options) -> Vec<String> {
        Vec::new()
    }

    /// Refuses a way to run that data do not allow.
    ///
    /// # Errors
    /// Such options, and what to do.
    fn check_run(_data: &Self::Data, _run: &RunOptions, _is_tuned: bool) -> Result<(), Error> {
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

/// What was measured after an iteration.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What training minimizes, or maximizes.
    pub objective: f64,
    /// Other values, but those on test data.
    pub metrics: Metrics,
    /// Whether this is the end; `None`: it is where the objective changes by no more than the tolerance.
    pub converged: Option<bool>,
}

impl Measured {
    /// Takes a residual, which is the objective of what ends where it is within a tolerance.
    #[must_use]
    pub fn residual(residual: f64, tolerance: f64) -> Self {
        let metrics = Metrics::from([("residual".into(), residual)]);
        Self { objective: residual, metrics, converged: Some(residual <= tolerance) }
    }
}

/// All that is known after an iteration.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// What training minimizes, or maximizes, where it was measured.
    pub objective: Option<f64>,
    /// See [`Measured::converged`].
    pub converged: Option<bool>,
    /// Other values: running ones, those on test data, and what was measured with the objective. One that is no number is left out.
    pub metrics: Metrics,
    /// The objective or a running value that is no number any more, and what it is.
    diverged: Option<(Name, f64)>,
}

impl Found {
    /// Returns the value on test data that early stopping is to make small, by its name.
    #[must_use]
    pub fn tested<A: Algorithm>(&self, by: Option<&'static str>) -> Option<f64> {
        let value = *self.metrics.get(by?)?;
        Some(if A::TEST_GROWS { -value } else { value })
    }

    /// Puts together running values, what was `measured`, and values on test data.
    #[must_use]
    pub fn new(running: Metrics, measured: Option<Measured>, tested: Metrics) -> Self {
        let mut found = Self::default();
        let mut trained = running.clone();
        found.metrics = running;
        found.metrics.extend(tested);
        if let Some(Measured { objective, metrics, converged }) = measured {
            (found.objective, found.converged) = (Some(objective), converged);
            found.metrics.extend(metrics);
            trained.insert("the objective".into(), objective);
        }
        found.metrics.retain(|_, value| value.is_finite());
        found.diverged = trained.into_iter().find(|(_, value)| !value.is_finite());
        found
    }

    /// Refuses an objective and running values that are no numbers. Other values may be none: a user's on test data, say.
    ///
    /// # Errors
    /// The first, and what to do.
    pub fn check<A: Algorithm>(&self, iteration: u64) -> Result<(), Error> {
        match self.diverged.clone() {
            Some((name, value)) => Err(Error::Diverged { name, value, iteration, advice: A::ADVICE }),
            None => Ok(()),
        }
    }
}

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

/// A program of an algorithm, and how it is trained.
pub trait Trainer: Sized + Send + 'static {
    /// The algorithm.
    type Algorithm: Algorithm;
    /// The program.
    type Program: Program<Global: Serialize + DeserializeOwned>;
    /// What an edge of the data carries.
    type Edge: EdgeData;

    /// Resolves options on data: called at the beginning, and when `tune` changes a setting.
    ///
    /// # Errors
    /// Options that do not fit the data.
    fn new(data: &DataOf<Self>, options: &OptionsOf<Self>, settings: &Settings) -> Result<Self, Error>;

    /// Returns the options with all that follows from data and settings.
    fn resolved(&self, _: &DataOf<Self>, options: &OptionsOf<Self>) -> OptionsOf<Self> {
        options.clone()
    }

    /// Returns the items of a row.
    fn dims(&self) -> usize {
        1
    }

    /// Returns the iterations in a clock, where it has several.
    fn passes_per_clock(&self) -> u64 {
        1
    }

    /// Returns how many workers run of those asked for: fewer where more would take longer.
    fn workers(&self, asked: usize) -> usize {
        asked
    }

    /// Returns the edges as the program's input.
    fn source<'d>(&'d self, data: &'d DataOf<Self>) -> Source<'d, Self::Edge, Self::Program>;

    /// Returns the stages of an iteration.
    fn sequence(&self) -> Sequence<Self::Program, impl Stages<Self::Program>>;

    /// Sets first values.
    ///
    /// # Errors
    /// Data that cannot be read.
    fn init(&self, data: &DataOf<Self>, engine: &mut Engine<Self::Program>) -> Result<(), Error>;

    /// Returns what the steps of the last iteration told of themselves, by name: it costs nothing, such as the errors of ratings
    /// before the steps that they caused. The same in all processes.
    fn running(&self, _: &DataOf<Self>, _: &Engine<Self::Program>) -> Metrics {
        Metrics::new()
    }

    /// Tells whether the objective is to be measured after this iteration, whatever else is asked for: where that costs next to
    /// nothing, or may show that the run has converged. The same in all processes.
    fn is_due(&self, _: &DataOf<Self>, _: &Engine<Self::Program>) -> bool {
        false
    }

    /// Measures the objective and other values. All processes call it; others than the first may return `None`.
    ///
    /// # Errors
    /// A lost process.
    fn measure(&mut self, data: &DataOf<Self>, engine: &mut Engine<Self::Program>) -> Result<Option<Measured>, Error>;

    /// Measures on test data, if there are some. All processes call it; the first has all vertices [collected](Self::collect) then.
    /// Others may return nothing.
    ///
    /// # Errors
    /// A lost process.
    fn test(&mut self, _: &DataOf<Self>, _: &mut Engine<Self::Program>) -> Result<Metrics, Error> {
        Ok(Metrics::new())
    }

    /// Returns the loss before the first iteration, where that cannot be measured.
    fn first_loss(&self) -> Option<f64> {
        None
    }

    /// Returns the leg that an engine is on. It follows from the engine, so that a run that is continued finds its place.
    fn leg(&self, options: &OptionsOf<Self>, _: &Engine<Self::Program>) -> Leg {
        Leg { since: 0, until: options.iterations(), is_last: true, tested_by: Self::Algorithm::TESTED_BY }
    }

    /// After a leg that was not the last: prepares the next, such as a path's next weight, or fewer topics. All processes call it; the first
    /// has what was the best iteration's model of a leg that was tested, unless it was the last iteration.
    ///
    /// # Errors
    /// A lost process.
    fn next(
        &mut self,
        _: &DataOf<Self>,
        _: &mut Engine<Self::Program>,
        _best: Option<ModelOf<Self>>,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Returns what a checkpoint has to hold beside the state of the engine: what came of the legs that have ended, say. That of the first process
    /// counts.
    ///
    /// # Errors
    /// What cannot be written as bytes.
    fn notes(&self) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }

    /// Takes what a checkpoint that is gone on from holds beside the state of the engine. All processes call it, with the same.
    ///
    /// # Errors
    /// Notes of another version, or of other data.
    fn take_notes(&mut self, _: &DataOf<Self>, _notes: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the iterations of all legs, at most, of a run that begins with `done` iterations.
    fn most_iterations(&self, options: &OptionsOf<Self>, _done: u64) -> u64 {
        options.iterations()
    }

    /// Corrects what the engine reported, such as tokens for edges.
    fn corrected<'r>(&self, report: &'r IterationReport) -> Cow<'r, IterationReport> {
        Cow::Borrowed(report)
    }

    /// Keeps of the data what [`finish`](Self::finish) needs, before they are released.
    ///
    /// # Errors
    /// Data that cannot be read.
    fn keep(&mut self, _: &DataOf<Self>) -> Result<(), Error> {
        Ok(())
    }

    /// Brings all vertices to the first process, as they are. All processes call it.
    ///
    /// # Errors
    /// A lost process.
    fn collect(&self, engine: &mut Engine<Self::Program>) -> Result<(), Error> {
        Ok(engine.collect()?)
    }

    /// Takes the model out of an engine, in the first process, where all vertices have been collected.
    ///
    /// # Errors
    /// Data that cannot be read.
    fn model(&self, data: &DataOf<Self>, engine: &Engine<Self::Program>) -> Result<ModelOf<Self>, Error>;

    /// Adds to the final model what is found at the end only, such as a certificate.
    ///
    /// # Errors
    /// Data that cannot be read.
    fn finish(&self, _: &DataOf<Self>, _: &mut ModelOf<Self>) -> Result<(), Error> {
        Ok(())
    }
}

/// See [`Algorithm::Data`].
pub type DataOf<T> = <<T as Trainer>::Algorithm as Algorithm>::Data;
/// See [`Algorithm::Options`].
pub type OptionsOf<T> = <<T as Trainer>::Algorithm as Algorithm>::Options;
/// See [`Algorithm::Model`].
pub type ModelOf<T> = <<T as Trainer>::Algorithm as Algorithm>::Model;

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
    /// See [`Trainer::next`].
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
    /// Tells whether the objective is to be measured; see [`Trainer::is_due`].
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hits::HubsAndAuthorities;

    fn metrics<const N: usize>(values: [(&'static str, f64); N]) -> Metrics {
        Metrics::from(values.map(|(name, value)| (Name::from(name), value)))
    }

    #[test]
    fn only_the_objective_and_running_values_end_a_run_as_diverged() {
        let measured = |objective| {
            let metrics = metrics([("train_rmse", 2.0)]);
            Some(Measured { objective, metrics, converged: None })
        };
        let running = |value| metrics([("running_rmse", value)]);
        let said = |found: &Found| found.check::<HubsAndAuthorities>(3).map_err(|error| error.to_string());
        let found = Found::new(running(1.0), measured(4.0), metrics([("users_own", f64::NAN), ("test_rmse", 3.0)]));
        assert_eq!(said(&found), Ok(()));
        assert_eq!(found.metrics, metrics([("running_rmse", 1.0), ("test_rmse", 3.0), ("train_rmse", 2.0)]));
        let ended = said(&Found::new(running(1.0), measured(f64::INFINITY), Metrics::new())).unwrap_err();
        assert!(ended.starts_with("the objective became inf in iteration 3"), "{ended}");
        let ended = said(&Found::new(running(f64::NAN), None, Metrics::new())).unwrap_err();
        assert!(ended.starts_with("running_rmse became NaN in iteration 3"), "{ended}");
    }
}
