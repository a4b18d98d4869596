//! How many processes there are, and what belongs to one of them.

use super::rotation::Rotation;
use super::shape::SideShape;

/// How many processes run the workers of a plan, and which this one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Processes {
    /// This process, from 0.
    pub this: usize,
    /// All of them.
    pub count: usize,
}

impl Default for Processes {
    fn default() -> Self {
        Self { this: 0, count: 1 }
    }
}

impl Processes {
    /// Returns the processes other than one of them, the next one first.
    pub(crate) fn others(self, process: usize) -> impl Iterator<Item = usize> {
        (1..self.count).map(move |step| (process + step) % self.count)
    }
}

/// Gives each rotating shard to the worker that visits it first.
pub fn own_by_first_visit(right: &mut SideShape, batch_bounds: &[usize], (processes, threads): (usize, usize)) {
    for interval in batch_bounds.windows(2) {
        let shards = right.shards(&(interval[0]..interval[1]));
        let rotation = Rotation { columns: shards.len(), processes, threads };
        for (at, shard) in shards.enumerate() {
            right.owners[shard] = rotation.first(at);
        }
    }
}

/// Deals left shards of a square graph, which are runs of all rows, to the threads of whatever processes use them. A process is the home of
/// a part of the rows of each of some batches of right vertices, and its threads are to have equally many of these.
pub fn deal_seats(left: &mut SideShape, batches: usize, (processes, threads): (usize, usize)) {
    let batches = batches.max(1);
    let all = 2 * processes * threads;
    for owner in &mut left.owners {
        // Its middle is in this batch of right vertices, and that far in the part of the batch that has one process for its home.
        let middle = (2 * *owner + 1) * batches;
        let (batch, within) = (middle / all, middle % all * processes % all);
        *owner = (batch * all + within) * threads / (batches * all) % threads;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_what_a_process_has_of_all_batches() {
        for (processes, threads, batches) in [(4, 2, 1), (64, 16, 16), (16, 4, 16), (5, 3, 2), (2, 4, 3), (8, 1, 5)] {
            let owners: Vec<usize> = (0..processes * threads).collect();
            let mut left = SideShape { bounds: (0..=owners.len()).collect(), owners };
            deal_seats(&mut left, batches, (processes, threads));
            // Rows in the order of the shards, in finer parts, of which each batch has a run for each process.
            let parts = 60;
            let mut seats = vec![vec![0; threads]; processes];
            for part in 0..num_owners(&left) * parts {
                let of_batch = part * batches % (num_owners(&left) * parts);
                seats[of_batch * processes / (num_owners(&left) * parts)][left.owners[part / parts]] += 1;
            }
            for of_process in seats {
                let (most, all) = (of_process.iter().max().copied().unwrap_or(0), of_process.iter().sum::<usize>());
                assert!(most * threads <= 2 * all, "{processes} x {threads}, {batches} batches: {of_process:?}");
            }
        }
    }

    fn num_owners(side: &SideShape) -> usize {
        side.owners.len()
    }
}
