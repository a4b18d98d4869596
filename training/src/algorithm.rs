//! What the author of an algorithm writes: its options, what it is trained on, and what comes of it.

use megagrid_engine::Settings;

use crate::data::Data;
use crate::error::Error;
use crate::model::Model;
use crate::options::{Options, UpdatedOn};
use crate::run::MakeForm;
use crate::run_options::RunOptions;

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
