//! What a comparison asks of each training command.

use anyhow::Context;
use megagrid_algorithms::lda::Prior;
use megagrid_baselines::apps;
use megagrid_baselines::{Run, System as Baseline, list_by};
use megagrid_engine::Settings;
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side};

use super::baseline::{self, Start};
use super::systems::System;
use crate::common::{self, Common};
use crate::failure::usage;
use crate::lda::{PriorChoice, Sampler};
use crate::mf::Gradient;
use crate::record::{InputSizes, Machine, Phases};
use crate::{blockpg, input, lda, mf, pagerank};

/// A training command whose job runs on several systems.
pub trait Training {
    /// The command.
    const COMMAND: &'static str;
    /// Whether the objective grows.
    const MAXIMIZES: bool = false;

    /// Returns the common options.
    fn common(&mut self) -> &mut Common;

    /// Sets what a comparison decides: all iterations are run.
    fn settle(&mut self) -> anyhow::Result<()>;

    /// Tells whether a system runs the job, or what to do about it.
    fn runs_on(&self, system: System) -> Result<(), &'static str>;

    /// Checks the options before anything runs.
    fn check(&self) -> anyhow::Result<()>;

    /// Runs the job on a system, and writes its record.
    fn run(&self, system: System) -> anyhow::Result<()>;
}

/// Refuses what has no meaning for several systems.
fn check_common(common: &Common) -> anyhow::Result<()> {
    let refused = ["--model", "--checkpoint", "--resume", "--virtual-workers", "--inject"];
    common.refuse(&refused, "is for the training command, not for a comparison")?;
    common.prepare().map(drop)
}

fn check_input(source: &common::Source) -> anyhow::Result<()> {
    std::fs::metadata(&source.input).with_context(|| source.input.display().to_string()).map(drop)
}

fn no_slack(common: &Common, system: System) -> Result<(), &'static str> {
    let is_gas = matches!(system, System::Baseline(Baseline::Gas | Baseline::GasFaithful));
    match (system, common.consistency) {
        (System::Megagrid, _) | (_, common::Consistency::Bsp) => Ok(()),
        (_, common::Consistency::Async) => Err("baselines have no --consistency async"),
        _ if is_gas => Err("it has no slack: leave out --consistency and --slack"),
        _ => Ok(()),
    }
}

/// Returns how a baseline is to run.
fn run_of(settings: &Settings, iterations: u64) -> Run {
    Run { workers: settings.workers, iterations, seed: settings.seed, slack: settings.slack.unwrap_or(0) }
}

/// Describes what a baseline runs on; its memory is known at the end.
fn machine(settings: &Settings) -> Machine {
    Machine { workers: settings.workers, vector: settings.level.name().into(), ..Machine::default() }
}

fn sizes<T>(edges: &dyn EdgeSource<T>) -> InputSizes {
    let [left, right] = [Side::Left, Side::Right].map(|side| edges.num_vertices(side));
    InputSizes { left, right, edges: edges.num_edges(), test_edges: 0 }
}

/// Lists edges by the vertices of the left side, in which order baselines visit them.
fn by_left<T: Copy + Send + Sync>(edges: &dyn EdgeSource<T>) -> anyhow::Result<EdgeList<T>> {
    let list = list_by(edges, Side::Right, |data| *data).context("reading edges")?;
    list_by(&GroupedEdges::new(list, &[Side::Left]), Side::Left, |data| *data).context("reading edges")
}

impl Training for pagerank::Args {
    const COMMAND: &'static str = "pagerank";

    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn settle(&mut self) -> anyhow::Result<()> {
        self.tolerance = 0.0;
        Ok(())
    }

