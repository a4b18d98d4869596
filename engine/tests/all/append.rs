//! Edges that come and go: an engine is then what one is that was made of all its edges, and has the same values.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use megagrid_datasets::Edges;
use megagrid_engine::plan::Strategy as Placing;
use megagrid_engine::{Engine, Peers, Settings};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Holders};
use megagrid_stages::kernels::{descend, dot};
use megagrid_stages::{
    Add, BatchSize, First, Left, Master, On, Program, Read, Right, Sequence, Side, Stages, Vertex, edge_stage, program,
    vertex,
};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::made::{run, settings};
use crate::processes::local;

/// Edges and the numbers of vertices, left and right.
#[derive(Clone, Debug)]
pub struct Graph {
    pub is_square: bool,
    pub vertices: [usize; 2],
    pub edges: Vec<(u32, u32, f32)>,
}

impl Graph {
    pub fn of(&self, edges: Vec<(u32, u32, f32)>) -> Edges<f32> {
        let [left, right] = self.vertices;
        if self.is_square { Edges::square(left, edges) } else { Edges::bipartite(left, right, edges) }.unwrap()
    }

    pub fn all(&self) -> Edges<f32> {
        self.of(self.edges.clone())
    }
}

/// What happens to a graph.
#[derive(Clone, Debug)]
enum Change {
    /// So many vertices come, and edges, each with a number.
    Append([usize; 2], Vec<(Index, Index, u8)>),
    Remove(Vec<Index>),
}

fn change() -> impl Strategy<Value = Change> {
    let edge = (any::<Index>(), any::<Index>(), any::<u8>());
    prop_oneof![
        2 => ([0..5_usize, 0..5_usize], prop::collection::vec(edge, 0..40)).prop_map(|(new, edges)| Change::Append(new, edges)),
        1 => prop::collection::vec(any::<Index>(), 0..10).prop_map(Change::Remove),
    ]
}

/// Few vertices, so that edges are repeated, with other numbers.
fn graphs(is_square: bool) -> impl Strategy<Value = Graph> {
    (1..25_u32, 1..25_u32).prop_flat_map(move |(left, right)| {
        let right = if is_square { left } else { right };
        let edge =
            (0..left, 0..right, any::<u8>()).prop_map(|(from, to, number)| (from, to, f32::from(number) / 100.0));
        let vertices = [left as usize, right as usize];
        prop::collection::vec(edge, 1..200).prop_map(move |edges| Graph { is_square, vertices, edges })
    })
}

/// A program on such a graph.
pub trait Tried: Program<Edge = f32, Worker = (), Global = ()> {
    fn sequence() -> Sequence<Self, impl Stages<Self>>
    where
        Self: Sized;
    /// Sets first values.
    fn first<V: Vertex<Sync = [f32], Master = u32>>(id: usize, first: First<'_, V>) {
        first.sync[..3].iter_mut().zip(1..).for_each(|(number, at)| *number = ((id * 7 + at) % 13) as f32 / 10.0);
        *first.master = id as u32;
    }
}

vertex! { pub struct Page { sync: [f32], delta: [f32], master: u32 } }
vertex! { pub struct Thing { sync: [f32], delta: [f32], master: u32 } }
program! { pub struct Flow { vertices: Page, edge: f32 } }
program! { pub struct Adding { left: Page, right: Thing, edge: f32 } }
program! { pub struct InPlace { left: Page, right: Thing, edge: f32 } }
program! { pub struct ByBatches { left: Page, right: Thing, edge: f32 } }

fn add<A: Vertex<Sync = [f32]>, B: Vertex<Delta = [f32]>>(from: Read<A>, to: Add<B>, weight: &mut f32) {
    (0..3).for_each(|at| to.delta[at] += from.sync[at] * *weight);
}

fn back<A: Vertex<Delta = [f32]>, B: Vertex<Sync = [f32]>>(to: Add<A>, from: Read<B>, weight: &mut f32) {
    (0..3).for_each(|at| to.delta[at] += from.sync[at] * *weight);
}

fn settle<V: Vertex<Sync = [f32], Delta = [f32], Master = u32>>(vertex: Master<V>) {
    *vertex.master += 1;
    (0..3).for_each(|at| vertex.sync[at] = 0.1 + vertex.delta[at] / (1.0 + vertex.delta[at].abs()));
}

