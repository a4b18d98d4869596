//! The engines of a run that tunes itself, and the branches in them: what one process has of it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use megagrid_datasets::output::replace_text;
use megagrid_engine::IterationReport;
use megagrid_tuner::{Branch, Clock, Ended, Progress, ROOT, Setting, Tuned, Value};

use super::space::{Search, Time, apply};
use crate::Error;
use crate::algorithm::{Algorithm, Run};
use crate::checkpoint::Checkpoints;
use crate::measured::Found;
use crate::options::Options;
use crate::processes::{Processes, decoded};
use crate::record::Record;
use crate::stopping::{Evaluation, Stopping};
use crate::train::{Observer, has_settled};

/// What tuning came to, beside the checkpoints of its run: it is written before the checkpoint that it goes with, and holds the
/// past of every one before.
const FILE: &str = "tuning.json";

/// An iteration and what was measured after it, with the seconds that took.
#[derive(Clone)]
pub struct Done {
    /// The iteration.
    pub report: IterationReport,
    /// What was found, in the first process.
    pub found: Found,
    /// Seconds of measuring.
    pub seconds: f64,
}

/// What a search came to in this process.
pub struct Ran<A: Algorithm> {
    /// What the first process decided.
    pub found: Option<Tuned>,
    pub run: Box<dyn Run<A>>,
    pub history: Vec<Done>,
    pub stopping: Stopping<A::Model>,
    pub is_patience: bool,
}

/// Where a branch is.
struct Place {
    /// The engine, by the branch that it was made for.
    engine: u64,
    setting: Setting,
    history: Vec<Done>,
}

/// An engine, and the setting that it was adapted to last.
struct Engine<A: Algorithm> {
    run: Box<dyn Run<A>>,
    setting: Setting,
}

/// A run with its branches.
pub struct Branches<'s, A: Algorithm> {
    search: Search<'s, A>,
    checkpoints: Checkpoints,
    stopping: Stopping<A::Model>,
    pub processes: &'s Processes,
    observer: &'s dyn Observer,
    engines: BTreeMap<u64, Engine<A>>,
    places: BTreeMap<Branch, Place>,
    /// The branch that is the run, while no search is under way.
    kept: Option<Branch>,
    /// Iterations that were done when the run was resumed.
    done: u64,
    /// Whether it got worse on test data for too long.
    is_patience: bool,
    /// Whether a run that was asked to end returns its model as it then is.
    may_end: bool,
    /// Where the run was kept last, and what it had come to, if it may end there.
    resting: Option<(Branch, Progress)>,
    /// Branches that were there at a time, at most.
    most_alive: usize,
    /// The iterations of the run, as they were shown.
    record: Record,
}

impl<'s, A: Algorithm> Branches<'s, A> {
    /// Begins a run with the settings that its options say, or goes on with one that was saved; returns what that had come to.
    /// All processes call it.
    pub fn new(
        search: Search<'s, A>,
        mut checkpoints: Checkpoints,
        mut stopping: Stopping<A::Model>,
        (processes, observer): (&'s Processes, &'s dyn Observer),
        may_end: bool,
    ) -> Result<(Self, Option<Progress>), Error> {
        let progress = checkpoints.resume.as_deref().map(|directory| read(directory, processes)).transpose()?;
        // Later settings have the layout of the first.
        let first = progress.as_ref().and_then(|progress| progress.settings.first());
        let first = first.map(|(_, setting)| setting.clone()).unwrap_or_default();
        let mut engine = engine(&search, &first, ROOT)?;
        let resumed = checkpoints.begin(&mut *engine.run, processes)?;
        let done = engine.run.iterations();
        if let Some(directory) = resumed {
            engine.run.pause().collect()?;
            processes.first(|| stopping.load(&directory, (done, 0), || engine.run.pause().model()))?;
        }
        let back = |progress: Progress| {
            let too_few = "what tuning came to is of fewer iterations than the checkpoint; start anew";
            progress.back_to(done).ok_or_else(|| Error::Missing(too_few.to_owned()))
        };
        let progress = progress.map(back).transpose()?;
        let setting = progress.as_ref().and_then(Progress::setting).cloned().unwrap_or_default();
        let root = Place { engine: ROOT.0, setting, history: Vec::new() };
        let (engines, places) = (BTreeMap::from([(ROOT.0, engine)]), BTreeMap::from([(ROOT, root)]));
        let (kept, is_patience, resting) = (None, false, None);
        let record = empty_record(&search, done);
        let this = Self {
            search,
            checkpoints,
            stopping,
            processes,
            observer,
            engines,
            places,
            kept,
            done,
            is_patience,
            may_end,
            resting,
            most_alive: 1,
            record,
        };
        Ok((this, progress))
    }

