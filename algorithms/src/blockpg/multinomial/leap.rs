//! The best step in the space of the last few rounds' changes.

use std::io;

use super::{FitOfClasses, OfClasses, scores_of_classes, target};
use crate::blockpg::Config;
use crate::blockpg::directions::{DIRECTIONS, Model};

/// Rounds whose changes span the space of a leap at most.
pub const MOST_ROUNDS: usize = DIRECTIONS;

impl FitOfClasses<'_> {
    /// Returns weights with a lower objective, and their scores; `None` where there are none. Where weights are few it is Newton's step that leads there,
    /// else one in the direction of the changes of the last few rounds, at most [`MOST_ROUNDS`].
    ///
    /// # Errors
    /// Values that cannot be read.
    pub fn leap(&self, config: &Config, rounds: &[OfClasses]) -> io::Result<Option<(OfClasses, OfClasses)>> {
        match self.newton(config)? {
            Some(found) => Ok(Some(found)),
            None => self.along(config, rounds),
        }
    }

    /// Goes on in the direction of the changes of the last few rounds. A weight that would change its sign becomes zero, and one that is zero stays so.
    fn along(&self, config: &Config, rounds: &[OfClasses]) -> io::Result<Option<(OfClasses, OfClasses)>> {
        let rounds: Vec<OfClasses> = rounds.iter().map(|changes| self.free_part(changes, config)).collect();
        let mut model = Model::default();
        self.add_penalty(&mut model, config, &rounds);
        self.add_loss(&mut model, &rounds)?;
        let step = model.minimum(std::array::from_fn(|round| round < rounds.len()));
        let objective = self.objective(config);
        for part in PARTS {
            let weights = self.ahead(step.map(|step| part * step), config, &rounds);
            let scores = scores_of_classes(self.values, &weights)?;
            let there = FitOfClasses { weights: &weights, scores: &scores, ..*self };
            if there.objective(config) < objective {
                return Ok(Some((weights, scores)));
            }
        }
        Ok(None)
    }

    /// Tells whether a weight may not change its sign, nor leave zero.
    fn is_held(&self, feature: usize, config: &Config) -> bool {
        config.l1 > 0.0 && !self.is_free(feature)
    }

    /// Returns the changes of weights that may move.
    fn free_part(&self, changes: &[Vec<f64>], config: &Config) -> OfClasses {
        let of_class = |(changes, weights): (&Vec<f64>, &Vec<f64>)| {
            let pairs = changes.iter().zip(weights).enumerate();
            pairs.map(|(feature, (&d, &w))| if w == 0.0 && self.is_held(feature, config) { 0.0 } else { d }).collect()
        };
        changes.iter().zip(self.weights).map(of_class).collect()
    }

    fn add_penalty(&self, model: &mut Model, config: &Config, rounds: &[OfClasses]) {
        for (class, weights) in self.weights.iter().enumerate() {
            for feature in self.penalized() {
                let w = weights[feature];
                let changes = std::array::from_fn(|round| rounds.get(round).map_or(0.0, |one| one[class][feature]));
                let slope = if w == 0.0 { 0.0 } else { config.l1 * w.signum() };
                model.add(slope + config.l2 * w, config.l2, changes);
            }
        }
    }

    /// The curvature of a sample's loss by its scores is diag(p) − p pᵀ.
    fn add_loss(&self, model: &mut Model, rounds: &[OfClasses]) -> io::Result<()> {
        let shifts: io::Result<Vec<OfClasses>> =
            rounds.iter().map(|changes| scores_of_classes(self.values, changes)).collect();
        let (shifts, excess) = (shifts?, self.excess());
        for (sample, &label) in self.labels.iter().enumerate() {
            let (weight, mut mean) = (self.weight(sample), [0.0; DIRECTIONS]);
            for (class, excess) in excess.iter().enumerate() {
                let changes: [f64; DIRECTIONS] =
                    std::array::from_fn(|round| shifts.get(round).map_or(0.0, |one| one[class][sample]));
                let chance = excess[sample] + target(label, class);
                model.add(weight * excess[sample], weight * chance, changes);
                mean.iter_mut().zip(changes).for_each(|(mean, change)| *mean += chance * change);
            }
            model.add(0.0, -weight, mean);
        }
        Ok(())
    }

    /// Returns the weights after a step.
    fn ahead(&self, step: [f64; DIRECTIONS], config: &Config, rounds: &[OfClasses]) -> OfClasses {
        let of_class = |(class, weights): (usize, &Vec<f64>)| {
            let of = |(feature, &w): (usize, &f64)| {
                let goal = w + rounds.iter().zip(step).map(|(one, step)| step * one[class][feature]).sum::<f64>();
                if goal * w < 0.0 && self.is_held(feature, config) { 0.0 } else { goal }
            };
            weights.iter().enumerate().map(of).collect()
        };
        self.weights.iter().enumerate().map(of_class).collect()
    }
}

