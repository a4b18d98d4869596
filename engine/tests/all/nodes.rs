//! On which nodes of memory rows and edges are written, and from which they are used, over random plans.

use megagrid_algorithms::lda::{self, Dense, Mh, Sparse};
use megagrid_algorithms::mf::{self, in_place};
use megagrid_engine::plan::{Plan, Processes, Schedule, StageKind, Task};
use megagrid_engine::{Error, Settings, Topology};
use megagrid_partition::{ShardId, Side, WorkerId};
use proptest::prelude::*;

use crate::made::{self, Counted, few_documents, learned, model, page_rank_state, run};
use crate::plans::{Case, case};

/// The side whose owners run the edges of a stage.
fn home(plan: &Plan, stage: usize) -> Option<Side> {
    match (plan.schedules[stage]?, plan.stages[stage].kind) {
        (Schedule::Owned { side, .. }, _) => Some(side),
        (Schedule::Rotation, _) => Some(Side::Left),
        (Schedule::Whole { .. }, _) => Some(Side::Right),
    }
}

/// The blocks that a worker runs in a task, each with its right shard.
fn blocks<'p>(plan: &'p Plan, worker: usize, task: &'p Task) -> impl Iterator<Item = (usize, ShardId)> + 'p {
    let is_own = move |left: &usize| task.turn.is_none() || plan.works_on(WorkerId(worker), Side::Left, ShardId(*left));
    let lefts = move || task.left.clone().filter(is_own);
    let of_layer = move |layer: usize| lefts().map(move |left| layer * plan.left.num_shards() + left);
    let of_column = move || task.layers.clone().flat_map(of_layer);
    task.right.clone().flat_map(move |right| of_column().map(move |block| (block, ShardId(right))))
}

/// The machines and processes of a plan.
fn machines() -> impl Strategy<Value = (Topology, Processes, usize)> {
    let shape = (1..5_usize, 1..3_usize, 1..4_usize, 1..7_usize);
    shape.prop_flat_map(|(nodes, cores, count, threads)| {
        (0..count).prop_map(move |this| (Topology::synthetic(nodes, cores), Processes { this, count }, threads))
    })
}

