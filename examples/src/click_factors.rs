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
//! | [`LogLoss`], between iterations | p_u, q_i, y | worker contexts |
//!
//! Input: users × items with y as the edge data. Memory: a row a vertex, 8 bytes an edge. Both sides are updated in place,
//! so blocks rotate among workers.

use megagrid_stages::kernels::{descend, dot};
use megagrid_stages::{
    Combine, Context, Error, Exchange, Program, Read, ReadView, Row, Sequence, Stages, Update, UpdateView, Vertex,
};
use serde::{Deserialize, Serialize};

/// A user's factor.
pub struct User;

impl Vertex for User {
    type Sync = Row<f32>;
    type Delta = ();
    type Master = ();
    type Mirror = ();
}

/// An item's factor.
pub struct Item;

impl Vertex for Item {
    type Sync = Row<f32>;
    type Delta = ();
    type Master = ();
    type Mirror = ();
}

/// The click factor program.
pub struct ClickFactors;

impl Program for ClickFactors {
    type Left = User;
    type Right = Item;
    /// 1 where clicked, else 0.
    type Edge = f32;
    type Worker = Loss;
    type Global = ();
}

/// A sum of log losses, and over how many edges.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Loss {
    sum: f64,
    edges: u64,
}

impl Combine for Loss {
    fn combine(&mut self, from: &mut Self) {
        self.sum.combine(&mut from.sum);
        self.edges.combine(&mut from.edges);
    }
}

impl Loss {
    /// Returns the mean log loss over all workers.
    #[must_use]
    pub fn mean(workers: &[Self]) -> f64 {
        let sum: f64 = workers.iter().map(|worker| worker.sum).sum();
        sum / workers.iter().map(|worker| worker.edges).sum::<u64>() as f64
    }
}

/// Steps both factors along the gradient of one edge.
#[derive(Clone, Copy, Debug)]
pub struct Descend {
    /// Step size.
    pub step: f32,
    /// Weight λ of the regularizer.
    pub lambda: f32,
}

impl Exchange<ClickFactors> for Descend {
    type Left = Update;
    type Right = Update;

    #[inline(always)]
    fn exchange(
        &self,
        user: UpdateView<'_, User>,
        item: UpdateView<'_, Item>,
        clicked: &mut f32,
        _: &mut Context<'_, ClickFactors>,
    ) {
        let error = *clicked - chance(dot(user.sync, item.sync));
        descend(user.sync, item.sync, error, self.lambda, self.step, self.step);
    }
}

/// Sums up the loss without changing anything: for [`Engine::measure`](megagrid_engine::Engine::measure).
pub struct LogLoss;

impl Exchange<ClickFactors> for LogLoss {
    type Left = Read;
    type Right = Read;

    #[inline(always)]
    fn exchange(
        &self,
        user: ReadView<'_, User>,
        item: ReadView<'_, Item>,
        clicked: &mut f32,
        cx: &mut Context<'_, ClickFactors>,
    ) {
        cx.worker.sum += log_loss(f64::from(dot(user.sync, item.sync)), f64::from(*clicked));
        cx.worker.edges += 1;
    }
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

/// Builds the stages of an iteration.
///
/// # Errors
/// None that data can cause.
pub fn sequence(descend: Descend) -> Result<Sequence<ClickFactors, impl Stages<ClickFactors>>, Error> {
    Sequence::new().exchange(descend).build()
}
