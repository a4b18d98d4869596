//! Columns in pair form: each edge is counted, then placed where it stays, then blocks are shuffled.

use std::ops::Range;

use bytemuck::Zeroable;
use megagrid_partition::{Side, SplitMix};
use megagrid_stages::{EdgeItem, Program, Store};

use super::values::Values;
use super::{Build, Column, Columns, Edges, Fill, Id, LocalEdges};
use crate::Error;

/// An edge of a shard, as the source names it.
struct Placed<'e, T> {
    shard: usize,
    /// Local id of the right end.
    right: usize,
    /// Id of the left end.
    left: usize,
    layer: usize,
    value: &'e T,
}

impl<T: Copy + Sync, P: Program> Build<'_, T, P> {
    pub(super) fn pairs<I: Id>(&self, shards: &[usize]) -> Result<Columns<P>, Error>
    where
        Edges: From<LocalEdges<I>>,
    {
        let (left, right) = (&self.plan.left, &self.plan.right);
        let (left_shards, places) = (left.num_shards(), self.left_places());
        let blocks = self.plan.layers * left_shards;
        let block = |edge: &Placed<'_, T>| edge.layer * left_shards + places[edge.left].0 as usize;
        let held: Vec<_> = (0..right.num_shards()).map(|shard| self.held_lefts(shard)).collect();
        let here =
            |edge: &Placed<'_, T>| held[edge.shard].as_ref().is_none_or(|held| held[places[edge.left].0 as usize]);
        let mut bounds = vec![Vec::new(); right.num_shards()];
        shards.iter().for_each(|&shard| bounds[shard] = vec![0_usize; blocks + 1]);
        self.each_edge(shards, |edge| bounds[edge.shard][block(&edge) + 1] += usize::from(here(&edge)))?;

        let mut columns: Vec<Option<Pairs<'_, I, T, P>>> = (0..right.num_shards()).map(|_| None).collect();
        for &shard in shards {
            (1..=blocks).for_each(|i| bounds[shard][i] += bounds[shard][i - 1]);
            columns[shard] = Some(Pairs::new(&bounds[shard], self.fill));
        }
        self.each_edge(shards, |edge| {
            if let Some(column) = &mut columns[edge.shard]
                && here(&edge)
            {
                column.place(block(&edge), places[edge.left].1 as usize, edge.right, edge.value);
            }
        })?;
        let left_rows: Vec<usize> = (0..blocks).map(|block| left.rows(block % left_shards).len()).collect();
        let finish = |(shard, column): (usize, Pairs<'_, I, T, P>)| {
            let random = SplitMix::new(self.seed, shard as u64);
            Ok((shard, column.finish(&left_rows, right.rows(shard).len(), &bounds[shard], random)?))
        };
        columns.into_iter().enumerate().filter_map(|(shard, column)| Some((shard, column?))).map(finish).collect()
    }

    /// Returns the shard and the local id of each left vertex.
    fn left_places(&self) -> Vec<(u32, u32)> {
        let order = &self.orders[0];
        let mut places = vec![(0, 0); order.len()];
        for shard in 0..self.plan.left.num_shards() {
            for (local, row) in self.plan.left.rows(shard).enumerate() {
                places[order.id(row)] = (shard as u32, local as u32);
            }
        }
        places
    }

    /// Calls `visit` with every edge of the shards, in the source's order.
    fn each_edge(&self, shards: &[usize], mut visit: impl FnMut(Placed<'_, T>)) -> Result<(), Error> {
        let bounds = &self.plan.right.bounds;
        let mut mine = vec![false; self.plan.right.num_shards()];
        shards.iter().for_each(|&shard| mine[shard] = true);
        let offsets = self.source.held_offsets();
        for ids in super::windows(self.source) {
            let first = offsets[ids.start];
            self.source.visit_rows(Side::Right, ids.clone(), &mut |targets, data| {
                for id in ids.clone() {
                    let row = self.orders[1].row(id);
                    let shard = bounds.partition_point(|&bound| bound <= row) - 1;
                    if !mine[shard] {
                        continue;
                    }
                    let right = row - bounds[shard];
                    for edge in (offsets[id] - first) as usize..(offsets[id + 1] - first) as usize {
                        let left = targets[edge] as usize;
                        let layer = self.layer_of(self.orders[0].row(left), row);
                        visit(Placed { shard, right, left, layer, value: &data[edge] });
                    }
                }
            })?;
        }
        Ok(())
    }
}

/// A column that is being filled.
struct Pairs<'p, I, T, P: Program> {
    left: Vec<I>,
    right: Vec<I>,
    /// Data in slices: the source's values, until all edges are placed.
    values: Vec<T>,
    /// Data of one item.
    items: Vec<EdgeItem<P>>,
    next: Vec<usize>,
    fill: &'p Fill<'p, T, EdgeItem<P>>,
}

impl<'p, I: Id, T: Copy, P: Program> Pairs<'p, I, T, P> {
    fn new(bounds: &[usize], fill: &'p Fill<'p, T, EdgeItem<P>>) -> Self {
        let edges = bounds[bounds.len() - 1];
        let items = if P::Edge::SHAPE.is_slice() { 0 } else { edges };
        Self {
            left: vec![id(0); edges],
            right: vec![id(0); edges],
            values: Vec::new(),
            items: vec![Zeroable::zeroed(); items],
            next: bounds[..bounds.len() - 1].to_vec(),
            fill,
        }
    }

    fn place(&mut self, block: usize, left: usize, right: usize, value: &T) {
        let at = self.next[block];
        self.next[block] += 1;
        (self.left[at], self.right[at]) = (id(left), id(right));
        if P::Edge::SHAPE.is_slice() {
            if self.values.is_empty() {
                self.values = vec![*value; self.left.len()];
            }
            self.values[at] = *value;
        } else {
            (self.fill.write)(value, &mut self.items[at..=at]);
        }
    }

    fn finish(
        mut self,
        left_rows: &[usize],
        right_rows: usize,
        bounds: &[usize],
        mut random: SplitMix,
    ) -> Result<Column<P>, Error>
    where
        Edges: From<LocalEdges<I>>,
    {
        bounds.windows(2).for_each(|block| self.shuffle(block[0]..block[1], &mut random));
        let mut values = Values::<T, P>::new(self.fill);
        if P::Edge::SHAPE.is_slice() {
            for block in bounds.windows(2) {
                values.extend(&self.values[block[0]..block[1]])?;
                values.end_block(block[1]);
            }
        } else {
            values.items = self.items;
            values.bounds = bounds.to_vec();
        }
        let (data, offsets) = values.finish()?;
        let mut edges = LocalEdges::from_pairs(left_rows, right_rows, bounds, self.left, self.right);
        if P::Edge::SHAPE.is_slice() {
            edges.set_slice_offsets(offsets);
        }
        Ok(Column { edges: edges.into(), data })
    }

    /// Shuffles a block, so that edges of a vertex do not wait for each other's updates.
    fn shuffle(&mut self, block: Range<usize>, random: &mut SplitMix) {
        for i in (block.start + 1..block.end).rev() {
            let j = block.start + random.below((i - block.start + 1) as u64) as usize;
            self.left.swap(i, j);
            self.right.swap(i, j);
            if P::Edge::SHAPE.is_slice() {
                self.values.swap(i, j);
            } else {
                self.items.swap(i, j);
            }
        }
    }
}

fn id<I: Id>(row: usize) -> I {
    let Ok(id) = I::try_from(row) else { unreachable!("a shard's rows fit its ids") };
    id
}
