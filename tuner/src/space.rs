//! What can be tuned: tunables with their values, and settings of all of them.
//!
//! Searchers see a setting as a [`Point`]: one coordinate for each tunable, from 0 to 1 for a range, the number of the value
//! for a list.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A value of a tunable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A name.
    Name(String),
}

impl Value {
    /// Returns the number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(_) => None,
        }
    }
}

/// A number where it reads as one.
impl From<&str> for Value {
    fn from(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Number)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// The values that a tunable can have.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// One of a list.
    Discrete(Vec<Value>),
    /// Any between two numbers.
    Linear(f64, f64),
    /// Any between two numbers, by their logarithms.
    Logarithmic(f64, f64),
}

/// A name and the values that it can have, checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tunable {
    name: String,
    values: Values,
}

const EXPECTED: &str = "name=a,b,c or name=1..10 or name=log:1e-5..1";
/// Significant digits of a number from a range: what is printed is what was tried.
const DIGITS: i32 = 4;

impl Tunable {
    /// Checks a tunable.
    ///
    /// # Errors
    /// An empty name, list or range; values twice; bounds that are no numbers, or not above 0 where logarithms are taken.
    pub fn new(name: impl Into<String>, values: Values) -> Result<Self, Error> {
        let name = name.into();
        let error = |problem: String, expected| Err(Error::Tunable { name: name.clone(), problem, expected });
        if name.is_empty() {
            return error("it has no name".to_owned(), EXPECTED);
        }
        match &values {
            Values::Discrete(list) if list.is_empty() => return error("no value".to_owned(), EXPECTED),
            Values::Discrete(list) => {
                if let Some(twice) = list.iter().enumerate().find(|(at, value)| list[..*at].contains(value)) {
                    return error(format!("{} stands there twice", twice.1), "each value once");
                }
                if list.iter().any(|value| value.number().is_some_and(|number| !number.is_finite())) {
                    return error("a value is not finite".to_owned(), "numbers or names");
                }
            }
            Values::Linear(low, high) | Values::Logarithmic(low, high) => {
                if !(low.is_finite() && high.is_finite()) {
                    return error(format!("{low}..{high} is no range of numbers"), EXPECTED);
                }
                if low >= high {
                    return error(format!("{low}..{high} is empty"), "the smaller number first");
                }
                if matches!(values, Values::Logarithmic(..)) && *low <= 0.0 {
                    return error(format!("{low} has no logarithm"), "numbers above 0 after log:");
                }
            }
        }
        Ok(Self { name, values })
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the values.
    #[must_use]
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Returns the number of values of a list, or `None` of a range.
    #[must_use]
    pub fn choices(&self) -> Option<usize> {
        match &self.values {
            Values::Discrete(list) => Some(list.len()),
            Values::Linear(..) | Values::Logarithmic(..) => None,
        }
    }

    /// Returns the values at both ends: all that a check of a range needs.
    #[must_use]
    pub fn extremes(&self) -> Vec<Value> {
        match &self.values {
            Values::Discrete(list) => list.clone(),
            Values::Linear(low, high) | Values::Logarithmic(low, high) => {
                vec![Value::Number(*low), Value::Number(*high)]
            }
        }
    }

    /// Returns the value at a coordinate. What lies outside counts as the nearest end.
    #[must_use]
    pub fn at(&self, coordinate: f64) -> Value {
        match &self.values {
            Values::Discrete(list) => list[(coordinate.max(0.0) as usize).min(list.len() - 1)].clone(),
            Values::Linear(low, high) => {
                let value = low + (high - low) * coordinate.clamp(0.0, 1.0);
                Value::Number(rounded(value).clamp(*low, *high))
            }
            Values::Logarithmic(low, high) => {
                let value = (low.ln() + (high / low).ln() * coordinate.clamp(0.0, 1.0)).exp();
                Value::Number(rounded(value).clamp(*low, *high))
            }
        }
    }

    /// Returns a coordinate of a value, the nearest of its range; `None`: it is not of the list.
    fn coordinate(&self, value: &Value) -> Option<f64> {
        match &self.values {
            Values::Discrete(list) => list.iter().position(|one| one == value).map(|at| at as f64),
            Values::Linear(low, high) => Some(((value.number()? - low) / (high - low)).clamp(0.0, 1.0)),
            Values::Logarithmic(low, high) => {
                let number = value.number().filter(|&number| number > 0.0)?;
                Some(((number / low).ln() / (high / low).ln()).clamp(0.0, 1.0))
            }
        }
    }
}

fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return value;
    }
    let scale = 10_f64.powi(DIGITS - 1 - value.abs().log10().floor() as i32);
    // Where the scale overflows the value is left as it is.
    if scale.is_finite() && scale > 0.0 { (value * scale).round() / scale } else { value }
}

