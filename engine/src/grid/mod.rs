//! The grid: one partition's memory. Vertex rows in shards, edges in blocks between a left and a right shard.

mod array;
mod awake;
mod block;
mod build;
mod column;
mod counts;
mod disjoint;
mod edge_data;
mod ends;
#[cfg(test)]
pub(crate) mod entries;
mod groups;
mod hold;
mod listing;
mod on_workers;
mod order;
mod owned;
mod places;
mod prefetch;
mod rows;
mod walk;
mod width;

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard};

use megagrid_partition::Side;
use megagrid_partition::parallel::lock;
use megagrid_stages::simd::Level;
use megagrid_stages::{EdgeItem, On, Program, Shape, Sides, Store, Vertex};

pub(crate) use array::{AtHand, Capacities, Role, RoleMut};
pub(crate) use awake::Awake;
pub(crate) use block::{Block, Id, LocalEdges};
pub use build::Source;
pub(crate) use build::{Change, Columns, build_columns};
pub(crate) use column::{Column, Edges};
pub(crate) use counts::{Counts, count, count_items, find};
pub(crate) use disjoint::Disjoint;
pub(crate) use ends::HeldRows;
pub(crate) use groups::Visits;
pub use hold::Hold;
pub(crate) use hold::hold;
pub(crate) use listing::Listing;
pub(crate) use on_workers::on_workers;
pub(crate) use order::RowOrder;
pub(crate) use owned::{OwnedRow, OwnedRows};
pub(crate) use places::{Places, places, row_of_blocks};
pub(crate) use prefetch::SyncItem;
pub(crate) use rows::{SharedRows, VertexArrays};
pub(crate) use walk::Walk;
pub(crate) use width::{Fixed, Runtime, Width};

/// Maps the shards of a side to the pieces of its vertex arrays.
pub struct Pieces(Box<[usize]>);

impl Pieces {
    /// Finds each shard boundary among the pieces' boundaries.
    pub(crate) fn new(shards: &[usize], pieces: &[usize]) -> Self {
        Self(shards.iter().map(|row| pieces.partition_point(|piece| piece < row)).collect())
    }

    /// Returns the pieces of a range of shards.
    #[must_use]
    pub fn of(&self, shards: std::ops::Range<usize>) -> std::ops::Range<usize> {
        self.0[shards.start]..self.0[shards.end]
    }
}

/// The memory of a run.
pub struct Grid<P: Program> {
    /// Rows of the left side.
    pub left: Arc<VertexArrays<P::Left>>,
    /// Rows of the right side; the same arrays on a square graph.
    pub right: Arc<VertexArrays<P::Right>>,
    /// Pieces of the left shards.
    pub left_pieces: Pieces,
    /// Pieces of the right shards.
    pub right_pieces: Pieces,
    /// Where each vertex's row is, left and right.
    pub orders: [RowOrder; 2],
    /// The right shards' edges.
    pub columns: Vec<Column>,
    /// The data of edges, of some right shards together.
    pub data: Vec<Disjoint<EdgeItem<P>>>,
    /// Where the items of each vertex's edges are, by shard, left and right; empty on a side where no stage asks.
    pub places: [Box<[Places]>; 2],
    /// Which right vertices of each block are awake, by column; empty if they do not rest.
    pub awake: Vec<Box<[Mutex<Awake>]>>,
    /// Left shards, and so blocks of a column for each layer; 1 where a block is over all of them.
    pub left_shards: usize,
    /// What hot loops are compiled for.
    pub level: Level,
}

impl<P: Program> Grid<P> {
    /// Returns the bytes of edges, and of where those of each vertex are.
    #[must_use]
    pub fn edge_bytes(&self) -> usize {
        let places = self.places.iter().flatten().map(Places::bytes).sum::<usize>();
        places + self.columns.iter().map(|column| column.edges.bytes()).sum::<usize>() + self.data_bytes()
    }

    /// Returns the bytes of rows, and of where they are.
    #[must_use]
    pub fn vertex_bytes(&self) -> usize {
        let right = if self.is_square() { 0 } else { self.right.bytes() };
        self.left.bytes() + right + self.orders.iter().map(RowOrder::bytes).sum::<usize>()
    }

    /// Returns the bytes of what training changes: rows, and edge data in slices.
    #[must_use]
    pub fn branch_bytes(&self) -> u64 {
        let right = if self.is_square() { 0 } else { self.right.bytes() };
        let data = if P::Edge::SHAPE.is_slice() { self.data_bytes() } else { 0 };
        (self.left.bytes() + right + data) as u64
    }

