//! The command line that trains with the setting that was found.

use std::path::Path;

use clap::Args as _;
use megagrid_training::{Algorithm, Consistency, RunOptions, json};
use serde_json::Value;

use crate::common::Common;
use crate::entry::{Args, OptionsOf, OriginOf, Spelling, Trains, parsed};

/// Returns the command line that trains with options, made of these and not of how this command was written. The model and
/// checkpoints, whose directories are taken, are left out.
pub fn without_trials<O: Trains>(
    origin: &OriginOf<O>,
    options: &OptionsOf<O>,
    run: &RunOptions,
    common: &Common,
) -> anyhow::Result<String> {
    let mut line = Line(vec!["megagrid".to_owned(), O::Algorithm::NAME.to_owned()]);
    let usual: Args<O> = by_default();
    let (origin, usual_origin) = (json(origin)?, json(&usual.own.origin(&usual.source))?);
    line.0.push(quoted(origin["input"].as_str().unwrap_or_default()));
    line.add::<O>(&origin, &usual_origin);
    line.add::<O>(&json(options)?, &json(&usual.own.options()?)?);
    line.option("workers", &run.workers.map_or(Value::Null, Value::from));
    if run.consistency != Consistency::Bsp {
        line.option("consistency", &json(&run.consistency)?);
        line.option("slack", &run.slack.map_or(Value::Null, Value::from));
    }
    let seed = if run.seed == usual.common.seed { Value::Null } else { run.seed.into() };
    line.option("seed", &seed);
    line.option("patience", &common.patience.map_or(Value::Null, Value::from));
    line.option("vector", &common.vector.map_or(Value::Null, |level| level.name().into()));
    for (name, file) in [("cache", &common.cache), ("json", &common.json), ("report", &common.report)] {
        line.option(name, &file.as_deref().map_or(Value::Null, |path: &Path| path.to_string_lossy().into()));
    }
    Ok(line.0.join(" "))
}

/// Returns the arguments of a command line that says nothing but an input.
fn by_default<O: Trains>() -> Args<O> {
    let command = Args::<O>::augment_args(clap::Command::new(O::Algorithm::NAME).no_binary_name(true));
    parsed(&command.get_matches_from(["input"]))
}

/// Words of a command line.
struct Line(Vec<String>);

impl Line {
    /// Adds the options that differ from their defaults.
    fn add<O: Trains>(&mut self, all: &Value, usual: &Value) {
        for (name, value) in all.as_object().into_iter().flatten().filter(|(name, _)| *name != "input") {
            if usual.get(name) == Some(value) {
                continue;
            }
            match O::spell(name, value, all) {
                Spelling::Usual => self.option(name, value),
                Spelling::Flag(flag) => self.0.push(flag.to_owned()),
                Spelling::Absent => {}
            }
        }
    }

    /// Adds an option; nothing where it is not set.
    fn option(&mut self, name: &str, value: &Value) {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let value = match value {
            Value::Null | Value::Bool(false) => return,
            Value::Bool(true) => None,
            Value::Array(values) if values.is_empty() => return,
            Value::Array(values) => Some(values.iter().map(text).collect::<Vec<_>>().join(",")),
            one => Some(text(one)),
        };
        self.0.push(format!("--{}", name.replace('_', "-")));
        self.0.extend(value.map(|value| quoted(&value)));
    }
}

/// Writes a word so that a shell reads it as it is.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:=+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
