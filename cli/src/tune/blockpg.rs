//! What is tuned of sparse logistic regression.

use megagrid_algorithms::blockpg::BlockPg;
use megagrid_engine::{Engine, Settings};
use megagrid_tuner::{Setting, Value};

use super::strand::{Engines, Strand, Telling, Tunable};
use super::training::Algorithm;
use super::{Adjust, Known, Plan, TuningOptions, apply, check, train};
use crate::blockpg::{self, Args, Job, Options, Trained};
use crate::common;
use crate::failure::usage;
use crate::record::{Phases, Record};
use crate::session::{self, Measured, Start};

/// `blocks` as they are by default.
fn known(blocks: u64) -> Known {
    Known {
        algorithm: "blockpg",
        stages: &["delay"],
        layout: &["blocks", "workers"],
        default: vec![format!("blocks={},{blocks},{}", (blocks / 2).max(1), 2 * blocks), "delay=0,1,2".to_owned()],
        untimed: &[],
    }
}

/// Runs the command.
pub fn run(mut args: Args, tuning: &TuningOptions) -> anyhow::Result<()> {
    args.common.join()?;
    check(&mut args.common)?;
    if args.options.l1.len() != 1 {
        return Err(usage(
            "tune takes one --l1; find the settings first, and train the path with the command that it prints",
        ));
    }
    let (settings, resolved) = args.prepare()?;
    let (job, phases) = args.job(settings)?;
    let (values, features, settings) = job.sizes();
    let known = known(args.options.num_blocks(values, features));
    let space = tuning.space(&known, |setting| apply(&args.options, settings, setting).map(drop))?;
    let resolved = blockpg::resolved(&args, &job, &resolved)?;
    let iterations = args.options.iterations;
    let samples = Samples { job, options: args.options };
    let telling = Telling { common: &args.common, command: "blockpg", resolved, phases };
    let trained = train(&samples, &Plan { tuning, known: &known, space: &space, iterations }, telling)?;
    if let Some(directory) = &args.common.model {
        trained.write(directory)?;
    }
    if args.common.wants_summary() {
        common::print(&format!("{}{}", session::summary(&trained.record), trained.findings()))?;
    }
    session::write_record(&trained.record, &args.common)
}

impl Adjust for Options {
    fn adjust(&mut self, name: &str, value: &Value) -> anyhow::Result<()> {
        if name == "blocks" {
            (self.blocks, self.batch) = (Some(super::count(value, 1)?), None);
        }
        Ok(())
    }
}

/// Samples to fit.
struct Samples {
    job: Job,
    options: Options,
}

impl Samples {
    fn resolve(&self, setting: &Setting) -> anyhow::Result<(u64, Settings)> {
        let (values, features, settings) = self.job.sizes();
        let (options, settings) = apply(&self.options, settings, setting)?;
        Ok((options.block_values(values, features), settings))
    }
}

impl Algorithm for Samples {
    type Trained = Trained;

    fn strand(&self, setting: &Setting, first: u64) -> anyhow::Result<Box<dyn Strand<Trained> + '_>> {
        Ok(Box::new(Engines::new(Fit(self), setting, first)?))
    }

    fn layout(&self, setting: &Setting) -> Vec<Value> {
        super::values(setting, &["blocks", "workers"])
    }

    fn checksum(&self) -> anyhow::Result<u64> {
        self.job.checksum()
    }

    fn loss(&self, measured: &Measured) -> f64 {
        measured.objective
    }
}

/// The program.
struct Fit<'s>(&'s Samples);

impl Tunable for Fit<'_> {
    type Program = BlockPg;
    type Trained = Trained;

    fn engine(&self, setting: &Setting) -> anyhow::Result<Engine<BlockPg>> {
        let (block_values, settings) = self.0.resolve(setting)?;
        self.0.job.build(block_values, &settings)
    }

    fn adapt(&self, engine: &mut Engine<BlockPg>, setting: &Setting) -> anyhow::Result<()> {
        let (block_values, settings) = self.0.resolve(setting)?;
        self.0.job.adapt(engine, block_values, &settings)
    }

    fn measure(&self, engine: &mut Engine<BlockPg>) -> anyhow::Result<Option<Measured>> {
        self.0.job.measure(engine)
    }

    fn start(&self, engine: &Engine<BlockPg>, phases: Phases) -> Start {
        self.0.job.start(engine, phases)
    }

    fn conclude(self: Box<Self>, engine: &mut Engine<BlockPg>, record: Record) -> anyhow::Result<Trained> {
        self.0.job.conclude(engine, record)
    }
}
