//! Commands of algorithms: what an algorithm says of its options, and the commands that are made of it.

use std::marker::PhantomData;

use clap::{ArgMatches, FromArgMatches};
use megagrid_training::record::Record;
use megagrid_training::{Algorithm, Data, RunOptions};

use crate::common::Common;
use crate::data::Kind;
use crate::source::Source;

/// The data of an algorithm's options.
pub type OriginOf<O> = <<<O as Trains>::Algorithm as Algorithm>::Data as Data>::Origin;
/// The library's form of an algorithm's options.
pub type OptionsOf<O> = <<O as Trains>::Algorithm as Algorithm>::Options;

/// Options of an algorithm on the command line. Their documentation is the help of the command.
pub trait Trains: clap::Args + Clone + Send + Sync + 'static {
    /// The algorithm.
    type Algorithm: Algorithm;
    /// What it is trained on.
    const KIND: Kind;
    /// Iterations of `tune`, where it has others by default.
    const TUNED_ITERATIONS: Option<&'static str> = None;

    /// Returns the options of training.
    fn options(&self) -> anyhow::Result<OptionsOf<Self>>;

    /// Returns where the data comes from.
    fn origin(&self, source: &Source) -> OriginOf<Self>;

    /// Takes what a cache of the input will hold already: the labels that become 1, where there are some.
    ///
    /// # Errors
    /// Options of reading that a cache cannot hold.
    fn take_positive(&mut self) -> anyhow::Result<Vec<f32>> {
        Ok(Vec::new())
    }

    /// Returns how the run is to go, where these options have a say in it.
    fn run_options(&self, run: RunOptions) -> anyhow::Result<RunOptions> {
        Ok(run)
    }

    /// Says how an option of training is written on the command line: `--name value` unless this knows better.
    fn spell(_name: &str, _value: &serde_json::Value, _all: &serde_json::Value) -> Spelling {
        Spelling::Usual
    }

    /// Says in a few lines what was found.
    fn findings(_record: &Record, model: &<Self::Algorithm as Algorithm>::Model) -> String {
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
pub struct Args<O: clap::Args> {
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub own: O,
    #[command(flatten)]
    pub common: Common,
}

/// A command of an algorithm: its arguments, and what runs it.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Returns its arguments.
    pub command: fn() -> clap::Command,
    /// Runs it.
    pub run: fn(&ArgMatches) -> anyhow::Result<()>,
}

/// Returns the arguments of a command of an algorithm, `A` being [`Args`] of its options or more.
pub fn command<O: Trains, A: clap::Args>() -> clap::Command {
    let name = O::Algorithm::NAME;
    let own = O::augment_args(clap::Command::new(name));
    let command = A::augment_args(clap::Command::new(name));
    let about = |text: Option<&clap::builder::StyledStr>| text.cloned().unwrap_or_default();
    let command = command.about(about(own.get_about())).after_help(about(own.get_after_help()));
    match own.get_long_about() {
        Some(long) => command.long_about(long.clone()),
        None => command,
    }
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
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        let command = command.subcommand_required(true).arg_required_else_help(true);
        L::entries().into_iter().fold(command, |command, entry| command.subcommand((entry.command)()))
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        L::entries().iter().any(|entry| entry.name == name)
    }
}
