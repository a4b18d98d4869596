//! Columns out of those of another grid: what stays is copied in long pieces, and only vertices are looked at that get edges or lose some.
//!
//! A block has its right vertices in the order of their degrees in it, those with equally many edges in the order of their rows. So
//! vertices that nothing happens to keep their order, whatever rows a shard has, and those that something happens to are put between them.

use std::ops::Range;

use megagrid_stages::{EdgeItem, Program, Store};

use super::bring::{Built, Take, groups_of};
use super::{Columns, Listed, RowOrder, columns_of, layer_of, position, shards_of};
use crate::Error;
use crate::grid::column::Local;
use crate::grid::hold::hold;
use crate::grid::{Grid, Listing};
use crate::plan::Plan;

mod block;

use block::{Block, Changed, From, Items};

/// The edges of a grid, without those that go and with those that come.
pub struct Change<'c, P: Program> {
    pub grid: &'c Grid<P>,
    pub plan: &'c Plan,
    /// Grouped by right vertex, left ends ascending.
    pub come: &'c Listing<P>,
    /// The ends of those that go, by id, right ones in the upper halves.
    pub gone: &'c [u64],
}

impl<P: Program> Change<'_, P> {
    /// Tells whether blocks of another plan are those of the grid, but for where right shards begin.
    pub fn keeps_blocks(&self, plan: &Plan, orders: &[RowOrder; 2]) -> bool {
        let before = self.plan;
        let same_lefts = match (&self.grid.orders[0], &orders[0]) {
            (RowOrder::Natural(_), RowOrder::Natural(_)) => true,
            // Drawn by the same seed.
            (RowOrder::Shuffled(_), RowOrder::Shuffled(_)) => self.grid.orders[0].len() == orders[0].len(),
            _ => false,
        };
        // Shuffled right vertices are in the order of their ids, not of their rows.
        let by_row = [&self.grid.orders[1], &orders[1]].iter().all(|order| matches!(order, RowOrder::Natural(_)));
        let (old, new) = (before.block_bounds(), plan.block_bounds());
        // Vertices that come are in the last shards.
        let (last, inner) = (old.len() - 1, &old[..old.len() - 1]);
        let same_bounds = new.starts_with(inner) && new.get(last).is_some_and(|&bound| bound >= old[last]);
        let form = |plan: &Plan| (plan.grouped, plan.wide, plan.whole, plan.layers);
        let is_alone = !plan.is_distributed() && !before.is_distributed();
        plan.grouped && is_alone && form(plan) == form(before) && same_bounds && same_lefts && by_row
    }

    /// Makes the columns of another plan. `offsets` say where the edges of each right vertex begin.
    ///
    /// # Errors
    /// A column that is too large for its numbers, or for memory.
    pub fn columns(
        &self,
        plan: &Plan,
        orders: &[RowOrder; 2],
        (seed, offsets): (u64, &[u64]),
    ) -> Result<Columns<EdgeItem<P>>, Error> {
        let changes = self.by_column(plan, orders, seed);
        let merge = Merge { change: self, plan, order: &orders[1], offsets, changes };
        let groups = match plan.wide {
            false => groups_of::<u16, _>(plan, &|worker, take| merge.columns(worker, take)),
            true => groups_of::<u32, _>(plan, &|worker, take| merge.columns(worker, take)),
        };
        Ok(columns_of(groups?, plan))
    }

    /// Deals those that come and those that go to the columns of their right ends, in the order of these columns' edges.
    fn by_column(&self, plan: &Plan, orders: &[RowOrder; 2], seed: u64) -> Vec<[Vec<Changed>; 2]> {
        let mut changes: Vec<[Vec<Changed>; 2]> = (0..plan.right.num_shards()).map(|_| Default::default()).collect();
        let bounds = plan.block_bounds();
        let mut deal = |kind: usize, left: u32, right: u32, edge: usize| {
            let (left, right) = (orders[0].row(left as usize), orders[1].row(right as usize));
            let shard = plan.right.bounds.partition_point(|&bound| bound <= right) - 1;
            let block = bounds.partition_point(|&bound| bound <= left) - 1;
            let block = layer_of(plan.layers, seed, left, right) * (bounds.len() - 1) + block;
            let right = (right - plan.right.bounds[shard]) as u32;
            changes[shard][kind].push(Changed { block: block as u32, right, left: left as u32, edge });
        };
        let come = self.come.left.iter().zip(&self.come.right).enumerate();
        come.for_each(|(edge, (&left, &right))| deal(0, left, right, edge));
        self.gone.iter().for_each(|&ends| deal(1, ends as u32, (ends >> 32) as u32, 0));
        changes.iter_mut().flatten().for_each(|all| all.sort_by_key(|one| (one.block, one.right, one.left)));
        changes
    }
}

