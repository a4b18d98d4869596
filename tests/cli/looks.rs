//! Looks: with slack, or clocks of several iterations, only after some iterations can a run be measured, saved or ended.

use serde_json::Value;

use crate::lda::documents;
use crate::{Place, done, fails, json, run};

/// The iterations of a record in which a value was found.
fn found_in(record: &Value, is_found: impl Fn(&Value) -> bool) -> Vec<u64> {
    let iterations = record["iterations"].as_array().unwrap();
    assert!(iterations.iter().zip(1..).all(|(one, at)| one["iteration"] == at), "each iteration is recorded");
    let found = iterations.iter().filter(|one| is_found(one));
    found.map(|one| one["iteration"].as_u64().unwrap()).collect()
}

/// With one clock an iteration.
const SLACK: [&str; 8] = ["--consistency", "essp", "--slack", "1", "-w", "2", "--work-per-clock", "1"];

fn train(place: &Place, options: &[&str]) -> Value {
    let path = place.name("run.json");
    let all = ["mf", &place.ratings(), "-q", "--json", &path];
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
fn where_async_has_no_effect_is_said() {
    let place = Place::new();
    let said =
        |args: &[&str]| run(&[args, &["--iterations", "2", "-q", "-w", "2", "--consistency", "async"]].concat()).stderr;
    let (ratings, graph) = (place.ratings(), place.graph());
    assert!(said(&["hits", &graph]).contains("async is bsp for hits"));
    for command in [["pagerank", &graph], ["mf", &ratings]] {
        assert!(said(&command).contains("--evaluate-every N"), "{command:?}");
    }
    assert_eq!(said(&["mf", &ratings, "--evaluate-every", "2"]), "");
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
    let plan = done(&[&["plan", "mf", &place.ratings()][..], &SLACK].concat());
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

#[test]
fn a_clock_of_several_iterations_ends_at_a_look() {
    let place = Place::new();
    let (ratings, posts) = (place.ratings(), documents(&place));
    let work = ["--work-per-clock", "2", "--iterations", "7", "--evaluate-every", "3"];
    let record = train(&place, &work);
    assert_eq!(record["config"]["work_per_clock"], 2.0);
    // Looks are at the ends of clocks: the first after the third iteration is after the fourth.
    assert_eq!(found_in(&record, |one| !one["objective"].is_null()), [4, 6, 7]);
    assert_eq!(found_in(&record, |one| !one["metrics"]["running_rmse"].is_null()), [2, 4, 6, 7]);
    let virtually = |name: &str| {
        let options = ["--virtual-workers", "3", "--clock-cost", "1", "--step", "0.02", "--model", name];
        let record = train(&place, &[&work[..], &options].concat());
        let sent = |one: &Value| one["sent"]["changes"]["messages"].as_u64().unwrap();
        assert_eq!(found_in(&record, |one| sent(one) > 0), [2, 4, 6, 7]);
        std::fs::read(place.path(name).join("users.npy")).unwrap()
    };
    let [one, other] = ["one", "other"].map(|name| virtually(&place.name(name)));
    assert!(one == other, "with slack 0 runs are the same bit for bit");
    let path = place.name("topics.json");
    done(&["lda", &posts, "-k", "4", "--iterations", "6", "--work-per-clock", "2", "-q", "--json", &path]);
    let record = json(&path);
    // In the first clock the draws of its second iteration count.
    assert_eq!(found_in(&record, |one| one["metrics"].as_object().is_some_and(|all| !all.is_empty())), [2, 4, 6]);

    let several = "cannot have several iterations";
    fails(&["lda", &posts, "-k", "4", "--sampler", "mh", "--work-per-clock", "2"], 2, &[several]);
    fails(&["mf", &ratings, "--gradient", "batch", "--work-per-clock", "2"], 2, &[several]);
    fails(&["mf", &ratings, "--work-per-clock", "2.5"], 2, &["work-per-clock is 2.5", "a whole number of iterations"]);
    fails(&["pagerank", &place.graph(), "--work-per-clock", "2"], 2, &["work-per-clock is 2", "takes 1 only"]);
}

#[test]
fn a_run_that_is_resumed_ends_by_its_tolerance_where_the_whole_run_does() {
    let place = Place::new();
    let (ratings, documents) = (place.ratings(), documents(&place));
    let commands: [&[&str]; 3] = [
        &["mf", &ratings, "--tolerance", "0.01"],
        &["als", &ratings, "--tolerance", "0.01"],
        &["lda", &documents, "--topics", "4", "--tolerance", "0.01"],
    ];
    for command in commands {
        let (path, checkpoints) = (place.name("run.json"), place.name(&format!("{}-saved", command[0])));
        let result = |options: &[&str]| {
            done(&[command, &["-q", "--json", &path, "--evaluate-every", "2"], options].concat());
            json(&path)["result"].clone()
        };
        let whole = result(&["--iterations", "100"]);
        assert_eq!(whole["ended_by"], "tolerance", "{whole}");
        let last = whole["iterations"].as_u64().unwrap();
        assert!(last > 2, "{whole}");
        let at = (last - 2).to_string();
        result(&["--iterations", &at, "--checkpoint", &checkpoints]);
        let resumed = result(&["--iterations", "100", "--resume", &checkpoints]);
        for name in ["iterations", "ended_by", "objective"] {
            assert_eq!(resumed[name], whole[name], "{command:?}: {name}");
        }
    }
}
