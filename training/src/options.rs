//! Options of an algorithm: how they are read, checked, changed one by one, and written.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::Error;

/// What an update of a model is trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdatedOn {
    /// All data, those that arrived among them.
    All,
    /// What arrived only: the model remembers enough of all others.
    New,
}

/// All options of an algorithm, with defaults. They stand in records, models and checkpoints as serde writes them; `null` is what
/// follows from the data.
pub trait Options: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Those that may change when a run is continued; no other may.
    const FREE: &'static [&'static str] = &["iterations", "tolerance"];

    /// Checks ranges.
    ///
    /// # Errors
    /// The first option that is out of range.
    fn check(&self) -> Result<(), Error>;

    /// Returns the iterations at most.
    fn iterations(&self) -> u64;

    /// Returns the relative change of the objective that ends a run; 0: none.
    fn tolerance(&self) -> f64 {
        0.0
    }

    /// Returns why an option cannot be set beside the others, if so.
    fn refuses(&self, _name: &str) -> Option<&'static str> {
        None
    }

    /// Returns the option that says the same as another one in other words, and is left out where that is set.
    fn replaces(_name: &str) -> Option<&'static str> {
        None
    }

    /// Returns the options with another value of one, checked.
    ///
    /// # Errors
    /// No such option, or no such value of it.
    fn with(&self, name: &str, value: Value) -> Result<Self, Error> {
        if let Some(why) = self.refuses(name) {
            return Err(Error::option(why));
        }
        let refused = |error: serde_json::Error| Error::option(format!("{name} is {value}: {error}"));
        let mut all = json(self).map_err(|_| Error::option(format!("{name} cannot be set")))?;
        let Some(place) = all.get_mut(name.replace('-', "_")) else {
            return Err(Error::option(format!("there is no option {name}")));
        };
        *place = value.clone();
        if let Some(other) = Self::replaces(name).and_then(|other| all.get_mut(other)) {
            *other = Value::Null;
        }
        let options: Self = serde_json::from_value(all).map_err(refused)?;
        options.check().map(|()| options)
    }

    /// Returns the options that a run which is continued must have.
    ///
    /// # Errors
    /// Options that serde does not write.
    fn fixed(&self) -> Result<serde_json::Map<String, Value>, Error> {
        without_free(self)
    }
}

/// Returns options without those that may change when a run is continued.
pub(crate) fn without_free<O: Options>(options: &O) -> Result<serde_json::Map<String, Value>, Error> {
    let mut all = match json(options)? {
        Value::Object(all) => all,
        _ => serde_json::Map::new(),
    };
    O::FREE.iter().for_each(|name| drop(all.remove(*name)));
    Ok(all)
}

/// Writes a value as JSON. Numbers of single precision keep the digits that they were typed with: 0.1, not the nearest `f32` with
/// all digits of an `f64`.
///
/// # Errors
/// What serde does not write.
pub fn json(of: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_string(of).and_then(|text| serde_json::from_str(&text)).map_err(Error::json("writing options"))
}

/// Joins options that stand in structures of their own.
#[must_use]
pub fn join<const N: usize>(parts: [Value; N]) -> Value {
    let mut all = serde_json::Map::new();
    for part in parts {
        if let Value::Object(fields) = part {
            all.extend(fields);
        }
    }
    all.into()
}

/// Writes paths, also those that may be absent, as text, with a mark for what is no Unicode.
///
/// # Errors
/// Those of the serializer.
pub fn lossy<'p, S: Serializer>(path: impl Into<Option<&'p PathBuf>>, to: S) -> Result<S::Ok, S::Error> {
    path.into().map(|path| path.to_string_lossy()).serialize(to)
}

/// Checks a tolerance.
///
/// # Errors
/// A number below 0, or none.
pub fn check_tolerance(tolerance: f64) -> Result<(), Error> {
    if tolerance.is_finite() && tolerance >= 0.0 {
        return Ok(());
    }
    Err(Error::option(format!("tolerance is {tolerance}; expected 0 or a number above 0")))
}

