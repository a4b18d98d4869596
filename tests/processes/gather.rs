//! Stages on a vertex with all its edges and the vertices at their other ends, whatever the plan.

use std::collections::BTreeMap;

use megagrid_engine::{Engine, Settings, Topology};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{
    BatchSize, Context, Error, Gather, Left, Neighbors, On, Read, Right, Sequence, Stages, Update, Vertex, program,
    vertex,
};

use super::local;

vertex! {
    /// A sum over its neighbours, and a mix of them in their order.
    struct Row { sync: [u64; 2] }
}
vertex! {
    /// Likewise.
    struct Column { sync: [u64; 2] }
}
program! { struct Mixing { left: Row, right: Column, edge: u32 } }

/// Sums and mixes neighbours, which it goes over twice.
struct Mix;

fn of_edge(other: u64, edge: u32) -> u64 {
    (other + u64::from(edge)).wrapping_mul(0x9e37_79b9)
}

impl<O: On<Mixing>> Gather<Mixing, O> for Mix
where
    O::Vertex: Vertex<Sync = [u64; 2]>,
    <O::Other as On<Mixing>>::Vertex: Vertex<Sync = [u64; 2]>,
{
    fn gather<N: Neighbors<Mixing, O>>(&self, vertex: Update<'_, O::Vertex>, near: &N, _: &mut Context<'_, Mixing>) {
        assert_eq!(near.is_empty(), near.len() == 0);
        let own: &mut [u64; 2] = vertex.sync;
        for edge in 0..near.len() {
            let other: &[u64; 2] = near.sync(edge);
            own[0] = own[0].wrapping_add(of_edge(other[0], *near.edge(edge)));
        }
        for edge in 0..near.len() {
            let other: &[u64; 2] = near.sync(edge);
            own[1] = own[1].rotate_left(7) ^ of_edge(other[1] + 1, *near.edge(edge));
        }
    }
}

fn sequence() -> Sequence<Mixing, impl Stages<Mixing>> {
    Sequence::new().gather(Left, Mix).gather(Right, Mix)
}

const LEFT: usize = 300;
const RIGHT: usize = 90;
const ITERATIONS: u64 = 3;

/// Some vertices have many edges, some none.
fn graph() -> EdgeList<u32> {
    let mut random = SplitMix::new(5, 0);
    let mut pairs = BTreeMap::new();
    for _ in 0..4000 {
        let right = random.below(RIGHT as u64 - 2).min(random.below(RIGHT as u64));
        pairs.insert((random.below(LEFT as u64 - 10) as u32, right as u32), random.below(1000) as u32);
    }
    let mut edges = EdgeList { num_left: LEFT, num_right: RIGHT, ..EdgeList::default() };
    pairs.into_iter().for_each(|((left, right), data)| edges.push(left, right, data));
    edges
}

fn first(side: Side, id: usize) -> [u64; 2] {
    [id as u64 * 31 + side as u64, id as u64]
}

fn found(edges: &GroupedEdges<u32>, settings: &Settings) -> [Vec<[u64; 2]>; 2] {
    let mut engine = Engine::<Mixing>::new(edges, sequence(), settings).unwrap();
    engine.init(Left, |id, row| *row.sync = first(Side::Left, id));
    engine.init(Right, |id, column| *column.sync = first(Side::Right, id));
    engine.run_until(ITERATIONS, |_, _| Ok(false)).unwrap();
    engine.collect().unwrap();
    let (used, estimate) = (engine.grid().edge_bytes() + engine.grid().vertex_bytes(), engine.plan().memory_bytes);
    assert!(used as u64 <= 2 * estimate + 100_000, "{used} bytes, {estimate} expected");
    [engine.on(Left).iter().copied().collect(), engine.on(Right).iter().copied().collect()]
}

