//! Places: where the items of each vertex's edges are, for stages that run on a vertex with all of them.
//!
//! A right vertex's items are in its column. A left vertex's are all over the row of blocks of its shard, which is laid out
//! block after block while a stage runs on it. So any order of edges serves both sides, and either costs one index.

use std::ops::Range;
use std::sync::Mutex;

use megagrid_partition::Side;
use megagrid_stages::Program;

use super::block::{Id, LocalEdges};
use super::{Column, Edges};
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

    /// Returns the bytes of the index.
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
    let found = Mutex::new((0..shards).map(|_| Ok(Places::default())).collect::<Vec<_>>());
    std::thread::scope(|threads| {
        for worker in plan.local_workers() {
            let found = &found;
            threads.spawn(move || {
                crate::os::keep_current_thread_on(&plan.homes[worker].processors);
                for shard in (0..shards).filter(|&shard| plan.side(side).owners[shard] == worker) {
                    let places = of_shard(plan, columns, side, shard);
                    found.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[shard] = places;
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).into_iter().collect()
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

impl Edges {
    /// Returns the items of a block's edges among those of its column.
    fn items(&self, block: usize) -> Range<usize> {
        let edges = self.blocks()[block].edges.clone();
        let (begin, end) = (self.first_item(edges.start), self.first_item(edges.end));
        begin..end
    }

    fn first_item(&self, edge: usize) -> usize {
        match self {
            Self::Narrow(edges) => edges.first_item(edge),
            Self::Wide(edges) => edges.first_item(edge),
        }
    }

    /// Calls `visit` with the left and the right row in their shards, and the items in the column, of each edge of a block.
    pub fn each_edge(&self, block: usize, visit: impl FnMut(usize, usize, Range<usize>)) {
        match self {
            Self::Narrow(edges) => each_edge(edges, block, visit),
            Self::Wide(edges) => each_edge(edges, block, visit),
        }
    }
}

fn each_edge<I: Id>(edges: &LocalEdges<I>, block: usize, mut visit: impl FnMut(usize, usize, Range<usize>)) {
    let block = &edges.blocks()[block];
    let (lefts, rights) = (edges.left(block), edges.right(block));
    let mut edge = 0;
    let mut next = |right: &I| {
        let at = block.edges.start + edge;
        visit(lefts[edge].index(), right.index(), edges.first_item(at)..edges.first_item(at + 1));
        edge += 1;
    };
    if !edges.grouped() {
        return rights.iter().for_each(next);
    }
    let mut vertices = rights.iter();
    for run in edges.runs(block) {
        for right in vertices.by_ref().take(run.vertices as usize) {
            (0..run.degree).for_each(|_| next(right));
        }
    }
}
