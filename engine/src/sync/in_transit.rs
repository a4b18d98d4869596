//! What is under way, where one process can know it: on a virtual cluster. Changes are added when they are sent, and removed when rows
//! that hold them have come to every process. A worker begins clock t if no item of its own changes under way is larger than
//! v₀ / √t (value-bounded asynchronous parallelism, VAP).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use bytemuck::cast_slice;
use megagrid_partition::parallel::lock;
use megagrid_stages::Item;

use super::table::RowChanges;

/// Changes under way between virtual processes.
#[derive(Debug)]
pub struct InTransit {
    first_bound: f64,
    shards: Mutex<BTreeMap<usize, Shard>>,
}

/// What is known of a shard.
#[derive(Debug, Default)]
struct Shard {
    /// By process: its changes under way, with their clocks.
    changes: BTreeMap<usize, VecDeque<(u64, Rows)>>,
    /// By receiver: of each process the last clock that the rows hold which are on their way to it, and which it has.
    coming: BTreeMap<usize, VecDeque<Vec<u64>>>,
    seen: BTreeMap<usize, Vec<u64>>,
}

/// Changes of items, by row and place in it.
type Rows = Vec<((usize, usize), f64)>;

impl InTransit {
    /// Begins with nothing, and a bound for the first clock.
    #[must_use]
    pub fn new(first_bound: f64) -> Self {
        Self { first_bound, shards: Mutex::default() }
    }

    /// Begins a run.
    pub fn begin(&self) {
        lock(&self.shards).clear();
    }

    /// Adds what a process sends of a shard. Items that are no numbers of 32 bits with a point are not looked at.
    pub fn send<I: Item>(&self, process: usize, shard: usize, clock: u64, change: &RowChanges<I>) {
        if std::any::TypeId::of::<I>() != std::any::TypeId::of::<f32>() {
            return;
        }
        let mut rows = Rows::new();
        for (row, items) in change.each() {
            let items: &[f32] = cast_slice(items);
            rows.extend(items.iter().enumerate().map(|(at, &item)| ((row, at), f64::from(item))));
        }
        let mut shards = lock(&self.shards);
        let shard = shards.entry(shard).or_default();
        shard.changes.entry(process).or_default().push_back((clock, rows));
    }

    /// Takes down that a master shows its rows, with the changes of these clocks, to a process.
    pub fn show(&self, receiver: usize, shard: usize, clocks: Vec<u64>) {
        let mut shards = lock(&self.shards);
        shards.entry(shard).or_default().coming.entry(receiver).or_default().push_back(clocks);
    }

    /// Takes down that the next rows of a shard have come to a process, and removes what has now come to all.
    pub fn arrive(&self, receiver: usize, shard: usize) {
        let mut shards = lock(&self.shards);
        let shard = shards.entry(shard).or_default();
        let Some(clocks) = shard.coming.get_mut(&receiver).and_then(VecDeque::pop_front) else { return };
        // A process that uses no row of the shard has all of it.
        let users: Vec<usize> = (0..clocks.len()).filter(|&process| clocks[process] < u64::MAX).collect();
        shard.seen.insert(receiver, clocks);
        for (process, changes) in &mut shard.changes {
            let of = |user: &usize| shard.seen.get(user).map_or(0, |clocks| clocks[*process]);
            let everywhere = users.iter().map(of).min().unwrap_or(u64::MAX);
            while changes.front().is_some_and(|(clock, _)| *clock <= everywhere) {
                changes.pop_front();
            }
        }
    }

    /// Tells whether a process may begin a clock.
    pub fn allows(&self, process: usize, clock: u64) -> bool {
        let bound = self.first_bound / (clock as f64).sqrt();
        lock(&self.shards).values().all(|shard| {
            let mut sums = BTreeMap::new();
            let changes = shard.changes.get(&process).into_iter().flatten();
            changes.flat_map(|(_, rows)| rows).for_each(|(at, change)| *sums.entry(*at).or_insert(0.0) += change);
            sums.into_values().all(|sum: f64| sum.abs() <= bound)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(by: f32) -> RowChanges<f32> {
        RowChanges::of(2, |row, out| out.extend((row == 1).then_some([0.5, by]).into_iter().flatten()))
    }

    #[test]
    fn changes_count_until_all_have_them() {
        let transit = InTransit::new(4.0);
        assert!(transit.allows(0, 1));
        transit.send(0, 7, 1, &change(3.0));
        transit.send(0, 7, 2, &change(-2.0));
        // The sum of both is 1 in each item, and the bound of clock 16 is 1.
        assert!(transit.allows(0, 16) && !transit.allows(0, 17) && transit.allows(1, 100));
        transit.show(0, 7, vec![1, 0, u64::MAX]);
        transit.show(1, 7, vec![1, 0, u64::MAX]);
        transit.arrive(0, 7);
        assert!(transit.allows(0, 16), "one of two users has it");
        transit.arrive(1, 7);
        assert!(transit.allows(0, 4) && !transit.allows(0, 5), "what is left is -2");
        transit.show(1, 7, vec![2, 0, u64::MAX]);
        transit.show(0, 7, vec![2, 0, u64::MAX]);
        (0..2).for_each(|process| transit.arrive(process, 7));
        assert!(transit.allows(0, 1 << 40));
    }
}
