//! A run that tunes itself, and what it came to.

use std::sync::Arc;
use std::time::Instant;

use megagrid_engine::Settings;
use megagrid_tuner::{
    Ended, Event, Failure, Label, Options as TunerOptions, Setting, Space, Trial, Tunable, Tuned as Found,
};

use super::branches::{Branches, Done, Ran};
use super::lead::Lead;
use super::space::{Search, Time, TuneOptions, apply, space, untuned};
use crate::algorithm::Algorithm;
use crate::checkpoint::Checkpoints;
use crate::data::Data;
use crate::job::Job;
use crate::processes::Processes;
use crate::record::{self, Record, Tuning};
use crate::run_options::RunOptions;
use crate::stopping::Stopping;
use crate::train::{Observer, Trained, conclude, config};
use crate::{Error, Options, json};

/// A tuned run.
pub struct Tuned<A: Algorithm> {
    /// The model and the record.
    pub trained: Trained<A>,
    /// The options of the first setting: a run that has them from the beginning, and no trials, goes as this one began.
    pub options: A::Options,
    /// The same of how it ran.
    pub run: RunOptions,
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
    let Job { data, origin, phases, options, run, settings, may_end, .. } = job;
    A::check_run(&data, &options, &run, true)?;
    let mut iterations = options.iterations();
    if run.evaluate_every > 0 {
        return Err(Error::option(
            "tune measures after each iteration, which is what it goes by; leave out --evaluate-every",
        ));
    }
    let given = match &tuning.tune[..] {
        [] => with_said(A::tuned(&data, &options, &settings), &options)?,
        given => given.to_vec(),
    };
    if given.is_empty() {
        let advice = "train without tune, or say with --tune what to try";
        return Err(Error::option(format!("{} has no setting that is worth a search here; {advice}", A::NAME)));
    }
    let space = space::<A>(&given, &options, &settings)?;
    let data = Arc::new(data);
    let options = laid_out::<A>(&data, options, &settings, &space)?;
    let time = tuning.time::<A>(&space);
    let patience = run.patience.unwrap_or(A::PATIENCE);
    let checksum = data.checksum()?;
    let resolved = A::form(&data, &options)(Arc::clone(&data), options.clone(), settings.clone())?.options();
    let tuner = tuning.of_tuner::<A>(&space, time, (run.seed, patience), iterations);
    let tuner = TunerOptions { first: untuned(&space, &json(&resolved)?, &settings), ..tuner };
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
        Search {
            data,
            options: options.clone(),
            settings: settings.clone(),
            time,
            space: &space,
            tuner: &tuner,
            config: &config,
        },
        (processes, observer, may_end),
        (&origin, &run, &resolved, fixed),
    );
    observer.end();
    let mut ran = found?;

    let wall_seconds = begin.elapsed().as_secs_f64();
    let own: f64 = ran.history.iter().map(|done| done.report.seconds + done.seconds).sum();
    let engine = &mut *ran.run;
    let done = engine.iterations() - ran.history.len() as u64;
    let mut record = Record::begin(A::NAME, config, engine.input(), engine.machine(), phases, done);
    for Done { report, found, seconds } in &ran.history {
        found.check(report.iteration, A::ADVICE)?;
        record.add(report, found.objective, found.metrics.clone(), *seconds);
    }
    ran.stopping.end(&mut record);
    let mut setting = Setting::default();
    let with = |setting: &Setting| -> Result<_, Error> {
        let (options, settings) = apply::<A>(&options, &settings, setting)?;
        Ok((options, RunOptions { workers: Some(settings.workers), ..run.with_slack(settings.slack) }))
    };
    if let Some(found) = ran.found {
        let ended_by = ended_by(found.ended, ran.is_patience);
        record.result.ended_by = ended_by.into();
        record.tuning = Some(report((&space, &tuner, time), &found, ended_by, (wall_seconds - own).max(0.0)));
        if let [(_, first), ..] = &found.settings[..] {
            setting = first.clone();
        }
        // Without trials nothing ends a run on a plateau.
        if let (Ended::Converged, [_]) = (found.ended, &found.settings[..]) {
            iterations = engine.iterations();
        }
        // That which the model is of.
        let best = record.result.best_iteration.unwrap_or(u64::MAX);
        if let Some((_, last)) = found.settings.iter().rfind(|(after, _)| *after < best) {
            let (ended, ended_run) = with(last)?;
            renew(&mut record.config, (&json(&options)?, &json(&ended)?), A::Options::replaces);
            renew(&mut record.config, (&json(&run)?, &json(&ended_run)?), |_| None);
        }
    }
    let kept = ran.stopping.take(engine.iterations());
    let model = conclude(engine, kept, processes, &mut record)?;
    let (options, run) = with(&setting)?;
    let options = options.with("iterations", iterations.into())?;
    Ok(Tuned { trained: Trained { record, model, checksum }, options, run })
}

