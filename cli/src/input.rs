//! From INPUT to edges that a grid can be built from.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use megagrid_datasets::cache::{Cache, EdgeData};
use megagrid_datasets::{Dataset, Edges, Format, OtherRating, Prepared, Readers, Summary};
use megagrid_datasets::{load_graph, load_graph_with, load_ratings, load_ratings_with};
use megagrid_datasets::{read_ratings, read_ratings_with, split};
use megagrid_partition::{EdgeList, EdgeSource, Side};

use crate::common::{Common, Source};
use crate::failure::usage;
use crate::progress::Progress;
use crate::record::Phases;
use crate::together::Together;

/// Options about ratings to test on.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Quality on unseen ratings")]
pub struct Unseen {
    /// Ratings to test on after each iteration, in any text format.
    #[arg(long, value_name = "FILE", conflicts_with = "holdout")]
    pub test: Option<std::path::PathBuf>,
    /// Part of the ratings, above 0 and below 1, to keep for testing.
    #[arg(long, value_name = "F", allow_negative_numbers = true)]
    pub holdout: Option<f64>,
}

impl Unseen {
    /// Checks the ranges of the options.
    pub fn check(&self) -> anyhow::Result<()> {
        match self.holdout {
            Some(part) if !(part > 0.0 && part < 1.0) => Err(megagrid_datasets::Error::HoldoutRange(part).into()),
            _ => Ok(()),
        }
    }
}

/// Ratings to test on.
#[derive(Clone, Debug, Default)]
pub struct TestSet {
    /// User, item and rating.
    pub known: Vec<(u32, u32, f32)>,
    /// Ratings whose user or item is not in the training data.
    pub others: Vec<OtherRating>,
}

impl TestSet {
    /// Returns the number of ratings.
    pub fn len(&self) -> usize {
        self.known.len() + self.others.len()
    }
}

/// Loads a graph.
pub fn graph(source: &Source, options: &Common, phases: &mut Phases) -> anyhow::Result<Prepared<()>> {
    let _progress = Progress::spinner(options.quiet, "loading");
    let begin = Instant::now();
    let format = stated(source, Format::Edges)?;
    let cached = is_cache(&source.input, format)?;
    begin_together(options, "pagerank", cached, None)?;
    if cached {
        return opened(&source.input, options, phases);
    }
    let loaded = match readers(options) {
        Some(readers) => load_graph_with(&source.input, format, &readers)?,
        None => load_graph(&source.input, format)?,
    };
    phases.load = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let prepared = loaded.prepare(Side::Right, !options.no_degree_order)?;
    phases.partition = begin.elapsed().as_secs_f64();
    Ok(prepared)
}

/// Loads ratings, and those to test on.
pub fn ratings(
    source: &Source,
    unseen: &Unseen,
    options: &Common,
    phases: &mut Phases,
) -> anyhow::Result<(Prepared<f32>, TestSet)> {
    let _progress = Progress::spinner(options.quiet, "loading");
    let begin = Instant::now();
    let format = stated(source, Format::Ratings)?;
    let cached = is_cache(&source.input, format)?;
    begin_together(options, "mf", cached, unseen.holdout)?;
    let (prepared, test) = match unseen.holdout {
        Some(part) => {
            let read =
                if cached { Cache::open(&source.input)?.to_dataset()? } else { read_ratings(&source.input, format)? };
            phases.load = begin.elapsed().as_secs_f64();
            let begin = Instant::now();
            let all = if cached { read } else { ordered(read, options) };
            let (train, test) = split(&all, part, options.seed)?;
            drop(all);
            let prepared = Prepared::new(train, &[Side::Right]);
            phases.partition = begin.elapsed().as_secs_f64();
            (prepared, known(&test.edges))
        }
        None if cached => (opened(&source.input, options, phases)?, TestSet::default()),
        None => {
            let loaded = match readers(options) {
                Some(readers) => load_ratings_with(&source.input, format, &readers)?,
                None => load_ratings(&source.input, format)?,
            };
            phases.load = begin.elapsed().as_secs_f64();
            let begin = Instant::now();
            let prepared = loaded.prepare(Side::Right, !options.no_degree_order)?;
            phases.partition = begin.elapsed().as_secs_f64();
            (prepared, TestSet::default())
        }
    };
    let begin = Instant::now();
    let test = if unseen.test.is_some() { test_set(unseen, &prepared)? } else { test };
    phases.load += begin.elapsed().as_secs_f64();
    Ok((prepared, test))
}

