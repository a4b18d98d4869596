//! What is tuned of topics.

use std::marker::PhantomData;

use megagrid_algorithms::lda::Config;
use megagrid_engine::{Engine, IterationReport, Settings};
use megagrid_tuner::{Setting, Value};

use super::strand::{Engines, Strand, Telling, Tunable};
use super::training::Algorithm;
use super::{Adjust, Known, Plan, TuningOptions, apply, check, train};
use crate::common;
use crate::failure::usage;
use crate::lda::{self, Args, Dense, Form, Job, Mh, Options, ProgramOf, Sparse, Trained};
use crate::record::{Phases, Record};
use crate::session::{self, Measured, Start};

fn known() -> Known {
    let default = ["sampler=dense,sparse", "work-per-clock=0.0625,0.25,1"];
    Known {
        algorithm: "lda",
        stages: &[],
        layout: &["sampler", "work-per-clock", "workers"],
        default: default.map(str::to_owned).to_vec(),
        untimed: &[],
    }
}

/// Runs the command.
pub fn run(mut args: Args, tuning: &TuningOptions) -> anyhow::Result<()> {
    args.common.join()?;
    check(&mut args.common)?;
    if args.options.extra_topics > 0 {
        return Err(usage(
            "--extra-topics is not for tune; find the settings first, and train with the command that it prints",
        ));
    }
    let (settings, resolved) = args.common.prepare()?;
    let known = known();
    let space = tuning.space(&known, |setting| apply(&args.options, &settings, setting).map(drop))?;
    let (job, resolved, phases) = lda::prepare(&args, settings, &resolved)?;
    let iterations = args.options.iterations;
    let corpus = Corpus { job, options: args.options };
    let telling = Telling { common: &args.common, command: "lda", resolved, phases };
    let mut trained = train(&corpus, &Plan { tuning, known: &known, space: &space, iterations }, telling)?;
    let summary = trained.summary()?;
    if let Some(directory) = &args.common.model {
        trained.write(directory)?;
    }
    if args.common.wants_summary() {
        common::print(&session::summary(&trained.record))?;
        common::print(&summary)?;
    }
    session::write_record(&trained.record, &args.common)
}

impl Adjust for Options {
    fn adjust(&mut self, name: &str, value: &Value) -> anyhow::Result<()> {
        match name {
            "sampler" => {
                let sampler = clap::ValueEnum::from_str(&value.to_string(), true);
                self.sampler = sampler.map_err(|_| usage(format!("{value}; expected dense, sparse or mh")))?;
            }
            "work-per-clock" => self.work_per_clock = super::number(value)?,
            _ => {}
        }
        Ok(())
    }

    fn check(&self) -> anyhow::Result<()> {
        self.config().map(drop)
    }
}

/// Documents and words.
struct Corpus {
    job: Job,
    options: Options,
}

impl Algorithm for Corpus {
    type Trained = Trained;

    fn strand(&self, setting: &Setting, first: u64) -> anyhow::Result<Box<dyn Strand<Trained> + '_>> {
        let (options, _) = apply(&self.options, &self.job.settings, setting)?;
        let sampler = options.sampler();
        self.job.tokens.check(sampler, self.job.config.num_topics)?;
        Ok(match sampler {
            megagrid_algorithms::lda::Sampler::Dense => {
                Box::new(Engines::new(Topics::<Dense>::of(self), setting, first)?)
            }
            megagrid_algorithms::lda::Sampler::Sparse => {
                Box::new(Engines::new(Topics::<Sparse>::of(self), setting, first)?)
            }
            megagrid_algorithms::lda::Sampler::Mh => Box::new(Engines::new(Topics::<Mh>::of(self), setting, first)?),
        })
    }

    fn layout(&self, setting: &Setting) -> Vec<Value> {
        super::values(setting, known().layout)
    }

    fn checksum(&self) -> anyhow::Result<u64> {
        Ok(self.job.checksum)
    }

    fn loss(&self, measured: &Measured) -> f64 {
        -measured.objective
    }

    /// All words and topics equally likely: before the first iteration no token has a topic.
    fn first_loss(&self) -> Option<f64> {
        let words = self.job.num_words() as f64;
        Some(self.job.tokens.total as f64 * (words.ln() + (self.job.config.num_topics as f64).ln()))
    }
}

/// Any sampler.
struct Topics<'c, F> {
    corpus: &'c Corpus,
    form: PhantomData<F>,
}

impl<'c, F: Form> Topics<'c, F> {
    fn of(corpus: &'c Corpus) -> Self {
        Self { corpus, form: PhantomData }
    }

    fn resolve(&self, setting: &Setting) -> anyhow::Result<(Config, Settings)> {
        let (options, settings) = apply(&self.corpus.options, &self.corpus.job.settings, setting)?;
        Ok((options.config()?, settings))
    }
}

impl<F: Form> Tunable for Topics<'_, F> {
    type Program = ProgramOf<F>;
    type Trained = Trained;

    fn engine(&self, setting: &Setting) -> anyhow::Result<Engine<ProgramOf<F>>> {
        let (config, settings) = self.resolve(setting)?;
        self.corpus.job.build::<F>(&config, &settings)
    }

    /// Whatever is tuned needs an engine of its own.
    fn adapt(&self, _: &mut Engine<ProgramOf<F>>, _: &Setting) -> anyhow::Result<()> {
        Ok(())
    }

    fn measure(&self, engine: &mut Engine<ProgramOf<F>>) -> anyhow::Result<Option<Measured>> {
        self.corpus.job.measure::<F>(engine)
    }

    fn corrected(&self, report: IterationReport) -> IterationReport {
        self.corpus.job.in_tokens::<F>(&report)
    }

    fn start(&self, engine: &Engine<ProgramOf<F>>, phases: Phases) -> Start {
        self.corpus.job.start(engine, phases)
    }

    fn conclude(self: Box<Self>, engine: &mut Engine<ProgramOf<F>>, record: Record) -> anyhow::Result<Trained> {
        self.corpus.job.conclude::<F>(engine, record)
    }
}
