//! MiniBatch: how a composite stage cuts its edges into batches.

use megagrid_partition::Side;

/// How much one batch holds. An apply of a side that batches are not cut by runs on all its vertices in each of them. Composition depends on nothing but the graph and the seed, never on processes or threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSize {
    /// About this many edges, drawn at random from all edges.
    Edges(u64),
    /// This many vertices of a side, with all their edges.
    Vertices(Side, u64),
    /// Whole vertices of a side that have about this many edges together.
    EdgesOf(Side, u64),
}

/// In which order batches run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub enum BatchOrder {
    /// The same in every iteration, ascending.
    #[default]
    Fixed,
    /// Vertices are dealt to batches at random, once; the order of the batches is random in every iteration.
    RandomBlocks,
}

/// A composite stage's batches: size and order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MiniBatch {
    /// How much one batch holds.
    pub size: BatchSize,
    /// In which order batches run.
    pub order: BatchOrder,
}

impl From<BatchSize> for MiniBatch {
    fn from(size: BatchSize) -> Self {
        Self { size, order: BatchOrder::default() }
    }
}
