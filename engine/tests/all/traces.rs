//! What workers do of random plans, see [`World`].

use std::ops::Range;
use std::sync::Arc;

use megagrid_engine::plan::{self, Cut, Event, Outline, Part, Plan, StageKind};
use megagrid_partition::Side;
use megagrid_stages::BatchOrder;
use megagrid_stages::mode::Mode;
use proptest::prelude::*;

use crate::plans::{Case, case};
use crate::world::{SEED, World};

/// The rows of each step's batch, with its stage and layers.
fn batches(plan: &Plan) -> Vec<(usize, [Range<usize>; 2], Range<usize>)> {
    let rows = |side: Side, shards: &Range<usize>| {
        let bounds = &plan.side(side).bounds;
        bounds[shards.start]..bounds[shards.end]
    };
    let scope = |step: &megagrid_engine::plan::Step| {
        let rows = [rows(Side::Left, &step.scope.left), rows(Side::Right, &step.scope.right)];
        (step.stage, rows, step.scope.layers.clone())
    };
    plan.steps.iter().map(scope).collect()
}

/// Slack lets what a batch adds run early, but not beyond the slack's batches.
#[test]
fn with_slack_gradients_run_early_and_their_apply_waits_for_them_alone() {
    use Mode::{Add, Read, Update};
    let kinds = vec![
        StageKind::Exchange(Read, Add),
        StageKind::Apply(Side::Right),
        StageKind::Exchange(Update, Read),
        StageKind::Apply(Side::Left),
    ];
    let stages = (0..3).map(Outline::Stage).collect();
    let body = vec![Outline::Vertices(Side::Right, Cut::Vertices(2), BatchOrder::Fixed, stages), Outline::Stage(3)];
    let case = Case {
        kinds,
        body,
        degrees: [vec![2; 8], vec![2; 8]],
        square: false,
        row_bytes: 4,
        grid: true,
        strategy: plan::Strategy::BiCut,
        additive: false,
    };
    let walk = |slack| {
        let plan = case.plan(2, slack);
        let shown = |event: Event| match event {
            Event::Step { step, lag: 0 } => format!("{}", plan.steps[step].stage),
            Event::Step { step, lag } => format!("{}-{lag}", plan.steps[step].stage),
            Event::Clock => ".".to_owned(),
        };
        plan.events(SEED, 1).into_iter().map(shown).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(walk(Some(0)), "0 1 2 . 0 1 2 . 0 1 2 . 0 1 2 . 3");
    assert_eq!(walk(Some(1)), "0 0 1-1 2 . 0 1-3 2 . 0 1-3 2 . 1-2 2 . 3");
    assert_eq!(walk(Some(9)), "0 0 0 0 1-3 2 . 1-4 2 . 1-5 2 . 1-6 2 . 3");
}

/// Where parts of sums may be applied, a worker applies its own to all rows, and no step waits.
#[test]
fn with_slack_each_worker_applies_its_part_of_sums() {
    use Mode::{Add, Read, Update};
    let body = vec![Outline::Edges(16, BatchOrder::Fixed, vec![Outline::Stage(0), Outline::Stage(1)])];
    for (left, copies) in [(Update, 1), (Read, 2)] {
        let kinds = vec![StageKind::Exchange(left, Add), StageKind::Apply(Side::Right)];
        // One heavy vertex: where left vertices are read, its edges are split among the workers.
        let degrees = [vec![8; 8], vec![57, 1, 1, 1, 1, 1, 1, 1]];
        let (body, strategy) = (body.clone(), plan::Strategy::BiCut);
        let case = Case { kinds, body, degrees, square: false, row_bytes: 4, grid: true, strategy, additive: true };
        let plan = case.plan(2, Some(1));
        assert_eq!((plan.parts, plan.copies, plan.flows), ([None, Some(Part::Worker)], [1, copies], true));
        let rights: Vec<usize> = (0..plan.right.num_shards()).collect();
        for step in plan.steps.iter().filter(|step| step.stage == 1) {
            for tasks in &step.tasks {
                let mut shards: Vec<usize> = tasks.iter().map(|task| task.right.start).collect();
                shards.sort_unstable();
                assert_eq!(shards, rights);
            }
        }
        assert_eq!(case.plan(2, Some(0)).parts, [None; 2]);
        (0..40).for_each(|seed| World::new(Arc::clone(&plan), seed).run());
    }
}

/// On a square graph the last stage of each batch adds to the vertices of all: none of them may be applied to before.
#[test]
fn batches_that_add_to_each_other_do_not_begin_early() {
    use Mode::{Add, Read};
    let kinds = vec![StageKind::Exchange(Read, Add), StageKind::Apply(Side::Right), StageKind::Exchange(Add, Read)];
    let inner = (0..3).map(Outline::Stage).collect();
    let body = vec![Outline::Vertices(Side::Right, Cut::Vertices(13), BatchOrder::Fixed, inner)];
    let degrees = [3, 4, 3, 4, 195].into_iter().chain([0; 22]).collect::<Vec<u64>>();
    let case = Case {
        kinds,
        body,
        degrees: [degrees.clone(), degrees],
        square: true,
        row_bytes: 4,
        grid: false,
        strategy: plan::Strategy::BiCut,
        additive: false,
    };
    for (workers, slack, seed) in
        (1..5).flat_map(|workers| (0..4).flat_map(move |slack| (0..40).map(move |seed| (workers, slack, seed))))
    {
        World::new(case.plan(workers, Some(slack)), seed).run();
    }
}

/// Batches of left vertices cut the left shards of a square graph where its right ones are not cut: whoever owns a vertex applies
/// sums to which another worker adds.
#[test]
fn what_batches_of_left_vertices_add_to_is_applied_when_all_have_added() {
    use Mode::{Add, Read};
    let body = vec![Outline::Vertices(
        Side::Left,
        Cut::Edges(50),
        BatchOrder::Fixed,
        vec![Outline::Stage(0), Outline::Stage(1)],
    )];
    let degrees = vec![68, 3, 4, 2, 4, 2, 2, 6, 1, 86, 1, 4, 1, 7, 1, 6, 0, 79, 4];
    let case = Case {
        kinds: vec![StageKind::Exchange(Add, Read), StageKind::Apply(Side::Right)],
        body,
        degrees: [degrees.clone(), degrees],
        square: true,
        row_bytes: 4,
        grid: false,
        strategy: plan::Strategy::BiCut,
        additive: false,
    };
    for (workers, slack, seed) in
        (2..5).flat_map(|workers| (0..4).flat_map(move |slack| (0..40).map(move |seed| (workers, slack, seed))))
    {
        World::new(case.plan(workers, Some(slack)), seed).run();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn every_run_keeps_order_bounds_and_exclusion_and_ends(
        case in case(),
        workers in 1..5_usize,
        slack in prop_oneof![3 => Just(Some(0)), 3 => (1..4_u64).prop_map(Some), 1 => Just(None)],
        seed in any::<u64>(),
    ) {
        World::new(case.plan(workers, slack), seed).run();
    }

    #[test]
    fn shards_cover_the_rows_and_belong_to_workers(case in case(), workers in 1..5_usize) {
        let plan = case.plan(workers, Some(0));
        for (side, degrees) in [&plan.left, &plan.right].into_iter().zip(&case.degrees) {
            prop_assert_eq!((side.bounds[0], side.bounds[side.bounds.len() - 1]), (0, degrees.len()));
            prop_assert!(side.bounds.windows(2).all(|b| b[0] < b[1]));
            prop_assert_eq!(side.owners.len(), side.bounds.len() - 1);
            prop_assert!(side.owners.iter().all(|&owner| owner < workers));
            prop_assert!(plan.wide || side.max_rows() <= 1 << 16);
        }
        prop_assert!(plan.steps.iter().all(|step| step.tasks.len() == workers));
        for task in plan.steps.iter().flat_map(|step| step.tasks.iter().flatten()) {
            prop_assert!(task.copies[0] < plan.copies[0] && task.copies[1] < plan.copies[1]);
        }
    }

    #[test]
    fn batches_are_the_same_for_any_number_of_workers(case in case()) {
        let (one, expected) = (case.plan(1, Some(2)), case.plan(2, Some(2)));
        for workers in 2..5 {
            let plan = case.plan(workers, Some(2));
            prop_assert_eq!(batches(&plan), batches(&one));
            prop_assert_eq!(&plan.body, &one.body);
            prop_assert_eq!((plan.layers, plan.events(SEED, 3)), (one.layers, expected.events(SEED, 3)));
        }
        // One worker is ahead of nobody.
        prop_assert_eq!(one.events(SEED, 3), case.plan(1, Some(0)).events(SEED, 3));
    }
}
