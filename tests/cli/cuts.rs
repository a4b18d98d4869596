//! What a cut of the edges costs: the bytes that matrix factorization sends, against those of a random vertex-cut.

use crate::command::{Place, assert_halved, done, json, planned};

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
