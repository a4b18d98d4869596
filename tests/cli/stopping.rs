//! Early stopping: with test data the model is that of the best iteration, and the run ends when it gets worse for long.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{Place, done, json};

/// Ratings of few users that nothing explains: a model learns them by heart, and gets worse on others.
pub(crate) fn noise(place: &Place) -> String {
    let mut text = String::new();
    for user in 0..60_u32 {
        for item in (0..40_u32).filter(|item| (user * 31 + item * 17) % 3 != 0) {
            let noise = user.wrapping_mul(2_654_435_761).wrapping_add(item.wrapping_mul(40_503)) >> 11 & 7;
            writeln!(text, "u{user},i{item},{noise}").unwrap();
        }
    }
    place.file("noise.csv", text)
}

fn tested(record: &Value, metric: &str) -> Vec<f64> {
    record["iterations"].as_array().unwrap().iter().filter_map(|one| one["metrics"][metric].as_f64()).collect()
}

/// Finds that a record says what its iterations say: the model is of the best one, and five that are worse follow.
fn is_of_the_best(record: &Value, metric: &str) {
    let (all, result) = (tested(record, metric), &record["result"]);
    let best = (0..all.len()).rev().min_by(|&a, &b| all[a].total_cmp(&all[b])).unwrap();
    let evaluated: Vec<u64> = record["iterations"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| !one["metrics"][metric].is_null())
        .map(|one| one["iteration"].as_u64().unwrap())
        .collect();
    assert_eq!(result["best_iteration"], evaluated[best], "{all:?}");
    assert_eq!(result["metrics"][metric], all[best], "{result}");
    assert_eq!(result["ended_by"], "patience", "{result}");
    // Of the first ten those do not count that are nearly as good.
    let counts = |at: &usize| *at >= 10 || all[*at] - all[best] > 0.005 * all[best].abs();
    assert_eq!((best + 1..all.len()).filter(counts).count(), 5, "{all:?}");
    assert!(record["machine"]["best_model_bytes"].as_u64().unwrap() > 0);
}

fn users(model: &str) -> Vec<u8> {
    fs::read(Path::new(model).join("users.npy")).unwrap()
}

#[test]
fn the_model_is_that_of_the_best_iteration() {
    let place = Place::new();
    let (ratings, model, record) = (noise(&place), place.name("model"), place.name("run.json"));
    let mf = ["mf", &ratings, "--holdout", "0.2", "--lambda", "0", "-w", "2", "--iterations", "200"];
    let text = done(&[&mf[..], &["--model", &model, "--json", &record]].concat());
    let found = json(&record);
    is_of_the_best(&found, "test_rmse");
    assert_eq!(json(Path::new(&model).join("model.json"))["metrics"], found["result"]["metrics"]);
    let best = found["result"]["best_iteration"].as_u64().unwrap();
    assert!(text.contains(&format!("the model is of iteration {best}, the best on test data")), "{text}");
    // The same run that ends there has the same model.
    let short = place.name("short");
    let iterations = best.to_string();
    let options = ["--patience", "0", "-q", "--model", &short, "--json", &record];
    done(&[&mf[..8], &["--iterations", &iterations], &options].concat());
    assert_eq!(users(&model), users(&short));
    assert!(json(&record)["result"].get("best_iteration").is_none());
}

#[test]
fn without_patience_all_iterations_are_run() {
    let place = Place::new();
    let (ratings, record) = (noise(&place), place.name("run.json"));
    let options = ["--iterations", "40", "--patience", "0", "-q", "--json", &record];
    done(&[&["mf", &ratings, "--holdout", "0.2", "--lambda", "0", "-w", "1"], &options[..]].concat());
    let found = json(&record);
    assert_eq!((&found["result"]["ended_by"], tested(&found, "test_rmse").len()), (&"iterations".into(), 40));
    assert_eq!(found["result"]["metrics"]["test_rmse"], tested(&found, "test_rmse")[39]);
}

