//! `megagrid inspect`: what an input is, how large and how skewed, and what it would need.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use megagrid_datasets::cache::EdgeData;
use megagrid_datasets::{Edges, Prepared};
use megagrid_partition::{DegreeStats, EdgeSource, Side, irregularities};
use rayon::prelude::*;
use serde::Serialize;

use crate::cuts::{Cut, Training};
use crate::data::{self, AnySource, Found, Grouped, Kind};
use crate::progress::{self, Progress};

/// Shows what an input is: format, counts, degrees and their skew, irregularities, and the memory to train on it.
///
/// Memory is that of grid and vertex data with default options, on all cores; reading a text takes more for a while.
///
/// With --processes it shows what every strategy of placing edges on N processes would make of it that the training command runs
/// under, and what `--strategy auto` would take: masters and mirrors per vertex, bytes of all processes in an iteration, and how evenly
/// edges are shared by processes and by workers. `megagrid plan COMMAND … --processes N` shows the same with options of the command.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  megagrid inspect ratings.csv\n  megagrid inspect --quick web-graph.mgrid --json -\n  \
                  megagrid inspect web-graph.mgrid --processes 16"
)]
pub struct Args {
    #[command(flatten)]
    pub source: AnySource,
    /// Leave out what takes a pass over the edges: duplicates, self loops, values. Of a .mgrid only header and offsets
    /// are read then.
    #[arg(long)]
    pub quick: bool,
    /// Show also what strategies would make of it in N processes with workers on all cores of a machine like this one. A pass over
    /// the edges for each.
    #[arg(long, default_value_t = 1, value_name = "N", conflicts_with = "quick", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub processes: u32,
    /// Write the findings as JSON; "-" is stdout.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What was found.
#[derive(Serialize)]
struct Report<'a> {
    input: &'a Path,
    format: String,
    kind: Kind,
    bytes: u64,
    edges: usize,
    left: Degrees,
    right: Degrees,
    /// Vertices of a graph without out-edges.
    #[serde(skip_serializing_if = "Option::is_none")]
    dangling: Option<usize>,
    /// `None` where it was not asked for.
    #[serde(flatten)]
    pass: Option<Pass>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<Vec<Class>>,
    /// Bytes of grid and vertex data, by training command.
    memory_estimate_bytes: BTreeMap<&'static str, u64>,
    /// What strategies make of it in several processes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    strategies: Vec<Cut>,
}

/// How the degrees of a side are spread.
#[derive(Serialize)]
struct Degrees {
    vertices: usize,
    without_edges: usize,
    min: u64,
    median: u64,
    mean: f64,
    p99: u64,
    max: u64,
    /// Share of the edges, 0 to 1, that meet in the 1 % of the vertices with most edges.
    top_percent_share: f64,
}

/// What a pass over the edges finds.
#[derive(Serialize)]
struct Pass {
    duplicates: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    self_loops: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Values>,
    /// Of a corpus.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
}

/// The data of the edges.
#[derive(Clone, Copy, Serialize)]
struct Values {
    min: f64,
    max: f64,
    mean: f64,
}

/// How many samples have a label.
#[derive(Serialize)]
struct Class {
    class: String,
    samples: usize,
}

/// Classes that the text lists.
const SHOWN_CLASSES: usize = 20;

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let progress = Progress::spinner(false, "reading");
    let found = args.source.find()?;
    let bytes = args.source.bytes()?;
    let sides: &[Side] = if args.quick { &[] } else { &[Side::Right] };
    let grouped = args.source.open(found, sides)?;
    progress.say("counting");
    let mut report = match &grouped {
        Grouped::Graph(graph) => {
            let report = report(args, found, graph, |()| 0.0)?;
            Report { dangling: Some(report.left.without_edges), ..report }
        }
        Grouped::Ratings(ratings) => report(args, found, ratings, |&rating| f64::from(rating))?,
        Grouped::Samples(samples) => report(args, found, samples, |&value| f64::from(value))?,
        Grouped::Corpus(corpus) => report(args, found, corpus, |&count| f64::from(count))?,
    };
    report.bytes = bytes;
    progress.say("planning");
    // Capacities of a corpus follow from the tokens, which are a pass over the edges.
    let training = if args.quick && found.kind == Kind::Corpus { None } else { Training::of(grouped, args.processes)? };
    let mut text = String::new();
    if let Some(training) = training {
        report.memory_estimate_bytes.insert(training.command, training.memory_bytes);
        text = training.table(args.processes);
        report.strategies = training.cuts;
    }
    drop(progress);
    data::write_findings(args.json.as_deref(), &report, &(report.text() + &text))
}

fn report<'a, T: EdgeData>(
    args: &'a Args,
    found: Found,
    prepared: &Prepared<T>,
    value: fn(&T) -> f64,
) -> anyhow::Result<Report<'a>> {
    let edges = &prepared.edges;
    let labels = prepared.labels.as_ref().map(|labels| {
        let counts = labels.classes.iter().cloned().zip(labels.counts());
        counts.map(|(class, samples)| Class { class, samples }).collect()
    });
    Ok(Report {
        input: args.source.path(),
        format: found.format.to_string(),
        kind: found.kind,
        bytes: 0,
        edges: edges.num_edges(),
        left: Degrees::of(edges.offsets(Side::Left)),
        right: Degrees::of(edges.offsets(Side::Right)),
        dangling: None,
        pass: if args.quick { None } else { Some(Pass::over(edges, found.kind, value)?) },
        labels,
        memory_estimate_bytes: BTreeMap::new(),
        strategies: Vec::new(),
    })
}