struct Merge<'m, P: Program> {
    change: &'m Change<'m, P>,
    plan: &'m Plan,
    order: &'m RowOrder,
    /// Where the edges of each right vertex begin.
    offsets: &'m [u64],
    /// By column, those that come and those that go.
    changes: Vec<[Vec<Changed>; 2]>,
}

impl<P: Program> Merge<'_, P> {
    fn columns<I: Local>(&self, worker: usize, take: Take<'_, I, EdgeItem<P>>) -> Result<(), Error> {
        shards_of(self.plan, worker).into_iter().try_for_each(|shard| take(shard, self.column(shard)?))
    }

    fn column<I: Local>(&self, shard: usize) -> Result<Built<I, EdgeItem<P>>, Error> {
        let (rows, bounds) = (self.plan.right.rows(shard), self.plan.block_bounds());
        let (lefts, from) = (bounds.len() - 1, self.from::<I>(&rows));
        let lefts_before = self.change.plan.block_bounds().len() - 1;
        let degree = |id: usize| (self.offsets[id + 1] - self.offsets[id]) as usize;
        let edges = rows.clone().map(|row| degree(self.order.id(row))).sum();
        position("edges", edges)?;
        let [come, gone] = &self.changes[shard];
        let most = from.iter().map(|from| from.data.len()).sum::<usize>() + self.change.come.items.len();
        let mut items = Items::<P>::with_capacity(if P::Edge::SHAPE.is_slice() { most } else { edges });
        let (mut listed, mut ends) = (Listed::<I>::new(rows.len(), true), vec![0]);
        listed.reserve(edges);
        let mut merged = Block::new(&from, self.change.come, rows.len());
        for block in 0..self.plan.layers * lefts {
            let of_block = |all: &'_ [Changed]| {
                let at = |block: usize| all.partition_point(|one| (one.block as usize) < block);
                at(block)..at(block + 1)
            };
            let (left, come, gone) = (block % lefts, &come[of_block(come)], &gone[of_block(gone)]);
            let before = (left < lefts_before).then_some(block / lefts * lefts_before + left);
            merged.begin(before, bounds[left], (come, gone));
            merged.write(&mut listed.grow(bounds[left + 1] - bounds[left]), &mut items);
            ends.push(items.len());
        }
        position("items of edge data", items.len())?;
        Ok(items.of(listed, ends))
    }

    /// Returns the columns that have some of these rows.
    fn from<I: Local>(&self, rows: &Range<usize>) -> Vec<From<'_, I, P>> {
        let (grid, right) = (self.change.grid, &self.change.plan.right);
        let all = 0..grid.columns.len();
        all.filter_map(|shard| {
            let old = right.rows(shard);
            let both = old.start.max(rows.start)..old.end.min(rows.end);
            let edges = I::of(&grid.columns[shard].edges).filter(|_| !both.is_empty())?;
            let data = grid.data_of(shard);
            let data = hold(|| data.try_share(0..data.num_pieces()));
            let shift = old.start as isize - rows.start as isize;
            Some(From { edges, data, rows: both.start - old.start..both.end - old.start, shift })
        })
        .collect()
    }
}
