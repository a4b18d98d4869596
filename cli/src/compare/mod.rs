//! `megagrid compare`: the same job on several systems, round after round, as one table and one page.
//!
//! Every run is a process of its own, which reads the input with the reader of the training command, runs one system and
//! writes a run record: so that memory is only the system's, and nothing is warm from another system's run. Rounds are
//! interleaved, each begun with another system, so that what else the machine does falls on all of them.

mod baseline;
mod conditions;
mod geeps;
mod job;
mod network;
mod rounds;
mod systems;
mod table;

use std::path::PathBuf;

use clap::ArgMatches;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use megagrid_baselines::{KEEPS_LEFT, Run, System as Baseline};
use megagrid_partition::strategy::NAMES;

use crate::entry::{self, Chosen, Entry, List, Trains, command, parsed};
use crate::failure::usage;
use crate::launch::ssh::Hosts;
use crate::output;
use crate::report::{self, Subject, Table};
use crate::train;
use conditions::{Conditions, Gathering};
use job::{Comparable, first_given};
use network::Rate;
use rounds::Rounds;
use systems::{System, Systems};
use table::Comparison;

/// Runs the same job on several systems, and compares time, objective, messages and memory.
///
/// The systems: megagrid; gas (gather, apply, scatter) and gas-faithful (the same as PowerGraph's toolkits do it); ps-naive (a
/// parameter server with everything in it), lazytable (clients pull what is too old), essp (servers push), iterstore (accesses
/// known beforehand) and geeps (mini-batches on devices, for mf by plain steps). All have the same reader, first values, threads
/// and objective, and all but geeps the same kernels. With --processes all but geeps run in several processes.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  megagrid compare mf ratings.csv --repeat 5 --report mf.html
  megagrid compare pagerank links.txt.gz --systems megagrid,gas,iterstore --target 1e-6 -w 2
  megagrid compare lda docword.txt.gz --processes 4 -w 1 --report lda.html
  megagrid compare als plays.csv --dims 64 --systems megagrid,gas,ps-naive,lazytable,essp,iterstore
  megagrid compare pagerank links.txt.gz --processes 4 -w 1 --systems megagrid,gas,gas-faithful --cut random
  sudo megagrid compare mf ratings.csv --processes 4 -w 1 --link 100Mbit
  megagrid compare mf ratings.csv --hosts node1,node2,me@node3 --ssh -w 4
  megagrid compare mf ratings.csv --gradient in-place --systems megagrid,lazytable,essp,iterstore
  megagrid compare mf ratings.csv --gradient in-place --server-steps --systems megagrid,essp,iterstore
  megagrid compare mf ratings.csv --optimizer sgd --decay 0 --no-biases --step 0.002 --systems megagrid,iterstore,geeps")]
pub struct Args {
    #[command(subcommand)]
    command: Chosen<Comparisons>,
}

/// The algorithms that baselines have.
struct Comparisons;

impl List for Comparisons {
    fn entries() -> Vec<Entry> {
        vec![
            entry::<megagrid_training::pagerank::Ranking>(),
            entry::<megagrid_training::mf::Factorization>(),
            entry::<megagrid_training::als::ImplicitFactorization>(),
            entry::<megagrid_training::lda::TopicModels>(),
            entry::<megagrid_training::blockpg::Regression>(),
        ]
    }
}

fn entry<A: Comparable>() -> Entry {
    let command =
        || command::<A, Job<A>>().about(A::COMPARED).long_about(A::COMPARED).after_help("").mut_args(of_comparison);
    Entry { name: A::NAME, command, run: run_one::<A> }
}

/// Options of the training commands that a comparison refuses, or ignores.
const HIDDEN: [&str; 18] = [
    "model",
    "trace",
    "live",
    "patience",
    "evaluate_every",
    "checkpoint",
    "checkpoint_every",
    "checkpoint_model",
    "resume",
    "virtual_workers",
    "calibration",
    "clock_cost",
    "jitter",
    "inject",
    "strategy",
    "batch",
    "extra_topics",
    "from",
];

