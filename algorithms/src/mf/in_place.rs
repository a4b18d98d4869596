//! Matrix factorization in place: one rating after the other, both rows updated where they are.
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Descend`], each rating | p_u, q_i, r_ui | p_u, q_i, squared gradients, the worker's squared errors |
//! | [`Tally`], each iteration | the workers' squared errors | their sum |

use megagrid_stages::kernels::{descend, dot};
use megagrid_stages::{BatchSize, Context, Exchange, Sequence, Stages, Update, mode, program, vertex};

use super::{Config, Sums, Tally, bounded};

vertex! {
    /// A user: the factor, and the sum of mean squared gradients that its step adapts to (a replica's own).
    pub struct User { sync: [f32], mirror: f32 }
}

vertex! {
    /// An item, likewise.
    pub struct Item { sync: [f32], mirror: f32 }
}

program! {
    /// Matrix factorization in place.
    pub struct Mf { left: User, right: Item, edge: f32, worker: Sums, global: Sums }
}

/// Steps both factors along the gradient of one rating: with e = r − p·q,
/// `p += η_p (e q − λ p)` and `q += η_q (e p − λ q)`. Adaptive: `η_p = η / sqrt(1 + Σ mean squared gradient of p)`.
pub struct Descend {
    config: Config,
    adaptive: bool,
    /// One over the items of a row: gradients are remembered by their mean square.
    share: f32,
}

impl Descend {
    /// Steps with these parameters.
    ///
    /// # Panics
    /// Where the optimizer remembers coordinates.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, adaptive: config.is_adaptive(), share: 1.0 / config.row_dims() as f32 }
    }
}

impl Exchange<Mf> for Descend {
    type Left = mode::Update;
    type Right = mode::Update;
    const CHANGES_EDGES: bool = false;

    #[inline(always)]
    fn exchange(&self, user: Update<'_, User>, item: Update<'_, Item>, rating: &mut f32, cx: &mut Context<'_, Mf>) {
        let config = &self.config;
        let error = *rating - dot(user.sync, item.sync);
        cx.worker.squared_errors += f64::from(error * error);
        let error = bounded(error);
        let (p_step, q_step) = if self.adaptive {
            (config.step / (1.0 + *user.mirror).sqrt(), config.step / (1.0 + *item.mirror).sqrt())
        } else {
            let step = config.plain_step(cx.iteration);
            (step, step)
        };
        let squares = descend(user.sync, item.sync, error, config.lambda, p_step, q_step);
        *user.mirror += squares.0 * self.share;
        *item.mirror += squares.1 * self.share;
        if config.biases {
            user.sync[config.dims + 1] = 1.0;
            item.sync[config.dims] = 1.0;
        }
    }
}

/// Returns the stages of an iteration, by plain steps or steps that adapt to rows: all ratings at once, or in mini-batches of about
/// `batch` ratings, each a clock.
///
/// # Panics
/// Where the optimizer remembers coordinates.
pub fn sequence(config: Config, batch: u64) -> Sequence<Mf, impl Stages<Mf>> {
    let descend = Descend::new(config);
    Sequence::new().mini_batch(BatchSize::Edges(batch), move |b| b.exchange(descend)).global_sync(Tally)
}
