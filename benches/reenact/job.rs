//! Jobs on the virtual cluster: inputs, programs and what is measured of them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use megagrid_algorithms::blockpg::{self, BlockPg, Margin, Region};
use megagrid_algorithms::lda::{self, Dense, Lda, Sampling, Tokens, Vertices, edge_len, fill_edge, log_likelihood};
use megagrid_algorithms::mf::{self, batch, in_place};
use megagrid_datasets::synthetic::{ClicksSettings, CorpusSettings};
use megagrid_engine::virtual_cluster::{Calibration, Costs, Link, Model, VirtualCluster};
use megagrid_engine::{Engine, Error, Injection, IterationReport, Peers, Settings, Source, Topology, Traffic};
use megagrid_partition::{EdgeSource, GroupedEdges, Side};
use megagrid_stages::{Left, Program, Right};

use megagrid_benches::findings::root;

/// How many virtual workers there are, and what they may do.
#[derive(Clone)]
pub struct Shape {
    pub workers: usize,
    pub slack: u64,
    /// Iterations of a clock, where it has several.
    pub passes: u64,
    /// Iterations from one measurement to the next, where they flow into each other.
    pub look_every: u64,
    /// Whether rows come back when they would be too old (SSP), rather than after every clock (ESSP).
    pub lazy: bool,
    /// Where values under way are bounded (VAP), and slack is not: for the first clock.
    pub first_bound: Option<f64>,
    pub model: Model,
    pub inject: Option<Injection>,
    pub seed: u64,
}

impl Shape {
    /// Eight workers without slack whose clocks cost so much.
    pub fn clocks(seconds: f64) -> Self {
        Self::of(Costs::Clock(seconds))
    }

    /// Eight workers without slack whose tasks cost what was measured once.
    pub fn calibrated() -> Self {
        Self::of(Costs::Calibrated(calibration()))
    }

    /// Eight workers, and what tasks cost.
    pub fn of(costs: Costs) -> Self {
        let model = Model { link: Link::default(), costs, jitter: 0.0, seed: 1 };
        Self {
            workers: 8,
            slack: 0,
            passes: 1,
            look_every: 1,
            lazy: true,
            first_bound: None,
            model,
            inject: None,
            seed: 1,
        }
    }

    fn settings(&self, peers: Arc<dyn Peers>, dims: usize) -> Settings {
        // The same shards on every machine.
        let topology = Topology { l2_bytes: 1 << 20, ..Topology::synthetic(1, 1) };
        Settings {
            workers: 1,
            slack: self.first_bound.is_none().then_some(self.slack),
            passes_per_clock: self.passes,
            look_every: Some(self.look_every),
            lazy: self.lazy,
            inject: self.inject,
            peers: Some(peers),
            seed: self.seed,
            dims,
            topology,
            ..Settings::default()
        }
    }

    /// Trains what `make` makes, and measures at each look, in no time; ends where the objective is no number.
    fn train<P: Program>(
        &self,
        (dims, iterations): (usize, u64),
        make: impl Fn(&Settings) -> Result<Engine<P>, Error> + Sync,
        objective: impl Fn(&mut Engine<P>) -> f64 + Sync,
    ) -> Ran {
        let model = self.model.clone();
        let cluster = match self.first_bound {
            Some(first_bound) => VirtualCluster::with_bounded_values(self.workers, model, first_bound),
            None => VirtualCluster::new(self.workers, model),
        };
        let mut ran = cluster.run(|peers| {
            let mut engine = make(&self.settings(peers, dims)).expect("a small job");
            let (mut objectives, mut reports) = (Vec::new(), Vec::new());
            let ended = engine.run_until(iterations, |engine, _| {
                reports.extend_from_slice(engine.reports());
                let found = objective(engine);
                objectives.push(found);
                Ok(!found.is_finite())
            });
            ended.expect("a run that ends");
            (objectives, reports)
        });
        let (objectives, reports) = ran.swap_remove(0);
        Ran { objectives, reports, calibration: cluster.calibration() }
    }

    /// Says in a line what is modelled.
    pub fn describe(&self) -> String {
        let costs = match &self.model.costs {
            Costs::Measured => "measured".to_owned(),
            Costs::Clock(seconds) => format!("{seconds} s a clock"),
            Costs::Calibrated(_) => "benches/reenact/calibration.json".to_owned(),
        };
        let Self { workers, model: Model { link, jitter, .. }, .. } = self;
        format!("{workers} workers; link {link}; costs: {costs}; jitter {jitter}")
    }
}

