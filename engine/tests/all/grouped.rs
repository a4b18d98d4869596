//! Edges of a right vertex together, and Apply on active vertices.

use megagrid_engine::{Engine, Settings, Topology};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side, SplitMix};
use megagrid_stages::{
    Add, Apply, Combine, Context, Exchange, Left, Master, Read, Right, Sequence, Update, Vertex, mode, program, vertex,
};

vertex! {
    /// Counts the edges that it saw, and the Applies.
    struct Row { sync: [u32; 2], delta: u32 }
}
vertex! {
    /// Likewise.
    struct Column { sync: [u32; 2], delta: u32 }
}
program! { struct Counting { left: Row, right: Column, edge: u32, worker: Seen } }

#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Seen {
    /// Edges since `begin`, edges in all, vertices begun and ended.
    open: Option<u32>,
    edges: u64,
    begun: u64,
    ended: u64,
}

impl Combine for Seen {
    fn combine(&mut self, other: &mut Self) {
        let other = std::mem::take(other);
        self.edges += other.edges;
        self.begun += other.begun;
        self.ended += other.ended;
    }
}

/// Counts in place at both ends; right vertices with an odd number in their sync data are skipped.
struct Visit;

impl Exchange<Counting> for Visit {
    type Left = mode::Update;
    type Right = mode::Update;
    const GROUPED: bool = true;

    fn is_active(&self, right: Read<'_, Column>, _: &Context<'_, Counting>) -> bool {
        right.sync[1].is_multiple_of(2)
    }

    fn begin(&self, right: Read<'_, Column>, cx: &mut Context<'_, Counting>) {
        assert!(cx.worker.open.is_none(), "the last vertex was ended");
        assert!(right.sync[1].is_multiple_of(2), "the vertex is active");
        cx.worker.open = Some(0);
        cx.worker.begun += 1;
    }

    fn end(&self, right: Update<'_, Column>, cx: &mut Context<'_, Counting>) {
        right.sync[0] += cx.worker.open.take().expect("a vertex was begun");
        cx.worker.ended += 1;
    }

    fn exchange(&self, left: Update<'_, Row>, _: Update<'_, Column>, edge: &mut u32, cx: &mut Context<'_, Counting>) {
        left.sync[0] += 1;
        *edge += 1;
        cx.worker.edges += 1;
        *cx.worker.open.as_mut().expect("a vertex was begun") += 1;
    }
}

/// Counts in each third iteration.
struct Late;

impl<V: Vertex<Sync = [u32; 2], Delta = u32>> Apply<Counting, V> for Late {
    fn is_active(&self, vertex: Read<'_, V>, cx: &Context<'_, Counting>) -> bool {
        assert_eq!(vertex.sync[1], (cx.iteration as u32 - 1) / 3, "Applies so far");
        cx.iteration.is_multiple_of(3)
    }

    fn apply(&self, vertex: Master<'_, V>, _: &mut Context<'_, Counting>) {
        vertex.sync[0] += *vertex.delta;
        vertex.sync[1] += 1;
    }
}

fn graph(seed: u64) -> GroupedEdges<u32> {
    let mut random = SplitMix::new(seed, 0);
    let mut edges = EdgeList { num_left: 300, num_right: 90, ..EdgeList::default() };
    for _ in 0..4000 {
        let right = random.below(90).min(random.below(90));
        edges.push(random.below(290) as u32, right as u32, 0_u32);
    }
    GroupedEdges::new(edges, &[Side::Left, Side::Right])
}

fn degrees(graph: &GroupedEdges<u32>, side: Side) -> Vec<u32> {
    use megagrid_partition::EdgeSource;
    graph.offsets(side).windows(2).map(|o| (o[1] - o[0]) as u32).collect()
}

#[test]
fn grouped_edges_run_between_begin_and_end_and_skipped_vertices_do_not() {
    let source = graph(1);
    let [left_degrees, right_degrees] = [Side::Left, Side::Right].map(|side| degrees(&source, side));
    for workers in 1..=3 {
        let sequence = Sequence::new().exchange(Visit);
        let settings = Settings { workers, ..Settings::default() };
        let mut engine = Engine::<Counting>::new(&source, sequence, &settings).unwrap();
        engine.init(Right, |id, first| first.sync[1] = u32::from(id % 5 == 0));
        engine.run_until(2, |_, _| Ok(false)).unwrap();
        let (left, right) = (engine.on(Left), engine.on(Right));
        for (id, degree) in right_degrees.iter().enumerate() {
            let expected = if id % 5 == 0 { 0 } else { 2 * degree };
            assert_eq!(right.sync(id)[0], expected, "right vertex {id}, {workers} workers");
        }
        let all: u32 = (0..left_degrees.len()).map(|id| left.sync(id)[0]).sum();
        let expected: u32 = right_degrees.iter().enumerate().filter(|(id, _)| id % 5 != 0).map(|(_, d)| 2 * d).sum();
        assert_eq!(all, expected);
    }
}

