//! Threads that work side by side on one step, and where their time goes.

use std::ops::{AddAssign, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use megagrid_partition::EdgeList;
use megagrid_partition::parallel::lock;
use megagrid_stages::simd::Level;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Where a worker's time went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// It computed, accesses to its own caches included.
    pub compute: Duration,
    /// It waited for data or for others.
    pub wait: Duration,
    /// It brought data to others or took it from them.
    pub sync: Duration,
}

impl AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.compute += more.compute;
        self.wait += more.wait;
        self.sync += more.sync;
    }
}

/// The threads of a process's workers. They live as long as its job, so that a step does not begin with making them, and so that a worker is
/// always on the same one, which may be bound to a part of the machine.
pub(crate) struct Threads {
    /// Nobody but whoever calls, of one worker.
    pool: Option<ThreadPool>,
    count: usize,
    level: Level,
}

impl Threads {
    /// Starts as many threads as there are workers, which may wait for each other in a step.
    pub fn new(workers: usize, level: Level) -> Result<Self, Error> {
        let pool = ThreadPoolBuilder::new().num_threads(workers).thread_name(|worker| format!("worker-{worker}"));
        let pool = (workers > 1).then(|| pool.build()).transpose();
        let pool = pool.map_err(|error| Error::io("the threads of workers")(std::io::Error::other(error)))?;
        Ok(Self { pool, count: workers, level })
    }

    /// Returns how many workers there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns what hot loops are compiled for.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Runs a step on all workers, one thread each, and returns what they return and their times: those who end first wait.
    pub fn step<W: Send, T: Send>(
        &self,
        workers: Vec<W>,
        run: impl Fn(usize, W) -> T + Sync,
    ) -> Result<(Vec<T>, Vec<Spent>), Error> {
        // By pointer, so that a step is not compiled for each level: only row kernels that it calls outside of loops of a level are of this one.
        let run: &(dyn Fn(usize, W) -> T + Sync) = &run;
        let timed = |id: usize, worker: W| {
            let begin = Instant::now();
            (self.level.run(|| run(id, worker)), begin.elapsed())
        };
        let begin = Instant::now();
        let ended: Vec<Result<(T, Duration), usize>> = match &self.pool {
            None => workers.into_iter().enumerate().map(|(id, worker)| Ok(timed(id, worker))).collect(),
            Some(pool) => {
                let workers: Vec<_> = workers.into_iter().map(|worker| Mutex::new(Some(worker))).collect();
                let ended = pool.broadcast(|thread| {
                    let id = thread.index();
                    let worker = lock(workers.get(id)?).take()?;
                    Some(catch_unwind(AssertUnwindSafe(|| timed(id, worker))).map_err(|_| id))
                });
                ended.into_iter().flatten().collect()
            }
        };
        let whole = begin.elapsed();
        let (mut results, mut spent) = (Vec::with_capacity(self.count), Vec::with_capacity(self.count));
        for part in ended {
            let (result, compute) = part.map_err(Error::WorkerPanicked)?;
            results.push(result);
            spent.push(Spent { compute, wait: whole.saturating_sub(compute), sync: Duration::ZERO });
        }
        Ok((results, spent))
    }
}

/// Returns, for vertices `0..len` and one more, how many edges those before it have; `ends` has the vertex of each edge.
pub(crate) fn offsets(ends: &[u32], len: usize) -> Vec<u64> {
    let mut offsets = vec![0_u64; len + 1];
    ends.iter().for_each(|&vertex| offsets[vertex as usize + 1] += 1);
    (0..len).for_each(|vertex| offsets[vertex + 1] += offsets[vertex]);
    offsets
}

/// Cuts items where the parts, which follow each other, begin and end; each counts `width` items.
pub(crate) fn cut<'r, T>(items: &'r mut [T], width: usize, parts: &[Range<usize>]) -> Vec<&'r mut [T]> {
    let (mut rest, mut at, mut cut) = (items, 0, Vec::with_capacity(parts.len()));
    for part in parts {
        let (_, from) = rest.split_at_mut((part.start - at) * width);
        let (mine, after) = from.split_at_mut(part.len() * width);
        cut.push(mine);
        (rest, at) = (after, part.end);
    }
    cut
}

