//! What is to be trained, checked and resolved.

use std::sync::Arc;

use megagrid_datasets::is_pipe;
use megagrid_engine::Settings;
use megagrid_engine::plan::Plan;
use serde_json::Value;

use crate::algorithm::Algorithm;
use crate::data::{Data, Reading};
use crate::input::Source;
use crate::options::{Options, join, json};
use crate::processes::Processes;
use crate::record::Phases;
use crate::run_options::RunOptions;
use crate::{Error, model};

/// What is to be trained: data, options, and how.
pub struct Job<A: Algorithm> {
    /// The data.
    pub data: A::Data,
    /// Where they came from, as it stands in the record.
    pub origin: Value,
    /// Seconds that it took to read them.
    pub phases: Phases,
    /// The algorithm's options.
    pub options: A::Options,
    /// How it is to run, resolved.
    pub run: RunOptions,
    /// The same, as the engine takes it.
    pub settings: Settings,
    /// Further options that are to stand in the record.
    pub more: Value,
    /// Whether the model is to be written, for which a checksum of the data is taken.
    pub is_kept: bool,
    /// Whether it ends after an iteration, as a trial.
    pub is_trial: bool,
    /// Whether a run that was asked to end returns its model as it then is, instead of an error.
    pub may_end: bool,
}

impl<A: Algorithm> Job<A> {
    /// Checks options, resolves how to run, and reads the data as options say. All processes call it.
    ///
    /// # Errors
    /// Options out of range; input that cannot be read.
    pub fn read(
        (mut source, how): (Source, &<A::Data as Data>::Options),
        options: A::Options,
        run: &RunOptions,
        processes: &Processes,
    ) -> Result<Self, Error> {
        options.check()?;
        if processes.peers.is_some() && is_pipe(&source.input) {
            return Err(megagrid_datasets::Error::of_one_process(&source.input).into());
        }
        let reading = Reading {
            command: A::NAME,
            seed: run.seed,
            degree_order: run.degree_order,
            cluster: processes.cluster.as_ref(),
            readers: processes.readers.as_ref(),
        };
        let (data, phases) = A::Data::read(&mut source, how, &reading)?;
        let origin = join([json(&source)?, json(how)?]);
        Ok(Self { phases, ..Self::new(data, origin, options, run, processes)? })
    }

    /// Takes data in memory; `origin` is what the record says of them. All processes call it.
    ///
    /// # Errors
    /// Options out of range, or that data do not allow; a model that they cannot go on with.
    pub fn new(
        mut data: A::Data,
        origin: Value,
        options: A::Options,
        run: &RunOptions,
        processes: &Processes,
    ) -> Result<Self, Error> {
        options.check()?;
        A::check_run(&data, &options, run, false)?;
        if processes.is_first() && run.patience.is_some_and(|most| most > 0) && data.sizes().test_edges == 0 {
            tracing::warn!("--patience ends nothing without data to test on, which --holdout or --test name");
        }
        let (settings, run) = run.resolve(processes, A::PATIENCE)?;
        if let Some(directory) = &run.from {
            A::start_from(&mut data, &options, model::load(directory)?.0).map_err(|error| match error {
                Error::Missing(problem) => Error::invalid(directory, problem),
                other => other,
            })?;
        }
        let (phases, more) = (Phases::default(), Value::Null);
        Ok(Self { data, origin, phases, options, run, settings, more, is_kept: false, is_trial: false, may_end: false })
    }

    /// Returns what the engine would do.
    ///
    /// # Errors
    /// What making a plan refuses.
    pub fn plan(self) -> Result<Plan, Error> {
        planned::<A>(&Arc::new(self.data), &self.options, self.settings)
    }
}

/// Returns what the engine would do.
///
/// # Errors
/// What making a plan refuses.
pub fn planned<A: Algorithm>(data: &Arc<A::Data>, options: &A::Options, settings: Settings) -> Result<Plan, Error> {
    A::form(data, options)(Arc::clone(data), options.clone(), settings)?.plan()
}
