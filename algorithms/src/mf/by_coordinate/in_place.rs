//! As [`in_place`](super::super::in_place): a rating is a step of both rows, so what a row remembers is of its own ratings.
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Descend`], each rating | p_u, q_i, r_ui | p_u, q_i, what both remember, the worker's squared errors |
//! | [`Tally`], each iteration | the workers' squared errors | their sum |

use megagrid_stages::kernels::dot;
use megagrid_stages::{BatchSize, Context, Exchange, Sequence, Stages, Update, mode, program, vertex};

use crate::mf::{Config, Rule, State, Sums, Tally, bounded};

vertex! {
    /// A user: the factor, and what its steps remember (a replica's own).
    pub struct User { sync: [f32], mirror: State }
}

vertex! {
    /// An item, likewise.
    pub struct Item { sync: [f32], mirror: State }
}

program! {
    /// Matrix factorization in place, whose steps remember coordinates.
    pub struct MfByCoordinate { left: User, right: Item, edge: f32, worker: Sums, global: Sums }
}

/// Steps both factors by the gradient of one rating: with e = r − p·q, `e q − λ p` and `e p − λ q`.
pub struct Descend {
    config: Config,
    rule: Rule,
}

impl Exchange<MfByCoordinate> for Descend {
    type Left = mode::Update;
    type Right = mode::Update;
    const CHANGES_EDGES: bool = false;

    #[inline(always)]
    fn exchange(
        &self,
        user: Update<'_, User>,
        item: Update<'_, Item>,
        rating: &mut f32,
        cx: &mut Context<'_, MfByCoordinate>,
    ) {
        let config = &self.config;
        let error = *rating - dot(user.sync, item.sync);
        cx.worker.squared_errors += f64::from(error * error);
        let rows = [(&mut *user.sync, user.mirror), (&mut *item.sync, item.mirror)];
        self.rule.descend(rows, bounded(error), config.lambda, config.plain_step(cx.iteration));
        if config.biases {
            user.sync[config.dims + 1] = 1.0;
            item.sync[config.dims] = 1.0;
        }
    }
}

/// Returns the stages of an iteration: all ratings at once, or in mini-batches of about `batch` ratings, each a clock.
///
/// # Panics
/// Where the optimizer remembers nothing of coordinates.
pub fn sequence(config: Config, batch: u64) -> Sequence<MfByCoordinate, impl Stages<MfByCoordinate>> {
    let descend = Descend { config, rule: config.optimizer.rule() };
    Sequence::new().mini_batch(BatchSize::Edges(batch), move |b| b.exchange(descend)).global_sync(Tally)
}
