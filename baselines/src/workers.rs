//! Threads that work side by side on one step, and where their time goes.

use std::ops::{AddAssign, Range};
use std::time::{Duration, Instant};

use megagrid_partition::EdgeList;
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

/// Runs a step on all workers, one thread each, and returns what they return and their times: those who end first wait.
pub(crate) fn step<W: Send, T: Send>(
    workers: Vec<W>,
    run: impl Fn(usize, W) -> T + Sync,
) -> Result<(Vec<T>, Vec<Spent>), Error> {
    let timed = |id: usize, worker: W| {
        let begin = Instant::now();
        (run(id, worker), begin.elapsed())
    };
    let begin = Instant::now();
    let num_workers = workers.len();
    let mut workers = workers.into_iter().enumerate();
    let ended: Vec<Result<(T, Duration), usize>> = match (num_workers, workers.next()) {
        (1, Some((id, worker))) => vec![Ok(timed(id, worker))],
        (_, None) => Vec::new(),
        (_, Some(first)) => std::thread::scope(|scope| {
            let timed = &timed;
            let others: Vec<_> = workers.map(|(id, worker)| (id, scope.spawn(move || timed(id, worker)))).collect();
            let first = timed(first.0, first.1);
            let mut all = vec![Ok(first)];
            all.extend(others.into_iter().map(|(id, other)| other.join().map_err(|_| id)));
            all
        }),
    };
    let whole = begin.elapsed();
    let (mut results, mut spent) = (Vec::with_capacity(num_workers), Vec::with_capacity(num_workers));
    for part in ended {
        let (result, compute) = part.map_err(Error::WorkerPanicked)?;
        results.push(result);
        spent.push(Spent { compute, wait: whole.saturating_sub(compute), sync: Duration::ZERO });
    }
    Ok((results, spent))
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
    use super::*;

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
