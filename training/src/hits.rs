//! Training of hubs and authorities: a graph in, both scores of its vertices out.

use std::io;
use std::ops::Range;
use std::path::Path;

use megagrid_algorithms::hits::{self, Hits, State};
use megagrid_engine::{Engine, Settings, Source};
use megagrid_partition::{EdgeSource, Holders, Side};
use megagrid_stages::{Left, Right, Sequence, Stages};
use serde::{Deserialize, Serialize};

use crate::algorithm::{Algorithm, MakeForm};
use crate::data::{Data, NoOptions, Reading};
use crate::form::form;
use crate::graph::{Graph, Ranked, Top, listing};
use crate::measured::Measured;
use crate::model::{Manifest, Model, Scored};
use crate::options::{by_default, check_tolerance};
use crate::record::{InputSizes, Phases};
use crate::trainer::Trainer;
use crate::{Error, Options, input};

/// Options of hubs and authorities.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct HitsOptions {
    /// Iterations at most.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: u64,
    /// End when an iteration changes the unit vectors of hubs and authorities by no more than this (L2).
    #[arg(long, default_value_t = 1e-6, allow_negative_numbers = true)]
    pub tolerance: f64,
}

impl Default for HitsOptions {
    fn default() -> Self {
        by_default()
    }
}

impl Options for HitsOptions {
    fn check(&self) -> Result<(), Error> {
        check_tolerance(self.tolerance)
    }

    fn iterations(&self) -> u64 {
        self.iterations
    }
}

/// A graph whose vertices stand on each side once: as hubs that link, and as authorities that are linked to.
#[derive(Debug)]
pub struct Links(pub Graph);

impl EdgeSource<()> for Links {
    fn is_square(&self) -> bool {
        false
    }

    fn offsets(&self, side: Side) -> &[u64] {
        self.0.edges.offsets(side)
    }

    fn held_offsets(&self) -> &[u64] {
        self.0.edges.held_offsets()
    }

    fn distribute(&self, holders: Holders<'_>) -> io::Result<()> {
        self.0.edges.distribute(holders)
    }

    fn windows(&self) -> Vec<Range<usize>> {
        self.0.edges.windows()
    }

    fn visit_rows(&self, side: Side, rows: Range<usize>, visit: &mut dyn FnMut(&[u32], &[()])) -> io::Result<()> {
        self.0.edges.visit_rows(side, rows, visit)
    }

    fn visit_ends(&self, rows: Range<usize>, visit: &mut dyn FnMut(&[u64])) -> io::Result<()> {
        self.0.edges.visit_ends(rows, visit)
    }
}

impl Data for Links {
    type Options = NoOptions;

    fn read(source: &mut input::Source, options: &NoOptions, how: &Reading<'_>) -> Result<(Self, Phases), Error> {
        Graph::read(source, options, how).map(|(graph, phases)| (Self(graph), phases))
    }

    fn sizes(&self) -> InputSizes {
        self.0.sizes()
    }

    fn checksum(&self) -> Result<u64, Error> {
        self.0.checksum()
    }

    fn release(&mut self) {
        self.0.release();
    }
}

/// Hubs and authorities.
#[derive(Clone, Copy, Debug)]
pub struct HubsAndAuthorities;

impl Algorithm for HubsAndAuthorities {
    const NAME: &'static str = "hits";
    const ADVICE: &'static str = "please report the graph";
    type Data = Links;
    type Options = HitsOptions;
    type Model = Authorities;

    #[inline(never)]
    fn form(_: &Links, _: &HitsOptions) -> MakeForm<Self> {
        form::<Power>
    }
}

/// Trains by the power method.
struct Power {
    tolerance: f64,
}

impl Trainer for Power {
    type Algorithm = HubsAndAuthorities;
    type Program = Hits;
    type Edge = ();

    fn new(_: &Links, options: &HitsOptions, _: &Settings) -> Result<Self, Error> {
        Ok(Self { tolerance: options.tolerance })
    }

    fn source<'d>(&'d self, links: &'d Links) -> Source<'d, (), Hits> {
        links.into()
    }

    fn sequence(&self) -> Sequence<Hits, impl Stages<Hits>> {
        hits::sequence()
    }

    fn init(&self, links: &Links, engine: &mut Engine<Hits>) -> Result<(), Error> {
        engine.set_global(State::new(links.num_vertices(Side::Left)));
        engine.init(Left, |_, hub| *hub.sync = 1.0);
        Ok(())
    }

    fn is_due(&self, _: &Links, _: &Engine<Hits>) -> bool {
        true
    }

    fn measure(&mut self, _: &Links, engine: &mut Engine<Hits>) -> Result<Option<Measured>, Error> {
        Ok(Some(Measured::residual(engine.global().residual(), self.tolerance)))
    }

    fn model(&self, links: &Links, engine: &Engine<Hits>) -> Result<Authorities, Error> {
        let names = &links.0.names;
        let hubs = hits::unit(engine.on(Left).iter().copied().collect());
        let authorities = hits::unit(engine.on(Right).iter().copied().collect());
        Ok(Authorities { hubs: Ranked::new(&hubs, names)?, authorities: Ranked::new(&authorities, names)? })
    }
}

/// Vertices as hubs and as authorities, the best first.
#[derive(Clone, Debug)]
pub struct Authorities {
    /// Those that link to good authorities; the squares of their scores sum to 1.
    pub hubs: Ranked,
    /// Those that good hubs link to; the squares of their scores sum to 1.
    pub authorities: Ranked,
}

const HUBS: &str = "hubs";
const AUTHORITIES: &str = "authorities";
/// How many of the best are shown.
const SHOWN: usize = 5;

impl Model for Authorities {
    const KIND: &'static str = HubsAndAuthorities::NAME;
    type Question = Top;
    type Answer = Vec<Scored>;

    fn write(&self, into: &Path, manifest: &mut Manifest) -> Result<(), Error> {
        self.hubs.write(into, HUBS, &[], manifest)?;
        self.authorities.write(into, AUTHORITIES, &[], manifest)
    }

    fn read(from: &Path, _: &Manifest) -> Result<Self, Error> {
        let [hubs, authorities] = [HUBS, AUTHORITIES].map(|name| Ranked::read(from, name).map(|(ranked, _)| ranked));
        Ok(Self { hubs: hubs?, authorities: authorities? })
    }

    fn answer(&self, top: &Top) -> Result<Vec<Scored>, Error> {
        if top.set.is_some() {
            return Err(Error::option("a model of hits has no sets; rank with pagerank --restart-sets"));
        }
        Ok(if top.hubs { &self.hubs } else { &self.authorities }.top(top.number))
    }

    fn bytes(&self) -> u64 {
        self.hubs.bytes() + self.authorities.bytes()
    }

    fn findings(&self) -> String {
        let [authorities, hubs] = [&self.authorities, &self.hubs].map(|of| listing(&of.top(SHOWN)));
        format!("authorities\n{authorities}hubs\n{hubs}")
    }
}
