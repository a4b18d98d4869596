//! Panics: every `run` that can know of one returns, although threads of other processes wait.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use megagrid_engine::{EdgeInput, Engine, Error, Input};
use megagrid_stages::{Context, Exchange, Program, Sequence, Update, Vertex, mode};

use super::{local, ratings, settings};

struct Faulty;
struct End;

impl Vertex for End {
    type Sync = u32;
    type Delta = ();
    type Master = ();
    type Mirror = ();
}

impl Program for Faulty {
    type Left = End;
    type Right = End;
    type Edge = f32;
    type Worker = ();
    type Global = ();
}

/// Fails in the third iteration.
struct Count;

impl Exchange<Faulty> for Count {
    type Left = mode::Update;
    type Right = mode::Update;

    fn exchange(
        &self,
        left: Update<'_, End>,
        right: Update<'_, End>,
        _: &mut f32,
        cx: &mut Context<'_, Faulty>,
    ) {
        assert!(cx.iteration < 3, "enough");
        *left.sync += 1;
        *right.sync += 1;
    }
}

/// How a run ends; `between` is called after each iteration.
fn end(processes: usize, between: impl Fn(u64) + Sync) -> Result<(), Error> {
    let edges = ratings(500);
    local::run(processes, |peers| {
        let edge = EdgeInput { len: &|_: &f32| 1, fill: &|rating: &f32, items: &mut [f32]| items[0] = *rating };
        let input = Input { source: &edges, edge, capacities: [None, None] };
        let sequence = Sequence::new().exchange(Count).build().unwrap();
        let mut engine = Engine::<Faulty>::bipartite(&input, &sequence, (), &settings(peers, 2, 1)).unwrap();
        engine.run(9, |report, _| {
            between(report.iteration);
            ControlFlow::Continue(())
        })
    })
}

#[test]
fn a_stage_that_panics_ends_the_run() {
    for processes in [1, 2] {
        match end(processes, |_| ()) {
            Err(Error::WorkerPanicked { stage, message, .. }) => {
                assert_eq!((stage.as_str(), message.as_str()), ("Count", "enough"));
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