    /// Returns what a run that was asked to end has come to, if it may end before its time and its first search was over.
    pub fn take_interrupted(&mut self) -> Option<Tuned> {
        let (branch, progress) = self.resting.take()?;
        Some(progress.end(branch, self.most_alive, Ended::Interrupted))
    }

    /// Ends the run with a branch: its engine and its iterations.
    pub fn take(mut self, branch: Branch, found: Option<Tuned>) -> Result<Ran<A>, Error> {
        let place = self.places.remove(&branch).ok_or_else(|| gone(branch))?;
        let mut run = self.engines.remove(&place.engine).ok_or_else(|| gone(branch))?.run;
        run.select(branch.0)?;
        let Self { stopping, is_patience, .. } = self;
        Ok(Ran { found, run, history: place.history, stopping, is_patience })
    }

    fn iterations(&self, branch: Branch) -> u64 {
        self.done + self.places.get(&branch).map_or(0, |place| place.history.len() as u64)
    }

    /// Brings a branch into its engine.
    fn select(&mut self, branch: Branch) -> Result<(&mut Place, &mut Engine<A>), Error> {
        let place = self.places.get_mut(&branch).ok_or_else(|| gone(branch))?;
        let engine = self.engines.get_mut(&place.engine).ok_or_else(|| gone(branch))?;
        engine.run.select(branch.0)?;
        Ok((place, engine))
    }

    /// Copies a branch to another, which goes on with a setting.
    pub fn fork(&mut self, parent: Branch, child: Branch, setting: &Setting) -> Result<(), Error> {
        self.kept = None;
        let (place, engine) = self.select(parent)?;
        let history = place.history.clone();
        let number = if layout::<A>(setting) == layout::<A>(&place.setting) {
            engine.run.fork(parent.0, child.0)?;
            place.engine
        } else if parent == ROOT {
            let made = self::engine(&self.search, setting, child)?;
            self.engines.insert(child.0, made);
            child.0
        } else {
            return Err(Error::Missing(format!(
                "{setting} needs another layout, which a run cannot change on the way"
            )));
        };
        self.places.insert(child, Place { engine: number, setting: setting.clone(), history });
        self.most_alive = self.most_alive.max(self.places.len());
        Ok(())
    }

