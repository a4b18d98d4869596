//! `megagrid pagerank`: ranks the vertices of a directed graph.

pub mod demo;

use std::path::Path;
use std::time::Instant;

use megagrid_algorithms::pagerank::{self, Damping, PageRank, State, scores};
use megagrid_datasets::output::{Column, write_directory, write_table, write_vector};
use megagrid_datasets::{Dictionary, Edges, Names, Prepared};
use megagrid_engine::{Engine, Settings};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::Right;

use crate::common::{self, Common, Source};
use crate::failure::usage;
use crate::input::{self, Digest};
use crate::model::Manifest;
use crate::record::{InputSizes, Machine, Metrics, Phases, Record};
use crate::session::{self, Measured, Session, Start};

/// How many of the best the summary shows.
const SHOWN: usize = 10;

/// Ranks the vertices of a directed graph: how often a surfer is on each page who follows links.
///
/// A graph of more than 4 million links is ranked batch by batch, each from the scores of those before it (block
/// Gauss–Seidel), a smaller one all at once (Jacobi). Scores sum to 1. The model holds scores.parquet (id, score; best first) and scores.npy in the same order.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  megagrid pagerank web-graph.txt.gz --model ranks --report ranks.html")]
pub struct Args {
    #[command(flatten)]
    pub source: Source,
    /// The chance of following a link instead of restarting, above 0 and below 1.
    #[arg(long, default_value_t = Damping::DEFAULT.get(), allow_negative_numbers = true)]
    pub damping: f64,
    /// Restart at these vertices alone, by their names in the input (personalized).
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub restart: Vec<String>,
    /// Iterations at most.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// End when an iteration changes the scores by no more than this, in total (L1).
    #[arg(long, default_value_t = 1e-6, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Part of an iteration between two clocks; PageRank takes 1 only.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true, value_name = "X", help_heading = "Consistency")]
    pub work_per_clock: f64,
    #[command(flatten)]
    pub common: Common,
}

impl Args {
    /// Returns the chance of following a link; checks the other options too.
    pub fn damping(&self) -> anyhow::Result<Damping> {
        let damping = Damping::new(self.damping)?;
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return Err(usage(format!("tolerance is {}; expected 0 or a number above 0", self.tolerance)));
        }
        if self.work_per_clock != 1.0 {
            let found = self.work_per_clock;
            return Err(usage(format!(
                "work-per-clock is {found}; PageRank settles all scores at once and takes 1 only"
            )));
        }
        Ok(damping)
    }

    /// Returns the options as they stand in a run record.
    pub fn config(&self, common: &common::Resolved) -> anyhow::Result<serde_json::Value> {
        let own = serde_json::json!({
            "damping": self.damping, "restart": self.restart, "iterations": self.iterations,
            "tolerance": self.tolerance, "work_per_clock": self.work_per_clock,
        });
        Ok(common::join([self.source.resolved(), own, serde_json::to_value(common)?]))
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let damping = args.damping()?;
    let (settings, resolved) = args.common.prepare()?;
    let config = args.config(&resolved)?;
    let mut phases = Phases::default();
    let prepared = input::graph(&args.source, &args.common, &mut phases)?;
    let limits = Limits { iterations: args.iterations, tolerance: args.tolerance };
    let job = Job { prepared, damping, restart: &args.restart, limits, settings };
    let (record, ranked) = rank(job, &args.common, config, phases)?;
    if args.common.wants_summary() {
        let best = listing(&ranked.names, &ranked.scores, SHOWN);
        common::print(&format!("{}{best}", session::summary(&record)))?;
    }
    session::write_record(&record, &args.common)
}

/// When a run ends.
#[derive(Clone, Copy)]
struct Limits {
    iterations: u64,
    tolerance: f64,
}

/// What is to be ranked.
struct Job<'j> {
    prepared: Prepared<()>,
    damping: Damping,
    /// Names of the vertices to restart at; none: all.
    restart: &'j [String],
    limits: Limits,
    settings: Settings,
}

/// Ranks, and writes the model if one was asked for.
fn rank(
    job: Job<'_>,
    common: &Common,
    config: serde_json::Value,
    mut phases: Phases,
) -> anyhow::Result<(Record, Ranked)> {
    let Job { prepared, damping, restart, limits, settings } = job;
    let Prepared { edges, names, .. } = prepared;
    let sources = sources(restart, &names)?;
    let wanted = common.model.is_some() || common.cluster.is_some();
    let checksum = wanted.then(|| input::digest(&edges, |()| 0.0)).transpose()?;
    common.agree("pagerank", &config, checksum.as_ref().map_or(0, |digest| digest.checksum))?;
    let begin = Instant::now();
    let (mut engine, input) = build(edges, damping, &sources, &settings)?;
    let done = common.checkpoint.begin(&mut engine, &config)?;
    phases.plan = begin.elapsed().as_secs_f64();

    let machine = machine(&engine, &settings);
    let start = Start { input, machine, done, phases };
    let mut session = Session::begin(common, "pagerank", config, start, limits.iterations);
    engine.run_until(limits.iterations, |engine, report| {
        let measure = |engine: &mut Engine<_>| Ok(Some(measure(&engine.global(), limits.tolerance)));
        Ok(session.iteration(report, engine, measure).is_break())
    })?;
    let mut record = session.end()?;
    engine.collect()?;

    let view = engine.on(Right);
    let scores = scores((0..view.len()).map(|page| *view.master(page)));
    drop(view);
    // Scores get their common factor at the end, so that there is a sum only now.
    record.result.metrics.insert("sum".into(), scores.iter().map(|&score| f64::from(score)).sum());
    let ranked = Ranked::new(scores, &names)?;
    if let (Some(directory), Some(digest)) = (&common.model, checksum) {
        write_model(directory, &record, &digest, &ranked)?;
    }
    Ok((record, ranked))
}

