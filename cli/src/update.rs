//! `megagrid update`: a model goes on with data that arrived, or without data that were taken back.

use std::path::PathBuf;

use clap::{Args as _, Command};
use megagrid_datasets::{Format, Roles};
use megagrid_training::input::parse_format;
use megagrid_training::update::{self, Changes, Place};
use megagrid_training::{Error, Job, Options, RunOptions, Trained, UpdatedOn, model};
use serde_json::Value;

use crate::algorithms::each;
use crate::common::Common;
use crate::entry::{Trains, parsed};
use crate::progress::Progress;
use crate::train;

/// Goes on with a model where data arrived, or were taken back: with the options that it was trained with, from its own values.
///
/// The model is replaced by the new one when that is complete; until then, whatever happens, it is as it was. Users and items of
/// models of mf and als keep their rows, and new ones come behind them; so do documents and words of lda. Models of `mf` and `lda` go on with
/// what is new only, in time that depends on its size, not on that of all others, as long as nothing is removed. All other models go on with
/// all data: those that they were trained on, which their manifests name, and those that changed since. Nothing is kept for testing. Models
/// of `hits` cannot go on: train on all data anew.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  megagrid update movies monday.csv
  megagrid update topics todays-articles.txt
  megagrid update ranks new-links.txt --remove dead-links.txt
  megagrid update clicks today.libsvm --data 'clicks/2026-*.libsvm' --model clicks-next")]
pub struct Args {
    /// The directory that --model of a training command wrote.
    directory: PathBuf,
    /// Data that arrived, in any format that the training command takes; all of them or none: a line that is wrong ends the command.
    #[arg(required_unless_present = "remove")]
    new: Option<PathBuf>,
    /// Take back what this file has (pagerank, mf, als): all edges that have the ends of one of its lines, whatever else these say.
    #[arg(long, value_name = "FILE")]
    remove: Option<PathBuf>,
    /// What the model was trained on, where it is no longer where its manifest says; with mf, go on with these as well [default: what the
    /// manifest says].
    #[arg(long, value_name = "INPUT")]
    data: Option<PathBuf>,
    /// Format of the data that arrived or are taken back, as the training command has it [default: that of what the model was trained on,
    /// unless they say it themselves].
    #[arg(long, value_name = "FORMAT", default_value = "auto", hide_default_value = true, value_parser = parse_format)]
    format: std::option::Option<Format>,
    /// Their columns, as the training command has them [default: those that the model was trained on].
    #[arg(long, value_name = "ROLE=COLUMN,...")]
    columns: Option<Roles>,
    /// Iterations at most [default: as many as for the model; with mf 3 on new ratings only, which more passes would overrate, and 2 on all;
    /// on new documents 20].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
    /// End at this tolerance, as the training command has it [default: that of the model].
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    tolerance: Option<f64>,
    /// Worker threads [default: the cores of the machine].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    workers: Option<u64>,
    /// Write the new model to a new directory, and leave the old one [default: replace it].
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    model: Option<PathBuf>,
    /// Write the run record as JSON; "-" is stdout.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Print no progress and no summary.
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let kind = model::manifest(&args.directory)?.kind;
    let run = each!(entry).into_iter().find(|(name, _)| *name == kind).map(|(_, run)| run);
    let unknown =
        || Error::invalid(&args.directory, format!("a model of kind {kind}, which this program does not train"));
    run.ok_or_else(unknown)?(args)
}

type RunOne = fn(&Args) -> anyhow::Result<()>;

fn entry<A: Trains>() -> (&'static str, RunOne) {
    (A::NAME, run_one::<A>)
}

fn run_one<A: Trains>(args: &Args) -> anyhow::Result<()> {
    let place = match &args.model {
        Some(directory) => Place::New(directory.clone()),
        // What is replaced is no longer where the process is.
        None => Place::Same(args.directory.canonicalize().unwrap_or_else(|_| args.directory.clone())),
    };
    place.check()?;
    let common = args.common();
    common.prepare(&common.run)?;
    let (job, before) = args.read::<A>(&common.run, common.quiet)?;
    let trained: Trained<A> = train::observed(job, &common)?;
    before.save(&trained, &place)?;
    let manifest = model::manifest(place.directory())?;
    let new = before.new_classes(&manifest);
    let what = if before.updated_on() == UpdatedOn::New { "the new data" } else { "all data" };
    common.write_record(&trained.record)?;
    let findings = trained.model.map(|model| A::findings(&trained.record, &model)).unwrap_or_default();
    // Some that are gone would hide as many new ones, and hashes are no names.
    let are_counted = args.remove.is_none() && manifest.option::<Value>("hash_bits").is_null();
    let new_ends = before.new_vertices(&manifest).into_iter().zip(A::ENDS).filter(|_| are_counted);
    let new_ends: String = new_ends.filter_map(|(number, of)| Some(format!("; new {}: {number}", of?))).collect();
    let mut summary = format!("{}  updated on {what}{new_ends}\n{findings}", train::summary(&trained.record));
    if !new.is_empty() {
        let (new, all) = (new.join(", "), manifest.classes.join(", "));
        summary.push_str(&format!("  note: new classes: {new}; the model now tells apart {all}\n"));
    }
    common.say(&summary)
}

impl Args {
    /// Returns the options of training commands that there are here.
    fn common(&self) -> Common {
        let usual = Common::augment_args(Command::new("update").no_binary_name(true));
        let common: Common = parsed(&usual.get_matches_from([""; 0]));
        let workers = self.workers.map(|workers| workers as usize);
        // What is replaced may be the directory that the process is in.
        let json = self.json.as_ref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
        Common { run: RunOptions { workers, ..common.run }, json, quiet: self.quiet, ..common }
    }

    fn read<A: Trains>(&self, run: &RunOptions, quiet: bool) -> anyhow::Result<(Job<A>, update::Before)> {
        let changes = Changes {
            added: self.new.clone(),
            removed: self.remove.clone(),
            data: self.data.clone(),
            format: self.format,
            columns: self.columns.clone(),
        };
        let given = [("iterations", self.iterations.map(Value::from)), ("tolerance", self.tolerance.map(Value::from))];
        let change = |options: A::Options| {
            let given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
            given.into_iter().try_fold(options, |options, (name, value)| options.with(name, value))
        };
        let _progress = Progress::spinner(quiet, "loading");
        Ok(update::read(&self.directory, &changes, change, run.clone())?)
    }
}
