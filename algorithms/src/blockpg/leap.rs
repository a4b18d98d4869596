//! Leaps: after each iteration the best step in the space of the last few iterations' changes, which makes of slow block
//! steps a method of conjugate directions.
//!
//! Where features nearly add up to each other, block steps zigzag along a valley. With p_k and q_k the changes of the weights,
//! and of the margins, since the last leap and from leap to leap before it, the objective's quadratic model in the space that
//! they span takes sums over samples and features alone:
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`super::Settle`], each sample | its q | sums over samples |
//! | [`Aim`] | these, p of features | the step in the space |
//! | [`Plan`], each feature | its p, the step | where the step leads, how soon a weight is zero |
//! | [`Limit`] | these, the largest q | the part of the step that changes no sign and no margin by more than 1 |
//! | [`Leap`], each feature | the part | weight |
//! | [`super::Shift`], each value of a feature that changed | change of the weight | change of the margin |
//! | [`Land`], each sample | change of the margin | margin, cτ, cτ(1 − τ) |

use megagrid_stages::{
    Aggregate, Apply, Combine, Context, GlobalSync, Left, Master, Read, Right, Sequence, Stages, Total,
};
use serde::{Deserialize, Serialize};

use super::{BlockPg, Feature, Parabola, Sample, Shift, State, Totals, Weight};

/// Changes that span the space of a leap: the one since the last leap, and those before it.
pub(super) const DIRECTIONS: usize = 5;

/// A quadratic model in the space of a leap.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Model {
    /// Slope along each direction.
    slopes: [f64; DIRECTIONS],
    /// Curvature of pairs of directions, the second not after the first: the others are the same.
    curvatures: [[f64; DIRECTIONS]; DIRECTIONS],
}

impl Model {
    /// Adds a vertex with a slope and a curvature, and what it changed by in each direction.
    #[inline(always)]
    fn add(&mut self, slope: f64, curvature: f64, changes: [f32; DIRECTIONS]) {
        let changes = changes.map(f64::from);
        for k in 0..DIRECTIONS {
            self.slopes[k] += slope * changes[k];
            for l in 0..=k {
                self.curvatures[k][l] += curvature * changes[k] * changes[l];
            }
        }
    }

    /// Returns the curvatures of all pairs.
    fn matrix(&self) -> [[f64; DIRECTIONS]; DIRECTIONS] {
        std::array::from_fn(|k| std::array::from_fn(|l| self.curvatures[k.max(l)][k.min(l)]))
    }

    /// Returns where the model is least in the directions that are `used`, by elimination. Another that these make up but for
    /// rounding is left out.
    fn minimum(&self, mut used: [bool; DIRECTIONS]) -> [f64; DIRECTIONS] {
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
struct Lost {
    /// Its slopes.
    slopes: [f64; DIRECTIONS],
    /// Its squared lengths.
    squares: [f64; DIRECTIONS],
}

impl Lost {
    #[inline(always)]
    fn add(&mut self, gradient: f64, course: [f32; DIRECTIONS]) {
        let course = course.map(f64::from);
        self.slopes.combine(&mut course.map(|change| gradient * change));
        self.squares.combine(&mut course.map(|change| change * change));
    }
}

/// What a leap is decided from.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Sums {
    loss: Model,
    /// Of |w|²/2, the penalty factors included.
    squares: Model,
    /// Slopes of |w|₁, the penalty factors included.
    sizes: [f64; DIRECTIONS],
    /// Weights that have become zero do not leap: their part of the directions.
    lost: Lost,
    /// The largest changes of a margin.
    spans: [f64; DIRECTIONS],
    /// One over the part of the step at which the first weight is zero.
    hurry: f64,
}

impl Sums {
    /// Adds a sample: its loss near the margin, and what the margin changed by in each direction.
    #[inline(always)]
    pub(super) fn add(&mut self, loss: Parabola, changes: [f32; DIRECTIONS]) {
        self.loss.add(-f64::from(loss.slope), f64::from(loss.curvature), changes);
        self.spans = std::array::from_fn(|k| self.spans[k].max(f64::from(changes[k].abs())));
    }

    /// Tells which directions are still about the same without the weights that have become zero.
    fn kept(&self) -> [bool; DIRECTIONS] {
        std::array::from_fn(|k| self.lost.squares[k] <= MOST_LOST * self.squares.curvatures[k][k])
    }

    /// Returns the model of the whole objective.
    fn model(&self, l1: f64, l2: f64) -> Model {
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
    }
}

/// The step in the space.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Heading {
    /// Along each direction.
    step: [f64; DIRECTIONS],
    /// The largest change of a margin on the whole way, and in the directions themselves.
    span: [f64; 2],
    /// The part of the way that is gone.
    part: f64,
}

/// Finds the step in the space.
pub struct Aim;

impl Aggregate<BlockPg, Feature> for Aim {
    #[inline(always)]
    fn aggregate(&self, feature: Total<'_, Feature>, worker: &mut Totals) {
        let (w, region) = (feature.sync.value, feature.master);
        if feature.sync.resting != 0 {
            return;
        }
        let (course, sums) = (region.course, &mut worker.leap);
        if w != 0.0 {
            sums.squares.add(region.penalty * w, region.penalty, course);
            sums.sizes.combine(&mut course.map(|change| region.penalty * w.signum() * f64::from(change)));
        } else {
            sums.lost.add(f64::from(region.gradient), course);
        }
    }
}

