//! `megagrid tune`: training that finds its settings on the way.

mod command;
mod view;

use clap::ArgMatches;
use megagrid_training::record::Tuning;
use megagrid_training::tune::{Time, TuneOptions, Tuned, tune};
use megagrid_training::{Algorithm, Job};
use megagrid_tuner::searcher::Kind;

use crate::algorithms::each;
use crate::choice::{Choice, choice};
use crate::entry::{self, Chosen, Entry, List, Trains, parsed};
use crate::output;
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

fn entry<O: Trains>() -> Option<Entry> {
    let command = || {
        let names: Vec<&str> = O::Algorithm::KNOBS.iter().map(|knob| knob.name).collect();
        let about = format!("{} and its settings: {}", O::Algorithm::NAME, names.join(", "));
        let command = entry::command::<O, Arguments<O>>().about(about);
        match O::TUNED_ITERATIONS {
            Some(iterations) => command.mut_arg("iterations", |arg| arg.default_value(iterations)),
            None => command,
        }
    };
    let is_tuned = !O::Algorithm::KNOBS.is_empty();
    is_tuned.then_some(Entry { name: O::Algorithm::NAME, command, run: run_one::<O> })
}

/// An algorithm's arguments and the tuner's.
#[derive(clap::Args)]
#[group(skip)]
struct Arguments<O: clap::Args> {
    #[command(flatten)]
    training: entry::Args<O>,
    #[command(flatten)]
    tuning: Options,
}

/// Options of the tuner.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Tuning")]
#[group(skip)]
struct Options {
    /// What to tune, and its values: NAME=A,B,C or NAME=LOW..HIGH or NAME=log:LOW..HIGH. May be given several times [default: what
    /// the algorithm gains most by].
    #[arg(long, value_name = "NAME=VALUES")]
    tune: Vec<String>,
    /// What proposes settings [default: tpe, or grid where all tunables have lists of values].
    #[arg(long, value_parser = choice::<Searcher>())]
    searcher: Option<Searcher>,
    /// Iterations of trials of the first search, and again of all searches after it [default: 12, or 12 % of --iterations].
    #[arg(long, value_name = "ITERATIONS")]
    budget: Option<u64>,
    /// Settings tried by the first search, at most.
    #[arg(long, default_value_t = TuneOptions::default().trials as u64, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    trials: u64,
    /// Do not tune again when the objective changes by less than 1 % over 10 iterations, and do not end the run there.
    #[arg(long)]
    no_retune: bool,
    /// What trials are timed by: seconds, or samples, with which a run is reproducible [default: seconds, samples where the step
    /// only is tuned].
    #[arg(long, value_name = "UNIT", value_parser = choice::<Time>())]
    time: Option<Time>,
}

/// The searchers.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Searcher {
    Random,
    Grid,
    Tpe,
    Gp,
}

impl Choice for Searcher {
    const VALUES: &'static [(&'static str, &'static str)] = &[
        ("random", "Settings at random"),
        ("grid", "All settings of a grid"),
        ("tpe", "A tree-structured Parzen estimator"),
        ("gp", "A Gaussian process"),
    ];
}

impl Choice for Time {
    const VALUES: &'static [(&'static str, &'static str)] =
        &[("seconds", "Wall-clock seconds"), ("samples", "Edges processed: a run is then reproducible")];
}

impl Options {
    fn to_library(&self) -> TuneOptions {
        let searcher = self.searcher.map(|searcher| match searcher {
            Searcher::Random => Kind::Random,
            Searcher::Grid => Kind::Grid,
            Searcher::Tpe => Kind::Tpe,
            Searcher::Gp => Kind::Gp,
        });
        let Self { tune, budget, trials, no_retune, time, .. } = self.clone();
        TuneOptions { tune, searcher, budget, trials: trials as usize, retune: !no_retune, time }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    args.algorithm.run()
}

fn run_one<O: Trains>(matches: &ArgMatches) -> anyhow::Result<()> {
    let Arguments::<O> { mut training, tuning } = parsed(matches);
    let advice = "is not for tune; find the settings first, and train with the command that it prints";
    training.common.refuse(&["--virtual-workers", "--trace"], advice)?;
    training.common.join()?;
    // Trials may have another layout.
    training.common.processes.readers = None;
    let (common, tuning) = (&training.common, tuning.to_library());
    let options = training.own.options()?;
    tuning.check::<O::Algorithm>(&options)?;
    let job: Job<O::Algorithm> = training.job()?;
    let view = View::begin(Progress::spinner(common.quiet, "tuning"));
    let tuned = tune(job, &tuning, &common.processes, &view)?;
    drop(view);
    let Tuned { mut trained, options, run } = tuned;
    let mut text = String::new();
    if let Some(tuning) = &mut trained.record.tuning {
        let origin = training.own.origin(&training.source);
        tuning.command = command::without_trials::<O>(&origin, &options, &run, common)?;
        text = summary(tuning);
    }
    if common.wants_summary() {
        output::print(&text)?;
    }
    train::conclude::<O>(trained, common)
}

fn summary(tuning: &Tuning) -> String {
    let mut text = format!(
        "tuned by {} trials ({}), {:.0} % of the run, {:.2} s\n",
        tuning.trials.len(),
        tuning.searcher,
        100.0 * tuning.part,
        tuning.seconds
    );
    for (after, setting) in &tuning.settings {
        text.push_str(&format!("  after {after} iterations: {setting}\n"));
    }
    text.push_str(&format!("  the same without trials: {}\n", tuning.command));
    text
}