/// Adds what options say, where it is not by default, to the lists of what is tuned by default.
fn with_said<O: Options>(texts: Vec<String>, options: &O) -> Result<Vec<String>, Error> {
    let (said, usual) = (json(options)?, json(&O::default())?);
    let add = |text: String| {
        let Some((name, values)) = text.split_once('=').filter(|(_, values)| !values.contains("..")) else {
            return text;
        };
        let name = name.replace('-', "_");
        let value = said.get(&name).filter(|value| !value.is_null() && usual.get(&name) != Some(value));
        let value = value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        match value.filter(|value| !values.split(',').any(|one| one == value)) {
            Some(value) => format!("{text},{value}"),
            None => text,
        }
    };
    Ok(texts.into_iter().map(add).collect())
}

/// Fills in the options that the grid follows from, as they are at the largest slack that is tried, so that all settings run on one grid.
fn laid_out<A: Algorithm>(
    data: &Arc<A::Data>,
    options: A::Options,
    settings: &Settings,
    space: &Space,
) -> Result<A::Options, Error> {
    let apart = space.tunables().iter().filter(|tunable| APART.contains(&tunable.name()));
    let farthest =
        apart.flat_map(|tunable| tunable.extremes()).filter_map(|value| value.number()).max_by(f64::total_cmp);
    let Some(farthest) = farthest else { return Ok(options) };
    let settings = Settings { slack: Some(farthest as u64), ..settings.clone() };
    let resolved = json(&A::form(data, &options)(Arc::clone(data), options.clone(), settings)?.options())?;
    let said = json(&options)?;
    let is_said = |name: &str| said.get(name).is_none_or(|value| !value.is_null());
    A::KNOBS.iter().filter(|knob| knob.is_layout && !is_said(knob.name)).try_fold(options, |options, knob| {
        match (resolved.get(knob.name), A::Options::replaces(knob.name)) {
            (Some(value), other) if !value.is_null() && !other.is_some_and(is_said) => {
                options.with(knob.name, value.clone())
            }
            _ => Ok(options),
        }
    })
}

/// Tunables by which workers may be apart.
const APART: [&str; 2] = ["slack", "delay"];

/// Has options be those that a run ended with, where they are others than those that it began with: an update of the model goes on so. What
/// says the same in other words was resolved for the beginning, and follows from them now.
fn renew(
    config: &mut serde_json::Value,
    (began, ended): (&serde_json::Value, &serde_json::Value),
    replaces: impl Fn(&str) -> Option<&'static str>,
) {
    let changed = ended.as_object().into_iter().flatten().filter(|&(name, value)| began.get(name) != Some(value));
    for (name, value) in changed {
        if let Some(other) = replaces(name).and_then(|other| config.get_mut(other)).filter(|_| !value.is_null()) {
            *other = serde_json::Value::Null;
        }
        if let Some(place) = config.get_mut(name) {
            place.clone_from(value);
        }
    }
}

type Fixed = serde_json::Map<String, serde_json::Value>;

fn search<'s, A: Algorithm>(
    search: Search<'s, A>,
    (processes, observer, may_end): (&'s Processes, &'s dyn Observer, bool),
    (origin, run, resolved, fixed): (&serde_json::Value, &RunOptions, &A::Options, Fixed),
) -> Result<Ran<A>, Error> {
    let (space, tuner) = (search.space, search.tuner);
    let checkpoints = Checkpoints::new::<A>(run, resolved, origin, search.data.beside_edges(), fixed)?;
    let stopping = Stopping::new(run.patience.unwrap_or(A::PATIENCE));
    let (branches, progress) = Branches::new(search, checkpoints, stopping, (processes, observer), may_end)?;
    let mut lead = Lead::new(branches);
    if !processes.is_first() {
        let followed = lead.follow();
        let mut branches = lead.into_branches();
        let branch = match (followed, branches.take_interrupted()) {
            (Err(Error::Interrupted { .. }), Some(found)) => found.branch,
            (followed, _) => followed?,
        };
        return branches.take(branch, None);
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
    });
    if let Ok(found) = &found {
        lead.end(found.branch)?;
    }
    let mut branches = lead.into_branches();
    let found = match (found, branches.take_interrupted()) {
        (Err(Error::Interrupted { .. }), Some(found)) => found,
        (found, _) => found?,
    };
    branches.take(found.branch, Some(found))
}

fn ended_by(ended: Ended, is_patience: bool) -> &'static str {
    match ended {
        Ended::Clocks => "iterations",
        Ended::Target => "target",
        Ended::Finished if is_patience => "patience",
        Ended::Finished => "tolerance",
        Ended::Converged => "plateau",
        Ended::Diverged => "divergence",
        Ended::Interrupted => "interrupt",
    }
}

fn report(
    (space, options, time): (&Space, &TunerOptions, Time),
    found: &Found,
    ended_by: &str,
    seconds: f64,
) -> Tuning {
    Tuning {
        searcher: format!("{:?}", options.searcher).to_lowercase(),
        time: if time == Time::Seconds { "seconds" } else { "samples" }.to_owned(),
        part: found.tuning / found.elapsed.max(f64::MIN_POSITIVE),
        seconds,
        most_branches: found.most_alive,
        ended_by: ended_by.to_owned(),
        settings: found.settings.iter().map(|(after, setting)| (*after, setting.to_string())).collect(),
        command: String::new(),
        possible: space.tunables().iter().map(Tunable::choices).product(),
        stalled: found.stalled.clone(),
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