/// Options of the training commands that have a default, and no use here.
const UNUSED: [(&str, &str); 3] = [
    ("patience", "--patience goes with test data, which a comparison has not; leave it out"),
    ("evaluate_every", "a comparison measures the objective after each iteration; leave --evaluate-every out"),
    (
        "strategy",
        "--strategy is for the training command; here every system places edges its own way, and --cut is for gas",
    ),
];

/// Refuses options that would do nothing.
fn check_used(matches: &ArgMatches) -> anyhow::Result<()> {
    let is_given = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
    match UNUSED.into_iter().find(|(name, _)| is_given(name)) {
        Some((_, why)) => Err(usage(why)),
        None => Ok(()),
    }
}

/// Changes what an option of a training command is by default to what all systems have.
fn of_comparison(option: clap::Arg) -> clap::Arg {
    match option.get_id().as_str() {
        "iterations" => option.default_value("20"),
        "gradient" => option.default_value("batch"),
        "sampler" => option.default_value("dense"),
        "prior" => option.default_value("fixed"),
        "annealing" | "top_words" => option.default_value("0"),
        "tolerance" => option.hide(true).default_value("0").value_parser(no_tolerance),
        // That of virtual workers, which no comparison has.
        "link" => option.long("virtual-link").hide(true),
        name if HIDDEN.contains(&name) => option.hide(true),
        _ => option,
    }
}

/// Reads the value of `--tolerance`: a comparison runs all iterations.
fn no_tolerance(value: &str) -> Result<f64, &'static str> {
    let advice = "a comparison runs all iterations; choose how many with --iterations, or compare at --target";
    value.parse().ok().filter(|&tolerance: &f64| tolerance == 0.0).ok_or(advice)
}

/// A training command's arguments, and what is compared.
#[derive(clap::Args)]
#[group(skip)]
struct Job<A: Trains> {
    #[command(flatten)]
    training: entry::Args<A>,
    #[command(flatten)]
    options: Options,
}

/// What is compared, and how often.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Comparison")]
#[group(id = "comparison")]
struct Options {
    /// Systems to run: megagrid, gas, gas-faithful, ps-naive, lazytable, essp, iterstore, geeps [default: all that run the
    /// job].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    systems: Vec<System>,
    /// Rounds: how often each system runs.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Processes of each system on this machine; each has --workers threads, and of a parameter server a server and a client.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    processes: u16,
    /// Connect processes by a network with links of this rate, 1Mbit to 1Gbit (faster links carry less than their rate), instead of over loopback;
    /// Linux, as root, with ip and tc.
    #[arg(id = "rate", long = "link", value_name = "RATE", conflicts_with = "hosts")]
    link: Option<Rate>,
    #[command(flatten)]
    machines: Hosts,
    /// How iterstore learns what an iteration accesses: by a virtual one before the first, or in the first [default: virtual].
    #[arg(long, value_name = "HOW", value_enum)]
    gather: Option<Gathering>,
    /// Leave rows of iterstore on the servers that their numbers say, instead of placing them where they are used most; for several processes.
    #[arg(long)]
    no_placement: bool,
    /// Let each process of lazytable cache about N rows only, the last used; updates on their way keep more of them [default: all it uses].
    #[arg(long, value_name = "N")]
    cached_rows: Option<usize>,
    /// Have lazytable request rows when they are read, each by itself, and not before.
    #[arg(long)]
    no_prefetch: bool,
    /// Have parameter servers step items themselves, by AdaptiveRevision, as users of IterStore do, instead of adding what workers change; for
    /// mf with --gradient in-place and --optimizer adagrad.
    #[arg(long)]
    server_steps: bool,
    /// How gas and gas-faithful place edges on processes: random, grid, hdrf, hybrid, bicut or aweto [default: hybrid, as PowerLyra, for gas, and
    /// grid, as PowerGraph, for gas-faithful; bicut where edges change documents or samples, which then keep all theirs].
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(NAMES).try_map(named))]
    cut: Option<&'static str>,
    /// The objective to reach, whose time is measured [default: the worst with which any run ends].
    #[arg(long, value_name = "OBJECTIVE", allow_negative_numbers = true)]
    target: Option<f64>,
    /// Run this system once in this process, and write its record to --record.
    #[arg(long, hide = true, requires = "record")]
    one: Option<System>,
    #[arg(long, hide = true, requires = "one")]
    record: Option<PathBuf>,
}

