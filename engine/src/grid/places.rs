//! Places: where the items of each vertex's edges are, for stages that run on a vertex with all of them.
//!
//! A right vertex's items are in its column. A left vertex's are all over the row of blocks of its shard, which is laid out
//! block after block while a stage runs on it. So any order of edges serves both sides, and either costs one index.

use std::ops::Range;

use megagrid_partition::Side;
use megagrid_stages::Program;

use super::column::Column;
use super::on_workers::on_workers;
use crate::Error;
use crate::plan::{Plan, StageKind};

/// The places of the items of a shard's vertices: in its column, or in its row of blocks.
#[derive(Debug, Default)]
pub struct Places {
    offsets: Box<[u32]>,
    places: Box<[u32]>,
}

impl Places {
    /// Returns the places of the items of the shard's `row`th vertex, ascending.
    #[inline(always)]
    pub fn of(&self, row: usize) -> &[u32] {
        &self.places[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    pub fn bytes(&self) -> usize {
        (self.offsets.len() + self.places.len()) * size_of::<u32>()
    }

    /// Makes the index of `rows` vertices; `each` calls back with the row and the items of each edge, twice the same.
    fn new(rows: usize, mut each: impl FnMut(&mut dyn FnMut(usize, Range<usize>))) -> Result<Self, Error> {
        let mut counts = vec![0_usize; rows + 1];
        each(&mut |row, items| counts[row + 1] += items.len());
        (0..rows).for_each(|row| counts[row + 1] += counts[row]);
        let total = counts[rows];
        if u32::try_from(total).is_err() {
            let expected = "4294967295 or fewer: leave the grid on, or use more workers";
            return Err(Error::Setting { name: "edge data of a shard", found: format!("{total} items"), expected });
        }
        let mut next: Box<[u32]> = counts.iter().map(|&count| count as u32).collect();
        let offsets = next.clone();
        let mut places = vec![0; total].into_boxed_slice();
        each(&mut |row, items| {
            for item in items {
                places[next[row] as usize] = item as u32;
                next[row] += 1;
            }
        });
        Ok(Self { offsets, places })
    }
}

/// Lists the blocks of a left shard, by column and place in it, in the order in which its row of blocks is laid out.
pub fn row_of_blocks(plan: &Plan, left: usize) -> impl Iterator<Item = (usize, usize)> {
    let (columns, layers, left_shards) = (plan.right.num_shards(), plan.layers, plan.left.num_shards());
    (0..columns).flat_map(move |column| (0..layers).map(move |layer| (column, layer * left_shards + left)))
}

/// Makes the index of both sides, of those that some stage runs on with all edges; else it is empty.
pub fn places<P: Program>(plan: &Plan, columns: &[Column<P>]) -> Result<[Box<[Places]>; 2], Error> {
    let [left, right] = [Side::Left, Side::Right].map(|side| {
        let is_used = plan.stages.iter().any(|stage| stage.kind == StageKind::Incident(side));
        if is_used { of_side(plan, columns, side) } else { Ok(Box::default()) }
    });
    Ok([left?, right?])
}

fn of_side<P: Program>(plan: &Plan, columns: &[Column<P>], side: Side) -> Result<Box<[Places]>, Error> {
    let shards = plan.side(side).num_shards();
    let owned = |worker| (0..shards).filter(move |&shard| plan.side(side).owners[shard] == worker);
    let of_worker =
        |worker| owned(worker).map(|shard| (shard, of_shard(plan, columns, side, shard))).collect::<Vec<_>>();
    let mut found: Box<[Places]> = (0..shards).map(|_| Places::default()).collect();
    for (shard, places) in on_workers(plan, of_worker).into_iter().flatten() {
        found[shard] = places?;
    }
    Ok(found)
}

fn of_shard<P: Program>(plan: &Plan, columns: &[Column<P>], side: Side, shard: usize) -> Result<Places, Error> {
    let rows = plan.side(side).rows(shard).len();
    match side {
        Side::Right => Places::new(rows, |visit| {
            for block in 0..columns[shard].edges.blocks().len() {
                columns[shard].edges.each_edge(block, |_, right, items| visit(right, items));
            }
        }),
        Side::Left => Places::new(rows, |visit| {
            let mut begin = 0;
            for (column, block) in row_of_blocks(plan, shard) {
                let edges = &columns[column].edges;
                let span = edges.items(block);
                let laid_out = |items: Range<usize>| items.start - span.start + begin..items.end - span.start + begin;
                edges.each_edge(block, |left, _, items| visit(left, laid_out(items)));
                begin += span.len();
            }
        }),
    }
}
