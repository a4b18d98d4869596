//! The space of a leap: the last few iterations' changes, and the objective's quadratic model in it.

use megagrid_stages::Combine;
use serde::{Deserialize, Serialize};

/// Changes that span the space of a leap: the one since the last leap, and those before it.
pub(super) const DIRECTIONS: usize = 5;

/// A quadratic model in the space of a leap.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Model {
    /// Slope along each direction.
    slopes: [f64; DIRECTIONS],
    /// Curvature of pairs of directions, the second not after the first: others are the same, and need not be there.
    curvatures: [[f64; DIRECTIONS]; DIRECTIONS],
}

impl Model {
    /// Adds a vertex with a slope and a curvature, and what it changed by in each direction.
    #[inline(always)]
    pub(super) fn add(&mut self, slope: f64, curvature: f64, changes: [f64; DIRECTIONS]) {
        const LAST: usize = DIRECTIONS - 1;
        for k in 0..DIRECTIONS {
            self.slopes[k] += slope * changes[k];
            let scaled = curvature * changes[k];
            // As many of each row as fit a vector, half of which count.
            for (sum, change) in self.curvatures[k].iter_mut().zip(&changes[..LAST]) {
                *sum += scaled * change;
            }
        }
        self.curvatures[LAST][LAST] += curvature * changes[LAST] * changes[LAST];
    }

    /// Returns the curvatures of all pairs.
    fn matrix(&self) -> [[f64; DIRECTIONS]; DIRECTIONS] {
        std::array::from_fn(|k| std::array::from_fn(|l| self.curvatures[k.max(l)][k.min(l)]))
    }

    /// Returns where the model is least in the directions that are `used`, by elimination. Another that these make up but for
    /// rounding is left out.
    pub(super) fn minimum(&self, mut used: [bool; DIRECTIONS]) -> [f64; DIRECTIONS] {
        let (mut matrix, mut step) = (self.matrix(), self.slopes.map(|slope| -slope));
        for k in 0..DIRECTIONS {
            let (pivot, above) = (matrix[k][k], matrix[k]);
            used[k] &= pivot > DEPENDENT * self.curvatures[k][k];
            for row in (0..DIRECTIONS).filter(|&row| used[k] && row != k) {
                let factor = matrix[row][k] / pivot;
                matrix[row].iter_mut().zip(above).for_each(|(entry, above)| *entry -= factor * above);
                step[row] -= factor * step[k];
            }
        }
        std::array::from_fn(|k| if used[k] { step[k] / matrix[k][k] } else { 0.0 })
    }
}

impl Combine for Model {
    fn combine(&mut self, from: &mut Self) {
        self.slopes.combine(&mut from.slopes);
        self.curvatures.combine(&mut from.curvatures);
    }
}

/// The part of the directions that weights have which have become zero since.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Lost {
    /// Its slopes.
    slopes: [f64; DIRECTIONS],
    /// Its squared lengths.
    squares: [f64; DIRECTIONS],
}

impl Lost {
    #[inline(always)]
    pub(super) fn add(&mut self, gradient: f64, course: [f64; DIRECTIONS]) {
        self.slopes.combine(&mut course.map(|change| gradient * change));
        self.squares.combine(&mut course.map(|change| change * change));
    }
}

/// What a leap is decided from.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Sums {
    loss: Model,
    /// Of |w|²/2, the penalty factors included.
    pub(super) squares: Model,
    /// Slopes of |w|₁, the penalty factors included.
    pub(super) sizes: [f64; DIRECTIONS],
    /// Weights that have become zero do not leap: their part of the directions.
    pub(super) lost: Lost,
    /// The largest changes of a margin.
    pub(super) spans: [f64; DIRECTIONS],
    /// One over the part of the step at which the first weight is zero, or too far beyond it.
    pub(super) hurry: f64,
    /// Slope of the objective along the iteration's own change, where it began and where it ended.
    pub(super) ends: [f64; 2],
    /// The part of |w|₁ of these slopes.
    pub(super) sizes_at_ends: [f64; 2],
}

