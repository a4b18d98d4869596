//! Matrix factorization as the tuners' trainer: a clock is a pass, and its time is the ratings that it processed, so that runs are
//! reproducible and need no quiet machine. The objective is measured after each pass, and takes no time.

use megagrid_stages::{Left, Right};
use std::collections::BTreeMap;

use megagrid_algorithms::mf::in_place::{self, Mf};
use megagrid_algorithms::mf::{Config, Objective, SquaredErrors};
use megagrid_engine::{Branches, Engine, Settings};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side};
use megagrid_tuner::{Branch, Clock, Noise, ROOT, Setting, Trainer};

pub type Error = Box<dyn std::error::Error>;

/// Ratings to factorize.
pub struct Ratings {
    edges: GroupedEdges<f32>,
}

impl Ratings {
    pub fn new(edges: EdgeList<f32>) -> Self {
        Self { edges: GroupedEdges::new(edges, &[Side::Right]) }
    }

    pub fn len(&self) -> usize {
        self.edges.num_edges()
    }
}

/// A run and its branches.
pub struct Factorization<'r> {
    ratings: &'r Ratings,
    config: Config,
    seed: u64,
    branches: Branches<Mf>,
    settings: BTreeMap<u64, (f32, u64)>,
    /// What the engine is configured for.
    engine: (f32, u64),
}

impl<'r> Factorization<'r> {
    /// Begins a run with first values by a seed.
    pub fn new(ratings: &'r Ratings, config: Config, seed: u64) -> Result<Self, Error> {
        let edges = &ratings.edges;
        let sequence = in_place::sequence(config, edges.num_edges() as u64);
        let mut engine = Engine::new(edges, sequence, &settings(&config, seed, 0))?;
        engine.init(Left, |user, first| config.init_user(seed, user, first.sync));
        engine.init(Right, |item, first| config.init_item(seed, item, first.sync));
        let branches = Branches::new(engine, ROOT.0);
        let engine = (config.step, 0);
        Ok(Self { ratings, config, seed, branches, settings: BTreeMap::from([(ROOT.0, engine)]), engine })
    }

    fn configure(&mut self, setting: (f32, u64)) -> Result<(), Error> {
        if self.engine != setting {
            let (step, slack) = setting;
            let edges = &self.ratings.edges;
            let config = Config { step, ..self.config };
            let sequence = in_place::sequence(config, edges.num_edges() as u64);
            self.branches.engine().reconfigure(edges, sequence, &settings(&config, self.seed, slack))?;
            self.engine = setting;
        }
        Ok(())
    }
}

fn settings(config: &Config, seed: u64, slack: u64) -> Settings {
    Settings { workers: 1, seed, slack: Some(slack), dims: config.row_dims(), ..Settings::default() }
}

fn loss(engine: &mut Engine<Mf>, config: &Config) -> Result<f64, Error> {
    Ok(Objective::new(engine.total(SquaredErrors(*config))?, config.lambda).value)
}

impl Trainer for Factorization<'_> {
    type Error = Error;

    fn noise(&self) -> Noise {
        Noise::Exact
    }

    fn fork(&mut self, parent: Branch, child: Branch, setting: &Setting) -> Result<(), Error> {
        self.branches.fork(parent.0, child.0)?;
        let number = |name, default| setting.number(name).unwrap_or(default);
        let of_child = (number("step", f64::from(self.config.step)) as f32, number("slack", 0.0) as u64);
        self.settings.insert(child.0, of_child);
        Ok(())
    }

    fn schedule(&mut self, branch: Branch) -> Result<Clock, Error> {
        self.branches.select(branch.0)?;
        let setting = self.settings.get(&branch.0).copied().unwrap_or(self.engine);
        self.configure(setting)?;
        let engine = self.branches.engine();
        let mut samples = 0;
        let last = engine.iterations() + 1;
        engine.run_until(last, |_, report| {
            samples += report.updates;
            Ok(false)
        })?;
        Ok(Clock { time: samples as f64, loss: loss(engine, &self.config)?, tested: None, finished: false })
    }

    fn report(&mut self, branch: Branch) -> Result<f64, Error> {
        loss(self.branches.select(branch.0)?, &self.config)
    }

    fn free(&mut self, branch: Branch) -> Result<(), Error> {
        self.settings.remove(&branch.0);
        Ok(self.branches.free(branch.0)?)
    }
}
