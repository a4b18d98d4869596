//! Places: where the items of each vertex's edges are, for stages that run on a vertex with all of them.
//!
//! A right vertex's items are in its column. A left vertex's are all over the row of blocks of its shard, which is laid out
//! block after block while a stage runs on it. So any order of edges serves both sides, and either costs one index.

use std::ops::Range;

use megagrid_partition::Side;

use super::column::Column;
use super::on_workers::on_workers;
use crate::Error;
use crate::plan::Plan;

/// The places of the items of a shard's vertices: in its column, or in its row of blocks.
#[derive(Debug, Default)]
pub struct Places {
    offsets: Box<[u32]>,
    places: Box<[u32]>,
    /// The row at the other end of each item's edge, where a stage looks at it.
    ends: Box<[u32]>,
}

impl Places {
    /// Returns the places of the items of the shard's `row`th vertex, ascending unless [`ends`](Self::ends) are known.
    #[inline(always)]
    pub fn of(&self, row: usize) -> &[u32] {
        &self.places[self.span(row)]
    }

    /// Returns which of all places are those of the shard's `row`th vertex.
    #[inline(always)]
    pub fn span(&self, row: usize) -> Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    /// Returns the places of all vertices' items, and the rows at their other ends, ascending for each vertex; none where no stage looks
    /// at them.
    pub fn ends(&self) -> (&[u32], &[u32]) {
        (&self.places, &self.ends)
    }

    pub fn bytes(&self) -> usize {
        (self.offsets.len() + self.places.len() + self.ends.len()) * size_of::<u32>()
    }

    /// Makes the index of `rows` vertices; `each` calls back with the row, the row at the other end and the items of each edge, twice
    /// the same. The rows at the other ends are kept if `with_ends`.
    fn new(
        rows: usize,
        with_ends: bool,
        mut each: impl FnMut(&mut dyn FnMut(usize, usize, Range<usize>)),
    ) -> Result<Self, Error> {
        let mut counts = vec![0_usize; rows + 1];
        each(&mut |row, _, items| counts[row + 1] += items.len());
        (0..rows).for_each(|row| counts[row + 1] += counts[row]);
        let total = counts[rows];
        if u32::try_from(total).is_err() {
            let expected = "4294967295 or fewer: leave the grid on, or use more workers";
            return Err(Error::Setting { name: "edge data of a shard", found: format!("{total} items"), expected });
        }
        let mut next: Box<[u32]> = counts.iter().map(|&count| count as u32).collect();
        let offsets = next.clone();
        let mut places = vec![0; total].into_boxed_slice();
        let mut ends = vec![0; if with_ends { total } else { 0 }].into_boxed_slice();
        each(&mut |row, end, items| {
            for item in items {
                let at = next[row] as usize;
                places[at] = item as u32;
                if with_ends {
                    ends[at] = end as u32;
                }
                next[row] += 1;
            }
        });
        let mut places = Self { offsets, places, ends };
        if with_ends {
            places.sort_by_ends();
        }
        Ok(places)
    }

    /// Puts the items of each vertex in the order of the rows at the other ends, which no number of workers changes.
    fn sort_by_ends(&mut self) {
        let mut pairs = Vec::new();
        for span in self.offsets.windows(2) {
            let span = span[0] as usize..span[1] as usize;
            let (ends, places) = (&mut self.ends[span.clone()], &mut self.places[span]);
            if !ends.is_sorted() {
                pairs.clear();
                pairs.extend(ends.iter().copied().zip(places.iter().copied()));
                pairs.sort_by_key(|&(end, _)| end);
                for ((end, place), pair) in ends.iter_mut().zip(places).zip(&pairs) {
                    (*end, *place) = *pair;
                }
            }
        }
    }
}

/// Lists the blocks of a left shard, by column and place in it, in the order in which its row of blocks is laid out.
pub fn row_of_blocks(plan: &Plan, left: usize) -> impl Iterator<Item = (usize, usize)> {
    let (columns, layers, left_shards) = (plan.right.num_shards(), plan.layers, plan.left.num_shards());
    (0..columns).flat_map(move |column| (0..layers).map(move |layer| (column, layer * left_shards + left)))
}

/// Makes the index of both sides, of those that some stage runs on with all edges; else it is empty.
pub fn places(plan: &Plan, columns: &[Column]) -> Result<[Box<[Places]>; 2], Error> {
    let [left, right] = [Side::Left, Side::Right].map(|side| {
        let is_used = plan.stages.iter().any(|stage| stage.indexes(side));
        if is_used { of_side(plan, columns, side) } else { Ok(Box::default()) }
    });
    Ok([left?, right?])
}

fn of_side(plan: &Plan, columns: &[Column], side: Side) -> Result<Box<[Places]>, Error> {
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

fn of_shard(plan: &Plan, columns: &[Column], side: Side, shard: usize) -> Result<Places, Error> {
    let (rows, lefts) = (plan.side(side).rows(shard).len(), plan.left.num_shards());
    let with_ends = plan.stages.iter().any(|stage| stage.gathers && stage.indexes(side));
    match side {
        Side::Right => Places::new(rows, with_ends, |visit| {
            for block in 0..columns[shard].edges.blocks().len() {
                let first = if plan.whole { 0 } else { plan.left.bounds[block % lefts] };
                columns[shard].edges.each_edge(block, |left, right, items| visit(right, first + left, items));
            }
        }),
        Side::Left => Places::new(rows, with_ends, |visit| {
            let mut begin = 0;
            for (column, block) in row_of_blocks(plan, shard) {
                let edges = &columns[column].edges;
                let span = edges.items(block);
                let laid_out = |items: Range<usize>| items.start - span.start + begin..items.end - span.start + begin;
                let first = plan.right.bounds[column];
                edges.each_edge(block, |left, right, items| visit(left, first + right, laid_out(items)));
                begin += span.len();
            }
        }),
    }
}
