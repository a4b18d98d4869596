//! Training: from data and options to a model, the same way for every algorithm.
//!
//! | who | writes | calls |
//! |---|---|---|
//! | the author of an algorithm | [`Algorithm`], a [`Trainer`] for each program, [`Data`], [`Options`], [`Model`] | |
//! | `train`, Python's `fit` | | [`Job::read`], [`train`] |
//! | `plan` | | [`Job::plan`] |
//! | `tune` | | [`tune::tune`]: [`Run`]'s `fork`, `select`, `adapt`, `iterate`, `free` |
//! | `compare` | | [`train`]; `baselines` on the same [`Data`] and [`Options`] |
//! | `recommend`, `similar`, `predict`, `topics`, `top`, `serve` | | [`model::load`], [`Model::answer`]; [`mf::Recommendations`], [`mf::Similar`], [`fold_in::fold_in`] for many |
//!
//! A run goes through one or several [legs](Leg), each of which ends after its iterations, when the tolerance is reached, or, if a model comes
//! of it, when [early stopping](RunOptions::patience) says that it gets worse on test data. The model is that of the best iteration on
//! test data, of the last one without. Nothing here prints: an [`Observer`] sees the run and may end it.
#![forbid(unsafe_code)]

mod algorithm;
pub mod als;
pub mod blockpg;
pub mod changes;
pub mod checkpoint;
mod data;
mod error;
pub mod fold_in;
mod form;
pub mod graph;
pub mod hits;
pub mod input;
mod job;
pub mod lda;
mod leg;
mod looks;
mod measured;
pub mod mf;
pub mod model;
mod options;
pub mod page;
pub mod pagerank;
mod past;
mod processes;
pub mod record;
mod room;
mod run_options;
mod stopping;
mod train;
mod trainer;
pub mod tune;
pub mod update;
pub mod words;

pub use algorithm::{Algorithm, Form, Knob, MakeForm, Pause, Run};
pub use data::{Data, NoOptions, Reading};
pub use error::Error;
pub use form::form;
pub use job::{Job, planned};
pub use leg::{Ended, Leg};
pub use measured::Measured;
pub use model::Model;
pub use options::{Options, UpdatedOn, join, json, lossy, options};
pub use processes::Processes;
pub use run_options::{CheckpointOptions, Consistency, RunOptions};
pub use train::{Observer, Trained, config, train};
pub use trainer::{DataOf, ModelOf, OptionsOf, Trainer};
