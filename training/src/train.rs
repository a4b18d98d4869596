//! The one way to train: from a job to a model and the record of the run.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use megagrid_engine::IterationReport;
use serde_json::Value;

use crate::algorithm::{Algorithm, Pause, Run};
use crate::checkpoint::Checkpoints;
use crate::data::Data;
use crate::job::Job;
use crate::leg::{Ended, Leg};
use crate::looks::{Look, Looks};
use crate::measured::Found;
use crate::options::{join, json};
use crate::processes::Processes;
use crate::record::{Machine, Metrics, Record};
use crate::run_options::RunOptions;
use crate::stopping::{Evaluation, Stopping};
use crate::{Error, Options};

/// Who sees a run, and may end it. Every method has a default that does nothing.
pub trait Observer {
    /// Iterations begin: `done` are done, and there will be `last` at most.
    fn begin(&self, _done: u64, _last: u64) {}
    /// An iteration ended; the record has it.
    fn iteration(&self, _record: &Record) {}
    /// A search of settings goes on.
    fn search(&self, _event: &megagrid_tuner::Event<'_>) {}
    /// Iterations are over.
    fn end(&self) {}
    /// Tells whether the run is to end after this iteration.
    fn asks_to_end(&self) -> bool {
        false
    }
}

/// Nobody looks.
impl Observer for () {}

/// A trained model and how it came about.
pub struct Trained<A: Algorithm> {
    /// The run.
    pub record: Record,
    /// The model, in the first process.
    pub model: Option<A::Model>,
    /// Checksum of the data, where [the model is to be written](Job::is_kept); else 0.
    pub checksum: u64,
}

/// Returns every resolved option, as it stands in a record.
///
/// # Errors
/// Options that serde does not write.
pub fn config<A: Algorithm>(
    origin: &Value,
    options: &A::Options,
    run: &RunOptions,
    more: Value,
) -> Result<Value, Error> {
    Ok(join([origin.clone(), json(options)?, json(run)?, more]))
}

/// Trains. All processes call it.
///
/// # Errors
/// Processes that differ; what the engine refuses; an objective that is no number; an interruption.
pub fn train<A: Algorithm>(job: Job<A>, processes: &Processes, observer: &dyn Observer) -> Result<Trained<A>, Error> {
    let begin = Instant::now();
    let Job { data, origin, mut phases, options, run, mut settings, more, is_kept, is_trial, may_end } = job;
    if is_trial {
        settings.look_every = Some(1);
    }
    let is_needed = is_kept || run.checkpoint_model || processes.cluster.is_some();
    let checksum = if is_needed { data.checksum()? } else { 0 };
    let make = A::form(&data, &options);
    let beside = data.beside_edges();
    let form = make(Arc::new(data), options.clone(), settings)?;
    let resolved = form.options();
    let config = config::<A>(&origin, &resolved, &run, more)?;
    processes.agree(A::NAME, &config, checksum)?;
    let mut checkpoints = Checkpoints::new::<A>(&run, &resolved, &origin, beside, Default::default())?;
    let mut engine = form.begin(0)?;
    let resumed = checkpoints.begin(&mut *engine, processes)?;
    engine.release()?;
    phases.plan = begin.elapsed().as_secs_f64();

    let done = engine.iterations();
    if processes.is_first() && !is_trial {
        run.tell_of_waiting(A::NAME, engine.plan());
        checkpoints.tell_of_more(done, engine.leg());
    }
    let machine = Machine { read_bytes: processes.read_bytes()?, ..engine.machine() };
    let record = Record::begin(A::NAME, config, engine.input(), machine, phases, done);
    let (mut stopping, mut looks) = (Stopping::new(run.patience.unwrap_or(A::PATIENCE)), Looks::default());
    if let Some(directory) = resumed {
        let since = engine.leg().since;
        engine.pause().collect()?;
        processes.first(|| {
            looks = Looks::load(&directory, done)?;
            stopping.load(&directory, (done, since), || engine.pause().model())
        })?;
    }
    let every = run.evaluate_every;
    let mut session = Session {
        options,
        processes,
        observer,
        record,
        checksum,
        stopping,
        checkpoints,
        every,
        looks,
        is_trial,
        may_end,
    };
    if session.checkpoints.resume.is_some() {
        // What is gone on from may have been written without its model, or be the end already.
        session.save_model(&mut *engine.pause())?;
    }
    session.observer.begin(done, engine.most_iterations());
    let ended = session.legs(&mut *engine);
    session.observer.end();
    session.conclude(&mut *engine, ended?)
}

/// A run under way.
struct Session<'s, A: Algorithm> {
    options: A::Options,
    processes: &'s Processes,
    observer: &'s dyn Observer,
    record: Record,
    /// That of the data, where a model is to be written.
    checksum: u64,
    stopping: Stopping<A::Model>,
    checkpoints: Checkpoints,
    /// After how many iterations the objective is measured; 0: at the end.
    every: u64,
    /// What was measured, where there is a tolerance.
    looks: Looks,
    is_trial: bool,
    may_end: bool,
}

