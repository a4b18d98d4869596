//! Weights of classes.

use std::fmt;
use std::str::FromStr;

use megagrid_datasets::Labels;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;

/// Weights of classes, which multiply those of samples.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassWeights {
    /// All classes weigh the same in all.
    Balanced,
    /// These, by their names; any other class weighs 1.
    Named(Vec<(String, f64)>),
}

impl ClassWeights {
    /// Returns the weight of each class, whose samples weigh so much in all.
    ///
    /// # Errors
    /// A name that no class has.
    pub fn of(&self, classes: &[String], sums: &[f64]) -> Result<Vec<f64>, Error> {
        let Self::Named(named) = self else {
            let share = sums.iter().sum::<f64>() / classes.len() as f64;
            return Ok(sums.iter().map(|&sum| if sum > 0.0 { share / sum } else { 1.0 }).collect());
        };
        let mut weights = vec![1.0; classes.len()];
        for (name, weight) in named {
            let at = classes.iter().position(|class| is_same(class, name)).ok_or_else(|| {
                let known = listed(classes);
                Error::option(format!("--class-weight names the class {name}, and the classes are {known}"))
            })?;
            weights[at] = *weight;
        }
        Ok(weights)
    }
}

/// Tells whether two names are of one class: where they are numbers, they may be written in different ways.
fn is_same(class: &str, name: &str) -> bool {
    Labels::is_same(class, name) || Labels::number(class).is_some_and(|class| Labels::number(name) == Some(class))
}

/// Lists classes, or the first of many.
pub(super) fn listed(classes: &[String]) -> String {
    const SHOWN: usize = 10;
    let rest = if classes.len() > SHOWN { ", …" } else { "" };
    classes[..classes.len().min(SHOWN)].join(", ") + rest
}

/// Refuses weights by which a class is not there.
pub(super) fn check_weights(labels: &Labels, weights: &[f32]) -> Result<(), Error> {
    let mut sums = vec![0.0; labels.classes.len()];
    labels.of.iter().zip(weights).for_each(|(&class, &weight)| sums[class as usize] += f64::from(weight));
    match labels.classes.iter().zip(&sums).find(|(_, sum)| **sum == 0.0) {
        Some((class, _)) if !weights.is_empty() => Err(Error::Missing(format!(
            "all samples of class {class} weigh 0; leave the class out, or weigh some of them"
        ))),
        _ => Ok(()),
    }
}

/// Refuses labels that leave nothing to tell apart.
pub(super) fn check_classes(labels: &Labels) -> Result<(), Error> {
    let counts = labels.counts();
    let named = || labels.classes.iter().zip(&counts);
    let problem = match named().filter(|(_, count)| **count > 0).count() {
        0 => "no samples are left to train on; use a smaller --holdout".to_owned(),
        1 => {
            let number = labels.of.len();
            let label = named().find(|(_, count)| **count > 0).map_or("", |(name, _)| name);
            format!(
                "all {number} samples have the label {label}, so that there is nothing to tell apart; --positive names the labels \
                 that count as 1"
            )
        }
        _ => {
            let missing: Vec<String> =
                named().filter(|(_, count)| **count == 0).map(|(name, _)| name.clone()).collect();
            if missing.is_empty() {
                return Ok(());
            }
            format!(
                "no sample of class {} is left to train on; use a smaller --holdout, or leave such classes out",
                listed(&missing)
            )
        }
    };
    Err(Error::Missing(problem))
}

impl FromStr for ClassWeights {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "balanced" {
            return Ok(Self::Balanced);
        }
        let mut named: Vec<(String, f64)> = Vec::new();
        for pair in text.split(',') {
            let (name, weight) =
                pair.rsplit_once('=').ok_or(format!("found {pair:?}, expected balanced, or CLASS=WEIGHT,..."))?;
            // Samples have weights of 32 bits.
            let is_weight = |weight: &f64| *weight as f32 > 0.0 && (*weight as f32).is_finite();
            let number = weight.parse().ok().filter(is_weight);
            let number =
                number.ok_or(format!("the weight {weight} of class {name}; expected a number above 0, of 32 bits"))?;
            if named.iter().any(|(before, _)| is_same(before, name)) {
                return Err(format!("class {name} has two weights"));
            }
            named.push((name.to_owned(), number));
        }
        Ok(Self::Named(named))
    }
}

impl fmt::Display for ClassWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Named(named) = self else { return f.write_str("balanced") };
        let pairs: Vec<String> = named.iter().map(|(name, weight)| format!("{name}={weight}")).collect();
        f.write_str(&pairs.join(","))
    }
}

impl Serialize for ClassWeights {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ClassWeights {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes() -> Vec<String> {
        ["0", "1", "7"].map(str::to_owned).to_vec()
    }

    #[test]
    fn balanced_classes_weigh_the_same() {
        let sums = [30.0, 10.0, 5.0];
        let weights = ClassWeights::Balanced.of(&classes(), &sums).unwrap();
        assert_eq!(weights.iter().zip(sums).map(|(weight, sum)| weight * sum).collect::<Vec<_>>(), [15.0; 3]);
    }

    #[test]
    fn named_classes_have_their_weights_and_others_1() {
        let weights: ClassWeights = "7=2.5,+1=0.5".parse().unwrap();
        assert_eq!(weights.of(&classes(), &[1.0; 3]).unwrap(), [1.0, 0.5, 2.5]);
        assert_eq!(weights.to_string().parse(), Ok(weights));
        let unknown: ClassWeights = "3=1".parse().unwrap();
        let message = unknown.of(&classes(), &[1.0; 3]).unwrap_err().to_string();
        assert!(message.contains("class 3, and the classes are 0, 1, 7"), "{message}");
    }

    #[test]
    fn weights_are_above_0_and_given_once() {
        for bad in
            ["", "1", "1=", "1=-1", "1=nan", "1=inf", "1=0", "1=1e300", "1=1e-300", "balance", "1=1,1.0=2", "1=1,"]
        {
            assert!(bad.parse::<ClassWeights>().is_err(), "{bad}");
        }
    }
}
