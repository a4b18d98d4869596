//! Training that finds its settings on the way: by short trials on branches of the run, again when progress stops.

mod branches;
mod lead;

use std::sync::Arc;
use std::time::Instant;

use megagrid_engine::Settings;
use megagrid_tuner::searcher::Kind;
use megagrid_tuner::{
    Ended, Event, Failure, Label, Options as TunerOptions, Plateau, Setting, Space, Trial, Tunable, Tuned as Found,
    Value, Values,
};
use serde::{Deserialize, Serialize};

use crate::algorithm::{Algorithm, Data as _};
use crate::checkpoint::Checkpoints;
use crate::options::RunOptions;
use crate::processes::Processes;
use crate::record::{self, Record, Tuning};
use crate::stopping::Stopping;
use crate::train::{Job, Observer, Trained, conclude, config};
use crate::{Error, Options, json};
use branches::{Branches, Done};
use lead::Lead;

/// What a trial's time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Time {
    /// Wall-clock seconds.
    Seconds,
    /// Edges processed: a run is then reproducible.
    Samples,
}

/// How a run is tuned.
#[derive(Clone, Debug)]
pub struct TuneOptions {
    /// What is tuned: `NAME=A,B,C` or `NAME=LOW..HIGH` or `NAME=log:LOW..HIGH`; none: what the algorithm says.
    pub tune: Vec<String>,
    /// What proposes settings; `None`: a tree-structured Parzen estimator, or a grid where all tunables have lists of values.
    pub searcher: Option<Kind>,
    /// Iterations of trials of the first search, and again of all after it; `None`: 12, or 12 % of the run's.
    pub budget: Option<u64>,
    /// Settings tried by the first search, at most.
    pub trials: usize,
    /// Whether settings are searched again when the objective changes by less than 1 % over 10 iterations.
    pub retune: bool,
    /// What trials are timed by; `None`: seconds, or samples where nothing is tuned that changes how long an iteration takes.
    pub time: Option<Time>,
}

impl Default for TuneOptions {
    fn default() -> Self {
        let trials = TunerOptions::default().trials;
        Self { tune: Vec::new(), searcher: None, budget: None, trials, retune: true, time: None }
    }
}

/// A tuned run.
pub struct Tuned<A: Algorithm> {
    /// The model and the record.
    pub trained: Trained<A>,
    /// The options of the first setting: a run that has them from the beginning, and no trials, goes as this one began.
    pub options: A::Options,
    /// The same of how it ran.
    pub run: RunOptions,
}

impl TuneOptions {
    /// Checks what is said to be tuned, before any data is read.
    ///
    /// # Errors
    /// No such tunable, or a value that is out of range.
    pub fn check<A: Algorithm>(&self, options: &A::Options) -> Result<(), Error> {
        A::check_tuned(options)?;
        if self.tune.is_empty() {
            return Ok(());
        }
        space::<A>(&self.tune, options, &Settings::default()).map(drop)
    }

    fn time<A: Algorithm>(&self, space: &Space) -> Time {
        let is_timed = |tunable: &Tunable| A::KNOBS.iter().any(|knob| knob.name == tunable.name() && knob.is_timed);
        let default = if space.tunables().iter().any(is_timed) { Time::Seconds } else { Time::Samples };
        self.time.unwrap_or(default)
    }

    fn of_tuner<A: Algorithm>(&self, space: &Space, time: Time, seed: u64, iterations: u64) -> TunerOptions {
        let lists = space.tunables().iter().all(|tunable| matches!(tunable.values(), Values::Discrete(_)));
        let default = TunerOptions::default();
        TunerOptions {
            searcher: self.searcher.unwrap_or(if lists { Kind::Grid } else { Kind::Tpe }),
            seed,
            clocks: iterations,
            budget: self.budget.unwrap_or((iterations * 12 / 100).max(default.budget)),
            trials: self.trials,
            // A run cannot change its layout on the way.
            retune: (self.retune && !space.tunables().iter().any(is_layout::<A>)).then(Plateau::default),
            target: None,
            decisions_count: time == Time::Seconds,
        }
    }
}

fn is_layout<A: Algorithm>(tunable: &Tunable) -> bool {
    A::KNOBS.iter().any(|knob| knob.name == tunable.name() && knob.is_layout)
}

