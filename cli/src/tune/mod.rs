//! `megagrid tune`: training that finds its settings on the way.

mod command;
mod view;

use clap::ArgMatches;
use megagrid_training::Options as _;
use megagrid_training::record::Tuning;
use megagrid_training::tune::{TuneOptions, Tuned, tune};

use crate::algorithms::each;
use crate::entry::{self, Chosen, Entry, List, Trains, parsed};
use crate::failure::usage;
use crate::progress::Progress;
use crate::train;
use view::View;

/// Trains, and finds the settings on the way: by short trials on branches of the run, again when progress stops.
///
/// Everything that the algorithm's own command takes, and what to tune. Tuning changes how training goes, not what it minimizes:
/// the weights of regularizers, the length of factors and the number of topics stay as they are given.
///
/// Checkpoints are of the run between two searches, and one that is resumed goes on with the setting that it had. A search that
/// was under way is not saved: it begins again. With several processes (megagrid launch) the first one decides for all.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  megagrid tune mf ratings.csv --holdout 0.1 --model movies
  megagrid tune mf ratings.csv --tune step=log:1e-3..1 --tune slack=0,1,3 --searcher gp --report tuned.html
  megagrid tune blockpg clicks.libsvm --tune blocks=20,50,100
  megagrid launch -n 2 --restarts 3 -- tune mf ratings.csv --checkpoint saved --checkpoint-every 5")]
pub struct Args {
    #[command(subcommand)]
    algorithm: Chosen<Tunable>,
}

/// The algorithms that can be tuned.
struct Tunable;

impl List for Tunable {
    fn entries() -> Vec<Entry> {
        each!(entry).into_iter().flatten().collect()
    }
}

fn entry<A: Trains>() -> Option<Entry> {
    let command = || {
        let names: Vec<&str> = A::KNOBS.iter().map(|knob| knob.name).collect();
        let about = format!("{} and its settings: {}", A::NAME, names.join(", "));
        let command = entry::command::<A, Arguments<A>>().about(about);
        match A::TUNED_ITERATIONS {
            Some(iterations) => command.mut_arg("iterations", |arg| arg.default_value(iterations)),
            None => command,
        }
    };
    let is_tuned = !A::KNOBS.is_empty();
    is_tuned.then_some(Entry { name: A::NAME, command, run: run_one::<A> })
}

/// An algorithm's arguments and the tuner's.
#[derive(clap::Args)]
#[group(skip)]
struct Arguments<A: Trains> {
    #[command(flatten)]
    training: entry::Args<A>,
    #[command(flatten)]
    tuning: TuneOptions,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    args.algorithm.run()
}

fn run_one<A: Trains>(matches: &ArgMatches) -> anyhow::Result<()> {
    let Arguments::<A> { mut training, tuning } = parsed(matches);
    let advice = "is not for tune; find the settings first, and train with the command that it prints";
    training.common.refuse(&["--virtual-workers", "--trace", "--live", "--checkpoint-model"], advice)?;
    training.common.join()?;
    // Trials may have another layout.
    training.common.processes.readers = None;
    let common = &training.common;
    check_tunables::<A>(&tuning, &training.own)?;
    tuning.check::<A>(&training.own)?;
    let job = training.job()?;
    let view = View::begin(Progress::spinner(common.quiet, "tuning"));
    let outcome = tune(job, &tuning, &common.processes, &view);
    drop(view);
    let tuned = train::recorded(outcome, common)?;
    let Tuned { mut trained, options, run } = tuned;
    let mut text = String::new();
    if let Some(tuning) = &mut trained.record.tuning {
        tuning.command = command::without_trials(&training, &options, &run)?;
        text = summary(tuning);
    }
    train::conclude(trained, common, &text)
}

/// Refuses to tune by default what the options have not: the message is not to be of one that nobody gave.
fn check_tunables<A: Trains>(tuning: &TuneOptions, options: &A::Options) -> anyhow::Result<()> {
    // By default the first is tuned.
    let Some(default) = A::KNOBS.first().filter(|_| tuning.tune.is_empty()) else { return Ok(()) };
    let Some(why) = options.refuses(default.name) else { return Ok(()) };
    // What follows advises on options that nobody gave.
    let why = why.split(':').next().unwrap_or(why);
    let others = A::KNOBS.iter().map(|knob| knob.name).filter(|name| options.refuses(name).is_none());
    let (name, others) = (default.name, others.collect::<Vec<_>>().join(", "));
    Err(usage(format!("{why}, and {name} is tuned by default; say what else with --tune: {others}")))
}

fn summary(tuning: &Tuning) -> String {
    let Tuning { searcher, seconds, .. } = tuning;
    let mut text = format!("tuned by {} ({searcher}), {seconds:.2} s beside the run's own\n", tuning.tried());
    for (after, setting) in &tuning.settings {
        text.push_str(&format!("  after {after} iterations: {setting}\n"));
    }
    text.push_str(&format!("  {}: {}\n", tuning.of_command(), tuning.command));
    text
}
