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

use megagrid_baselines::{Epoch, Error, Finish, Report, Run, System};
use megagrid_partition::SplitMix;

/// Checks that systems agree with Megagrid's objectives: with one worker after each iteration, to `tolerance`; with two at the end, where
/// runs have converged, within 1 %.
fn assert_systems_agree(
    (systems, what): (&[System], &str),
    megagrid: &[f64],
    tolerance: f64,
    run: impl Fn(System, &Run, Report<'_>) -> Result<Finish, Error>,
) {
    for &system in systems {
        let objectives = |workers| {
            let mut objectives = Vec::new();
            let mut report = |epoch: &Epoch| {
                objectives.push(epoch.objective);
                ControlFlow::Continue(())
            };
            run(system, &Run { workers, iterations: megagrid.len() as u64, ..Run::default() }, &mut report).unwrap();
            assert_eq!(objectives.len(), megagrid.len(), "{system} {what}: {objectives:?}, megagrid {megagrid:?}");
            objectives
        };
        let error = |found: f64, expected: f64| (found / expected - 1.0).abs();
        for (at, (&found, &expected)) in objectives(1).iter().zip(megagrid).enumerate() {
            let (error, after) = (error(found, expected), at + 1);
            assert!(error <= tolerance, "{system} {what}, {after}: {found}, megagrid {expected}: {error:.1e} apart");
        }
        let (found, expected) = (*objectives(2).last().unwrap(), *megagrid.last().unwrap());
        let error = error(found, expected);
        assert!(error <= 0.01, "{system} {what}, two workers: {found}, megagrid {expected}: {error:.1e} apart");
    }
}

/// Draws a number below `bound`, small ones more often.
fn skewed(random: &mut SplitMix, bound: usize) -> u32 {
    let unit = random.unit();
    ((unit * unit * bound as f64) as usize).min(bound - 1) as u32
}
