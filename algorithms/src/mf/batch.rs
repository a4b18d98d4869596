//! Matrix factorization by batch gradients (TuX² Figure 5): gradients of a batch are summed, and applied at the masters.
//!
//! | stage, for each batch of ratings | reads | writes |
//! |---|---|---|
//! | [`Gradient`], each rating | p_u, q_i, r_ui | gradients |
//! | [`Step`], each user and item | gradient, squared gradients | p_u or q_i |

use megagrid_stages::kernels::{axpy, dot};
use megagrid_stages::{
    Add, AddView, Apply, BatchSize, Context, Error, Exchange, MasterView, Program, Row, Sequence, Stages, Value, Vertex,
};

use super::{Config, Sums};

/// A user: the factor, its gradient, and the squared gradients, which stay at the master.
pub struct User;

impl Vertex for User {
    type Sync = Row<f32>;
    type Delta = Row<f32>;
    type Master = Value<f32>;
    type Mirror = ();
}

/// An item, likewise.
pub struct Item;

impl Vertex for Item {
    type Sync = Row<f32>;
    type Delta = Row<f32>;
    type Master = Value<f32>;
    type Mirror = ();
}

/// Matrix factorization by batch gradients.
pub struct MfBatch;

impl Program for MfBatch {
    type Left = User;
    type Right = Item;
    type Edge = f32;
    type Worker = Sums;
    type Global = ();
}

/// Adds the negative half gradients of one rating: `e q − λ p` and `e p − λ q`, with e = r − p·q.
pub struct Gradient(pub Config);

impl Exchange<MfBatch> for Gradient {
    type Left = Add;
    type Right = Add;

    #[inline(always)]
    fn exchange(
        &self,
        user: AddView<'_, User>,
        item: AddView<'_, Item>,
        rating: &mut f32,
        _: &mut Context<'_, MfBatch>,
    ) {
        let error = *rating - dot(user.sync, item.sync);
        axpy(user.delta, error, item.sync);
        axpy(user.delta, -self.0.lambda, user.sync);
        axpy(item.delta, error, user.sync);
        axpy(item.delta, -self.0.lambda, item.sync);
    }
}

/// Steps a factor along its summed gradient.
pub struct Step {
    config: Config,
    one: Option<usize>,
}

impl Step {
    /// Steps users.
    #[must_use]
    pub fn users(config: Config) -> Self {
        Self { config, one: config.user_one() }
    }

    /// Steps items.
    #[must_use]
    pub fn items(config: Config) -> Self {
        Self { config, one: config.item_one() }
    }

    #[inline(always)]
    fn step(&self, factor: &mut [f32], squares: &mut f32, gradient: &[f32], iteration: u64) {
        let config = &self.config;
        let step = if config.adaptive {
            *squares += dot(gradient, gradient) / config.row_dims() as f32;
            config.step / (1.0 + *squares).sqrt()
        } else {
            config.step / (1.0 + config.decay * (iteration - 1) as f32)
        };
        axpy(factor, step, gradient);
        if let Some(one) = self.one {
            factor[one] = 1.0;
        }
    }
}

impl Apply<MfBatch, User> for Step {
    #[inline(always)]
    fn apply(&self, user: MasterView<'_, User>, cx: &mut Context<'_, MfBatch>) {
        self.step(user.sync, user.master, user.delta, cx.iteration);
    }
}

impl Apply<MfBatch, Item> for Step {
    #[inline(always)]
    fn apply(&self, item: MasterView<'_, Item>, cx: &mut Context<'_, MfBatch>) {
        self.step(item.sync, item.master, item.delta, cx.iteration);
    }
}

/// Builds the stages of an iteration, in mini-batches of about `batch` ratings.
///
/// # Errors
/// A batch of 0 ratings.
pub fn sequence(config: Config, batch: u64) -> Result<Sequence<MfBatch, impl Stages<MfBatch>>, Error> {
    let (users, items) = (Step::users(config), Step::items(config));
    Sequence::new()
        .mini_batch(BatchSize::Edges(batch), move |b| b.exchange(Gradient(config)).apply_left(users).apply_right(items))
        .build()
}