impl<A: Algorithm> Session<'_, A> {
    /// Runs all legs, and writes the last checkpoint.
    fn legs(&mut self, engine: &mut dyn Run<A>) -> Result<Ended, Error> {
        let mut is_patience = false;
        loop {
            let leg = engine.leg();
            self.stopping.begin(leg.since);
            let ended = match self.ended(engine, leg)? {
                Some(ended) => ended,
                None => self.leg(engine, leg)?,
            };
            is_patience |= ended == Ended::Patience;
            let goes_on = !leg.is_last && ended != Ended::Interrupt && !self.is_trial;
            if goes_on {
                let best = self.stopping.take(engine.iterations());
                engine.next(best)?;
                continue;
            }
            if self.record.iterations.is_empty() {
                // What was resumed had come to its end before.
                let found = engine.pause().look(true, true)?;
                (self.record.result.objective, self.record.result.metrics) = (found.objective, found.metrics);
            }
            if self.checkpoints.lack(engine.iterations()) {
                self.save(&mut *engine.pause())?;
            }
            // Of several models one was stopped early.
            return Ok(if is_patience && ended == Ended::Tolerance { Ended::Patience } else { ended });
        }
    }

    /// Tells why a leg that is gone on with had ended, if it had.
    fn ended(&self, engine: &mut dyn Run<A>, leg: Leg) -> Result<Option<Ended>, Error> {
        let done = engine.iterations();
        if done == leg.since || done >= leg.until {
            return Ok(None);
        }
        let here = [self.looks.has_converged(done, self.options.tolerance()), self.stopping.is_over(done)];
        let [converged, patience] = self.processes.any(Ok(here))?;
        Ok(if converged { Some(Ended::Tolerance) } else { patience.then_some(Ended::Patience) })
    }

    fn leg(&mut self, engine: &mut dyn Run<A>, leg: Leg) -> Result<Ended, Error> {
        let mut outcome = Ok(Ended::Iterations);
        engine.iterate(leg.until, &mut |reports, pause| match self.after(reports, pause, leg) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(ended)) => {
                outcome = Ok(ended);
                ControlFlow::Break(())
            }
            Err(error) => {
                outcome = Err(error);
                ControlFlow::Break(())
            }
        })?;
        outcome
    }

    /// Looks at a run after the last of these iterations: measures, timed apart, and writes a checkpoint if one is due. Tells why
    /// the leg ends, if it does.
    fn after(
        &mut self,
        reports: &[IterationReport],
        pause: &mut dyn Pause<A>,
        leg: Leg,
    ) -> Result<Option<Ended>, Error> {
        let Some((report, before)) = reports.split_last() else { return Ok(None) };
        for report in before {
            self.record.add(report, None, Metrics::new(), 0.0);
            self.observer.iteration(&self.record);
        }
        let done = report.iteration - reports.len() as u64;
        let here = self.measure((report, done), pause, leg);
        self.observer.iteration(&self.record);
        let is_early = report.iteration < leg.until || !leg.is_last;
        let interrupted = self.observer.asks_to_end() && is_early;
        let here = here.map(|ended| [ended == Some(Ended::Tolerance), ended == Some(Ended::Patience), interrupted]);
        let [converged, patience, interrupted] = self.processes.any(here)?;
        let ended = match (converged, patience, interrupted) {
            (true, ..) => Some(Ended::Tolerance),
            (_, true, _) => Some(Ended::Patience),
            (_, _, true) => Some(Ended::Interrupt),
            _ if self.is_trial => Some(Ended::Iterations),
            _ => None,
        };
        if ended.is_none() && self.checkpoints.due(report.iteration).is_some() {
            self.save(pause)?;
        }
        Ok(ended)
    }

    /// Measures and takes down an iteration; the last look was when `done` were done.
    fn measure(
        &mut self,
        (report, done): (&IterationReport, u64),
        pause: &mut dyn Pause<A>,
        leg: Leg,
    ) -> Result<Option<Ended>, Error> {
        let begin = Instant::now();
        let iteration = report.iteration;
        let is_last = iteration == leg.until && leg.is_last;
        let is_at = |every: u64| iteration / every > done / every;
        let is_asked = is_last || self.every > 0 && is_at(self.every);
        let is_due = is_asked || self.every == 0 && self.options.tolerance() > 0.0 || pause.is_due();
        let found = pause.look(is_due, is_asked || self.every == 0 && is_at(A::TEST_EVERY))?;
        let outcome = if self.processes.is_first() { self.judge(iteration, &found, pause, leg) } else { Ok(None) };
        self.record.add(report, found.objective, found.metrics, begin.elapsed().as_secs_f64());
        outcome
    }

    /// Tells whether what was found ends the leg.
    fn judge(&mut self, iteration: u64, found: &Found, pause: &dyn Pause<A>, leg: Leg) -> Result<Option<Ended>, Error> {
        found.check(iteration, A::ADVICE)?;
        let Found { objective, converged, ref metrics, .. } = *found;
        let tolerance = self.options.tolerance();
        let before = self.looks.before(leg.since);
        let by_change = || objective.zip(before).is_some_and(|(now, before)| has_settled(before, now, tolerance));
        let has_converged = converged.unwrap_or_else(by_change);
        if let Some(objective) = objective.filter(|_| tolerance > 0.0) {
            self.looks.push(Look { iteration, objective, tolerance, has_converged });
        }
        let value = found.tested(leg.tested_by, A::TEST_GROWS);
        let mut is_worse = false;
        if let Some(value) = value {
            let evaluation = Evaluation { iteration, value, objective, metrics: metrics.clone() };
            is_worse = self.stopping.evaluate(evaluation, || pause.model())?;
        }
        Ok(if has_converged { Some(Ended::Tolerance) } else { is_worse.then_some(Ended::Patience) })
    }

    /// Writes a checkpoint, if any are asked for.
    fn save(&mut self, pause: &mut dyn Pause<A>) -> Result<(), Error> {
        self.checkpoints.save(pause, (&self.stopping, &self.looks), (&self.record, self.checksum), self.processes)
    }

    /// Writes the model that goes with the last checkpoint, if that is asked for.
    fn save_model(&self, pause: &mut dyn Pause<A>) -> Result<(), Error> {
        self.checkpoints.save_model(pause, &self.stopping, (&self.record, self.checksum), self.processes)
    }

    /// Ends a run, and takes its model.
    fn conclude(mut self, engine: &mut dyn Run<A>, ended: Ended) -> Result<Trained<A>, Error> {
        self.record.result.ended_by = match ended {
            Ended::Iterations => "iterations",
            Ended::Tolerance => "tolerance",
            Ended::Patience => "patience",
            Ended::Interrupt => "interrupt",
        }
        .into();
        self.stopping.end(&mut self.record);
        if ended == Ended::Interrupt && !self.may_end {
            let (iteration, left) = (self.record.result.iterations, self.checkpoints.left());
            return Err(Error::Interrupted { iteration, left, record: Some(Box::new(self.record)) });
        }
        let kept = self.stopping.take(engine.iterations());
        let is_last = kept.is_none();
        let model = conclude(engine, kept, self.processes, &mut self.record)?;
        // The last of several models that are one may have converged, and others not.
        let has_converged = model.as_ref().is_none_or(crate::Model::has_converged);
        if ended == Ended::Tolerance && is_last && !has_converged {
            self.record.result.ended_by = "iterations".into();
        }
        Ok(Trained { record: self.record, model, checksum: self.checksum })
    }
}