/// As it is read.
impl fmt::Display for Tunable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.name)?;
        match &self.values {
            Values::Discrete(list) => list
                .iter()
                .enumerate()
                .try_for_each(|(at, value)| write!(f, "{}{value}", if at > 0 { "," } else { "" })),
            Values::Linear(low, high) => write!(f, "{low}..{high}"),
            Values::Logarithmic(low, high) => write!(f, "log:{low}..{high}"),
        }
    }
}

impl FromStr for Tunable {
    type Err = Error;

    /// Reads `name=a,b,c`, `name=low..high` or `name=log:low..high`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let error = |problem: String| Error::Tunable { name: text.to_owned(), problem, expected: EXPECTED };
        let (name, values) = text.split_once('=').ok_or_else(|| error("no = in it".to_owned()))?;
        let (is_log, values) = values.strip_prefix("log:").map_or((false, values), |rest| (true, rest));
        if let Some((low, high)) = values.split_once("..") {
            let bound = |text: &str| text.trim().parse::<f64>().map_err(|_| error(format!("{text:?} is not a number")));
            let (low, high) = (bound(low)?, bound(high)?);
            let values = if is_log { Values::Logarithmic(low, high) } else { Values::Linear(low, high) };
            return Self::new(name.trim(), values);
        }
        if is_log {
            return Err(error("log: goes with a range".to_owned()));
        }
        let value = |text: &str| match text.trim() {
            "" => Err(error("a value is missing".to_owned())),
            text => Ok(Value::from(text)),
        };
        Self::new(name.trim(), Values::Discrete(values.split(',').map(value).collect::<Result<_, _>>()?))
    }
}

/// A place in a space: a coordinate for each tunable.
pub type Point = Vec<f64>;

/// A value for each tunable, in their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setting(Vec<(String, Value)>);

impl Setting {
    /// Makes a setting of names and values.
    #[must_use]
    pub fn new(values: Vec<(String, Value)>) -> Self {
        Self(values)
    }

    /// Returns the value of a tunable, if it is one of those that are tuned.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(of, _)| of == name).map(|(_, value)| value)
    }

    /// Returns the number that a tunable has.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.number()
    }

    /// Returns names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name}={value}", if at > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

/// All tunables of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Space(Vec<Tunable>);

impl Space {
    /// Checks a space.
    ///
    /// # Errors
    /// A name twice; no tunable that has a choice.
    pub fn new(tunables: Vec<Tunable>) -> Result<Self, Error> {
        if let Some((_, twice)) =
            tunables.iter().enumerate().find(|(at, one)| tunables[..*at].iter().any(|other| other.name == one.name))
        {
            let problem = "it is named twice".to_owned();
            return Err(Error::Tunable { name: twice.name.clone(), problem, expected: "each tunable once" });
        }
        if tunables.iter().all(|tunable| tunable.choices() == Some(1)) {
            return Err(Error::NothingToTune);
        }
        Ok(Self(tunables))
    }

    /// Returns the tunables.
    #[must_use]
    pub fn tunables(&self) -> &[Tunable] {
        &self.0
    }

