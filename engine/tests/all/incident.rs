//! Stages on a vertex with the data of all its edges: every item once, on either side, whatever the plan.

use std::collections::BTreeMap;

use megagrid_engine::plan::{After, StageKind};
use megagrid_engine::{Engine, Settings, Source, Topology};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{BatchSize, Error, Left, Right, Sequence, Stages, Update, Vertex, program, vertex};

vertex! {
    /// Sums what its edges carry.
    struct Row { sync: u64 }
}
vertex! {
    /// Likewise.
    struct Column { sync: u64 }
}
program! { struct Summing { left: Row, right: Column, edge: [u32] } }

/// Replaces each item by a mix of it and the sum of all of the vertex, which depends on no order.
fn spread<V: Vertex<Sync = u64>>(salt: u32) -> impl Fn(Update<V>, &mut [u32]) + Send + Sync {
    move |vertex: Update<V>, items: &mut [u32]| {
        let sum = items.iter().fold(salt, |sum, item| sum.wrapping_add(*item));
        items.iter_mut().for_each(|item| *item = item.wrapping_mul(0x9e37_79b1) ^ sum.rotate_left(7));
        *vertex.sync = u64::from(sum) << 32 | items.len() as u64;
    }
}

/// Changes each item by itself, edges in random order.
fn stir(_: Update<Row>, _: Update<Column>, items: &mut [u32]) {
    items.iter_mut().for_each(|item| *item = item.rotate_left(5));
}

/// What is checked by a loop over all edges.
fn both_sides() -> Sequence<Summing, impl Stages<Summing>> {
    Sequence::new().incident(Left, spread(1)).incident(Right, spread(2))
}

const LEFT: usize = 300;
const RIGHT: usize = 90;

/// Edges of 0 to 4 items; some vertices have many, some none.
fn graph(seed: u64) -> EdgeList<u32> {
    let mut random = SplitMix::new(seed, 0);
    let mut pairs = BTreeMap::new();
    for _ in 0..4000 {
        let right = random.below(RIGHT as u64 - 2).min(random.below(RIGHT as u64));
        pairs.insert((random.below(LEFT as u64 - 10) as u32, right as u32), random.below(5) as u32);
    }
    let mut edges = EdgeList { num_left: LEFT, num_right: RIGHT, ..EdgeList::default() };
    for ((left, right), len) in pairs {
        edges.push(left, right, len);
    }
    edges
}

/// The first items of an edge, by its length only, so that they can be known here.
fn first(len: u32) -> Vec<u32> {
    (0..len).map(|item| 1 + len + item * item).collect()
}

/// What the stages come to: the vertices' sums by a loop over all edges.
fn expected(edges: &EdgeList<u32>, iterations: u64, stirs: bool) -> [Vec<u64>; 2] {
    let mut items: Vec<Vec<u32>> = edges.data.iter().map(|&len| first(len)).collect();
    let mut found = [vec![0; LEFT], vec![0; RIGHT]];
    for _ in 0..iterations {
        for (side, ends, salt) in [(0, &edges.left, 1), (1, &edges.right, 2)] {
            let mut sums = vec![(salt, 0); found[side].len()];
            for (items, &end) in items.iter().zip(ends) {
                let sum = &mut sums[end as usize];
                items.iter().for_each(|item| *sum = (u32::wrapping_add(sum.0, *item), sum.1 + 1));
            }
            for (items, &end) in items.iter_mut().zip(ends) {
                let sum = sums[end as usize].0;
                items.iter_mut().for_each(|item| *item = item.wrapping_mul(0x9e37_79b1) ^ sum.rotate_left(7));
            }
            found[side] = sums.iter().map(|&(sum, len)| u64::from(sum) << 32 | len).collect();
        }
        if stirs {
            items.iter_mut().flatten().for_each(|item| *item = item.rotate_left(5));
        }
    }
    found
}

fn check<S: Stages<Summing>>(edges: &EdgeList<u32>, sequence: Sequence<Summing, S>, stirs: bool, settings: &Settings) {
    let source = GroupedEdges::new(edges.clone(), &[Side::Left, Side::Right]);
    let source = Source::slices(&source, |len| *len as usize, |len, items| items.copy_from_slice(&first(*len)));
    let mut engine = Engine::<Summing>::new(source, sequence, settings).unwrap();
    engine.run_until(3, |_, _| Ok(false)).unwrap();
    let what = format!("{} workers, slack {:?}, grid {}", settings.workers, settings.slack, settings.grid);
    let [left, right] = expected(edges, 3, stirs);
    assert!((0..LEFT).all(|id| *engine.on(Left).sync(id) == left[id]), "left, {what}");
    assert!((0..RIGHT).all(|id| *engine.on(Right).sync(id) == right[id]), "right, {what}");
    // Between iterations the stages run on what is there, and the estimate covers what was allocated.
    engine.visit(Left, spread(1));
    let [left, _] = expected(edges, 4, stirs);
    assert!((0..LEFT).all(|id| *engine.on(Left).sync(id) == left[id]), "left, between iterations, {what}");
    let (used, estimate) = (engine.grid().edge_bytes() + engine.grid().vertex_bytes(), engine.plan().memory_bytes);
    assert!(used as u64 <= 2 * estimate + 100_000, "{used} bytes, {estimate} expected");
}

