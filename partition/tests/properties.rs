//! Partitionings, groupings and relabelings against recounts that go another way.

use std::collections::{BTreeMap, BTreeSet};

use megagrid_partition::strategy::{self, Aweto, BiCut, Hybrid};
use megagrid_partition::{
    EdgeList, EdgeSource, GroupedEdges, Irregularities, Partitioning, Quality, Relabeling, Side, irregularities,
};
use proptest::prelude::*;

/// Any small graph, square or not, with repeated edges, self loops and vertices without edges.
fn graphs() -> impl Strategy<Value = EdgeList<u32>> {
    (1..40_usize, 1..40_usize, any::<bool>()).prop_flat_map(|(num_left, num_right, square)| {
        let num_right = if square { num_left } else { num_right };
        let edge = (0..num_left as u32, 0..num_right as u32);
        prop::collection::vec(edge, 0..200).prop_map(move |edges| {
            let (left, right): (Vec<u32>, Vec<u32>) = edges.into_iter().unzip();
            let data = (0..left.len() as u32).collect();
            EdgeList { num_left, num_right, square, left, right, data }
        })
    })
}

/// The vertices of a graph, as (is right, id); those of a square graph are all left.
type Vertex = (bool, u32);

fn vertices(graph: &EdgeList<u32>) -> Vec<Vertex> {
    let left = (0..graph.num_left as u32).map(|id| (false, id));
    let right = (0..graph.num_right as u32).map(|id| (true, id));
    left.chain(right.filter(|_| !graph.square)).collect()
}

fn edges(graph: &EdgeList<u32>) -> impl Iterator<Item = [Vertex; 2]> {
    graph.left.iter().zip(&graph.right).map(|(&left, &right)| [(false, left), (!graph.square, right)])
}

/// For each vertex the number of its edge ends in each partition.
fn recount(graph: &EdgeList<u32>, parts: &[u16]) -> BTreeMap<Vertex, BTreeMap<u16, usize>> {
    let mut counts: BTreeMap<_, BTreeMap<_, _>> = vertices(graph).into_iter().map(|v| (v, BTreeMap::new())).collect();
    for (ends, &part) in edges(graph).zip(parts) {
        for end in ends {
            *counts.get_mut(&end).unwrap().entry(part).or_insert(0) += 1;
        }
    }
    counts
}

fn replication(counts: &BTreeMap<Vertex, BTreeMap<u16, usize>>, of: impl Fn(&Vertex) -> bool) -> f64 {
    let replicas: Vec<usize> =
        counts.iter().filter(|(vertex, _)| of(vertex)).map(|(_, parts)| parts.len().max(1)).collect();
    replicas.iter().sum::<usize>() as f64 / replicas.len() as f64
}

