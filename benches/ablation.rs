//! What each part of the engine's layout is worth, and what a plain loop takes: one interleaved run, one thread, medians.
//!
//!     cargo ablation [--json FILE]
//!
//! `ratio` is a row's time over that of the first row of its table. Without `--bench` (as `cargo test` runs it) inputs are
//! tiny and the figures mean nothing.

use std::io;
use std::process::ExitCode;

use megagrid_algorithms::mf::{
    Config,
    in_place::{self, Mf},
};
use megagrid_algorithms::pagerank::{self, Damping, PageRank, Start};
use megagrid_benches::findings::{Findings, Verdicts};
use megagrid_benches::inputs::{self, Order};
use megagrid_benches::loops::{ArrayRows, HashRows, PullPageRank, Shuffled, mf};
use megagrid_benches::measure::{Contestant, compare, iterate, seconds};
use megagrid_engine::{Engine, Settings, Source};
use megagrid_examples::{click_factors, communities};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side, count_degrees};
use megagrid_results::published::Evidence;
use megagrid_stages::simd::Level;
use megagrid_stages::{Left, Program, Right};

/// How large inputs are, and how often everything is measured.
struct Sizes {
    scale: u32,
    users: usize,
    items: usize,
    ratings: usize,
    rounds: usize,
}

const FULL: Sizes = Sizes { scale: 20, users: 48_000, items: 17_800, ratings: 3_000_000, rounds: 7 };
const TINY: Sizes = Sizes { scale: 8, users: 100, items: 50, ratings: 1000, rounds: 5 };

fn main() -> io::Result<ExitCode> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut verdicts = Verdicts::new(&mut arguments)?;
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let sizes = if is_bench { FULL } else { TINY };
    let [mut maps, mut loops] = [(); 2].map(|()| Findings::new(Evidence::Real, &[]));
    page_rank(&sizes);
    for dims in [32, 100] {
        factorization(&sizes, dims, &mut maps);
    }
    loops.cannot(
        "8 to 99 times as fast by 512 threads of eight machines, topic models against GibbsLDA++: the tables above are one thread of the engine",
    );
    levels(&sizes);
    println!();
    verdicts.add(1, "TuX2 Figure 8: rows in arrays and in hash maps, in the same plain loop", maps)?;
    verdicts.add(18, "IterStore Table 2: one thread of the engine against plain loops", loops)?;
    // Times of a tiny input say nothing.
    Ok(if is_bench { verdicts.exit_code() } else { ExitCode::SUCCESS })
}

fn one_thread() -> Settings {
    Settings { workers: 1, ..Settings::default() }
}

/// Runs the next iteration and returns its time.
fn next<P: Program>(engine: &mut Engine<P>) -> f64 {
    iterate(engine, 1)[0].seconds
}

fn rank_engine(graph: EdgeList<()>, settings: &Settings) -> Engine<PageRank> {
    let pages = graph.num_left;
    let edges = GroupedEdges::new(graph, &[Side::Right]);
    let offsets = edges.offsets(Side::Left);
    let links = |page: usize| (offsets[page + 1] - offsets[page]) as f64;
    let start = Start::new(Damping::DEFAULT, pages, None, &links);
    let sequence = pagerank::sequence(Damping::DEFAULT, edges.num_edges() as u64);
    let mut engine = Engine::new(&edges, sequence, settings).expect("the graph fits the memory");
    engine.set_global(start.state());
    engine.init(Right, |page, first| (*first.master, *first.sync) = start.page(page));
    engine
}

fn rank_loop(graph: EdgeList<()>) -> PullPageRank {
    let pages = graph.num_right;
    let out_degrees = count_degrees(&graph.left, graph.num_left);
    let edges = GroupedEdges::new(graph, &[Side::Right]);
    let mut sources = Vec::new();
    let read = edges.visit_rows(Side::Right, 0..pages, &mut |ends, _| sources.extend_from_slice(ends));
    read.expect("the edges are in memory");
    PullPageRank::new(edges.offsets(Side::Right), sources, &out_degrees)
}

fn page_rank(sizes: &Sizes) {
    let ordered = inputs::graph(sizes.scale, Order::Degree);
    let shuffled = inputs::graph(sizes.scale, Order::Shuffled);
    let edges = ordered.num_edges() as f64;
    let off = Settings { grid: false, ..one_thread() };
    let mut both = rank_engine(ordered.clone(), &one_thread());
    let mut no_grid = rank_engine(ordered.clone(), &off);
    let mut no_order = rank_engine(shuffled.clone(), &one_thread());
    let mut neither = rank_engine(shuffled.clone(), &off);
    let mut plain = rank_loop(shuffled);
    let mut plain_ordered = rank_loop(ordered);
    let title = format!("PageRank, RMAT scale {}, {edges} edges: one iteration", sizes.scale);
    let contestants = vec![
        Contestant::new("grid and degree order", || next(&mut both)),
        Contestant::new("grid off", || next(&mut no_grid)),
        Contestant::new("degree order off", || next(&mut no_order)),
        Contestant::new("both off", || next(&mut neither)),
        Contestant::new("plain loop", || seconds(|| plain.iterate())),
        Contestant::new("plain loop, degree order", || seconds(|| plain_ordered.iterate())),
    ];
    let medians = compare(&title, "edges", edges, sizes.rounds, contestants);
    let times = medians[5] / medians[0];
    println!("  PageRank: {times:.2} times as fast as a plain loop in the same order");
}