/// Reads what is tuned; each extreme value is tried on the options, which refuse what the algorithm does.
fn space<A: Algorithm>(texts: &[String], options: &A::Options, settings: &Settings) -> Result<Space, Error> {
    let refused = |error: megagrid_tuner::Error| Error::option(error.to_string());
    let mut tunables = Vec::new();
    for text in texts {
        let tunable: Tunable = text.parse().map_err(refused)?;
        let name = tunable.name();
        if !A::KNOBS.iter().any(|knob| knob.name == name) {
            let names: Vec<&str> = A::KNOBS.iter().map(|knob| knob.name).collect();
            let (algorithm, names) = (A::NAME, names.join(", "));
            return Err(Error::option(format!("tune {name}: {algorithm} has no such tunable; it has {names}")));
        }
        for value in tunable.extremes() {
            let setting = Setting::new(vec![(name.to_owned(), value.clone())]);
            apply::<A>(options, settings, &setting)
                .map_err(|error| Error::option(format!("tune {name}={value}: {error}")))?;
        }
        tunables.push(tunable);
    }
    Space::new(tunables).map_err(refused)
}

/// Returns options and settings with those of a setting, checked.
fn apply<A: Algorithm>(
    options: &A::Options,
    settings: &Settings,
    setting: &Setting,
) -> Result<(A::Options, Settings), Error> {
    let (mut options, mut settings) = (options.clone(), settings.clone());
    for (name, value) in setting.iter() {
        match name {
            "workers" => settings.workers = count(value, 1)? as usize,
            "slack" | "delay" => settings.slack = Some(count(value, 0)?),
            _ => options = options.with(name, as_json(value))?,
        }
    }
    Ok((options, settings))
}

/// Returns a value that has to be a whole number, `least` or above.
fn count(value: &Value, least: u64) -> Result<u64, Error> {
    match value.number() {
        Some(number) if number >= least as f64 && number.fract() == 0.0 && number <= MOST => Ok(number as u64),
        _ => Err(Error::option(format!("{value}; expected a whole number, {least} or above, in a list"))),
    }
}

/// Whole numbers up to here are numbers exactly.
const MOST: f64 = 9e15;

fn as_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Number(number) if number.fract() == 0.0 && (0.0..=MOST).contains(number) => (*number as u64).into(),
        Value::Number(number) => (*number).into(),
        Value::Name(name) => name.as_str().into(),
    }
}

/// Trains and tunes. With several processes the first decides; all of them call it.
///
/// # Errors
/// As [`train`](crate::train); a budget too small for a trial; all settings diverged.
pub fn tune<A: Algorithm>(
    job: Job<A>,
    tuning: &TuneOptions,
    processes: &Processes,
    observer: &dyn Observer,
) -> Result<Tuned<A>, Error> {
    tuning.check::<A>(&job.options)?;
    let Job { data, origin, phases, options, run, settings, .. } = job;
    let iterations = options.iterations();
    let given = if tuning.tune.is_empty() { A::tuned(&data, &options) } else { tuning.tune.clone() };
    let space = space::<A>(&given, &options, &settings)?;
    let time = tuning.time::<A>(&space);
    let tuner = tuning.of_tuner::<A>(&space, time, run.seed, iterations);

    let checksum = data.checksum()?;
    let data = Arc::new(data);
    let resolved = A::form(&options)(Arc::clone(&data), options.clone(), settings.clone())?.options();
    let tuned: Vec<String> = space.tunables().iter().map(ToString::to_string).collect();
    let more = serde_json::json!({
        "tune": tuned, "searcher": tuner.searcher, "budget": tuner.budget, "trials": tuner.trials,
        "retune": tuner.retune.is_some(), "time": time,
    });
    let fixed = [("tune".to_owned(), json(&tuned)?)].into_iter().collect();
    let config = config::<A>(&origin, &resolved, &run, more)?;
    processes.agree(&format!("tune {}", A::NAME), &config, checksum)?;

    let begin = Instant::now();
    observer.begin(0, iterations);
    let found = search::<A>(
        Search { data, options: options.clone(), settings: settings.clone(), time, space: &space, tuner: &tuner },
        (processes, observer),
        (&origin, &run, &resolved, fixed),
    );
    observer.end();
    let mut ran = found?;

    let wall_seconds = begin.elapsed().as_secs_f64();
    let own: f64 = ran.history.iter().map(|done| done.report.seconds + done.seconds).sum();
    let engine = &mut *ran.run;
    let done = engine.iterations() - ran.history.len() as u64;
    let mut record = Record::begin(A::NAME, config, engine.input(), engine.machine(), phases, done);
    for Done { report, measured, seconds } in &ran.history {
        if let Some(measured) = measured.as_ref().filter(|one| !one.objective.is_finite()) {
            let (objective, advice) = (measured.objective, measured.advice);
            return Err(Error::Diverged { objective, iteration: report.iteration, advice });
        }
        record.add(report, measured.clone().map(|one| (one.objective, one.metrics)), *seconds);
    }
    let best = ran.stopping.best().map(|best| (best.iteration, (best.objective, best.metrics.clone())));
    let (iteration, measured) = best.unzip();
    record.result.best_iteration = iteration;
    record.machine.best_model_bytes = ran.stopping.bytes;
    record.end(measured);
    let mut setting = Setting::default();
    if let Some(found) = ran.found {
        let ended_by = ended_by(found.ended, ran.is_patience);
        record.result.ended_by = ended_by.into();
        setting = found.settings.first().map(|(_, setting)| setting.clone()).unwrap_or_default();
        record.tuning = Some(report(&tuner, time, &found, ended_by, (wall_seconds - own).max(0.0)));
    }
    let kept = ran.stopping.take(engine.iterations());
    let model = conclude(engine, kept, processes, &mut record)?;
    let (options, settings) = apply::<A>(&options, &settings, &setting)?;
    let run = RunOptions { workers: Some(settings.workers), ..run.with_slack(settings.slack) };
    Ok(Tuned { trained: Trained { record, model, checksum }, options, run })
}