fn each_setting(mut see: impl FnMut(&Settings)) {
    for workers in 1..=3 {
        for slack in [Some(0), Some(2), None] {
            for grid in [true, false] {
                let topology = Topology { l2_bytes: 4 << 10, ..Topology::synthetic(1, workers) };
                see(&Settings { workers, slack, grid, topology, ..Settings::default() });
            }
        }
    }
}

#[test]
fn both_sides_see_and_change_all_items_of_their_edges() {
    let edges = graph(1);
    each_setting(|settings| check(&edges, both_sides(), false, settings));
}

#[test]
fn data_that_an_exchange_changes_is_seen() {
    let edges = graph(2);
    each_setting(|settings| {
        // With slack an Exchange may begin while others are still at the stage before it.
        if settings.slack == Some(0) {
            check(&edges, both_sides().exchange(stir), true, settings);
        }
    });
}

#[test]
fn batches_of_its_own_side_hold_whole_vertices() {
    let edges = graph(3);
    let sequence = || {
        Sequence::new()
            .mini_batch(BatchSize::Vertices(Side::Left, 70), |b| b.incident(Left, spread(1)))
            .mini_batch(BatchSize::EdgesOf(Side::Right, 500), |b| b.incident(Right, spread(2)))
    };
    each_setting(|settings| {
        if settings.slack == Some(0) {
            check(&edges, sequence(), false, settings);
        }
    });
}

#[test]
fn batches_that_have_part_of_a_vertexs_edges_are_refused() {
    let of_other =
        Sequence::<Summing>::new().mini_batch(BatchSize::Vertices(Side::Right, 10), |b| b.incident(Left, spread(1)));
    assert_eq!(of_other.check(), Err(Error::PartOfEdges(Side::Left)));
    let of_edges = Sequence::<Summing>::new().mini_batch(BatchSize::Edges(10), |b| b.incident(Right, spread(1)));
    assert_eq!(of_edges.check(), Err(Error::PartOfEdges(Side::Right)));
    let within = Sequence::<Summing>::new().mini_batch(BatchSize::Vertices(Side::Left, 10), |b| {
        b.mini_batch(BatchSize::Vertices(Side::Right, 10), |b| b.incident(Right, spread(1)))
    });
    assert_eq!(within.check(), Err(Error::PartOfEdges(Side::Right)));
}

#[test]
fn shards_are_cut_to_the_data_of_their_edges_and_tasks_are_the_owners() {
    let mut edges = EdgeList { num_left: 4000, num_right: 500, ..EdgeList::default() };
    let mut random = SplitMix::new(4, 0);
    for edge in 0..200_000_u32 {
        edges.push(edge % 4000, random.below(500).min(random.below(500)) as u32, 2);
    }
    let source = GroupedEdges::new(edges, &[Side::Left, Side::Right]);
    let sequence = both_sides();
    let topology = Topology { l2_bytes: 1 << 20, ..Topology::synthetic(1, 2) };
    let settings = Settings { workers: 2, topology, ..Settings::default() };
    let lengths = Source::slices(&source, |len| *len as usize, |_, _| {});
    let plan = megagrid_engine::plan(lengths, &sequence, &settings).unwrap();
    // 1.6 MB of data, a quarter of a MiB a shard.
    assert!((7..=10).contains(&plan.left.num_shards()), "{} left shards", plan.left.num_shards());
    assert!((7..=10).contains(&plan.right.num_shards()), "{} right shards", plan.right.num_shards());
    for step in plan.steps.iter() {
        let StageKind::Incident(side) = plan.stages[step.stage].kind else { panic!("{:?}", plan.stages[step.stage]) };
        assert_eq!(step.after, After::All, "edges change hands between sides");
        let mut seen = vec![0; plan.side(side).num_shards()];
        for (worker, tasks) in step.tasks.iter().enumerate() {
            for task in tasks {
                let (own, other) =
                    if side == Side::Left { (&task.left, &task.right) } else { (&task.right, &task.left) };
                assert_eq!((own.len(), other.len()), (1, plan.side(side.other()).num_shards()));
                assert_eq!(plan.side(side).owners[own.start], worker);
                seen[own.start] += 1;
            }
        }
        assert!(seen.iter().all(|&times| times == 1), "each shard once");
    }
}
