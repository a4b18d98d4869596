//! As [`batch`](super::super::batch): a batch is a step of all rows, which is the rule as its authors have it. What was remembered
//! moves rows without ratings in a batch too, so a step needs the whole sum, and workers wait for it whatever the slack.
//!
//! | stage, for each batch of ratings | reads | writes |
//! |---|---|---|
//! | [`Gradient`], each rating | p_u, q_i, r_ui | gradients |
//! | [`Step`], each user and item | gradient | p_u or q_i, what it remembers |

use megagrid_stages::{Apply, BatchSize, Context, Left, Master, Right, Sequence, Stages, Vertex, program, vertex};

use crate::mf::batch::Gradient;
use crate::mf::{Config, Rule, State, Sums, Tally};

vertex! {
    /// A user: the factor, its gradient, and what its steps remember, which stays at the master.
    pub struct User { sync: [f32], delta: [f32], master: State }
}

vertex! {
    /// An item, likewise.
    pub struct Item { sync: [f32], delta: [f32], master: State }
}

program! {
    /// Matrix factorization by batch gradients, whose steps remember coordinates.
    pub struct MfBatchByCoordinate { left: User, right: Item, edge: f32, worker: Sums, global: Sums }
}

/// Steps a factor by its summed gradient.
pub struct Step {
    config: Config,
    rule: Rule,
    one: Option<usize>,
}

impl<V: Vertex<Sync = [f32], Delta = [f32], Master = State>> Apply<MfBatchByCoordinate, V> for Step {
    #[inline(always)]
    fn apply(&self, vertex: Master<'_, V>, cx: &mut Context<'_, MfBatchByCoordinate>) {
        self.rule.follow(vertex.sync, vertex.master, vertex.delta, self.config.plain_step(cx.iteration));
        if let Some(one) = self.one {
            vertex.sync[one] = 1.0;
        }
    }
}

/// Returns the stages of an iteration, in mini-batches of about `batch` ratings.
///
/// # Panics
/// Where the optimizer remembers nothing of coordinates.
pub fn sequence(config: Config, batch: u64) -> Sequence<MfBatchByCoordinate, impl Stages<MfBatchByCoordinate>> {
    let step = |one| Step { config, rule: config.optimizer.rule(), one };
    let (users, items) = (step(config.user_one()), step(config.item_one()));
    let steps = Sequence::new().mini_batch(BatchSize::Edges(batch), move |b| {
        b.exchange(Gradient(config)).apply(Left, users).apply(Right, items)
    });
    steps.global_sync(Tally)
}