    /// Returns the setting at a point.
    #[must_use]
    pub fn setting(&self, point: &[f64]) -> Setting {
        Setting(self.0.iter().zip(point).map(|(tunable, &at)| (tunable.name.clone(), tunable.at(at))).collect())
    }

    /// Returns the point of a setting, unless it is none of this space.
    #[must_use]
    pub fn point(&self, setting: &Setting) -> Option<Point> {
        let coordinate = |tunable: &Tunable| tunable.coordinate(setting.get(&tunable.name)?);
        let point = self.0.iter().map(coordinate).collect::<Option<Point>>()?;
        (self.setting(&point) == *setting).then_some(point)
    }
}

impl Space {
    /// Returns the place of a setting, or one that is nearest to it where its numbers have more digits than are tried; `None` if a value is
    /// out of range.
    #[must_use]
    pub fn nearest(&self, setting: &Setting) -> Option<Point> {
        self.0.iter().map(|tunable| tunable.coordinate(setting.get(&tunable.name)?)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_become_tunables() {
        let tunable = |text: &str| text.parse::<Tunable>();
        assert_eq!(tunable("step=log:1e-5..1").unwrap().values(), &Values::Logarithmic(1e-5, 1.0));
        assert_eq!(tunable("x = -1..2").unwrap().values(), &Values::Linear(-1.0, 2.0));
        let values = vec![Value::Number(0.0), Value::Number(3.0), Value::Name("any".to_owned())];
        assert_eq!(tunable("slack=0,3,any").unwrap().values(), &Values::Discrete(values));
        for text in ["step=log:0.00001..1", "x=-1..2.5", "slack=0,3,any"] {
            assert_eq!(tunable(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_name() {
        for (text, part) in [
            ("step", "no = in it"),
            ("step=1..1", "is empty"),
            ("step=2..1", "is empty"),
            ("step=log:0..1", "has no logarithm"),
            ("step=a..1", "is not a number"),
            ("step=NaN..1", "no range"),
            ("slack=", "missing"),
            ("slack=1,,2", "missing"),
            ("slack=1,2,1", "twice"),
            ("slack=log:1,2", "goes with a range"),
            ("=1,2", "no name"),
        ] {
            let error = text.parse::<Tunable>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(matches!(Space::new(Vec::new()), Err(Error::NothingToTune)));
        let one = || "a=1".parse::<Tunable>().unwrap();
        assert!(matches!(Space::new(vec![one()]), Err(Error::NothingToTune)));
        assert!(Space::new(vec![one(), one()]).is_err());
    }

    #[test]
    fn the_middle_of_a_logarithmic_range_is_its_geometric_mean() {
        let tunable: Tunable = "step=log:1e-4..1".parse().unwrap();
        assert_eq!(tunable.at(0.5), Value::Number(0.01));
        assert_eq!(tunable.at(1.5), Value::Number(1.0));
    }

    proptest! {
        #[test]
        fn values_stay_in_their_range_and_read_back_as_printed(
            low in 1e-9..1e3_f64, factor in 1.001..1e6_f64, at in -0.5..1.5_f64, log in any::<bool>()
        ) {
            let high = low * factor;
            let values = if log { Values::Logarithmic(low, high) } else { Values::Linear(low, high) };
            let value = Tunable::new("x", values).unwrap().at(at);
            let number = value.number().unwrap();
            prop_assert!((low..=high).contains(&number));
            prop_assert_eq!(value.to_string().parse::<f64>().unwrap(), number);
        }

        #[test]
        fn a_setting_has_a_point(at in 0.0..1.0_f64, log in 0.0..1.0_f64, choice in 0..3_usize) {
            let tunables = ["x=-2..3", "step=log:1e-5..1", "slack=0,3,any"].map(|text| text.parse().unwrap());
            let space = Space::new(tunables.to_vec()).unwrap();
            let setting = space.setting(&[at, log, choice as f64]);
            prop_assert_eq!(space.setting(&space.point(&setting).unwrap()), setting);
            prop_assert_eq!(space.point(&Setting::new(vec![("step".to_owned(), Value::Number(0.1))])), None);
        }
    }
}
