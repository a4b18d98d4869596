//! Sparse logistic regression by block proximal gradient: finds the weights w that minimise, over samples x_i with labels
//! y_i of −1 or 1 and weights c_i,
//!
//! ```text
//! Σ c_i log(1 + exp(−y_i w·x_i)) + l1 |w|₁ + l2/2 |w|²
//! ```
//!
//! (Li, Andersen, Park et al. 2014; TuX² §4.) Features are dealt to blocks at random, and blocks run in a random order. A
//! block takes one proximal Newton step on the diagonal of the curvature, each feature within its own trust region. An edge
//! carries x_ij, and samples know their labels, so that one grid serves any. With m_i = y_i w·x_i and τ = 1/(1 + exp m), a sample's loss
//! has the slope −y c τ and the curvature c τ (1 − τ) by its score w·x, and sums over the samples of a feature are
//!
//! ```text
//! gradient g_j = −Σ c_i τ_i y_i x_ij        curvature u_j = Σ c_i τ_i (1 − τ_i) x_ij²
//! ```
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Differentiate`], each value of an active feature of a block | slope, curvature | gradient, curvature |
//! | [`Step`], each feature of the block | gradient, curvature | weight, trust region, whether it stays active |
//! | [`Shift`], each value of a feature that changed | change of the weight | slope, change of the score |
//! | [`Damp`], once per block | curvature met along the step | damping of the next steps |
//! | [`Settle`], each sample, once per iteration | change of the score | margin, slope, curvature |
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
//! the violation among the active ones has fallen to a part of what it was, and a full iteration visits every feature again. Those that
//! rest are not looked at between ([`Feature`] rests): an iteration costs what the others do.
//!
//! **Leaps.** After each iteration comes the best step in the space of the last few iterations' changes: see [`Leap`].
//! Without it correlated features take several times the iterations, and some data never ends.
//!
//! **Descent.** Where samples fit the caches and one process has them, features of a worker step one after the other in place of
//! blocks that step together: see [`Descend`].
//!
//! **Many classes.** Each is told from the rest, or all are fitted together: [`FitOfClasses`].
//!
//! **Intercept.** A feature that every sample has, with the penalty factor 0.
//!
//! Margins, weights and slopes are kept in f64. Memory: 88 bytes a sample and 8 for each worker, 88 bytes a feature and 32 for each worker, 6 a
//! value. Blocks are not for data with more than a few thousand dense, strongly correlated features, where they become single features.

mod calibration;
mod certificate;
mod config;
mod control;
mod descent;
mod directions;
mod leap;
mod multinomial;
mod optimality;
mod program;
mod proximal;
mod quality;
mod screen;
mod sigmoid;
mod stages;

pub use calibration::Calibration;
pub use certificate::{Certificate, Fit, log_loss, scores};
pub use config::Config;
pub use control::{State, Totals};
pub use descent::{Descend, DescendApart, Merge, Take, Tell, descent};
pub use directions::{Heading, Sums};
pub use leap::{Aim, Land, Leap, Limit, Plan};
pub use multinomial::{FitOfClasses, MOST_ROUNDS, OfClasses, offsets, scores_of_classes};
pub use optimality::Optimality;
pub use program::{BlockPg, Feature, Sample};
pub use proximal::{Derivatives, Margin, Parabola, Region, Weight};
pub use quality::{Quality, likeliest, log_chances, log_softmax, mean_loss};
pub use screen::Screen;
pub use sigmoid::{logistic, sigmoid};
pub use stages::{Damp, Differentiate, Settle, Shift, Step};

use megagrid_stages::{BatchOrder, BatchSize, GlobalSync, Left, MiniBatch, Right, Sequence, Side, Stages};

/// Decides which features the next iteration visits.
pub struct Survey;

impl GlobalSync<BlockPg> for Survey {
    fn apply(&self, _: Totals, state: &mut State) {
        let found = std::mem::take(&mut state.found);
        state.choose_visits(found);
    }
}

/// Returns the stages of an iteration in blocks of about `values` values.
pub fn sequence(values: u64) -> Sequence<BlockPg, impl Stages<BlockPg>> {
    let blocks = MiniBatch { size: BatchSize::EdgesOf(Side::Right, values), order: BatchOrder::RandomBlocks };
    let pass = Sequence::new()
        .mini_batch(blocks, |b| b.exchange(Differentiate).apply(Right, Step).exchange(Shift).global_sync(Damp));
    leap::then_leap(pass.apply(Left, Settle), Shift).global_sync(Survey)
}
