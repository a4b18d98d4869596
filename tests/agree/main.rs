//! Every system reaches the same objective after each iteration as Megagrid: to 1e-5 with one worker and the same visiting order,
//! within 1 % at the end with two.
//!
//! **Visiting order.** What does not depend on it has none: batch gradients, PageRank settled at once, derivatives of a block.
//! Otherwise Megagrid is asked for its own: a program with the same access modes and rows of the same size, and so the same plan, writes
//! down the edges, or blocks, that it visits, and baselines visit these.

mod blockpg;
mod lda;
mod mf;
mod order;
mod pagerank;

use std::ops::ControlFlow;

use megagrid_baselines::{Epoch, Error, Finish, Report};
use megagrid_partition::SplitMix;

/// Runs a job and returns its objectives.
fn objectives(run: impl FnOnce(Report<'_>) -> Result<Finish, Error>) -> Vec<f64> {
    let mut objectives = Vec::new();
    let mut report = |epoch: &Epoch| {
        objectives.push(epoch.objective);
        ControlFlow::Continue(())
    };
    run(&mut report).unwrap();
    objectives
}

/// Checks that objectives agree after each iteration, to `tolerance`.
fn assert_agree(name: &str, found: &[f64], megagrid: &[f64], tolerance: f64) {
    assert_eq!(found.len(), megagrid.len(), "{name}: {found:?}, megagrid {megagrid:?}");
    for (at, (found, expected)) in found.iter().zip(megagrid).enumerate() {
        let error = (found / expected - 1.0).abs();
        assert!(error <= tolerance, "{name}, iteration {}: {found}, megagrid {expected}: {error:.1e} apart", at + 1);
    }
}

/// Checks that the last objectives, those of runs that have converged, are within 1 %.
fn assert_ends_near(name: &str, found: &[f64], megagrid: &[f64]) {
    let ((Some(found), Some(expected)), number) = ((found.last(), megagrid.last()), found.len()) else {
        panic!("{name}")
    };
    let error = (found / expected - 1.0).abs();
    assert!(error <= 0.01, "{name}, two workers, iteration {number}: {found}, megagrid {expected}: {error:.1e} apart");
}

/// Draws a number below `bound`, small ones more often.
fn skewed(random: &mut SplitMix, bound: usize) -> u32 {
    let unit = random.unit();
    ((unit * unit * bound as f64) as usize).min(bound - 1) as u32
}
