//! Degrees of vertices, and what they say about a graph.

use std::io;

use rayon::prelude::*;

use crate::{EdgeSource, Side, parallel, windows};

/// Counts how often each of `0..num_vertices` occurs, on all threads.
///
/// Fewer than 2^32 edges may meet in one vertex.
///
/// # Panics
/// Where an id is out of range.
#[must_use]
pub fn count_degrees(ids: &[u32], num_vertices: usize) -> Vec<u32> {
    // Each thread counts for itself, as long as that takes no more memory than the ids do.
    let num_counters = (ids.len() / num_vertices.max(1)).clamp(1, rayon::current_num_threads());
    let chunks: Vec<_> = ids.chunks(ids.len().div_ceil(num_counters).max(1)).collect();
    let count = |chunk: &[u32]| {
        let mut counts = vec![0_u32; num_vertices];
        chunk.iter().for_each(|&id| counts[id as usize] += 1);
        counts
    };
    let mut counters = parallel::map(chunks.len(), |at| count(chunks[at])).into_iter();
    let mut total = counters.next().unwrap_or_else(|| vec![0; num_vertices]);
    for counts in counters {
        parallel::each_chunk(&mut total, 1 << 16, |at, total| {
            total.iter_mut().zip(&counts[at << 16..]).for_each(|(total, count)| *total += count);
        });
    }
    total
}

/// Returns where each vertex's group of edges starts: `n + 1` sums, from 0 to the number of edges.
#[must_use]
pub fn offsets_of(degrees: &[u32]) -> Vec<u64> {
    let mut sum = 0;
    std::iter::once(0)
        .chain(degrees.iter().map(|&degree| {
            sum += u64::from(degree);
            sum
        }))
        .collect()
}

/// How the degrees of one side are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DegreeStats {
    /// Vertices of the side.
    pub num_vertices: usize,
    /// Vertices without any edge.
    pub num_isolated: usize,
    /// The smallest degree.
    pub min: u64,
    /// The degree that half of the vertices do not exceed.
    pub median: u64,
    /// Edges per vertex.
    pub mean: f64,
    /// The degree that 99 % of the vertices do not exceed.
    pub p99: u64,
    /// The largest degree.
    pub max: u64,
    /// Share of the edges, 0 to 1, that meet in the 1 % of vertices with the highest degrees (one vertex at least).
    pub top_percent_share: f64,
}

impl DegreeStats {
    /// Computes the statistics of a side from its offsets, `[n + 1]`. All are 0 for a side without vertices.
    ///
    /// # Complexity
    /// O(n log n).
    #[must_use]
    pub fn of(offsets: &[u64]) -> Self {
        let mut degrees: Vec<u64> = offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
        degrees.par_sort_unstable();
        let num_vertices = degrees.len();
        let num_edges: u64 = degrees.iter().sum();
        // The smallest degree that at least this share of the vertices does not exceed.
        let quantile = |percent: usize| {
            let rank = (num_vertices * percent).div_ceil(100).max(1);
            degrees.get(rank - 1).copied().unwrap_or(0)
        };
        let top = num_vertices.div_ceil(100);
        Self {
            num_vertices,
            num_isolated: degrees.partition_point(|&degree| degree == 0),
            min: degrees.first().copied().unwrap_or(0),
            median: quantile(50),
            mean: num_edges as f64 / num_vertices.max(1) as f64,
            p99: quantile(99),
            max: degrees.last().copied().unwrap_or(0),
            top_percent_share: degrees[num_vertices - top..].iter().sum::<u64>() as f64 / num_edges.max(1) as f64,
        }
    }
}

/// Edges that many algorithms do not expect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Irregularities {
    /// Edges whose two ends an earlier edge has already.
    pub num_duplicates: u64,
    /// Edges from a vertex to itself; 0 where the graph is not square.
    pub num_self_loops: u64,
}

/// Counts duplicates and self loops in the edges grouped by `side`.
///
/// # Errors
/// Where the edges cannot be brought into memory grouped so.
pub fn irregularities<T>(source: &dyn EdgeSource<T>, side: Side) -> io::Result<Irregularities> {
    let offsets = source.offsets(side);
    let mut found = Irregularities::default();
    for rows in windows(offsets) {
        source.visit_rows(side, rows.clone(), &mut |far_ends, _| {
            for row in rows.clone() {
                let first = offsets[rows.start];
                let far_ends = &far_ends[(offsets[row] - first) as usize..(offsets[row + 1] - first) as usize];
                found.num_duplicates += far_ends.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
                if source.is_square() {
                    found.num_self_loops += far_ends.iter().filter(|&&far| far as usize == row).count() as u64;
                }
            }
        })?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_known_degrees() {
        // 200 vertices: 197 of degree 1, one of degree 0, one of 100, one of 3.
        let mut degrees = vec![1; 200];
        (degrees[5], degrees[17], degrees[80]) = (0, 100, 3);
        let stats = DegreeStats::of(&offsets_of(&degrees));
        assert_eq!((stats.min, stats.median, stats.p99, stats.max), (0, 1, 1, 100));
        assert_eq!((stats.num_vertices, stats.num_isolated), (200, 1));
        assert!((stats.mean - 1.5).abs() < 1e-12);
        assert!((stats.top_percent_share - 103.0 / 300.0).abs() < 1e-12);
        let nothing = DegreeStats::of(&[0]);
        assert_eq!((nothing.num_vertices, nothing.max, nothing.top_percent_share), (0, 0, 0.0));
    }

    #[test]
    fn counts_are_those_of_one_thread() {
        let ids: Vec<u32> = (0..10_000_u32).map(|i| i.wrapping_mul(2_654_435_761) % 7).collect();
        let mut expected = vec![0; 7];
        ids.iter().for_each(|&id| expected[id as usize] += 1);
        assert_eq!(count_degrees(&ids, 7), expected);
        assert_eq!(count_degrees(&[], 3), [0, 0, 0]);
        assert_eq!(count_degrees(&[], 0), [] as [u32; 0]);
        assert_eq!(offsets_of(&[2, 0, 3]), [0, 2, 2, 5]);
    }
}
