//! What is tuned, and how: tunables, and options with the values of a setting.

use std::sync::Arc;

use clap::ArgAction;
use clap::builder::RangedU64ValueParser;
use megagrid_engine::Settings;
use megagrid_tuner::searcher::Kind;
use megagrid_tuner::{Options as TunerOptions, Plateau, Setting, Space, Tunable, Value, Values};
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::{Error, Options};

/// What a trial's time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Time {
    /// Wall-clock seconds.
    Seconds,
    /// Edges processed: a run is then reproducible.
    Samples,
}

/// How a run is tuned.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Tuning")]
pub struct TuneOptions {
    /// What to tune, and its values: NAME=A,B,C or NAME=LOW..HIGH or NAME=log:LOW..HIGH. May be given several times [default: what
    /// the algorithm gains most by].
    #[arg(long, value_name = "NAME=VALUES")]
    pub tune: Vec<String>,
    /// What proposes settings [default: tpe, or grid where all tunables have lists of values].
    #[arg(long, value_enum)]
    pub searcher: Option<Kind>,
    /// Iterations of trials of the first search, and again of all searches after it [default: 12, or 12 % of --iterations].
    #[arg(long, value_name = "ITERATIONS")]
    pub budget: Option<u64>,
    /// Settings tried by the first search, at most.
    #[arg(long, default_value_t = TunerOptions::default().trials, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub trials: usize,
    /// Whether settings are searched again on a plateau, where the run ends else.
    #[arg(
        long = "no-retune",
        action = ArgAction::SetFalse,
        help = "Do not tune again when the objective changes by less than 1 % over 10 iterations (with test data: one evaluation before --patience would end the run), and do not end the run there"
    )]
    pub retune: bool,
    /// What trials are timed by: seconds, or samples, with which a run is reproducible [default: seconds, samples where the step
    /// only is tuned].
    #[arg(long, value_name = "UNIT", value_enum)]
    pub time: Option<Time>,
}

impl Default for TuneOptions {
    fn default() -> Self {
        crate::options::by_default()
    }
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

    pub(super) fn time<A: Algorithm>(&self, space: &Space) -> Time {
        let is_timed = |tunable: &Tunable| A::KNOBS.iter().any(|knob| knob.name == tunable.name() && knob.is_timed);
        let default = if space.tunables().iter().any(is_timed) { Time::Seconds } else { Time::Samples };
        self.time.unwrap_or(default)
    }

    pub(super) fn of_tuner<A: Algorithm>(
        &self,
        space: &Space,
        time: Time,
        (seed, patience): (u64, u64),
        iterations: u64,
    ) -> TunerOptions {
        let lists = space.tunables().iter().all(|tunable| matches!(tunable.values(), Values::Discrete(_)));
        let default = TunerOptions::default();
        // A run cannot change its layout on the way.
        let retunes = self.retune && !space.tunables().iter().any(is_layout::<A>);
        TunerOptions {
            searcher: self.searcher.unwrap_or(if lists { Kind::Grid } else { Kind::Tpe }),
            seed,
            clocks: iterations,
            budget: self.budget.unwrap_or((iterations * 12 / 100).max(default.budget)),
            trials: self.trials,
            retune: default.retune.filter(|_| retunes),
            held_out: plateau_before(patience, default.held_out).filter(|_| retunes),
            target: None,
            initial: None,
            first: None,
            decisions_count: time == Time::Seconds,
        }
    }
}

/// Returns the plateau of held-out errors that is reached one evaluation before patience ends the run; with a patience of one
/// there is none, since a search has no use where the next evaluation may be the last. Patience 0 ends no run.
fn plateau_before(patience: u64, default: Option<Plateau>) -> Option<Plateau> {
    match patience {
        0 => default,
        1 => None,
        _ => default.map(|plateau| Plateau { clocks: patience as usize - 1, ..plateau }),
    }
}

/// Returns the setting that options have by themselves, if they have all that is tuned. Where all of it has lists of values, these are tried
/// one after the other.
pub(super) fn untuned(space: &Space, options: &serde_json::Value, settings: &Settings) -> Option<Setting> {
    if space.tunables().iter().all(|tunable| tunable.choices().is_some()) {
        return None;
    }
    let value = |tunable: &Tunable| {
        let value = match tunable.name() {
            "workers" => Value::Number(settings.workers as f64),
            "slack" | "delay" => Value::Number(settings.slack? as f64),
            name => match options.get(name)? {
                serde_json::Value::Number(number) => Value::Number(number.as_f64()?),
                serde_json::Value::String(name) => Value::Name(name.clone()),
                _ => return None,
            },
        };
        Some((tunable.name().to_owned(), value))
    };
    space.tunables().iter().map(value).collect::<Option<Vec<_>>>().map(Setting::new)
}

fn is_layout<A: Algorithm>(tunable: &Tunable) -> bool {
    A::KNOBS.iter().any(|knob| knob.name == tunable.name() && knob.is_layout)
}

/// Reads what is tuned; each extreme value is tried on the options, which refuse what the algorithm does.
pub fn space<A: Algorithm>(texts: &[String], options: &A::Options, settings: &Settings) -> Result<Space, Error> {
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
        let tried = |value: Value| apply::<A>(options, settings, &Setting::new(vec![(name.to_owned(), value)]));
        let extremes = tunable.extremes();
        for value in &extremes {
            tried(value.clone()).map_err(|error| Error::option(format!("tune {name}={value}: {error}")))?;
        }
        // Of a range any number is proposed, which is no use where only whole ones are taken.
        if let (None, [low, .., high]) = (tunable.choices(), &extremes[..])
            && let (Some(low), Some(high)) = (low.number(), high.number())
            && tried(Value::Number(low + (high - low) * 0.382)).is_err()
        {
            return Err(Error::option(format!(
                "tune {text}: {name} is a whole number; give a list, {name}={low},{high} say"
            )));
        }
        tunables.push(tunable);
    }
    Space::new(tunables).map_err(refused)
}

/// Returns options and settings with those of a setting, checked.
pub fn apply<A: Algorithm>(
    options: &A::Options,
    settings: &Settings,
    setting: &Setting,
) -> Result<(A::Options, Settings), Error> {
    let (mut options, mut settings) = (options.clone(), settings.clone());
    for (name, value) in setting.iter() {
        match name {
            "workers" => settings.workers = count(value, 1)? as usize,
            "slack" | "delay" if settings.slack.is_none() => {
                return Err(Error::option("with --consistency async there is no bound on how far workers are apart"));
            }
            "slack" | "delay" => settings.slack = Some(count(value, 0)?),
            _ => options = options.with(name, as_json(value))?,
        }
    }
    A::check_settings(&options, &settings)?;
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

/// What is searched for, and on what.
pub struct Search<'s, A: Algorithm> {
    pub data: Arc<A::Data>,
    pub options: A::Options,
    pub settings: Settings,
    pub time: Time,
    pub space: &'s Space,
    pub tuner: &'s TunerOptions,
    /// Every option, as it stands in the record.
    pub config: &'s serde_json::Value,
}