#[test]
fn a_continued_run_stops_where_one_does_that_never_stopped() {
    let place = Place::new();
    let ratings = noise(&place);
    let mf = ["mf", &ratings, "--holdout", "0.2", "--lambda", "0", "-w", "2", "-q", "--model"];
    let [whole, rest, record, saved] = ["whole", "rest", "run.json", "saved"].map(|name| place.name(name));
    done(&[&mf[..], &[&whole, "--iterations", "200", "--json", &record]].concat());
    let all = json(&record)["result"].clone();
    let best = all["best_iteration"].as_u64().unwrap();
    // Two worse ones are known at the checkpoint.
    let iterations = (best + 2).to_string();
    done(&[&mf[..], &[&place.name("first"), "--iterations", &iterations, "--checkpoint", &saved]].concat());
    assert!(place.path("saved").join(format!("best-{best:05}")).join("model.json").exists());
    done(&[&mf[..], &[&rest, "--iterations", "200", "--resume", &saved, "--json", &record]].concat());
    let found = &json(&record)["result"];
    for part in ["best_iteration", "iterations", "ended_by", "metrics", "objective"] {
        assert_eq!(found[part], all[part], "{part}");
    }
    assert_eq!(users(&whole), users(&rest));
}

#[test]
fn several_processes_stop_together() {
    let place = Place::new();
    let (ratings, record, model) = (noise(&place), place.name("run.json"), place.name("model"));
    let mf = ["mf", &ratings, "--holdout", "0.2", "--lambda", "0", "-w", "1", "--iterations", "200", "-q"];
    done(&[&["launch", "-n", "2", "--"], &mf[..], &["--json", &record, "--model", &model]].concat());
    is_of_the_best(&json(&record), "test_rmse");
}

#[test]
fn topics_and_samples_stop_early() {
    let place = Place::new();
    let corpus = place.name("corpus.txt");
    done(&["generate", "corpus", &corpus, "--documents", "40", "--vocabulary", "60", "--topics", "3"]);
    let (record, model) = (place.name("lda.json"), place.name("topics"));
    let lda = ["lda", &corpus, "-k", "30", "--prior", "fixed", "--holdout", "0.25", "--iterations", "400", "-w", "1"];
    done(&[&lda[..], &["-q", "--json", &record, "--model", &model]].concat());
    is_of_the_best(&json(&record), "test_perplexity");
    assert!(done(&["topics", &model]).lines().count() > 1);

    let clicks = place.name("clicks.libsvm");
    done(&["generate", "clicks", &clicks, "--samples", "200", "--features", "300"]);
    let (record, model) = (place.name("blockpg.json"), place.name("clicks"));
    let blockpg = ["blockpg", &clicks, "--l1", "1e-3", "--holdout", "0.3", "-w", "1", "-q", "--json", &record];
    let patient = [&blockpg[..], &["--patience", "5"]].concat();
    done(&[&patient[..], &["--model", &model]].concat());
    let all = json(&record);
    is_of_the_best(&all, "test_log_loss");
    // The certificate is that of the model.
    let found = &all["result"]["metrics"];
    assert!(found["gap"].as_f64().unwrap() > 1e-6, "{found}");
    let [objective, loss] = [&all["result"]["objective"], &found["loss"]].map(|value| value.as_f64().unwrap());
    assert!(objective > loss && found["nonzeros"].as_f64().unwrap() > 0.0, "{objective}: {found}");
    // One that is continued has read the best model from beside the checkpoint.
    let (saved, rest) = (place.name("saved"), place.name("rest"));
    let iterations = (all["result"]["best_iteration"].as_u64().unwrap() + 1).to_string();
    done(&[&patient[..], &["--iterations", &iterations, "--checkpoint", &saved]].concat());
    done(&[&patient[..], &["--resume", &saved, "--model", &rest]].concat());
    assert_eq!(json(&record)["result"]["metrics"], all["result"]["metrics"]);
    let weights = |model: &str| fs::read(Path::new(model).join("weights.parquet")).unwrap();
    assert_eq!(weights(&model), weights(&rest));
    // What l1 says is fitted to the end unless patience is asked for.
    done(&blockpg);
    assert_ne!(json(&record)["result"]["ended_by"], "patience");
}
