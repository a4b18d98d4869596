//! What a cut of the edges costs: the bytes that matrix factorization sends, against those of a random vertex-cut.

use std::path::PathBuf;

use serde_json::Value;

use crate::{Place, done, json};

/// Bytes of a row: 32 factors, a bias, and the one that it is multiplied with.
const ROW: f64 = 4.0 * 34.0;

/// Returns the bytes that the plan foresees for an iteration.
fn planned(ratings: &str, processes: &str) -> f64 {
    let plan = done(&["plan", "mf", ratings, "--format", "ratings", "--processes", processes, "-w", "1"]);
    let line = plan.lines().find_map(|line| line.strip_prefix("traffic")).unwrap_or_else(|| panic!("{plan}"));
    line.split_whitespace().next().and_then(|bytes| bytes.parse().ok()).unwrap_or_else(|| panic!("{plan}"))
}

/// Returns the bytes of an iteration that synchronizes every mirror once: what changed to its master, the row back.
fn synced(ratings: &str, processes: &str, strategy: &str) -> f64 {
    let options = ["--format", "ratings", "-n", processes, "--strategy", strategy, "--json", "-"];
    let report: Value = serde_json::from_str(&done(&[&["partition", ratings], &options[..]].concat())).unwrap();
    let number = |of: &Value, name: &str| of[name].as_f64().unwrap();
    let found = &report["strategies"][0];
    let mirrors = |side: &str| number(&report, side) * (number(found, &format!("{side}_replication_factor")) - 1.0);
    2.0 * ROW * (mirrors("left") + mirrors("right"))
}

#[test]
fn bipartite_cuts_send_at_most_half_of_what_a_random_one_sends() {
    let place = Place::new();
    let ratings = place.name("ratings.txt");
    done(&["generate", "ratings", &ratings, "--left", "4000", "--right", "1000", "--edges", "200000"]);
    for processes in ["2", "4", "8"] {
        let random = synced(&ratings, processes, "random");
        for (name, bytes) in [("bicut", synced(&ratings, processes, "bicut")), ("plan", planned(&ratings, processes))] {
            assert!(bytes <= random / 2.0, "{processes} processes, {name}: {bytes} of {random}");
        }
    }
}

#[test]
fn bipartite_cuts_of_movielens_send_at_most_half() {
    let data = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/movielens-100k/u.data.gz"));
    let Some(ratings) = data.to_str().filter(|_| data.exists()) else {
        eprintln!("skipped: {} is absent", data.display());
        return;
    };
    for processes in ["2", "4", "8"] {
        let random = synced(ratings, processes, "random");
        for (name, bytes) in [("bicut", synced(ratings, processes, "bicut")), ("plan", planned(ratings, processes))] {
            assert!(bytes <= random / 2.0, "{processes} processes, {name}: {bytes} of {random}");
        }
    }
}

#[test]
fn a_run_sends_what_its_plan_says() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("run.json"));
    let options = ["--iterations", "3", "-q", "-w", "1", "--json", &record];
    done(&[&["launch", "-n", "2", "--", "mf", &ratings], &options[..]].concat());
    let expected = planned(&ratings, "2");
    let record = json(&record);
    let machine = &record["machine"];
    assert_eq!(record["config"]["strategy"], "bicut");
    assert!(machine["replication_factor"].as_f64().is_some_and(|factor| factor > 1.0), "{machine}");
    for balance in ["edge_balance", "master_balance"] {
        assert!(machine[balance].as_f64().is_some_and(|balance| (1.0..1.5).contains(&balance)), "{machine}");
    }
    for iteration in record["iterations"].as_array().unwrap() {
        assert_eq!(iteration["sent_bytes"].as_f64(), Some(expected));
        assert_eq!(iteration["sent"]["shards"]["bytes"].as_f64(), Some(expected));
    }
}