impl Tried for Flow {
    fn sequence() -> Sequence<Self, impl Stages<Self>> {
        Sequence::new().exchange(add::<Page, Page>).apply(Right, settle::<Page>)
    }
}

impl Tried for Adding {
    fn sequence() -> Sequence<Self, impl Stages<Self>> {
        let rights = BatchSize::Vertices(Side::Right, 6);
        Sequence::new()
            .mini_batch(rights, |batch| batch.exchange(add::<Page, Thing>).apply(Right, settle::<Thing>))
            .exchange(back::<Page, Thing>)
            .apply(Left, settle::<Page>)
    }
}

edge_stage! {
    struct Descend {}
    fn exchange(&self, page: Update<Page>, thing: Update<Thing>, number: &mut f32) in InPlace {
        let error = *number - dot(page.sync, thing.sync);
        descend(page.sync, thing.sync, error, 0.01, 0.1, 0.1);
    }
}

edge_stage! {
    struct DescendOfBatch {}
    fn exchange(&self, page: Update<Page>, thing: Update<Thing>, number: &mut f32) in ByBatches {
        let error = *number - dot(page.sync, thing.sync);
        descend(page.sync, thing.sync, error, 0.01, 0.1, 0.1);
    }
}

impl Tried for InPlace {
    fn sequence() -> Sequence<Self, impl Stages<Self>> {
        Sequence::new().exchange(Descend {})
    }
}

impl Tried for ByBatches {
    fn sequence() -> Sequence<Self, impl Stages<Self>> {
        Sequence::new().mini_batch(BatchSize::Edges(30), |batch| batch.exchange(DescendOfBatch {}))
    }
}

/// What the first process has of all vertices, bit by bit.
type State = Vec<(Vec<u32>, u32)>;

pub fn state<P>(engine: &Engine<P>) -> State
where
    P: Program<Left: Vertex<Sync = [f32], Master = u32>, Right: Vertex<Sync = [f32], Master = u32>>,
{
    fn of<P: Program, O: On<P, Vertex: Vertex<Sync = [f32], Master = u32>>>(engine: &Engine<P>, side: O) -> State {
        let side = engine.on(side);
        (0..side.len()).map(|id| (side.sync(id).iter().map(|x| x.to_bits()).collect(), *side.master(id))).collect()
    }
    [of(engine, Left), of(engine, Right)].concat()
}

/// The same in all processes.
fn state_of_all<P>(engine: &mut Engine<P>, peers: Option<&dyn Peers>) -> State
where
    P: Program<Left: Vertex<Sync = [f32], Master = u32>, Right: Vertex<Sync = [f32], Master = u32>>,
{
    engine.collect().unwrap();
    let state = state(engine);
    let Some(peers) = peers else { return state };
    let all = peers.all_gather(bincode::serialize(&state).unwrap()).unwrap();
    bincode::deserialize(&all[0]).unwrap()
}

/// How a program is run.
#[derive(Clone, Debug)]
struct Shape {
    processes: usize,
    workers: usize,
    placing: Placing,
    /// Whether each process has a part of the edges that come and go, or all of them all.
    in_parts: bool,
}

fn alone(workers: usize) -> Shape {
    Shape { processes: 1, workers, placing: Placing::BiCut, in_parts: false }
}

/// An engine as one process sees it, and its edges.
struct Running<P: Program> {
    engine: Engine<P>,
    graph: Graph,
    peers: Option<Arc<dyn Peers>>,
    settings: Settings,
    in_parts: bool,
}

fn check<P>(graph: &Graph, changes: &[Change], shape: &Shape)
where
    P: Tried + Program<Left: Vertex<Sync = [f32], Master = u32>, Right: Vertex<Sync = [f32], Master = u32>>,
{
    local::run(shape.processes, |peers| {
        let settings = Settings { peers: peers.clone(), strategy: shape.placing, ..settings(shape.workers, 3) };
        let mut engine = Engine::<P>::new(&graph.all(), P::sequence(), &settings).unwrap();
        engine.init(Left, |id, first| P::first(id, first));
        engine.init(Right, |id, first| P::first(id, first));
        run(&mut engine, 2);
        let mut running = Running { engine, graph: graph.clone(), peers, settings, in_parts: shape.in_parts };
        for change in changes {
            match change {
                Change::Append(new, edges) => running.append(*new, edges),
                Change::Remove(edges) => running.remove(edges),
            }
            running.go_on();
        }
    });
}