/// Finds that all processes are about to read the same way: what they then do, they do in the same order.
fn begin_together(options: &Common, command: &str, cached: bool, holdout: Option<f64>) -> anyhow::Result<()> {
    let Some(cluster) = &options.cluster else { return Ok(()) };
    let input = if cached { "a cache" } else { "no cache" };
    let holdout = holdout.map_or("unset".to_owned(), |part| part.to_string());
    Ok(cluster.agree(&[("command", command.to_owned()), ("holdout", holdout), ("as input", input.to_owned())])?)
}

/// Returns the processes that read the input together, if there are some in earnest.
fn readers(options: &Common) -> Option<Arc<dyn Readers>> {
    let cluster = options.cluster.as_ref().filter(|_| !options.reads_whole);
    cluster.map(|cluster| Arc::new(Together::new(cluster)) as Arc<dyn Readers>)
}

/// Reads ratings as they are, from text or from a cache.
pub fn plain_ratings(path: &Path) -> anyhow::Result<Dataset<f32>> {
    Ok(if is_cache(path, None)? { Cache::open(path)?.to_dataset()? } else { read_ratings(path, None)? })
}

/// Returns the format stated. What could be anything is taken for `wanted`, so that the line in the way is named.
pub fn stated(source: &Source, wanted: Format) -> anyhow::Result<Option<Format>> {
    if source.format.0.is_some() {
        return Ok(source.format.0);
    }
    match Format::detect(&source.input) {
        Ok(Format::Text) | Err(megagrid_datasets::Error::UnknownFormat { .. }) => Ok(Some(wanted)),
        Ok(_) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Tells whether an input is a cache.
pub fn is_cache(path: &Path, format: Option<Format>) -> anyhow::Result<bool> {
    Ok(match format {
        Some(format) => format == Format::Cache,
        None => Format::detect(path)? == Format::Cache,
    })
}

fn opened<T: EdgeData>(path: &Path, options: &Common, phases: &mut Phases) -> anyhow::Result<Prepared<T>> {
    let begin = Instant::now();
    let prepared = match readers(options) {
        Some(readers) => Prepared::open_with(path, &readers)?,
        None => Prepared::open(path)?,
    };
    phases.load = begin.elapsed().as_secs_f64();
    Ok(prepared)
}

fn ordered<T>(dataset: Dataset<T>, options: &Common) -> Dataset<T> {
    if options.no_degree_order { dataset } else { dataset.in_degree_order() }
}

fn test_set(unseen: &Unseen, prepared: &Prepared<f32>) -> anyhow::Result<TestSet> {
    let Some(path) = &unseen.test else { return Ok(TestSet::default()) };
    if is_cache(path, None)? {
        return Err(usage("--test takes ratings as text or Parquet, and this is a .mgrid cache"));
    }
    let (users, items) = (prepared.names.get(Side::Left)?, prepared.names.get(Side::Right)?);
    let read = read_ratings_with(path, None, &users, &items)?;
    Ok(TestSet { others: read.others, ..known(&read.known) })
}

fn known(edges: &EdgeList<f32>) -> TestSet {
    let ends = edges.left.iter().zip(&edges.right).zip(&edges.data);
    TestSet { known: ends.map(|((&user, &item), &rating)| (user, item, rating)).collect(), others: Vec::new() }
}

/// What one pass over all edges finds.
#[derive(Clone, Copy, Debug)]
pub struct Digest {
    /// Mean of the edge data.
    pub mean: f64,
    /// Checksum of ends and data.
    pub checksum: u64,
}

/// Passes over all edges. What it finds does not depend on the number of threads, nor on whether the edges came from a
/// text or from its cache.
pub fn digest<T: EdgeData>(edges: &Edges<T>, value: fn(&T) -> f64) -> anyhow::Result<Digest> {
    let Summary { sum, checksum } = edges.summarize(value).context("reading edges")?;
    Ok(Digest { mean: sum / edges.num_edges().max(1) as f64, checksum })
}
