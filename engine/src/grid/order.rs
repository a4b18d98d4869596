//! Row orders: which row of the arrays a vertex has.

use megagrid_partition::SplitMix;

use crate::plan::shuffle;

/// A vertex id's row and back.
#[derive(Debug)]
pub enum RowOrder {
    /// Row = id: descending degree, so that hubs share cache lines.
    Natural(usize),
    /// A seeded permutation, so that every shard has its share of hubs.
    Shuffled {
        /// Row of each id.
        row_of: Box<[u32]>,
        /// Id of each row.
        id_of: Box<[u32]>,
    },
}

impl RowOrder {
    /// Draws a permutation.
    #[must_use]
    pub fn shuffled(rows: usize, seed: u64) -> Self {
        let mut id_of: Box<[u32]> = (0..rows as u32).collect();
        shuffle(&mut id_of, &mut SplitMix::new(seed, 0));
        let mut row_of = vec![0; rows].into_boxed_slice();
        for (row, &id) in id_of.iter().enumerate() {
            row_of[id as usize] = row as u32;
        }
        Self::Shuffled { row_of, id_of }
    }

    /// Returns the row of a vertex.
    #[inline]
    #[must_use]
    pub fn row(&self, id: usize) -> usize {
        match self {
            Self::Natural(_) => id,
            Self::Shuffled { row_of, .. } => row_of[id] as usize,
        }
    }

    /// Returns the vertex of a row.
    #[inline]
    #[must_use]
    pub fn id(&self, row: usize) -> usize {
        match self {
            Self::Natural(_) => row,
            Self::Shuffled { id_of, .. } => id_of[row] as usize,
        }
    }

    /// Returns the number of vertices.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Natural(rows) => *rows,
            Self::Shuffled { row_of, .. } => row_of.len(),
        }
    }

    /// Tells whether there is no vertex.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of the tables.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Natural(_) => 0,
            Self::Shuffled { row_of, id_of } => (row_of.len() + id_of.len()) * 4,
        }
    }
}
