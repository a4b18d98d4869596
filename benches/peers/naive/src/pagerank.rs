//! PageRank by power iteration, pulling over a CSR of incoming edges in f32. The mass of
//! dangling vertices is spread over all vertices, so the scores sum to one.

use std::time::Instant;

const DAMPING: f32 = 0.85;
/// A run to the tolerance that needs more than this has failed.
const MAX_ITERATIONS: usize = 500;

/// Incoming edges: the sources of `v` are `sources[offsets[v]..offsets[v + 1]]`.
struct Graph {
    offsets: Vec<usize>,
    sources: Vec<u32>,
    out_degree: Vec<u32>,
}

struct Solution {
    scores: Vec<f32>,
    iterations: usize,
    residual: f64,
    seconds: f64,
}

/// Times `iterations` fixed iterations, then a run to the L1 residual `tolerance`.
pub fn measure(path: &str, iterations: usize, tolerance: f64) -> Result<String, String> {
    let graph = read(path)?;
    let fixed = solve(&graph, iterations, 0.0);
    let converged = solve(&graph, MAX_ITERATIONS, tolerance);
    if converged.residual >= tolerance {
        return Err(format!("residual {:e} after {MAX_ITERATIONS} iterations", converged.residual));
    }
    let sum: f64 = converged.scores.iter().map(|&score| f64::from(score)).sum();
    let top = converged.scores.iter().copied().fold(0.0, f32::max);
    Ok(format!(
        "{{\"vertices\":{},\"edges\":{},\"ms_per_iteration\":{},\"tolerance_seconds\":{},\"tolerance_iterations\":{},\
         \"residual\":{},\"sum\":{sum},\"top_score\":{top}}}",
        graph.out_degree.len(),
        graph.sources.len(),
        fixed.seconds * 1e3 / fixed.iterations as f64,
        converged.seconds,
        converged.iterations,
        converged.residual,
    ))
}

fn read(path: &str) -> Result<Graph, String> {
    let words = super::read_words(path, 2)?;
    let ids: Vec<u32> = words.into_iter().map(u32::from_le_bytes).collect();
    let (edges, _) = ids.as_chunks::<2>();
    let num_vertices = ids.iter().max().map_or(0, |&id| id as usize + 1);

    let mut out_degree = vec![0u32; num_vertices];
    let mut offsets = vec![0usize; num_vertices + 1];
    for &[source, target] in edges {
        out_degree[source as usize] += 1;
        offsets[target as usize + 1] += 1;
    }
    for v in 0..num_vertices {
        offsets[v + 1] += offsets[v];
    }
    let mut next = offsets.clone();
    let mut sources = vec![0u32; edges.len()];
    for &[source, target] in edges {
        let slot = &mut next[target as usize];
        sources[*slot] = source;
        *slot += 1;
    }
    for v in 0..num_vertices {
        sources[offsets[v]..offsets[v + 1]].sort_unstable();
    }
    Ok(Graph { offsets, sources, out_degree })
}

fn solve(graph: &Graph, max_iterations: usize, tolerance: f64) -> Solution {
    let started = Instant::now();
    let n = graph.out_degree.len();
    let mut scores = vec![1.0 / n as f32; n];
    let mut shares = vec![0.0f32; n];
    let (mut iterations, mut residual) = (0, f64::INFINITY);
    while iterations < max_iterations && residual >= tolerance {
        residual = iterate(graph, &mut scores, &mut shares);
        iterations += 1;
    }
    Solution { scores, iterations, residual, seconds: started.elapsed().as_secs_f64() }
}

/// One iteration; returns the L1 change.
fn iterate(graph: &Graph, scores: &mut [f32], shares: &mut [f32]) -> f64 {
    let mut dangling = 0.0f64;
    for ((share, &score), &degree) in shares.iter_mut().zip(scores.iter()).zip(&graph.out_degree) {
        if degree == 0 {
            dangling += f64::from(score);
        } else {
            *share = score / degree as f32;
        }
    }
    let n = scores.len() as f64;
    let base = ((f64::from(1.0 - DAMPING) + f64::from(DAMPING) * dangling) / n) as f32;
    let mut residual = 0.0f64;
    for (score, range) in scores.iter_mut().zip(graph.offsets.windows(2)) {
        let pulled: f32 = graph.sources[range[0]..range[1]].iter().map(|&source| shares[source as usize]).sum();
        let new = base + DAMPING * pulled;
        residual += f64::from((new - *score).abs());
        *score = new;
    }
    residual
}
