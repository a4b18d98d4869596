//! Testing leaves no trace in what is trained (Cui's thesis, section 5.3.5, where a branch of its own is tested).

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::stopping::noise;
use crate::{Place, done, json};

/// Returns a model's arrays and tables, by name.
fn arrays(place: &Place, model: &str) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(place.path(model)).unwrap().map(|entry| entry.unwrap().path());
    let is_array = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "npy" || end == "parquet");
    let read =
        |path: std::path::PathBuf| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap());
    files.filter(is_array).map(read).collect()
}

fn of_iterations<'r>(record: &'r Value, name: &str) -> Vec<&'r Value> {
    record["iterations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["metrics"][name])
        .filter(|one| !one.is_null())
        .collect()
}

#[test]
fn a_model_that_was_tested_after_each_iteration_is_one_that_was_not() {
    let place = Place::new();
    let (ratings, corpus, clicks) = (noise(&place), place.name("corpus.txt"), place.name("clicks.libsvm"));
    done(&["generate", "corpus", &corpus, "--documents", "40", "--vocabulary", "60", "--topics", "3"]);
    done(&["generate", "clicks", &clicks, "--samples", "200", "--features", "300"]);
    let runs: [(&str, &[&str]); 5] = [
        ("test_rmse", &["mf", &ratings, "--holdout", "0.2", "-w", "2"]),
        ("test_rmse", &["mf", &ratings, "--holdout", "0.2", "--gradient", "batch", "-w", "2"]),
        ("test_ndcg", &["als", &ratings, "--holdout", "0.2", "--dims", "4", "-w", "2"]),
        ("test_perplexity", &["lda", &corpus, "--holdout", "0.25", "-k", "5", "-w", "1"]),
        ("test_log_loss", &["blockpg", &clicks, "--holdout", "0.3", "-w", "2"]),
    ];
    for (run, (metric, command)) in runs.into_iter().enumerate() {
        let of = |every: &str, times: usize| {
            let (model, record) = (format!("model-{run}-{every}"), place.name("run.json"));
            let options = ["--iterations", "6", "--patience", "0", "-q", "--evaluate-every", every];
            done(&[command, &options, &["--json", &record, "--model", &place.name(&model)]].concat());
            let record = json(&record);
            let tested = of_iterations(&record, metric);
            assert_eq!(tested.len(), times, "{command:?}: {}", record["iterations"][0]);
            (arrays(&place, &model), tested[times - 1].clone())
        };
        let (tested, not) = (of("1", 6), of("6", 1));
        assert!(!tested.0.is_empty());
        assert!(tested == not, "{command:?}: other arrays, or {} instead of {}", tested.1, not.1);
    }
}

#[test]
fn factors_are_tuned_by_the_error_on_test_data_and_the_step_that_they_have_by_themselves_is_tried_first() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("run.json"));
    let holdout = ["mf", &ratings, "--holdout", "0.2", "-w", "1", "--dims", "4", "--iterations", "25", "-q"];
    let run = |options: &[&str]| {
        done(&[options, &holdout, &["--json", &record]].concat());
        json(&record)
    };
    let tuned = run(&["tune"]);
    let trials = tuned["tuning"]["trials"].as_array().unwrap();
    assert_eq!(trials[0]["setting"], format!("step={}", run(&[])["config"]["step"]));
    let chosen = trials.iter().find(|trial| trial["chosen"] == true).unwrap();
    let errors = of_iterations(&tuned, "test_rmse");
    assert_eq!(chosen["loss"], *errors[chosen["iterations"].as_u64().unwrap() as usize - 1], "{chosen}");
}