fn balance(parts: impl Iterator<Item = u16>, num_partitions: usize) -> f64 {
    let parts: Vec<u16> = parts.collect();
    let fullest = (0..num_partitions).map(|p| parts.iter().filter(|&&part| usize::from(part) == p).count()).max();
    if parts.is_empty() { 1.0 } else { fullest.unwrap() as f64 / (parts.len() as f64 / num_partitions as f64) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_edge_has_one_partition_and_each_vertex_one_master(
        graph in graphs(), num_partitions in 1..9_usize, seed in any::<u64>(),
    ) {
        for name in strategy::NAMES {
            let strategy = strategy::by_name(name, seed).unwrap();
            let partitioning = Partitioning::new(graph.ends(), &*strategy, num_partitions).unwrap();
            prop_assert_eq!(&partitioning, &Partitioning::new(graph.ends(), &*strategy, num_partitions).unwrap());
            prop_assert_eq!(partitioning.parts().len(), graph.num_edges());
            prop_assert!(partitioning.parts().iter().all(|&part| usize::from(part) < num_partitions));

            let counts = recount(&graph, partitioning.parts());
            let mut num_masters = vec![0; num_partitions];
            for vertex in vertices(&graph) {
                let side = if vertex.0 { Side::Right } else { Side::Left };
                let master = partitioning.masters(side)[vertex.1 as usize];
                let edges_in = |part: u16| counts[&vertex].get(&part).copied().unwrap_or(0);
                let best = (0..num_partitions as u16)
                    .min_by_key(|&part| (std::cmp::Reverse(edges_in(part)), num_masters[usize::from(part)]));
                prop_assert_eq!(Some(master), best, "{} {:?}", name, vertex);
                num_masters[usize::from(master)] += 1;
            }
            prop_assert_eq!(num_masters.iter().sum::<usize>(), vertices(&graph).len());
        }
    }

    #[test]
    fn quality_equals_a_recount(graph in graphs(), num_partitions in 1..9_usize, seed in any::<u64>()) {
        for name in strategy::NAMES {
            let strategy = strategy::by_name(name, seed).unwrap();
            let partitioning = Partitioning::new(graph.ends(), &*strategy, num_partitions).unwrap();
            let quality = Quality::of(&partitioning);
            let counts = recount(&graph, partitioning.parts());
            let masters = vertices(&graph).into_iter().map(|(is_right, id)| {
                partitioning.masters(if is_right { Side::Right } else { Side::Left })[id as usize]
            });
            let right = |vertex: &Vertex| vertex.0 || graph.square;
            for (found, expected) in [
                (quality.replication_factor, replication(&counts, |_| true)),
                (quality.left_replication_factor, replication(&counts, |vertex| !vertex.0)),
                (quality.right_replication_factor, replication(&counts, right)),
                (quality.edge_balance, balance(partitioning.parts().iter().copied(), num_partitions)),
                (quality.master_balance, balance(masters, num_partitions)),
            ] {
                prop_assert!((found - expected).abs() < 1e-12, "{name}: {quality:?}, expected {expected}");
            }
        }
    }

    #[test]
    fn the_favourite_side_is_not_cut(graph in graphs(), num_partitions in 1..9_usize, seed in any::<u64>()) {
        let graph = EdgeList { square: false, ..graph };
        for side in [Side::Left, Side::Right] {
            for strategy in [
                &BiCut { favourite: Some(side), seed } as &dyn megagrid_partition::Strategy,
                &Aweto { favourite: Some(side) },
            ] {
                let quality = Quality::of(&Partitioning::new(graph.ends(), strategy, num_partitions).unwrap());
                let factor = match side {
                    Side::Left => quality.left_replication_factor,
                    Side::Right => quality.right_replication_factor,
                };
                prop_assert_eq!(factor, 1.0, "{} {}", strategy.name(), side);
            }
        }
    }

    #[test]
    fn grid_and_hybrid_bound_the_replicas(graph in graphs(), threshold in 0..10_u32, seed in any::<u64>()) {
        let graph = EdgeList { square: false, ..graph };
        let partitioning = Partitioning::new(graph.ends(), &strategy::Grid { seed }, 9).unwrap();
        let counts = recount(&graph, partitioning.parts());
        prop_assert!(counts.values().all(|parts| parts.len() <= 3));

        let partitioning = Partitioning::new(graph.ends(), &Hybrid { threshold, seed }, 5).unwrap();
        for (vertex, parts) in recount(&graph, partitioning.parts()) {
            let degree: usize = parts.values().sum();
            prop_assert!(!vertex.0 || degree > threshold as usize || parts.len() <= 1);
        }
    }

    #[test]
    fn groupings_are_those_of_a_sort_on_any_number_of_threads(graph in graphs(), threads in 1..5_usize) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let grouped = pool.install(|| GroupedEdges::new(graph.clone(), &[Side::Left, Side::Right]));
        for side in [Side::Left, Side::Right] {
            let (near, far) = match side {
                Side::Left => (&graph.left, &graph.right),
                Side::Right => (&graph.right, &graph.left),
            };
            let mut order: Vec<usize> = (0..graph.num_edges()).collect();
            order.sort_by_key(|&edge| (near[edge], far[edge]));
            for row in 0..grouped.num_vertices(side) {
                let expected: Vec<(u32, u32)> = order.iter().filter(|&&edge| near[edge] as usize == row)
                    .map(|&edge| (far[edge], graph.data[edge])).collect();
                let mut found = Vec::new();
                grouped.visit_rows(side, row..row + 1, &mut |far_ends, data| {
                    found.extend(far_ends.iter().copied().zip(data.iter().copied()));
                }).unwrap();
                prop_assert_eq!(found, expected);
            }
            let distinct: BTreeSet<_> = edges(&graph).collect();
            let expected = Irregularities {
                num_duplicates: (graph.num_edges() - distinct.len()) as u64,
                num_self_loops: edges(&graph).filter(|[left, right]| left == right).count() as u64,
            };
            prop_assert_eq!(irregularities(&grouped, side).unwrap(), expected);
        }
    }

    #[test]
    fn relabelings_are_permutations(degrees in prop::collection::vec(0..5_u32, 0..60), seed in any::<u64>()) {
        let num_vertices = degrees.len();
        let by_degree = Relabeling::by_degree(&degrees);
        let sorted = by_degree.old_of_new().windows(2).all(|pair| {
            let key = |id: u32| (std::cmp::Reverse(degrees[id as usize]), id);
            key(pair[0]) < key(pair[1])
        });
        prop_assert!(sorted);
        for relabeling in [by_degree, Relabeling::random(num_vertices, seed), Relabeling::identity(num_vertices)] {
            let mut ids = relabeling.old_of_new().to_vec();
            relabeling.apply(&mut ids);
            prop_assert!(ids.iter().enumerate().all(|(at, &id)| at == id as usize));
        }
    }
}

#[test]
fn numbers_of_partitions_out_of_range_are_refused() {
    let graph = EdgeList::<()>::default();
    for (num_partitions, message) in [
        (0, "0 partitions are out of range; expected 1 to 65536"),
        (65_537, "65537 partitions are out of range; expected 1 to 65536"),
    ] {
        let error = Partitioning::new(graph.ends(), &strategy::Random { seed: 1 }, num_partitions).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let partitioning = Partitioning::new(graph.ends(), &strategy::Random { seed: 1 }, 65_536).unwrap();
    assert_eq!(Quality::of(&partitioning).replication_factor, 1.0);
}

#[test]
fn greedy_strategies_keep_more_together_than_random_ones() {
    // Eight communities of 40 left and 20 right vertices; one edge in ten leaves its community.
    let mut random = megagrid_partition::SplitMix::new(5, 0);
    let mut graph = EdgeList::<()> { num_left: 320, num_right: 160, ..EdgeList::default() };
    for left in 0..320_u32 {
        for _ in 0..10 {
            let community = if random.below(10) == 0 { random.below(8) as u32 } else { left / 40 };
            graph.left.push(left);
            graph.right.push(community * 20 + random.below(20) as u32);
        }
    }
    let quality = |name| {
        let strategy = strategy::by_name(name, 1).unwrap();
        Quality::of(&Partitioning::new(graph.ends(), &*strategy, 8).unwrap())
    };
    for (better, worse) in [("hdrf", "random"), ("aweto", "bicut"), ("grid", "random")] {
        let (better, worse) = (quality(better), quality(worse));
        assert!(better.replication_factor < worse.replication_factor, "{better:?} {worse:?}");
    }
    assert!(["hdrf", "aweto", "random"].iter().all(|name| quality(name).edge_balance < 1.35));
}