/// Returns the strategy of a name.
fn named(name: String) -> Result<&'static str, String> {
    NAMES.into_iter().find(|known| *known == name).ok_or(name)
}

impl Options {
    /// Returns how many processes each system has.
    fn processes(&self) -> u16 {
        if self.machines.hosts.is_empty() { self.processes } else { self.machines.hosts.len() as u16 }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    args.command.run()
}

fn run_one<A: Comparable>(matches: &ArgMatches) -> anyhow::Result<()> {
    check_used(matches)?;
    let Job::<A> { mut training, options } = parsed(matches);
    A::settle(&mut training.own)?;
    match (options.one, &options.record) {
        (Some(system), Some(record)) => {
            let common = &mut training.common;
            (common.quiet, common.json, common.report) = (true, Some(record.clone()), None);
            common.run.evaluate_every = 1;
            if options.processes() > 1 {
                common.join()?;
            }
            // Processes of a baseline read all of the input each, and know of each other only in the run.
            let is_megagrid = system == System::Megagrid;
            let others = if is_megagrid { None } else { std::mem::take(&mut common.processes).cluster };
            let mut job = training.job()?;
            A::settle_job(&mut job);
            match system {
                System::Megagrid => train::conclude(train::observed(job, &training.common)?, &training.common, ""),
                System::Baseline(system) => {
                    let (gather, placement) = (options.gather.unwrap_or_default().into(), !options.no_placement);
                    let cut = options.cut.filter(|_| System::Baseline(system).is_gas());
                    let cached_rows = options.cached_rows.filter(|_| system == Baseline::LazyTable);
                    let prefetch = !options.no_prefetch || system != Baseline::LazyTable;
                    let server_steps = options.server_steps;
                    let how = Run { gather, placement, cached_rows, prefetch, server_steps, cut, ..Run::default() };
                    baseline::run(system, job, &training.common, how, others.as_ref())
                }
                System::GeePs => geeps::run(job, &training.common),
            }
        }
        _ => compare(&training, &options),
    }
}

/// Takes the systems that are asked for, or all on which the job runs.
fn systems_of<A: Comparable>(training: &entry::Args<A>, options: &Options) -> anyhow::Result<Systems> {
    let (slack, processes) = (training.common.run.slack, options.processes());
    Systems::new(&options.systems, |system| match system {
        System::Megagrid => Ok(()),
        _ if processes > 1 && !system.has_processes() => Err("it runs in one process: leave out --processes"),
        System::Baseline(Baseline::PsNaive) if processes > 1 && slack.is_some_and(|slack| slack > 0) => {
            Err("in several processes it has no slack: leave out --slack, or --processes")
        }
        System::Baseline(system) if !system.takes(options.cut, A::KEEP_LEFT) => {
            Err("it does not cut the documents or samples that edges change: take --cut bicut")
        }
        System::Baseline(system) => A::runs_on(training, system),
        System::GeePs => A::runs_on_geeps(training),
    })
}

/// Checks that options say something of the systems that are compared.
fn check<A: Comparable>(training: &entry::Args<A>, options: &Options, systems: &Systems) -> anyhow::Result<()> {
    if options.target.is_some_and(|target| !target.is_finite()) {
        return Err(usage("target is no number; expected an objective"));
    }
    let (link, placement, cut) = (options.link.is_some(), options.no_placement, options.cut.is_some());
    if let Some(option) = first_given([("--gather", options.gather.is_some()), ("--no-placement", placement)]) {
        if !systems.has(Baseline::IterStore) {
            return Err(usage(format!("{option} is for iterstore, which is not among --systems")));
        }
        if !A::GATHERS {
            return Err(usage(format!(
                "{option} is not for {}, whose iterations access other rows each; leave it out",
                A::NAME
            )));
        }
    }
    let of_lazytable = [("--cached-rows", options.cached_rows.is_some()), ("--no-prefetch", options.no_prefetch)];
    if let Some(option) = first_given(of_lazytable).filter(|_| !systems.has(Baseline::LazyTable)) {
        return Err(usage(format!("{option} is for lazytable, which is not among --systems")));
    }
    if options.server_steps {
        A::steps_by_server(training).map_err(|advice| usage(format!("--server-steps {advice}")))?;
        if !systems.iter().any(System::is_server) {
            return Err(usage("--server-steps is for parameter servers, none of which is among --systems"));
        }
    }
    if cut && !systems.iter().any(System::is_gas) {
        return Err(usage("--cut is for gas and gas-faithful, neither of which is among --systems"));
    }
    let is_one = options.processes() == 1;
    let of_processes = [("--link", link), ("--no-placement", placement), ("--cut", cut)];
    if let Some(option) = first_given(of_processes).filter(|_| is_one) {
        return Err(usage(format!("{option} is between processes; say how many with --processes")));
    }
    if !is_one && training.common.cache.is_some() {
        return Err(usage("--cache is for one process; convert the input first, and compare on the .mgrid cache"));
    }
    training.check()
}

/// Runs all systems in all rounds, and writes what was found.
fn compare<A: Comparable>(training: &entry::Args<A>, options: &Options) -> anyhow::Result<()> {
    let (name, common, processes) = (A::NAME, &training.common, options.processes());
    let systems = systems_of(training, options)?;
    check(training, options, &systems)?;
    let (link, machines, has_workers) = (options.link, &options.machines, common.run.workers.is_some());
    let rounds = Rounds { processes, link, machines, has_workers, count: options.repeat };
    let runs = rounds.run(name, &systems, common.quiet)?;
    let gather = (systems.has(Baseline::IterStore) && A::GATHERS).then(|| options.gather.unwrap_or_default());
    let placement = gather.filter(|_| processes > 1).map(|_| !options.no_placement);
    let cut_of = |system| match system {
        System::Baseline(system) if A::KEEP_LEFT.contains(&system) => Some(KEEPS_LEFT),
        System::Baseline(system) => system.cut().map(|default| options.cut.unwrap_or(default)),
        _ => None,
    };
    let cuts = systems.iter().filter(|_| processes > 1);
    let cuts = cuts.filter_map(|system| Some((system.name(), cut_of(system)?))).collect();
    let (hosts, server_steps) = (machines.hosts.clone(), options.server_steps);
    let (cached_rows, no_prefetch) = (options.cached_rows, options.no_prefetch);
    let conditions =
        Conditions { processes, link, hosts, gather, placement, cached_rows, no_prefetch, server_steps, cuts };
    let comparison = Comparison::new(name, conditions, A::MAXIMIZES, options.target, runs);
    let json = serde_json::to_string_pretty(&comparison)? + "\n";
    if let Some(path) = &common.report {
        let subjects: Vec<Subject<'_>> = comparison.systems.iter().map(table::Measured::subject).collect();
        let title = format!("megagrid compare {name}");
        let tables: Vec<Table> = std::iter::once(comparison.table()).chain(comparison.by_process()).collect();
        output::write_text(path, &report::comparison(&title, &tables, &comparison.notes(), &subjects, &json)?)?;
    }
    if let Some(path) = &common.json {
        output::write_text(path, &json)?;
    }
    common.say(&comparison.text())
}
