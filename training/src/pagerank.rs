//! Training of PageRank: a graph in, ranks out.

use std::path::Path;
use std::sync::Arc;

use megagrid_algorithms::pagerank::{self, Damping, PageRank, Start, scores};
use megagrid_datasets::output::{Column, write_table, write_vector};
use megagrid_datasets::{Dictionary, Names};
use megagrid_engine::{Engine, Settings, Source};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Right, Sequence, Stages};
use serde::{Deserialize, Serialize};

use crate::algorithm::{Algorithm, Measured, Trainer};
use crate::form::{MakeForm, form};
use crate::graph::Graph;
use crate::model::{self, Manifest, Model, Scored};
use crate::options::check_tolerance;
use crate::record::Metrics;
use crate::{Error, Options};

/// Options of PageRank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RankOptions {
    /// The chance of following a link instead of restarting.
    pub damping: f64,
    /// Names of the vertices to restart at; none: all.
    pub restart: Vec<String>,
    /// Iterations at most.
    pub iterations: u64,
    /// L1 change of the scores in an iteration that ends the run.
    pub tolerance: f64,
    /// Part of an iteration between two clocks: 1.
    pub work_per_clock: f64,
}

impl Default for RankOptions {
    fn default() -> Self {
        let damping = Damping::DEFAULT.get();
        Self { damping, restart: Vec::new(), iterations: 100, tolerance: 1e-6, work_per_clock: 1.0 }
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
#[derive(Debug)]
pub struct Ranking;

impl Algorithm for Ranking {
    const NAME: &'static str = "pagerank";
    type Data = Graph;
    type Options = RankOptions;
    type Model = Ranks;

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

    fn measure(&mut self, _: &Graph, engine: &mut Engine<PageRank>) -> Result<Option<Measured>, Error> {
        let residual = engine.global().residual;
        Ok(Some(Measured {
            objective: residual,
            metrics: Metrics::from([("residual".into(), residual)]),
            converged: Some(residual <= self.tolerance),
            advice: "please report the graph",
        }))
    }

    fn model(&self, graph: &Graph, engine: &Engine<PageRank>) -> Result<Ranks, Error> {
        let pages = engine.on(Right);
        let scores = scores((0..pages.len()).map(|page| *pages.master(page)));
        Ranks::new(scores, &graph.names)
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

/// Vertices and their scores, best first.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// Names of the vertices.
    pub names: Arc<Dictionary>,
    /// Their scores, which sum to 1.
    pub scores: Vec<f32>,
}

/// The file of names and scores, and that of scores.
const TABLE: &str = "scores.parquet";
const SCORES: &str = "scores.npy";
/// How many of the best are shown.
const SHOWN: usize = 10;

impl Ranks {
    fn new(scores: Vec<f32>, names: &Names) -> Result<Self, Error> {
        let order = descending(&scores);
        let sorted = order.iter().map(|&page| scores[page as usize]).collect();
        Ok(Self { names: Arc::new(names.get(Side::Left)?.reorder(&order)), scores: sorted })
    }
}

/// Returns vertices by their scores, best first, ties by id.
pub(crate) fn descending(scores: &[f32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..scores.len() as u32).collect();
    rayon::slice::ParallelSliceMut::par_sort_by(&mut order[..], |&a, &b| {
        scores[b as usize].total_cmp(&scores[a as usize]).then(a.cmp(&b))
    });
    order
}

/// Asks for the best vertices.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Top {
    /// How many.
    pub number: usize,
}

impl Model for Ranks {
    const KIND: &'static str = Ranking::NAME;
    type Question = Top;
    type Answer = Vec<Scored>;

    fn write(&self, into: &Path, manifest: &mut Manifest) -> Result<(), Error> {
        manifest.shape(SCORES, &[self.scores.len()]);
        let score = Column::F32((&self.scores).into());
        write_table(&into.join(TABLE), &[("id", Column::Names(&self.names)), ("score", score)])?;
        Ok(write_vector(&into.join(SCORES), &self.scores)?)
    }

    fn read(from: &Path, _: &Manifest) -> Result<Self, Error> {
        let path = from.join(TABLE);
        let [ids, scores] = model::columns(&path, ["id", "score"])?;
        let Some(Column::F32(scores)) = scores else {
            return Err(Error::invalid(&path, format!("no column score of numbers; {}", model::DAMAGED)));
        };
        Ok(Self { names: Arc::new(model::names(&path, ids)?), scores: scores.into_owned() })
    }

    fn answer(&self, top: &Top) -> Result<Vec<Scored>, Error> {
        let best = self.scores.iter().take(top.number).zip(0..);
        Ok(best.map(|(&score, at)| Scored { name: self.names.name(at).into_owned(), score: score.into() }).collect())
    }

    fn bytes(&self) -> u64 {
        size_of_val(&self.scores[..]) as u64
    }

    fn metrics(&self) -> Metrics {
        // Scores get their common factor at the end, so that there is a sum only now.
        Metrics::from([("sum".into(), self.scores.iter().map(|&score| f64::from(score)).sum())])
    }

    fn findings(&self) -> String {
        self.answer(&Top { number: SHOWN }).map(|best| listing(&best)).unwrap_or_default()
    }
}

/// Lists vertices with their places.
#[must_use]
pub fn listing(best: &[Scored]) -> String {
    let line = |(at, one): (usize, &Scored)| format!("{at:>5}  {:.6e}  {}\n", one.score, one.name);
    (1..).zip(best).map(line).collect()
}