    fn data_bytes(&self) -> usize {
        self.data.iter().map(Disjoint::bytes).sum()
    }

    /// Returns the array that has the data of a right shard's edges.
    #[must_use]
    pub fn data_of(&self, shard: usize) -> &Disjoint<EdgeItem<P>> {
        &self.data[self.columns[shard].data]
    }

    /// Returns the list of a block's right vertices that are awake, if they rest at times.
    #[must_use]
    pub fn awake_in(&self, shard: usize, block: usize) -> Option<MutexGuard<'_, Awake>> {
        self.awake.get(shard).map(|blocks| lock(&blocks[block]))
    }

    /// Tells whether both sides index the same rows.
    #[must_use]
    pub fn is_square(&self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.left), Arc::as_ptr(&self.right))
    }

    /// Returns a side's rows.
    #[must_use]
    pub fn rows<O: On<P>>(&self) -> &Arc<VertexArrays<O::Vertex>> {
        O::of(self)
    }

    /// Returns the pieces of a side's shards.
    #[must_use]
    pub fn pieces(&self, side: Side) -> &Pieces {
        if side == Side::Left { &self.left_pieces } else { &self.right_pieces }
    }

    /// Returns where the rows of a side's vertices are.
    #[must_use]
    pub fn order(&self, side: Side) -> &RowOrder {
        &self.orders[side as usize]
    }
}

impl<P: Program> Sides<P> for Grid<P> {
    type Of<V: Vertex> = Arc<VertexArrays<V>>;

    fn left(&self) -> &Arc<VertexArrays<P::Left>> {
        &self.left
    }

    fn right(&self) -> &Arc<VertexArrays<P::Right>> {
        &self.right
    }
}

/// Makes lists of right vertices that are awake, if vertices rest: none of them is known yet.
pub(crate) fn awake<V: Vertex>(columns: &[Column]) -> Vec<Box<[Mutex<Awake>]>> {
    let of = |column: &Column| column.edges.blocks().iter().map(|_| Mutex::default()).collect();
    if V::RESTS { columns.iter().map(of).collect() } else { Vec::new() }
}

/// Joins the boundaries of both sides of a square graph.
pub(crate) fn refine(a: &[usize], b: &[usize]) -> Vec<usize> {
    let mut bounds: Vec<usize> = a.iter().chain(b).copied().collect();
    bounds.sort_unstable();
    bounds.dedup();
    bounds
}

/// Bytes of an average vertex in the roles that a block touches.
#[must_use]
pub fn touched_bytes<V: Vertex>(width: usize, capacities: Capacities<'_>) -> usize {
    let mean = |counts: &[u32]| counts.iter().map(|&c| c as usize).sum::<usize>().div_ceil(counts.len().max(1));
    let entries = capacities.map_or(0, mean) as u64;
    let [sync, mirror, _, delta] = role_bytes::<V>(1, width, entries);
    (sync + mirror + delta) as usize
}

/// Bytes of some vertices' synced, mirror and master data and deltas, where they have `entries` entries together.
pub(crate) fn role_bytes<V: Vertex>(vertices: u64, width: usize, entries: u64) -> [u64; 4] {
    let of = |shape: Shape, item: usize| {
        let items = match shape {
            Shape::Nothing => 0,
            Shape::Value => vertices,
            Shape::Row => vertices * width as u64,
            Shape::Entries => entries,
        };
        items * item as u64
    };
    [
        of(V::Sync::SHAPE, size_of::<<V::Sync as Store>::Item>()),
        of(V::Mirror::SHAPE, size_of::<<V::Mirror as Store>::Item>()),
        of(V::Master::SHAPE, size_of::<<V::Master as Store>::Item>()),
        of(V::Delta::SHAPE, size_of::<<V::Delta as Store>::Item>()),
    ]
}

/// Returns one side's arrays as those of the other, which has the same vertex type.
pub(crate) fn same_arrays<P: Program>(left: &Arc<VertexArrays<P::Left>>) -> Arc<VertexArrays<P::Right>> {
    let both: Arc<dyn Any + Send + Sync> = Arc::<VertexArrays<P::Left>>::clone(left);
    let Ok(right) = both.downcast() else { unreachable!("both sides of a square graph have one vertex type") };
    right
}
