//! Logistic factors of clicks [Johnson 2014, with sampled negatives]: which of the items shown does a user click? Finds
//! p_u, q_i in R^k that minimise, over the items shown, y = 1 where clicked and 0 where not,
//!
//! ```text
//! Σ log(1 + exp(−z)) + (1 − y) z + λ/2 (|p_u|² + |q_i|²),       z = p_u·q_i
//! ```
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Descend`], each item shown | p_u, q_i, y | p_u, q_i |
//! | [`mean_loss`], between iterations | p_u, q_i, y | worker contexts |
//!
//! Input: users × items with y as the edge data. Memory: a row a vertex, 8 bytes an edge. Both sides are updated in place,
//! so blocks rotate among workers.

use megagrid::kernels::{descend, dot};
use megagrid::prelude::*;

vertex! {
    /// A user's factor.
    pub struct User { sync: [f32] }
}

vertex! {
    /// An item's factor.
    pub struct Item { sync: [f32] }
}

program! {
    /// The click factor program. An edge is 1 where clicked, else 0; workers sum log losses, and count edges.
    pub struct ClickFactors { left: User, right: Item, edge: f32, worker: (f64, u64) }
}

edge_stage! {
    /// Steps both factors along the gradient of one edge.
    #[derive(Clone, Copy, Debug)]
    pub struct Descend {
        /// Step size.
        pub step: f32,
        /// Weight λ of the regularizer.
        pub lambda: f32,
    }
    fn exchange(&self, user: Update<User>, item: Update<Item>, clicked: &f32) in ClickFactors {
        let error = *clicked - chance(dot(user.sync, item.sync));
        descend(user.sync, item.sync, error, self.lambda, self.step, self.step);
    }
}

fn add_loss(user: Read<User>, item: Read<Item>, clicked: &f32, cx: &mut Context<ClickFactors>) {
    cx.worker.0 += log_loss(f64::from(dot(user.sync, item.sync)), f64::from(*clicked));
    cx.worker.1 += 1;
}

/// Returns the mean log loss of an engine's factors.
///
/// # Errors
/// A lost process.
pub fn mean_loss(engine: &mut Engine<ClickFactors>) -> Result<f64, megagrid::engine::Error> {
    engine.total(add_loss).map(|(sum, edges)| sum / edges as f64)
}

/// Returns the chance of a click.
#[inline(always)]
#[must_use]
pub fn chance(z: f32) -> f32 {
    1.0 / (1.0 + (-z).exp())
}

/// Returns the loss of one edge; no overflow for any z.
#[must_use]
pub fn log_loss(z: f64, clicked: f64) -> f64 {
    (-z.abs()).exp().ln_1p() + z.max(0.0) - clicked * z
}

/// Returns the stages of an iteration.
pub fn sequence(descend: Descend) -> Sequence<ClickFactors, impl Stages<ClickFactors>> {
    Sequence::new().exchange(descend)
}