#[test]
fn what_was_added_to_a_vertex_waits_until_apply_begins() {
    let source = graph(3);
    let [left_degrees, right_degrees] = [Side::Left, Side::Right].map(|side| degrees(&source, side));
    for workers in 1..=3 {
        let sequence = Sequence::new()
            .exchange(|left: Add<Row>, _: Read<Column>| *left.delta += 1)
            .apply(Left, Late)
            .exchange(|_: Read<Row>, right: Add<Column>| *right.delta += 1)
            .apply(Right, Late);
        let settings = Settings { workers, ..Settings::default() };
        let mut engine = Engine::<Counting>::new(&source, sequence, &settings).unwrap();
        engine.run_until(7, |_, _| Ok(false)).unwrap();
        let (left, right) = (engine.on(Left), engine.on(Right));
        for (id, &degree) in left_degrees.iter().enumerate().filter(|(_, degree)| **degree > 0) {
            assert_eq!(*left.sync(id), [6 * degree, 2], "left vertex {id}, {workers} workers");
        }
        for (id, &degree) in right_degrees.iter().enumerate() {
            assert_eq!(*right.sync(id), [6 * degree, 2], "right vertex {id}, {workers} workers");
        }
    }
}

/// Tells rows how many edges their columns have, where that is even, in each second iteration.
struct Echo;

impl Exchange<Counting> for Echo {
    type Left = mode::Add;
    type Right = mode::Add;
    const GROUPED: bool = true;
    const WHOLE: bool = true;

    fn is_idle(&self, cx: &Context<'_, Counting>) -> bool {
        cx.iteration.is_multiple_of(2)
    }

    fn is_active(&self, right: Read<'_, Column>, _: &Context<'_, Counting>) -> bool {
        right.sync[1].is_multiple_of(2)
    }

    fn exchange(&self, _: Add<'_, Row>, right: Add<'_, Column>, _: &mut u32, cx: &mut Context<'_, Counting>) {
        *right.delta += 1;
        cx.worker.edges += 1;
    }

    fn turn(&self, right: Add<'_, Column>, _: &mut Context<'_, Counting>) -> bool {
        right.delta.is_multiple_of(2)
    }

    fn answer(&self, left: Add<'_, Row>, right: Add<'_, Column>, _: &mut u32, _: &mut Context<'_, Counting>) {
        *left.delta += *right.delta;
    }
}

/// The same by one worker, in place, in the other iterations.
struct EchoByOne;

impl Exchange<Counting> for EchoByOne {
    type Left = mode::Update;
    type Right = mode::Add;
    const GROUPED: bool = true;
    const WHOLE: bool = true;
    const BY_ONE: bool = true;

    fn is_idle(&self, cx: &Context<'_, Counting>) -> bool {
        !cx.iteration.is_multiple_of(2)
    }

    fn is_active(&self, right: Read<'_, Column>, _: &Context<'_, Counting>) -> bool {
        right.sync[1].is_multiple_of(2)
    }

    fn exchange(&self, _: Update<'_, Row>, right: Add<'_, Column>, _: &mut u32, cx: &mut Context<'_, Counting>) {
        *right.delta += 1;
        cx.worker.edges += 1;
    }

    fn turn(&self, right: Add<'_, Column>, _: &mut Context<'_, Counting>) -> bool {
        right.delta.is_multiple_of(2)
    }

    fn answer(&self, left: Update<'_, Row>, right: Add<'_, Column>, _: &mut u32, _: &mut Context<'_, Counting>) {
        left.sync[1] += *right.delta;
    }
}

#[test]
fn whole_columns_run_again_once_all_their_edges_have_run() {
    let source = graph(4);
    let degrees = degrees(&source, Side::Right);
    let mut expected = vec![0; source.num_vertices(Side::Left)];
    for (id, degree) in degrees.iter().enumerate().filter(|(id, degree)| id % 5 != 0 && degree.is_multiple_of(2)) {
        let each = &mut |rows: &[u32], _: &[u32]| rows.iter().for_each(|&row| expected[row as usize] += degree);
        source.visit_rows(Side::Right, id..id + 1, each).unwrap();
    }
    for workers in 1..=3 {
        let take = |row: Master<Row>| *row.sync = [*row.delta + row.sync[1], 0];
        let echoes = Sequence::new().exchange(Echo).exchange(EchoByOne);
        let sequence = echoes.apply(Left, take).apply(Right, |_: Master<Column>| {});
        let topology = Topology { l2_bytes: 1 << 10, ..Topology::synthetic(1, workers) };
        let settings = Settings { workers, topology, ..Settings::default() };
        let mut engine = Engine::<Counting>::new(&source, sequence, &settings).unwrap();
        engine.init(Right, |id, first| first.sync[1] = u32::from(id % 5 == 0));
        let tasks = |step: usize| engine.plan().steps[step].tasks.iter().map(Vec::len).collect::<Vec<_>>();
        assert!(
            tasks(0).iter().all(|&tasks| tasks > 0) && tasks(1)[1..].iter().all(|&tasks| tasks == 0),
            "{:?}",
            tasks(1)
        );
        for iteration in 1..=4 {
            engine.run_until(iteration, |_, _| Ok(false)).unwrap();
            let left = engine.on(Left);
            let found: Vec<u32> = (0..left.len()).map(|row| left.sync(row)[0]).collect();
            assert_eq!(found, expected, "{workers} workers, iteration {iteration}");
        }
    }
}

#[test]
fn whole_columns_stand_beside_no_stage_that_changes_rows_in_place() {
    let sequence = Sequence::new().exchange(Echo).exchange(|row: Update<Row>, _: Read<Column>| row.sync[0] = 1);
    let error = Engine::<Counting>::new(&graph(5), sequence, &Settings::default()).err().unwrap().to_string();
    assert!(error.contains("WHOLE"), "{error}");
}
