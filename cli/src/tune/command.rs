//! The command line that trains with the setting that was found.

use std::path::{Path, PathBuf};

use clap::{Args as _, Command};
use megagrid_training::{Consistency, RunOptions, json};
use serde_json::Value;

use crate::common::Common;
use crate::entry::{Args, Spelling, Trains, parsed};

/// Returns the command line that trains with options, made of these and not of how this command was written. Its model goes beside that
/// of the tuned run; checkpoints and records, whose places are taken, are left out.
pub fn without_trials<A: Trains>(args: &Args<A>, options: &A::Options, run: &RunOptions) -> anyhow::Result<String> {
    let mut line = Line(vec!["megagrid".to_owned()]);
    if let Some(peers) = args.common.processes.peers.as_ref().filter(|peers| peers.processes() > 1) {
        line.0.push(format!("launch -n {} --", peers.processes()));
    }
    line.0.push(A::NAME.to_owned());
    let usual: Args<A> =
        parsed(&Args::<A>::augment_args(Command::new(A::NAME).no_binary_name(true)).get_matches_from(["input"]));
    line.0.push(quoted(&args.source.input.to_string_lossy()));
    line.add::<A>(&json(&args.source)?, &json(&usual.source)?);
    line.add::<A>(&json(&args.data)?, &json(&usual.data)?);
    line.add::<A>(&json(options)?, &json(&usual.own)?);
    line.option("workers", &run.workers.map_or(Value::Null, Value::from));
    if run.consistency != Consistency::Bsp {
        line.option("consistency", &json(&run.consistency)?);
        line.option("slack", &run.slack.map_or(Value::Null, Value::from));
    }
    if run.strategy != usual.common.run.strategy {
        line.option("strategy", &json(&run.strategy)?);
    }
    let Common { run: given, cache, model, .. } = &args.common;
    let seed = if run.seed == usual.common.run.seed { Value::Null } else { run.seed.into() };
    line.option("seed", &seed);
    line.option("patience", &given.patience.map_or(Value::Null, Value::from));
    line.option("vector", &given.vector.map_or(Value::Null, |level| level.name().into()));
    let model = model.as_deref().map(beside);
    for (name, file) in [("from", &given.from), ("cache", cache), ("model", &model)] {
        line.option(name, &file.as_deref().map_or(Value::Null, |path: &Path| path.to_string_lossy().into()));
    }
    Ok(line.0.join(" "))
}

/// Returns a name beside that of a directory.
fn beside(directory: &Path) -> PathBuf {
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push("-again");
    directory.with_file_name(name)
}

/// Words of a command line.
struct Line(Vec<String>);

impl Line {
    /// Adds the options that differ from their defaults.
    fn add<A: Trains>(&mut self, all: &Value, usual: &Value) {
        for (name, value) in all.as_object().into_iter().flatten().filter(|(name, _)| *name != "input") {
            if usual.get(name) == Some(value) {
                continue;
            }
            match A::spell(name, value, all) {
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
