//! Hubs and authorities (Kleinberg 1999, "Authoritative sources in a hyperlinked environment", §3): a good authority is linked
//! from good hubs, a good hub links to good authorities,
//!
//! ```text
//! a_v = Σ over links u → v of h_u        h_u = Σ over links u → v of a_v        |a| = |h| = 1
//! ```
//!
//! which is the power method: a and h converge to the principal right and left singular vectors of the adjacency matrix A, a
//! to the principal eigenvector of AᵀA and h to that of AAᵀ (Kleinberg's theorem 3.1), from equal hubs. Links may repeat and count
//! as often; self loops count.
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Point`], each link u → v | hub of u | sum at v |
//! | [`Trust`], each page v | sum, length of the hubs | authority |
//! | [`MeasureAuthorities`], once per iteration | worker contexts | length of the authorities |
//! | [`Cite`], each link u → v | authority of v | sum at u |
//! | [`Gather`], each page u | sum, length of the authorities | hub |
//! | [`MeasureHubs`], once per iteration | worker contexts | length of the hubs |
//!
//! A vector is divided by its length when it is passed on, since that is known only once all pages have theirs. The residual is
//! the L2 change of both unit vectors in an iteration; where several singular values are the largest the limit depends on the
//! start. Memory: 12 bytes a page, 4 to 8 a link. Not for: graphs of several components whose ranks are to be compared, of which the
//! one with the largest singular value gets all weight.

use megagrid_stages::{Add, Apply, Context, Exchange, GlobalSync, Left, Master, Read, Right, Sequence, Stages, mode};
use megagrid_stages::{program, vertex};
use serde::{Deserialize, Serialize};

/// How good a page is as a hub and as an authority, each up to the common factor of its vector.
pub type Scores = [f32; 2];

const HUB: usize = 0;
const AUTHORITY: usize = 1;

vertex! {
    /// A web page, or any vertex of a directed graph.
    pub struct Page { sync: Scores, delta: f32 }
}

program! {
    /// Hubs and authorities. Workers sum squares, and products with what was there before.
    pub struct Hits { vertices: Page, worker: [f64; 2], global: State }
}

/// What all workers know.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// Lengths of the vectors of hubs and authorities.
    pub lengths: [f64; 2],
    /// L2 changes of both unit vectors in the last iteration.
    pub changes: [f64; 2],
}

impl State {
    /// Returns what all workers know before the first iteration: `pages` hubs of score 1.
    #[must_use]
    pub fn new(pages: usize) -> Self {
        Self { lengths: [(pages as f64).sqrt(), 0.0], changes: [f64::INFINITY; 2] }
    }

    /// Returns the L2 change of both unit vectors in the last iteration.
    #[must_use]
    pub fn residual(&self) -> f64 {
        self.changes[HUB].hypot(self.changes[AUTHORITY])
    }

    /// Takes down a vector's new length, and how far its direction has moved: |x − y|² = 2 − 2 x·y of unit vectors.
    fn measure(&mut self, which: usize, [squares, products]: [f64; 2]) {
        let (before, length) = (self.lengths[which], squares.sqrt());
        let both = before * length;
        let cosine = if both > 0.0 { (products / both).min(1.0) } else { 0.5 };
        self.changes[which] = if before == length && length == 0.0 { 0.0 } else { (2.0 - 2.0 * cosine).sqrt() };
        self.lengths[which] = length;
    }

    /// Returns what a sum of scores is multiplied by.
    fn scale(&self, which: usize) -> f32 {
        let length = self.lengths[which];
        if length > 0.0 { (1.0 / length) as f32 } else { 0.0 }
    }
}

/// Returns the first scores of a page: those of a hub as good as any other.
#[must_use]
pub fn first() -> Scores {
    [1.0, 0.0]
}

/// Adds a page's hub to the sum of the page that it links to.
pub struct Point;

impl Exchange<Hits> for Point {
    type Left = mode::Read;
    type Right = mode::Add;

    #[inline(always)]
    fn exchange(&self, from: Read<'_, Page>, to: Add<'_, Page>, _: &mut (), _: &mut Context<'_, Hits>) {
        *to.delta += from.sync[HUB];
    }
}

/// Adds a page's authority to the sum of the page that links to it.
pub struct Cite;

impl Exchange<Hits> for Cite {
    type Left = mode::Add;
    type Right = mode::Read;

    #[inline(always)]
    fn exchange(&self, from: Add<'_, Page>, to: Read<'_, Page>, _: &mut (), _: &mut Context<'_, Hits>) {
        *from.delta += to.sync[AUTHORITY];
    }
}

/// Sets a page's authority from the hubs that link to it.
pub struct Trust;

impl Apply<Hits, Page> for Trust {
    #[inline(always)]
    fn apply(&self, page: Master<'_, Page>, cx: &mut Context<'_, Hits>) {
        set(page, AUTHORITY, cx.global.scale(HUB), cx.worker);
    }
}

/// Sets a page's hub from the authorities that it links to.
pub struct Gather;

impl Apply<Hits, Page> for Gather {
    #[inline(always)]
    fn apply(&self, page: Master<'_, Page>, cx: &mut Context<'_, Hits>) {
        set(page, HUB, cx.global.scale(AUTHORITY), cx.worker);
    }
}

#[inline(always)]
fn set(page: Master<'_, Page>, which: usize, scale: f32, [squares, products]: &mut [f64; 2]) {
    let (before, score) = (page.sync[which], *page.delta * scale);
    *squares += f64::from(score) * f64::from(score);
    *products += f64::from(score) * f64::from(before);
    page.sync[which] = score;
}

/// Measures the vector of authorities.
pub struct MeasureAuthorities;

impl GlobalSync<Hits> for MeasureAuthorities {
    fn apply(&self, total: [f64; 2], state: &mut State) {
        state.measure(AUTHORITY, total);
    }
}

/// Measures the vector of hubs.
pub struct MeasureHubs;

impl GlobalSync<Hits> for MeasureHubs {
    fn apply(&self, total: [f64; 2], state: &mut State) {
        state.measure(HUB, total);
    }
}

/// Returns the stages of an iteration.
pub fn sequence() -> Sequence<Hits, impl Stages<Hits>> {
    Sequence::new()
        .exchange(Point)
        .apply(Right, Trust)
        .global_sync(MeasureAuthorities)
        .exchange(Cite)
        .apply(Left, Gather)
        .global_sync(MeasureHubs)
}

/// Returns the unit vectors of hubs and of authorities.
pub fn unit(pages: impl Iterator<Item = Scores> + Clone) -> [Vec<f32>; 2] {
    [HUB, AUTHORITY].map(|which| {
        let squares: f64 = pages.clone().map(|scores| f64::from(scores[which]).powi(2)).sum();
        let scale = if squares > 0.0 { 1.0 / squares.sqrt() } else { 0.0 };
        pages.clone().map(|scores| (f64::from(scores[which]) * scale) as f32).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_change_is_that_of_unit_vectors() {
        // (3, 4) becomes (4, 3), scaled: the unit vectors are sqrt(0.04 + 0.04) apart.
        let mut state = State { lengths: [5.0, 0.0], ..State::new(2) };
        state.measure(HUB, [100.0, 3.0 * 8.0 + 4.0 * 6.0]);
        assert!((state.changes[HUB] - 0.08_f64.sqrt()).abs() < 1e-12 && state.lengths[HUB] == 10.0);
        // From nothing to something it is 1, and nothing stays nothing.
        state.measure(AUTHORITY, [4.0, 0.0]);
        assert_eq!((state.changes[AUTHORITY], state.lengths[AUTHORITY]), (1.0, 2.0));
        state.lengths[AUTHORITY] = 0.0;
        state.measure(AUTHORITY, [0.0, 0.0]);
        assert_eq!(state.changes[AUTHORITY], 0.0);
    }

    #[test]
    fn vectors_are_scaled_to_one() {
        let [hubs, authorities] = unit([[3.0, 0.0], [4.0, 0.0]].into_iter());
        assert_eq!((hubs, authorities), (vec![0.6, 0.8], vec![0.0, 0.0]));
    }
}
