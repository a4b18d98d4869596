//! Shapes: where the rows of a side are cut into batches and shards, and who works on each shard.

use serde::Serialize;
use std::ops::Range;

use super::outline::Cut;

/// The shards of one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SideShape {
    /// Rows at which shards begin, and the number of rows; shard `i` is `bounds[i]..bounds[i + 1]`.
    pub bounds: Vec<usize>,
    /// The worker that keeps each shard's masters and, where the schedule says so, is the only one that works on it.
    pub owners: Vec<usize>,
}

impl SideShape {
    /// Returns the number of shards.
    #[must_use]
    pub fn num_shards(&self) -> usize {
        self.owners.len()
    }

    /// Returns the rows of a shard.
    #[must_use]
    pub fn rows(&self, shard: usize) -> Range<usize> {
        self.bounds[shard]..self.bounds[shard + 1]
    }

    pub(crate) fn rows_of(&self, shards: &Range<usize>) -> usize {
        if shards.is_empty() { 0 } else { self.bounds[shards.end] - self.bounds[shards.start] }
    }

    /// Returns the shards that cover `rows`, whose ends are shard boundaries.
    #[must_use]
    pub fn shards(&self, rows: &Range<usize>) -> Range<usize> {
        let at = |row| self.bounds.partition_point(|&bound| bound < row);
        at(rows.start)..at(rows.end).min(self.num_shards())
    }

    /// Returns the largest shard's rows.
    #[must_use]
    pub fn max_rows(&self) -> usize {
        self.bounds.windows(2).map(|b| b[1] - b[0]).max().unwrap_or(0)
    }
}

/// How much work the rows before each row are: edges, and [`ROW_WORK`] for the row itself.
pub struct Weights(Vec<u64>);

/// Edges that take as long as what is done once for a row (measured on PageRank: 2 ns in Apply, 0.5 ns an edge).
const ROW_WORK: u64 = 4;

impl Weights {
    /// Sums degrees in row order.
    pub fn new(degrees: impl Iterator<Item = u64>) -> Self {
        let mut sums = vec![0];
        let mut sum = 0;
        for degree in degrees {
            sum += degree + ROW_WORK;
            sums.push(sum);
        }
        Self(sums)
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.0.len() - 1
    }

    /// Returns the work of a range of rows.
    pub fn of(&self, rows: &Range<usize>) -> u64 {
        self.0[rows.end] - self.0[rows.start]
    }

    /// Cuts rows into `parts` ranges of about equal work; ranges may be empty where a row is heavier than its part.
    pub fn split(&self, rows: Range<usize>, parts: usize) -> Vec<Range<usize>> {
        let (first, total) = (self.0[rows.start], self.of(&rows));
        let mut begin = rows.start;
        (1..=parts as u64)
            .map(|part| {
                let goal = first + (u128::from(total) * u128::from(part) / parts as u128) as u64;
                let inside = &self.0[begin..=rows.end];
                let mut end = begin + inside.partition_point(|&sum| sum < goal);
                // The row that crosses the goal goes to the nearer side.
                if end > begin && end <= rows.end && self.0[end] - goal > goal.saturating_sub(self.0[end - 1]) {
                    end -= 1;
                }
                let end = if part == parts as u64 { rows.end } else { end.min(rows.end) };
                std::mem::replace(&mut begin, end)..end
            })
            .collect()
    }
}

/// Cuts rows into the batches of one mini-batch stage.
pub fn batches(weights: &Weights, rows: Range<usize>, cut: Cut) -> Vec<Range<usize>> {
    if rows.is_empty() {
        return Vec::new();
    }
    match cut {
        Cut::Vertices(n) => {
            let n = usize::try_from(n).unwrap_or(usize::MAX).min(rows.len());
            rows.clone().step_by(n).map(|begin| begin..(begin + n).min(rows.end)).collect()
        }
        Cut::Edges(n) => {
            let edges = weights.of(&rows) - ROW_WORK * rows.len() as u64;
            let parts = edges.div_ceil(n).clamp(1, rows.len() as u64) as usize;
            weights.split(rows, parts).into_iter().filter(|part| !part.is_empty()).collect()
        }
    }
}

/// How the rows between two batch boundaries become shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// Parts of equal work, one for each worker where workers own shards of this side; else 1.
    pub chunks: usize,
    /// Shards of each part, at least.
    pub shards_per_chunk: usize,
    /// Rows of a shard, at most.
    pub max_rows: usize,
}

/// Cuts rows at the batch boundaries, into chunks of equal work, and into shards.
pub fn shards(weights: &Weights, batch_bounds: &[usize], sizing: Sizing, workers: usize) -> SideShape {
    let mut bounds = vec![0];
    let mut owners = Vec::new();
    for interval in batch_bounds.windows(2) {
        for (chunk, rows) in weights.split(interval[0]..interval[1], sizing.chunks).into_iter().enumerate() {
            let mut rest = rows.start;
            for piece in weights.split(rows.clone(), sizing.shards_per_chunk) {
                while piece.end - rest > sizing.max_rows {
                    rest += sizing.max_rows;
                    bounds.push(rest);
                    owners.push(chunk % workers);
                }
                if piece.end > rest {
                    rest = piece.end;
                    bounds.push(rest);
                    owners.push(chunk % workers);
                }
            }
        }
    }
    SideShape { bounds, owners }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_covers_its_rows_and_balances_work() {
        let weights = Weights::new([9, 0, 0, 4, 4, 0, 9, 0].into_iter());
        let parts = weights.split(0..8, 3);
        assert_eq!(parts.iter().map(ExactSizeIterator::len).sum::<usize>(), 8);
        assert!(parts.windows(2).all(|p| p[0].end == p[1].start));
        assert!(parts.iter().all(|p| weights.of(p) <= 2 * weights.of(&(0..8)) / 3));
    }

    #[test]
    fn shards_keep_batch_boundaries_and_row_limits() {
        let weights = Weights::new((0..100).map(|i| 100 - i));
        let shape = shards(&weights, &[0, 10, 100], Sizing { chunks: 2, shards_per_chunk: 1, max_rows: 16 }, 2);
        assert!(shape.bounds.contains(&10));
        assert!(shape.max_rows() <= 16);
        assert_eq!(shape.bounds.last(), Some(&100));
        assert_eq!(shape.num_shards(), shape.bounds.len() - 1);
        assert_eq!(shape.shards(&(10..100)).end, shape.num_shards());
    }

    #[test]
    fn a_vertex_heavier_than_its_part_leaves_an_empty_one() {
        let weights = Weights::new([1000, 1, 1].into_iter());
        let parts = weights.split(0..3, 4);
        assert_eq!(parts.iter().map(ExactSizeIterator::len).sum::<usize>(), 3);
    }

    #[test]
    fn batches_by_edges_hold_whole_vertices() {
        let weights = Weights::new([5, 5, 5, 5].into_iter());
        assert_eq!(batches(&weights, 0..4, Cut::Edges(10)), vec![0..2, 2..4]);
        assert_eq!(batches(&weights, 0..4, Cut::Vertices(3)), vec![0..3, 3..4]);
    }
}