    /// Runs an iteration of a branch, and measures it.
    pub fn schedule(&mut self, branch: Branch) -> Result<Clock, Error> {
        // The run itself ends where it is kept.
        if self.kept != Some(branch) {
            let asked = self.observer.asks_to_end();
            if self.processes.any(Ok([asked]))? == [true] {
                let left = match &self.checkpoints.directory {
                    Some(directory) if self.checkpoints.saved > 0 => {
                        format!("continue with --resume {}", directory.display())
                    }
                    _ => "no model was written, and a search is not saved".to_owned(),
                };
                return Err(self.interrupted(branch, left));
            }
        }
        let time = self.search.time;
        let (options, settings) = {
            let place = self.places.get(&branch).ok_or_else(|| gone(branch))?;
            apply::<A>(&self.search.options, &self.search.settings, &place.setting)?
        };
        let (is_kept, tolerance) = (self.kept == Some(branch), options.tolerance());
        let (place, engine) = self.select(branch)?;
        if engine.setting != place.setting {
            engine.run.adapt(&options, &settings)?;
            engine.setting = place.setting.clone();
        }
        let (mut report, last) = (None, engine.run.iterations() + 1);
        engine.run.iterate(last, &mut |found, _| {
            report = found.last().cloned();
            ControlFlow::Continue(())
        })?;
        let report = report.ok_or_else(|| Error::Missing("an iteration ended without a report".to_owned()))?;
        let begin = Instant::now();
        let found = engine.run.pause().look(true, true)?;
        let time = match time {
            Time::Seconds => report.seconds,
            Time::Samples => report.updates as f64,
        };
        // A trial may hardly change because its steps are short; what is kept is at its end.
        let before = place.history.last().and_then(|done| done.found.objective).filter(|_| is_kept);
        let by_change = || before.zip(found.objective).is_some_and(|(before, now)| has_settled(before, now, tolerance));
        let (loss, converged) = (loss::<A>(&found), found.converged.unwrap_or_else(by_change));
        let tested = found.tested(A::TESTED_BY, A::TEST_GROWS).filter(|error| error.is_finite());
        place.history.push(Done { report, found, seconds: begin.elapsed().as_secs_f64() });
        if self.kept == Some(branch) {
            self.evaluate(branch)?;
        }
        Ok(Clock { time, loss, tested, finished: converged || self.is_patience })
    }

    /// Measures a branch as it stands.
    pub fn report(&mut self, branch: Branch) -> Result<f64, Error> {
        let mut pause = self.select(branch)?.1.run.pause();
        if let (ROOT, Some(loss)) = (branch, pause.first_loss()) {
            return Ok(loss);
        }
        Ok(loss::<A>(&pause.look(true, A::TUNED_BY_TEST)?))
    }

    /// Ends a branch.
    pub fn free(&mut self, branch: Branch) -> Result<(), Error> {
        let Some(place) = self.places.remove(&branch) else { return Ok(()) };
        if !self.places.values().any(|other| other.engine == place.engine) {
            self.engines.remove(&place.engine);
        } else if let Some(engine) = self.engines.get_mut(&place.engine) {
            engine.run.free(branch.0)?;
        }
        Ok(())
    }

    /// Saves the branch that is the run, with what tuning came to, if that is due; ends the run if it is asked to.
    pub fn keep(&mut self, branch: Branch, progress: Option<&Progress>, is_last: bool) -> Result<(), Error> {
        self.kept = Some(branch);
        self.evaluate(branch)?;
        self.show(branch);
        self.resting = self.may_end.then(|| (branch, progress.cloned().unwrap_or_default()));
        let iterations = self.iterations(branch);
        let asked = self.observer.asks_to_end() && !is_last;
        let [asked] = self.processes.any(Ok([asked]))?;
        let is_due = asked || is_last || self.checkpoints.due(iterations).is_some();
        if let Some(directory) = self.checkpoints.directory.clone().filter(|_| is_due) {
            self.save(branch, &directory, progress)?;
            self.checkpoints.saved = iterations;
        }
        if !asked {
            return Ok(());
        }
        Err(self.interrupted(branch, self.checkpoints.left()))
    }

    /// Ends the run where it was asked to, with the record of the iterations that were shown.
    fn interrupted(&self, branch: Branch, left: String) -> Error {
        let mut record = self.record.clone();
        record.result.ended_by = "interrupt".into();
        self.stopping.end(&mut record);
        Error::Interrupted { iteration: self.iterations(branch), left, record: Some(Box::new(record)) }
    }

    /// Shows the iterations of the run that nobody has seen yet.
    fn show(&mut self, branch: Branch) {
        let Some(place) = self.places.get(&branch) else { return };
        for Done { report, found, seconds } in place.history.iter().skip(self.record.iterations.len()) {
            self.record.add(report, found.objective, found.metrics.clone(), *seconds);
            self.observer.iteration(&self.record);
        }
    }

