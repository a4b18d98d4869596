//! Leaps: after each iteration the best step in the plane of the iteration's change and of the last leap's, which makes of
//! slow block steps a method of conjugate directions.
//!
//! Where features nearly add up to each other, block steps zigzag along a valley. With p and q the change of the weights, and
//! of the margins, in the iteration and in the last leap, the objective's quadratic model in the plane takes sums over
//! samples and features alone:
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Aim`] | q of samples, p of features | the step in the plane |
//! | [`Plan`], each feature | its p, the step | where the step leads, how soon a weight is zero |
//! | [`Limit`] | these, the largest q | the part of the step that changes no sign and no margin by more than 1 |
//! | [`Leap`], each feature | the part | weight |
//! | [`super::Shift`], each value of a feature that changed | change of the weight | change of the margin |
//! | [`Land`], each sample | change of the margin | margin, cτ, cτ(1 − τ) |

use megagrid_stages::{Apply, Combine, Context, GlobalSync, MasterView, TotalView};
use serde::{Deserialize, Serialize};

use super::{BlockPg, Feature, Sample, State, Totals, Weight};

/// Sums of the model in the plane: of two directions a and b, what goes with a, b, aa, ab and bb.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Sums {
    /// Slope and curvature of the loss.
    loss: [f64; 5],
    /// Of l2/2 |w|², over l2.
    squares: [f64; 5],
    /// Slope of l1 |w|₁, over l1.
    sizes: [f64; 2],
    /// The largest changes of a margin.
    spans: [f64; 2],
    /// One over the part of the step at which the first weight is zero.
    hurry: f64,
}

impl Combine for Sums {
    fn combine(&mut self, from: &mut Self) {
        let mut from = std::mem::take(from);
        self.loss.combine(&mut from.loss);
        self.squares.combine(&mut from.squares);
        self.sizes.combine(&mut from.sizes);
        self.spans = [0, 1].map(|n| self.spans[n].max(from.spans[n]));
        self.hurry = self.hurry.max(from.hurry);
    }
}

fn products(slope: f64, curvature: f64, [a, b]: [f64; 2]) -> [f64; 5] {
    [slope * a, slope * b, curvature * a * a, curvature * a * b, curvature * b * b]
}

/// The step in the plane.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Heading {
    /// Along the iteration's change, and along the last leap's.
    step: [f64; 2],
    /// The largest change of a margin on the whole way.
    span: f64,
    /// The part of the way that is gone.
    part: f64,
}

/// Finds the step in the plane.
pub struct Aim;

impl GlobalSync<BlockPg> for Aim {
    const LEFT: bool = true;
    const RIGHT: bool = true;

    fn aggregate_left(&self, sample: TotalView<'_, Sample>, worker: &mut Totals) {
        let [slope, curvature] = sample.sync.map(f64::from);
        let [anchor, last] = sample.master.course;
        let q = [sample.master.margin - anchor, last];
        worker.leap.loss.combine(&mut products(-slope, curvature, q));
        worker.leap.spans = [0, 1].map(|n| worker.leap.spans[n].max(q[n].abs()));
    }

    fn aggregate_right(&self, feature: TotalView<'_, Feature>, worker: &mut Totals) {
        let (w, region) = (feature.sync.value, feature.master);
        if w != 0.0 {
            let p = [w - region.course[0], region.course[1]];
            worker.leap.sizes.combine(&mut p.map(|p| region.penalty * w.signum() * p));
            worker.leap.squares.combine(&mut products(region.penalty * w, region.penalty, p));
        }
    }

    fn apply(&self, total: Totals, state: &mut State) {
        let Sums { loss, squares, sizes, spans, .. } = total.leap;
        let [a, b, aa, ab, bb] =
            std::array::from_fn(|n| loss[n] + state.l2 * squares[n] + sizes.get(n).map_or(0.0, |size| state.l1 * size));
        let determinant = aa * bb - ab * ab;
        let step = if determinant > PARALLEL * aa * bb {
            [(ab * b - bb * a) / determinant, (ab * a - aa * b) / determinant]
        } else {
            [if aa > 0.0 { -a / aa } else { 0.0 }, 0.0]
        };
        let span = step[0].abs() * spans[0] + step[1].abs() * spans[1];
        state.heading = Heading { step, span, part: 0.0 };
    }
}

/// Finds where the step leads.
pub struct Plan;

impl Apply<BlockPg, Feature> for Plan {
    #[inline(always)]
    fn apply(&self, feature: MasterView<'_, Feature>, cx: &mut Context<'_, BlockPg>) {
        let (w, region, [a, b]) = (feature.sync.value, feature.master, cx.global.heading.step);
        region.ahead = if w == 0.0 { 0.0 } else { a * (w - region.course[0]) + b * region.course[1] };
        if region.ahead * w < 0.0 {
            cx.worker.leap.hurry = cx.worker.leap.hurry.max(-region.ahead / w);
        }
    }
}

/// Limits the step.
pub struct Limit;

impl GlobalSync<BlockPg> for Limit {
    fn apply(&self, total: Totals, state: &mut State) {
        let part = 1.0_f64.min(1.0 / total.leap.hurry).min(LONGEST / state.heading.span);
        state.heading.part = if part.is_finite() { part } else { 0.0 };
    }
}

/// Goes the step.
pub struct Leap;

impl Apply<BlockPg, Feature> for Leap {
    #[inline(always)]
    fn apply(&self, feature: MasterView<'_, Feature>, cx: &mut Context<'_, BlockPg>) {
        let Weight { value: w, resting } = *feature.sync;
        let goal = w + cx.global.heading.part * feature.master.ahead;
        let value = if goal.abs() < ROUNDING * w.abs() { 0.0 } else { goal };
        *feature.sync = Weight { value, resting };
        feature.master.course = [value, value - feature.master.course[0]];
    }
}

/// Brings all samples up to date with the leap.
pub struct Land;

impl Apply<BlockPg, Sample> for Land {
    const ALL: bool = true;

    #[inline(always)]
    fn apply(&self, sample: MasterView<'_, Sample>, _: &mut Context<'_, BlockPg>) {
        let state = sample.master;
        if *sample.delta != 0.0 {
            state.margin += *sample.delta;
            *sample.sync = state.slope();
        }
        state.course = [state.margin, state.margin - state.course[0]];
    }
}

/// Directions whose determinant is below this part of the product of their curvatures count as one.
const PARALLEL: f64 = 1e-10;
/// No leap changes a margin by more.
const LONGEST: f64 = 1.0;
/// A weight that a leap leaves with this part of itself is zero but for rounding.
const ROUNDING: f64 = 1e-9;
