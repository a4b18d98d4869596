//! PageRank for several sets of restarts at a time: a page has a row of scores, one for each set, and an iteration passes over the links
//! once for all.
//!
//! A row has no accumulator at hand that could sum links in pieces, so rows are summed in double precision: in single precision a page of a
//! hundred thousand links would lose a thousandth, always to the same side.
//!
//! Each column is what [`PageRank`](super::PageRank), or [`Weighted`](super::Weighted), finds of its restart distribution: sets do not know of each
//! other. Memory: 24 bytes a page and set, 2 to 8 a link.

use megagrid_stages::{
    Add, Apply, Combine, Context, Exchange, GlobalSync, Master, Program, Read, Right, Sequence, Stages, mode, program,
    vertex,
};
use serde::{Deserialize, Serialize};

use super::{Damping, Follow, Rank, State, batch};

vertex! {
    /// A page: what it passes on of each set's score along each of its links is synced.
    pub struct PageOfSets { sync: [f32], delta: [f64], master: [Rank] }
}

program! {
    /// PageRank for several sets of restarts.
    pub struct Sets { vertices: PageOfSets, worker: Sums, global: States }
}

program! {
    /// The same with a weight of each link, 0 or above.
    pub struct WeightedSets { vertices: PageOfSets, edge: f32, worker: Sums, global: States }
}

/// What all workers know of each set.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct States(pub Vec<State>);

impl States {
    /// Tells whether no set's residual is to become smaller that is above a tolerance.
    #[must_use]
    pub fn are_at_rounding(&self, tolerance: f64) -> bool {
        self.0.iter().all(|state| state.residual <= tolerance || state.is_at_rounding())
    }

    /// Returns the largest residual.
    #[must_use]
    pub fn residual(&self) -> f64 {
        self.0.iter().map(|state| state.residual).fold(0.0, f64::max)
    }
}

/// What a worker adds up of each set: scores, those of dangling pages, changes. Empty before the first page.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Sums(Vec<[f64; 3]>);

impl Combine for Sums {
    fn combine(&mut self, from: &mut Self) {
        let from = std::mem::take(&mut from.0);
        if self.0.is_empty() {
            self.0 = from;
            return;
        }
        self.0.iter_mut().flatten().zip(from.iter().flatten()).for_each(|(total, part)| *total += part);
    }

    fn sized(sets: usize) -> Self {
        Self(vec![[0.0; 3]; sets])
    }
}

/// A program that ranks pages for several sets, whatever a link carries: [`Sets`], or [`WeightedSets`].
pub trait RanksOfSets: Program<Left = PageOfSets, Right = PageOfSets, Worker = Sums, Global = States> {}
impl<P: Program<Left = PageOfSets, Right = PageOfSets, Worker = Sums, Global = States>> RanksOfSets for P {}

impl Exchange<Sets> for Follow {
    type Left = mode::Read;
    type Right = mode::Add;
    const CHANGES_EDGES: bool = false;

    #[inline(always)]
    fn exchange(&self, from: Read<'_, PageOfSets>, to: Add<'_, PageOfSets>, _: &mut (), _: &mut Context<'_, Sets>) {
        to.delta.iter_mut().zip(from.sync).for_each(|(sum, &passed)| *sum += f64::from(passed));
    }
}

impl Exchange<WeightedSets> for Follow {
    type Left = mode::Read;
    type Right = mode::Add;
    const CHANGES_EDGES: bool = false;

    #[inline(always)]
    fn exchange(
        &self,
        from: Read<'_, PageOfSets>,
        to: Add<'_, PageOfSets>,
        weight: &mut f32,
        _: &mut Context<'_, WeightedSets>,
    ) {
        to.delta.iter_mut().zip(from.sync).for_each(|(sum, &passed)| *sum += f64::from(passed) * f64::from(*weight));
    }
}

/// Settles a page's scores from the sums of what was passed on to it.
pub struct SettleSets;

impl<P: RanksOfSets> Apply<P, PageOfSets> for SettleSets {
    #[inline(always)]
    fn apply(&self, page: Master<'_, PageOfSets>, cx: &mut Context<'_, P>) {
        let (states, totals) = (&cx.global.0, &mut cx.worker.0);
        totals.resize(states.len(), [0.0; 3]);
        let ranks = page.master.iter_mut().zip(page.sync).zip(page.delta);
        for ((([score, per_link, restart], passed), sum), (state, total)) in ranks.zip(states.iter().zip(totals)) {
            let settled = (*sum + f64::from(state.restart) * f64::from(*restart)) as f32;
            let sums = [settled, if *per_link == 0.0 { settled } else { 0.0 }, (settled - *score).abs()];
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += f64::from(sum));
            *score = settled;
            *passed = settled * *per_link;
        }
    }
}

/// Measures the residuals and sets the restart masses of the next iteration.
pub struct MeasureSets(pub Damping);

impl<P: RanksOfSets> GlobalSync<P> for MeasureSets {
    fn apply(&self, sums: Sums, states: &mut States) {
        states.0.iter_mut().zip(sums.0).for_each(|(state, sums)| *state = State::after(self.0, sums).since(state));
    }
}

/// Returns the stages of an iteration over a graph with `edges` links.
pub fn sequence_of_sets<P: RanksOfSets>(damping: Damping, edges: u64) -> Sequence<P, impl Stages<P>>
where
    Follow: Exchange<P>,
{
    Sequence::new()
        .mini_batch(batch(edges), |b| b.exchange(Follow).apply(Right, SettleSets))
        .global_sync(MeasureSets(damping))
}