fn plan(case: &Case, (topology, processes, threads): &(Topology, Processes, usize)) -> Option<Plan> {
    match case.plan_on(topology, *processes, *threads, Some(0)) {
        Ok(plan) => Some(plan),
        Err(Error::TooManyProcesses { .. } | Error::EdgesOfProcesses(_) | Error::NestedRotation(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Square and bipartite, in place and with partial deltas, in one process and in several.
    #[test]
    fn whoever_runs_a_block_writes_it(case in case(), machines in machines()) {
        let Some(plan) = plan(&case, &machines) else { return Ok(()) };
        let Some(first) = (0..plan.stages.len()).find_map(|stage| home(&plan, stage)) else { return Ok(()) };
        for step in plan.steps.iter().filter(|step| home(&plan, step.stage) == Some(first)) {
            for worker in plan.local_workers() {
                for task in &step.tasks[worker] {
                    for (block, right) in blocks(&plan, worker, task) {
                        let writer = plan.writer_of_block(block, right);
                        prop_assert_eq!(writer, WorkerId(worker), "block {} of {:?}", block, right);
                        prop_assert_eq!(plan.homes[writer.0].node, plan.homes[worker].node);
                    }
                }
            }
        }
    }

    /// Stages on rows run on the node that the rows were written on, and partial deltas are added to by one worker.
    #[test]
    fn whoever_works_on_rows_or_adds_to_a_copy_writes_them(case in case(), machines in machines()) {
        let Some(plan) = plan(&case, &machines) else { return Ok(()) };
        for (step, worker) in plan.steps.iter().flat_map(|step| plan.local_workers().map(move |worker| (step, worker))) {
            for task in &step.tasks[worker] {
                match plan.stages[step.stage].kind {
                    StageKind::Apply(side) | StageKind::Incident(side) => {
                        let writes = plan.writers_of_rows(side).find(|(shard, _)| shard.0 == task.shard(side));
                        prop_assert_eq!(writes, Some((ShardId(task.shard(side)), WorkerId(worker))));
                    }
                    StageKind::Exchange(..) => {
                        let of_worker = |side: usize| [0, worker % plan.threads()].contains(&task.copies[side]);
                        prop_assert!(of_worker(0) && of_worker(1), "copies {:?} of worker {}", task.copies, worker);
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn memory_of_another_node_begins_at_a_joint(case in case(), machines in machines()) {
        let Some(plan) = plan(&case, &machines) else { return Ok(()) };
        let nodes: Vec<usize> = plan.local_workers().map(|worker| plan.homes[worker].node).collect();
        for side in [Side::Left, Side::Right] {
            let shards = plan.side(side).num_shards();
            let mut writers = vec![None; shards];
            plan.writers_of_rows(side).for_each(|(shard, writer)| writers[shard.0] = Some(writer));
            let joints = plan.joints(writers.iter().copied());
            if nodes.iter().all(|node| *node == nodes[0]) {
                prop_assert!(joints.is_empty(), "a machine of one node has none");
                continue;
            }
            let node = |shard: usize| writers[shard].map(|writer| plan.homes[writer.0].node);
            let written: Vec<usize> = (0..shards).filter(|&shard| node(shard).is_some()).collect();
            for pair in written.windows(2).filter(|pair| node(pair[0]) != node(pair[1])) {
                prop_assert!(joints.contains(&pair[1]), "{:?} between shards {:?}", joints, pair);
            }
            prop_assert!(joints.contains(&0) && joints.contains(&shards), "what lies before and behind is another's");
        }
    }
}

#[test]
fn processors_of_four_nodes_have_runs_of_rows() {
    let degrees = [vec![10; 4000], vec![10; 4000]];
    let kinds = vec![StageKind::Exchange(megagrid_stages::mode::Mode::Update, megagrid_stages::mode::Mode::Update)];
    let body = vec![megagrid_engine::plan::Outline::Stage(0)];
    let case = Case {
        kinds,
        body,
        degrees,
        square: false,
        row_bytes: 4,
        grid: true,
        strategy: megagrid_engine::plan::Strategy::default(),
        additive: false,
    };
    let plan = case.plan_on(&Topology::synthetic(4, 1), Processes::default(), 4, Some(0)).unwrap();
    let mut writers = vec![None; plan.left.num_shards()];
    plan.writers_of_rows(Side::Left).for_each(|(shard, writer)| writers[shard.0] = Some(writer));
    let joints = plan.joints(writers.into_iter());
    assert_eq!(joints.len(), 5, "three joints between four nodes, and both ends: {joints:?}");
    let rows: Vec<usize> = joints.iter().map(|&shard| plan.left.bounds[shard]).collect();
    assert_eq!(rows, [0, 1000, 2000, 3000, 4000]);
}

/// On a machine of one node columns stay as they were built; on others they go to those who run their blocks.
#[test]
fn training_has_the_same_bits_on_however_many_nodes() {
    fn topics<S: Counted>(settings: &Settings) -> lda::Model {
        let config = lda::Config::new(8);
        let mut engine = made::topics::<S>(&few_documents(), &config, settings);
        run(&mut engine, 3);
        model(&mut engine)
    }
    let trained = [1, 2, 4].map(|nodes| {
        let settings = |dims| {
            let settings = made::settings(4, dims);
            let topology = Topology { l2_bytes: settings.topology.l2_bytes, ..Topology::synthetic(nodes, 4 / nodes) };
            Settings { topology, ..settings }
        };
        let config = mf::Config { dims: 6, ..mf::Config::default() };
        let sequence = in_place::sequence(config, 6000);
        let mut ratings = made::factorization(&made::noise(1), config, sequence, &settings(config.row_dims()));
        let mut pages = made::page_rank(&made::links(1500, 20_000), &[], &settings(1));
        run(&mut ratings, 3);
        run(&mut pages, 3);
        let topics = (topics::<Dense>(&settings(1)), topics::<Sparse>(&settings(1)), topics::<Mh>(&settings(1)));
        (learned(&ratings), page_rank_state(&pages), topics)
    });
    assert_eq!(trained[0], trained[1]);
    assert_eq!(trained[0], trained[2]);
}
