//! PageRank: how often a surfer is on each page who follows a link with probability d (damping) and else restarts:
//!
//! ```text
//! x_v = d · Σ over links u → v of x_u / outdegree(u)  +  ((1 − d) + d · Σ of x_u over dangling u) · r_v
//! ```
//!
//! with Σ x = 1 and the restart distribution r, uniform by default (Brin and Page 1998; dangling mass goes where restarts
//! go: Langville and Meyer 2006, §5). Links may repeat and count as often; self loops count. Where links have weights w, those of a page
//! share its rank by w_uv / Σ w_u instead ([`Weighted`]). Several restart distributions are solved together ([`Sets`]).
//!
//! | stage, for each batch of right vertices | reads | writes |
//! |---|---|---|
//! | [`Follow`], each link u → v | what u passes on along a link | sum at v |
//! | [`Settle`], each page v | sum, restart mass | score, what v passes on |
//! | [`Measure`], once per iteration | worker contexts | restart mass, residual |
//!
//! Batches of 4.2 million links (2²²) or more, at most 32 of them, make it a block Gauss–Seidel iteration: later batches see
//! the scores that earlier ones settled, which needs about a third fewer iterations than Jacobi's. A graph of fewer links
//! is one batch, and that is Jacobi's iteration. Scores are kept up to a common factor: an iteration does not change the
//! solution of the homogeneous equation `x = d·A·x + ((1 − d)·Σx + d·dangling(x))·r`, and [`scores`] divides by the sum.
//! The restart mass is the previous iteration's.
//!
//! The residual is the L1 change of the scores in one iteration over their sum. Memory: 20 bytes a page, 2 to 4 a link.
//! Not for: graphs that change while it runs.

mod sets;
mod start;
mod weighted;

pub use sets::{MeasureSets, PageOfSets, RanksOfSets, Sets, SettleSets, States, Sums, WeightedSets, sequence_of_sets};
pub use start::{Damping, Rank, Restart, Start, State, scores};
pub use weighted::Weighted;

use megagrid_stages::{
    Add, Apply, BatchSize, Context, Exchange, GlobalSync, Master, Program, Read, Right, Sequence, Side, Stages, mode,
    program, vertex,
};

vertex! {
    /// A web page, or any vertex of a directed graph. What it passes on along each of its links is synced.
    pub struct Page { sync: f32, delta: f32, master: Rank }
}

program! {
    /// The PageRank program. Workers sum scores, dangling scores and changes.
    pub struct PageRank { vertices: Page, worker: [f64; 3], global: State }
}

/// A program that ranks pages, whatever a link carries: [`PageRank`], or [`Weighted`].
pub trait Ranks: Program<Left = Page, Right = Page, Worker = [f64; 3], Global = State> {}
impl<P: Program<Left = Page, Right = Page, Worker = [f64; 3], Global = State>> Ranks for P {}

/// Adds what a page passes on to the sum of the page that it links to.
pub struct Follow;

impl Exchange<PageRank> for Follow {
    type Left = mode::Read;
    type Right = mode::Add;
    const CHANGES_EDGES: bool = false;

    #[inline(always)]
    fn exchange(&self, from: Read<'_, Page>, to: Add<'_, Page>, _: &mut (), _: &mut Context<'_, PageRank>) {
        *to.delta += *from.sync;
    }
}

/// Settles a page's score from the sum of what was passed on to it.
pub struct Settle;

impl<P: Ranks> Apply<P, Page> for Settle {
    #[inline(always)]
    fn apply(&self, page: Master<'_, Page>, cx: &mut Context<'_, P>) {
        let [score, per_link, restart] = page.master;
        let settled = *page.delta + cx.global.restart * *restart;
        let sums = [settled, if *per_link == 0.0 { settled } else { 0.0 }, (settled - *score).abs()];
        cx.worker.iter_mut().zip(sums).for_each(|(total, sum)| *total += f64::from(sum));
        *score = settled;
        *page.sync = settled * *per_link;
    }
}

/// Measures the residual and sets the restart mass of the next iteration.
pub struct Measure(pub Damping);

impl<P: Ranks> GlobalSync<P> for Measure {
    fn apply(&self, sums: [f64; 3], state: &mut State) {
        *state = State::after(self.0, sums).since(state);
    }
}

/// Returns the stages of an iteration over a graph with `edges` links.
pub fn sequence<P: Ranks>(damping: Damping, edges: u64) -> Sequence<P, impl Stages<P>>
where
    Follow: Exchange<P>,
{
    Sequence::new().mini_batch(batch(edges), |b| b.exchange(Follow).apply(Right, Settle)).global_sync(Measure(damping))
}

/// Returns the batches of an iteration over a graph with `edges` links.
fn batch(edges: u64) -> BatchSize {
    BatchSize::EdgesOf(Side::Right, edges.div_ceil(BATCHES).max(MIN_BATCH_EDGES))
}

/// Batches of an iteration (measured: 32 need as many iterations as one page at a time).
const BATCHES: u64 = 32;
/// Batches smaller than this cost more than they save: with several processes each ends with messages there and back.
const MIN_BATCH_EDGES: u64 = 1 << 22;
