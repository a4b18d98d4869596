//! Runs `page_rank` of the crate `graph` on one binary edge file and prints one JSON line: `graph_runner EDGES`. From a text
//! to a file of scores, as a user would: `graph_runner TEXT SCORES`.
//!
//! The binary input is little-endian `u32` pairs (source, target), ids `0..n`. The crate starts as many
//! threads as `available_parallelism` reports, so the caller sets the number with `taskset`.
//! It drops the mass of dangling vertices, updates in place and stops on the L1 change.

use std::time::Instant;

use graph::prelude::*;

/// Solves of the fixed iteration count, of which the median is printed, and that count.
const SOLVES: usize = 3;
const ITERATIONS: usize = 20;
const TOLERANCE: f64 = 1e-6;
/// Enough for the tolerance; reaching it is reported as a failure.
const MAX_ITERATIONS: usize = 500;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match &arguments[..] {
        [edges] => measure(edges),
        [text, scores] => rank(text, scores),
        _ => Err("usage: graph_runner EDGES, or graph_runner TEXT SCORES".to_owned()),
    };
    if let Err(message) = outcome {
        eprintln!("graph_runner: {message}");
        std::process::exit(1);
    }
}

/// Builds the graph, then times the fixed solves and the solve to the tolerance.
fn measure(path: &str) -> Result<(), String> {
    let started = Instant::now();
    let edges = read_edges(path)?;
    let num_edges = edges.len();
    let graph: DirectedCsrGraph<u32> = GraphBuilder::new().csr_layout(CsrLayout::Sorted).edges(edges).build();
    let build_seconds = started.elapsed().as_secs_f64();

    let fixed = PageRankConfig::new(ITERATIONS, 0.0, 0.85);
    let mut fixed_seconds: Vec<f64> = (0..SOLVES).map(|_| solve(&graph, fixed).0).collect();
    fixed_seconds.sort_by(f64::total_cmp);
    let ms_per_iteration = fixed_seconds[SOLVES / 2] * 1e3 / ITERATIONS as f64;

    let to_tolerance = PageRankConfig::new(MAX_ITERATIONS, TOLERANCE, 0.85);
    let (seconds, scores, iterations, residual) = solve(&graph, to_tolerance);
    if residual >= TOLERANCE {
        return Err(format!("residual {residual:e} after {iterations} iterations, expected below {TOLERANCE:e}"));
    }
    let sum: f64 = scores.iter().map(|&score| f64::from(score)).sum();
    let top = scores.iter().copied().fold(0.0, f32::max);
    let threads = std::thread::available_parallelism().map_or(0, |n| n.get());
    println!(
        "{{\"vertices\":{},\"edges\":{num_edges},\"threads\":{threads},\"build_seconds\":{build_seconds},\
         \"ms_per_iteration\":{ms_per_iteration},\"tolerance_seconds\":{seconds},\"tolerance_iterations\":{iterations},\
         \"residual\":{residual},\"sum\":{sum},\"top_score\":{top}}}",
        graph.node_count()
    );
    Ok(())
}

/// Reads a text with the crate's own reader, solves to the tolerance and writes the scores.
fn rank(text: &str, scores: &str) -> Result<(), String> {
    let builder = GraphBuilder::new().csr_layout(CsrLayout::Sorted);
    let graph: DirectedCsrGraph<u32> =
        builder.file_format(EdgeListInput::default()).path(text).build().map_err(|error| format!("{text}: {error}"))?;
    let (_, values, ..) = solve(&graph, PageRankConfig::new(MAX_ITERATIONS, TOLERANCE, 0.85));
    let bytes: Vec<u8> = values.iter().flat_map(|score| score.to_le_bytes()).collect();
    std::fs::write(scores, bytes).map_err(|error| format!("{scores}: {error}"))
}

fn solve(graph: &DirectedCsrGraph<u32>, config: PageRankConfig) -> (f64, Vec<f32>, usize, f64) {
    let started = Instant::now();
    let (scores, iterations, residual) = page_rank(graph, config);
    (started.elapsed().as_secs_f64(), scores, iterations, residual)
}

fn read_edges(path: &str) -> Result<Vec<(u32, u32)>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let (words, rest) = bytes.as_chunks::<4>();
    if words.is_empty() || !rest.is_empty() || words.len() % 2 != 0 {
        return Err(format!("{path}: {} bytes is not a whole, positive number of u32 pairs", bytes.len()));
    }
    let (pairs, _) = words.as_chunks::<2>();
    Ok(pairs.iter().map(|&[source, target]| (u32::from_le_bytes(source), u32::from_le_bytes(target))).collect())
}