/// Checks the iterations between two clocks.
///
/// # Errors
/// A number that is neither a part of 1 nor whole.
pub fn check_work_per_clock(work: f64) -> Result<(), Error> {
    if work > 0.0 && (work <= 1.0 || work <= MOST_PASSES && work.fract() == 0.0) {
        return Ok(());
    }
    Err(Error::option(format!(
        "work-per-clock is {work}; expected a number above 0 and at most 1, or a whole number of iterations up to {MOST_PASSES}"
    )))
}

/// Iterations in a clock at most.
const MOST_PASSES: f64 = 1000.0;

/// Returns the iterations in a clock, where it has several, of a checked work per clock.
#[must_use]
pub fn passes_per_clock(work: f64) -> u64 {
    if work > 1.0 { work as u64 } else { 1 }
}

/// Checks the part of the data that is kept for testing.
///
/// # Errors
/// A number outside of (0, 1).
pub fn check_holdout(holdout: Option<f64>) -> Result<(), Error> {
    match holdout {
        Some(part) if !(part > 0.0 && part < 1.0) => Err(megagrid_datasets::Error::HoldoutRange(part).into()),
        _ => Ok(()),
    }
}

/// Returns options as they are where nothing is said.
///
/// # Panics
/// Where an argument has no default.
#[must_use]
pub fn by_default<O: clap::Args>() -> O {
    options([""; 0]).expect("every argument has a default")
}

/// Reads options as a command line has them: `["--dims", "64"]`.
///
/// # Errors
/// Options that there are not, or that are out of range, in the words of the command line.
pub fn options<O: clap::Args>(words: impl IntoIterator<Item: Into<OsString> + Clone>) -> Result<O, Error> {
    let command = O::augment_args(clap::Command::new("options").no_binary_name(true).disable_help_flag(true));
    command.try_get_matches_from(words).and_then(|found| O::from_arg_matches(&found)).map_err(|error| {
        let text = error.render().to_string();
        let said = text.trim_start_matches("error: ").split("\n\n").next().unwrap_or_default();
        Error::option(said.split_whitespace().collect::<Vec<_>>().join(" "))
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
    struct Few {
        #[arg(long, default_value_t = 0.1)]
        step: f32,
        #[arg(long)]
        batch: Option<u64>,
        #[arg(long, default_value_t = 20)]
        iterations: u64,
    }

    impl Default for Few {
        fn default() -> Self {
            by_default()
        }
    }

    impl Options for Few {
        fn check(&self) -> Result<(), Error> {
            if self.step > 0.0 { Ok(()) } else { Err(Error::option(format!("step is {}", self.step))) }
        }

        fn iterations(&self) -> u64 {
            self.iterations
        }
    }

    #[test]
    fn options_are_set_by_name_and_checked() {
        let few = Few::default();
        assert_eq!(few.with("step", 0.5.into()).unwrap().step, 0.5);
        assert_eq!(few.with("batch", 7.into()).unwrap().batch, Some(7));
        assert_eq!(few.with("step", 0.into()).unwrap_err().to_string(), "step is 0");
        assert!(few.with("batch", 0.5.into()).unwrap_err().to_string().starts_with("batch is 0.5: "));
        assert!(few.with("stop", 1.into()).unwrap_err().to_string().contains("no option stop"));
    }

    #[test]
    fn options_are_read_as_a_command_line_has_them() {
        let few: Few = options(["--step", "0.5"]).unwrap();
        assert_eq!((few.step, few.iterations), (0.5, 20));
        let refused = |words: [&str; 2]| options::<Few>(words).unwrap_err().to_string();
        assert!(refused(["--step", "x"]).starts_with("invalid value 'x' for '--step <STEP>': "));
        assert!(refused(["--stop", "1"]).starts_with("unexpected argument '--stop' found"));
    }

    #[test]
    fn numbers_keep_the_digits_that_were_typed() {
        assert_eq!(json(&Few::default()).unwrap().to_string(), r#"{"batch":null,"iterations":20,"step":0.1}"#);
        assert_eq!(Few::default().fixed().unwrap().keys().collect::<Vec<_>>(), ["batch", "step"]);
    }
}