    fn runs_on(&self, system: System) -> Result<(), &'static str> {
        if system != System::Megagrid && !self.restart.is_empty() {
            return Err("leave out --restart");
        }
        no_slack(&self.common, system)
    }

    fn check(&self) -> anyhow::Result<()> {
        self.damping()?;
        check_common(&self.common)?;
        check_input(&self.source)
    }

    fn run(&self, system: System) -> anyhow::Result<()> {
        let System::Baseline(system) = system else { return pagerank::run(self) };
        let (settings, resolved) = self.common.prepare()?;
        let mut phases = Phases::default();
        let prepared = input::graph(&self.source, &self.common, &mut phases)?;
        let graph = list_by(&prepared.edges, Side::Right, |()| ()).context("reading edges")?;
        drop(prepared);
        let job = apps::pagerank::Job { graph: &graph, damping: self.damping()? };
        let sizes = InputSizes { left: graph.num_left, right: graph.num_right, edges: graph.left.len(), test_edges: 0 };
        let start = Start {
            command: Self::COMMAND,
            config: self.config(&resolved)?,
            input: sizes,
            machine: machine(&settings),
            phases,
            updates: sizes.edges as u64,
            common: &self.common,
        };
        baseline::run(start, |report| apps::pagerank::run(system, &job, &run_of(&settings, self.iterations), report))
    }
}

impl Training for mf::Args {
    const COMMAND: &'static str = "mf";

    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn settle(&mut self) -> anyhow::Result<()> {
        self.options.tolerance = 0.0;
        if self.options.gradient == Gradient::Batch {
            if self.options.batch.is_some() || self.options.work_per_clock.is_some() {
                return Err(usage("a comparison by batch gradients takes all ratings at once; leave out --batch"));
            }
            self.options.work_per_clock = Some(1.0);
        }
        Ok(())
    }

    fn runs_on(&self, system: System) -> Result<(), &'static str> {
        let is_gas = matches!(system, System::Baseline(Baseline::Gas | Baseline::GasFaithful));
        if is_gas && self.options.gradient == Gradient::InPlace {
            return Err("it changes nothing in place: leave it out, or use --gradient batch");
        }
        if system != System::Megagrid && (self.unseen.test.is_some() || self.unseen.holdout.is_some()) {
            return Err("leave out --test and --holdout");
        }
        no_slack(&self.common, system)
    }

    fn check(&self) -> anyhow::Result<()> {
        self.options.config()?;
        check_common(&self.common)?;
        check_input(&self.source)
    }

    fn run(&self, system: System) -> anyhow::Result<()> {
        let System::Baseline(system) = system else { return mf::run(self) };
        let (settings, resolved) = self.common.prepare()?;
        let config = self.options.config()?;
        let (job, phases) = mf::load(self, config, settings)?;
        let mf::Job { prepared, batch, mean, settings, .. } = job;
        let mut ratings = by_left(&prepared.edges)?;
        let input = sizes(&prepared.edges);
        drop(prepared);
        ratings.data.iter_mut().for_each(|rating| *rating -= mean);
        let own = self.options.resolved(&config, batch, ratings.data.len());
        let form = match self.options.gradient {
            Gradient::InPlace => apps::mf::Form::InPlace,
            Gradient::Batch => apps::mf::Form::Batch,
        };
        let job = apps::mf::Job { ratings: &ratings, config, form };
        let start = Start {
            command: Self::COMMAND,
            config: common::join([self.source.resolved(), own, serde_json::to_value(&resolved)?]),
            input,
            machine: machine(&settings),
            phases,
            updates: input.edges as u64,
            common: &self.common,
        };
        let run = run_of(&settings, self.options.iterations);
        baseline::run(start, |report| apps::mf::run(system, &job, &run, report))
    }
}

impl Training for lda::Args {
    const COMMAND: &'static str = "lda";
    const MAXIMIZES: bool = true;

    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn settle(&mut self) -> anyhow::Result<()> {
        self.options.tolerance = 0.0;
        Ok(())
    }

