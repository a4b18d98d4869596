//! Edges of a right vertex together, and Apply on the vertices that were touched.

use megagrid_engine::{EdgeInput, Engine, Input, Settings};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{
    Apply, BatchOrder, BatchSize, Combine, Context, Exchange, Left, Master, MiniBatch, Program, Read, Right, Sequence,
    Vertex, View, mode,
};

/// Counts the edges that it saw, and the Applies.
struct Counted<const TRACKED: bool>;

impl<const TRACKED: bool> Vertex for Counted<TRACKED> {
    type Sync = [u32; 2];
    type Delta = u32;
    type Master = ();
    type Mirror = ();
    const TRACKED: bool = TRACKED;
}

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

struct Counting;

impl Program for Counting {
    type Left = Counted<true>;
    type Right = Counted<false>;
    type Edge = u32;
    type Worker = Seen;
    type Global = ();
}

/// Counts in place at both ends; right vertices with an odd number in their sync data are skipped.
struct Visit;

impl Exchange<Counting> for Visit {
    type Left = mode::Update;
    type Right = mode::Update;
    const GROUPED: bool = true;

    fn is_active(&self, right: Read<'_, Counted<false>>, _: &Context<'_, Counting>) -> bool {
        right.sync[1].is_multiple_of(2)
    }

    fn begin(&self, right: Read<'_, Counted<false>>, cx: &mut Context<'_, Counting>) {
        assert!(cx.worker.open.is_none(), "the last vertex was ended");
        assert!(right.sync[1].is_multiple_of(2), "the vertex is active");
        cx.worker.open = Some(0);
        cx.worker.begun += 1;
    }

    fn end(&self, right: View<'_, Update, Counted<false>>, cx: &mut Context<'_, Counting>) {
        right.sync[0] += cx.worker.open.take().expect("a vertex was begun");
        cx.worker.ended += 1;
    }

    fn exchange(
        &self,
        left: View<'_, Update, Counted<true>>,
        _: View<'_, Update, Counted<false>>,
        edge: Edge<'_, Counting>,
        cx: &mut Context<'_, Counting>,
    ) {
        left.sync[0] += 1;
        *edge += 1;
        cx.worker.edges += 1;
        *cx.worker.open.as_mut().expect("a vertex was begun") += 1;
    }
}

/// Adds to left vertices in batches of right ones.
struct Push;

impl Exchange<Counting> for Push {
    type Left = mode::Add;
    type Right = mode::Read;

    fn exchange(
        &self,
        left: View<'_, Add, Counted<true>>,
        _: View<'_, Read, Counted<false>>,
        _: Edge<'_, Counting>,
        _: &mut Context<'_, Counting>,
    ) {
        *left.delta += 1;
    }
}

struct Count;

impl Apply<Counting, Counted<true>> for Count {
    fn apply(&self, vertex: Master<'_, Counted<true>>, _: &mut Context<'_, Counting>) {
        vertex.sync[0] += *vertex.delta;
        vertex.sync[1] += 1;
    }
}

/// Adds to right vertices.
struct Pull;

impl Exchange<Counting> for Pull {
    type Left = mode::Read;
    type Right = mode::Add;

    fn exchange(
        &self,
        _: View<'_, Read, Counted<true>>,
        right: View<'_, Add, Counted<false>>,
        _: Edge<'_, Counting>,
        _: &mut Context<'_, Counting>,
    ) {
        *right.delta += 1;
    }
}

/// Counts in each third iteration.
struct Late;

impl<const TRACKED: bool> Apply<Counting, Counted<TRACKED>> for Late {
    fn is_active(&self, vertex: Read<'_, Counted<TRACKED>>, cx: &Context<'_, Counting>) -> bool {
        assert_eq!(vertex.sync[1], (cx.iteration as u32 - 1) / 3, "Applies so far");
        cx.iteration.is_multiple_of(3)
    }

    fn apply(&self, vertex: Master<'_, Counted<TRACKED>>, _: &mut Context<'_, Counting>) {
        vertex.sync[0] += *vertex.delta;
        vertex.sync[1] += 1;
    }
}

fn graph(seed: u64) -> GroupedEdges<u32> {
    let mut random = SplitMix::new(seed, 0);
    let mut edges = EdgeList { num_left: 300, num_right: 90, ..EdgeList::default() };
    for _ in 0..4000 {
        let right = random.below(90).min(random.below(90));
        edges.left.push(random.below(290) as u32);
        edges.right.push(right as u32);
        edges.data.push(0_u32);
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
        let sequence = Sequence::new().exchange(Visit).build().unwrap();
        let input =
            Input { source: &source, edge: EdgeInput { len: &|_| 1, fill: &|_, _| {} }, capacities: [None, None] };
        let settings = Settings { workers, ..Settings::default() };
        let mut engine = Engine::<Counting>::bipartite(&input, &sequence, (), &settings).unwrap();
        engine.init(Right, |id, first| first.sync[1] = u32::from(id % 5 == 0));
        engine.run(2, |_, _| std::ops::ControlFlow::Continue(())).unwrap();
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
fn apply_runs_on_touched_vertices_alone() {
    let source = graph(2);
    let [left_degrees, _] = [Side::Left, Side::Right].map(|side| degrees(&source, side));
    for workers in 1..=3 {
        let batch = MiniBatch { size: BatchSize::Vertices(Side::Right, 7), order: BatchOrder::RandomBlocks };
        let sequence =
            Sequence::new().mini_batch(batch, |body| body.exchange(Push).apply(Left, Count)).build().unwrap();
        let input =
            Input { source: &source, edge: EdgeInput { len: &|_| 1, fill: &|_, _| {} }, capacities: [None, None] };
        let settings = Settings { workers, ..Settings::default() };
        let mut engine = Engine::<Counting>::bipartite(&input, &sequence, (), &settings).unwrap();
        engine.run(1, |_, _| std::ops::ControlFlow::Continue(())).unwrap();
        let left = engine.on(Left);
        for (id, &degree) in left_degrees.iter().enumerate() {
            let [edges, applies] = *left.sync(id);
            assert_eq!(edges, degree, "left vertex {id}, {workers} workers");
            assert!(
                applies <= degree && (applies > 0) == (degree > 0),
                "vertex {id}: {applies} applies, {degree} edges"
            );
        }
    }
}

#[test]
fn what_was_added_to_a_vertex_waits_until_apply_begins() {
    let source = graph(3);
    let [left_degrees, right_degrees] = [Side::Left, Side::Right].map(|side| degrees(&source, side));
    for workers in 1..=3 {
        let sequence =
            Sequence::new().exchange(Push).apply(Left, Late).exchange(Pull).apply(Right, Late).build().unwrap();
        let input =
            Input { source: &source, edge: EdgeInput { len: &|_| 1, fill: &|_, _| {} }, capacities: [None, None] };
        let settings = Settings { workers, ..Settings::default() };
        let mut engine = Engine::<Counting>::bipartite(&input, &sequence, (), &settings).unwrap();
        engine.run(7, |_, _| std::ops::ControlFlow::Continue(())).unwrap();
        let (left, right) = (engine.on(Left), engine.on(Right));
        for (id, &degree) in left_degrees.iter().enumerate().filter(|(_, degree)| **degree > 0) {
            assert_eq!(*left.sync(id), [6 * degree, 2], "left vertex {id}, {workers} workers");
        }
        for (id, &degree) in right_degrees.iter().enumerate() {
            assert_eq!(*right.sync(id), [6 * degree, 2], "right vertex {id}, {workers} workers");
        }
    }
}
