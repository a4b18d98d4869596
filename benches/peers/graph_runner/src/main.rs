//! Runs `page_rank` of the crate `graph` on one binary edge file and prints one JSON line.
//!
//! The input is little-endian `u32` pairs (source, target), ids `0..n`. The crate starts as many
//! threads as `available_parallelism` reports, so the caller sets the number with `taskset`.
//! It drops the mass of dangling vertices, updates in place and stops on the L1 change.

use std::io::{Read, Write};
use std::time::Instant;

use graph::prelude::*;

const USAGE: &str = "usage: graph_runner EDGES [--solves N] [--iterations N] [--tolerance X]
       graph_runner --generate EDGES SCALE SEED";

/// Enough for any tolerance this bench asks for; reaching it is reported as a failure.
const MAX_ITERATIONS: usize = 500;

/// What one process measures.
struct Options {
    edges: String,
    /// Solves of the fixed iteration count; the median is printed.
    solves: usize,
    iterations: usize,
    tolerance: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("--generate") => generate(&arguments[1..]),
        _ => parse(&arguments).and_then(|options| measure(&options)),
    };
    if let Err(message) = outcome {
        eprintln!("graph_runner: {message}");
        std::process::exit(1);
    }
}

fn parse(arguments: &[String]) -> Result<Options, String> {
    let mut options = Options { edges: String::new(), solves: 3, iterations: 20, tolerance: 1e-6 };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--solves" => options.solves = number(rest.next())?,
            "--iterations" => options.iterations = number(rest.next())?,
            "--tolerance" => options.tolerance = number(rest.next())?,
            path if options.edges.is_empty() && !path.starts_with('-') => options.edges = path.to_owned(),
            other => return Err(format!("unknown argument {other:?}\n{USAGE}")),
        }
    }
    if options.edges.is_empty() || options.solves == 0 || options.iterations == 0 {
        return Err(USAGE.to_owned());
    }
    Ok(options)
}

fn number<T: std::str::FromStr>(text: Option<&String>) -> Result<T, String> {
    text.and_then(|t| t.parse().ok()).ok_or_else(|| format!("expected a number, found {text:?}\n{USAGE}"))
}

/// Builds the graph, then times the fixed solves and the solve to the tolerance.
fn measure(options: &Options) -> Result<(), String> {
    let started = Instant::now();
    let edges = read_edges(&options.edges)?;
    let num_edges = edges.len();
    let graph = build(edges);
    let build_seconds = started.elapsed().as_secs_f64();

    let fixed = PageRankConfig::new(options.iterations, 0.0, 0.85);
    let mut fixed_seconds: Vec<f64> = (0..options.solves).map(|_| solve(&graph, fixed).0).collect();
    fixed_seconds.sort_by(f64::total_cmp);
    let ms_per_iteration = fixed_seconds[fixed_seconds.len() / 2] * 1e3 / options.iterations as f64;

    let (seconds, scores, iterations, residual) =
        solve(&graph, PageRankConfig::new(MAX_ITERATIONS, options.tolerance, 0.85));
    if residual >= options.tolerance {
        return Err(format!(
            "residual {residual:e} after {iterations} iterations, expected below {:e}",
            options.tolerance
        ));
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

fn build(edges: Vec<(u32, u32)>) -> DirectedCsrGraph<u32> {
    GraphBuilder::new().csr_layout(CsrLayout::Sorted).edges(edges).build()
}

fn solve(graph: &DirectedCsrGraph<u32>, config: PageRankConfig) -> (f64, Vec<f32>, usize, f64) {
    let started = Instant::now();
    let (scores, iterations, residual) = page_rank(graph, config);
    (started.elapsed().as_secs_f64(), scores, iterations, residual)
}

fn read_edges(path: &str) -> Result<Vec<(u32, u32)>, String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(|e| format!("{path}: {e}"))?;
    if bytes.is_empty() || bytes.len() % 8 != 0 {
        return Err(format!("{path}: {} bytes is not a whole, positive number of u32 pairs", bytes.len()));
    }
    let word = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    Ok(bytes.chunks_exact(8).map(|pair| (word(&pair[..4]), word(&pair[4..]))).collect())
}

/// Writes an RMAT graph (0.57, 0.19, 0.19; 16 edges a vertex; cleaned, permuted) for trying the
/// runner alone. The bench itself takes its graph from `megagrid generate`.
fn generate(arguments: &[String]) -> Result<(), String> {
    let [path, scale, seed] = arguments else { return Err(USAGE.to_owned()) };
    let (scale, seed): (u32, u64) = (number(Some(scale))?, number(Some(seed))?);
    let mut random = SplitMix(seed);
    let mut permuted: Vec<u32> = (0..1u32 << scale).collect();
    for i in (1..permuted.len()).rev() {
        permuted.swap(i, (random.next() % (i as u64 + 1)) as usize);
    }
    let mut edges: Vec<u64> = (0..16u64 << scale).map(|_| rmat_edge(&mut random, scale, &permuted)).collect();
    edges.sort_unstable();
    edges.dedup();
    edges.retain(|edge| edge >> 32 != edge & 0xffff_ffff);
    let file = std::fs::File::create(path).map_err(|e| format!("{path}: {e}"))?;
    let mut out = std::io::BufWriter::new(file);
    for edge in edges {
        // Source first: the upper half of the packed word.
        out.write_all(&edge.rotate_left(32).to_le_bytes()).map_err(|e| format!("{path}: {e}"))?;
    }
    out.flush().map_err(|e| format!("{path}: {e}"))
}

fn rmat_edge(random: &mut SplitMix, scale: u32, permuted: &[u32]) -> u64 {
    let (mut source, mut target) = (0usize, 0usize);
    for _ in 0..scale {
        let draw = (random.next() >> 40) as f32 / (1u32 << 24) as f32;
        let (down, right) = (draw >= 0.76, (0.57..0.76).contains(&draw) || draw >= 0.95);
        source = source << 1 | usize::from(down);
        target = target << 1 | usize::from(right);
    }
    u64::from(permuted[source]) << 32 | u64::from(permuted[target])
}

/// The SplitMix64 generator (Steele, Lea and Flood 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