/// What is searched for, and on what.
struct Search<'s, A: Algorithm> {
    data: Arc<A::Data>,
    options: A::Options,
    settings: Settings,
    time: Time,
    space: &'s Space,
    tuner: &'s TunerOptions,
}

/// What a search came to in this process.
struct Ran<A: Algorithm> {
    /// What the first process decided.
    found: Option<Found>,
    run: Box<dyn crate::Run<A>>,
    history: Vec<Done>,
    stopping: Stopping<A::Model>,
    is_patience: bool,
}

type Fixed = serde_json::Map<String, serde_json::Value>;

fn search<'s, A: Algorithm>(
    search: Search<'s, A>,
    (processes, observer): (&'s Processes, &'s dyn Observer),
    (origin, run, resolved, fixed): (&serde_json::Value, &RunOptions, &A::Options, Fixed),
) -> Result<Ran<A>, Error> {
    let (space, tuner) = (search.space, search.tuner);
    let checkpoints = Checkpoints::new::<A>(run, resolved, origin, fixed)?;
    let stopping = Stopping::new(run.patience);
    let (branches, progress) = Branches::new(search, checkpoints, stopping, processes, observer)?;
    let mut lead = Lead::new(branches);
    if !processes.is_first() {
        let branch = lead.follow()?;
        return lead.into_branches().take(branch, None);
    }
    let mut watch = |event: &Event<'_>| observer.search(event);
    let found = match progress {
        Some(progress) => megagrid_tuner::resume(&mut lead, space, tuner, progress, &mut watch),
        None => megagrid_tuner::tune(&mut lead, space, tuner, &mut watch),
    };
    let found = found.map_err(|failure| match failure {
        Failure::Tuning(error @ megagrid_tuner::Error::Budget { .. }) => Error::option(error.to_string()),
        Failure::Tuning(error) => error.into(),
        Failure::Trainer(error) => error,
    })?;
    lead.end(found.branch)?;
    lead.into_branches().take(found.branch, Some(found))
}

fn ended_by(ended: Ended, is_patience: bool) -> &'static str {
    match ended {
        Ended::Clocks => "iterations",
        Ended::Target => "target",
        Ended::Finished if is_patience => "patience",
        Ended::Finished => "tolerance",
        Ended::Converged => "plateau",
        Ended::Diverged => "divergence",
    }
}

fn report(options: &TunerOptions, time: Time, found: &Found, ended_by: &str, seconds: f64) -> Tuning {
    Tuning {
        searcher: format!("{:?}", options.searcher).to_lowercase(),
        time: if time == Time::Seconds { "seconds" } else { "samples" }.to_owned(),
        part: found.tuning / found.elapsed.max(f64::MIN_POSITIVE),
        seconds,
        most_branches: found.most_alive,
        ended_by: ended_by.to_owned(),
        settings: found.settings.iter().map(|(after, setting)| (*after, setting.to_string())).collect(),
        command: String::new(),
        trials: found.trials.iter().map(shown).collect(),
    }
}

fn shown(trial: &Trial) -> record::Trial {
    let label = match trial.label {
        Label::Converging => "converging",
        Label::Unstable => "unstable",
        Label::Diverged => "diverged",
    };
    record::Trial {
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
