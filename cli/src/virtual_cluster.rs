//! Experiments: a training command as many virtual workers, in modelled time, and disturbed workers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use megagrid_engine::virtual_cluster::{Calibration, Costs, Link, Model, VirtualCluster};
use megagrid_engine::{Injection, Peers};
use serde::Serialize;

use crate::common::{self, Common};
use crate::failure::usage;

/// Options of experiments.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Experiments")]
#[group(id = "experiments")]
pub struct Options {
    /// Train with so many virtual workers in one process: real results, modelled time.
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub virtual_workers: Option<u32>,
    /// Every virtual worker's link: bandwidth, latency and processor time of a message [default: 1Gbit,100us,5us].
    #[arg(long, value_name = "BANDWIDTH,LATENCY[,CPU]", requires = "virtual_workers")]
    pub link: Option<Link>,
    /// What tasks cost, a file: read if there is one, else measured in a first iteration and written.
    #[arg(long, value_name = "FILE.json", requires = "virtual_workers")]
    pub calibration: Option<PathBuf>,
    /// What a clock of a virtual worker costs, instead of a calibration.
    #[arg(long, value_name = "SECONDS", requires = "virtual_workers", conflicts_with = "calibration")]
    pub clock_cost: Option<f64>,
    /// How much costs vary from clock to clock: their standard deviation, as a part of them.
    #[arg(long, value_name = "X", default_value_t = 0.0, requires = "virtual_workers")]
    pub jitter: f64,
    /// Disturb workers: delay:SECONDS or delay:SECONDS,TURNS, or disrupt:PROBABILITY,SECONDS. With delay a worker sleeps
    /// before a clock, each in turn, TURNS of them in a clock (1 unless said); with disrupt it has half its processor in
    /// some of the slots of that length.
    #[arg(long, value_name = "KIND:…")]
    pub inject: Option<Injection>,
}

/// The options of experiments, resolved; absent where there is no experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Resolved {
    #[serde(skip_serializing_if = "Option::is_none")]
    virtual_workers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    virtual_model: Option<Model>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inject: Option<Injection>,
}

impl Options {
    /// Returns the options as they stand in a run record; the model with the costs that were found.
    pub fn resolved(&self, peers: Option<&dyn Peers>) -> Resolved {
        let virtual_model = peers.and_then(Peers::virtual_cluster).map(|cluster| cluster.model().clone());
        Resolved { virtual_workers: self.virtual_workers, virtual_model, inject: self.inject }
    }

    fn check(&self) -> anyhow::Result<()> {
        if !(0.0..=1.0).contains(&self.jitter) {
            return Err(usage(format!("jitter is {}; expected 0 to 1", self.jitter)));
        }
        match self.clock_cost {
            Some(seconds) if !(0.0..=86400.0).contains(&seconds) => {
                Err(usage(format!("clock-cost is {seconds}; expected 0 to 86400 seconds")))
            }
            _ => Ok(()),
        }
    }

    fn model(&self, costs: Costs, seed: u64) -> Model {
        Model { link: self.link.unwrap_or_default(), costs, jitter: self.jitter, seed }
    }
}

/// Runs a training command: alone, as one of several processes, or as each of many virtual workers.
pub fn train<A: Clone + Sync>(
    mut args: A,
    common: fn(&mut A) -> &mut Common,
    run: fn(&A) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let options = common(&mut args).experiment.clone();
    let Some(workers) = options.virtual_workers else {
        common(&mut args).join()?;
        return run(&args);
    };
    options.check()?;
    let of_all = common(&mut args);
    if of_all.workers.is_some_and(|threads| threads != 1) {
        return Err(usage("a virtual worker has one thread; leave out --workers"));
    }
    of_all.workers = Some(1);
    let seed = of_all.seed;
    common::start_readers(std::thread::available_parallelism()?.get())?;
    let cluster = |costs| VirtualCluster::new(workers as usize, options.model(costs, seed));
    let run_as = |cluster: &Arc<VirtualCluster>, is_trial: bool| {
        first_failure(cluster.run(|peers| {
            let mut args = args.clone();
            let of_one = common(&mut args);
            of_one.is_trial = is_trial;
            if is_trial {
                of_one.checkpoint = crate::checkpoint::Options::default();
            }
            if is_trial || peers.process() > 0 {
                of_one.be_silent();
            }
            of_one.peers = Some(peers);
            run(&args)
        }))
    };
    let costs = match (&options.clock_cost, &options.calibration) {
        (Some(seconds), _) => Costs::Clock(*seconds),
        (None, Some(file)) if file.exists() => Costs::Calibrated(read(file)?),
        (None, file) => {
            let trial = cluster(Costs::Measured);
            run_as(&trial, true)?;
            let calibration = trial.calibration();
            if let Some(file) = file {
                common::write_text(file, &(serde_json::to_string_pretty(&calibration)? + "\n"))?;
            }
            Costs::Calibrated(calibration)
        }
    };
    run_as(&cluster(costs), false)
}

fn read(file: &Path) -> anyhow::Result<Calibration> {
    let place = || format!("{}: the calibration cannot be read", file.display());
    serde_json::from_str(&std::fs::read_to_string(file).with_context(place)?).with_context(place)
}

/// Returns the failure that others follow from, if any failed.
fn first_failure(outcomes: Vec<anyhow::Result<()>>) -> anyhow::Result<()> {
    use megagrid_engine::Error::Elsewhere;
    let mut failures: Vec<anyhow::Error> = outcomes.into_iter().filter_map(Result::err).collect();
    let follows =
        |failure: &anyhow::Error| failure.chain().any(|cause| matches!(cause.downcast_ref(), Some(Elsewhere { .. })));
    failures.sort_by_key(follows);
    failures.into_iter().next().map_or(Ok(()), Err)
}