    fn runs_on(&self, system: System) -> Result<(), &'static str> {
        let options = &self.options;
        if system == System::Megagrid {
            return Ok(());
        }
        if options.sampler != Sampler::Dense || options.extra_topics > 0 {
            return Err("it has the dense sampler alone: leave out --sampler and --extra-topics");
        }
        if options.prior != PriorChoice::Fixed || options.annealing != Some(0) {
            return Err("it has fixed priors and no annealing: leave out --prior and --annealing");
        }
        if self.unseen.test.is_some() || self.unseen.holdout.is_some() || options.evaluate_every != 1 {
            return Err("leave out --test, --holdout and --evaluate-every");
        }
        no_slack(&self.common, system)
    }

    fn check(&self) -> anyhow::Result<()> {
        self.options.config()?;
        check_common(&self.common)?;
        check_input(&self.source)
    }

    fn run(&self, system: System) -> anyhow::Result<()> {
        let System::Baseline(system) = system else { return lda::run(self) };
        let (settings, resolved) = self.common.prepare()?;
        let config = self.options.config()?;
        debug_assert_eq!(config.prior, Prior::Fixed);
        let mut phases = Phases::default();
        let job = lda::load(self, config, settings, &mut phases)?;
        let own = self.options.resolved(&job);
        let lda::Job { prepared, tokens, settings, .. } = job;
        let corpus = by_left(&prepared.edges)?;
        let input = sizes(&prepared.edges);
        drop(prepared);
        let job = apps::lda::Job { corpus: &corpus, config };
        let parts = [self.source.resolved(), self.words.resolved(), own, serde_json::to_value(&resolved)?];
        let start = Start {
            command: Self::COMMAND,
            config: common::join(parts),
            input,
            machine: machine(&settings),
            phases,
            updates: tokens.total,
            common: &self.common,
        };
        let run = run_of(&settings, self.options.iterations);
        baseline::run(start, |report| apps::lda::run(system, &job, &run, report))
    }
}

impl Training for blockpg::Args {
    const COMMAND: &'static str = "blockpg";

    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn settle(&mut self) -> anyhow::Result<()> {
        self.options.tolerance = 0.0;
        Ok(())
    }

    fn runs_on(&self, system: System) -> Result<(), &'static str> {
        if system == System::Megagrid {
            return Ok(());
        }
        if self.options.l1.len() > 1 || self.options.warm_start.is_some() {
            return Err("it has no paths and no warm starts: give one --l1, and leave out --warm-start");
        }
        if self.common.consistency != common::Consistency::Bsp || self.options.delay.is_some() {
            return Err("its blocks take turns: leave out --consistency, --slack and --delay");
        }
        if self.samples.test.is_some() || self.samples.holdout.is_some() {
            return Err("leave out --test and --holdout");
        }
        Ok(())
    }

    fn check(&self) -> anyhow::Result<()> {
        self.options.path()?;
        check_common(&self.common)?;
        check_input(&self.source)
    }

    fn run(&self, system: System) -> anyhow::Result<()> {
        let System::Baseline(system) = system else { return blockpg::run(self) };
        let (settings, resolved) = self.prepare()?;
        let (job, phases) = self.job(settings.clone())?;
        let Some(&config) = job.path.last() else { return Err(usage("no --l1")) };
        let own = self.options.resolved(job.block_values);
        let samples = serde_json::to_value(&self.samples)?;
        let data = &job.data;
        let input = InputSizes { right: data.features.len(), ..sizes(&data.signed) };
        let fit = apps::blockpg::Job {
            signed: &data.signed,
            sample_weights: &data.sample_weights,
            intercept: data.intercept,
            config,
            block_values: job.block_values,
            blocks: None,
            rules: apps::blockpg::Rules::Shared,
        };
        let start = Start {
            command: Self::COMMAND,
            config: common::join([self.source.resolved(), samples, own, serde_json::to_value(&resolved)?]),
            input,
            machine: machine(&settings),
            phases,
            updates: input.edges as u64,
            common: &self.common,
        };
        let run = run_of(&settings, self.options.iterations);
        baseline::run(start, |report| apps::blockpg::run(system, &fit, &run, report))
    }
}