impl<P> Running<P>
where
    P: Tried + Program<Left: Vertex<Sync = [f32], Master = u32>, Right: Vertex<Sync = [f32], Master = u32>>,
{
    fn state(&mut self) -> State {
        state_of_all(&mut self.engine, self.peers.as_deref())
    }

    fn append(&mut self, [left, right]: [usize; 2], edges: &[(Index, Index, u8)]) {
        let [lefts, rights] = self.graph.vertices;
        self.graph.vertices = [lefts + left, rights + if self.graph.is_square { left } else { right }];
        let [left, right] = self.graph.vertices;
        let edge = |(from, to, number): &(Index, Index, u8)| {
            (from.index(left) as u32, to.index(right) as u32, f32::from(*number) / 100.0)
        };
        let edges: Vec<_> = edges.iter().map(edge).collect();
        let before = self.state();
        let more = self.graph.of(edges.clone());
        let new = match self.in_parts {
            true => self.engine.append(&InParts::new(&self.graph, &edges, self.peers.as_deref())),
            false => self.engine.append(&more),
        }
        .unwrap();
        assert_eq!(new, [lefts..left, rights..right]);
        self.graph.edges.extend(edges);
        let after = self.state();
        assert_eq!([&after[..lefts], &after[left..left + rights]].concat(), before, "vertices keep what they have");
        self.engine.init(Left, |id, first| {
            if new[0].contains(&id) {
                P::first(id, first)
            }
        });
        self.engine.init(Right, |id, first| {
            if new[1].contains(&id) {
                P::first(id, first)
            }
        });
    }

    fn remove(&mut self, edges: &[Index]) {
        if self.graph.edges.is_empty() {
            return;
        }
        let gone: Vec<_> = edges.iter().map(|at| self.graph.edges[at.index(self.graph.edges.len())]).collect();
        match self.in_parts {
            true => self.engine.remove(&InParts::new(&self.graph, &gone, self.peers.as_deref())),
            false => self.engine.remove(&self.graph.of(gone.clone())),
        }
        .unwrap();
        self.graph.edges.retain(|edge| !gone.iter().any(|gone| (gone.0, gone.1) == (edge.0, edge.1)));
    }

    /// Runs on beside an engine that is made of all edges, and has the same values.
    fn go_on(&mut self) {
        let (state, lefts) = (self.state(), self.graph.vertices[0]);
        let mut fresh = Engine::<P>::new(&self.graph.all(), P::sequence(), &self.settings).unwrap();
        let number = |&bits: &u32| f32::from_bits(bits);
        fresh.init(Left, |id, first| {
            first.sync.iter_mut().zip(state[id].0.iter().map(number)).for_each(|(into, from)| *into = from);
            *first.master = state[id].1;
        });
        fresh.init(Right, |id, first| {
            first.sync.iter_mut().zip(state[lefts + id].0.iter().map(number)).for_each(|(into, from)| *into = from);
            *first.master = state[lefts + id].1;
        });
        fresh.resume(self.engine.iterations(), ());
        assert_eq!(self.engine.plan(), fresh.plan());
        let last = fresh.iterations() + 2;
        run(&mut self.engine, last);
        run(&mut fresh, last);
        assert_eq!(self.state(), state_of_all(&mut fresh, self.peers.as_deref()));
    }
}

/// Edges of a graph that a process can visit only when they are with those that hold them, and then those that it holds.
struct InParts {
    all: EdgeList<f32>,
    ends: GroupedEdges<f32>,
    process: usize,
    held: OnceLock<GroupedEdges<f32>>,
}

impl InParts {
    fn new(graph: &Graph, edges: &[(u32, u32, f32)], peers: Option<&dyn Peers>) -> Self {
        let [num_left, num_right] = graph.vertices;
        let mut all = EdgeList { num_left, num_right, square: graph.is_square, ..EdgeList::with_capacity(0) };
        edges.iter().for_each(|&(left, right, number)| all.push(left, right, number));
        let process = peers.map_or(0, Peers::process);
        Self { ends: GroupedEdges::new(all.clone(), &[]), all, process, held: OnceLock::new() }
    }
}

