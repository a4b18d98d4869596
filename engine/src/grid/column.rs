//! Columns: the edges of a right shard and their data.

use std::ops::Range;

use super::block::{Block, Id, LocalEdges};

/// The edges of a right shard with local ids of either width.
pub enum Edges {
    Narrow(LocalEdges<u16>),
    /// 32-bit ids.
    Wide(LocalEdges<u32>),
}

impl Edges {
    /// Returns the blocks, by (layer, left shard).
    pub fn blocks(&self) -> &[Block] {
        match self {
            Self::Narrow(edges) => edges.blocks(),
            Self::Wide(edges) => edges.blocks(),
        }
    }

    /// Returns the number of edges.
    pub fn len(&self) -> usize {
        match self {
            Self::Narrow(edges) => edges.len(),
            Self::Wide(edges) => edges.len(),
        }
    }

    /// Returns where the left and the right ids are in memory.
    pub fn addresses_of_ids(&self) -> [Range<usize>; 2] {
        match self {
            Self::Narrow(edges) => edges.addresses(),
            Self::Wide(edges) => edges.addresses(),
        }
    }

    /// Returns the bytes of ids and runs.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Narrow(edges) => edges.bytes(),
            Self::Wide(edges) => edges.bytes(),
        }
    }
}

impl From<LocalEdges<u16>> for Edges {
    fn from(edges: LocalEdges<u16>) -> Self {
        Self::Narrow(edges)
    }
}

impl From<LocalEdges<u32>> for Edges {
    fn from(edges: LocalEdges<u32>) -> Self {
        Self::Wide(edges)
    }
}

/// A width of ids, of which there are edges.
pub trait Local: Id {
    /// Returns edges with ids of this width.
    fn of(edges: &Edges) -> Option<&LocalEdges<Self>>;
}

impl Local for u16 {
    fn of(edges: &Edges) -> Option<&LocalEdges<Self>> {
        if let Edges::Narrow(edges) = edges { Some(edges) } else { None }
    }
}

impl Local for u32 {
    fn of(edges: &Edges) -> Option<&LocalEdges<Self>> {
        if let Edges::Wide(edges) = edges { Some(edges) } else { None }
    }
}

/// All blocks of a right shard, and where the data of their edges are: one piece for each block, in their order in memory.
pub struct Column {
    pub edges: Edges,
    /// Which of the grid's arrays of data has them.
    pub data: usize,
}

impl Column {
    /// Returns the piece of data of a block.
    pub fn piece(&self, block: usize) -> Range<usize> {
        let piece = self.edges.blocks()[block].piece;
        piece..piece + 1
    }
}

impl Edges {
    /// Returns the items of a block's edges, by their place in memory.
    pub(super) fn items(&self, block: usize) -> Range<usize> {
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

    /// Calls `visit` with the left row in its shard of each edge of a block.
    pub fn each_left(&self, block: usize, visit: impl FnMut(usize)) {
        match self {
            Self::Narrow(edges) => edges.left(&edges.blocks()[block]).iter().map(|id| id.index()).for_each(visit),
            Self::Wide(edges) => edges.left(&edges.blocks()[block]).iter().map(|id| id.index()).for_each(visit),
        }
    }

    /// Calls `visit` with right rows in their shard, and how many edges of a block each has: once with each where they are grouped.
    pub fn each_right(&self, block: usize, visit: impl FnMut(usize, u32)) {
        match self {
            Self::Narrow(edges) => each_right(edges, block, visit),
            Self::Wide(edges) => each_right(edges, block, visit),
        }
    }

    /// Calls `visit` with the left row in its shard, and the items, by their place in memory, of some edges of a block.
    pub fn each_of(&self, block: usize, edges: Range<usize>, mut visit: impl FnMut(usize, Range<usize>)) {
        let first = self.blocks()[block].edges.start;
        for edge in first + edges.start..first + edges.end {
            let left = match self {
                Self::Narrow(edges) => edges.lefts_at(edge..edge + 1)[0].index(),
                Self::Wide(edges) => edges.lefts_at(edge..edge + 1)[0].index(),
            };
            visit(left, self.first_item(edge)..self.first_item(edge + 1));
        }
    }

    /// Calls `visit` with the left and the right row in their shards, and the items, by their place in memory, of each edge of a block.
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

fn each_right<I: Id>(edges: &LocalEdges<I>, block: usize, mut visit: impl FnMut(usize, u32)) {
    let block = &edges.blocks()[block];
    let mut rights = edges.right(block).iter().map(|id| id.index());
    if !edges.grouped() {
        return rights.for_each(|right| visit(right, 1));
    }
    for run in edges.runs(block) {
        rights.by_ref().take(run.vertices as usize).for_each(|right| visit(right, run.degree));
    }
}
