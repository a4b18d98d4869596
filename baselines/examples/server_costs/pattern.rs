//! What threads access.

/// What threads do.
#[derive(Clone, Copy, PartialEq)]
pub enum Pattern {
    PageRank,
    Factors,
    Topics,
}

impl Pattern {
    pub const ALL: [(Self, &'static str); 3] = [(Self::PageRank, "pr"), (Self::Factors, "cf"), (Self::Topics, "tm")];

    /// Rows, their length, and accesses of a thread in a clock.
    pub fn sizes(self) -> (u32, usize, usize) {
        match self {
            Self::PageRank => (170_000, 1, 400_000),
            Self::Factors => (5_000, 50, 150_000),
            Self::Topics => (5_000, 100, 100_000),
        }
    }
}

/// Pairs of rows, by Zipf's law; where both differ, sorted by the second, as edges are.
pub fn accesses(pattern: Pattern, seed: u64) -> Vec<u32> {
    let (rows, _, count) = pattern.sizes();
    let mut cumulative: Vec<f64> = (1..=rows).map(|rank| f64::from(rank).powf(-0.8)).collect();
    for index in 1..cumulative.len() {
        cumulative[index] += cumulative[index - 1];
    }
    let total = cumulative[rows as usize - 1];
    let mut state = seed;
    let mut row = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let uniform = ((x ^ x >> 31) >> 11) as f64 / (1u64 << 53) as f64;
        let rank = cumulative.partition_point(|&sum| sum < uniform * total).min(rows as usize - 1) as u32;
        // Frequent rows do not lie together.
        (u64::from(rank) * 48_271 % u64::from(rows)) as u32
    };
    let mut pairs: Vec<[u32; 2]> = (0..count).map(|_| [row(), row()]).collect();
    pairs.sort_unstable_by_key(|pair| if pattern == Pattern::PageRank { pair[1] } else { 0 });
    pairs.into_iter().flatten().collect()
}
