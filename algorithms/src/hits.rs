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
//! start. What many links pass on is summed in double precision. Memory: 24 bytes a page, 4 to 8 a link. Not for: graphs of several components whose ranks are to be compared, of which the
//! one with the largest singular value gets all weight.

use megagrid_stages::{Add, Apply, Context, Exchange, GlobalSync, Left, Master, Read, Right, Sequence, Stages, mode};
use megagrid_stages::{program, vertex};
use serde::{Deserialize, Serialize};

const HUB: usize = 0;
const AUTHORITY: usize = 1;

vertex! {
    /// A page that links to others: how good a hub it is, up to the factor that all have in common.
    pub struct Hub { sync: f32, delta: f64 }
}

vertex! {
    /// A page that others link to: how good an authority it is, up to the factor that all have in common.
    pub struct Authority { sync: f32, delta: f64 }
}

program! {
    /// Hubs and authorities: every page is one of each. Workers sum squares, and products with what was there before.
    pub struct Hits { left: Hub, right: Authority, worker: [f64; 2], global: State }
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
    fn scale(&self, which: usize) -> f64 {
        let length = self.lengths[which];
        if length > 0.0 { 1.0 / length } else { 0.0 }
    }
}

/// Adds a page's hub to the sum of the page that it links to.
pub struct Point;

impl Exchange<Hits> for Point {
    type Left = mode::Read;
    type Right = mode::Add;
    const CHANGES_EDGES: bool = false;

    #[inline(always)]
    fn exchange(&self, from: Read<'_, Hub>, to: Add<'_, Authority>, _: &mut (), _: &mut Context<'_, Hits>) {
        *to.delta += f64::from(*from.sync);
    }
}

/// Adds a page's authority to the sum of the page that links to it.
pub struct Cite;

impl Exchange<Hits> for Cite {
    type Left = mode::Add;
    type Right = mode::Read;
    const CHANGES_EDGES: bool = false;

    #[inline(always)]
    fn exchange(&self, from: Add<'_, Hub>, to: Read<'_, Authority>, _: &mut (), _: &mut Context<'_, Hits>) {
        *from.delta += f64::from(*to.sync);
    }
}

/// Sets a page's authority from the hubs that link to it.
pub struct Trust;

impl Apply<Hits, Authority> for Trust {
    #[inline(always)]
    fn apply(&self, page: Master<'_, Authority>, cx: &mut Context<'_, Hits>) {
        set(page.sync, (*page.delta * cx.global.scale(HUB)) as f32, cx.worker);
    }
}

/// Sets a page's hub from the authorities that it links to.
pub struct Gather;

impl Apply<Hits, Hub> for Gather {
    #[inline(always)]
    fn apply(&self, page: Master<'_, Hub>, cx: &mut Context<'_, Hits>) {
        set(page.sync, (*page.delta * cx.global.scale(AUTHORITY)) as f32, cx.worker);
    }
}

#[inline(always)]
fn set(sync: &mut f32, score: f32, [squares, products]: &mut [f64; 2]) {
    *squares += f64::from(score) * f64::from(score);
    *products += f64::from(score) * f64::from(*sync);
    *sync = score;
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

/// Returns scores as a unit vector.
#[must_use]
pub fn unit(mut scores: Vec<f32>) -> Vec<f32> {
    let squares: f64 = scores.iter().map(|&score| f64::from(score).powi(2)).sum();
    let scale = if squares > 0.0 { 1.0 / squares.sqrt() } else { 0.0 };
    scores.iter_mut().for_each(|score| *score = (f64::from(*score) * scale) as f32);
    scores
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
        assert_eq!((unit(vec![3.0, 4.0]), unit(vec![0.0; 2])), (vec![0.6, 0.8], vec![0.0; 2]));
    }
}
