//! Blocks: the edges between a left and a right shard, with shard-local ids, in visit order.
//!
//! The blocks of a right shard are numbered by (batch layer, left shard), and lie in memory in that order. Where workers are on
//! several nodes of memory, those that one worker runs lie one after the other, of several right shards, and that worker wrote
//! them, so that they are on its node.
//!
//! There are two forms. *Grouped* (`Read` and `Add`): the right vertices that have edges in the block, those with equally many
//! edges side by side, and the left ends of their edges. *Pairs* (`Update` on both sides): both ends of each edge, shuffled.

use std::ops::Range;
use std::sync::Arc;

use megagrid_stages::Item;

use crate::machine::os::AlignedBuffer;

mod listed;

pub use listed::{Growing, Listed, Order, Room};

mod sealed {
    pub trait Sealed {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
}

/// A shard-local id: 16 bits where shards allow it. Sealed: the walk relies on a checked id to stay what it was.
pub trait Id: sealed::Sealed + Item + Ord + TryFrom<usize> {
    /// Returns the id as a row number.
    fn index(self) -> usize;
    /// Returns the id of a row, which is another one where it does not fit.
    fn truncated(row: u32) -> Self;
}

impl Id for u16 {
    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }

    #[inline(always)]
    fn truncated(row: u32) -> Self {
        row as Self
    }
}

impl Id for u32 {
    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }

    #[inline(always)]
    fn truncated(row: u32) -> Self {
        row
    }
}

/// Right vertices with equally many edges in a block, and how many of them follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Edges of each vertex.
    pub degree: u32,
    pub vertices: u32,
}

/// Where one block lies in its [`LocalEdges`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    pub edges: Range<usize>,
    /// Its entries of right ids: vertices if grouped, else edges.
    pub rights: Range<usize>,
    /// Its runs; empty unless grouped.
    pub runs: Range<usize>,
    /// Rows of its left shard: every left id is below.
    pub left_rows: usize,
    /// Its place among the blocks in memory.
    pub piece: usize,
}

/// The ids of the edges of some right shards, in the order in which their blocks lie in memory.
struct Ids<I> {
    left: AlignedBuffer<I>,
    right: AlignedBuffer<I>,
    /// Where the slice of each edge's data begins, and the last one ends; empty where data are not in slices.
    slice_offsets: AlignedBuffer<u32>,
}

/// What edges of a right shard are, and where among the ids.
#[derive(Clone, Debug)]
struct Layout {
    right_rows: usize,
    grouped: bool,
    runs: Vec<Run>,
    blocks: Vec<Block>,
}

/// The edges of one right shard. They come from [`Listed`] edges, whose ids were checked, so that a walk need not.
pub struct LocalEdges<I> {
    layout: Layout,
    ids: Arc<Ids<I>>,
}

impl<I: Id> LocalEdges<I> {
    pub fn right_rows(&self) -> usize {
        self.layout.right_rows
    }

    /// Tells the form of the blocks.
    pub fn grouped(&self) -> bool {
        self.layout.grouped
    }

    /// Returns the number of edges.
    pub fn len(&self) -> usize {
        self.blocks().iter().map(|block| block.edges.len()).sum()
    }

    pub fn blocks(&self) -> &[Block] {
        &self.layout.blocks
    }

    /// Returns the left ends of a block's edges.
    #[inline(always)]
    pub fn left(&self, block: &Block) -> &[I] {
        &self.ids.left[block.edges.clone()]
    }

    /// Returns the left ends of edges, by their places in memory.
    pub fn lefts_at(&self, edges: Range<usize>) -> &[I] {
        &self.ids.left[edges]
    }

    #[inline(always)]
    pub fn right(&self, block: &Block) -> &[I] {
        &self.ids.right[block.rights.clone()]
    }

    #[inline(always)]
    pub fn runs(&self, block: &Block) -> &[Run] {
        &self.layout.runs[block.runs.clone()]
    }

    /// Returns where the slices of a block's edges begin and end.
    #[inline(always)]
    pub fn slice_offsets(&self, block: &Block) -> &[u32] {
        &self.ids.slice_offsets[block.edges.start..block.edges.end + 1]
    }

    /// Returns where the items of an edge begin, by its place in memory.
    #[inline(always)]
    pub fn first_item(&self, edge: usize) -> usize {
        let offsets = &self.ids.slice_offsets;
        if offsets.is_empty() { edge } else { offsets[edge] as usize }
    }

    /// Returns where the left and the right ids are in memory, with those of other right shards that lie among them.
    pub fn addresses(&self) -> [Range<usize>; 2] {
        [self.ids.left.as_ptr_range(), self.ids.right.as_ptr_range()].map(|ids| ids.start.addr()..ids.end.addr())
    }

    /// Returns the bytes of ids and runs.
    pub fn bytes(&self) -> usize {
        let of_edge = size_of::<I>() + if self.ids.slice_offsets.is_empty() { 0 } else { size_of::<u32>() };
        let of_block =
            |block: &Block| block.edges.len() * of_edge + block.rights.len() * size_of::<I>() + size_of::<Block>();
        self.blocks().iter().map(of_block).sum::<usize>() + size_of_val(&*self.layout.runs)
    }
}
