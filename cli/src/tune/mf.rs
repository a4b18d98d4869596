//! What is tuned of matrix factorization.

use std::marker::PhantomData;

use megagrid_algorithms::mf::Config;
use megagrid_engine::{Engine, Settings};
use megagrid_tuner::{Setting, Value};

use super::strand::{Engines, Strand, Telling, Tunable};
use super::training::Algorithm;
use super::{Adjust, Known, Plan, TuningOptions, apply, check, train};
use crate::common;
use crate::failure::usage;
use crate::mf::{self, Args, Batch, Form, Gradient, InPlace, Job, Options, Trained};
use crate::record::{Phases, Record};
use crate::session::{self, Measured, Start};

fn known() -> Known {
    Known {
        algorithm: "mf",
        stages: &["step", "decay", "slack"],
        layout: &["batch", "workers"],
        default: vec!["step=log:1e-5..1".to_owned()],
        untimed: &["step", "decay"],
    }
}

/// Runs the command.
pub fn run(mut args: Args, tuning: &TuningOptions) -> anyhow::Result<()> {
    args.common.join()?;
    check(&mut args.common)?;
    args.unseen.check()?;
    let config = args.options.config()?;
    let (settings, resolved) = args.common.prepare()?;
    let known = known();
    let space = tuning.space(&known, |setting| apply(&args.options, &settings, setting).map(drop))?;
    let (job, phases) = mf::load(&args, config, settings)?;
    let resolved = mf::resolved(&args, &job, &config, &resolved)?;
    let iterations = args.options.iterations;
    let algorithm = Ratings { job, options: args.options };
    let telling = Telling { common: &args.common, command: "mf", resolved, phases };
    let trained = train(&algorithm, &Plan { tuning, known: &known, space: &space, iterations }, telling)?;
    if let Some(directory) = &args.common.model {
        trained.write(directory)?;
    }
    if args.common.wants_summary() {
        common::print(&session::summary(&trained.record))?;
    }
    session::write_record(&trained.record, &args.common)
}

impl Adjust for Options {
    fn adjust(&mut self, name: &str, value: &Value) -> anyhow::Result<()> {
        match name {
            "step" => self.step = super::number(value)? as f32,
            "decay" if !self.plain_sgd => return Err(usage("decay is of plain steps; give --plain-sgd")),
            "decay" => self.decay = Some(super::number(value)? as f32),
            "batch" => self.batch = Some(super::count(value, 1)?),
            _ => {}
        }
        Ok(())
    }

    fn check(&self) -> anyhow::Result<()> {
        self.config().map(drop)
    }
}

/// Ratings to factorize.
struct Ratings {
    job: Job,
    options: Options,
}

impl Algorithm for Ratings {
    type Trained = Trained;

    fn strand(&self, setting: &Setting, first: u64) -> anyhow::Result<Box<dyn Strand<Trained> + '_>> {
        Ok(match self.options.gradient {
            Gradient::InPlace => Box::new(Engines::new(Factorization::<InPlace>::of(self), setting, first)?),
            Gradient::Batch => Box::new(Engines::new(Factorization::<Batch>::of(self), setting, first)?),
        })
    }

    fn layout(&self, setting: &Setting) -> Vec<Value> {
        super::values(setting, known().layout)
    }

    fn checksum(&self) -> anyhow::Result<u64> {
        Ok(self.job.checksum)
    }

    fn loss(&self, measured: &Measured) -> f64 {
        measured.objective
    }
}

/// Either form.
struct Factorization<'r, F> {
    ratings: &'r Ratings,
    form: PhantomData<F>,
}

impl<'r, F: Form> Factorization<'r, F> {
    fn of(ratings: &'r Ratings) -> Self {
        Self { ratings, form: PhantomData }
    }

    fn resolve(&self, setting: &Setting) -> anyhow::Result<(Config, u64, Settings)> {
        let Ratings { job, options } = self.ratings;
        let (options, settings) = apply(options, &job.settings, setting)?;
        Ok((options.config()?, options.batch(job.num_ratings(), &settings), settings))
    }
}

impl<F: Form> Tunable for Factorization<'_, F> {
    type Program = F::Program;
    type Trained = Trained;

    fn engine(&self, setting: &Setting) -> anyhow::Result<Engine<F::Program>> {
        let (config, batch, settings) = self.resolve(setting)?;
        self.ratings.job.build::<F>(&config, batch, &settings)
    }

    fn adapt(&self, engine: &mut Engine<F::Program>, setting: &Setting) -> anyhow::Result<()> {
        let (config, batch, settings) = self.resolve(setting)?;
        self.ratings.job.adapt::<F>(engine, &config, batch, &settings)
    }

    fn measure(&self, engine: &mut Engine<F::Program>) -> anyhow::Result<Option<Measured>> {
        self.ratings.job.measure::<F>(engine).map(Some)
    }

    fn start(&self, engine: &Engine<F::Program>, phases: Phases) -> Start {
        self.ratings.job.start::<F>(engine, phases)
    }

    fn conclude(self: Box<Self>, engine: &mut Engine<F::Program>, record: Record) -> anyhow::Result<Trained> {
        let names = self.ratings.job.prepared.names.clone();
        self.ratings.job.conclude::<F>(engine, names, record)
    }
}
