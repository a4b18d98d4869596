//! An engine and its branches, whatever its program is.

use megagrid_engine::{Branches, Engine, IterationReport};
use megagrid_stages::Program;
use megagrid_tuner::Setting;

use crate::checkpoint;
use crate::common::Common;
use crate::record::{Phases, Record};
use crate::session::{Measured, Session, Start};

/// A program of an algorithm as it is tuned. A setting says how to train; the algorithm's options hold all else.
pub trait Tunable {
    /// The program.
    type Program: Program<Global: serde::Serialize + serde::de::DeserializeOwned>;
    /// What training comes to.
    type Trained;

    /// Makes an engine at the beginning of a run.
    fn engine(&self, setting: &Setting) -> anyhow::Result<Engine<Self::Program>>;

    /// Lets an engine go on with a setting.
    fn adapt(&self, engine: &mut Engine<Self::Program>, setting: &Setting) -> anyhow::Result<()>;

    /// Measures the objective and other values. All processes call it; what the first finds counts, others may return `None`.
    fn measure(&self, engine: &mut Engine<Self::Program>) -> anyhow::Result<Option<Measured>>;

    /// Corrects what the engine reported.
    fn corrected(&self, report: IterationReport) -> IterationReport {
        report
    }

    /// Describes the run's input and machine.
    fn start(&self, engine: &Engine<Self::Program>, phases: Phases) -> Start;

    /// Takes the model out of an engine. All processes call it.
    fn conclude(self: Box<Self>, engine: &mut Engine<Self::Program>, record: Record) -> anyhow::Result<Self::Trained>;
}

/// An iteration and what was measured after it, with the seconds that took.
#[derive(Clone)]
pub struct Done {
    /// The iteration.
    pub report: IterationReport,
    /// What was measured, in the first process.
    pub measured: Option<Measured>,
    /// Seconds of measuring.
    pub seconds: f64,
}

/// What a record begins with.
pub struct Telling<'o> {
    /// Where it goes.
    pub common: &'o Common,
    /// The command.
    pub command: &'static str,
    /// Every resolved option.
    pub resolved: serde_json::Value,
    /// What has been done before training.
    pub phases: Phases,
}

/// An engine with branches.
pub trait Strand<Trained> {
    /// Goes on with the run that options name, if there is one, and tells whether checkpoints can be written. Returns the
    /// iterations done.
    fn begin(&mut self, options: &checkpoint::Options, resolved: &serde_json::Value) -> anyhow::Result<u64>;
    /// Copies a branch to another.
    fn fork(&mut self, parent: u64, child: u64) -> anyhow::Result<()>;
    /// Runs an iteration of a branch with a setting.
    fn iterate(&mut self, branch: u64, setting: &Setting) -> anyhow::Result<IterationReport>;
    /// Measures a branch, in the first process.
    fn measure(&mut self, branch: u64) -> anyhow::Result<Option<Measured>>;
    /// Writes a checkpoint of a branch.
    fn save(&mut self, branch: u64, options: &checkpoint::Options) -> anyhow::Result<()>;
    /// Ends a branch.
    fn free(&mut self, branch: u64) -> anyhow::Result<()>;
    /// Makes the record of a branch, which began with so many iterations done, and takes the model out of it.
    fn conclude(
        self: Box<Self>,
        branch: (u64, u64),
        history: &[Done],
        telling: Telling<'_>,
        with: &mut dyn FnMut(&mut Record),
    ) -> anyhow::Result<Trained>;
}

/// An engine of a program.
pub struct Engines<T: Tunable> {
    of: Box<T>,
    branches: Branches<T::Program>,
    /// What the engine was adapted to last.
    setting: Setting,
}

impl<T: Tunable> Engines<T> {
    /// Makes an engine whose state is the branch `first`.
    pub fn new(of: T, setting: &Setting, first: u64) -> anyhow::Result<Self> {
        let branches = Branches::new(of.engine(setting)?, first);
        Ok(Self { of: Box::new(of), branches, setting: setting.clone() })
    }
}

impl<T: Tunable> Strand<T::Trained> for Engines<T> {
    fn begin(&mut self, options: &checkpoint::Options, resolved: &serde_json::Value) -> anyhow::Result<u64> {
        options.begin(self.branches.engine(), resolved)
    }

    fn fork(&mut self, parent: u64, child: u64) -> anyhow::Result<()> {
        self.branches.fork(parent, child)?;
        Ok(())
    }

    fn iterate(&mut self, branch: u64, setting: &Setting) -> anyhow::Result<IterationReport> {
        let engine = self.branches.select(branch)?;
        if self.setting != *setting {
            self.of.adapt(engine, setting)?;
            self.setting = setting.clone();
        }
        let (mut done, last) = (None, engine.iterations() + 1);
        engine.run_until(last, |_, report| {
            done = Some(report.clone());
            Ok(false)
        })?;
        let report = done.ok_or_else(|| anyhow::anyhow!("an iteration ended without a report"))?;
        Ok(self.of.corrected(report))
    }

    fn measure(&mut self, branch: u64) -> anyhow::Result<Option<Measured>> {
        self.of.measure(self.branches.select(branch)?)
    }

    fn save(&mut self, branch: u64, options: &checkpoint::Options) -> anyhow::Result<()> {
        let engine = self.branches.select(branch)?;
        let iteration = engine.iterations();
        options.after(engine, iteration, true)
    }

    fn free(&mut self, branch: u64) -> anyhow::Result<()> {
        Ok(self.branches.free(branch)?)
    }

    fn conclude(
        mut self: Box<Self>,
        (branch, done): (u64, u64),
        history: &[Done],
        telling: Telling<'_>,
        with: &mut dyn FnMut(&mut Record),
    ) -> anyhow::Result<T::Trained> {
        let Telling { common, command, resolved, phases } = telling;
        let engine = self.branches.select(branch)?;
        let start = Start { done, ..self.of.start(engine, phases) };
        let mut session = Session::begin(common, command, resolved, start, engine.iterations());
        for done in history {
            // The tuner has decided where the run ends.
            let _ = session.add(&done.report, done.measured.clone(), done.seconds);
        }
        let mut record = session.end()?;
        with(&mut record);
        self.of.conclude(engine, record)
    }
}