impl GlobalSync<BlockPg> for Aim {
    fn apply(&self, total: Totals, state: &mut State) {
        let step = total.leap.model(state.l1, state.l2).minimum(total.leap.kept());
        let spans = total.leap.spans;
        let whole = step.iter().zip(spans).map(|(step, span)| step.abs() * span).sum();
        let span = [whole, spans.into_iter().fold(0.0, f64::max)];
        state.heading = Heading { step, span, part: 0.0 };
    }
}

/// Finds where the step leads.
pub struct Plan;

impl Apply<BlockPg, Feature> for Plan {
    #[inline(always)]
    fn is_active(&self, feature: Read<'_, Feature>, _: &Context<'_, BlockPg>) -> bool {
        feature.sync.value != 0.0
    }

    #[inline(always)]
    fn apply(&self, feature: Master<'_, Feature>, cx: &mut Context<'_, BlockPg>) {
        let (w, region) = (feature.sync.value, feature.master);
        let along = |(step, change): (&f64, f32)| step * f64::from(change);
        region.ahead = cx.global.heading.step.iter().zip(region.course).map(along).sum();
        if region.ahead * w < 0.0 {
            cx.worker.leap.hurry = cx.worker.leap.hurry.max(-region.ahead / w);
        }
    }
}

/// Limits the step.
pub struct Limit;

impl GlobalSync<BlockPg> for Limit {
    fn apply(&self, total: Totals, state: &mut State) {
        let [whole, known] = state.heading.span;
        let longest = LONGEST.min(FARTHEST * known);
        let part = 1.0_f64.min(1.0 / total.leap.hurry).min(longest / whole);
        state.heading.part = if part.is_finite() { part } else { 0.0 };
    }
}

/// Goes the step.
pub struct Leap;

impl Apply<BlockPg, Feature> for Leap {
    /// A feature that rests has not changed in any direction.
    #[inline(always)]
    fn is_active(&self, feature: Read<'_, Feature>, _: &Context<'_, BlockPg>) -> bool {
        feature.sync.resting == 0
    }

    #[inline(always)]
    fn apply(&self, feature: Master<'_, Feature>, cx: &mut Context<'_, BlockPg>) {
        let Weight { value: w, resting } = *feature.sync;
        let ahead = if w == 0.0 { 0.0 } else { cx.global.heading.part * feature.master.ahead };
        let goal = w + ahead;
        let value = if goal.abs() < ROUNDING * w.abs() { 0.0 } else { goal };
        *feature.sync = Weight { value, resting };
        feature.master.course = turned(feature.master.course, value - w);
    }
}

/// Brings all samples up to date with the leap.
pub struct Land;

impl Apply<BlockPg, Sample> for Land {
    #[inline(always)]
    fn apply(&self, sample: Master<'_, Sample>, _: &mut Context<'_, BlockPg>) {
        if sample.sync.shift != 0.0 {
            *sample.sync = sample.master.settle(sample.sync.shift);
        }
        sample.master.course = turned(sample.master.course, 0.0);
    }
}

/// Lets a leap follow what a sequence does.
pub fn then_leap<S: Stages<BlockPg>>(
    sequence: Sequence<BlockPg, S>,
) -> Sequence<BlockPg, impl Stages<BlockPg> + use<S>> {
    sequence
        .global_sync_over(Right, Aim)
        .apply(Right, Plan)
        .global_sync(Limit)
        .apply(Right, Leap)
        .exchange(Shift)
        .apply(Left, Land)
}

/// Begins a new direction: the last leap's change joins the one that led to it, the oldest is forgotten.
#[inline(always)]
fn turned(course: [f32; DIRECTIONS], change: f64) -> [f32; DIRECTIONS] {
    let [first, second, third, fourth, _] = course;
    [0.0, first + change as f32, second, third, fourth]
}

/// A direction is left out if weights that have become zero have more than this part of its squared length.
const MOST_LOST: f64 = 0.1;
/// Directions with less than this part of their curvature beside the others' are made up of them.
const DEPENDENT: f64 = 1e-9;
/// No leap changes a margin by more.
const LONGEST: f64 = 1.0;
/// Nor by more than this multiple of what the directions themselves changed: beyond, their rounding counts.
const FARTHEST: f64 = 100.0;
/// A weight that a leap leaves with this part of itself is zero but for rounding.
const ROUNDING: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_slopes_at_the_minimum_even_if_directions_depend_on_each_other() {
        let mut model = Model::default();
        for n in 0..40_u16 {
            let value = |k: u16| f32::from((n * 7 + k * 13 + n * n * k) % 17) - 8.0;
            let [a, b, c] = [value(1), value(2), value(3)];
            // The third is the sum of the first two, the fifth is nothing.
            model.add(f64::from(value(4)), 1.0 + f64::from(n), [a, b, a + b, c, 0.0]);
        }
        let step = model.minimum([true; DIRECTIONS]);
        for (slope, row) in model.slopes.iter().zip(model.matrix()) {
            let there = slope + row.iter().zip(step).map(|(curvature, step)| curvature * step).sum::<f64>();
            assert!(there.abs() < 1e-9, "{there} at {step:?}");
        }
        assert_eq!([step[2], step[4]], [0.0, 0.0]);
    }
}
