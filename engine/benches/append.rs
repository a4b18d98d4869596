//! What edges that come and go cost: `Engine::append` and `Engine::remove` against reading, against an engine that is made of all edges,
//! and against an iteration; medians over rounds in which each has its turn.
//!
//!     cargo bench -p megagrid-engine --bench append [-- LINKS.txt.gz …]
//!
//! Ranks pages of an R-MAT graph of 2^20 pages and of graphs in files, two workers; a thousandth of the links comes and goes, and what runs then
//! is checked against an engine of all links. Without
//! `--bench` (as `cargo test` runs it) the graph is tiny and the times mean nothing.

use std::path::{Path, PathBuf};
use std::time::Instant;

use megagrid_algorithms::pagerank::{self, Damping, PageRank, Start};
use megagrid_datasets::synthetic::{RmatSettings, write_edges};
use megagrid_datasets::{Edges, Format, read_graph};
use megagrid_engine::{Engine, Settings};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side};
use megagrid_stages::Right;

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let full = arguments.iter().any(|argument| argument == "--bench");
    arguments.retain(|argument| !argument.starts_with("--"));
    let (scale, rounds) = if full { (20, 7) } else { (8, 1) };
    println!(
        "| links | read, s | new, s | iteration, s | append 0.1 %, s | remove, s | append / new | append / iterations |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let made = std::env::temp_dir().join(format!("megagrid-append-{}.txt", std::process::id()));
    let graph = RmatSettings { scale, ..RmatSettings::default() }.generate().expect("a scale of 1 to 31");
    write_edges(&made, &graph).expect("a temporary file");
    measure(&made, &format!("R-MAT {scale}"), rounds);
    std::fs::remove_file(&made).expect("a temporary file");
    for path in arguments.iter().map(PathBuf::from) {
        measure(&path, &path.file_name().unwrap_or_default().to_string_lossy(), rounds);
    }
}

fn measure(path: &Path, name: &str, rounds: usize) {
    let mut times: [Vec<f64>; 5] = Default::default();
    let mut links = 0;
    for _ in 0..rounds {
        let (read, edges) =
            timed(|| Edges::from(read_graph(path, Some(Format::Edges)).expect("a graph").in_degree_order()));
        let (new, mut engine) = timed(|| rank(&edges));
        engine.iterate(2).expect("iterations");
        let (iterations, ()) = timed(|| engine.iterate(5).expect("iterations"));
        let is_one = |edge: usize| edge.is_multiple_of(1000);
        let some = listed(&edges, |edge| usize::from(is_one(edge)));
        let (append, _) = timed(|| engine.append(&some).expect("edges"));
        check(&mut engine, &edges, &listed(&edges, |edge| 1 + usize::from(is_one(edge))));
        let (remove, ()) = timed(|| engine.remove(&some).expect("edges that are there"));
        check(&mut engine, &edges, &listed(&edges, |edge| usize::from(!is_one(edge))));
        links = edges.num_edges();
        times.iter_mut().zip([read, new, iterations / 5.0, append, remove]).for_each(|(of, time)| of.push(time));
    }
    let [read, new, iteration, append, remove] = times.map(median);
    let (part, iterations) = (append / new, append / iteration);
    println!(
        "| {name}, {links} | {read:.3} | {new:.3} | {iteration:.4} | {append:.3} | {remove:.3} | {part:.2} | {iterations:.1} |"
    );
}

fn timed<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let begin = Instant::now();
    let result = run();
    (begin.elapsed().as_secs_f64(), result)
}

fn rank(edges: &Edges<()>) -> Engine<PageRank> {
    let settings = Settings { workers: 2, ..Settings::default() };
    let offsets = edges.offsets(Side::Left);
    let out_weight = |page: usize| (offsets[page + 1] - offsets[page]) as f64;
    let start = Start::new(Damping::DEFAULT, edges.num_vertices(Side::Left), None, &out_weight);
    let sequence = pagerank::sequence(Damping::DEFAULT, edges.num_edges() as u64);
    let mut engine = Engine::new(edges, sequence, &settings).expect("a graph");
    engine.set_global(start.state());
    engine.init(Right, |page, first| (*first.master, *first.sync) = start.page(page));
    engine
}

/// Checks that an engine that began with some links runs, bit by bit, what one of these runs that has the same values.
fn check(engine: &mut Engine<PageRank>, first: &Edges<()>, links: &GroupedEdges<()>) {
    let (settings, damping) = (Settings { workers: 2, ..Settings::default() }, Damping::DEFAULT);
    let sequence = pagerank::sequence(damping, first.num_edges() as u64);
    let mut fresh = Engine::new(links, sequence, &settings).expect("a graph");
    let pages = engine.on(Right);
    fresh.init(Right, |page, first| (*first.master, *first.sync) = (*pages.master(page), *pages.sync(page)));
    drop(pages);
    fresh.resume(engine.iterations(), *engine.global());
    assert_eq!(engine.plan(), fresh.plan());
    for engine in [&mut *engine, &mut fresh] {
        engine.iterate(2).expect("iterations");
    }
    let ranks = |engine: &Engine<PageRank>| engine.on(Right).iter().map(|rank| rank.to_bits()).collect::<Vec<_>>();
    assert!(ranks(engine) == ranks(&fresh), "ranks are those of an engine of all links");
}

/// Returns links as often each as `times` says of its number.
fn listed(edges: &Edges<()>, times: impl Fn(usize) -> usize) -> GroupedEdges<()> {
    let pages = edges.num_vertices(Side::Left);
    let mut list = EdgeList { num_left: pages, num_right: pages, square: true, ..EdgeList::default() };
    let mut at = 0;
    for window in edges.windows() {
        let visit = &mut |ends: &[u64]| {
            for &ends in ends {
                (0..times(at)).for_each(|_| list.push(ends as u32, (ends >> 32) as u32, ()));
                at += 1;
            }
        };
        edges.visit_ends(window, visit).expect("edges in memory");
    }
    GroupedEdges::new(list, &[Side::Right])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
