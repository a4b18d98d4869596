//! Blocks: the edges between a left and a right shard, with shard-local ids, in visit order.
//!
//! All blocks of a right shard lie one after the other in its [`LocalEdges`], ordered by (batch layer, left shard). There
//! are two forms. *Grouped* (`Read` and `Add`): the right vertices that have edges in the block, those with equally many
//! edges side by side, and the left ends of their edges. *Pairs* (`Update` on both sides): both ends of each edge, shuffled.

use std::ops::Range;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
}

/// A shard-local id: 16 bits where shards allow it. Sealed: the walk relies on a checked id to stay what it was.
pub trait Id: sealed::Sealed + Copy + Send + Sync + TryFrom<usize> + 'static {
    /// How many rows a shard may have.
    const MAX_ROWS: usize;
    /// Returns the id as a row number.
    fn index(self) -> usize;
    /// Returns the id of a row, which is another one where it does not fit.
    fn truncated(row: u32) -> Self;
}

impl Id for u16 {
    const MAX_ROWS: usize = 1 << 16;

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
    const MAX_ROWS: usize = 1 << 31;

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
}

/// The edges of one right shard. Ids are checked when it is made, so that a walk need not.
#[derive(Debug)]
pub struct LocalEdges<I> {
    right_rows: usize,
    grouped: bool,
    left: Vec<I>,
    right: Vec<I>,
    runs: Vec<Run>,
    slice_offsets: Vec<u32>,
    ends: Vec<Block>,
}

impl<I: Id> LocalEdges<I> {
    /// Begins an empty list of edges to a right shard of `right_rows` rows.
    pub fn new(right_rows: usize, grouped: bool) -> Self {
        Self {
            right_rows,
            grouped,
            left: Vec::new(),
            right: Vec::new(),
            runs: Vec::new(),
            slice_offsets: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Makes room for exactly this many edges.
    pub fn reserve(&mut self, edges: usize) {
        self.left.reserve_exact(edges);
    }

    /// Makes the blocks of a right shard in pair form: block `i` is `bounds[i]..bounds[i + 1]`, and its left shard has
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
            pairs.ends.push(Block { edges: edges.clone(), rights: edges, runs: 0..0, left_rows });
        }
        pairs
    }

    /// Appends the next block, with the left shard `left`, in grouped form: right vertices in the order in which they are to
    /// be visited, equal degrees side by side, each with the rows of its left ends.
    ///
    /// # Panics
    /// When an id is no row of its shard, or a vertex has no edge.
    pub fn push_grouped<'e>(&mut self, left: Range<usize>, vertices: impl Iterator<Item = (usize, &'e [u32])>) {
        assert!(self.grouped, "blocks of one column have one form");
        let (first_left, first_right, first_run) = (self.left.len(), self.right.len(), self.runs.len());
        let mut largest = 0;
        for (right, ends) in vertices {
            self.right.push(checked(right, self.right_rows));
            // Checked once for the block, so that this loop has no branches.
            let local = |&row: &u32| {
                let row = row.wrapping_sub(left.start as u32);
                largest = largest.max(row);
                I::truncated(row)
            };
            self.left.extend(ends.iter().map(local));
            let degree = ends.len() as u32;
            assert!(degree > 0, "a listed vertex has edges");
            match self.runs[first_run..].last_mut() {
                Some(run) if run.degree == degree => run.vertices += 1,
                _ => self.runs.push(Run { degree, vertices: 1 }),
            }
        }
        if self.left.len() > first_left {
            checked::<I>(largest as usize, left.len());
        }
        self.end_block(left.len(), first_left, first_right, first_run);
    }

    /// Says where each edge's slice of data begins: one more entry than edges in all blocks.
    pub fn set_slice_offsets(&mut self, offsets: Vec<u32>) {
        assert_eq!(offsets.len(), self.left.len() + 1, "one slice for each edge");
        self.slice_offsets = offsets;
    }

    fn end_block(&mut self, left_rows: usize, first_left: usize, first_right: usize, first_run: usize) {
        self.ends.push(Block {
            edges: first_left..self.left.len(),
            rights: first_right..self.right.len(),
            runs: if self.grouped { first_run..self.runs.len() } else { 0..0 },
            left_rows,
        });
    }

    /// Gives unused memory back.
    pub fn shrink(&mut self) {
        self.right.shrink_to_fit();
        self.runs.shrink_to_fit();
    }

    pub fn right_rows(&self) -> usize {
        self.right_rows
    }

    /// Tells the form of the blocks.
    pub fn grouped(&self) -> bool {
        self.grouped
    }

    pub fn blocks(&self) -> &[Block] {
        &self.ends
    }

    /// Returns the left ends of a block's edges.
    #[inline(always)]
    pub fn left(&self, block: &Block) -> &[I] {
        &self.left[block.edges.clone()]
    }

    #[inline(always)]
    pub fn right(&self, block: &Block) -> &[I] {
        &self.right[block.rights.clone()]
    }

    #[inline(always)]
    pub fn runs(&self, block: &Block) -> &[Run] {
        &self.runs[block.runs.clone()]
    }

    /// Returns where the slices of a block's edges begin and end.
    #[inline(always)]
    pub fn slice_offsets(&self, block: &Block) -> &[u32] {
        &self.slice_offsets[block.edges.start..block.edges.end + 1]
    }

    /// Returns where the items of the column's `edge`th edge begin.
    #[inline(always)]
    pub fn first_item(&self, edge: usize) -> usize {
        if self.slice_offsets.is_empty() { edge } else { self.slice_offsets[edge] as usize }
    }

    /// Returns the bytes of ids and runs.
    pub fn bytes(&self) -> usize {
        (self.left.capacity() + self.right.capacity()) * size_of::<I>()
            + self.runs.capacity() * size_of::<Run>()
            + self.slice_offsets.capacity() * 4
            + self.ends.capacity() * size_of::<Block>()
    }
}

fn checked<I: Id>(row: usize, rows: usize) -> I {
    assert!(row < rows, "local id {row} in a shard of {rows} rows");
    let Ok(id) = I::try_from(row) else { unreachable!("a shard's rows fit its ids") };
    id
}
