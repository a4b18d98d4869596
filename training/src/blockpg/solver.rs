//! What differs between the programs that fit weights.

use megagrid_algorithms::blockpg::{Config, Optimality};
use megagrid_engine::{Engine, Settings};
use megagrid_stages::{Program, Sequence, Stages};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::data::Samples;
use super::options::LinearOptions;
use crate::Error;

/// A program that fits weights to samples, and how it is asked.
pub(super) trait Solver: Sized + Send + 'static {
    /// The program: samples on the left, features on the right, an edge carries a value.
    type Program: Program<Edge = f32, Global: Serialize + DeserializeOwned>;

    /// Iterations of a class in its turn, where classes are fitted together.
    const TURN: u64;

    /// Resolves options on samples.
    fn new(samples: &Samples, options: &LinearOptions, settings: &Settings) -> Result<Self, Error>;

    /// Returns the options with all that follows from samples and settings.
    fn resolved(&self, options: &LinearOptions) -> LinearOptions {
        options.clone()
    }

    /// Returns how many workers run of those asked for.
    fn workers(&self, asked: usize) -> usize;

    /// Returns the items by which a plan knows how large sums are.
    fn dims(&self) -> usize {
        1
    }

    /// Returns the stages of an iteration.
    fn sequence(&self) -> Sequence<Self::Program, impl Stages<Self::Program>>;

    /// Begins to fit a model, whatever the engine fitted before.
    fn init(&self, samples: &Samples, begin: Begin<'_>, engine: &mut Engine<Self::Program>) -> Result<(), Error>;

    /// Goes on with the next penalties from the weights that are there.
    fn turn_to(config: &Config, engine: &mut Engine<Self::Program>);

    /// Returns where an engine is.
    fn progress(engine: &Engine<Self::Program>) -> Progress;

    /// Returns the weights.
    fn weights(engine: &Engine<Self::Program>) -> Vec<f64>;

    /// Returns their loss.
    fn loss(engine: &Engine<Self::Program>) -> f64;

    /// Compares what samples know with what the weights say.
    #[cfg(debug_assertions)]
    fn check(_: &Samples, _: &[f32], _: &Engine<Self::Program>, _: &[f64]) {}
}

/// What a model begins with.
#[derive(Clone, Copy)]
pub(super) struct Begin<'b> {
    /// Penalties.
    pub config: &'b Config,
    /// Labels of samples, −1 or 1.
    pub labels: &'b [f32],
    /// What is added to each sample's score; nothing if empty.
    pub offsets: &'b [f64],
    /// Weights, one a feature.
    pub weights: &'b [f64],
}

impl Begin<'_> {
    /// Returns what is added to a sample's score.
    pub(super) fn offset(&self, sample: usize) -> f64 {
        self.offsets.get(sample).copied().unwrap_or_default()
    }
}

/// Where an engine is.
pub(super) struct Progress {
    /// Iterations done when training at this l1 began.
    pub begun: u64,
    pub l1: f64,
    /// How far the weights are from the optimum.
    pub optimality: Optimality,
    /// Whether that was found of all features.
    pub is_of_all: bool,
}
