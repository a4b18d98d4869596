//! Rotations: which worker visits which right shard when, so that each shard has one visitor at a time.

use std::ops::Range;

/// The order of visits in a rotation of `columns` right shards.
///
/// Processes begin at runs of shards that lie as far apart as possible and go round, run by run; the threads of a process do so
/// within its run. So a shard is with all threads of a process before it goes to the next one.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// Right shards.
    pub columns: usize,
    /// Processes between which they go.
    pub processes: usize,
    /// Workers of each.
    pub threads: usize,
}

impl Rotation {
    /// Returns the visitors.
    pub fn workers(&self) -> Range<usize> {
        0..self.processes * self.threads
    }

    /// Returns when a worker visits the shard number `at`: in which run, and as which one of it.
    ///
    /// No two workers wait for each other: each goes by these numbers, and so do, among equals by their own, the visitors of a
    /// shard.
    fn when(&self, worker: usize, at: usize) -> (usize, usize) {
        let (process, thread) = (worker / self.threads, worker % self.threads);
        let bound = |run: usize| run * self.columns / self.processes;
        let run = ((at + 1) * self.processes - 1) / self.columns;
        let (first, len) = (bound(run), bound(run + 1) - bound(run));
        let begin = first + thread * len / self.threads;
        ((run + self.processes - process) % self.processes, (at + len - begin) % len)
    }

    /// Lists the shards in the order in which a worker visits them.
    pub fn of_worker(&self, worker: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.columns).collect();
        order.sort_by_key(|&at| self.when(worker, at));
        order
    }

    /// Lists the workers in the order in which they visit the shard number `at`.
    pub fn of_shard(&self, at: usize) -> Vec<usize> {
        let mut order: Vec<usize> = self.workers().collect();
        order.sort_by_key(|&worker| (self.when(worker, at), worker));
        order
    }

    /// Returns the worker that visits the shard number `at` first.
    pub fn first(&self, at: usize) -> usize {
        self.workers().min_by_key(|&worker| (self.when(worker, at), worker)).unwrap_or(0)
    }

    /// Returns the worker that visits the shard number `at` last.
    pub fn last(&self, at: usize) -> usize {
        self.workers().max_by_key(|&worker| (self.when(worker, at), worker)).unwrap_or(0)
    }

    /// Lists the shards in the order in which their first visitors come to them.
    pub fn by_first_visit(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.columns).collect();
        order.sort_by_key(|&at| self.workers().map(|worker| self.when(worker, at)).min());
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Workers that take their shards in order, each when its turn has come, end; and a shard goes from process to process no
        /// more often than there are others.
        #[test]
        fn nobody_waits_for_ever_and_each_process_has_a_shard_once(
            columns in 1_usize..40, processes in 1_usize..6, threads in 1_usize..5, back in any::<bool>()
        ) {
            let rotation = Rotation { columns, processes, threads };
            let turned = |mut order: Vec<usize>| {
                if back {
                    order.reverse();
                }
                order
            };
            let visitors: Vec<_> = (0..columns).map(|at| turned(rotation.of_shard(at))).collect();
            for order in &visitors {
                let crossings = order.windows(2).filter(|pair| pair[0] / threads != pair[1] / threads).count();
                prop_assert_eq!(crossings, processes - 1);
                prop_assert_eq!(order.len(), processes * threads);
            }
            let orders: Vec<_> = rotation.workers().map(|worker| turned(rotation.of_worker(worker))).collect();
            let (mut visits, mut done) = (vec![0; columns], vec![0; orders.len()]);
            for _ in 0..=columns * orders.len() {
                for (worker, order) in orders.iter().enumerate() {
                    let due = order.get(done[worker]).filter(|&&at| visitors[at][visits[at]] == worker);
                    if let Some(&at) = due {
                        visits[at] += 1;
                        done[worker] += 1;
                    }
                }
            }
            prop_assert!(done.iter().all(|&done| done == columns), "{done:?}");
        }
    }

    #[test]
    fn first_and_last_are_the_ends_of_a_shards_visitors() {
        let rotation = Rotation { columns: 11, processes: 3, threads: 2 };
        for at in 0..11 {
            let order = rotation.of_shard(at);
            assert_eq!((order.first(), order.last()), (Some(&rotation.first(at)), Some(&rotation.last(at))));
        }
        assert_eq!(rotation.by_first_visit()[0], 0);
    }
}
