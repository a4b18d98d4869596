//! The l1 that models are fitted with.

use std::str::FromStr;

use megagrid_partition::{EdgeSource, Side};
use serde::{Deserialize, Serialize};

use super::data::Samples;
use crate::Error;
use crate::error::reading;

const PATH: &str = "path";
/// Penalties of a path that follows from samples, and what part of the first the last is.
const STEPS: i32 = 20;
const LAST: f64 = 1e-3;

/// Weights of |w|₁, as `--l1` takes them: `4,2,1` or `path`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Penalties {
    /// These.
    Given(Vec<f64>),
    /// Twenty, from the least with which no feature has a weight down to a thousandth of it.
    Path(Path),
}

/// A path that follows from samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Path {
    /// As [`Penalties::Path`] says.
    Path,
}

impl From<Vec<f64>> for Penalties {
    fn from(given: Vec<f64>) -> Self {
        Self::Given(given)
    }
}

impl FromStr for Penalties {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == PATH {
            return Ok(Self::Path(Path::Path));
        }
        let expected = format!("expected numbers such as 4,2,1, or the word {PATH} by itself");
        let number = |one: &str| one.trim().parse().map_err(|_| format!("found {one:?}, {expected}"));
        Ok(Self::Given(text.split(',').map(number).collect::<Result<_, _>>()?))
    }
}

impl Penalties {
    /// Returns those that are given, the largest first; one that is given twice counts once. None of a path that follows from samples.
    #[must_use]
    pub fn given(&self) -> Vec<f64> {
        let Self::Given(given) = self else { return Vec::new() };
        let mut given = given.clone();
        given.sort_by(|a, b| b.total_cmp(a));
        given.dedup();
        given
    }

    /// Returns the only one.
    #[must_use]
    pub fn only(&self) -> Option<f64> {
        match self.given()[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns the numbers that samples make of it.
    pub(super) fn resolved(&self, samples: &Samples, is_multinomial: bool) -> Result<Self, Error> {
        // Without labels nothing is to be trained.
        if matches!(self, Self::Given(_)) || samples.labels.of.is_empty() {
            return Ok(Self::Given(self.given()));
        }
        let largest = largest(samples, is_multinomial)?;
        if largest <= 0.0 || largest.is_nan() {
            return Err(Error::Missing(format!(
                "--l1 {PATH} begins where the first feature gets a weight, and none tells the classes apart; give it numbers"
            )));
        }
        let of = |step| largest * LAST.powf(f64::from(step) / f64::from(STEPS - 1));
        Ok(Self::Given((0..STEPS).map(|step| to_three_digits(of(step))).collect()))
    }
}

/// Rounds a number above 0 up to three digits, so that it is easily given again.
fn to_three_digits(number: f64) -> f64 {
    let rounded = |number: f64| format!("{number:.2e}").parse().unwrap_or(number);
    let near = rounded(number);
    if near < number { rounded(number + 0.01 * 10.0_f64.powf(number.log10().floor())) } else { near }
}

/// Returns the least l1 with which no feature has a weight: the largest slope of the loss where all are 0, and the intercepts the best that there
/// are then.
fn largest(samples: &Samples, is_multinomial: bool) -> Result<f64, Error> {
    let classes = samples.labels.classes.len();
    let mut sums = vec![0.0; classes];
    let of = |sample: usize| (samples.labels.of[sample] as usize, f64::from(samples.weight(sample)));
    (0..samples.labels.of.len()).map(of).for_each(|(class, weight)| sums[class] += weight);
    let total: f64 = sums.iter().sum();
    let chance = |class: usize| match samples.intercept {
        Some(_) => sums[class] / total,
        None if is_multinomial => 1.0 / classes as f64,
        None => 0.5,
    };
    let mut largest: f64 = 0.0;
    for feature in 0..samples.features.len() {
        let mut of_class = vec![0.0; classes];
        let row = &mut |ends: &[u32], values: &[f32]| {
            for (&sample, &x) in ends.iter().zip(values) {
                let (class, weight) = of(sample as usize);
                of_class[class] += weight * f64::from(x);
            }
        };
        samples.values.visit_rows(Side::Right, feature..feature + 1, row).map_err(reading)?;
        let all: f64 = of_class.iter().sum();
        let slope = |class: usize| (chance(class) * all - of_class[class]).abs();
        // Of two classes one has what the other has, with the other sign.
        largest = (0..classes).skip(usize::from(classes == 2)).map(slope).fold(largest, f64::max);
    }
    Ok(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_from_the_largest_penalty_to_the_smallest() {
        let given: Penalties = "1, 0.5,2,1,0.5".parse().unwrap();
        assert_eq!((given.given(), given.only()), (vec![2.0, 1.0, 0.5], None));
        assert_eq!("0.5".parse::<Penalties>().unwrap().only(), Some(0.5));
        let error = "1,one".parse::<Penalties>().unwrap_err();
        assert!(error.contains("\"one\"") && error.contains("path"), "{error}");
    }

    #[test]
    fn numbers_are_rounded_up_to_three_digits() {
        for (number, rounded) in
            [(0.123_456, 0.124), (0.123, 0.123), (99.91, 100.0), (2470.0, 2470.0), (1204.9, 1210.0)]
        {
            assert_eq!(to_three_digits(number), rounded);
        }
    }

    #[test]
    fn numbers_and_the_word_are_written_as_they_are_given() {
        for (text, written) in [("2,1", "[2.0,1.0]"), ("path", "\"path\"")] {
            let penalties: Penalties = text.parse().unwrap();
            assert_eq!(serde_json::to_string(&penalties).unwrap(), written);
            assert_eq!(serde_json::from_str::<Penalties>(written).unwrap(), penalties);
        }
    }
}
