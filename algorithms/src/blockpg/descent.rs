//! Descent: features step one after the other, each seeing the steps before its own, as in newGLMNET (Yuan, Ho and Lin 2012).
//!
//! A block of many features steps on the diagonal of the curvature, and where features are correlated its steps must be short. Here
//! a worker visits its features in random order; each is told its derivatives by its samples, takes the exact step of the model in its own
//! direction, and tells the samples (Bradley, Kyrola, Bickson and Guestrin 2011, with as many at a time as there are workers).
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Descend`], each feature, twice its values | slope, curvature, what the worker shifted the margin by | that, the feature's step |
//! | [`Merge`], each sample, several times a pass | what all workers shifted it by | slope, change of the margin |
//! | [`Weigh`], then | curvature met along all steps, and along each worker's | damping of the next steps |
//! | [`Take`], each feature that was visited, once per pass | its step | weight, trust region, whether it stays active |
//! | [`super::Settle`], leap, [`super::Survey`] | as with blocks | |
//!
//! **Two passes** over the features follow each other on one model: exp and the leap are then a smaller part of the work.
//!
//! **Workers** do not see each other's steps until they are merged. A step is as short as if the worker's own steps met σ times their
//! curvature, where σ, from 1 to the number of workers, is what the last ones met together (Ma, Smith, Jaggi et al. 2015, eq. 9).
//!
//! **Line search.** Where the objective rises steeply at the end of an iteration, a part of its change is taken back in place of a leap.

use megagrid_stages::{
    Add, Apply, BatchOrder, BatchSize, Combine, Context, Exchange, GlobalSync, Left, Master, MiniBatch, Read, Right,
    Sequence, Side, Stages, mode,
};

use super::control::{State, Totals};
use super::leap::then_leap;
use super::program::{BlockPg, Feature, Sample};
use super::proximal::{Derivatives, TINY, Weight};
use super::{Settle, Survey};

/// What stage functions see beside vertices and edges.
type Cx<'a> = Context<'a, BlockPg>;

/// Lets features step one after the other.
pub struct Descend {
    /// Whether it is not the iteration's first pass: then features that rest are passed by.
    pub again: bool,
}

impl Exchange<BlockPg> for Descend {
    type Left = mode::Add;
    type Right = mode::Add;
    const GROUPED: bool = true;
    const WHOLE: bool = true;

    #[inline(always)]
    fn is_active(&self, feature: Read<'_, Feature>, cx: &Cx<'_>) -> bool {
        feature.sync.resting == 0 || cx.global.full && !self.again
    }

    #[inline(always)]
    fn exchange(&self, sample: Add<'_, Sample>, feature: Add<'_, Feature>, x: &mut f32, cx: &mut Cx<'_>) {
        let (x, model) = (f64::from(*x), sample.sync);
        feature.delta.gradient -= x * (model.slope - cx.global.damping * model.curvature * *sample.delta);
        feature.delta.curvature += x * x * model.curvature;
    }

    #[inline(always)]
    fn turn(&self, feature: Add<'_, Feature>, cx: &mut Cx<'_>) -> bool {
        let change = feature.sync.descent(feature.delta, cx.global);
        feature.delta.change = change;
        cx.worker.curvature += feature.delta.curvature * change * change;
        cx.worker.fall[0] -= feature.delta.gradient * change;
        change != 0.0
    }

    #[inline(always)]
    fn answer(&self, sample: Add<'_, Sample>, feature: Add<'_, Feature>, x: &mut f32, _: &mut Cx<'_>) {
        *sample.delta += f64::from(*x) * feature.delta.change;
    }
}

impl Weight {
    /// Returns the step to where the model is least, within the trust region.
    #[inline(always)]
    fn descent(&self, sums: &Derivatives, state: &State) -> f64 {
        let (w, penalty) = (self.value, if self.free == 0 { 1.0 } else { 0.0 });
        let (l1, l2) = (penalty * state.l1, penalty * state.l2);
        let curvature = state.damping * sums.curvature + l2 + TINY;
        let least = curvature * w - sums.gradient - l2 * w;
        let goal = ((least - l1).max(0.0) + (least + l1).min(0.0)) / curvature;
        let trust = f64::from(self.trust);
        goal.clamp(w - trust, w + trust) - w
    }
}

/// Lets workers see each other's steps.
pub struct Merge;

impl Apply<BlockPg, Sample> for Merge {
    #[inline(always)]
    fn apply(&self, sample: Master<'_, Sample>, cx: &mut Cx<'_>) {
        let shift = *sample.delta;
        cx.worker.met += sample.sync.curvature * shift * shift;
        cx.worker.fall[1] += sample.sync.shift(shift);
    }
}

/// Damps steps by how much more curvature workers met together than each for itself.
pub struct Weigh;

impl GlobalSync<BlockPg> for Weigh {
    fn apply(&self, mut total: Totals, state: &mut State) {
        let (curvature, met) = (std::mem::take(&mut total.curvature), std::mem::take(&mut total.met));
        let [alone, together] = std::mem::take(&mut total.fall);
        state.found.combine(&mut total);
        // What steps take away from those after them is half of the curvature that they share, damped.
        let own = curvature + 2.0 * (together - alone) / state.damping;
        if state.descending > 1 {
            let ratio = if own > 0.0 { (met / own).min(state.descending as f64) } else { 1.0 };
            state.damping = (1.0 + DECAY * (state.damping - 1.0)).max(ratio);
        }
    }
}

/// Takes the steps.
pub struct Take {
    /// Whether it is not the iteration's first pass: the first tells what is to be known of the weights before it.
    pub again: bool,
}

impl Apply<BlockPg, Feature> for Take {
    #[inline(always)]
    fn is_active(&self, feature: Read<'_, Feature>, cx: &Cx<'_>) -> bool {
        feature.sync.resting == 0 || cx.global.full && !self.again
    }

    #[inline(always)]
    fn apply(&self, feature: Master<'_, Feature>, cx: &mut Cx<'_>) {
        *feature.sync = feature.master.take(*feature.sync, feature.delta, cx.global, self.again, cx.worker);
    }
}

/// Tells samples how weights changed.
pub struct Tell;

impl Exchange<BlockPg> for Tell {
    type Left = mode::Add;
    type Right = mode::Read;
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

/// Returns the stages of an iteration, features being cut into blocks of about `values` values, after each of which workers see each
/// other's steps. One process.
pub fn descent(values: u64) -> Sequence<BlockPg, impl Stages<BlockPg>> {
    let blocks = MiniBatch { size: BatchSize::EdgesOf(Side::Right, values), order: BatchOrder::RandomBlocks };
    let passes = Sequence::new()
        .mini_batch(blocks, |b| b.exchange(Descend { again: false }).apply(Left, Merge).global_sync(Weigh))
        .apply(Right, Take { again: false })
        .mini_batch(blocks, |b| b.exchange(Descend { again: true }).apply(Left, Merge).global_sync(Weigh))
        .apply(Right, Take { again: true });
    then_leap(passes.apply(Left, Settle), Tell).global_sync(Survey)
}

/// How much of the damping above 1 is left after a block.
const DECAY: f64 = 0.8;
