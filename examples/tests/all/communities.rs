//! Label propagation against a sequential program and against a closed form.

use megagrid::engine::Topology;
use megagrid::prelude::*;
use megagrid_examples::communities::propagate;

/// A weighted edge.
type Edge = (u32, u32, f32);

const LABELS: usize = 5;

/// Small caches, so that small graphs have many shards.
fn settings(workers: usize) -> Settings {
    let topology = Topology { l2_bytes: 16 << 10, ..Topology::synthetic(1, workers) };
    Settings { workers, topology, ..Settings::default() }
}

/// A random graph with hubs, repeated edges and self loops; vertices that nothing points at occur.
fn graph(vertices: usize, edges: usize, seed: u64) -> Vec<Edge> {
    let mut random = Random::new(seed, 0);
    let edge = |_| {
        let mut id = || (random.unit().powi(2) * vertices as f64) as u32;
        (id(), id(), 0.1 + random.unit() as f32)
    };
    (0..edges).map(edge).collect()
}

fn known(id: usize) -> Option<usize> {
    id.is_multiple_of(10).then_some(id / 10 % LABELS)
}

/// Sweeps over all edges, in f64.
fn sequential(vertices: usize, graph: &[Edge]) -> Vec<Vec<f64>> {
    let unit = |id| (0..LABELS).map(|label| if known(id) == Some(label) { 1.0 } else { 0.0 }).collect();
    let mut shares: Vec<Vec<f64>> = (0..vertices).map(unit).collect();
    loop {
        let mut sums = vec![vec![0.0; LABELS]; vertices];
        for &(from, to, weight) in graph {
            for label in 0..LABELS {
                sums[to as usize][label] += f64::from(weight) * shares[from as usize][label];
            }
        }
        let mut changed: f64 = 0.0;
        for (id, sums) in sums.iter().enumerate() {
            let total: f64 = sums.iter().sum();
            if known(id).is_none() && total > 0.0 {
                for (share, sum) in shares[id].iter_mut().zip(sums) {
                    changed = changed.max((sum / total - *share).abs());
                    *share = sum / total;
                }
            }
        }
        if changed < 1e-9 {
            return shares;
        }
    }
}

#[test]
fn equals_the_sequential_program() {
    for (vertices, edges, seed) in [(3, 4, 1), (200, 600, 2), (3000, 30_000, 3)] {
        let list = graph(vertices, edges, seed);
        let expected = sequential(vertices, &list);
        let source = Edges::square(vertices, list).unwrap();
        for workers in 1..=3 {
            let shares = propagate(&source, LABELS, known, &settings(workers)).unwrap();
            for (id, (shares, expected)) in shares.iter().zip(&expected).enumerate() {
                for (&share, &expected) in shares.iter().zip(expected) {
                    let near = (f64::from(share) - expected).abs() < 1e-4;
                    assert!(near, "seed {seed}, {workers} workers, vertex {id}: {share}, expected {expected}");
                }
            }
        }
    }
}

/// On a path whose ends are labelled, shares are linear in the position (a random walk's chance of ruin).
#[test]
fn shares_are_linear_along_a_path() {
    let n = 21_u32;
    let path = (1..n).flat_map(|id| [(id - 1, id, 2.0), (id, id - 1, 2.0)]);
    let known = |id: usize| match id {
        0 => Some(0),
        20 => Some(1),
        _ => None,
    };
    let shares = propagate(&Edges::square(n as usize, path).unwrap(), 2, known, &settings(2)).unwrap();
    for (id, shares) in shares.iter().enumerate() {
        let expected = id as f32 / 20.0;
        assert!((shares[1] - expected).abs() < 1e-3 && (shares[0] + expected - 1.0).abs() < 1e-3, "{id}: {shares:?}");
    }
}
