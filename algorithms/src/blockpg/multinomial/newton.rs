//! The best step by all weights of all classes, where these are few.
//!
//! A sample's loss has by its scores the curvature diag(p) − p pᵀ, so that the model of the objective is a [`Quadratic`] of classes · features
//! weights: proximal Newton, as in [`newton`](crate::newton) of two classes.

use std::io;

use megagrid_partition::{Side, parallel};

use super::leap::PARTS;
use super::{FitOfClasses, OfClasses, scores_of_classes, target};
use crate::blockpg::Config;
use crate::newton::Quadratic;

/// Weights of all classes at most: their matrix takes 8 MiB.
const MOST_WEIGHTS: usize = 1024;
/// Products of a value with others of its sample, in all pairs of classes, at most, for each class.
const MOST_PRODUCTS: usize = 512;
/// Curvatures below this part of a sample's weight add nothing.
const LEAST_CURVATURE: f64 = 1e-12;

/// The values of each sample, by feature.
struct Rows {
    ends: Vec<usize>,
    values: Vec<(u32, f32)>,
}

impl Rows {
    fn of(&self, sample: usize) -> &[(u32, f32)] {
        let begin = sample.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[begin..self.ends[sample]]
    }
}

impl FitOfClasses<'_> {
    /// Returns the weights at the minimum of the model of the loss, or on the way there, with a lower objective, and their scores; `None` where there are
    /// none, or too many weights or products.
    pub(super) fn newton(&self, config: &Config) -> io::Result<Option<(OfClasses, OfClasses)>> {
        let (classes, features) = (self.scores.len(), self.values.num_vertices(Side::Right));
        if classes * features > MOST_WEIGHTS {
            return Ok(None);
        }
        let Some(rows) = self.rows()? else { return Ok(None) };
        let penalty = |at: usize| if self.is_free(at % features) { [0.0; 2] } else { [config.l1, config.l2] };
        let penalties: Vec<[f64; 2]> = (0..classes * features).map(penalty).collect();
        let (gradient, curvature) = self.derivatives(&rows);
        let mut model =
            Quadratic::new(curvature, &vec![0.0; gradient.len()], gradient, &penalties, &self.weights.concat());
        model.minimize();
        let (goal, objective) = (model.into_weights(), self.objective(config));
        for part in PARTS {
            let to = |(class, weights): (usize, &Vec<f64>)| -> Vec<f64> {
                let goal = &goal[class * features..][..features];
                weights
                    .iter()
                    .zip(goal)
                    .map(|(w, goal)| if part == 1.0 { *goal } else { w + part * (goal - w) })
                    .collect()
            };
            let weights: OfClasses = self.weights.iter().enumerate().map(to).collect();
            let scores = scores_of_classes(self.values, &weights)?;
            let there = FitOfClasses { weights: &weights, scores: &scores, ..*self };
            if there.objective(config) < objective {
                // The model does not tell what all classes share from what they do not.
                let weights = there.shifted(config);
                let scores = scores_of_classes(self.values, &weights)?;
                return Ok(Some((weights, scores)));
            }
        }
        Ok(None)
    }

    /// Collects the values of each sample, unless their products are too many.
    fn rows(&self) -> io::Result<Option<Rows>> {
        let (classes, features) = (self.scores.len(), self.values.num_vertices(Side::Right));
        let mut ends = vec![0; self.labels.len()];
        let each = |visit: &mut dyn FnMut(usize, u32, f32)| {
            (0..features).try_for_each(|feature| {
                self.values.visit_rows(Side::Right, feature..feature + 1, &mut |samples, values| {
                    samples.iter().zip(values).for_each(|(&sample, &x)| visit(sample as usize, feature as u32, x));
                })
            })
        };
        each(&mut |sample, _, _| ends[sample] += 1)?;
        let products = ends.iter().map(|values: &usize| values.pow(2) * classes.pow(2) / 4).sum::<usize>();
        if products > MOST_PRODUCTS * classes * ends.iter().sum::<usize>() {
            return Ok(None);
        }
        // Where the next value of each sample goes, which is its end when all are there.
        let mut begin = 0;
        for end in &mut ends {
            begin += std::mem::replace(end, begin);
        }
        let mut values = vec![(0, 0.0); begin];
        each(&mut |sample, feature, x| {
            values[ends[sample]] = (feature, x);
            ends[sample] += 1;
        })?;
        Ok(Some(Rows { ends, values }))
    }

    /// Returns the gradient of the loss by all weights, the features of a class next to each other, and its curvature, that of two weights in one of
    /// both places.
    fn derivatives(&self, rows: &Rows) -> (Vec<f64>, Vec<f64>) {
        let (classes, features) = (self.scores.len(), self.values.num_vertices(Side::Right));
        let (size, excess) = (classes * features, self.excess());
        let slopes = |class: usize| {
            let mut slopes = vec![0.0; features];
            for (sample, above) in excess[class].iter().enumerate() {
                let slope = self.weight(sample) * above;
                rows.of(sample).iter().for_each(|&(feature, x)| slopes[feature as usize] += slope * f64::from(x));
            }
            slopes
        };
        let pairs: Vec<[usize; 2]> = (0..classes).flat_map(|one| (0..=one).map(move |other| [one, other])).collect();
        let blocks = parallel::map(pairs.len(), |at| self.bends(rows, &excess, pairs[at]));
        let mut curvature = vec![0.0; size * size];
        for ([one, other], block) in pairs.into_iter().zip(&blocks) {
            for (feature, row) in block.chunks_exact(features.max(1)).enumerate() {
                curvature[(one * features + feature) * size + other * features..][..features].copy_from_slice(row);
            }
        }
        (parallel::map(classes, slopes).concat(), curvature)
    }

    /// Returns the curvature by the weights of two classes, `[features, features]`; of one class the lower triangle.
    fn bends(&self, rows: &Rows, excess: &[Vec<f64>], [one, other]: [usize; 2]) -> Vec<f64> {
        let features = self.values.num_vertices(Side::Right);
        let mut bends = vec![0.0; features * features];
        for (sample, &label) in self.labels.iter().enumerate() {
            let chance = |class: usize| excess[class][sample] + target(label, class);
            let (weight, own) = (self.weight(sample), if one == other { 1.0 } else { 0.0 });
            let bend = weight * chance(one) * (own - chance(other));
            if bend.abs() <= LEAST_CURVATURE * weight {
                continue;
            }
            let values = rows.of(sample);
            for (at, &(feature, x)) in values.iter().enumerate() {
                let others = if one == other { &values[..=at] } else { values };
                let (row, bent) = (&mut bends[feature as usize * features..][..features], bend * f64::from(x));
                if values.len() == features {
                    // Each feature is there, in order.
                    row.iter_mut().zip(others).for_each(|(sum, &(_, x))| *sum += bent * f64::from(x));
                } else {
                    others.iter().for_each(|&(feature, x)| row[feature as usize] += bent * f64::from(x));
                }
            }
        }
        bends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blockpg::Certificate;
    use megagrid_partition::{EdgeList, GroupedEdges, SplitMix};

    /// Three classes of samples, three correlated features and one that is 1.
    fn samples(number: usize) -> (GroupedEdges<f32>, Vec<u32>, Vec<f32>) {
        let mut random = SplitMix::new(4, 0);
        let mut list = EdgeList { num_left: number, num_right: 4, ..EdgeList::default() };
        let mut labels = Vec::new();
        for sample in 0..number {
            let all = random.unit() as f32;
            list.push(sample as u32, 3, 1.0);
            for feature in 0..3 {
                if random.unit() < 0.8 {
                    list.push(sample as u32, feature, all + 0.3 * random.unit() as f32);
                }
            }
            labels.push((2.99 * random.unit()) as u32);
        }
        let weights = (0..number).map(|_| 0.5 + random.unit() as f32).collect();
        (GroupedEdges::new(list, &[Side::Right]), labels, weights)
    }

    #[test]
    fn derivatives_are_those_of_differences() {
        let (values, labels, sample_weights) = samples(30);
        let loss = |weights: &OfClasses| {
            let scores = scores_of_classes(&values, weights).unwrap();
            FitOfClasses {
                values: &values,
                labels: &labels,
                sample_weights: &sample_weights,
                intercept: None,
                weights,
                scores: &scores,
            }
            .loss()
        };
        let weights: OfClasses =
            (0..3).map(|class| (0..4).map(|at| f64::from(class * at) * 0.2 - 0.3).collect()).collect();
        let scores = scores_of_classes(&values, &weights).unwrap();
        let fit = FitOfClasses {
            values: &values,
            labels: &labels,
            sample_weights: &sample_weights,
            intercept: None,
            weights: &weights,
            scores: &scores,
        };
        let (gradient, curvature) = fit.derivatives(&fit.rows().unwrap().unwrap());
        let moved = |steps: &[(usize, f64)]| {
            let mut weights = weights.clone();
            steps.iter().for_each(|&(at, step)| weights[at / 4][at % 4] += step);
            loss(&weights)
        };
        let h = 1e-3;
        for row in 0..12 {
            let slope = (moved(&[(row, h)]) - moved(&[(row, -h)])) / (2.0 * h);
            assert!((slope - gradient[row]).abs() < 1e-5, "{row}: {slope}, {}", gradient[row]);
            for column in 0..=row {
                let at = |a: f64, b: f64| moved(&[(row, a * h), (column, b * h)]);
                let bend = (at(1.0, 1.0) - at(1.0, -1.0) - at(-1.0, 1.0) + at(-1.0, -1.0)) / (4.0 * h * h);
                let found =
                    curvature[row * 12 + column] + if row == column { 0.0 } else { curvature[column * 12 + row] };
                assert!((bend - found).abs() < 1e-4, "{row}, {column}: {bend}, {found}");
            }
        }
    }

    #[test]
    fn a_few_steps_are_at_the_optimum() {
        let (values, labels, sample_weights) = samples(200);
        for (config, intercept) in [
            (Config { l1: 0.5, l2: 0.0 }, None),
            (Config { l1: 0.0, l2: 1.0 }, Some(3)),
            (Config { l1: 0.3, l2: 0.2 }, None),
        ] {
            let mut weights: OfClasses = vec![vec![0.0; 4]; 3];
            let mut scores = scores_of_classes(&values, &weights).unwrap();
            let data = FitOfClasses {
                values: &values,
                labels: &labels,
                sample_weights: &sample_weights,
                intercept,
                weights: &[],
                scores: &[],
            };
            for _ in 0..20 {
                let Some(found) = FitOfClasses { weights: &weights, scores: &scores, ..data }.newton(&config).unwrap()
                else {
                    break;
                };
                (weights, scores) = found;
            }
            let fit = FitOfClasses { weights: &weights, scores: &scores, ..data };
            let certificate = Certificate::of_classes(&fit, &config).unwrap();
            assert!(certificate.gap < 1e-9, "{certificate:?}");
        }
    }
}
