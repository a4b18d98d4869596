//! `megagrid tune`: training that finds its settings on the way.

mod blockpg;
mod command;
mod lda;
mod mf;
mod saved;
mod strand;
mod together;
mod training;
mod view;

use megagrid_engine::Settings;
use megagrid_tuner::searcher::Kind;
use megagrid_tuner::{Ended, Event, Failure, Label, Options, Plateau, Setting, Space, Trial, Tuned, Value, Values};

use crate::common::{self, Common};
use crate::failure::usage;
use crate::record::{Record, Tuning};
use crate::{blockpg as blockpg_command, lda as lda_command, mf as mf_command};
use strand::Telling;
use together::Led;
use training::{Algorithm, Time, Training};
use view::View;

/// Trains, and finds the settings on the way: by short trials on branches of the run, again when progress stops.
///
/// Everything that the algorithm's own command takes, and what to tune. Tuning changes how training goes, not what it minimizes:
/// the weights of regularizers, the length of factors and the number of topics stay as they are given.
///
/// Checkpoints are of the run between two searches, and one that is resumed goes on with the setting that it had. A search that
/// was under way is not saved: it begins again. With several processes (megagrid launch) the first one decides for all.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  megagrid tune mf ratings.csv --holdout 0.1 --model movies
  megagrid tune mf ratings.csv --tune step=log:1e-3..1 --tune slack=0,1,3 --searcher gp --report tuned.html
  megagrid tune blockpg clicks.libsvm --tune blocks=20,50,100
  megagrid launch -n 2 --restarts 3 -- tune mf ratings.csv --checkpoint saved --checkpoint-every 5")]
pub struct Args {
    #[command(subcommand)]
    algorithm: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Matrix factorization. Tunes step, decay, slack, batch, workers [default: step=log:1e-5..1].
    #[command(mut_arg("iterations", |arg| arg.default_value("100")))]
    Mf(Box<Job<mf_command::Args>>),
    /// Topics. Tunes sampler, work-per-clock, workers [default: sampler=dense,sparse work-per-clock=0.0625,0.25,1].
    Lda(Box<Job<lda_command::Args>>),
    /// Sparse logistic regression. Tunes blocks, delay, workers [default: blocks around their default, delay=0,1,2].
    #[command(name = "blockpg")]
    BlockPg(Box<Job<blockpg_command::Args>>),
}

/// An algorithm's options and the tuner's.
#[derive(Clone, Debug, clap::Args)]
struct Job<A: clap::Args> {
    #[command(flatten)]
    args: A,
    #[command(flatten)]
    tuning: TuningOptions,
}

/// Options of the tuner.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Tuning")]
pub struct TuningOptions {
    /// What to tune, and its values: NAME=A,B,C or NAME=LOW..HIGH or NAME=log:LOW..HIGH. May be given several times.
    #[arg(long, value_name = "NAME=VALUES")]
    tune: Vec<String>,
    /// What proposes settings [default: tpe, or grid where all tunables have lists of values].
    #[arg(long, value_enum)]
    searcher: Option<Searcher>,
    /// Iterations of trials of the first search, and again of all searches after it [default: 12, or 12 % of --iterations].
    #[arg(long, value_name = "ITERATIONS")]
    budget: Option<u64>,
    /// Settings tried by the first search, at most.
    #[arg(long, default_value_t = Options::default().trials as u64, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    trials: u64,
    /// Do not tune again when the objective changes by less than 1 % over 10 iterations, and do not end the run there.
    #[arg(long)]
    no_retune: bool,
    /// What trials are timed by: seconds, or samples, with which a run is reproducible [default: seconds, samples where the step
    /// alone is tuned].
    #[arg(long, value_enum, value_name = "UNIT")]
    time: Option<Time>,
}

/// The searchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Searcher {
    /// Settings at random.
    Random,
    /// All settings of a grid.
    Grid,
    /// A tree-structured Parzen estimator.
    Tpe,
    /// A Gaussian process.
    Gp,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    match args.algorithm {
        Command::Mf(job) => mf::run(job.args, &job.tuning),
        Command::Lda(job) => lda::run(job.args, &job.tuning),
        Command::BlockPg(job) => blockpg::run(job.args, &job.tuning),
    }
}

/// What an algorithm lets be tuned.
pub struct Known {
    /// The algorithm.
    pub algorithm: &'static str,
    /// Tunables that a run can change on the way.
    pub stages: &'static [&'static str],
    /// Tunables that lay out the graph, or are another program: they are tuned at the beginning alone.
    pub layout: &'static [&'static str],
    /// What is tuned if nothing is said.
    pub default: Vec<String>,
    /// Tunables that do not change how long an iteration takes.
    pub untimed: &'static [&'static str],
}

