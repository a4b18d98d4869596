//! Edges of a right shard as they are listed, block after block, and their way to the memory in which they stay.

use std::ops::Range;
use std::sync::Arc;

use megagrid_stages::Item;

use super::{Block, Id, Ids, Layout, LocalEdges, Run};
use crate::Error;
use crate::grid::disjoint::Disjoint;
use crate::grid::hold::hold;

/// Edges of a right shard, block after block. Ids are checked when they are listed.
pub struct Listed<I> {
    layout: Layout,
    left: Vec<I>,
    right: Vec<I>,
    slice_offsets: Vec<u32>,
}

impl<I: Id> Listed<I> {
    /// Begins an empty list of edges to a right shard of `right_rows` rows.
    pub fn new(right_rows: usize, grouped: bool) -> Self {
        let layout = Layout { right_rows, grouped, runs: Vec::new(), blocks: Vec::new() };
        Self { layout, left: Vec::new(), right: Vec::new(), slice_offsets: Vec::new() }
    }

    /// Makes room for exactly this many edges.
    pub fn reserve(&mut self, edges: usize) {
        self.left.reserve_exact(edges);
    }

    /// Lists the blocks of a right shard in pair form: block `i` is `bounds[i]..bounds[i + 1]`, and its left shard has
    /// `left_rows[i]` rows.
    ///
    /// # Panics
    /// When an id is no row of its shard, or the arrays differ in length.
    pub fn from_pairs(left_rows: &[usize], right_rows: usize, bounds: &[usize], left: Vec<I>, right: Vec<I>) -> Self {
        assert_eq!(left.len(), right.len(), "pairs have two ends");
        assert!(right.iter().all(|id| id.index() < right_rows), "right ids are rows of their shard");
        let mut pairs = Self { left, right, ..Self::new(right_rows, false) };
        for (span, &left_rows) in bounds.windows(2).zip(left_rows) {
            let edges = span[0]..span[1];
            assert!(
                pairs.left[edges.clone()].iter().all(|id| id.index() < left_rows),
                "left ids are rows of their shard"
            );
            let piece = pairs.layout.blocks.len();
            pairs.layout.blocks.push(Block { edges: edges.clone(), rights: edges, runs: 0..0, left_rows, piece });
        }
        pairs
    }

    /// Appends the next block, with the left shard `left`, in grouped form: right vertices in the order in which they are to
    /// be visited, equal degrees side by side, each with the rows of its left ends.
    ///
    /// # Panics
    /// When an id is no row of its shard, or a vertex has no edge.
    pub fn push_grouped<'e>(&mut self, left: Range<usize>, vertices: impl Iterator<Item = (usize, &'e [u32])>) {
        assert!(self.layout.grouped, "blocks of one column have one form");
        let Layout { right_rows, runs, blocks, .. } = &mut self.layout;
        let (first_left, first_right, first_run) = (self.left.len(), self.right.len(), runs.len());
        let mut largest = 0;
        for (right, ends) in vertices {
            self.right.push(checked(right, *right_rows));
            // Checked once for the block, so that this loop has no branches.
            let local = |&row: &u32| {
                let row = row.wrapping_sub(left.start as u32);
                largest = largest.max(row);
                I::truncated(row)
            };
            self.left.extend(ends.iter().map(local));
            let degree = ends.len() as u32;
            assert!(degree > 0, "a listed vertex has edges");
            match runs[first_run..].last_mut() {
                Some(run) if run.degree == degree => run.vertices += 1,
                _ => runs.push(Run { degree, vertices: 1 }),
            }
        }
        if self.left.len() > first_left {
            checked::<I>(largest as usize, left.len());
        }
        blocks.push(Block {
            edges: first_left..self.left.len(),
            rights: first_right..self.right.len(),
            runs: first_run..runs.len(),
            left_rows: left.len(),
            piece: blocks.len(),
        });
    }

    /// Begins the next block in grouped form, with a left shard of `left_rows` rows.
    pub fn grow(&mut self, left_rows: usize) -> Growing<'_, I> {
        assert!(self.layout.grouped, "blocks of one column have one form");
        let begin = (self.left.len(), self.right.len(), self.layout.runs.len());
        Growing { listed: self, left_rows, begin }
    }

    /// Says where each edge's slice of data begins: one more entry than edges in all blocks.
    pub fn set_slice_offsets(&mut self, offsets: Vec<u32>) {
        assert_eq!(offsets.len(), self.left.len() + 1, "one slice for each edge");
        self.slice_offsets = offsets;
    }

    pub fn num_edges(&self) -> usize {
        self.left.len()
    }

    /// Ends the list, and leaves the edges where they are.
    pub fn end(self) -> LocalEdges<I> {
        let Self { mut layout, left, right, slice_offsets } = self;
        layout.runs.shrink_to_fit();
        layout.blocks.shrink_to_fit();
        let [left, right] = [left, right].map(|ids| ids.into_boxed_slice().into());
        LocalEdges {
            layout,
            ids: Arc::new(Ids { left, right, slice_offsets: slice_offsets.into_boxed_slice().into() }),
        }
    }

    /// Returns the blocks, by (layer, left shard).
    pub fn blocks(&self) -> &[Block] {
        &self.layout.blocks
    }
}

