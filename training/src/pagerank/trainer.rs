//! Training of ranks, for one distribution of restarts or for several.

use std::marker::PhantomData;

use megagrid_algorithms::pagerank::{self, Damping, Follow, Start, States, scores};
use megagrid_engine::{Engine, Settings, Source};
use megagrid_partition::Side;
use megagrid_stages::{Exchange, Right, Sequence, Stages};

use super::data::{Link, Links, Web};
use super::model::Ranks;
use super::options::RankOptions;
use crate::algorithm::{Algorithm, MakeForm};
use crate::data::Data;
use crate::form::form;
use crate::measured::Measured;
use crate::trainer::Trainer;
use crate::{Error, Model, UpdatedOn};

/// PageRank.
#[derive(Clone, Copy, Debug)]
pub struct Ranking;

impl Algorithm for Ranking {
    const NAME: &'static str = Ranks::KIND;
    const ADVICE: &'static str = "please report the graph";
    type Data = Web;
    type Options = RankOptions;
    type Model = Ranks;

    fn start_from(web: &mut Web, _: &RankOptions, Ranks { ranked: model, .. }: Ranks) -> Result<(), Error> {
        if !web.restart_sets().is_empty() {
            return Err(Error::option("--restart-sets ranks from where surfers restart; leave --from out"));
        }
        let places = web.names().get(Side::Left)?.translate(&model.names);
        web.start = places.into_iter().map(|place| Some(model.scores[place? as usize])).collect();
        Ok(())
    }

    fn updated_on(model: &Ranks) -> Result<UpdatedOn, Error> {
        if model.sets.is_empty() {
            return Ok(UpdatedOn::All);
        }
        Err(Error::option("a model of --restart-sets is not updated; rank the whole graph anew"))
    }

    #[inline(never)]
    fn form(web: &Web, _: &RankOptions) -> MakeForm<Self> {
        match (&web.links, web.restart_sets().is_empty()) {
            (Links::Plain(_), true) => form::<Ranker<()>>,
            (Links::Plain(_), false) => form::<SetsRanker<()>>,
            (Links::Weighted(..), true) => form::<Ranker<f32>>,
            (Links::Weighted(..), false) => form::<SetsRanker<f32>>,
        }
    }
}

/// What both forms are told by options and data.
struct Setup {
    damping: Damping,
    tolerance: f64,
    links: u64,
}

impl Setup {
    fn new(web: &Web, options: &RankOptions) -> Result<Self, Error> {
        let (damping, links) = (Damping::new(options.damping)?, web.sizes().edges as u64);
        Ok(Self { damping, tolerance: options.tolerance, links })
    }

    /// A run with a tolerance ends where single precision comes no nearer to it.
    fn measured(&self, residual: f64, is_at_rounding: bool) -> Measured {
        let measured = Measured::residual(residual, self.tolerance);
        let ends = is_at_rounding && self.tolerance > 0.0;
        Measured { converged: measured.converged.map(|converged| converged || ends), ..measured }
    }
}

/// Returns options with what follows from where surfers restart.
fn resolved(web: &Web, options: &RankOptions) -> RankOptions {
    RankOptions { restart_checksum: web.restart_checksum_text(), ..options.clone() }
}

/// Trains ranks; `L` is what a link carries.
struct Ranker<L> {
    setup: Setup,
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
        Ok(Self { setup: Setup::new(web, options)?, link: PhantomData })
    }

    fn resolved(&self, web: &Web, options: &RankOptions) -> RankOptions {
        resolved(web, options)
    }

    fn source<'d>(&'d self, web: &'d Web) -> Source<'d, L, L::Program> {
        L::of(&web.links).into()
    }

    fn sequence(&self) -> Sequence<L::Program, impl Stages<L::Program>> {
        pagerank::sequence(self.setup.damping, self.setup.links)
    }

    fn init(&self, web: &Web, engine: &mut Engine<L::Program>) -> Result<(), Error> {
        let out_weight = web.links.out_weight();
        let start = Start::new(self.setup.damping, web.links.pages(), web.restart(), &*out_weight).at(&web.start);
        engine.set_global(start.state());
        engine.init(Right, |page, first| (*first.master, *first.sync) = start.page(page));
        Ok(())
    }

    fn is_due(&self, _: &Web, _: &Engine<L::Program>) -> bool {
        true
    }

    fn measure(&mut self, _: &Web, engine: &mut Engine<L::Program>) -> Result<Option<Measured>, Error> {
        let state = engine.global();
        Ok(Some(self.setup.measured(state.residual, state.is_at_rounding())))
    }

    fn model(&self, web: &Web, engine: &Engine<L::Program>) -> Result<Ranks, Error> {
        let pages = engine.on(Right);
        let scores = scores((0..pages.len()).map(|page| *pages.master(page)));
        Ranks::new(&scores, web.names())
    }
}

/// Trains ranks for several sets; `L` is what a link carries.
struct SetsRanker<L> {
    setup: Setup,
    sets: usize,
    link: PhantomData<fn() -> L>,
}

impl<L: Link> Trainer for SetsRanker<L>
where
    Follow: Exchange<L::OfSets>,
{
    type Algorithm = Ranking;
    type Program = L::OfSets;
    type Edge = L;

    fn new(web: &Web, options: &RankOptions, _: &Settings) -> Result<Self, Error> {
        Ok(Self { setup: Setup::new(web, options)?, sets: web.restart_sets().len(), link: PhantomData })
    }

    fn resolved(&self, web: &Web, options: &RankOptions) -> RankOptions {
        resolved(web, options)
    }

    fn dims(&self) -> usize {
        self.sets
    }

    fn source<'d>(&'d self, web: &'d Web) -> Source<'d, L, L::OfSets> {
        L::of(&web.links).into()
    }

    fn sequence(&self) -> Sequence<L::OfSets, impl Stages<L::OfSets>> {
        pagerank::sequence_of_sets(self.setup.damping, self.setup.links)
    }

    fn init(&self, web: &Web, engine: &mut Engine<L::OfSets>) -> Result<(), Error> {
        let (out_weight, pages) = (web.links.out_weight(), web.links.pages());
        let start = |restart| Start::new(self.setup.damping, pages, Some(restart), &*out_weight);
        let starts: Vec<Start<'_>> = web.restart_sets().iter().map(start).collect();
        engine.set_global(States(starts.iter().map(Start::state).collect()));
        engine.init(Right, |page, first| {
            for ((start, rank), passed) in starts.iter().zip(&mut *first.master).zip(&mut *first.sync) {
                (*rank, *passed) = start.page(page);
            }
        });
        Ok(())
    }

    fn is_due(&self, _: &Web, _: &Engine<L::OfSets>) -> bool {
        true
    }

    /// The run ends when the scores of all sets hardly change.
    fn measure(&mut self, _: &Web, engine: &mut Engine<L::OfSets>) -> Result<Option<Measured>, Error> {
        let states = engine.global();
        Ok(Some(self.setup.measured(states.residual(), states.are_at_rounding(self.setup.tolerance))))
    }

    fn model(&self, web: &Web, engine: &Engine<L::OfSets>) -> Result<Ranks, Error> {
        let pages = engine.on(Right);
        let of = |set: usize| scores((0..pages.len()).map(|page| pages.master(page)[set]));
        Ranks::of_sets((0..self.sets).map(of).collect(), web.names())
    }
}
