//! What a cut of the edges costs: the bytes that matrix factorization sends, against those of a random vertex-cut.

use crate::command::{Place, assert_halved, done, json, planned};
use crate::fails;

#[test]
fn bipartite_cuts_send_at_most_half_of_what_a_random_one_sends() {
    let place = Place::new();
    let ratings = place.name("ratings.txt");
    done(&["generate", "ratings", &ratings, "--left", "4000", "--right", "1000", "--edges", "200000"]);
    for processes in ["2", "4", "8"] {
        assert_halved(&ratings, processes);
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
        let bytes = |kind: &str| iteration["sent"][kind]["bytes"].as_f64().unwrap();
        assert_eq!(bytes("shards") + bytes("sums"), expected);
        assert!(bytes("sums") <= 256.0, "{iteration}");
    }
}

#[test]
fn processes_rank_alike_under_every_strategy_and_send_what_the_plan_says() {
    let place = Place::new();
    let (links, record) = (place.name("links.mgrid"), place.name("run.json"));
    done(&["generate", "rmat", &links, "--scale", "10"]);
    let ranked = |args: &[&str]| {
        done(&[args, &["--iterations", "5", "-q", "-w", "1", "--json", &record]].concat());
        json(&record)
    };
    let residual = |record: &serde_json::Value| record["result"]["objective"].as_f64().unwrap();
    let expected = ranked(&["pagerank", &links]);
    for strategy in ["bicut", "grid", "hybrid", "mixed", "auto"] {
        let plan = done(&["plan", "pagerank", &links, "--processes", "4", "-w", "1", "--strategy", strategy]);
        let placement = plan.lines().find(|line| line.starts_with("placement")).unwrap_or_else(|| panic!("{plan}"));
        assert!(placement.contains(if strategy == "auto" { "bicut" } else { strategy }), "{placement}");
        let traffic = plan.lines().find_map(|line| line.strip_prefix("traffic")).unwrap_or_else(|| panic!("{plan}"));
        let bytes: f64 = traffic.split_whitespace().next().unwrap().parse().unwrap();
        let saved = place.name(&format!("saved-{strategy}"));
        let launch = ["launch", "-n", "4", "--", "pagerank", &links, "--strategy", strategy, "--checkpoint", &saved];
        let found = ranked(&launch);
        assert!((residual(&found) - residual(&expected)).abs() < 1e-6, "{strategy}: {found}");
        assert!(found["machine"]["worker_balance"].as_f64().is_some_and(|balance| balance >= 1.0), "{found}");
        for iteration in found["iterations"].as_array().unwrap() {
            assert_eq!(iteration["sent_bytes"].as_f64(), Some(bytes), "{strategy}");
        }
        // A checkpoint goes on in one process, and under another strategy.
        done(&["pagerank", &links, "--iterations", "7", "-q", "-w", "2", "--resume", &saved]);
        let rest = ["pagerank", &links, "--iterations", "7", "-q", "-w", "1", "--resume", &saved, "--strategy", "grid"];
        done(&[&["launch", "-n", "2", "--"], &rest[..]].concat());
    }
}

#[test]
fn a_strategy_that_an_algorithm_cannot_run_under_is_refused_by_its_stage() {
    let place = Place::new();
    for strategy in ["grid", "hybrid", "mixed"] {
        let plan = ["plan", "mf", &place.ratings(), "--processes", "2", "--strategy", strategy];
        fails(&plan, 1, &["Descend", strategy, "take bicut"]);
    }
    let auto = done(&["plan", "mf", &place.ratings(), "--processes", "2", "--strategy", "auto"]);
    assert!(auto.contains("placement     bicut, left vertices whole"), "{auto}");
}