/// Tells whether an objective changed by at most a part of itself, `tolerance`, if that is above zero.
pub(crate) fn has_settled(before: f64, now: f64, tolerance: f64) -> bool {
    tolerance > 0.0 && (before - now).abs() <= tolerance * before.abs()
}

/// Takes the model out of an engine, in the first process, unless there is one; adds what is known of it to the record.
pub(crate) fn conclude<A: Algorithm>(
    engine: &mut dyn Run<A>,
    kept: Option<A::Model>,
    processes: &Processes,
    record: &mut Record,
) -> Result<Option<A::Model>, Error> {
    use crate::Model;
    engine.pause().collect()?;
    if !processes.is_first() {
        return Ok(None);
    }
    let mut model = match kept {
        Some(model) => model,
        None => engine.pause().model()?,
    };
    engine.finish(&mut model)?;
    record.result.metrics.extend(model.metrics());
    record.result.path = model.path()?;
    // The model may be of an iteration after which it was not measured, or of an l1 that was left behind.
    record.result.objective = model.objective().or(record.result.objective);
    // The model takes memory too.
    record.peak_rss_bytes = megagrid_engine::os::peak_rss_bytes();
    Ok(Some(model))
}

#[cfg(test)]
mod tests {
    use super::has_settled;

    #[test]
    fn what_is_zero_and_stays_so_has_settled() {
        assert!(has_settled(0.0, 0.0, 1e-3) && has_settled(-100.0, -100.1, 1e-3));
        assert!(!has_settled(0.0, 1e-9, 1e-3) && !has_settled(100.0, 99.0, 1e-3) && !has_settled(1.0, 1.0, 0.0));
    }
}
