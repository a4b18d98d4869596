//! Every system reaches the same objective after each iteration as Megagrid: to 1e-5 with one worker and the same visiting order,
//! within 1 % at the end with two, and as several processes; as these to 1e-5 too where there is no order of visits.
//!
//! **Visiting order.** What does not depend on it has none: batch gradients, PageRank settled at once, derivatives of a block.
//! Otherwise Megagrid is asked for its own: a program with the same access modes and rows of the same size, and so the same plan, writes
//! down the edges, or blocks, that it visits, and baselines visit these.

mod als;
mod blockpg;
mod lda;
mod mf;
mod order;
mod pagerank;
mod processes;

use std::ops::ControlFlow;

use megagrid_baselines::{Epoch, Error, Finish, Report, Run, System};
use megagrid_partition::SplitMix;

use processes::across;

/// Checks that systems agree with Megagrid's objectives: with one worker after each iteration, to `tolerance`; with two, and in two
/// processes, at the end, where runs have converged, within 1 %.
fn assert_systems_agree(
    (systems, what): (&[System], &str),
    megagrid: &[f64],
    tolerance: f64,
    run: impl Fn(System, &Run, Report<'_>) -> Result<Finish, Error> + Sync,
) {
    let of = |system, run_of: Run| objectives((system, what), megagrid, run_of, &run);
    for &system in systems {
        assert_close((system, what), &of(system, Run::default()), megagrid, tolerance);
        let mut ends = vec![*of(system, Run { workers: 2, ..Run::default() }).last().unwrap()];
        let all = across(2, |processes| of(system, Run { processes, ..Run::default() }));
        assert!(all.iter().all(|one| *one == all[0]), "{system} {what}: all processes are told the same: {all:?}");
        ends.push(*all[0].last().unwrap());
        let expected = *megagrid.last().unwrap();
        for (found, who) in ends.into_iter().zip(["two workers", "two processes"]) {
            let error = (found / expected - 1.0).abs();
            assert!(error <= 0.01, "{system} {what}, {who}: {found}, megagrid {expected}: {error:.1e} apart");
        }
    }
}

/// Checks that systems in one, two and four processes agree with Megagrid's objectives after each iteration, to 1e-5, wherever rows and edges
/// are: of jobs whose iterations have no order in them. `cuts` are those of gas, and of gas-faithful.
fn assert_processes_agree(
    what: &str,
    megagrid: &[f64],
    cuts: [&[&'static str]; 2],
    run: impl Fn(System, &Run, Report<'_>) -> Result<Finish, Error> + Sync,
) {
    for system in System::ALL {
        let where_rows_are: Vec<(bool, Option<&str>)> = match system {
            System::Gas => std::iter::once((true, None)).chain(cuts[0].iter().map(|&cut| (true, Some(cut)))).collect(),
            System::GasFaithful => cuts[1].iter().map(|&cut| (true, Some(cut))).chain([(true, None)]).collect(),
            System::IterStore => vec![(true, None), (false, None)],
            _ => vec![(true, None)],
        };
        for (processes, (placement, cut)) in where_rows_are.into_iter().flat_map(|at| [1, 2, 4].map(|n| (n, at))) {
            let of = |run_of: Run| objectives((system, what), megagrid, run_of, &run);
            let all = across(processes, |processes| of(Run { processes, placement, cut, ..Run::default() }));
            let what = format!("{what} in {processes} processes, placement {placement}, cut {cut:?}");
            all.iter().for_each(|found| assert_close((system, &what), found, megagrid, 1e-5));
        }
    }
}

/// Runs as many iterations as Megagrid has; returns the objectives.
fn objectives(
    (system, what): (System, &str),
    megagrid: &[f64],
    of: Run,
    run: impl Fn(System, &Run, Report<'_>) -> Result<Finish, Error>,
) -> Vec<f64> {
    let mut objectives = Vec::new();
    let mut report = |epoch: &Epoch| {
        objectives.push(epoch.objective);
        ControlFlow::Continue(())
    };
    run(system, &Run { iterations: megagrid.len() as u64, ..of }, &mut report).unwrap();
    assert_eq!(objectives.len(), megagrid.len(), "{system} {what}: {objectives:?}, megagrid {megagrid:?}");
    objectives
}

fn assert_close((system, what): (System, &str), found: &[f64], megagrid: &[f64], tolerance: f64) {
    for (at, (found, expected)) in found.iter().zip(megagrid).enumerate() {
        let (error, after) = ((found / expected - 1.0).abs(), at + 1);
        assert!(error <= tolerance, "{system} {what}, {after}: {found}, megagrid {expected}: {error:.1e} apart");
    }
}

/// Draws a number below `bound`, small ones more often.
fn skewed(random: &mut SplitMix, bound: usize) -> u32 {
    let unit = random.unit();
    ((unit * unit * bound as f64) as usize).min(bound - 1) as u32
}