/// Parts of the step that are tried.
pub(super) const PARTS: [f64; 4] = [1.0, 0.5, 0.25, 0.125];

#[cfg(test)]
mod tests {
    use super::*;
    use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};

    #[test]
    fn a_leap_lowers_the_objective_and_keeps_signs() {
        let mut random = SplitMix::new(8, 0);
        let (samples, features, classes) = (40, 6, 3);
        let mut list = EdgeList { num_left: samples, num_right: features, ..EdgeList::default() };
        for sample in 0..samples {
            (0..features).for_each(|feature| list.push(sample as u32, feature as u32, random.unit() as f32 - 0.5));
        }
        let values = GroupedEdges::new(list, &[Side::Right]);
        let labels: Vec<u32> = (0..samples).map(|_| (3.0 * random.unit()) as u32).collect();
        let mut drawn = |zeros: f64| -> OfClasses {
            let mut one = || if random.unit() < zeros { 0.0 } else { random.unit() - 0.5 };
            (0..classes).map(|_| (0..features).map(|_| one()).collect()).collect()
        };
        for config in [Config { l1: 0.5, l2: 0.0 }, Config { l1: 0.1, l2: 1.0 }, Config { l1: 0.0, l2: 2.0 }] {
            let (weights, rounds) = (drawn(0.4), [drawn(0.0), drawn(0.0)]);
            let scores = scores_of_classes(&values, &weights).unwrap();
            let fit = FitOfClasses {
                values: &values,
                labels: &labels,
                sample_weights: &[],
                intercept: Some(5),
                weights: &weights,
                scores: &scores,
            };
            let (ahead, there) = fit.along(&config, &rounds).unwrap().unwrap();
            let after = FitOfClasses { weights: &ahead, scores: &there, ..fit };
            assert!(after.objective(&config) < fit.objective(&config));
            for (before, after) in weights.iter().zip(&ahead) {
                let held = |feature: &usize| config.l1 > 0.0 && *feature != 5;
                assert!(
                    (0..features)
                        .filter(held)
                        .all(|j| before[j] * after[j] >= 0.0 && (before[j] != 0.0 || after[j] == 0.0))
                );
            }
            // Without l1 nothing is held, and no small change of the step is better but for what is not quadratic.
            if config.l1 == 0.0 {
                let along = |round: usize, part: f64| {
                    let step = std::array::from_fn(|k| if k == round { part } else { 0.0 });
                    let weights = after.ahead(step, &config, &rounds);
                    let scores = scores_of_classes(&values, &weights).unwrap();
                    FitOfClasses { weights: &weights, scores: &scores, ..after }.objective(&config)
                };
                for round in 0..2 {
                    let slope = (along(round, 1e-4) - along(round, -1e-4)) / 2e-4;
                    assert!(slope.abs() < 0.05, "round {round}: {slope}");
                }
            }
        }
    }
}
