//! Descent: features step one after the other, each seeing the steps before its own, as in newGLMNET (Yuan, Ho and Lin 2012).
//!
//! A block of many features steps on the diagonal of the curvature, and where features are correlated its steps must be short. Here
//! a worker visits its features in random order; each is told its derivatives by its samples, takes the exact step of the model in its own
//! direction, and tells the samples (Bradley, Kyrola, Bickson and Guestrin 2011, with as many at a time as there are workers).
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Screen`], each value of a feature that rests, in a full iteration | slope | whether the feature is visited |
//! | [`Descend`], each feature, twice its values | slope, curvature | slope, the feature's step |
//! | [`DescendApart`] in its place, if workers descend apart | these, what the worker shifted the margin by | that, the feature's step |
//! | [`Merge`], each sample, after each pass of these | what workers shifted the margin by | slope |
//! | [`Take`], each feature that was visited | its steps | weight, trust region, whether it stays active |
//! | [`super::Settle`], leap, [`super::Survey`] | as with blocks | |
//!
//! **Two passes** over the features follow each other on one model, the second over those that did not rest before: exp and the leap
//! are then a smaller part of the work.
//!
//! **Workers** descend apart, each on its own features, and see each other's steps after each pass. A step is as short as if the worker's
//! own steps met σ times their curvature, where σ, from 1 to the number of workers, is what the last ones met together (Ma, Smith, Jaggi
//! et al. 2015, eq. 9). Where σ stays large, features are too much alike for that: one worker descends on all from then on, and the
//! others share what else an iteration does.
//!
//! **Line search.** Where the objective rises steeply at the end of an iteration, a part of its change is taken back in place of a leap.

use megagrid_stages::{
    Add, Apply, BatchOrder, BatchSize, Context, Exchange, Left, Master, MiniBatch, Read, Right, Sequence, Side, Stages,
    Update, mode,
};

use super::control::{State, Totals};
use super::leap::then_leap;
use super::program::{BlockPg, Feature, Sample};
use super::proximal::{Derivatives, Parabola, TINY, Weight};
use super::{Screen, Settle, Survey};

/// What stage functions see beside vertices and edges.
type Cx<'a> = Context<'a, BlockPg>;

/// Lets features step one after the other, all by one worker, who tells samples at once. `AGAIN`: on a model on which they have stepped once, those
/// that were awake before the iteration only.
pub struct Descend<const AGAIN: bool>;

impl<const AGAIN: bool> Exchange<BlockPg> for Descend<AGAIN> {
    type Left = mode::Update;
    type Right = mode::Add;
    const CHANGES_EDGES: bool = false;
    const GROUPED: bool = true;
    const WHOLE: bool = true;
    const BY_ONE: bool = true;

    #[inline(always)]
    fn is_idle(&self, cx: &Cx<'_>) -> bool {
        cx.global.apart
    }

    #[inline(always)]
    fn visits_resting(&self, cx: &Cx<'_>) -> bool {
        !AGAIN && cx.global.visits_resting()
    }

    #[inline(always)]
    fn is_active(&self, feature: Read<'_, Feature>, _: &Cx<'_>) -> bool {
        !AGAIN || feature.sync.is_active()
    }

    #[inline(always)]
    fn exchange(&self, sample: Update<'_, Sample>, feature: Add<'_, Feature>, x: &mut f32, _: &mut Cx<'_>) {
        feature.delta.meet::<AGAIN>(f64::from(*x), sample.sync.slope, sample.sync.curvature);
    }

    #[inline(always)]
    fn turn(&self, feature: Add<'_, Feature>, cx: &mut Cx<'_>) -> bool {
        step::<AGAIN>(feature, cx)
    }

    #[inline(always)]
    fn answer(&self, sample: Update<'_, Sample>, feature: Add<'_, Feature>, x: &mut f32, _: &mut Cx<'_>) {
        sample.sync.shift(f64::from(*x) * feature.delta.step);
    }
}

/// The same by all workers, each of which sees its own steps only.
pub struct DescendApart<const AGAIN: bool>;

impl<const AGAIN: bool> Exchange<BlockPg> for DescendApart<AGAIN> {
    type Left = mode::Add;
    type Right = mode::Add;
    const CHANGES_EDGES: bool = false;
    const GROUPED: bool = true;
    const WHOLE: bool = true;

    #[inline(always)]
    fn is_idle(&self, cx: &Cx<'_>) -> bool {
        !cx.global.apart
    }

    #[inline(always)]
    fn visits_resting(&self, cx: &Cx<'_>) -> bool {
        !AGAIN && cx.global.visits_resting()
    }

    #[inline(always)]
    fn is_active(&self, feature: Read<'_, Feature>, _: &Cx<'_>) -> bool {
        !AGAIN || feature.sync.is_active()
    }

    #[inline(always)]
    fn exchange(&self, sample: Add<'_, Sample>, feature: Add<'_, Feature>, x: &mut f32, cx: &mut Cx<'_>) {
        let Parabola { slope, curvature, .. } = *sample.sync;
        let slope = slope - cx.global.damping * curvature * *sample.delta;
        feature.delta.meet::<AGAIN>(f64::from(*x), slope, curvature);
    }

    #[inline(always)]
    fn turn(&self, feature: Add<'_, Feature>, cx: &mut Cx<'_>) -> bool {
        step::<AGAIN>(feature, cx)
    }

    #[inline(always)]
    fn answer(&self, sample: Add<'_, Sample>, feature: Add<'_, Feature>, x: &mut f32, _: &mut Cx<'_>) {
        *sample.delta += f64::from(*x) * feature.delta.step;
    }
}

/// Lets a feature step that has met its samples; tells whether it moved.
#[inline(always)]
fn step<const AGAIN: bool>(feature: Add<'_, Feature>, cx: &mut Cx<'_>) -> bool {
    let (weight, sums) = (feature.sync, feature.delta);
    if !AGAIN {
        weight.report(sums.gradient, cx.global, cx.worker);
    }
    let step = weight.descent(sums, cx.global);
    cx.worker.curvature += sums.curvature * step * step;
    cx.worker.fall[0] -= sums.gradient * step;
    (sums.step, sums.change) = (step, sums.change + step);
    if !AGAIN && weight.is_active() {
        // The second pass begins anew.
        sums.gradient = 0.0;
    }
    step != 0.0
}

impl Derivatives {
    /// Adds a value's part, at a sample with minus this slope and this curvature, which the first visit has added up already if it is
    /// met `AGAIN`.
    #[inline(always)]
    fn meet<const AGAIN: bool>(&mut self, x: f64, slope: f64, curvature: f64) {
        self.gradient -= x * slope;
        if !AGAIN {
            self.curvature += x * x * curvature;
        }
    }
}

impl Weight {
    /// Returns the step to where the model is least, within the trust region.
    #[inline(always)]
    fn descent(&self, sums: &Derivatives, state: &State) -> f64 {
        let (w, [l1, l2]) = (self.value + sums.change, self.penalties(state));
        let curvature = state.damping * sums.curvature + l2 + TINY;
        let least = curvature * w - sums.gradient - l2 * w;
        let goal = ((least - l1).max(0.0) + (least + l1).min(0.0)) / curvature;
        let trust = f64::from(self.trust);
        goal.clamp(w - trust, w + trust) - w
    }
}

impl State {
    /// Tells whether features that rest descend with the others.
    fn visits_resting(&self) -> bool {
        self.full && !self.screens
    }

    /// Damps steps by how much more curvature workers met together than each for itself, and ends descent apart where that is too much.
    pub(super) fn weigh(&mut self, total: &mut Totals) {
        let (curvature, met) = (std::mem::take(&mut total.curvature), std::mem::take(&mut total.met));
        let [alone, together] = std::mem::take(&mut total.fall);
        if !self.apart {
            return;
        }
        // What steps take away from those after them is half of the curvature that they share, damped.
        let own = curvature + 2.0 * (together - alone) / self.damping;
        let ratio = if own > 0.0 { (met / own).min(self.descending as f64) } else { 1.0 };
        // In the first iteration all go the same way.
        self.apart = self.is_first() || ratio <= MOST_MET;
        self.damping = if self.apart { (1.0 + DECAY * (self.damping - 1.0)).max(ratio) } else { 1.0 };
    }
}

/// Shows workers each other's steps.
pub struct Merge;

impl Apply<BlockPg, Sample> for Merge {
    #[inline(always)]
    fn is_active(&self, _: Read<'_, Sample>, cx: &Cx<'_>) -> bool {
        cx.global.apart
    }

    #[inline(always)]
    fn apply(&self, sample: Master<'_, Sample>, cx: &mut Cx<'_>) {
        let change = *sample.delta;
        cx.worker.met += sample.sync.curvature * change * change;
        cx.worker.fall[1] += sample.sync.shift(change);
    }
}

/// Takes the steps.
pub struct Take;

impl Apply<BlockPg, Feature> for Take {
    #[inline(always)]
    fn visits_resting(&self, cx: &Cx<'_>) -> bool {
        cx.global.visits_resting()
    }

    #[inline(always)]
    fn apply(&self, feature: Master<'_, Feature>, cx: &mut Cx<'_>) {
        let sums = feature.delta;
        let gradient = sums.gradient + sums.curvature * sums.step;
        *feature.sync = feature.master.went(*feature.sync, sums.change, gradient, cx.global);
    }
}

/// Tells samples how weights changed.
pub struct Tell;

impl Exchange<BlockPg> for Tell {
    type Left = mode::Add;
    type Right = mode::Read;
    const CHANGES_EDGES: bool = false;
    const GROUPED: bool = true;

    #[inline(always)]
    fn is_active(&self, feature: Read<'_, Feature>, _: &Cx<'_>) -> bool {
        *feature.mirror != 0.0
    }

    #[inline(always)]
    fn exchange(&self, sample: Add<'_, Sample>, feature: Read<'_, Feature>, x: &mut f32, _: &mut Cx<'_>) {
        *sample.delta += f64::from(*x) * *feature.mirror;
    }
}

/// Returns the stages of an iteration, features being cut into blocks of about `values` values, which are passed over twice in turn, by
/// workers apart or by one: [`State::apart`] says which. One process.
pub fn descent(values: u64) -> Sequence<BlockPg, impl Stages<BlockPg>> {
    let blocks = MiniBatch { size: BatchSize::EdgesOf(Side::Right, values), order: BatchOrder::RandomBlocks };
    let passes = Sequence::new()
        .exchange(Screen)
        .mini_batch(blocks, |b| {
            let b = b.exchange(DescendApart::<false>).apply(Left, Merge).exchange(DescendApart::<true>);
            b.exchange(Descend::<false>).exchange(Descend::<true>)
        })
        .apply(Right, Take);
    then_leap(passes.apply(Left, Settle), Tell).global_sync(Survey)
}

/// How much of the damping above 1 is left after an iteration.
const DECAY: f64 = 0.8;
/// Where workers' steps meet more than this times the curvature that each meets, one worker is quicker.
const MOST_MET: f64 = 1.3;