impl EdgeSource<f32> for InParts {
    fn is_square(&self) -> bool {
        self.all.square
    }

    fn offsets(&self, side: Side) -> &[u64] {
        self.ends.offsets(side)
    }

    fn held_offsets(&self) -> &[u64] {
        self.held.get().map_or(&[0], |held| held.offsets(Side::Right))
    }

    fn distribute(&self, holders: Holders<'_>) -> std::io::Result<()> {
        let mut held = EdgeList { left: vec![], right: vec![], data: vec![], ..self.all.clone() };
        for (edge, (&left, &right)) in self.all.left.iter().zip(&self.all.right).enumerate() {
            if holders(left, right).contains(&Some(self.process as u16)) {
                held.push(left, right, self.all.data[edge]);
            }
        }
        assert!(self.held.set(GroupedEdges::new(held, &[Side::Right])).is_ok(), "distributed once");
        Ok(())
    }

    fn windows(&self) -> Vec<Range<usize>> {
        self.held.get().map_or(Vec::new(), EdgeSource::windows)
    }

    fn visit_rows(&self, side: Side, rows: Range<usize>, visit: &mut dyn FnMut(&[u32], &[f32])) -> std::io::Result<()> {
        self.held.get().expect("distributed").visit_rows(side, rows, visit)
    }
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec(change(), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn square_graphs(graph in graphs(true), changes in changes(), workers in 1_usize..=3) {
        check::<Flow>(&graph, &changes, &alone(workers));
    }

    #[test]
    fn sums_of_both_sides(graph in graphs(false), changes in changes(), workers in 1_usize..=3) {
        check::<Adding>(&graph, &changes, &alone(workers));
    }

    #[test]
    fn rows_in_place(graph in graphs(false), changes in changes(), workers in 1_usize..=3) {
        check::<InPlace>(&graph, &changes, &alone(workers));
    }

    #[test]
    fn rows_in_place_by_batches_of_edges(graph in graphs(false), changes in changes(), workers in 1_usize..=2) {
        check::<ByBatches>(&graph, &changes, &alone(workers));
    }
}

/// Many vertices, so that each process has some.
fn large(is_square: bool) -> Graph {
    random([240, if is_square { 240 } else { 90 }], is_square, 4000)
}

fn random(vertices: [usize; 2], is_square: bool, edges: usize) -> Graph {
    let mut random = megagrid_partition::SplitMix::new(3, 0);
    let mut end = |side: usize| (random.unit().powi(2) * vertices[side] as f64) as u32;
    let edges = (0..edges).map(|at| (end(0), end(1), (at % 9) as f32 / 10.0)).collect();
    Graph { is_square, vertices, edges }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Several shards on either side, whose blocks have vertices of many degrees.
    #[test]
    fn square_graphs_of_many_blocks(changes in changes(), workers in 1_usize..=3) {
        let graph = random([9000, 9000], true, 90_000);
        let sides = [Side::Left, Side::Right].map(|side| {
            let engine = Engine::<Flow>::new(&graph.all(), Flow::sequence(), &settings(workers, 3)).unwrap();
            engine.plan().side(side).num_shards()
        });
        prop_assert!(sides.iter().all(|&shards| shards > 1), "{sides:?}");
        check::<Flow>(&graph, &changes, &alone(workers));
    }

    #[test]
    fn sums_of_both_sides_with_hubs(changes in changes(), workers in 1_usize..=3) {
        check::<Adding>(&large(false), &changes, &alone(workers));
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    let shape = prop_oneof![Just((2, 1)), Just((2, 2)), Just((4, 1))];
    (shape, any::<bool>()).prop_map(|((processes, workers), in_parts)| Shape {
        processes,
        workers,
        placing: Placing::BiCut,
        in_parts,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn processes_with_square_graphs(changes in changes(), shape in shapes(), other in any::<bool>()) {
        let placing = if other { Placing::Grid } else { Placing::Hybrid };
        check::<Flow>(&large(true), &changes, &Shape { placing, ..shape });
    }

    #[test]
    fn processes_with_sums_of_both_sides(changes in changes(), shape in shapes()) {
        check::<Adding>(&large(false), &changes, &shape);
    }

    #[test]
    fn processes_with_rows_in_place(changes in changes(), shape in shapes()) {
        check::<InPlace>(&large(false), &changes, &shape);
    }
}
