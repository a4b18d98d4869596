//! Where known rows lie: an index that is made once and never changed.

use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;
/// Row numbers of a word of bits.
const WORD: usize = 64;

/// Positions by row number.
#[derive(Debug)]
pub(super) enum Index {
    /// By row number, where most numbers are known.
    Dense(Vec<u32>),
    /// Where some are. That a row is not known, most often, then shows in memory that stays in the first cache.
    Ranked {
        /// Of 64 numbers each: which are known, and how many are before them.
        words: Vec<(u64, u32)>,
        /// In the order of row numbers.
        positions: Vec<u32>,
    },
    /// Where few are.
    Sparse(FxHashMap<u32, u32>),
}

impl Index {
    /// Makes it from rows, none twice, and their positions.
    pub(super) fn new(positions: &[(u32, u32)]) -> Self {
        let end = positions.iter().map(|&(row, _)| row as usize + 1).max().unwrap_or(0);
        if end > WORD * positions.len() + (1 << 18) {
            return Self::Sparse(positions.iter().copied().collect());
        }
        if end > 2 * positions.len() {
            return Self::ranked(end, positions);
        }
        let mut dense = vec![NONE; end];
        positions.iter().for_each(|&(row, position)| dense[row as usize] = position);
        Self::Dense(dense)
    }

    fn ranked(end: usize, positions: &[(u32, u32)]) -> Self {
        let mut words = vec![(0, 0); end.div_ceil(WORD)];
        positions.iter().for_each(|&(row, _)| words[row as usize / WORD].0 |= 1 << (row as usize % WORD));
        let mut before = 0;
        for (bits, rank) in &mut words {
            *rank = before;
            before += u64::count_ones(*bits);
        }
        let mut by_row = positions.to_vec();
        by_row.sort_unstable();
        Self::Ranked { words, positions: by_row.into_iter().map(|(_, position)| position).collect() }
    }

    #[inline]
    pub(super) fn get(&self, row: u32) -> Option<u32> {
        match self {
            Self::Dense(dense) => dense.get(row as usize).copied().filter(|&position| position != NONE),
            Self::Ranked { words, positions } => {
                let &(bits, rank) = words.get(row as usize / WORD)?;
                let bit = 1 << (row as usize % WORD);
                let before = rank + (bits & (bit - 1)).count_ones();
                (bits & bit != 0).then(|| positions[before as usize])
            }
            Self::Sparse(sparse) => sparse.get(&row).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_however_many_of_the_numbers_are_known() {
        for step in [1, 2, 3, 63, 64, 100, 100_000] {
            let known: Vec<(u32, u32)> = (0..100).map(|n| (7 + n * step, 99 - n)).collect();
            let index = Index::new(&known);
            match step {
                1 => assert!(matches!(index, Index::Dense(_))),
                100_000 => assert!(matches!(index, Index::Sparse(_))),
                _ => assert!(matches!(index, Index::Ranked { .. })),
            }
            for row in (0..2000).chain(known.iter().map(|pair| pair.0)) {
                let expected = known.iter().find(|pair| pair.0 == row).map(|pair| pair.1);
                assert_eq!(index.get(row), expected, "row {row}, step {step}");
            }
            assert_eq!(index.get(u32::MAX), None);
        }
        assert_eq!(Index::new(&[]).get(0), None);
    }
}
