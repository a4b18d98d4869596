//! Vertices that rest: stages that skip them do what stages that look at each do, and look at the others only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use megagrid_engine::{Engine, Settings, Topology};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{
    Add, Aggregate, Apply, Combine, Context, Exchange, GlobalSync, Left, Master, Read, Right, Sequence, Total, Vertex,
    mode, program, vertex,
};

vertex! {
    /// What it was told, in order.
    struct Row { sync: u64, delta: u64 }
}

/// A number, and whether it rests.
struct Column;

impl Vertex for Column {
    type Sync = [u32; 2];
    type Delta = u32;
    type Master = ();
    type Mirror = ();
    const RESTS: bool = true;

    fn is_resting(sync: &[u32; 2]) -> bool {
        sync[1] != 0
    }
}

program! { struct Dozing { left: Row, right: Column, edge: u32, worker: Sum, global: u64 } }

#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Sum(u64);

impl Combine for Sum {
    fn combine(&mut self, other: &mut Self) {
        self.0 = self.0.wrapping_add(std::mem::take(&mut other.0));
    }
}

type Cx<'a> = Context<'a, Dozing>;

/// All stages; each iteration of four wakes who rests. `SKIPS`: they pass by who rests in the others, else they look; `WHOLE`: with all edges of a column in one block.
struct Doze<const SKIPS: bool, const WHOLE: bool>(Arc<AtomicU64>);

impl<const SKIPS: bool, const WHOLE: bool> Doze<SKIPS, WHOLE> {
    fn looks(&self, sync: &[u32; 2], cx: &Cx<'_>) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        !Column::is_resting(sync) || is_full(cx)
    }
}

fn is_full(cx: &Cx<'_>) -> bool {
    cx.iteration % 4 == 1
}

impl<const SKIPS: bool, const WHOLE: bool> Exchange<Dozing> for Doze<SKIPS, WHOLE> {
    type Left = mode::Add;
    type Right = mode::Add;
    const GROUPED: bool = true;
    const WHOLE: bool = WHOLE;

    fn visits_resting(&self, cx: &Cx<'_>) -> bool {
        !SKIPS || is_full(cx)
    }

    fn is_active(&self, right: Read<'_, Column>, cx: &Cx<'_>) -> bool {
        self.looks(right.sync, cx)
    }

    fn exchange(&self, left: Add<'_, Row>, right: Add<'_, Column>, edge: &mut u32, _: &mut Cx<'_>) {
        *left.delta = left.delta.wrapping_add(u64::from(right.sync[0]) + 1);
        *right.delta = right.delta.wrapping_add(*edge).wrapping_add(left.sync.count_ones());
    }
}

impl<const SKIPS: bool, const WHOLE: bool> Apply<Dozing, Column> for Doze<SKIPS, WHOLE> {
    fn visits_resting(&self, cx: &Cx<'_>) -> bool {
        !SKIPS || is_full(cx)
    }

    fn is_active(&self, right: Read<'_, Column>, cx: &Cx<'_>) -> bool {
        self.looks(right.sync, cx)
    }

    fn apply(&self, right: Master<'_, Column>, cx: &mut Cx<'_>) {
        let value = right.sync[0].wrapping_mul(5).wrapping_add(*right.delta);
        *right.sync = [value, u32::from(SplitMix::new(u64::from(value), cx.iteration).below(3) != 0)];
    }
}

impl<const SKIPS: bool, const WHOLE: bool> GlobalSync<Dozing> for Doze<SKIPS, WHOLE> {
    fn apply(&self, total: Sum, global: &mut u64) {
        *global = global.wrapping_mul(3).wrapping_add(total.0);
    }
}

impl<const SKIPS: bool, const WHOLE: bool> Aggregate<Dozing, Column> for Doze<SKIPS, WHOLE> {
    fn visits_resting(&self, _: &Cx<'_>) -> bool {
        !SKIPS
    }

    fn aggregate(&self, right: Total<'_, Column>, sum: &mut Sum) {
        self.0.fetch_add(1, Ordering::Relaxed);
        if !Column::is_resting(right.sync) {
            sum.0 = sum.0.wrapping_add(u64::from(right.sync[0]));
        }
    }
}

fn graph() -> GroupedEdges<u32> {
    let mut random = SplitMix::new(7, 0);
    let mut edges = EdgeList { num_left: 200, num_right: 400, ..EdgeList::default() };
    for edge in 0..3000 {
        edges.push(random.below(200) as u32, random.below(400).min(random.below(400)) as u32, edge);
    }
    GroupedEdges::new(edges, &[Side::Left, Side::Right])
}