/// Checks that nothing is asked for that tuning does not do, and lets every process read the whole input.
pub fn check(common: &mut Common) -> anyhow::Result<()> {
    // Trials may have another layout.
    common.reads_whole = true;
    let advice = "is not for tune; find the settings first, and train with the command that it prints";
    common.refuse(&["--virtual-workers"], advice)
}

/// Options of an algorithm that a setting changes.
pub trait Adjust: Clone {
    /// Sets a tunable that is the algorithm's own.
    fn adjust(&mut self, name: &str, value: &Value) -> anyhow::Result<()>;

    /// Refuses what the algorithm does.
    fn check(&self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Returns options and settings with those of a setting, checked.
fn apply<O: Adjust>(options: &O, settings: &Settings, setting: &Setting) -> anyhow::Result<(O, Settings)> {
    let (mut options, mut settings) = (options.clone(), settings.clone());
    for (name, value) in setting.iter() {
        match name {
            "workers" => settings.workers = count(value, 1)? as usize,
            "slack" | "delay" => settings.slack = Some(count(value, 0)?),
            _ => options.adjust(name, value)?,
        }
    }
    options.check()?;
    Ok((options, settings))
}

impl TuningOptions {
    /// Returns the space, checked: each extreme value is shown to `try_setting`, which refuses what the algorithm does.
    pub fn space(&self, known: &Known, try_setting: impl Fn(&Setting) -> anyhow::Result<()>) -> anyhow::Result<Space> {
        let texts = if self.tune.is_empty() { &known.default } else { &self.tune };
        let mut tunables = Vec::new();
        for text in texts {
            let tunable: megagrid_tuner::Tunable =
                text.parse().map_err(|error: megagrid_tuner::Error| usage(error.to_string()))?;
            let name = tunable.name();
            if !known.stages.contains(&name) && !known.layout.contains(&name) {
                let names = [known.stages, known.layout].concat().join(", ");
                let algorithm = known.algorithm;
                return Err(usage(format!("tune {name}: {algorithm} has no such tunable; it has {names}")));
            }
            for value in tunable.extremes() {
                let setting = Setting::new(vec![(name.to_owned(), value.clone())]);
                try_setting(&setting)
                    .map_err(|error| usage(format!("tune {name}={value}: {}", crate::failure::message(&error))))?;
            }
            tunables.push(tunable);
        }
        Space::new(tunables).map_err(|error| usage(error.to_string()))
    }

    /// Returns what is tuned, and how, as it stands in a run record.
    fn resolved(&self, space: &Space, options: &Options, time: Time) -> serde_json::Value {
        let Options { searcher, budget, trials, retune, .. } = options;
        serde_json::json!({
            "tune": space.tunables().iter().map(ToString::to_string).collect::<Vec<_>>(), "searcher": searcher,
            "budget": budget, "trials": trials, "retune": retune.is_some(), "time": time,
        })
    }

    fn time(&self, space: &Space, known: &Known) -> Time {
        let untimed = space.tunables().iter().all(|tunable| known.untimed.contains(&tunable.name()));
        self.time.unwrap_or(if untimed { Time::Samples } else { Time::Seconds })
    }

    fn options(&self, space: &Space, known: &Known, seed: u64, iterations: u64) -> Options {
        let lists = space.tunables().iter().all(|tunable| matches!(tunable.values(), Values::Discrete(_)));
        let searcher = match self.searcher {
            Some(Searcher::Random) => Kind::Random,
            Some(Searcher::Grid) => Kind::Grid,
            Some(Searcher::Tpe) => Kind::Tpe,
            Some(Searcher::Gp) => Kind::Gp,
            None if lists => Kind::Grid,
            None => Kind::Tpe,
        };
        // A run cannot change its layout on the way.
        let fixed = space.tunables().iter().any(|tunable| known.layout.contains(&tunable.name()));
        let default = Options::default();
        Options {
            searcher,
            seed,
            clocks: iterations,
            budget: self.budget.unwrap_or((iterations * 12 / 100).max(default.budget)),
            trials: self.trials as usize,
            retune: (!self.no_retune && !fixed).then(Plateau::default),
            target: None,
            decisions_count: self.time(space, known) == Time::Seconds,
        }
    }
}

/// What is to be tuned, and how.
pub struct Plan<'p> {
    /// The tuner's options.
    pub tuning: &'p TuningOptions,
    /// What the algorithm lets be tuned.
    pub known: &'p Known,
    /// What is tuned.
    pub space: &'p Space,
    /// Iterations of the run.
    pub iterations: u64,
}

/// Trains and tunes, and returns what training came to. With several processes the first decides.
pub fn train<A: Algorithm>(algorithm: &A, plan: &Plan<'_>, mut telling: Telling<'_>) -> anyhow::Result<A::Trained> {
    let Plan { tuning, known, space, iterations } = *plan;
    let common = telling.common;
    let options = tuning.options(space, known, common.seed, iterations);
    let time = tuning.time(space, known);
    telling.resolved = common::join([telling.resolved, tuning.resolved(space, &options, time)]);
    common.agree(&format!("tune {}", known.algorithm), &telling.resolved, algorithm.checksum()?)?;
    crate::interrupt::iterations_begin();
    let begin = std::time::Instant::now();
    let progress = saved::read(common)?;
    let (training, progress) = Training::new(algorithm, time, common, &telling.resolved, progress)?;
    let done = training.done();
    let mut led = Led::new(training, common.cluster.clone());
    let (branch, tuned) = if common.is_first() {
        let mut view = View::begin(common.quiet);
        let mut watch = |event: &Event<'_>| view.show(event);
        let tuned = match progress {
            Some(progress) => megagrid_tuner::resume(&mut led, space, &options, progress, &mut watch),
            None => megagrid_tuner::tune(&mut led, space, &options, &mut watch),
        };
        view.end();
        let tuned = tuned.map_err(|failure| match failure {
            Failure::Tuning(error @ megagrid_tuner::Error::Budget { .. }) => usage(error.to_string()),
            Failure::Tuning(error) => error.into(),
            Failure::Trainer(error) => error,
        })?;
        led.end(tuned.branch)?;
        (tuned.branch, Some(tuned))
    } else {
        (led.follow()?, None)
    };
    let wall_seconds = begin.elapsed().as_secs_f64();
    let (strand, history) = led.take(branch)?;
    let own: f64 = history.iter().map(|done| done.report.seconds + done.seconds).sum();
    let mut report = tuned.map(|tuned| report(known, &options, time, &tuned, (wall_seconds - own).max(0.0)));
    let (ended_by, text) = report.as_ref().map(|report| (report.ended_by.clone(), summary(report))).unzip();
    let trained = strand.conclude((branch.0, done), &history, telling, &mut |record: &mut Record| {
        record.result.ended_by = ended_by.clone().unwrap_or_default().into();
        record.tuning = report.take();
    })?;
    if let Some(text) = text.filter(|_| common.wants_summary()) {
        common::print(&text)?;
    }
    Ok(trained)
}

fn report(known: &Known, options: &Options, time: Time, tuned: &Tuned, seconds: f64) -> Tuning {
    let ended_by = match tuned.ended {
        Ended::Clocks => "iterations",
        Ended::Target => "target",
        Ended::Finished => "tolerance",
        Ended::Converged => "plateau",
        Ended::Diverged => "divergence",
    };
    let first = tuned.settings.first().map(|(_, setting)| setting.clone()).unwrap_or_default();
    Tuning {
        searcher: format!("{:?}", options.searcher).to_lowercase(),
        time: if time == Time::Seconds { "seconds" } else { "samples" }.to_owned(),
        part: tuned.tuning / tuned.elapsed.max(f64::MIN_POSITIVE),
        seconds,
        most_branches: tuned.most_alive,
        ended_by: ended_by.to_owned(),
        settings: tuned.settings.iter().map(|(after, setting)| (*after, setting.to_string())).collect(),
        command: command::without_trials(known, &first),
        trials: tuned.trials.iter().map(shown).collect(),
    }
}

fn shown(trial: &Trial) -> crate::record::Trial {
    let label = match trial.label {
        Label::Converging => "converging",
        Label::Unstable => "unstable",
        Label::Diverged => "diverged",
    };
    crate::record::Trial {
        branch: trial.branch.0,
        search: trial.search,
        setting: trial.setting.to_string(),
        iterations: trial.clocks,
        time: trial.time,
        loss: trial.loss,
        speed: trial.speed,
        label: label.to_owned(),
        chosen: trial.chosen,
    }
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

/// Returns a value that has to be a number.
fn number(value: &Value) -> anyhow::Result<f64> {
    value.number().ok_or_else(|| usage(format!("{value} is not a number")))
}

/// Returns a value that has to be a whole number, `least` or above.
fn count(value: &Value, least: u64) -> anyhow::Result<u64> {
    let number = number(value)?;
    if number < least as f64 || number.fract() != 0.0 || number > MOST {
        return Err(usage(format!("{value}; expected a whole number, {least} or above, in a list")));
    }
    Ok(number as u64)
}

/// Whole numbers up to here are numbers exactly.
const MOST: f64 = 9e15;

/// Returns the values of some tunables.
fn values(setting: &Setting, names: &[&str]) -> Vec<Value> {
    setting.iter().filter(|(name, _)| names.contains(name)).map(|(_, value)| value.clone()).collect()
}
