//! Commands of algorithms: what help says of an algorithm, and the commands that are made of it.

use std::fmt::Debug;
use std::marker::PhantomData;

use clap::{ArgMatches, Command, FromArgMatches};
use megagrid_datasets::Label;
use megagrid_training::input::Source;
use megagrid_training::record::Record;
use megagrid_training::{Algorithm, Data, RunOptions};

use crate::common::Common;
use crate::data::Kind;

/// How an algorithm's data is read.
pub type DataOptions<A> = <<A as Algorithm>::Data as Data>::Options;

/// An algorithm on the command line, where it has the options that the library declares.
pub trait Trains:
    Algorithm<Options: clap::Args + Debug, Data: Data<Options: clap::Args + Debug>> + Clone + Debug
{
    /// What it is trained on.
    const KIND: Kind;
    /// What help says of it: in a line, and more.
    const ABOUT: [&'static str; 2];
    /// What vertices of each side are called, where an update tells how many are new.
    const ENDS: [Option<&'static str>; 2];
    /// What help ends with.
    const EXAMPLES: &'static str;
    /// Iterations of `tune`, where it has others by default.
    const TUNED_ITERATIONS: Option<&'static str> = None;

    /// Adds arguments that say nothing beside the library's options, and hides those that the algorithm refuses.
    fn with_more(command: Command) -> Command {
        command
    }

    /// Returns what a cache of the input is made with: the labels that become 1, where there are some.
    ///
    /// # Errors
    /// Options of reading that a cache cannot hold.
    fn kept_positive(_: &DataOptions<Self>) -> anyhow::Result<Vec<Label>> {
        Ok(Vec::new())
    }

    /// Returns how the run is to go, where the algorithm's options have a say in it.
    fn run_options(_: &Self::Options, run: &RunOptions) -> anyhow::Result<RunOptions> {
        Ok(run.clone())
    }

    /// Says how an option of training is written on the command line: `--name value` unless this knows better.
    fn spell(_name: &str, _value: &serde_json::Value, _all: &serde_json::Value) -> Spelling {
        Spelling::Usual
    }

    /// Says in a few lines what was found.
    fn findings(_record: &Record, model: &Self::Model) -> String {
        megagrid_training::Model::findings(model)
    }
}

/// How an option is written on the command line.
pub enum Spelling {
    /// `--name value`, or `--name` where it is true.
    Usual,
    /// This flag.
    Flag(&'static str),
    /// Not at all: it follows from others.
    Absent,
}

/// Arguments of a training command.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Args<A: Trains> {
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub data: DataOptions<A>,
    #[command(flatten)]
    pub own: A::Options,
    #[command(flatten)]
    pub common: Common,
}

/// A command of an algorithm: its arguments, and what runs it.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Returns its arguments.
    pub command: fn() -> Command,
    /// Runs it.
    pub run: fn(&ArgMatches) -> anyhow::Result<()>,
}

/// Returns a command of an algorithm, with these arguments: [`Args`], or more.
pub fn command<A: Trains, Arguments: clap::Args>() -> Command {
    let [about, more] = A::ABOUT;
    let command = A::with_more(Arguments::augment_args(Command::new(A::NAME))).about(about);
    command.long_about(format!("{about}.\n\n{more}")).after_help(A::EXAMPLES)
}

/// Reads arguments that clap has checked.
pub fn parsed<A: FromArgMatches>(matches: &ArgMatches) -> A {
    A::from_arg_matches(matches).unwrap_or_else(|error| error.exit())
}

/// Commands of algorithms.
pub trait List {
    /// Lists them.
    fn entries() -> Vec<Entry>;
}

/// One of a list of commands, with its arguments.
pub struct Chosen<L> {
    run: fn(&ArgMatches) -> anyhow::Result<()>,
    matches: ArgMatches,
    list: PhantomData<L>,
}

impl<L> Chosen<L> {
    /// Runs it.
    pub fn run(&self) -> anyhow::Result<()> {
        (self.run)(&self.matches)
    }
}

impl<L: List> FromArgMatches for Chosen<L> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        let entry = L::entries().into_iter().find(|entry| entry.name == name).ok_or_else(missing)?;
        Ok(Self { run: entry.run, matches: matches.clone(), list: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<L: List> clap::Subcommand for Chosen<L> {
    fn augment_subcommands(command: Command) -> Command {
        let command = command.subcommand_required(true).arg_required_else_help(true);
        L::entries().into_iter().fold(command, |command, entry| command.subcommand((entry.command)()))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        L::entries().iter().any(|entry| entry.name == name)
    }
}
