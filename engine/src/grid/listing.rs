//! Edges as they were given to a grid, out of it again: what a grid of more edges, or of fewer, is built from.

use std::io;
use std::ops::Range;

use megagrid_partition::{ShardId, Side};
use megagrid_stages::{EdgeItem, Program, Store};

use super::build::{Source, places_of_pairs};
use super::hold::hold;
use super::on_workers::on_workers;
use super::{Column, Grid};
use crate::plan::Plan;

/// Edges by the ids of their ends, and what they carry. Those with the same ends are in the order in which they were given.
pub struct Listing<P: Program> {
    pub left: Vec<u32>,
    pub right: Vec<u32>,
    /// What they carry, one after the other.
    pub items: Vec<EdgeItem<P>>,
    /// Where the items of each edge end, where they are slices; else each has one.
    pub ends: Vec<usize>,
}

impl<P: Program> Default for Listing<P> {
    fn default() -> Self {
        Self { left: Vec::new(), right: Vec::new(), items: Vec::new(), ends: Vec::new() }
    }
}

impl<P: Program> Listing<P> {
    /// Lists the edges of a grid that this process answers for, with what they carry now.
    pub fn of(grid: &Grid<P>, plan: &Plan, seed: u64) -> Self {
        let parts = on_workers(plan, |worker| {
            let mut part = Self::default();
            let columns = grid.columns.iter().enumerate().skip(worker % plan.threads());
            columns
                .step_by(plan.threads())
                .for_each(|(shard, column)| part.push_column((grid, plan), shard, column, seed));
            part
        });
        let mut all = Self::default();
        parts.iter().for_each(|part| all.extend(part, 0..part.len()));
        all
    }

    /// Returns the number of edges.
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Appends an edge.
    pub fn push(&mut self, left: u32, right: u32, items: &[EdgeItem<P>]) {
        self.left.push(left);
        self.right.push(right);
        self.items.extend_from_slice(items);
        if P::Edge::SHAPE.is_slice() {
            self.ends.push(self.items.len());
        }
    }

    /// Appends some edges of another listing.
    pub fn extend(&mut self, from: &Self, edges: Range<usize>) {
        let (first, begin) = (self.items.len(), from.items_of(edges.start..edges.start).start);
        self.left.extend_from_slice(&from.left[edges.clone()]);
        self.right.extend_from_slice(&from.right[edges.clone()]);
        self.items.extend_from_slice(&from.items[from.items_of(edges.clone())]);
        self.ends.extend(from.ends.get(edges).into_iter().flatten().map(|end| first + end - begin));
    }

    /// Appends the edges of a source that this process can visit.
    ///
    /// # Errors
    /// Edges that cannot be read.
    pub fn extend_from<T>(&mut self, source: &Source<'_, T, P>) -> io::Result<()> {
        let offsets = source.edges.held_offsets();
        for rights in source.edges.windows() {
            source.edges.visit_rows(Side::Right, rights.clone(), &mut |lefts, data| {
                for right in rights.clone() {
                    let degree = (offsets[right + 1] - offsets[right]) as usize;
                    self.right.resize(self.right.len() + degree, right as u32);
                }
                self.left.extend_from_slice(lefts);
                if !P::Edge::SHAPE.is_slice() {
                    return self.items.extend(source.fill.items(data));
                }
                for value in data {
                    let begin = self.items.len();
                    self.items.resize(begin + source.fill.len(value), bytemuck::Zeroable::zeroed());
                    (source.fill.write)(std::slice::from_ref(value), &mut self.items[begin..]);
                    self.ends.push(self.items.len());
                }
            })?;
        }
        Ok(())
    }

    /// Returns where the items of some edges are.
    pub fn items_of(&self, edges: Range<usize>) -> Range<usize> {
        if !P::Edge::SHAPE.is_slice() {
            return edges;
        }
        let end = |edge: usize| if edge == 0 { 0 } else { self.ends[edge - 1] };
        end(edges.start)..end(edges.end)
    }

    fn push_column(&mut self, (grid, plan): (&Grid<P>, &Plan), shard: usize, column: &Column, seed: u64) {
        let data = grid.data_of(shard);
        let data = hold(|| data.try_share(0..data.num_pieces()));
        let first_right = plan.right.rows(shard).start;
        let mut push = |left: usize, right: usize, items: Range<usize>| {
            let ids = [grid.orders[0].id(left), grid.orders[1].id(right)].map(|id| id as u32);
            self.push(ids[0], ids[1], &data[items]);
        };
        let mut shuffled = Vec::new();
        for block in 0..column.edges.blocks().len() {
            let left_shard = block % grid.left_shards;
            let first_left = plan.left.rows(left_shard).start;
            let answers = plan.answers_for(ShardId(left_shard), ShardId(shard));
            column.edges.each_edge(block, |left, right, items| match plan.grouped {
                true if answers => push(first_left + left, first_right + right, items),
                true => {}
                false => shuffled.push((first_left + left, first_right + right, items, answers)),
            });
        }
        if !plan.grouped {
            for at in places_of_pairs(column.edges.blocks().iter().map(|block| block.edges.len()), seed, shard) {
                let (left, right, items, answers) = shuffled[at].clone();
                if answers {
                    push(left, right, items);
                }
            }
        }
    }
}
