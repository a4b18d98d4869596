//! Panics: every `run` that can know of one returns, although threads of other processes wait.

use std::panic::{AssertUnwindSafe, catch_unwind};

use megagrid_engine::{Engine, Error};
use megagrid_stages::{Context, Sequence, Update, program, vertex};

use super::{local, ratings, settings};

vertex! { struct Near { sync: u32 } }
vertex! { struct Far { sync: u32 } }
program! { struct Faulty { left: Near, right: Far, edge: f32 } }

/// Fails in the third iteration.
fn count(left: Update<Near>, right: Update<Far>, cx: &mut Context<Faulty>) {
    assert!(cx.iteration < 3, "enough");
    *left.sync += 1;
    *right.sync += 1;
}

/// How a run ends; `between` is called after each iteration.
fn end(processes: usize, between: impl Fn(u64) + Sync) -> Result<(), Error> {
    let edges = ratings(500);
    local::run(processes, |peers| {
        let sequence = Sequence::new().exchange(count);
        let mut engine = Engine::<Faulty>::new(&edges, sequence, &settings(peers, 2, 1)).unwrap();
        engine.run_until(9, |_, report| {
            between(report.iteration);
            Ok(false)
        })
    })
}

#[test]
fn a_stage_that_panics_ends_the_run() {
    for processes in [1, 2] {
        match end(processes, |_| ()) {
            Err(Error::WorkerPanicked { stage, message, .. }) => {
                assert_eq!((stage.as_str(), message.as_str()), ("count", "enough"));
            }
            other => panic!("{processes} processes: {other:?}"),
        }
    }
}

#[test]
fn a_panic_between_iterations_goes_through() {
    let run = || end(1, |iteration| assert!(iteration < 2, "no more"));
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
}
