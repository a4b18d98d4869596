//! What the author of an algorithm writes for each of its programs: how it is trained.

use std::borrow::Cow;

use megagrid_engine::{Engine, IterationReport, Settings, Source};
use megagrid_stages::{Program, Sequence, Stages};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::algorithm::Algorithm;
use crate::error::Error;
use crate::leg::Leg;
use crate::measured::Measured;
use crate::options::Options;
use crate::record::Metrics;

/// A program of an algorithm, and how it is trained.
pub trait Trainer: Sized + Send + 'static {
    /// The algorithm.
    type Algorithm: Algorithm;
    /// The program.
    type Program: Program<Global: Serialize + DeserializeOwned>;
    /// What an edge of the data carries.
    type Edge: Copy + Send + Sync + 'static;

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

    /// After each iteration, before anybody looks at it: goes on with what is fitted next, where things take turns. All processes call it.
    ///
    /// # Errors
    /// Data that cannot be read; a lost process.
    fn after_iteration(&mut self, _: &DataOf<Self>, _: &mut Engine<Self::Program>) -> Result<(), Error> {
        Ok(())
    }

    /// Tells whether the objective is to be measured after this iteration, whatever else is asked for: where that costs next to
    /// nothing, or may show that the run has converged. The same in all processes.
    fn is_due(&self, _: &DataOf<Self>, _: &Engine<Self::Program>) -> bool {
        false
    }

    /// Measures the objective and other values. All processes call it, and collect vertices before they read them; others than the first may return
    /// `None`. By now the data may have given
    /// up their edges, here and below ([`Data::release`](crate::Data::release)): what is needed of them, such as degrees, is kept in
    /// [`new`](Self::new); how many there were, [`sizes`](crate::Data::sizes) goes on to say.
    ///
    /// # Errors
    /// A lost process.
    fn measure(&mut self, data: &DataOf<Self>, engine: &mut Engine<Self::Program>) -> Result<Option<Measured>, Error>;

    /// Measures on test data, if there are some. All processes call it, and [collect](Self::collect) vertices first, if there are test data: the first
    /// process then takes the [model](Self::model), if it is the best so far. Others may return nothing.
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

    /// Returns the model that a run would end with now, which may be of an earlier leg; otherwise as [`model`](Self::model).
    ///
    /// # Errors
    /// Data that cannot be read.
    fn model_so_far(&self, data: &DataOf<Self>, engine: &Engine<Self::Program>) -> Result<ModelOf<Self>, Error> {
        self.model(data, engine)
    }

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
