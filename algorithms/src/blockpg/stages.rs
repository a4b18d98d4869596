//! The stages of a block, and those that end an iteration's blocks.

use megagrid_stages::{Add, Apply, Combine, Context, Exchange, GlobalSync, Master, Read, Update, mode};

use super::control::{State, Totals};
use super::program::{BlockPg, Feature, Sample};
use super::proximal::Parabola;

/// What stage functions see beside vertices and edges.
type Cx<'a> = Context<'a, BlockPg>;

/// Adds a value's part to the derivatives of its feature, if that does not rest.
pub struct Differentiate;

impl Exchange<BlockPg> for Differentiate {
    type Left = mode::Read;
    type Right = mode::Add;
    const CHANGES_EDGES: bool = false;
    const GROUPED: bool = true;

    #[inline(always)]
    fn visits_resting(&self, cx: &Cx<'_>) -> bool {
        cx.global.full
    }

    #[inline(always)]
    fn exchange(&self, sample: Read<'_, Sample>, feature: Add<'_, Feature>, x: &mut f32, _: &mut Cx<'_>) {
        let x = f64::from(*x);
        feature.delta.gradient -= x * sample.sync.slope;
        feature.delta.curvature += x * x * sample.sync.curvature;
    }
}

/// Takes a proximal Newton step within the trust region.
pub struct Step;

impl Apply<BlockPg, Feature> for Step {
    #[inline(always)]
    fn visits_resting(&self, cx: &Cx<'_>) -> bool {
        cx.global.full
    }

    #[inline(always)]
    fn apply(&self, feature: Master<'_, Feature>, cx: &mut Cx<'_>) {
        *feature.sync = feature.master.step(*feature.sync, *feature.delta, cx.global, cx.worker);
    }
}

/// Tells samples how a weight changed.
pub struct Shift;

impl Exchange<BlockPg> for Shift {
    type Left = mode::Update;
    type Right = mode::Read;
    const CHANGES_EDGES: bool = false;
    const GROUPED: bool = true;

    #[inline(always)]
    fn is_active(&self, feature: Read<'_, Feature>, _: &Cx<'_>) -> bool {
        *feature.mirror != 0.0
    }

    #[inline(always)]
    fn exchange(&self, sample: Update<'_, Sample>, feature: Read<'_, Feature>, x: &mut f32, cx: &mut Cx<'_>) {
        cx.worker.fall[1] += sample.sync.shift(f64::from(*x) * *feature.mirror);
    }
}

/// Brings a sample up to date with its margin.
pub struct Settle;

impl Apply<BlockPg, Sample> for Settle {
    #[inline(always)]
    fn apply(&self, sample: Master<'_, Sample>, cx: &mut Cx<'_>) {
        let Parabola { slope, curvature, shift: known } = *sample.sync;
        let shift = known + *sample.delta;
        *sample.sync = sample.master.settle(shift);
        cx.worker.met += curvature * sample.delta.powi(2);
        cx.worker.fall[1] += slope * *sample.delta;
        cx.worker.leap.add(sample.sync.slope, sample.sync.curvature, sample.master.course);
        // The slope where the iteration began is what it has become and what the model took from it since.
        cx.worker.leap.ends.combine(&mut [slope + curvature * known, sample.sync.slope].map(|slope| -slope * shift));
    }
}

/// Damps steps by how much more curvature the last block met than the diagonal promised.
pub struct Damp;

impl GlobalSync<BlockPg> for Damp {
    fn apply(&self, mut total: Totals, state: &mut State) {
        let promised = std::mem::take(&mut total.curvature);
        let [alone, together] = std::mem::take(&mut total.fall);
        // What steps take away from those after them is half of the curvature that they share.
        let met = promised + 2.0 * (alone - together);
        // By Cauchy and Schwarz, k steps meet at most k times the curvature of each alone.
        let ratio = if promised > 0.0 { (met / promised).min(total.changed as f64) } else { 1.0 };
        state.damping = (1.0 + DECAY * (state.damping - 1.0)).max(ratio);
        state.found.combine(&mut total);
    }
}

/// How much of the damping above 1 is left after a block.
const DECAY: f64 = 0.95;