impl Degrees {
    fn of(offsets: &[u64]) -> Self {
        let stats = DegreeStats::of(offsets);
        Self {
            vertices: stats.num_vertices,
            without_edges: stats.num_isolated,
            min: stats.min,
            median: stats.median,
            mean: stats.mean,
            p99: stats.p99,
            max: stats.max,
            top_percent_share: stats.top_percent_share,
        }
    }
}

impl Pass {
    fn over<T: EdgeData>(edges: &Edges<T>, kind: Kind, value: fn(&T) -> f64) -> anyhow::Result<Self> {
        let found = irregularities(edges, Side::Right).context("reading edges")?;
        let self_loops = edges.is_square().then_some(found.num_self_loops);
        let mut pass = Self { duplicates: found.num_duplicates, self_loops, values: None, tokens: None };
        if kind != Kind::Graph {
            let (values, sum) = values(edges, value)?;
            pass.values = Some(values);
            // Exact, as all counts are integers and their sum is far below 2^53.
            pass.tokens = (kind == Kind::Corpus).then_some(sum as u64);
        }
        Ok(pass)
    }
}

/// Returns range and mean of the edge data, and their sum.
fn values<T: EdgeData>(edges: &Edges<T>, value: fn(&T) -> f64) -> anyhow::Result<(Values, f64)> {
    let window = |rows| {
        let (mut min, mut max, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
        edges
            .visit_rows(Side::Right, rows, &mut |_, data| {
                for value in data.iter().map(value) {
                    (min, max, sum) = (value.min(min), value.max(max), sum + value);
                }
            })
            .context("reading edges")?;
        Ok((min, max, sum))
    };
    // Collected before they are summed, so that the sum is the same on any number of threads.
    let windows = megagrid_datasets::windows(edges.offsets(Side::Right)).into_par_iter().map(window);
    let windows: Vec<(f64, f64, f64)> = windows.collect::<anyhow::Result<_>>()?;
    let (min, max, sum) =
        windows.into_iter().reduce(|all, one| (all.0.min(one.0), all.1.max(one.1), all.2 + one.2)).unwrap_or_default();
    Ok((Values { min, max, mean: sum / edges.num_edges().max(1) as f64 }, sum))
}

impl Report<'_> {
    fn text(&self) -> String {
        let mut text = format!(
            "{}: {} (format {}, {})\n",
            self.input.display(),
            self.kind.size(self.left.vertices, self.right.vertices, self.edges),
            self.format,
            progress::bytes(self.bytes)
        );
        let mut line = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {name:<28}{value}");
        };
        let both = |of: &dyn Fn(&Degrees) -> String| format!("{:>14}{:>14}", of(&self.left), of(&self.right));
        let [left, right] = self.kind.sides();
        line("", format!("{left:>14}{right:>14}"));
        line("vertices", both(&|side| side.vertices.to_string()));
        line("without any edge", both(&|side| side.without_edges.to_string()));
        line("degree, least", both(&|side| side.min.to_string()));
        line("degree, median", both(&|side| side.median.to_string()));
        line("degree, mean", both(&|side| format!("{:.2}", side.mean)));
        line("degree, 99 % are not above", both(&|side| side.p99.to_string()));
        line("degree, largest", both(&|side| side.max.to_string()));
        line("edges at the top 1 %", both(&|side| format!("{:.1} %", 100.0 * side.top_percent_share)));
        if let Some(dangling) = self.dangling {
            line("dangling (no out-edges)", dangling.to_string());
        }
        if let Some(pass) = &self.pass {
            line("repeated edges", pass.duplicates.to_string());
            if let Some(loops) = pass.self_loops {
                line("self loops", loops.to_string());
            }
            if let Some(tokens) = pass.tokens {
                line("tokens", tokens.to_string());
            }
            if let Some(Values { min, max, mean }) = pass.values {
                // As short as the numbers were in the input.
                line("values", format!("{} to {}, mean {mean:.5}", min as f32, max as f32));
            }
        }
        if let Some(classes) = &self.labels {
            let all: usize = classes.iter().map(|class| class.samples).sum();
            let rest = if classes.len() > SHOWN_CLASSES { ", …" } else { "" };
            let shown = classes.iter().take(SHOWN_CLASSES).map(|Class { class, samples }| {
                format!("{class}: {samples} ({:.2} %)", 100.0 * *samples as f64 / all.max(1) as f64)
            });
            line("classes", format!("{}, {}{rest}", classes.len(), shown.collect::<Vec<_>>().join(", ")));
        }
        for (command, &bytes) in &self.memory_estimate_bytes {
            line(&format!("memory of {command}"), progress::bytes(bytes));
        }
        text
    }
}
