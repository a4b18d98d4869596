//! What threads access.

/// A kind of job.
///
/// | pattern | rows                                      | each thread, in a clock                        |
/// |---------|-------------------------------------------|------------------------------------------------|
/// | `pr`    | 170,000 of one f32                        | 400,000 times: reads one, adds to another      |
/// | `cf`    | 5,000 of 50 f32                           | 150,000 times: reads one and updates it        |
/// | `tm`    | 5,000 of 100 i32, and one that sums them  | 100,000 times: reads one and the sum, updates both |
///
/// Rows are chosen with Zipf's exponent 0.8, as items, words and pages are; with two threads a page is accessed 9.4 times a clock, as in
/// IterStore's graph on eight machines.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    PageRank,
    Factors,
    Topics,
}

/// A kind of job, of a size.
#[derive(Clone, Copy, PartialEq)]
pub struct Pattern {
    pub kind: Kind,
    /// Rows that are chosen from; topics have one more, which sums them.
    pub rows: u32,
    pub row_len: usize,
    /// Of a thread in a clock.
    accesses: usize,
}

impl Pattern {
    /// The pattern of PageRank, `scale` times as large as above.
    pub fn page_rank(scale: f64) -> Self {
        let times = |count: f64| (count * scale) as usize;
        Self { kind: Kind::PageRank, rows: times(170_000.0) as u32, row_len: 1, accesses: times(400_000.0) }
    }

    pub fn factors() -> Self {
        Self { kind: Kind::Factors, rows: 5_000, row_len: 50, accesses: 150_000 }
    }

    pub fn topics() -> Self {
        Self { kind: Kind::Topics, rows: 5_000, row_len: 100, accesses: 100_000 }
    }

    pub fn name(self) -> &'static str {
        match self.kind {
            Kind::PageRank => "pr",
            Kind::Factors => "cf",
            Kind::Topics => "tm",
        }
    }

    /// Draws a thread's accesses: pairs of rows, by Zipf's law; where both differ, sorted by the second, as edges are.
    pub fn accesses(self, seed: u64) -> Vec<u32> {
        let mut cumulative: Vec<f64> = (1..=self.rows).map(|rank| f64::from(rank).powf(-0.8)).collect();
        for index in 1..cumulative.len() {
            cumulative[index] += cumulative[index - 1];
        }
        let total = cumulative[cumulative.len() - 1];
        let mut state = seed;
        let mut row = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut x = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            let uniform = ((x ^ x >> 31) >> 11) as f64 / (1u64 << 53) as f64;
            let rank = cumulative.partition_point(|&sum| sum < uniform * total).min(cumulative.len() - 1) as u64;
            // Frequent rows do not lie together.
            (rank * 48_271 % u64::from(self.rows)) as u32
        };
        let mut pairs: Vec<[u32; 2]> = (0..self.accesses).map(|_| [row(), row()]).collect();
        pairs.sort_unstable_by_key(|pair| if self.kind == Kind::PageRank { pair[1] } else { 0 });
        pairs.into_iter().flatten().collect()
    }
}
