//! HDRF, high degree replicated first: edges come as a stream, and each goes where its ends are already, but rather to
//! the end of lower degree [Petroni, Querzoni, Daudjee, Kamali, Iacoboni: HDRF: Stream-Based Partitioning for
//! Power-Law Graphs, CIKM 2015].
//!
//! With partial degrees d, counted from the stream so far, edge (u, v) goes to the partition p that has the largest
//!
//! ```text
//! g(u) + g(v) + lambda (max - load(p)) / (1 + max - min),
//! ```
//!
//! where g(u) = 2 - d(u) / (d(u) + d(v)) if u has a replica in p, else 0, and max and min are the largest and the
//! smallest load. The paper draws ties; here they go to the lower load, then to the lower number.
//!
//! The stream is the order of the list. Sorted lists are known to suit it ill: shuffle them, or raise lambda.

use super::rule::Strategy;
use crate::Ends;
use crate::replicas::ReplicaSets;

/// Weight of the balance of loads. Above 1, where it can outweigh one end's reward: at 1 or below, sorted streams get out of balance.
const LAMBDA: f64 = 1.1;

/// Places edges greedily, cutting vertices of high degree.
#[derive(Clone, Copy, Debug)]
pub struct Hdrf;

impl Strategy for Hdrf {
    fn name(&self) -> &'static str {
        "hdrf"
    }

    fn assign(&self, ends: Ends<'_>, num_partitions: usize) -> Vec<u16> {
        let mut replicas = ReplicaSets::new(ends.num_vertices(), num_partitions);
        let mut degrees = vec![0_u32; ends.num_vertices()];
        let mut loads = vec![0_u64; num_partitions];
        let place = |pair: [usize; 2]| {
            pair.iter().for_each(|&vertex| degrees[vertex] += 1);
            let [left, right] = pair.map(|vertex| f64::from(degrees[vertex]));
            let rewards = [2.0 - left / (left + right), 2.0 - right / (left + right)];
            let (min, max) = loads.iter().fold((u64::MAX, 0), |(min, max), &load| (min.min(load), max.max(load)));
            let score = |partition: usize| {
                let reward = |end: usize| if replicas.contains(pair[end], partition) { rewards[end] } else { 0.0 };
                let balance = (max - loads[partition]) as f64 / (1 + max - min) as f64;
                reward(0) + reward(1) + LAMBDA * balance
            };
            let mut best = (0, score(0));
            for partition in 1..num_partitions {
                let score = score(partition);
                if score > best.1 || score == best.1 && loads[partition] < loads[best.0] {
                    best = (partition, score);
                }
            }
            loads[best.0] += 1;
            pair.iter().for_each(|&vertex| replicas.insert(vertex, best.0));
            best.0 as u16
        };
        ends.pairs().map(place).collect()
    }
}