fn engine<const SKIPS: bool, const WHOLE: bool>(workers: usize, looks: &Arc<AtomicU64>) -> Engine<Dozing> {
    let doze = || Doze::<SKIPS, WHOLE>(Arc::clone(looks));
    let sequence = Sequence::new()
        .exchange(doze())
        .apply(Right, doze())
        .apply(Left, |row: Master<Row>| *row.sync = row.sync.wrapping_mul(31).wrapping_add(*row.delta))
        .global_sync_over(Right, doze());
    // Small caches: several shards of either side.
    let topology = Topology { l2_bytes: 1 << 10, ..Topology::synthetic(1, workers) };
    let mut engine = Engine::new(&graph(), sequence, &Settings { workers, topology, ..Settings::default() }).unwrap();
    engine.init(Right, |id, first| *first.sync = [id as u32, 1]);
    engine
}

/// What a run has come to.
fn state(engine: &Engine<Dozing>) -> (Vec<u64>, Vec<[u32; 2]>, u64) {
    let (left, right) = (engine.on(Left), engine.on(Right));
    let rows = (0..left.len()).map(|id| *left.sync(id)).collect();
    (rows, (0..right.len()).map(|id| *right.sync(id)).collect(), *engine.global())
}

fn skipping_changes_nothing<const WHOLE: bool>(workers: usize) {
    let [all, some] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let mut each = [engine::<false, WHOLE>(workers, &all), engine::<true, WHOLE>(workers, &some)];
    let run_to = |each: &mut [Engine<Dozing>; 2], iteration| {
        each.iter_mut().for_each(|engine| engine.run_until(iteration, |_, _| Ok(false)).unwrap());
        let [one, other] = each.each_ref().map(state);
        assert_eq!(one, other, "iteration {iteration}, {workers} workers, whole columns: {WHOLE}");
        one
    };
    for iteration in 1..=11 {
        run_to(&mut each, iteration);
    }
    // A branch has vertices of its own, which rest where they did when it was forked.
    let mut branches = each.each_mut().map(|engine| engine.fork().unwrap());
    let on = run_to(&mut each, 15);
    each.iter_mut().zip(&mut branches).for_each(|(engine, branch)| engine.switch(branch).unwrap());
    run_to(&mut each, 12);
    assert_eq!(run_to(&mut each, 15), on, "the branch does what the run did");
    each.iter_mut().zip(&mut branches).for_each(|(engine, branch)| engine.switch(branch).unwrap());
    run_to(&mut each, 18);
    // What is set from outside may wake.
    each.iter_mut()
        .for_each(|engine| engine.init(Right, |id, first| *first.sync = [id as u32, u32::from(id % 7 != 0)]));
    run_to(&mut each, 20);
    // Two in three rest: of four iterations one looks at all, one has yet to find out.
    let [all, some] = [all, some].map(|looks| looks.load(Ordering::Relaxed));
    assert!(some < all * 3 / 4, "{some} looks of {all}");
}

#[test]
fn stages_that_skip_who_rests_do_what_those_do_that_look_at_all() {
    for workers in 1..=3 {
        skipping_changes_nothing::<false>(workers);
        skipping_changes_nothing::<true>(workers);
    }
}

#[test]
fn who_rests_is_not_looked_at() {
    let looks = Arc::new(AtomicU64::new(0));
    let mut engine = engine::<true, true>(1, &looks);
    let awake =
        |engine: &Engine<Dozing>| state(engine).1.iter().filter(|sync| !Column::is_resting(sync)).count() as u64;
    let mut earlier = 0;
    for iteration in 1..=12 {
        let (before, looked) = (awake(&engine), looks.load(Ordering::Relaxed));
        engine.run_until(iteration, |_, _| Ok(false)).unwrap();
        let looked = looks.load(Ordering::Relaxed) - looked;
        // The second iteration after a full one lists columns and rows anew. From the third on Exchange looks at those that were awake
        // when it listed them, Apply and the aggregate at those that are.
        if matches!(iteration % 4, 3 | 0) {
            assert!(looked <= earlier + 2 * before, "iteration {iteration}: {looked} looks, {earlier}, {before} awake");
            assert!(before < 200, "most rest");
        }
        earlier = before;
    }
}