/// Prints what the engine would do.
pub fn plan(args: &Args) -> anyhow::Result<()> {
    let damping = args.damping()?;
    let (settings, _) = args.common.prepare()?;
    let edges = input::graph(&args.source, &args.common, &mut Phases::default())?.edges;
    let sequence = pagerank::sequence(damping, edges.num_edges() as u64);
    let plan = megagrid_engine::plan(&edges, &sequence, &settings)?;
    crate::plan::show(&plan)
}

fn build(
    edges: Edges<()>,
    damping: Damping,
    sources: &[usize],
    settings: &Settings,
) -> anyhow::Result<(Engine<PageRank>, InputSizes)> {
    let num_pages = edges.num_vertices(Side::Left);
    let num_edges = edges.num_edges();
    let sequence = pagerank::sequence(damping, num_edges as u64);
    let offsets = edges.offsets(Side::Left);
    let out_degree = |page: usize| offsets[page + 1] - offsets[page];
    let start = pagerank::Start::new(damping, num_pages, sources, &out_degree);
    let mut engine = Engine::<PageRank>::new(&edges, sequence, settings)?;
    engine.set_global(start.state());
    engine.init(Right, |page, first| {
        let (rank, passed) = start.page(page);
        *first.master = rank;
        *first.sync = passed;
    });
    Ok((engine, InputSizes { left: num_pages, right: num_pages, edges: num_edges, test_edges: 0 }))
}

fn machine(engine: &Engine<PageRank>, settings: &Settings) -> Machine {
    Machine {
        workers: settings.workers,
        vector: settings.level.name().into(),
        memory_estimate_bytes: engine.plan().memory_bytes,
        memory_bytes: (engine.grid().edge_bytes() + engine.grid().vertex_bytes()) as u64,
        placement: Some(engine.plan().placement.into()),
    }
}

fn measure(state: &State, tolerance: f64) -> Measured {
    Measured {
        objective: state.residual,
        metrics: Metrics::from([("residual".into(), state.residual)]),
        converged: state.residual <= tolerance,
        advice: "please report the graph",
    }
}

/// Finds the vertices to restart at.
fn sources(wanted: &[String], names: &Names) -> anyhow::Result<Vec<usize>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let lookup = names.get(Side::Left)?.lookup();
    let find = |name: &String| {
        let found = lookup.find(name).map(|id| id as usize);
        found.ok_or_else(|| {
            anyhow::anyhow!("--restart: no vertex \"{name}\" in the graph; name vertices as the input does")
        })
    };
    wanted.iter().map(find).collect()
}

/// Vertices and their scores, best first.
struct Ranked {
    names: Dictionary,
    scores: Vec<f32>,
}

impl Ranked {
    fn new(scores: Vec<f32>, names: &Names) -> anyhow::Result<Self> {
        let mut order: Vec<u32> = (0..scores.len() as u32).collect();
        rayon::slice::ParallelSliceMut::par_sort_by(&mut order[..], |&a, &b| {
            scores[b as usize].total_cmp(&scores[a as usize]).then(a.cmp(&b))
        });
        let sorted = order.iter().map(|&page| scores[page as usize]).collect();
        Ok(Self { names: names.get(Side::Left)?.reorder(&order), scores: sorted })
    }
}

/// Lists the best `n`.
pub fn listing(names: &Dictionary, scores: &[f32], n: usize) -> String {
    let best = scores.iter().take(n).enumerate();
    best.map(|(at, score)| format!("{:>5}  {score:.6e}  {}\n", at + 1, names.name(at as u32))).collect()
}

fn write_model(directory: &Path, record: &Record, digest: &Digest, ranked: &Ranked) -> anyhow::Result<()> {
    let mut manifest = Manifest::new("pagerank", record, digest.checksum);
    manifest.shape("scores.npy", &[ranked.scores.len()]);
    write_directory(directory, |into| -> anyhow::Result<()> {
        let score = Column::F32((&ranked.scores).into());
        write_table(&into.join("scores.parquet"), &[("id", Column::Names(&ranked.names)), ("score", score)])?;
        write_vector(&into.join("scores.npy"), &ranked.scores)?;
        manifest.write(into)
    })
}
