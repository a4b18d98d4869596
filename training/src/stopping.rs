//! Early stopping: which iteration was the best on test data, and whether it has been worse for too long.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::model::{self, Model};
use crate::record::{Metrics, Record};
use crate::{Error, past};

/// What was evaluated, beside checkpoints.
const FILE: &str = "stopping.json";
/// Where the best model of a checkpoint is, by its iteration.
const BEST: &str = "best-";

/// Part of a value by which another may be worse and as good, nearly.
const NEARLY: f64 = 0.005;

/// An evaluation on test data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Evaluation {
    /// After which iteration.
    pub iteration: u64,
    /// The value that is to be small.
    pub value: f64,
    /// The objective then, where it was measured.
    pub objective: Option<f64>,
    /// All that was found.
    pub metrics: Metrics,
}

/// The evaluations of a run, and a copy of the best model of its leg.
pub struct Stopping<M> {
    /// Worse evaluations in a row that end a leg; 0: none do, and nothing is kept.
    patience: u64,
    /// The iterations that were done when the leg began.
    since: u64,
    /// Those of legs before it stay: a checkpoint of one may be gone on from.
    evaluations: Vec<Evaluation>,
    /// The best model; `None`: there was no evaluation, or it is the one in the engine.
    model: Option<(u64, M)>,
    /// The most bytes of a copy.
    pub bytes: Option<u64>,
}

impl<M: Model> Stopping<M> {
    /// Begins without an evaluation.
    pub fn new(patience: u64) -> Self {
        Self { patience, since: 0, evaluations: Vec::new(), model: None, bytes: None }
    }

    /// Begins a leg, or goes on with it: what was evaluated before it has nothing to do with its model.
    pub fn begin(&mut self, since: u64) {
        self.since = since;
        self.model = self.model.take().filter(|(of, _)| *of > since);
    }

    /// Takes an evaluation, and the model if it is the best so far; of equal ones that is the last. Returns whether the leg is
    /// to end.
    pub fn evaluate(
        &mut self,
        evaluation: Evaluation,
        model: impl FnOnce() -> Result<M, Error>,
    ) -> Result<bool, Error> {
        if self.patience == 0 || !evaluation.value.is_finite() {
            return Ok(false);
        }
        let iteration = evaluation.iteration;
        self.evaluations.push(evaluation);
        if self.best().is_some_and(|best| best.iteration == iteration) {
            // The copy before is given up first: there is memory for one.
            self.model = None;
            let model = model()?;
            self.bytes = self.bytes.max(Some(model.bytes()));
            self.model = Some((iteration, model));
        }
        Ok(self.worse() >= self.patience)
    }

    /// Tells whether it got worse for too long with the evaluation of this iteration, which may be one that a run goes on from.
    pub fn is_over(&self, iteration: u64) -> bool {
        self.patience > 0 && self.last() == Some(iteration) && self.worse() >= self.patience
    }

    /// Returns the iteration that was evaluated last.
    pub fn last(&self) -> Option<u64> {
        self.evaluations.last().map(|one| one.iteration)
    }

    /// Returns the best evaluation.
    pub fn best(&self) -> Option<&Evaluation> {
        self.of_leg().rev().min_by(|a, b| a.value.total_cmp(&b.value))
    }

    fn of_leg(&self) -> impl DoubleEndedIterator<Item = &Evaluation> {
        self.evaluations.iter().filter(|one| one.iteration > self.since)
    }

    /// Returns the evaluations since the best. Of the first ones those do not count that are as good, nearly: factors that are small at
    /// random stay so for a while before they grow.
    fn worse(&self) -> u64 {
        let Some(best) = self.best() else { return 0 };
        let is_worse = |one: &Evaluation| one.value - best.value > NEARLY * best.value.abs();
        let counts = |(at, one): &(u64, &Evaluation)| {
            one.iteration > best.iteration && (*at >= 2 * self.patience || is_worse(one))
        };
        (0..).zip(self.of_leg()).filter(counts).count() as u64
    }

    /// Returns the copy of the best model, if it is not the one in the engine, which has done `iterations`.
    pub fn model(&self, iterations: u64) -> Option<&M> {
        self.model.as_ref().filter(|(of, _)| *of != iterations).map(|(_, model)| model)
    }

    /// Ends a record, with what was found of the best iteration, or last.
    pub fn end(&self, record: &mut Record) {
        let best = self.best().map(|best| (best.iteration, (best.objective, best.metrics.clone())));
        let (iteration, measured) = best.unzip();
        record.result.best_iteration = iteration;
        record.machine.best_model_bytes = self.bytes;
        record.end(measured);
    }

