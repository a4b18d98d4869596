//! Training of hubs and authorities: a graph in, both scores of its vertices out.

use std::path::Path;

use megagrid_algorithms::hits::{self, Hits, State};
use megagrid_engine::{Engine, Settings, Source};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Right, Sequence, Stages};
use serde::{Deserialize, Serialize};

use crate::algorithm::{Algorithm, MakeForm, Measured, Trainer};
use crate::form::form;
use crate::graph::{Graph, Ranked, Top, listing};
use crate::model::{Manifest, Model, Scored};
use crate::options::check_tolerance;
use crate::record::Metrics;
use crate::{Error, Options};

/// Options of hubs and authorities.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HitsOptions {
    /// Iterations at most.
    pub iterations: u64,
    /// L2 change of both unit vectors in an iteration that ends the run.
    pub tolerance: f64,
}

impl Default for HitsOptions {
    fn default() -> Self {
        Self { iterations: 100, tolerance: 1e-6 }
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

/// Hubs and authorities.
#[derive(Debug)]
pub struct HubsAndAuthorities;

impl Algorithm for HubsAndAuthorities {
    const NAME: &'static str = "hits";
    type Data = Graph;
    type Options = HitsOptions;
    type Model = Authorities;

    fn form(_: &HitsOptions) -> MakeForm<Self> {
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

    fn new(_: &Graph, options: &HitsOptions, _: &Settings) -> Result<Self, Error> {
        Ok(Self { tolerance: options.tolerance })
    }

    fn source<'d>(&'d self, graph: &'d Graph) -> Source<'d, (), Hits> {
        (&graph.edges).into()
    }

    fn sequence(&self) -> Sequence<Hits, impl Stages<Hits>> {
        hits::sequence()
    }

    fn init(&self, graph: &Graph, engine: &mut Engine<Hits>) -> Result<(), Error> {
        engine.set_global(State::new(graph.edges.num_vertices(Side::Left)));
        engine.init(Right, |_, first| *first.sync = hits::first());
        Ok(())
    }

    fn measure(&mut self, _: &Graph, engine: &mut Engine<Hits>) -> Result<Option<Measured>, Error> {
        let residual = engine.global().residual();
        Ok(Some(Measured {
            objective: residual,
            metrics: Metrics::from([("residual".into(), residual)]),
            converged: Some(residual <= self.tolerance),
            advice: "please report the graph",
        }))
    }

    fn model(&self, graph: &Graph, engine: &Engine<Hits>) -> Result<Authorities, Error> {
        let pages = engine.on(Right);
        let pages = (0..pages.len()).map(|page| *pages.sync(page));
        let [hubs, authorities] = hits::unit(pages).map(|scores| Ranked::new(&scores, &graph.names));
        Ok(Authorities { hubs: hubs?, authorities: authorities? })
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
        self.hubs.write(into, HUBS, manifest)?;
        self.authorities.write(into, AUTHORITIES, manifest)
    }

    fn read(from: &Path, _: &Manifest) -> Result<Self, Error> {
        Ok(Self { hubs: Ranked::read(from, HUBS)?, authorities: Ranked::read(from, AUTHORITIES)? })
    }

    fn answer(&self, top: &Top) -> Result<Vec<Scored>, Error> {
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