/// The last block of a list, to which vertices are appended; see [`Listed::push_grouped`].
pub struct Growing<'l, I: Id> {
    listed: &'l mut Listed<I>,
    left_rows: usize,
    /// Where its left ids, right ids and runs begin.
    begin: (usize, usize, usize),
}

impl<I: Id> Growing<'_, I> {
    /// Appends vertices with `degree` edges each, whose left ends are given by local ids.
    ///
    /// # Panics
    /// When an id is no row of its shard, or there are not as many edges.
    pub fn push(&mut self, degree: usize, rights: impl ExactSizeIterator<Item = usize>, lefts: &[I]) {
        let Listed { layout: Layout { right_rows, runs, .. }, left, right, .. } = &mut *self.listed;
        let vertices = rights.len();
        assert!(degree > 0 && lefts.len() == degree * vertices, "vertices have as many edges as is said");
        if vertices == 0 {
            return;
        }
        // Checked once for all, so that these loops have no branches.
        let mut largest = 0;
        right.extend(rights.map(|row| {
            largest = largest.max(row);
            I::truncated(row as u32)
        }));
        checked::<I>(largest, *right_rows);
        checked::<I>(lefts.iter().max().map_or(0, |id| id.index()), self.left_rows);
        left.extend_from_slice(lefts);
        match runs[self.begin.2..].last_mut() {
            Some(run) if run.degree as usize == degree => run.vertices += vertices as u32,
            _ => runs.push(Run { degree: degree as u32, vertices: vertices as u32 }),
        }
    }
}

impl<I: Id> Drop for Growing<'_, I> {
    /// Ends the block.
    fn drop(&mut self) {
        let Listed { layout: Layout { runs, blocks, .. }, left, right, .. } = &mut *self.listed;
        let (edges, rights, runs) = (self.begin.0..left.len(), self.begin.1..right.len(), self.begin.2..runs.len());
        blocks.push(Block { edges, rights, runs, left_rows: self.left_rows, piece: blocks.len() });
    }
}

fn checked<I: Id>(row: usize, rows: usize) -> I {
    assert!(row < rows, "local id {row} in a shard of {rows} rows");
    let Ok(id) = I::try_from(row) else { unreachable!("a shard's rows fit its ids") };
    id
}

/// In which order the blocks of some columns lie in memory, and at which of these, and at their end, another node of memory begins.
pub struct Order {
    /// The place of its column among these, and its number in it, of each block.
    pub blocks: Vec<(usize, usize)>,
    pub joints: Vec<usize>,
}

impl Order {
    /// Returns the bounds of pieces of these lengths, given by column and block.
    fn bounds(&self, len: impl Fn(usize, usize) -> usize) -> Vec<usize> {
        let mut bounds = vec![0];
        bounds.extend(self.blocks.iter().scan(0, |end, &(column, block)| {
            *end += len(column, block);
            Some(*end)
        }));
        bounds
    }

    /// Makes room for pieces of these lengths, given by column and block. Nothing is written.
    pub fn room<T: Item>(&self, len: impl Fn(usize, usize) -> usize) -> Result<Disjoint<T>, Error> {
        Ok(Disjoint::new(self.bounds(len))?.split_pages(&self.joints))
    }
}

/// The memory in which the edges of some right shards stay, while it is being written.
pub struct Room<I> {
    left: Disjoint<I>,
    right: Disjoint<I>,
    slice_offsets: Disjoint<u32>,
    columns: Vec<Layout>,
}

impl<I: Id> Room<I> {
    /// Makes room for columns that were listed.
    pub fn new(listed: &[&Listed<I>], order: &Order) -> Result<Self, Error> {
        let edges = |column: usize, block: usize| listed[column].blocks()[block].edges.len();
        let rights = |column: usize, block: usize| listed[column].blocks()[block].rights.len();
        let mut columns: Vec<Layout> = listed.iter().map(|one| one.layout.clone()).collect();
        let begins = order.bounds(edges).into_iter().zip(order.bounds(rights));
        for (piece, (&(column, block), (at, right))) in order.blocks.iter().zip(begins).enumerate() {
            let (to_edges, to_rights) = (at..at + edges(column, block), right..right + rights(column, block));
            let into = &mut columns[column].blocks[block];
            (into.piece, into.edges, into.rights) = (piece, to_edges, to_rights);
        }
        let ends: Vec<u32> = listed.iter().filter_map(|one| one.slice_offsets.last().copied()).collect();
        let mut offsets = order.bounds(|column, block| if ends.is_empty() { 0 } else { edges(column, block) });
        // Where the last slice ends.
        offsets.push(offsets[offsets.len() - 1] + usize::from(!ends.is_empty()));
        let slice_offsets = Disjoint::new(offsets)?.split_pages(&order.joints);
        let last = order.blocks.len();
        hold(|| slice_offsets.try_own(last..last + 1)).fill(ends.iter().sum());
        Ok(Self { left: order.room(edges)?, right: order.room(rights)?, slice_offsets, columns })
    }

