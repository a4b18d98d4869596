//! Looks: with slack, iterations flow into each other, and only after some of them can a run be measured, saved or ended.

use serde_json::Value;

use crate::{Place, done, json};

/// The iterations of a record in which a value was found.
fn found_in(record: &Value, is_found: impl Fn(&Value) -> bool) -> Vec<u64> {
    let iterations = record["iterations"].as_array().unwrap();
    assert!(iterations.iter().zip(1..).all(|(one, at)| one["iteration"] == at), "each iteration is recorded");
    let found = iterations.iter().filter(|one| is_found(one));
    found.map(|one| one["iteration"].as_u64().unwrap()).collect()
}

const SLACK: [&str; 6] = ["--consistency", "essp", "--slack", "1", "-w", "2"];

fn train(place: &Place, options: &[&str]) -> Value {
    let path = place.name("run.json");
    let all = ["mf", &place.ratings(), "--work-per-clock", "1", "-q", "--json", &path];
    done(&[&all[..], options].concat());
    json(&path)
}

#[test]
fn with_slack_the_objective_is_measured_where_all_meet() {
    let place = Place::new();
    let record = train(&place, &[&SLACK[..], &["--iterations", "7", "--evaluate-every", "3"]].concat());
    assert_eq!(found_in(&record, |one| !one["objective"].is_null()), [3, 6, 7]);
    assert_eq!(found_in(&record, |one| !one["metrics"]["running_rmse"].is_null()), [3, 6, 7]);
    assert_eq!(found_in(&record, |one| one["updates"] == record["input"]["edges"]).len(), 7);
    let seconds = |one: &Value| one["seconds"].as_f64().unwrap();
    let sum: f64 = record["iterations"].as_array().unwrap().iter().map(seconds).sum();
    assert!((sum - record["phases"]["train"].as_f64().unwrap()).abs() < 1e-9);
    for age in record["staleness"].as_object().unwrap().keys() {
        assert!(["-1", "-2"].contains(&age.as_str()), "{age}");
    }
}

#[test]
fn if_nothing_is_said_looks_follow_from_the_slack() {
    let place = Place::new();
    let checkpoints = place.name("checkpoints");
    let options = [
        "--iterations",
        "20",
        "--holdout",
        "0.2",
        "--checkpoint",
        &checkpoints,
        "--checkpoint-every",
        "5",
        "--patience=0",
    ];
    let record = train(&place, &[&SLACK[..], &options].concat());
    // Four times the two clocks by which workers may be apart.
    assert_eq!(found_in(&record, |one| !one["metrics"]["test_rmse"].is_null()), [8, 16, 20]);
    assert_eq!(found_in(&record, |one| !one["objective"].is_null()), [20]);
    let plan = done(&[&["plan", "mf", &place.ratings(), "--work-per-clock", "1"][..], &SLACK].concat());
    assert!(plan.contains("iterations flow into each other, all meet after every 8"), "{plan}");
    // What is saved at a look goes on as any checkpoint does.
    let more = train(&place, &["--iterations", "22", "--holdout", "0.2", "--resume", &checkpoints]);
    assert_eq!(more["iterations"][0]["iteration"], 21);
}

#[test]
fn a_tolerance_ends_a_run_where_all_meet() {
    let place = Place::new();
    let path = place.name("run.json");
    done(&[&["pagerank", &place.graph(), "-q", "--json", &path], &SLACK[..]].concat());
    let record = json(&path);
    assert_eq!(record["result"]["ended_by"], "tolerance");
    let ended = record["result"]["iterations"].as_u64().unwrap();
    assert_eq!(
        found_in(&record, |one| !one["objective"].is_null()),
        (1..=ended / 8).map(|n| n * 8).collect::<Vec<_>>()
    );
}

#[test]
fn without_slack_every_iteration_can_be_looked_at() {
    let place = Place::new();
    let record = train(&place, &["--iterations", "7", "--evaluate-every", "3", "-w", "2"]);
    assert_eq!(found_in(&record, |one| !one["objective"].is_null()), [3, 6, 7]);
    assert_eq!(found_in(&record, |one| !one["metrics"]["running_rmse"].is_null()), (1..=7).collect::<Vec<_>>());
}
