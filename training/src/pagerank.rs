//! Training of PageRank: a graph in, ranks out.

use std::path::Path;

use megagrid_algorithms::pagerank::{self, Damping, PageRank, Start, scores};
use megagrid_datasets::Names;
use megagrid_engine::{Engine, Settings, Source};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Right, Sequence, Stages};
use serde::{Deserialize, Serialize};

use crate::algorithm::{Algorithm, MakeForm, Measured, Trainer};
use crate::form::form;
use crate::graph::{Graph, Ranked, Top, listing};
use crate::model::{Manifest, Model, Scored};
use crate::options::{by_default, check_tolerance};
use crate::record::Metrics;
use crate::{Error, Options};

/// Options of PageRank.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct RankOptions {
    /// The chance of following a link instead of restarting, above 0 and below 1.
    #[arg(long, default_value_t = Damping::DEFAULT.get(), allow_negative_numbers = true)]
    pub damping: f64,
    /// Restart at these vertices only, by their names in the input (personalized).
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
}

impl Default for RankOptions {
    fn default() -> Self {
        by_default()
    }
}

impl Options for RankOptions {
    const FREE: &'static [&'static str] = &["iterations", "tolerance", "work_per_clock"];

    fn check(&self) -> Result<(), Error> {
        Damping::new(self.damping)?;
        check_tolerance(self.tolerance)?;
        if self.work_per_clock != 1.0 {
            let found = self.work_per_clock;
            let message = format!("work-per-clock is {found}; PageRank settles all scores at once and takes 1 only");
            return Err(Error::option(message));
        }
        Ok(())
    }

    fn iterations(&self) -> u64 {
        self.iterations
    }

    fn tolerance(&self) -> f64 {
        self.tolerance
    }
}

/// PageRank.
#[derive(Clone, Copy, Debug)]
pub struct Ranking;

impl Algorithm for Ranking {
    const NAME: &'static str = "pagerank";
    const ADVICE: &'static str = "please report the graph";
    type Data = Graph;
    type Options = RankOptions;
    type Model = Ranks;

    #[inline(never)]
    fn form(_: &RankOptions) -> MakeForm<Self> {
        form::<Ranker>
    }
}

/// Trains ranks.
struct Ranker {
    damping: Damping,
    tolerance: f64,
    /// Vertices to restart at; none: all.
    sources: Vec<usize>,
    links: u64,
}

impl Trainer for Ranker {
    type Algorithm = Ranking;
    type Program = PageRank;

    fn new(graph: &Graph, options: &RankOptions, _: &Settings) -> Result<Self, Error> {
        let damping = Damping::new(options.damping)?;
        let sources = sources(&options.restart, &graph.names)?;
        Ok(Self { damping, tolerance: options.tolerance, sources, links: graph.edges.num_edges() as u64 })
    }

    fn source<'d>(&'d self, graph: &'d Graph) -> Source<'d, (), PageRank> {
        (&graph.edges).into()
    }

    fn sequence(&self) -> Sequence<PageRank, impl Stages<PageRank>> {
        pagerank::sequence(self.damping, self.links)
    }

    fn init(&self, graph: &Graph, engine: &mut Engine<PageRank>) -> Result<(), Error> {
        let offsets = graph.edges.offsets(Side::Left);
        let out_degree = |page: usize| offsets[page + 1] - offsets[page];
        let start = Start::new(self.damping, graph.edges.num_vertices(Side::Left), &self.sources, &out_degree);
        engine.set_global(start.state());
        engine.init(Right, |page, first| (*first.master, *first.sync) = start.page(page));
        Ok(())
    }

    fn is_due(&self, _: &Graph, _: &Engine<PageRank>) -> bool {
        true
    }

    fn measure(&mut self, _: &Graph, engine: &mut Engine<PageRank>) -> Result<Option<Measured>, Error> {
        Ok(Some(Measured::residual(engine.global().residual, self.tolerance)))
    }

    fn model(&self, graph: &Graph, engine: &Engine<PageRank>) -> Result<Ranks, Error> {
        let pages = engine.on(Right);
        let scores = scores((0..pages.len()).map(|page| *pages.master(page)));
        Ranked::new(&scores, &graph.names).map(Ranks)
    }
}

/// Finds the vertices to restart at.
fn sources(wanted: &[String], names: &Names) -> Result<Vec<usize>, Error> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let lookup = names.get(Side::Left)?.lookup();
    let find = |name: &String| {
        let found = lookup.find(name).map(|id| id as usize);
        found.ok_or_else(|| {
            Error::Missing(format!("--restart: no vertex \"{name}\" in the graph; name vertices as the input does"))
        })
    };
    wanted.iter().map(find).collect()
}

/// Vertices and their scores, which sum to 1.
#[derive(Clone, Debug)]
pub struct Ranks(pub Ranked);

/// The name of its files.
const SCORES: &str = "scores";
/// How many of the best are shown.
const SHOWN: usize = 10;

impl Model for Ranks {
    const KIND: &'static str = Ranking::NAME;
    type Question = Top;
    type Answer = Vec<Scored>;

    fn write(&self, into: &Path, manifest: &mut Manifest) -> Result<(), Error> {
        self.0.write(into, SCORES, manifest)
    }

    fn read(from: &Path, _: &Manifest) -> Result<Self, Error> {
        Ok(Self(Ranked::read(from, SCORES)?))
    }

    fn answer(&self, top: &Top) -> Result<Vec<Scored>, Error> {
        if top.hubs {
            return Err(Error::option("a model of pagerank has no hubs; train one with hits"));
        }
        Ok(self.0.top(top.number))
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn metrics(&self) -> Metrics {
        // Scores get their common factor at the end, so that there is a sum only now.
        Metrics::from([("sum".into(), self.0.scores.iter().map(|&score| f64::from(score)).sum())])
    }

    fn findings(&self) -> String {
        listing(&self.0.top(SHOWN))
    }
}
