//! The walk over a block: calls an edge function with the views of both ends, edge by edge.

use megagrid_partition::Side;
use megagrid_stages::mode::{Access, Mode};
use megagrid_stages::{Context, EdgeItem, Exchange, Program};

use super::awake::Awake;
use super::block::{Id, LocalEdges};
use super::edge_data::Data;
use super::ends::{Ends, HeldRows};
use super::groups::{Groups, Visits};
use super::width::Width;

/// How many edges ahead rows are fetched (measured: MF at k = 32 and 100).
const PREFETCH_AHEAD: usize = 6;

/// Everything that the walk over a block needs; `run` is compiled for each vector level.
pub struct Walk<'w, 'h, P: Program, E: Exchange<P>, I, W> {
    /// The edges of the block's column.
    pub edges: &'w LocalEdges<I>,
    pub block: usize,
    pub left: &'w mut HeldRows<'h, P::Left, E::Left>,
    pub right: &'w mut HeldRows<'h, P::Right, E::Right>,
    pub data: &'w mut [EdgeItem<P>],
    /// Which rows of the right shard run.
    pub visits: &'w mut Visits,
    /// The block's right vertices that are awake, if others are skipped, and how often some of them may have been woken.
    pub awake: Option<(&'w mut Awake, u64)>,
    /// The edge function.
    pub stage: &'w E,
    /// Items per row, left and right.
    pub widths: (W, W),
}

impl<P: Program, E: Exchange<P>, I: Id, W: Width> Walk<'_, '_, P, E, I, W> {
    const ROTATES: bool = !matches!(E::Left::MODE, Mode::Read) && !matches!(E::Right::MODE, Mode::Read);

    /// Runs the edge function on every edge of the block.
    ///
    /// # Panics
    /// When fewer rows are held than the block's ids need, or rows of another width.
    #[inline(always)]
    pub fn run(self, cx: &mut Context<'_, P>) {
        let Self { edges, block, left, right, data, visits, awake, stage, widths } = self;
        if E::GROUPED && awake.is_none() && visits.asks() {
            visits.active.extend(right.reads(edges.right_rows(), widths.1).map(|row| stage.is_active(row, cx)));
        }
        let lefts = left.ends(Side::Left, (edges, block), widths.0);
        let rights = right.ends(Side::Right, (edges, block), widths.1);
        let data = Data::<P>::new(edges, block, data);
        let runs = edges.runs(&edges.blocks()[block]);
        // A function whose edges have one form is compiled for that form only.
        if E::GROUPED {
            assert!(edges.grouped(), "a function that asks for groups gets them");
            let groups = Groups { lefts, rights, runs };
            match awake {
                Some((awake, wakings)) => groups.awake(awake, wakings, visits, data, stage, cx),
                None => groups.active(visits, data, stage, cx),
            }
        } else if Self::ROTATES {
            assert!(!edges.grouped(), "a function that changes both ends runs on pairs");
            pairs(lefts, rights, data, stage, cx);
        } else if edges.grouped() {
            Groups { lefts, rights, runs }.all(data, stage, cx);
        } else {
            pairs(lefts, rights, data, stage, cx);
        }
    }
}

/// Edges as shuffled pairs: both endpoints' rows are fetched a few edges ahead.
#[inline(always)]
fn pairs<P: Program, E: Exchange<P>, I: Id, W: Width>(
    mut lefts: Ends<'_, P::Left, E::Left, I, W>,
    mut rights: Ends<'_, P::Right, E::Right, I, W>,
    mut data: Data<'_, P>,
    stage: &E,
    cx: &mut Context<'_, P>,
) {
    let (of_left, of_right) = (lefts.ids(), rights.ids());
    let (left, right) = (lefts.addresses(), rights.addresses());
    let n = of_left.len();
    assert_eq!(n, of_right.len(), "pairs have two ends");
    for edge in 0..n {
        if edge + PREFETCH_AHEAD < n {
            left.row(of_left[edge + PREFETCH_AHEAD], E::Left::MODE);
            right.row(of_right[edge + PREFETCH_AHEAD], E::Right::MODE);
        }
        stage.exchange(E::Left::view(lefts.at(edge)), E::Right::view(rights.at(edge)), data.at(edge), cx);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