pub struct Ran {
    /// What the algorithm minimizes (or, LDA, maximizes), at each look.
    pub objectives: Vec<f64>,
    pub reports: Vec<IterationReport>,
    /// What tasks took.
    pub calibration: Calibration,
}

impl Ran {
    /// Returns the seconds up to the end of an iteration, from 1.
    pub fn seconds(&self, iterations: usize) -> f64 {
        self.reports[..iterations].iter().map(|report| report.seconds).sum()
    }

    /// Returns how often each staleness was read.
    pub fn staleness(&self) -> BTreeMap<i64, u64> {
        let mut all = BTreeMap::new();
        self.reports
            .iter()
            .flat_map(|report| &report.staleness)
            .for_each(|(age, n)| *all.entry(*age).or_insert(0) += n);
        all
    }

    /// Returns the bytes that a worker sends to masters in an iteration, mean over some, and those that it receives from them.
    pub fn bytes(&self, workers: usize, iterations: Range<usize>) -> (f64, f64) {
        let of = |bytes: fn(&Traffic) -> u64| {
            let sum: u64 = self.reports[iterations.clone()].iter().map(|report| bytes(&report.sent)).sum();
            sum as f64 / (workers * iterations.len()) as f64
        };
        (of(|sent| sent.changes.bytes), of(|sent| sent.fresh.bytes))
    }

    /// Returns the virtual seconds, and the iterations, to an objective, between iterations by a line; `None`: not reached.
    pub fn reaches(&self, target: f64, is_better: fn(f64, f64) -> bool) -> Option<(f64, f64)> {
        let at = self.objectives.iter().position(|&objective| is_better(objective, target))?;
        let (end, before) = (self.seconds(at + 1), self.seconds(at));
        let first = at.checked_sub(1).map(|at| self.objectives[at]);
        let part = first.map_or(1.0, |first| (target - first) / (self.objectives[at] - first));
        Some((before + part * (end - before), at as f64 + part))
    }
}

#[derive(Clone, Copy)]
pub struct Factorize {
    pub config: mf::Config,
    /// Ratings of a clock.
    pub batch: u64,
    pub iterations: u64,
}

impl Factorize {
    /// Iterations of a clock or less that are measured at the end only: for what depends on time and not on numbers.
    pub fn unmeasured(edges: &GroupedEdges<f32>, iterations: usize, shape: &Shape) -> Ran {
        let config = mf::Config { dims: 1, step: 1e-4, ..mf::Config::default() };
        let job = Self { config, batch: edges.num_edges() as u64, iterations: iterations as u64 };
        job.run(edges, &Shape { look_every: job.iterations, ..shape.clone() })
    }

    /// As [`Self::unmeasured`], by the gradients of all ratings: sums, of which with slack each worker's part is applied by itself.
    pub fn by_gradients(edges: &GroupedEdges<f32>, iterations: usize, shape: &Shape) -> Ran {
        let config = mf::Config { dims: 1, step: 1e-4, ..mf::Config::default() };
        let make = |settings: &Settings| {
            let sequence = batch::sequence(config, edges.num_edges() as u64);
            Engine::<batch::MfBatch>::new(edges, sequence, settings)
        };
        let shape = Shape { look_every: iterations as u64, ..shape.clone() };
        shape.train((config.row_dims(), iterations as u64), make, |_| 0.0)
    }

    /// The sum of squared errors after each iteration, without the regularizer. Ends when it is no number.
    pub fn run(&self, edges: &GroupedEdges<f32>, shape: &Shape) -> Ran {
        let Self { config, batch, iterations } = *self;
        let make = |settings: &Settings| {
            let mut engine = Engine::<in_place::Mf>::new(edges, in_place::sequence(config, batch), settings)?;
            engine.init(Left, |user, first| config.init_user(shape.seed, user, first.sync));
            engine.init(Right, |item, first| config.init_item(shape.seed, item, first.sync));
            Ok(engine)
        };
        shape.train((config.row_dims(), iterations), make, |engine| {
            let sums = engine.total(mf::SquaredErrors(config)).expect("all workers are here");
            mf::Objective::new(sums, config.lambda).rmse.powi(2) * edges.num_edges() as f64
        })
    }
}