    fn save(&mut self, branch: Branch, directory: &Path, progress: Option<&Progress>) -> Result<(), Error> {
        let (processes, iterations) = (self.processes, self.iterations(branch));
        processes.first(|| {
            let Some(progress) = progress else { return Ok(()) };
            let text = serde_json::to_string(progress).map_err(Error::json("writing what tuning came to"))?;
            replace_text(&directory.join(FILE), &(text + "\n"))?;
            self.stopping.save(directory, iterations, &empty_record(&self.search, 0))
        })?;
        self.select(branch)?.1.run.pause().save(directory)?;
        processes.first(|| self.stopping.clean(directory))
    }

    /// Looks at how the run does on test data, in the first process. Iterations that were trials are not looked at, but for the last.
    fn evaluate(&mut self, branch: Branch) -> Result<(), Error> {
        let is_first = self.processes.is_first();
        let place = self.places.get(&branch).ok_or_else(|| gone(branch))?;
        let Some(Done { report, found, .. }) = place.history.last().filter(|_| is_first) else { return Ok(()) };
        let Some(value) = found.tested(A::TESTED_BY, A::TEST_GROWS) else { return Ok(()) };
        let (iteration, objective, metrics) = (report.iteration, found.objective, found.metrics.clone());
        if self.stopping.last() == Some(iteration) {
            return Ok(());
        }
        let engine = self.engines.get_mut(&place.engine).ok_or_else(|| gone(branch))?;
        engine.run.select(branch.0)?;
        let evaluation = Evaluation { iteration, value, objective, metrics };
        // What was found by a search may be worse at its end, and goes on; the clock after it may be the best.
        self.is_patience = self.stopping.evaluate(evaluation, || engine.run.pause().model())?;
        Ok(())
    }
}

fn empty_record<A: Algorithm>(search: &Search<'_, A>, done: u64) -> Record {
    let (input, machine, phases) = Default::default();
    Record::begin(A::NAME, search.config.clone(), input, machine, phases, done)
}

/// Makes an engine at the beginning of a run, whose state is the branch `first`.
fn engine<A: Algorithm>(search: &Search<'_, A>, setting: &Setting, first: Branch) -> Result<Engine<A>, Error> {
    let (options, settings) = apply::<A>(&search.options, &search.settings, setting)?;
    let form = A::form(&search.data, &options)(Arc::clone(&search.data), options, settings)?;
    Ok(Engine { run: form.begin(first.0)?, setting: setting.clone() })
}

/// Returns the values of a setting that need an engine of their own: what lays out the graph, or is another program.
fn layout<A: Algorithm>(setting: &Setting) -> Vec<Value> {
    let is_layout = |name: &str| A::KNOBS.iter().any(|knob| knob.is_layout && knob.name == name);
    setting.iter().filter(|(name, _)| is_layout(name)).map(|(_, value)| value.clone()).collect()
}

/// Returns what trials are compared by, which is to be small: the objective, or the value on test data; no number in processes other than
/// the first.
fn loss<A: Algorithm>(found: &Found) -> f64 {
    let tested = found.tested(A::TESTED_BY, A::TEST_GROWS).filter(|_| A::TUNED_BY_TEST);
    let trained = found.objective.map_or(f64::NAN, |objective| if A::MAXIMIZES { -objective } else { objective });
    tested.unwrap_or(trained)
}

fn gone(branch: Branch) -> Error {
    Error::Missing(format!("branch {} is not there", branch.0))
}

/// Reads what the run to go on with came to. All processes call it; the first one reads.
fn read(directory: &Path, processes: &Processes) -> Result<Progress, Error> {
    let path = directory.join(FILE);
    let mut text = Vec::new();
    if processes.is_first() {
        text = std::fs::read(&path).map_err(|error| {
            let problem = "which says what tuning came to; one that ended in its first search was not saved: start it anew, without --resume";
            Error::invalid(&path, format!("{error}: {problem}"))
        })?;
    }
    decoded(&processes.broadcast(text)?)
}
