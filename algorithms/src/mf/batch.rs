//! Matrix factorization by batch gradients (TuX² Figure 5): gradients of a batch are summed, and applied at the masters.
//!
//! | stage, for each batch of ratings | reads | writes |
//! |---|---|---|
//! | [`Gradient`], each rating | p_u, q_i, r_ui | gradients |
//! | [`Step`], each user and item | gradient, squared gradients | p_u or q_i |
//!
//! A step along a sum is steps along its parts, but for lengths of adaptive steps, which then follow the parts. So with slack workers
//! do not wait for each other's gradients.

use megagrid_stages::kernels::{add_gradients, axpy, dot};
use megagrid_stages::{
    Add, Apply, BatchSize, Context, Exchange, Left, Master, Program, Right, Sequence, Stages, Vertex, mode, program,
    vertex,
};

use super::{Config, Sums, Tally};

vertex! {
    /// A user: the factor, its gradient, and the squared gradients, which stay at the master.
    pub struct User { sync: [f32], delta: [f32], master: f32 }
}

vertex! {
    /// An item, likewise.
    pub struct Item { sync: [f32], delta: [f32], master: f32 }
}

program! {
    /// Matrix factorization by batch gradients.
    pub struct MfBatch { left: User, right: Item, edge: f32, worker: Sums, global: Sums }
}

/// Adds the negative half gradients of one rating: `e q − λ p` and `e p − λ q`, with e = r − p·q.
pub struct Gradient(pub Config);

impl<P, L, R> Exchange<P> for Gradient
where
    P: Program<Left = L, Right = R, Edge = f32, Worker = Sums>,
    L: Vertex<Sync = [f32], Delta = [f32]>,
    R: Vertex<Sync = [f32], Delta = [f32]>,
{
    type Left = mode::Add;
    type Right = mode::Add;
    const CHANGES_EDGES: bool = false;

    #[inline(always)]
    fn exchange(&self, user: Add<'_, L>, item: Add<'_, R>, rating: &mut f32, cx: &mut Context<'_, P>) {
        let error = *rating - dot(user.sync, item.sync);
        cx.worker.squared_errors += f64::from(error * error);
        add_gradients(user.delta, item.delta, user.sync, item.sync, error, self.0.lambda);
    }
}

/// Steps a factor along its summed gradient.
pub struct Step {
    config: Config,
    adaptive: bool,
    one: Option<usize>,
}

impl Step {
    /// Steps users.
    ///
    /// # Panics
    /// Where the optimizer remembers coordinates.
    #[must_use]
    pub fn users(config: Config) -> Self {
        Self { config, adaptive: config.is_adaptive(), one: config.user_one() }
    }

    /// Steps items.
    ///
    /// # Panics
    /// Where the optimizer remembers coordinates.
    #[must_use]
    pub fn items(config: Config) -> Self {
        Self { config, adaptive: config.is_adaptive(), one: config.item_one() }
    }

    #[inline(always)]
    fn step(&self, factor: &mut [f32], squares: &mut f32, gradient: &[f32], iteration: u64) {
        let config = &self.config;
        let step = if self.adaptive {
            *squares += dot(gradient, gradient) / config.row_dims() as f32;
            config.step / (1.0 + *squares).sqrt()
        } else {
            config.plain_step(iteration)
        };
        axpy(factor, step, gradient);
        if let Some(one) = self.one {
            factor[one] = 1.0;
        }
    }
}

impl Apply<MfBatch, User> for Step {
    const ADDITIVE: bool = true;

    #[inline(always)]
    fn apply(&self, user: Master<'_, User>, cx: &mut Context<'_, MfBatch>) {
        self.step(user.sync, user.master, user.delta, cx.iteration);
    }
}

impl Apply<MfBatch, Item> for Step {
    const ADDITIVE: bool = true;

    #[inline(always)]
    fn apply(&self, item: Master<'_, Item>, cx: &mut Context<'_, MfBatch>) {
        self.step(item.sync, item.master, item.delta, cx.iteration);
    }
}

/// Returns the stages of an iteration, by plain steps or steps that adapt to rows, in mini-batches of about `batch` ratings.
///
/// # Panics
/// Where the optimizer remembers coordinates.
pub fn sequence(config: Config, batch: u64) -> Sequence<MfBatch, impl Stages<MfBatch>> {
    let (users, items) = (Step::users(config), Step::items(config));
    let steps = Sequence::new().mini_batch(BatchSize::Edges(batch), move |b| {
        b.exchange(Gradient(config)).apply(Left, users).apply(Right, items)
    });
    steps.global_sync(Tally)
}