/// A job of topic modelling with the dense sampler.
#[derive(Clone, Copy)]
pub struct Topics {
    pub config: lda::Config,
    pub iterations: u64,
}

impl Topics {
    /// The log likelihood after each iteration.
    pub fn run(&self, edges: &GroupedEdges<u32>, shape: &Shape) -> Ran {
        let Self { config, iterations } = *self;
        let tokens = Tokens::count(edges).expect("a corpus in memory");
        let make = |settings: &Settings| {
            let source = Source::slices(edges, edge_len, fill_edge);
            let mut engine = Engine::new(source, Dense::sequence(&config, &tokens), settings)?;
            engine.set_global(config.topics(tokens.of_words.len()));
            Ok(engine)
        };
        shape.train((config.num_topics, iterations), make, |engine: &mut Engine<Lda<Dense>>| {
            engine.collect().expect("all workers are here");
            if engine.plan().processes.this > 0 {
                return 0.0;
            }
            let (left, right) = (engine.on(Left), engine.on(Right));
            let documents = Vertices { len: left.len(), counts: &|id| left.sync(id) };
            let words = Vertices { len: right.len(), counts: &|id| right.sync(id) };
            log_likelihood(&engine.global(), &documents, &words, 1)
        })
    }
}

#[derive(Clone, Copy)]
pub struct Select {
    pub l1: f64,
    /// Values of a block of features, which is a clock.
    pub batch: u64,
    pub iterations: u64,
}

impl Select {
    /// The objective after each iteration.
    pub fn run(&self, edges: &GroupedEdges<f32>, shape: &Shape) -> Ran {
        let Self { l1, batch, iterations } = *self;
        let config = blockpg::Config { l1, l2: 0.0 };
        let make = |settings: &Settings| {
            let mut engine = Engine::<BlockPg>::new(edges, blockpg::sequence(batch), settings)?;
            engine.set_global(config.state());
            engine.init(Left, |_, first| {
                *first.master = Margin::new(0.0, 1.0, 1.0);
                *first.sync = first.master.parabola();
            });
            engine.init(Right, |_, first| {
                *first.master = Region::new(1.3);
                *first.sync = first.master.weight(0.0, false);
            });
            Ok(engine)
        };
        shape.train((1, iterations), make, |engine| {
            engine.collect().expect("all workers are here");
            let (left, right) = (engine.on(Left), engine.on(Right));
            let loss: f64 = (0..left.len()).map(|sample| (-left.master(sample).margin).exp().ln_1p()).sum();
            let size: f64 = (0..right.len()).map(|feature| right.sync(feature).value.abs()).sum();
            loss + l1 * size
        })
    }
}

/// Makes ratings without their mean.
pub fn ratings(users: usize, items: usize, count: usize) -> GroupedEdges<f32> {
    GroupedEdges::new(megagrid_benches::inputs::ratings(users, items, count), &[Side::Right])
}

/// Makes documents of planted topics.
pub fn corpus(documents: usize, words: usize, topics: usize) -> GroupedEdges<u32> {
    let settings =
        CorpusSettings { num_documents: documents, num_words: words, num_topics: topics, ..CorpusSettings::default() };
    let made = settings.generate().expect("a small corpus");
    GroupedEdges::new(made.corpus.data.in_degree_order().edges, &[Side::Right])
}

/// Makes labelled samples, each value times its label.
pub fn samples(samples: usize, features: usize) -> GroupedEdges<f32> {
    let settings = ClicksSettings { num_samples: samples, num_features: features, ..ClicksSettings::default() };
    let made = settings.generate().expect("some samples").samples;
    let mut edges = made.data.edges;
    let labels: Vec<f32> = made.labels.signs().collect();
    for (value, &sample) in edges.data.iter_mut().zip(&edges.left) {
        *value *= labels[sample as usize];
    }
    GroupedEdges::new(edges, &[Side::Right])
}

/// Where costs are kept, from the root.
pub const CALIBRATION: &str = "benches/reenact/calibration.json";

/// What tasks cost, measured once by `cargo reenact calibrate`.
fn calibration() -> Calibration {
    let path = root().join(CALIBRATION);
    let text = std::fs::read_to_string(&path).expect("a calibration, which `cargo reenact calibrate` makes");
    serde_json::from_str(&text).expect("a file that `cargo reenact calibrate` wrote")
}