    /// Returns a block's place among those in memory.
    pub fn piece(&self, column: usize, block: usize) -> usize {
        self.columns[column].blocks[block].piece
    }

    /// Writes a block of a column, whose items begin at `item` of all.
    ///
    /// # Panics
    /// When the edges are others than those that there is room for.
    pub fn copy(&self, column: usize, listed: &Listed<I>, block: usize, item: usize) {
        let layout = &self.columns[column];
        let (from, into) = (&listed.blocks()[block], &layout.blocks[block]);
        let fits = listed.layout.right_rows <= layout.right_rows && from.left_rows <= into.left_rows;
        assert!(fits, "ids stay what was checked");
        let pieces = || into.piece..into.piece + 1;
        hold(|| self.left.try_own(pieces())).copy_from_slice(&listed.left[from.edges.clone()]);
        hold(|| self.right.try_own(pieces())).copy_from_slice(&listed.right[from.rights.clone()]);
        if let Some(offsets) = listed.slice_offsets.get(from.edges.clone()) {
            let first = offsets.first().copied().unwrap_or(0);
            let moved = offsets.iter().map(|offset| offset - first + item as u32);
            hold(|| self.slice_offsets.try_own(pieces())).iter_mut().zip(moved).for_each(|(to, offset)| *to = offset);
        }
    }

    /// Ends writing, and returns the columns: what was not written is the first row.
    pub fn end(self) -> Vec<LocalEdges<I>> {
        let (left, right) = (self.left.into_items(), self.right.into_items());
        let ids = Arc::new(Ids { left, right, slice_offsets: self.slice_offsets.into_items() });
        self.columns.into_iter().map(|layout| LocalEdges { layout, ids: Arc::clone(&ids) }).collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn end_in<I: Id>(listed: &[Listed<I>], order: &Order) -> Vec<LocalEdges<I>> {
        let items = |column: usize, block: usize| {
            let (edges, offsets) = (&listed[column].blocks()[block].edges, &listed[column].slice_offsets);
            offsets.get(edges.end).map_or(0, |end| end - offsets[edges.start]) as usize
        };
        let begins = order.bounds(items);
        let room = Room::new(&listed.iter().collect::<Vec<_>>(), order).unwrap();
        for &(column, block) in &order.blocks {
            room.copy(column, &listed[column], block, begins[room.piece(column, block)]);
        }
        room.end()
    }

    #[test]
    fn blocks_say_the_same_in_whatever_order_they_lie() {
        let list = |slices: [u32; 7]| {
            let mut listed = Listed::<u16>::new(4, true);
            let vertices: [&[(usize, &[u32])]; 4] = [&[(0, &[5, 6]), (2, &[7])], &[], &[(3, &[9])], &[(1, &[5, 5, 8])]];
            for block in vertices {
                listed.push_grouped(5..10, block.iter().copied());
            }
            let ends = slices.iter().scan(0, |end, len| {
                *end += len;
                Some(*end)
            });
            listed.set_slice_offsets(std::iter::once(0).chain(ends).collect());
            listed
        };
        let lists = || [[2, 1, 0, 4, 1, 0, 2], [1, 1, 3, 0, 0, 5, 1]].map(list);
        let (plain, joints) = (lists().map(Listed::end), vec![0, 3, 8]);
        let all = |column: usize| (0..4).map(move |block| (column, block));
        let by_number = all(0).chain(all(1)).collect::<Vec<_>>();
        let mixed = vec![(1, 3), (0, 1), (0, 0), (1, 0), (1, 2), (0, 3), (0, 2), (1, 1)];
        for blocks in [by_number, mixed] {
            let moved = end_in(&lists(), &Order { blocks: blocks.clone(), joints: joints.clone() });
            for (plain, moved) in plain.iter().zip(&moved) {
                for (before, after) in plain.blocks().iter().zip(moved.blocks()) {
                    assert_eq!((plain.left(before), plain.right(before)), (moved.left(after), moved.right(after)));
                    assert_eq!((plain.runs(before), before.left_rows), (moved.runs(after), after.left_rows));
                    let lengths = |offsets: &[u32]| offsets.windows(2).map(|two| two[1] - two[0]).collect::<Vec<_>>();
                    assert_eq!(lengths(plain.slice_offsets(before)), lengths(moved.slice_offsets(after)));
                }
                assert_eq!((plain.len(), moved.len(), plain.bytes()), (7, 7, moved.bytes()));
            }
            let (mut end, mut item) = (0, 0);
            for (piece, &(column, block)) in blocks.iter().enumerate() {
                let (edges, at) = (&moved[column], &moved[column].blocks()[block]);
                assert_eq!((at.piece, at.edges.start, edges.first_item(at.edges.start)), (piece, end, item));
                (end, item) = (at.edges.end, edges.first_item(at.edges.end));
            }
        }
    }
}