    /// Takes the copy of the best model out, if it is not the one in the engine, which has done `iterations`.
    pub fn take(&mut self, iterations: u64) -> Option<M> {
        self.model.take().filter(|(of, _)| *of != iterations).map(|(_, model)| model)
    }

    /// Saves all of it beside the checkpoint of `iterations` that is about to be written.
    pub fn save(&self, directory: &Path, iterations: u64, record: &Record) -> Result<(), Error> {
        if let Some((of, model)) = self.model.as_ref().filter(|(of, _)| *of != iterations) {
            let path = place(directory, *of);
            // What is there may be of a run that went on otherwise and was killed before its checkpoint.
            let value = self.best().map(|best| best.value);
            let kept: Vec<Evaluation> = past::load(directory, FILE)?;
            let is_kept = path.exists() && kept.iter().any(|one| one.iteration == *of && Some(one.value) == value);
            if !is_kept {
                if path.exists() {
                    fs::remove_dir_all(&path).map_err(Error::io(&path))?;
                }
                fs::create_dir_all(directory).map_err(Error::io(directory))?;
                model::save(model, &path, record, 0)?;
            }
        }
        past::save(&self.evaluations, directory, FILE)
    }

    /// Removes the models that no checkpoint needs, once the checkpoint is complete.
    pub fn clean(&self, directory: &Path) -> Result<(), Error> {
        let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
        let kept = self.best().map(|best| place(directory, best.iteration));
        for path in entries.flatten().map(|entry| entry.path()) {
            let is_model = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(BEST));
            if is_model && Some(&path) != kept.as_ref() {
                fs::remove_dir_all(&path).map_err(Error::io(&path))?;
            }
        }
        Ok(())
    }

    /// Goes on from the checkpoint of `iterations` in a directory, which is on the leg that began after `since` iterations; `here` returns the
    /// model of the checkpoint.
    pub fn load(
        &mut self,
        directory: &Path,
        (iterations, since): (u64, u64),
        here: impl FnOnce() -> Result<M, Error>,
    ) -> Result<(), Error> {
        if self.patience == 0 {
            return Ok(());
        }
        self.evaluations = past::load(directory, FILE)?;
        self.evaluations.retain(|one| one.iteration <= iterations);
        self.since = since;
        let best = self.best().map(|best| best.iteration);
        let read = |of| if of == iterations { here() } else { Ok(model::load(&place(directory, of))?.0) };
        self.model = best.map(|of| Ok::<_, Error>((of, read(of)?))).transpose()?;
        Ok(())
    }
}