impl Sums {
    /// Returns the part of the iteration's own change to go back by, if it went too far: the objective is convex, and where it rises
    /// at the end half as steeply as it fell at the beginning, or more, the change ends where a straight line between both slopes is zero.
    pub(super) fn retreat(&self, l1: f64) -> Option<f64> {
        let [begin, end] = std::array::from_fn(|k| self.ends[k] + l1 * self.sizes_at_ends[k]);
        (begin < 0.0 && end > TOO_FAR * -begin).then(|| end / (end - begin))
    }

    /// Adds a sample: minus the slope and the curvature of its loss at the margin, and what the margin changed by in each
    /// direction.
    #[inline(always)]
    pub(super) fn add(&mut self, slope: f64, curvature: f64, changes: [f64; DIRECTIONS]) {
        self.loss.add(-slope, curvature, changes);
        // `f64::max` asks whether either is a number; here only a span is one for sure.
        let longer = |span: f64, change: f64| if change > span { change } else { span };
        self.spans = std::array::from_fn(|k| longer(self.spans[k], changes[k].abs()));
    }

    /// Tells which directions are still about the same without the weights that have become zero.
    pub(super) fn kept(&self) -> [bool; DIRECTIONS] {
        std::array::from_fn(|k| self.lost.squares[k] <= MOST_LOST * self.squares.curvatures[k][k])
    }

    /// Returns the model of the whole objective.
    pub(super) fn model(&self, l1: f64, l2: f64) -> Model {
        let Self { loss, squares, sizes, lost, .. } = self;
        Model {
            slopes: std::array::from_fn(|k| loss.slopes[k] - lost.slopes[k] + l1 * sizes[k] + l2 * squares.slopes[k]),
            curvatures: std::array::from_fn(|k| {
                std::array::from_fn(|l| loss.curvatures[k][l] + l2 * squares.curvatures[k][l])
            }),
        }
    }
}

impl Combine for Sums {
    fn combine(&mut self, from: &mut Self) {
        let mut from = std::mem::take(from);
        self.loss.combine(&mut from.loss);
        self.squares.combine(&mut from.squares);
        self.sizes.combine(&mut from.sizes);
        self.lost.slopes.combine(&mut from.lost.slopes);
        self.lost.squares.combine(&mut from.lost.squares);
        self.spans = std::array::from_fn(|k| self.spans[k].max(from.spans[k]));
        self.hurry = self.hurry.max(from.hurry);
        self.ends.combine(&mut from.ends);
        self.sizes_at_ends.combine(&mut from.sizes_at_ends);
    }
}

/// The step in the space.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Heading {
    /// Along each direction.
    pub(super) step: [f64; DIRECTIONS],
    /// The largest change of a margin on the whole way, and in the directions themselves.
    pub(super) span: [f64; 2],
    /// The part of the way that is gone.
    pub(super) part: f64,
    /// Whether it goes back, along the iteration's own change.
    pub(super) retreats: bool,
}

/// An iteration went too far if the objective rises at its end by more than this part of how it fell at its beginning.
const TOO_FAR: f64 = 0.5;
/// A direction is left out if weights that have become zero have more than this part of its squared length.
const MOST_LOST: f64 = 0.1;
/// Directions with less than this part of their curvature beside the others' are made up of them.
const DEPENDENT: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_slopes_at_the_minimum_even_if_directions_depend_on_each_other() {
        let mut model = Model::default();
        for n in 0..40_u16 {
            let value = |k: u16| f64::from((n * 7 + k * 13 + n * n * k) % 17) - 8.0;
            let [a, b, c] = [value(1), value(2), value(3)];
            // The third is the sum of the first two, the fifth is nothing.
            model.add(value(4), 1.0 + f64::from(n), [a, b, a + b, c, 0.0]);
        }
        let step = model.minimum([true; DIRECTIONS]);
        for (slope, row) in model.slopes.iter().zip(model.matrix()) {
            let there = slope + row.iter().zip(step).map(|(curvature, step)| curvature * step).sum::<f64>();
            assert!(there.abs() < 1e-9, "{there} at {step:?}");
        }
        assert_eq!([step[2], step[4]], [0.0, 0.0]);
    }
}
