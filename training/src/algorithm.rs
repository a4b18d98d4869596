//! What the author of an algorithm writes: what it is trained on, its programs, and how each is trained.

use std::borrow::Cow;
use std::sync::Arc;

use megagrid_datasets::Readers;
use megagrid_datasets::cache::EdgeData;
use megagrid_engine::cluster::Cluster;
use megagrid_engine::{Engine, IterationReport, Settings, Source};
use megagrid_stages::{Program, Sequence, Stages};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::form::MakeForm;
use crate::record::{InputSizes, Metrics, Phases};
use crate::{Error, Model, Options};

/// How an input is read.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'r> {
    /// The command, in which processes that read together have to agree.
    pub command: &'static str,
    /// Decides what is kept for testing.
    pub seed: u64,
    /// Whether vertices are put in order of degree (text input only).
    pub degree_order: bool,
    /// Other processes.
    pub cluster: Option<&'r Arc<Cluster>>,
    /// Those that read the input together; `None`: each reads all of it.
    pub readers: Option<&'r Arc<dyn Readers>>,
}

impl Reading<'_> {
    /// Finds that all processes are about to read the same way: what they then do, they do in the same order.
    ///
    /// # Errors
    /// What differs; a lost process.
    pub fn begin(&self, is_cache: bool, holdout: Option<f64>) -> Result<(), Error> {
        let Some(cluster) = self.cluster else { return Ok(()) };
        let input = if is_cache { "a cache" } else { "no cache" };
        let holdout = holdout.map_or("unset".to_owned(), |part| part.to_string());
        let facts = [("command", self.command.to_owned()), ("holdout", holdout), ("as input", input.to_owned())];
        Ok(cluster.agree(&facts)?)
    }
}

/// What is trained on: edges, and what is kept to test on.
pub trait Data: Sized + Send + Sync + 'static {
    /// What an edge carries.
    type Edge: EdgeData;
    /// Where it comes from, and how it is read: part of the record.
    type Origin: Clone + Serialize + Send + Sync + 'static;
    /// Options of the origin that a run which is continued must have.
    const FIXED: &'static [&'static str] = &[];

    /// Reads it, and says in the origin what is found of it on the way, such as the format.
    ///
    /// # Errors
    /// Options out of range; input that cannot be read.
    fn read(origin: &mut Self::Origin, reading: &Reading<'_>) -> Result<(Self, Phases), Error>;

    /// Returns the numbers of vertices and edges.
    fn sizes(&self) -> InputSizes;

    /// Returns a checksum of all that training depends on, in which processes have to agree.
    ///
    /// # Errors
    /// Edges that cannot be read.
    fn checksum(&self) -> Result<u64, Error>;

    /// Gives up the edges, where only the grid needs them from now on.
    fn release(&mut self) {}
}

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
    /// The measured value on test data that the best iteration has least of; `None`: there is no test data.
    const TESTED_BY: Option<&'static str> = None;
    /// What can be tuned; beside these, `workers` and, where it is named here, `slack`.
    const KNOBS: &'static [Knob] = &[];
    /// What it is trained on.
    type Data: Data;
    /// Its options.
    type Options: Options;
    /// What comes of it.
    type Model: Model;

    /// Returns what makes the form that options ask for: [`form`](crate::form::form) of a [`Trainer`].
    fn form(options: &Self::Options) -> MakeForm<Self>;

    /// Returns what is tuned on data if nothing is said, as `--tune` takes it.
    fn tuned(_: &Self::Data, _: &Self::Options) -> Vec<String> {
        Vec::new()
    }

    /// Refuses options with which a run cannot be tuned.
    ///
    /// # Errors
    /// Such options, and what to do.
    fn check_tuned(_: &Self::Options) -> Result<(), Error> {
        Ok(())
    }
}

/// What was measured after an iteration.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What training minimizes, or maximizes.
    pub objective: f64,
    /// Other values.
    pub metrics: Metrics,
    /// Whether this is the end; `None`: it is where the objective changes by no more than the tolerance.
    pub converged: Option<bool>,
    /// What to do when the objective is no number.
    pub advice: &'static str,
}

/// A part of a run between two changes of what is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// The iteration that ends it at the latest.
    pub until: u64,
    /// Whether the model comes of it.
    pub is_last: bool,
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

    /// Returns the edges as the program's input.
    fn source<'d>(&'d self, data: &'d DataOf<Self>) -> Source<'d, EdgeOf<Self>, Self::Program>;

    /// Returns the stages of an iteration.
    fn sequence(&self) -> Sequence<Self::Program, impl Stages<Self::Program>>;

    /// Sets first values.
    ///
    /// # Errors
    /// Data that cannot be read.
    fn init(&self, data: &DataOf<Self>, engine: &mut Engine<Self::Program>) -> Result<(), Error>;

    /// Measures the objective and other values. All processes call it; others than the first may return `None`. Where it tells
    /// the value of [`Algorithm::TESTED_BY`], all vertices are then [collected](Self::collect).
    ///
    /// # Errors
    /// A lost process.
    fn measure(&mut self, data: &DataOf<Self>, engine: &mut Engine<Self::Program>) -> Result<Option<Measured>, Error>;

    /// Returns the loss before the first iteration, where that cannot be measured.
    fn first_loss(&self) -> Option<f64> {
        None
    }

    /// Returns the leg that an engine is on. It follows from the engine, so that a run that is continued finds its place.
    fn leg(&self, options: &OptionsOf<Self>, _: &Engine<Self::Program>) -> Leg {
        Leg { until: options.iterations(), is_last: true }
    }

    /// After a leg that was not the last: prepares the next, such as a path's next weight, or fewer topics. All processes call it.
    ///
    /// # Errors
    /// A lost process.
    fn next(&mut self, _: &DataOf<Self>, _: &mut Engine<Self::Program>) -> Result<(), Error> {
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
/// See [`Data::Edge`].
pub type EdgeOf<T> = <DataOf<T> as Data>::Edge;
