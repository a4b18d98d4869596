//! Row orders: which row of the arrays a vertex has.

use megagrid_partition::Relabeling;

/// A vertex id's row and back.
#[derive(Debug)]
pub enum RowOrder {
    /// Row = id: descending degree, so that hubs share cache lines.
    Natural(usize),
    /// A seeded permutation, from ids to rows, so that every shard has its share of hubs.
    Shuffled(Relabeling),
}

impl RowOrder {
    /// Draws a permutation.
    pub fn shuffled(rows: usize, seed: u64) -> Self {
        Self::Shuffled(Relabeling::random(rows, seed))
    }

    #[inline]
    pub fn row(&self, id: usize) -> usize {
        match self {
            Self::Natural(_) => id,
            Self::Shuffled(order) => order.new_of_old()[id] as usize,
        }
    }

    #[inline]
    pub fn id(&self, row: usize) -> usize {
        match self {
            Self::Natural(_) => row,
            Self::Shuffled(order) => order.old_of_new()[row] as usize,
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Natural(rows) => *rows,
            Self::Shuffled(order) => order.new_of_old().len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of the tables.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Natural(_) => 0,
            Self::Shuffled(order) => 2 * size_of_val(order.new_of_old()),
        }
    }
}
