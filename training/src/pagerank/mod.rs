//! Training of PageRank: a graph in, ranks out.

mod data;
mod restart;

use std::marker::PhantomData;
use std::path::Path;

pub use data::{LinkOptions, Links, Web};
use megagrid_algorithms::pagerank::{self, Damping, Follow, Start, scores};
use megagrid_engine::{Engine, Settings, Source};
use megagrid_partition::Side;
use megagrid_stages::{Exchange, Right, Sequence, Stages};
use serde::{Deserialize, Serialize};

use self::data::Link;
use crate::algorithm::Algorithm;
use crate::data::Data;
use crate::form::form;
use crate::graph::{Ranked, Top, listing};
use crate::measured::Measured;
use crate::model::{Manifest, Model, Scored};
use crate::options::{by_default, check_tolerance};
use crate::record::Metrics;
use crate::run::MakeForm;
use crate::trainer::Trainer;
use crate::{Error, Options, UpdatedOn};

/// Options of PageRank.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct RankOptions {
    /// The chance of following a link instead of restarting, above 0 and below 1.
    #[arg(long, default_value_t = Damping::DEFAULT.get(), allow_negative_numbers = true)]
    pub damping: f64,
    /// Iterations at most.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// End when an iteration changes the scores by no more than this, in total (L1).
    #[arg(long, default_value_t = 1e-6, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Part of an iteration between two clocks; PageRank takes 1 only.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true, value_name = "X", help_heading = "Consistency")]
    pub work_per_clock: f64,
    /// Follows from the data: a checksum of where the surfer restarts.
    #[arg(skip)]
    pub restart_checksum: Option<String>,
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
    type Data = Web;
    type Options = RankOptions;
    type Model = Ranks;

    fn start_from(web: &mut Web, _: &RankOptions, Ranks(model): Ranks) -> Result<(), Error> {
        let places = web.names().get(Side::Left)?.translate(&model.names);
        web.start = places.into_iter().map(|place| Some(model.scores[place? as usize])).collect();
        Ok(())
    }

    fn updated_on(_: &Ranks) -> Result<UpdatedOn, Error> {
        Ok(UpdatedOn::All)
    }

    #[inline(never)]
    fn form(web: &Web, _: &RankOptions) -> MakeForm<Self> {
        match web.links {
            Links::Plain(_) => form::<Ranker<()>>,
            Links::Weighted(..) => form::<Ranker<f32>>,
        }
    }
}

/// Trains ranks; `L` is what a link carries.
struct Ranker<L> {
    damping: Damping,
    tolerance: f64,
    links: u64,
    link: PhantomData<fn() -> L>,
}

impl<L: Link> Trainer for Ranker<L>
where
    Follow: Exchange<L::Program>,
{
    type Algorithm = Ranking;
    type Program = L::Program;
    type Edge = L;

    fn new(web: &Web, options: &RankOptions, _: &Settings) -> Result<Self, Error> {
        let (damping, links) = (Damping::new(options.damping)?, web.sizes().edges as u64);
        Ok(Self { damping, tolerance: options.tolerance, links, link: PhantomData })
    }

    fn resolved(&self, web: &Web, options: &RankOptions) -> RankOptions {
        let restart_checksum = web.restart_checksum().map(|checksum| format!("{checksum:016x}"));
        RankOptions { restart_checksum, ..options.clone() }
    }

    fn source<'d>(&'d self, web: &'d Web) -> Source<'d, L, L::Program> {
        L::of(&web.links).into()
    }

    fn sequence(&self) -> Sequence<L::Program, impl Stages<L::Program>> {
        pagerank::sequence(self.damping, self.links)
    }

    fn init(&self, web: &Web, engine: &mut Engine<L::Program>) -> Result<(), Error> {
        let out_weight = web.links.out_weight();
        let start = Start::new(self.damping, web.links.pages(), web.restart(), &*out_weight).at(&web.start);
        engine.set_global(start.state());
        engine.init(Right, |page, first| (*first.master, *first.sync) = start.page(page));
        Ok(())
    }

    fn is_due(&self, _: &Web, _: &Engine<L::Program>) -> bool {
        true
    }

    fn measure(&mut self, _: &Web, engine: &mut Engine<L::Program>) -> Result<Option<Measured>, Error> {
        Ok(Some(Measured::residual(engine.global().residual, self.tolerance)))
    }

    fn model(&self, web: &Web, engine: &Engine<L::Program>) -> Result<Ranks, Error> {
        let pages = engine.on(Right);
        let scores = scores((0..pages.len()).map(|page| *pages.master(page)));
        Ranked::new(&scores, web.names()).map(Ranks)
    }
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
