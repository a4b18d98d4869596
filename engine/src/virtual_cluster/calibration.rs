//! What tasks cost: measured in a real pass, kept, and used for runs that reproduce.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What tasks cost, by stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The stages by name, those among them that cross between processes.
    pub stages: BTreeMap<String, StageCost>,
}

/// What a stage's tasks cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageCost {
    /// For a task.
    pub task_seconds: f64,
    /// For each edge, in stages on edges, or each row.
    pub unit_seconds: f64,
}

impl StageCost {
    /// Returns what a task costs.
    #[must_use]
    pub fn seconds(&self, units: u64) -> f64 {
        self.task_seconds + self.unit_seconds * units as f64
    }
}

/// Tasks that were measured, by stage: their units, and seconds.
#[derive(Debug, Default)]
pub struct Samples(BTreeMap<String, Vec<(f64, f64)>>);

impl Samples {
    pub fn add(&mut self, stage: &str, units: u64, seconds: f64) {
        match self.0.get_mut(stage) {
            Some(samples) => samples.push((units as f64, seconds)),
            None => drop(self.0.insert(stage.to_owned(), vec![(units as f64, seconds)])),
        }
    }

    /// Finds costs that explain the samples.
    pub fn fit(&self) -> Calibration {
        Calibration { stages: self.0.iter().map(|(name, samples)| (name.clone(), fit(samples))).collect() }
    }
}

/// Fits a line, once more without the tenth of the samples that lie farthest above it, in which the machine did something
/// else.
fn fit(samples: &[(f64, f64)]) -> StageCost {
    let first = line(samples);
    let excess = |one: &(f64, f64)| one.1 - first.task_seconds - first.unit_seconds * one.0;
    let mut kept = samples.to_vec();
    kept.sort_by(|a, b| excess(a).total_cmp(&excess(b)));
    kept.truncate((samples.len() * 9).div_ceil(10));
    line(&kept)
}

/// Fits a line by least squares that is below 0 nowhere.
fn line(samples: &[(f64, f64)]) -> StageCost {
    let n = samples.len() as f64;
    let (x, y) = samples.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0 / n, sum.1 + one.1 / n));
    let (mut xx, mut xy) = (0.0, 0.0);
    for one in samples {
        xx += (one.0 - x).powi(2);
        xy += (one.0 - x) * (one.1 - y);
    }
    let slope = if xx > 0.0 { (xy / xx).max(0.0) } else { 0.0 };
    let task_seconds = y - slope * x;
    if task_seconds >= 0.0 || x == 0.0 {
        StageCost { task_seconds: task_seconds.max(0.0), unit_seconds: slope }
    } else {
        StageCost { task_seconds: 0.0, unit_seconds: y / x }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_found_again() {
        let mut samples = Samples::default();
        for units in 0..100 {
            samples.add("Walk", units, 2e-6 + 3e-9 * units as f64);
            samples.add("Same", 10, 1e-6);
        }
        // The machine did something else.
        samples.add("Walk", 5, 1.0);
        let calibration = samples.fit();
        let walk = calibration.stages["Walk"];
        assert!((walk.task_seconds - 2e-6).abs() < 1e-7 && (walk.unit_seconds - 3e-9).abs() < 1e-10, "{walk:?}");
        assert!((calibration.stages["Same"].seconds(10) - 1e-6).abs() < 1e-12);
    }
}
