//! Where right rows are that travel from worker to worker: with the last visitor, or with their owners for a stage that looks at
//! them.

use std::sync::Arc;

use megagrid_engine::{Engine, Peers};
use megagrid_partition::EdgeSource;
use megagrid_stages::{Aggregate, GlobalSync, Left, Right, Sequence, Stages, Total, Update, program, vertex};

use super::{SHAPES, local, ratings, settings};
use crate::made::watch;

vertex! {
    /// How often edges visited a vertex.
    struct Near { sync: f64 }
}
vertex! {
    /// Likewise.
    struct Far { sync: f64 }
}
program! { struct Counting { left: Near, right: Far, edge: f32, worker: f64, global: f64 } }

fn visit(left: Update<Near>, right: Update<Far>) {
    *left.sync += 1.0;
    *right.sync += 1.0;
}

/// Sums what the right side's vertices count.
struct Sum;

impl Aggregate<Counting, Far> for Sum {
    fn aggregate(&self, right: Total<'_, Far>, worker: &mut f64) {
        *worker += *right.sync;
    }
}

impl GlobalSync<Counting> for Sum {
    fn apply(&self, total: f64, global: &mut f64) {
        *global = total;
    }
}

const ITERATIONS: u64 = 5;

/// Counts visits; returns the bytes of shards in each iteration, and the shared context after it.
fn count<S: Stages<Counting>>(
    peers: Option<Arc<dyn Peers>>,
    workers: usize,
    sequence: Sequence<Counting, S>,
) -> Vec<(u64, f64)> {
    let edges = ratings(9000);
    let mut engine = Engine::new(&edges, sequence, &settings(peers, workers, 1)).unwrap();
    let mut found = Vec::new();
    // A run ends, and the next begins, with shards on either end of their way.
    for last in [1, 3, ITERATIONS] {
        watch(&mut engine, last, |engine, report| {
            found.push((report.sent.shards.bytes, *engine.global()));
        });
        engine.collect().unwrap();
        let is_first = engine.plan().processes.this == 0;
        let visits = |count: &dyn Fn(usize) -> f64, vertices: usize| (0..vertices).map(count).sum::<f64>();
        let (left, right) = (engine.on(Left), engine.on(Right));
        for sum in [visits(&|at| *left.sync(at), left.len()), visits(&|at| *right.sync(at), right.len())] {
            assert!(!is_first || sum == last as f64 * edges.num_edges() as f64, "{sum} visits after {last}");
        }
    }
    found
}

#[test]
fn shards_stay_with_the_last_visitor_unless_a_stage_looks_at_them() {
    let edges = ratings(9000).num_edges() as f64;
    for (processes, workers) in SHAPES.into_iter().filter(|shape| shape.0 > 1) {
        let alone = || Sequence::new().exchange(visit);
        let to_and_fro = local::run(processes, |peers| count(peers, workers, alone()));
        let summed = || Sequence::new().exchange(visit).global_sync_over(Right, Sum);
        let round = local::run(processes, |peers| count(peers, workers, summed()));
        for (iteration, (found, to_and_fro)) in (1..).zip(round.iter().zip(&to_and_fro)) {
            assert_eq!(found.1, edges * f64::from(iteration), "{processes} x {workers}: all visits are seen");
            assert_eq!(found.0 * (processes as u64 - 1), to_and_fro.0 * processes as u64, "{processes} x {workers}");
        }
        assert_eq!((round.len(), to_and_fro.len()), (ITERATIONS as usize, ITERATIONS as usize));
    }
}
