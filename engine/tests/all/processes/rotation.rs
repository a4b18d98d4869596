//! Where right rows are that travel from worker to worker: with the last visitor, or with their owners for a stage that looks at
//! them.

use std::ops::ControlFlow;
use std::sync::Arc;

use megagrid_engine::{EdgeInput, Engine, Input, Peers};
use megagrid_partition::EdgeSource;
use megagrid_stages::{Context, Exchange, GlobalSync, Left, Program, Right, Sequence, Stages, Total, Update, Vertex, mode};

use super::{SHAPES, local, ratings, settings};

/// How often edges visited a vertex.
struct Visits;

impl Vertex for Visits {
    type Sync = f64;
    type Delta = ();
    type Master = ();
    type Mirror = ();
}

struct Counting;

impl Program for Counting {
    type Left = Visits;
    type Right = Visits;
    type Edge = f32;
    type Worker = f64;
    type Global = f64;
}

struct Visit;

impl Exchange<Counting> for Visit {
    type Left = mode::Update;
    type Right = mode::Update;

    fn exchange(
        &self,
        left: Update<'_, Visits>,
        right: Update<'_, Visits>,
        _: &mut f32,
        _: &mut Context<'_, Counting>,
    ) {
        *left.sync += 1.0;
        *right.sync += 1.0;
    }
}

/// Sums what the right side's vertices count.
struct Total;

impl GlobalSync<Counting> for Total {
    const RIGHT: bool = true;

    fn aggregate_right(&self, right: Total<'_, Visits>, worker: &mut f64) {
        *worker += *right.sync;
    }

    fn apply(&self, total: f64, global: &mut f64) {
        *global = total;
    }
}

const ITERATIONS: u64 = 5;

/// Counts visits; returns the bytes of shards in each iteration, and the shared context after it.
fn count<S: Stages<Counting>>(
    peers: Option<Arc<dyn Peers>>,
    workers: usize,
    sequence: &Sequence<Counting, S>,
) -> Vec<(u64, f64)> {
    let edges = ratings(9000);
    let edge = EdgeInput { len: &|_: &f32| 1, fill: &|rating: &f32, items: &mut [f32]| items[0] = *rating };
    let input = Input { source: &edges, edge, capacities: [None, None] };
    let mut engine = Engine::bipartite(&input, sequence, 0.0, &settings(peers, workers, 1)).unwrap();
    let mut found = Vec::new();
    // A run ends, and the next begins, with shards on either end of their way.
    for last in [1, 3, ITERATIONS] {
        engine
            .run(last, |report, engine| {
                found.push((report.sent.shards.bytes, *engine.global()));
                ControlFlow::Continue(())
            })
            .unwrap();
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
        let alone = || Sequence::new().exchange(Visit).build().unwrap();
        let to_and_fro = local::run(processes, |peers| count(peers, workers, &alone()));
        let summed = || Sequence::new().exchange(Visit).global_sync(Total).build().unwrap();
        let round = local::run(processes, |peers| count(peers, workers, &summed()));
        for (iteration, (found, to_and_fro)) in (1..).zip(round.iter().zip(&to_and_fro)) {
            assert_eq!(found.1, edges * f64::from(iteration), "{processes} x {workers}: all visits are seen");
            assert_eq!(found.0 * (processes as u64 - 1), to_and_fro.0 * processes as u64, "{processes} x {workers}");
        }
        assert_eq!((round.len(), to_and_fro.len()), (ITERATIONS as usize, ITERATIONS as usize));
    }
}