fn mf_engine(edges: &GroupedEdges<f32>, config: Config, settings: &Settings) -> Engine<Mf> {
    let sequence = in_place::sequence(config, edges.num_edges() as u64);
    let settings = Settings { dims: config.row_dims(), ..settings.clone() };
    let mut engine = Engine::new(edges, sequence, &settings).expect("the ratings fit the memory");
    engine.init(Left, |id, user| config.init_user(1, id, user.sync));
    engine.init(Right, |id, item| config.init_item(1, id, item.sync));
    engine
}

fn factorization(sizes: &Sizes, dims: usize, maps: &mut Findings) {
    let config = Config { dims, biases: false, ..Config::default() };
    let level = Level::detect();
    let list = inputs::ratings(sizes.users, sizes.items, sizes.ratings);
    let shuffled = Shuffled::new(&list);
    let init_user = |id: usize, row: &mut [f32]| config.init_user(1, id, row);
    let init_item = |id: usize, row: &mut [f32]| config.init_item(1, id, row);
    let (mut users, mut items) =
        (ArrayRows::new(sizes.users, dims, init_user), ArrayRows::new(sizes.items, dims, init_item));
    let (mut hash_users, mut hash_items) =
        (HashRows::new(sizes.users, dims, init_user), HashRows::new(sizes.items, dims, init_item));
    let edges = GroupedEdges::new(list, &[Side::Right]);
    let mut grid = mf_engine(&edges, config, &one_thread());
    let mut no_grid = mf_engine(&edges, config, &Settings { grid: false, ..one_thread() });
    let title = format!("MF, {} ratings, k = {dims}: one iteration", sizes.ratings);
    let contestants = vec![
        Contestant::new("grid", || next(&mut grid)),
        Contestant::new("grid off", || next(&mut no_grid)),
        Contestant::new("plain loop, rows in arrays", || {
            seconds(|| mf(level, config, &shuffled, &mut users, &mut items))
        }),
        Contestant::new("plain loop, rows in hash maps", || {
            seconds(|| mf(level, config, &shuffled, &mut hash_users, &mut hash_items))
        }),
    ];
    let medians = compare(&title, "ratings", sizes.ratings as f64, sizes.rounds, contestants);
    let [of_loop, of_maps] = [medians[2] / medians[0], medians[3] / medians[2]];
    println!("  MF, k = {dims}: {of_loop:.2} times as fast as a plain loop");
    maps.check(
        format!("MF, k = {dims}: a plain loop by hash maps takes at least 1.2 times: {of_maps:.2}"),
        of_maps >= 1.2,
    );
}

/// Edge functions that were written outside the engine, at each vector level: they are to gain from it.
fn levels(sizes: &Sizes) {
    let graph = inputs::graph(sizes.scale.min(12), Order::Degree);
    let weights = vec![1.0; graph.num_edges()];
    let EdgeList { num_left, num_right, square, left, right, .. } = graph;
    let graph = GroupedEdges::new(EdgeList { num_left, num_right, square, left, right, data: weights }, &[Side::Right]);
    let clicks = GroupedEdges::new(inputs::ratings(sizes.users, sizes.items, sizes.ratings / 2), &[Side::Right]);
    let mut spreading: Vec<_> = of_levels(|settings| label_engine(&graph, settings));
    let mut clicking: Vec<_> = of_levels(|settings| click_engine(&clicks, settings));
    let title = "the example `communities`, 64 labels: one iteration";
    compare(title, "edges", graph.num_edges() as f64, sizes.rounds, levels_of(&mut spreading));
    let title = "the example `click_factors`, k = 64: one iteration";
    compare(title, "edges", clicks.num_edges() as f64, sizes.rounds, levels_of(&mut clicking));
}

fn of_levels<P: Program>(make: impl Fn(&Settings) -> Engine<P>) -> Vec<(Level, Engine<P>)> {
    let levels = Level::available().into_iter().rev();
    levels.map(|level| (level, make(&Settings { level, dims: 64, ..one_thread() }))).collect()
}

fn levels_of<P: Program>(engines: &mut [(Level, Engine<P>)]) -> Vec<Contestant<'_>> {
    engines.iter_mut().map(|(level, engine)| Contestant::new(level.name(), || next(engine))).collect()
}

fn label_engine(edges: &GroupedEdges<f32>, settings: &Settings) -> Engine<communities::Labels> {
    let mut engine = Engine::new(edges, communities::sequence(), settings).expect("the graph fits the memory");
    engine.init(Right, |id, member| member.sync[id % 64] = 1.0);
    engine
}

fn click_engine(edges: &GroupedEdges<f32>, settings: &Settings) -> Engine<click_factors::ClickFactors> {
    let clicked = |rating: &f32| if *rating > 0.0 { 1.0 } else { 0.0 };
    let sequence = click_factors::sequence(click_factors::Descend { step: 0.05, lambda: 0.02 });
    let mut engine = Engine::new(Source::map(edges, clicked), sequence, settings).expect("the clicks fit the memory");
    let config = Config { dims: 64, biases: false, ..Config::default() };
    engine.init(Left, |id, user| config.init_user(1, id, user.sync));
    engine.init(Right, |id, item| config.init_item(1, id, item.sync));
    engine
}
