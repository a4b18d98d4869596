//! Where edges run in several processes, over random plans.

use megagrid_engine::Error;
use megagrid_engine::plan::{self, Plan, Processes, StageKind};
use megagrid_partition::{ShardId, Side, WorkerId};
use megagrid_stages::mode::Mode;
use proptest::prelude::*;

use crate::plans::{Case, case};

/// A case whose stages read and add only, which every strategy runs.
fn additive() -> impl Strategy<Value = Case> {
    case().prop_map(|mut case| {
        for kind in &mut case.kinds {
            *kind = match *kind {
                StageKind::Exchange(left, right) => {
                    let added = |mode| if mode == Mode::Update { Mode::Add } else { mode };
                    StageKind::Exchange(added(left), added(right))
                }
                StageKind::Incident(side) => StageKind::Apply(side),
                kind => kind,
            };
        }
        case
    })
}

/// The workers that run the edges between two rows in a step.
fn runners(plan: &Plan, step: usize, rows: [usize; 2]) -> Vec<usize> {
    let [left, right] = [Side::Left, Side::Right]
        .map(|side| plan.side(side).bounds.partition_point(|&bound| bound <= rows[side as usize]) - 1);
    let [holder, _] = plan.placement.holders((rows[0], rows[1]));
    let runs = |worker: &usize| {
        let mut tasks = plan.steps[step].tasks[*worker].iter();
        plan.process_of(*worker) == usize::from(holder.unwrap())
            && tasks.any(|task| {
                let own = task.turn.is_none() || plan.works_on(WorkerId(*worker), Side::Left, ShardId(left));
                task.left.contains(&left) && task.right.contains(&right) && own
            })
    };
    (0..plan.workers).filter(runs).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// In its one process an edge has one worker in every step that covers it. Shards that a process delivers deltas of are used by
    /// it, and kept elsewhere.
    #[test]
    fn every_edge_runs_once_under_every_strategy(
        mut case in additive(),
        (count, threads) in (2..7_usize, 1..4_usize),
        strategy in prop::sample::select(plan::Strategy::NAMES.map(|(_, strategy)| strategy).to_vec()),
        slack in prop::sample::select(vec![Some(0), Some(2)]),
    ) {
        case.strategy = strategy;
        let plan = match case.plan_of(Processes { this: 0, count }, threads, slack) {
            Err(Error::TooManyProcesses { .. }) => return Ok(()),
            plan => plan.unwrap(),
        };
        let rows = [0, 1].map(|side| 0..case.degrees[side].len());
        for (at, step) in plan.steps.iter().enumerate() {
            match plan.stages[step.stage].kind {
                StageKind::Exchange(..) => {
                    for (left, right) in rows[0].clone().flat_map(|left| rows[1].clone().map(move |right| (left, right))) {
                        let bounds = |side: Side| {
                            let (shards, bounds) = (step.scope.shards(side), &plan.side(side).bounds);
                            bounds[shards.start]..bounds[shards.end]
                        };
                        let covered = bounds(Side::Left).contains(&left) && bounds(Side::Right).contains(&right);
                        prop_assert_eq!(runners(&plan, at, [left, right]).len(), usize::from(covered));
                    }
                }
                StageKind::Deliver(side) => {
                    for (worker, task) in step.tasks.iter().enumerate().flat_map(|(w, tasks)| tasks.iter().map(move |t| (w, t))) {
                        let (process, shard) = (plan.process_of(worker), task.shard(side));
                        prop_assert!(plan.placement.adds_to(process, side, shard) && plan.keeper(side, shard) != process);
                    }
                }
                _ => {}
            }
        }
        // The master of a right vertex is among those that may have its edges; on a square graph a vertex has one home.
        for shard in 0..plan.right.num_shards() {
            prop_assert!(plan.placement.uses(plan.keeper(Side::Right, shard), Side::Right, shard));
        }
    }

    #[test]
    fn batches_are_the_same_under_every_strategy(case in additive(), count in 2..7_usize) {
        let plan = |strategy| Case { strategy, ..case.clone() }.plan_of(Processes { this: 0, count }, 1, Some(0));
        let Ok(expected) = plan(plan::Strategy::BiCut) else { return Ok(()) };
        for (_, strategy) in plan::Strategy::NAMES {
            let Ok(found) = plan(strategy) else { continue };
            prop_assert_eq!((found.layers, found.clocks()), (expected.layers, expected.clocks()));
        }
    }
}

proptest! {
    #[test]
    fn whoever_comes_to_have_a_shard_is_shown_all_of_it(case in case(), count in 1..5_usize, threads in 1..3_usize) {
        let plan = |slack| case.plan_of(Processes { this: 0, count }, threads, slack);
        let (Ok(bulk), Ok(slack)) = (plan(Some(0)), plan(Some(2))) else { return Ok(()) };
        for (plan, other) in [(&bulk, &slack), (&slack, &bulk)] {
            for side in [Side::Left, Side::Right] {
                for (shard, done) in (0..plan.side(side).num_shards()).flat_map(|shard| (0..4).map(move |done| (shard, done))) {
                    let holder = plan.holder(side, shard, done);
                    prop_assert!(plan.may_hold(side, shard, holder) && other.may_hold(side, shard, holder));
                }
            }
        }
    }
}

#[test]
fn what_needs_whole_vertices_is_refused_by_name() {
    let refused = |kinds: Vec<StageKind>, strategy| {
        let body = (0..kinds.len()).map(megagrid_engine::plan::Outline::Stage).collect();
        let degrees = [vec![3; 20], vec![3; 20]];
        let case = Case { kinds, body, degrees, square: false, row_bytes: 4, grid: true, strategy, additive: false };
        case.plan_of(Processes { this: 0, count: 4 }, 1, Some(0)).err().map(|error| error.to_string())
    };
    let in_place = StageKind::Exchange(Mode::Update, Mode::Update);
    for kind in [in_place, StageKind::Exchange(Mode::Update, Mode::Read), StageKind::Incident(Side::Left)] {
        for strategy in [plan::Strategy::Grid, plan::Strategy::Hybrid, plan::Strategy::Mixed] {
            let message = refused(vec![kind], strategy).unwrap();
            assert!(message.contains(strategy.name()) && message.contains("bicut"), "{message}");
        }
        assert_eq!(
            [plan::Strategy::BiCut, plan::Strategy::Auto].map(|strategy| refused(vec![kind], strategy)),
            [None, None]
        );
    }
}
