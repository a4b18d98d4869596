//! Sparse logistic regression by block proximal gradient: finds the weights w that minimise, over samples x_i with labels
//! y_i of −1 or 1 and weights c_i,
//!
//! ```text
//! Σ c_i log(1 + exp(−y_i w·x_i)) + l1 |w|₁ + l2/2 |w|²
//! ```
//!
//! (Li, Andersen, Park et al. 2014; TuX² §4.) Features are dealt to blocks at random, and blocks run in a random order. A
//! block takes one proximal Newton step on the diagonal of the curvature, each feature within its own trust region. An edge
//! carries y_i x_ij. With m_i = y_i w·x_i and τ = 1/(1 + exp m), a sample's loss has the slope −c τ and the curvature
//! c τ (1 − τ) by its margin, and sums over the samples of a feature are
//!
//! ```text
//! gradient g_j = −Σ c_i τ_i y_i x_ij        curvature u_j = Σ c_i τ_i (1 − τ_i) x_ij²
//! ```
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Differentiate`], each value of an active feature of a block | slope, curvature | gradient, curvature |
//! | [`Step`], each feature of the block | gradient, curvature | weight, trust region, whether it stays active |
//! | [`Shift`], each value of a feature that changed | change of the weight | slope, change of the margin |
//! | [`Damp`], once per block | curvature met along the step | damping of the next steps |
//! | [`Settle`], each sample, once per iteration | change of the margin | margin, slope, curvature |
//! | [`Survey`], once per iteration | violations | which features the next iteration visits |
//!
//! **Model.** Within an iteration a sample's loss is the parabola that touches it at the margin where the iteration began
//! (the Newton model of Yuan, Ho and Lin 2012): blocks see each other's steps through the slope, at the price of a
//! multiplication for each value, and exp is taken once per iteration.
//!
//! **Damping.** Steps of correlated features add up, so that a block can step too far. Along the step that a block took the
//! curvature of the model follows from how much less each feature's step gains after those before it. Its ratio to what the
//! diagonal promised, if above 1, divides the steps of the blocks that follow, and decays. A step along which the model
//! rises has a ratio above 2.
//!
//! **Active set.** A weight at zero whose gradient is within l1 by more than a threshold rests: iterations pass it by, until
//! the violation among the active ones has fallen to a part of what it was, and a full iteration visits every feature again.
//!
//! **Leaps.** After each iteration comes the best step in the space of the last few iterations' changes: see [`Leap`].
//! Without it correlated features take several times the iterations, and some data never ends.
//!
//! **Intercept.** A feature that every sample has, with the penalty factor 0.
//!
//! Margins and weights are kept in f64; slopes that values read are f32. Memory: 48 bytes a sample, 80 bytes a
//! feature and 16 for each worker, 6 a value. Not for: data with more than a few thousand dense, strongly correlated features, where blocks become single features.

mod certificate;
mod config;
mod control;
mod leap;
mod proximal;
mod quality;
mod sigmoid;

pub use certificate::{Certificate, Fit, log_loss, margins};
pub use config::Config;
pub use control::{Damp, State, Totals};
pub use leap::{Aim, Heading, Land, Leap, Limit, Plan, Sums};
pub use proximal::{Derivatives, Margin, Parabola, Region, Weight};
pub use quality::Quality;
pub use sigmoid::sigmoid;

use megagrid_stages::{
    Add, Apply, BatchOrder, BatchSize, Context, Exchange, GlobalSync, Left, Master, MiniBatch, Read, Right, Sequence,
    Side, Stages, Update, Vertex, mode, program, vertex,
};

vertex! {
    /// A sample.
    pub struct Sample { sync: Parabola, master: Margin }
}

/// A feature.
pub struct Feature;

impl Vertex for Feature {
    type Sync = Weight;
    type Delta = Derivatives;
    type Master = Region;
    /// The weight's last change, which samples are still to be told.
    type Mirror = f64;

    #[inline(always)]
    fn refresh(change: &mut f64, old: &Weight, new: &Weight) {
        *change = new.value - old.value;
    }
}

program! {
    /// Sparse logistic regression.
    pub struct BlockPg { left: Sample, right: Feature, edge: f32, worker: Totals, global: State }
}

/// What stage functions see beside vertices and edges.
type Cx<'a> = Context<'a, BlockPg>;

/// Adds a value's part to the derivatives of its feature, if that does not rest.
pub struct Differentiate;

impl Exchange<BlockPg> for Differentiate {
    type Left = mode::Read;
    type Right = mode::Add;
    const GROUPED: bool = true;

    #[inline(always)]
    fn is_active(&self, feature: Read<'_, Feature>, cx: &Cx<'_>) -> bool {
        cx.global.full || feature.sync.resting == 0
    }

    #[inline(always)]
    fn exchange(&self, sample: Read<'_, Sample>, feature: Add<'_, Feature>, x: &mut f32, _: &mut Cx<'_>) {
        feature.delta.gradient -= f64::from(*x * sample.sync.slope);
        feature.delta.curvature += f64::from(*x * *x * sample.sync.curvature);
    }
}

/// Takes a proximal Newton step within the trust region.
pub struct Step;

impl Apply<BlockPg, Feature> for Step {
    #[inline(always)]
    fn is_active(&self, feature: Read<'_, Feature>, cx: &Cx<'_>) -> bool {
        cx.global.full || feature.sync.resting == 0
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
        *sample.sync = sample.master.settle(sample.sync.shift);
        cx.worker.leap.add(*sample.sync, sample.master.course);
    }
}

/// Decides which features the next iteration visits.
pub struct Survey;

impl GlobalSync<BlockPg> for Survey {
    fn apply(&self, _: Totals, state: &mut State) {
        let found = std::mem::take(&mut state.found);
        if state.full {
            (state.full_violation, state.partial) = (found.violation, 0);
        }
        state.threshold = (found.violation * THRESHOLD).min(state.l1 * MOST_THRESHOLD);
        state.was_full = state.full;
        state.partial += 1;
        state.full = found.violation <= FULL_BELOW * state.full_violation || state.partial > MAX_PARTIAL;
        state.last = found;
    }
}

/// Returns the stages of an iteration in blocks of about `values` values.
pub fn sequence(values: u64) -> Sequence<BlockPg, impl Stages<BlockPg>> {
    let blocks = MiniBatch { size: BatchSize::EdgesOf(Side::Right, values), order: BatchOrder::RandomBlocks };
    let pass = Sequence::new()
        .mini_batch(blocks, |b| b.exchange(Differentiate).apply(Right, Step).exchange(Shift).global_sync(Damp));
    leap::then_leap(pass.apply(Left, Settle)).global_sync(Survey)
}

/// The threshold of rest, as a part of the violation in the last iteration.
const THRESHOLD: f64 = 0.02;
/// And at most this part of l1: of the features of an iteration from far away few will have a weight in the next ones.
const MOST_THRESHOLD: f64 = 0.7;
/// A full iteration follows when the violation is below this part of that in the last full one.
const FULL_BELOW: f64 = 0.3;
/// Or after so many that were not.
const MAX_PARTIAL: u64 = 5;
