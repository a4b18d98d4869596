//! What training would make of an input in several processes: under each strategy of placing edges, by the plans of its command.

use std::fmt::Write;
use std::sync::Arc;

use megagrid_engine::plan::{Plan, Strategy};
use megagrid_engine::{Peers, Settings};
use megagrid_partition::EdgeSource;
use megagrid_training::blockpg::{Regression, Samples};
use megagrid_training::graph::Graph;
use megagrid_training::lda::{Documents, TopicModels, TopicOptions};
use megagrid_training::mf::{Factorization, Ratings};
use megagrid_training::pagerank::Ranking;
use megagrid_training::{Algorithm, Error, planned};
use serde::Serialize;

use crate::data::Grouped;
use crate::plan::Planned;
use crate::progress;

/// The training command of an input, with default options, on all cores of each process.
#[derive(Serialize)]
pub struct Training {
    pub command: &'static str,
    /// Bytes of grid and vertex data in one process.
    pub memory_bytes: u64,
    /// What each strategy makes of it in several processes; nothing in one.
    pub cuts: Vec<Cut>,
}

/// A strategy, and the figures that `megagrid plan` has of it.
#[derive(Serialize)]
pub struct Cut {
    strategy: &'static str,
    /// In words.
    placement: String,
    replication_factor: f64,
    /// What all processes send in an iteration; `None` where it depends on the data, or on time.
    bytes: Option<u64>,
    edge_balance: f64,
    worker_balance: f64,
    /// Of the process that needs most.
    memory_bytes: u64,
}

impl Training {
    /// Makes the plans for an input; `None`: no command trains on it.
    ///
    /// # Errors
    /// What making a plan refuses, other than a strategy.
    pub fn of(input: Grouped, processes: u32) -> anyhow::Result<Option<Self>> {
        match input {
            Grouped::Graph(graph) if !graph.edges.is_square() => Ok(None),
            Grouped::Graph(graph) => Self::by::<Ranking>(Graph::of(graph), Default::default(), processes),
            Grouped::Ratings(ratings) => {
                Self::by::<Factorization>(Ratings::to_plan(ratings), Default::default(), processes)
            }
            Grouped::Samples(samples) => {
                Self::by::<Regression>(Samples::to_plan(samples.edges), Default::default(), processes)
            }
            Grouped::Corpus(corpus) => {
                let documents = Documents::of(corpus, None)?;
                let mut options = TopicOptions::default();
                options.topics = options.topics.min(documents.tokens.total as usize);
                Self::by::<TopicModels>(documents, options, processes)
            }
        }
    }

    fn by<A: Algorithm>(data: A::Data, options: A::Options, processes: u32) -> anyhow::Result<Option<Self>> {
        let data = Arc::new(data);
        let plan = |settings: Settings| planned::<A>(&data, &options, settings);
        let memory_bytes = plan(Settings::default())?.memory_bytes;
        let mut cuts = Vec::new();
        for (_, strategy) in Strategy::NAMES.into_iter().filter(|_| processes > 1) {
            let peers: Option<Arc<dyn Peers>> = Some(Arc::new(Planned(processes as usize)));
            match plan(Settings { peers, strategy, ..Settings::default() }) {
                Ok(plan) => cuts.push(Cut::of(strategy, &plan)),
                // One that the command does not run under.
                Err(Error::Engine(megagrid_engine::Error::Strategy { .. })) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(Self { command: A::NAME, memory_bytes, cuts }))
    }

    /// Returns a table of the cuts; nothing in one process.
    pub fn table(&self, processes: u32) -> String {
        if self.cuts.is_empty() {
            return String::new();
        }
        let mut text = format!("{} in {processes} processes, an iteration:\n", self.command);
        let name = "strategy";
        let _ = writeln!(
            text,
            "  {name:<9}{:>12}{:>14}{:>14}{:>12}{:>12}  placement",
            "replication", "bytes", "edge balance", "of workers", "memory"
        );
        for cut in &self.cuts {
            let bytes = cut.bytes.map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
            let _ = writeln!(
                text,
                "  {:<9}{:>12.3}{bytes:>14}{:>14.3}{:>12.3}{:>12}  {}",
                cut.strategy,
                cut.replication_factor,
                cut.edge_balance,
                cut.worker_balance,
                progress::bytes(cut.memory_bytes),
                cut.placement
            );
        }
        text
    }
}

impl Cut {
    fn of(strategy: Strategy, plan: &Plan) -> Self {
        Self {
            strategy: strategy.name(),
            placement: plan.placement.to_string(),
            replication_factor: plan.quality.replication_factor,
            bytes: plan.traffic.map(|traffic| traffic.total().bytes),
            edge_balance: plan.quality.edge_balance,
            worker_balance: plan.quality.worker_balance,
            memory_bytes: plan.memory_bytes,
        }
    }
}
