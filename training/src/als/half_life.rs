//! How long it takes until feedback counts half.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// How long it takes until feedback counts half.
///
/// # Examples
/// ```
/// use megagrid_training::als::HalfLife;
/// let mut feedback = [1.0, 1.0, 4.0];
/// "30".parse::<HalfLife>()?.decay(&mut feedback, &[60.0, 30.0, 0.0])?;
/// assert_eq!(feedback, [1.0, 0.5, 1.0]);
/// assert_eq!("1.5d".parse::<HalfLife>()?.to_string(), "1.5d");
/// assert!("0d".parse::<HalfLife>().is_err());
/// # Ok::<(), megagrid_training::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct HalfLife {
    number: f64,
    /// The unit that it was said in; nothing: that of the times, whatever it is.
    unit: Option<Unit>,
}

/// A unit of time: its name, and its seconds.
type Unit = (&'static str, f64);

/// Units, none of which is the end of another.
const UNITS: [Unit; 5] = [("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86_400.0), ("w", 604_800.0)];

/// What is older than this many half-lives counts as if it were that old, a thousandth. Values near 0 would cost the objective its digits,
/// since errors are kept times the root of the weight, and at last be taken for no feedback.
const MOST_HALF_LIVES: f64 = 10.0;

/// Times above it are no seconds since 1970, but milliseconds perhaps: it is in the year 5138.
const LAST_SECOND: f64 = 1e11;

impl HalfLife {
    /// Multiplies values by 2^(−age / half-life), at least by 2^−10, where ages count from the newest time. Values that are not above 0 stay.
    ///
    /// # Errors
    /// Times that are not as many as values, or no numbers; a half-life in a unit of its own where times are no seconds.
    pub fn decay(&self, values: &mut [f32], times: &[f64]) -> Result<(), Error> {
        if times.len() != values.len() {
            return Err(megagrid_datasets::Error::Times { times: times.len(), num_edges: values.len() }.into());
        }
        if let Some(time) = times.iter().find(|time| !time.is_finite()) {
            return Err(Error::Missing(format!("a time is {time}; expected a number, or a date as 2026-11-25")));
        }
        let newest = times.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if self.unit.is_some() && newest > LAST_SECOND {
            return Err(Error::Missing(format!(
                "the newest time is {newest}, which is not in seconds, as --half-life {self} needs it; say the half-life as a number, in \
                 the unit of the times"
            )));
        }
        let half_life = self.number * self.unit.map_or(1.0, |(_, seconds)| seconds);
        for (value, time) in values.iter_mut().zip(times).filter(|(value, _)| **value > 0.0) {
            let half_lives = ((newest - time) / half_life).min(MOST_HALF_LIVES);
            *value = (f64::from(*value) * (-half_lives).exp2()) as f32;
        }
        Ok(())
    }
}

impl fmt::Display for HalfLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, self.unit.map_or("", |(name, _)| name))
    }
}

impl FromStr for HalfLife {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unit = UNITS.into_iter().find(|(name, _)| text.ends_with(name));
        let number = text.strip_suffix(unit.map_or("", |(name, _)| name)).unwrap_or(text);
        let number = number.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
        number.map(|number| Self { number, unit }).ok_or_else(|| {
            Error::option(format!(
                "half-life is {text}; expected a number above 0 in the unit of the times, or with s, min, h, d or w behind it where they \
                 are dates or seconds: 30d"
            ))
        })
    }
}

impl From<HalfLife> for String {
    fn from(half_life: HalfLife) -> Self {
        half_life.to_string()
    }
}

impl TryFrom<String> for HalfLife {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decayed(half_life: &str, values: &[f32], times: &[f64]) -> Result<Vec<f32>, Error> {
        let mut values = values.to_vec();
        half_life.parse::<HalfLife>()?.decay(&mut values, times).map(|()| values)
    }

    #[test]
    fn units_are_those_of_the_clock() {
        let day = 86_400.0;
        for (half_life, age) in [
            ("10s", 10.0),
            ("90min", 5400.0),
            ("36h", 1.5 * day),
            ("1.5d", 1.5 * day),
            ("2w", 14.0 * day),
            ("7e3", 7e3),
        ] {
            let found = decayed(half_life, &[3.0, 8.0, 8.0], &[1e9, 1e9 - age, 1e9 - 3.0 * age]).unwrap();
            assert_eq!(found, [3.0, 4.0, 1.0], "{half_life}");
            let read: HalfLife = serde_json::from_value(serde_json::json!(half_life)).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap().as_str().unwrap().parse::<HalfLife>().unwrap(), read);
        }
    }

    #[test]
    fn what_is_very_old_is_still_feedback_and_what_is_none_stays() {
        let floor = 2f32.powi(-10);
        let found = decayed("1", &[2.0, 2.0, 0.0, -1.5, f32::INFINITY], &[0.0, -1e300, -9.0, -9.0, -9.0]).unwrap();
        assert_eq!(found, [2.0, 2.0 * floor, 0.0, -1.5, f32::INFINITY]);
        // Ages and half-lives at the ends of what numbers there are.
        assert_eq!(decayed("1e-308", &[1.0, 1.0], &[f64::MAX, f64::MIN]).unwrap(), [1.0, floor]);
        assert_eq!(decayed("1e308", &[1.0, 1.0], &[1e9, 0.0]).unwrap(), [1.0, 1.0]);
        assert!(decayed("1d", &[], &[]).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_half_life_is_refused() {
        for text in ["0", "0d", "-1", "-3d", "nan", "inf", "1e999", "", "d", "30 d", "30m", "soon"] {
            let error = text.parse::<HalfLife>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("half-life is {text}; expected a number above 0")), "{error}");
        }
        let millis = decayed("30d", &[1.0], &[1.7e12]).unwrap_err().to_string();
        assert!(millis.contains("1700000000000, which is not in seconds, as --half-life 30d needs it"), "{millis}");
        assert!(decayed("2592000000", &[1.0], &[1.7e12]).is_ok());
        assert!(decayed("1", &[1.0], &[]).unwrap_err().to_string().starts_with("0 times of 1 ratings"));
        assert!(decayed("1", &[1.0], &[f64::NAN]).unwrap_err().to_string().contains("a time is NaN"));
    }
}
