//! Where known rows lie: an index that is made once and never changed.

use rustc_hash::FxHashMap;

/// No position.
const NONE: u32 = u32::MAX;

/// Positions by row number: an array if the numbers are dense, otherwise a hash map.
#[derive(Debug)]
pub(super) enum Index {
    Dense(Vec<u32>),
    Sparse(FxHashMap<u32, u32>),
}

impl Index {
    /// Makes it from rows and their positions.
    pub(super) fn new(positions: &[(u32, u32)]) -> Self {
        let end = positions.iter().map(|&(row, _)| row as usize + 1).max().unwrap_or(0);
        if end > 4 * positions.len() + 1024 {
            return Self::Sparse(positions.iter().copied().collect());
        }
        let mut dense = vec![NONE; end];
        positions.iter().for_each(|&(row, position)| dense[row as usize] = position);
        Self::Dense(dense)
    }

    #[inline]
    pub(super) fn get(&self, row: u32) -> Option<u32> {
        match self {
            Self::Dense(dense) => dense.get(row as usize).copied().filter(|&position| position != NONE),
            Self::Sparse(sparse) => sparse.get(&row).copied(),
        }
    }
}