fn place(directory: &Path, iteration: u64) -> PathBuf {
    directory.join(format!("{BEST}{iteration:05}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Manifest;

    /// A model that is a number.
    struct Number(u64);

    impl Model for Number {
        const KIND: &'static str = "number";
        type Question = ();
        type Answer = u64;

        fn write(&self, into: &Path, _: &mut Manifest) -> Result<(), Error> {
            let path = into.join("number");
            fs::write(&path, self.0.to_string()).map_err(Error::io(&path))
        }

        fn read(from: &Path, _: &Manifest) -> Result<Self, Error> {
            let path = from.join("number");
            Ok(Self(fs::read_to_string(&path).map_err(Error::io(&path))?.parse().unwrap()))
        }

        fn answer(&self, (): &()) -> Result<u64, Error> {
            Ok(self.0)
        }

        fn bytes(&self) -> u64 {
            8
        }
    }

    fn evaluate(stopping: &mut Stopping<Number>, iteration: u64, value: f64) -> bool {
        let evaluation = Evaluation { iteration, value, objective: None, metrics: Metrics::new() };
        stopping.evaluate(evaluation, || Ok(Number(iteration))).unwrap()
    }

    fn record() -> Record {
        let (input, machine, phases) = Default::default();
        Record::begin("number", serde_json::Value::Null, input, machine, phases, 0)
    }

    /// What has been kept after each of three evaluations, the second of which was the best.
    fn of_three(directory: &Path) -> Stopping<Number> {
        let mut stopping = Stopping::new(3);
        for (at, value) in [(1, 5.0), (2, 3.0), (3, 4.0)] {
            evaluate(&mut stopping, at, value);
        }
        stopping.save(directory, 3, &record()).unwrap();
        stopping
    }

    fn no_model() -> Result<Number, Error> {
        panic!("the best model is not that of the checkpoint")
    }

    #[test]
    fn early_evaluations_that_are_nearly_as_good_do_not_count() {
        let ended = |values: &[f64]| {
            let mut stopping = Stopping::<Number>::new(2);
            (1..).zip(values).find(|&(at, &value)| evaluate(&mut stopping, at, value)).map(|(at, _)| at)
        };
        // A plateau at the begin, one that goes on, and one after the first four.
        assert_eq!(ended(&[1.0, 1.001, 1.002, 1.001, 0.9, 0.8]), None);
        assert_eq!(ended(&[1.0, 1.001, 1.002, 1.001, 1.001, 1.001]), Some(6));
        assert_eq!(ended(&[1.0, 1.1, 1.2]), Some(3));
        assert_eq!(ended(&[3.0, 2.0, 1.0, 0.5, 0.501, 0.502]), Some(6));
    }

    #[test]
    fn the_best_is_kept_until_patience_ends() {
        let mut stopping = Stopping::new(2);
        let ends: Vec<bool> =
            (1..).zip([5.0, 3.0, 4.0, 3.0, 3.5, 3.1]).map(|(at, value)| evaluate(&mut stopping, at, value)).collect();
        assert_eq!(ends, [false, false, false, false, false, true]);
        assert_eq!(stopping.best().unwrap().iteration, 4, "of equal ones the last");
        assert_eq!(stopping.take(6).unwrap().0, 4);
        assert_eq!(stopping.bytes, Some(8));
    }

    #[test]
    fn without_patience_nothing_is_kept() {
        let mut stopping = Stopping::new(0);
        assert!(!(1..20).any(|at| evaluate(&mut stopping, at, at as f64)));
        assert!(stopping.best().is_none() && stopping.take(19).is_none());
    }

    #[test]
    fn a_number_that_is_none_is_no_evaluation() {
        let mut stopping = Stopping::new(1);
        assert!(!evaluate(&mut stopping, 1, f64::NAN));
        assert!(stopping.best().is_none());
    }

    #[test]
    fn what_was_saved_is_gone_on_with_from_any_checkpoint() {
        let place = tempfile::tempdir().unwrap();
        let mut stopping = of_three(place.path());
        stopping.clean(place.path()).unwrap();
        let mut resumed = Stopping::<Number>::new(3);
        resumed.load(place.path(), (3, 0), no_model).unwrap();
        assert_eq!((resumed.worse(), resumed.take(3).unwrap().0), (1, 2));
        // The next checkpoint was not completed.
        evaluate(&mut stopping, 4, 2.0);
        evaluate(&mut stopping, 5, 2.5);
        stopping.save(place.path(), 5, &record()).unwrap();
        resumed.load(place.path(), (3, 0), no_model).unwrap();
        assert_eq!((resumed.worse(), resumed.take(3).unwrap().0), (1, 2));
        stopping.clean(place.path()).unwrap();
        assert!(!super::place(place.path(), 2).exists() && super::place(place.path(), 4).exists());
    }

    #[test]
    fn a_checkpoint_of_a_leg_that_has_ended_is_gone_on_from_with_its_evaluations() {
        let place = tempfile::tempdir().unwrap();
        let mut stopping = of_three(place.path());
        stopping.begin(3);
        assert!(stopping.best().is_none() && stopping.take(3).is_none(), "of the next leg nothing is known");
        evaluate(&mut stopping, 4, 9.0);
        evaluate(&mut stopping, 5, 9.5);
        assert_eq!((stopping.best().unwrap().iteration, stopping.worse()), (4, 1));
        // The checkpoint after iteration 5 was not completed.
        stopping.save(place.path(), 5, &record()).unwrap();
        let mut resumed = Stopping::<Number>::new(3);
        resumed.load(place.path(), (3, 0), no_model).unwrap();
        assert_eq!((resumed.worse(), resumed.take(3).unwrap().0), (1, 2));
        let mut resumed = Stopping::<Number>::new(3);
        resumed.load(place.path(), (5, 3), no_model).unwrap();
        assert_eq!((resumed.worse(), resumed.take(5).unwrap().0), (1, 4));
    }

    #[test]
    fn a_best_model_that_is_the_checkpoint_is_kept_where_the_run_gets_worse_from_there() {
        let place = tempfile::tempdir().unwrap();
        let mut stopping = Stopping::new(3);
        evaluate(&mut stopping, 1, 5.0);
        evaluate(&mut stopping, 2, 3.0);
        stopping.save(place.path(), 2, &record()).unwrap();
        let mut resumed = Stopping::<Number>::new(3);
        resumed.load(place.path(), (2, 0), || Ok(Number(2))).unwrap();
        evaluate(&mut resumed, 3, 4.0);
        assert_eq!(resumed.take(3).unwrap().0, 2);
    }
}
