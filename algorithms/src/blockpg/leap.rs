//! Leaps: after each iteration the best step in the space of the last few iterations' changes, which makes of slow block
//! steps a method of conjugate directions.
//!
//! Where features nearly add up to each other, block steps zigzag along a valley. With p_k and q_k the changes of the weights,
//! and of the margins, since the last leap and from leap to leap before it, the objective's quadratic model in the space that
//! they span takes sums over samples and features only:
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
//!
//! Where features descend one after the other, signs end no leap: a weight that would change its sign becomes zero. Of hundreds of weights one is
//! near zero almost always, and the leap would end after a small part of its way. What it does to the others the next iteration mends, or takes
//! back. No weight is to go farther beyond zero than margins have changed lately: where features nearly add up to nothing, weights could go
//! anywhere, and a run would leave its optimum.

use super::control::{State, Totals};
use super::directions::{DIRECTIONS, Heading};
use super::program::{BlockPg, Feature, Sample};
use megagrid_stages::{
    Aggregate, Apply, Combine, Context, Exchange, GlobalSync, Left, Master, Read, Right, Sequence, Stages, Total,
};

/// Finds the step in the space.
pub struct Aim;

impl Aggregate<BlockPg, Feature> for Aim {
    #[inline(always)]
    fn aggregate(&self, feature: Total<'_, Feature>, worker: &mut Totals) {
        let (w, penalty, region) = (feature.sync.value, feature.sync.penalty(), feature.master);
        let (course, sums) = (region.course, &mut worker.leap);
        let (first, before) = (course[0], w - course[0]);
        let slope = |from: f64, leaving: f64| if from == 0.0 { leaving * first.abs() } else { from.signum() * first };
        sums.sizes_at_ends.combine(&mut [slope(before, 1.0), slope(w, -1.0)].map(|slope| penalty * slope));
        if w != 0.0 {
            sums.squares.add(penalty * w, penalty, course);
            sums.sizes.combine(&mut course.map(|change| penalty * w.signum() * change));
        } else {
            sums.lost.add(region.gradient, course);
        }
    }
}

impl GlobalSync<BlockPg> for Aim {
    fn apply(&self, mut total: Totals, state: &mut State) {
        state.weigh(&mut total);
        let leap = std::mem::take(&mut total.leap);
        state.found.combine(&mut total);
        if let Some(back) = leap.retreat(state.l1).filter(|_| state.descending > 0) {
            let step = std::array::from_fn(|k| if k == 0 { -back } else { 0.0 });
            state.heading = Heading { step, span: [0.0; 2], part: 1.0, retreats: true };
            return;
        }
        if state.apart && state.is_first() {
            // Before they saw each other's steps all workers went the same way: that is no direction to leap in.
            state.heading = Heading::default();
            return;
        }
        let step = leap.model(state.l1, state.l2).minimum(leap.kept());
        let spans = leap.spans;
        let whole = step.iter().zip(spans).map(|(step, span)| step.abs() * span).sum();
        let span = [whole, spans.into_iter().fold(0.0, f64::max)];
        state.heading = Heading { step, span, part: 0.0, retreats: false };
    }
}

/// Finds where the step leads.
pub struct Plan;

impl Apply<BlockPg, Feature> for Plan {
    #[inline(always)]
    fn is_active(&self, feature: Read<'_, Feature>, cx: &Context<'_, BlockPg>) -> bool {
        feature.sync.value != 0.0 || cx.global.heading.retreats
    }

    #[inline(always)]
    fn apply(&self, feature: Master<'_, Feature>, cx: &mut Context<'_, BlockPg>) {
        let (w, region) = (feature.sync.value, feature.master);
        let along = |(step, change): (&f64, f64)| step * change;
        region.ahead = cx.global.heading.step.iter().zip(region.course).map(along).sum();
        if region.ahead * w < 0.0 {
            let beyond = (region.ahead.abs() - w.abs()) * region.reach / cx.global.heading.span[1];
            let hurry = if cx.global.descending > 0 { beyond } else { -region.ahead / w };
            cx.worker.leap.hurry = cx.worker.leap.hurry.max(hurry);
        }
    }
}

/// Limits the step.
pub struct Limit;

impl GlobalSync<BlockPg> for Limit {
    fn apply(&self, total: Totals, state: &mut State) {
        if state.heading.retreats {
            return;
        }
        let [whole, known] = state.heading.span;
        let longest = if state.descending > 0 { LONGEST_CLIPPED } else { LONGEST }.min(FARTHEST * known);
        let part = 1.0_f64.min(1.0 / total.leap.hurry).min(longest / whole);
        state.heading.part = if part.is_finite() { part } else { 0.0 };
    }
}

/// Goes the step. A feature that rests has not changed in any direction.
pub struct Leap;

impl Apply<BlockPg, Feature> for Leap {
    #[inline(always)]
    fn apply(&self, feature: Master<'_, Feature>, cx: &mut Context<'_, BlockPg>) {
        let (w, heading) = (feature.sync.value, &cx.global.heading);
        let leaps = w != 0.0 || heading.retreats;
        let ahead = if leaps { heading.part * feature.master.ahead } else { 0.0 };
        let goal = w + ahead;
        let crosses = w * goal < 0.0 && feature.sync.free == 0 && !heading.retreats;
        let value = if crosses || goal.abs() < ROUNDING * w.abs() { 0.0 } else { goal };
        feature.sync.value = value;
        feature.master.course = turned(feature.master.course, value - w);
    }
}

/// Brings all samples up to date with the leap.
pub struct Land;

impl Apply<BlockPg, Sample> for Land {
    #[inline(always)]
    fn apply(&self, sample: Master<'_, Sample>, _: &mut Context<'_, BlockPg>) {
        let shift = sample.sync.shift + *sample.delta;
        if shift != 0.0 {
            *sample.sync = sample.master.settle(shift);
        }
        sample.master.course = turned(sample.master.course, 0.0);
    }
}

/// Lets a leap follow what a sequence does; `tell` tells samples how weights changed.
pub fn then_leap<S: Stages<BlockPg>, E: Exchange<BlockPg>>(
    sequence: Sequence<BlockPg, S>,
    tell: E,
) -> Sequence<BlockPg, impl Stages<BlockPg> + use<S, E>> {
    sequence
        .global_sync_over(Right, Aim)
        .apply(Right, Plan)
        .global_sync(Limit)
        .apply(Right, Leap)
        .exchange(tell)
        .apply(Left, Land)
}

/// Begins a new direction: the last leap's change joins the one that led to it, the oldest is forgotten.
#[inline(always)]
fn turned(course: [f64; DIRECTIONS], change: f64) -> [f64; DIRECTIONS] {
    let [first, second, third, fourth, _] = course;
    [0.0, first + change, second, third, fourth]
}

/// No leap changes a margin by more.
const LONGEST: f64 = 1.0;
/// Where weights become zero in place of changing their sign.
const LONGEST_CLIPPED: f64 = 5.0;
/// Nor by more than this multiple of what the directions themselves changed: beyond, their rounding counts.
const FARTHEST: f64 = 100.0;
/// A weight that a leap leaves with this part of itself is zero but for rounding.
const ROUNDING: f64 = 1e-9;