/// Cuts `0..len` into one part for each worker, all of about the same weight; `weight_before(i)` is that of what comes before i.
pub(crate) fn parts(len: usize, workers: usize, weight_before: impl Fn(usize) -> u64) -> Vec<Range<usize>> {
    let whole = weight_before(len);
    let bound = |worker: usize| {
        let goal = (u128::from(whole) * worker as u128 / workers as u128) as u64;
        let (mut low, mut high) = (0, len);
        while low < high {
            let middle = (low + high) / 2;
            if weight_before(middle) < goal { low = middle + 1 } else { high = middle }
        }
        low
    };
    let bounds: Vec<usize> = (0..=workers).map(|worker| if worker == workers { len } else { bound(worker) }).collect();
    bounds.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// Deals left vertices to workers, runs of them with about as many edges, and the edges with them.
pub(crate) fn deal<T: Copy>(list: &EdgeList<T>, workers: usize) -> Vec<(Range<usize>, EdgeList<T>)> {
    let before = offsets(&list.left, list.num_left);
    let of = |part: Range<usize>| {
        let mut own = EdgeList { left: Vec::new(), right: Vec::new(), data: Vec::new(), ..*list };
        for ((&left, &right), &data) in list.left.iter().zip(&list.right).zip(&list.data) {
            if part.contains(&(left as usize)) {
                own.left.push(left);
                own.right.push(right);
                own.data.push(data);
            }
        }
        (part, own)
    };
    parts(list.num_left, workers, |vertex| before[vertex]).into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use megagrid_stages::simd::{RowKernel, Vector, row_kernel};

    use super::*;

    fn threads(workers: usize, level: Level) -> Threads {
        Threads::new(workers, level).unwrap()
    }

    #[test]
    fn workers_that_wait_for_each_other_keep_their_threads() {
        let (threads, all) = (threads(5, Level::detect()), Barrier::new(5));
        let step = || {
            let of = |id: usize, worker: usize| {
                all.wait();
                (id, worker, std::thread::current().id())
            };
            threads.step((10..15).collect(), of).unwrap().0
        };
        let first = step();
        assert!((0..5).all(|id| (first[id].0, first[id].1) == (id, 10 + id)), "{first:?}");
        (0..20).for_each(|_| assert_eq!(step(), first));
    }

    #[test]
    fn a_worker_that_panics_ends_the_step_by_its_number() {
        let of = |id, ()| assert_ne!(id, 1);
        let found = threads(3, Level::detect()).step(vec![(); 3], of);
        assert!(matches!(found, Err(Error::WorkerPanicked(1))), "{found:?}");
    }

    /// Tells by which vectors a row kernel runs.
    struct Vectors;

    impl RowKernel for Vectors {
        type Output = &'static str;

        #[inline(always)]
        fn run<V: Vector>(self) -> &'static str {
            std::any::type_name::<V>()
        }
    }

    #[test]
    fn row_kernels_are_of_the_level_of_the_run() {
        for level in Level::available() {
            let expected = level.run(|| row_kernel(Vectors));
            for workers in [1, 2] {
                let (found, _) = threads(workers, level).step(vec![(); workers], |_, ()| row_kernel(Vectors)).unwrap();
                assert!(found.iter().all(|&found| found == expected), "{level}: {found:?}");
            }
        }
    }

    #[test]
    fn parts_cover_all_and_weigh_the_same() {
        for workers in 1..6 {
            let parts = parts(100, workers, |at| (at * at) as u64);
            assert_eq!(parts.len(), workers);
            assert_eq!((parts[0].start, parts[workers - 1].end), (0, 100));
            for (pair, part) in parts.windows(2).zip(&parts) {
                assert_eq!(pair[0].end, pair[1].start);
                let weight = part.end * part.end - part.start * part.start;
                assert!(weight.abs_diff(10_000 / workers) <= 400, "{parts:?}");
            }
        }
    }
}