/// The sums by a loop over all edges.
fn sums(edges: &EdgeList<u32>) -> [Vec<u64>; 2] {
    let mut sums = [(Side::Left, LEFT), (Side::Right, RIGHT)]
        .map(|(side, count)| (0..count).map(|id| first(side, id)[0]).collect::<Vec<_>>());
    for _ in 0..ITERATIONS {
        for side in 0..2 {
            let others = sums[1 - side].clone();
            for ((&left, &right), &data) in edges.left.iter().zip(&edges.right).zip(&edges.data) {
                let ends = [left as usize, right as usize];
                let sum = &mut sums[side][ends[side]];
                *sum = sum.wrapping_add(of_edge(others[ends[1 - side]], data));
            }
        }
    }
    sums
}

#[test]
fn each_vertex_sees_all_its_neighbours_in_one_order_in_every_shape() {
    let list = graph();
    let edges = GroupedEdges::new(list.clone(), &[Side::Right]);
    let expected = found(&edges, &Settings { workers: 1, ..Settings::default() });
    let sums = sums(&list);
    for (found, expected) in expected.iter().zip(&sums) {
        assert!(found.iter().map(|[sum, _]| sum).eq(expected));
    }
    for workers in 1..=3 {
        for grid in [true, false] {
            let topology = Topology { l2_bytes: 4 << 10, ..Topology::synthetic(1, workers) };
            let settings = Settings { workers, grid, topology, ..Settings::default() };
            assert!(found(&edges, &settings) == expected, "{workers} workers, grid {grid}");
        }
    }
    for (processes, workers) in super::SHAPES {
        let of_all = local::run(processes, |peers| found(&edges, &Settings { peers, workers, ..Settings::default() }));
        assert!(of_all == expected, "{processes} processes, {workers} workers");
    }
}

#[test]
fn with_slack_it_ends() {
    let edges = GroupedEdges::new(graph(), &[Side::Right]);
    for (slack, workers) in [(Some(1), 2), (None, 3)] {
        found(&edges, &Settings { slack, workers, ..Settings::default() });
    }
}

#[test]
fn a_part_of_a_vertex_s_edges_is_refused() {
    let part = Sequence::<Mixing>::new().mini_batch(BatchSize::Edges(100), |batch| batch.gather(Right, Mix));
    assert_eq!(part.check(), Err(Error::PartOfEdges(Side::Right)));
    let other =
        Sequence::<Mixing>::new().mini_batch(BatchSize::Vertices(Side::Left, 9), |batch| batch.gather(Right, Mix));
    assert_eq!(other.check(), Err(Error::PartOfEdges(Side::Right)));
    let own =
        Sequence::<Mixing>::new().mini_batch(BatchSize::Vertices(Side::Right, 9), |batch| batch.gather(Right, Mix));
    assert_eq!(own.check(), Ok(()));
}

#[test]
fn edges_in_two_processes_are_read_and_not_changed() {
    let edges = GroupedEdges::new(graph(), &[Side::Right]);
    fn begun(
        edges: &GroupedEdges<u32>,
        sequence: Sequence<Mixing, impl Stages<Mixing>>,
        settings: &Settings,
    ) -> Result<(), String> {
        Engine::<Mixing>::new(edges, sequence, settings).map(drop).map_err(|error| error.to_string())
    }
    for (processes, is_refused) in [(1, false), (2, true)] {
        let read = local::run(processes, |peers| {
            let look = sequence().exchange(|_: Read<Row>, _: Read<Column>, _: &u32| {});
            begun(&edges, look, &Settings { peers, workers: 1, ..Settings::default() })
        });
        assert_eq!(read, Ok(()));
        let changed = local::run(processes, |peers| {
            let change = sequence().exchange(|_: Read<Row>, _: Read<Column>, edge: &mut u32| *edge += 1);
            begun(&edges, change, &Settings { peers, workers: 1, ..Settings::default() })
        });
        assert_eq!(changed.is_err(), is_refused, "{changed:?}");
        assert!(changed.err().is_none_or(|told| told.contains("CHANGES_EDGES")));
    }
}
