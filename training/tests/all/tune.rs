//! Tuned runs: who watches one sees its iterations, and may end it.

use std::cell::RefCell;

use megagrid_datasets::{Dataset, Dictionary};
use megagrid_partition::{EdgeList, SplitMix};
use megagrid_training::mf::{FactorOptions, Factorization, Ratings};
use megagrid_training::record::Record;
use megagrid_training::tune::{TuneOptions, Tuned, tune};
use megagrid_training::{Error, Job, Observer, Processes, RunOptions, train};

/// Ratings of rank one with noise.
fn ratings() -> Ratings {
    let mut random = SplitMix::new(5, 0);
    let mut edges = EdgeList { num_left: 60, num_right: 40, ..EdgeList::default() };
    for user in 0..60 {
        for item in (0..40).filter(|item| (user + item) % 3 > 0) {
            let taste = f64::from((user % 5) * (item % 7)) / 6.0;
            edges.push(user, item, (taste + 0.1 * random.unit()) as f32);
        }
    }
    let names = |count| Dictionary::from_integers((0..count).collect());
    let all = Dataset { edges, left_names: names(60), right_names: Some(names(40)) };
    Ratings::new(all, None, 1).unwrap()
}

fn options(iterations: u64) -> FactorOptions {
    FactorOptions { dims: 4, iterations, ..FactorOptions::default() }
}

fn job(options: FactorOptions, may_end: bool) -> Job<Factorization> {
    let run = RunOptions { workers: Some(2), ..RunOptions::default() };
    let job = Job::new(ratings(), serde_json::json!({}), options, &run, &Processes::default()).unwrap();
    Job { may_end, ..job }
}

/// Takes down iterations, and asks the run to end after one.
struct Watch {
    seen: RefCell<Vec<u64>>,
    last: u64,
}

impl Observer for Watch {
    fn iteration(&self, record: &Record) {
        assert!(record.iterations.last().is_some_and(|one| one.objective.is_some()));
        self.seen.borrow_mut().push(record.iterations.len() as u64);
    }

    fn asks_to_end(&self) -> bool {
        self.seen.borrow().last().copied().unwrap_or(0) >= self.last
    }
}

/// Tunes a run of `iterations` iterations, which is asked to end after the `last` one.
fn tuned(iterations: u64, last: u64, may_end: bool) -> (Result<Tuned<Factorization>, Error>, Vec<u64>) {
    let watch = Watch { seen: RefCell::default(), last };
    let found = tune(job(options(iterations), may_end), &TuneOptions::default(), &Processes::default(), &watch);
    (found, watch.seen.into_inner())
}

#[test]
fn each_iteration_of_the_run_is_seen_once() {
    let (found, seen) = tuned(16, u64::MAX, false);
    let record = found.unwrap().trained.record;
    assert_eq!(seen, (1..=record.iterations.len() as u64).collect::<Vec<_>>());
    assert!(seen.len() > 12, "trials are not seen: {seen:?}");
}

#[test]
fn a_tuned_run_ends_when_the_objective_hardly_changes() {
    let with = |tolerance: f64| {
        let job = job(FactorOptions { tolerance, ..options(60) }, false);
        tune(job, &TuneOptions::default(), &Processes::default(), &()).unwrap().trained.record.result
    };
    let (to_the_end, settled) = (with(0.0), with(0.5));
    assert!(to_the_end.ended_by != "tolerance" && settled.ended_by == "tolerance", "{to_the_end:?} {settled:?}");
    assert!(settled.iterations < to_the_end.iterations, "{} of {}", settled.iterations, to_the_end.iterations);
}

#[test]
fn a_run_that_may_end_is_as_if_it_had_fewer_iterations() {
    let (found, seen) = tuned(30, 14, true);
    let Tuned { trained, options, .. } = found.unwrap();
    let (tuning, result) = (trained.record.tuning.unwrap(), trained.record.result);
    assert_eq!(
        (seen.len(), result.iterations, &*result.ended_by, &*tuning.ended_by),
        (14, 14, "interrupt", "interrupt")
    );
    assert!(tuning.trials.len() > 1 && tuning.most_branches > 1 && tuning.settings.len() == 1);
    // That is what a run comes to that has the setting from its beginning.
    let shorter = job(FactorOptions { iterations: 14, ..options }, false);
    let expected = train(shorter, &Processes::default(), &()).unwrap();
    assert_eq!(trained.model.unwrap().model, expected.model.unwrap().model);
}

#[test]
fn a_run_that_may_not_end_and_a_first_search_have_no_model() {
    for (last, may_end) in [(14, false), (0, false), (0, true)] {
        let (found, seen) = tuned(30, last, may_end);
        assert!(matches!(found, Err(Error::Interrupted { .. })), "after {last}");
        assert_eq!(seen.len() as u64, last);
    }
}
