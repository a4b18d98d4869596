//! The demo: it runs, and comes near the noise that it planted.

use crate::{Place, done, json};

#[test]
fn the_demo_comes_near_its_answer() {
    let place = Place::new();
    let path = place.name("demo.json");
    let text = done(&["demo", "--json", &path]);
    for shown in ["planted factors", "RMSE by iteration", "●", "─", "as predicted and as planted", "Next: megagrid mf"]
    {
        assert!(text.contains(shown), "no {shown} in: {text}");
    }
    let error = json(&path)["result"]["metrics"]["test_rmse"].as_f64().unwrap();
    // The noise is 0.5, and 3 % above it is near.
    assert!((0.49..0.515).contains(&error), "{error}");
}

#[test]
fn ranks_are_those_of_the_definition() {
    let text = done(&["demo", "--algorithm", "pagerank"]);
    let apart = text.split_once("All scores together are ").unwrap().1.split_once(" apart").unwrap().0;
    assert!(apart.parse::<f64>().unwrap() < 1e-5, "{text}");
    assert!(text.contains("Next: megagrid pagerank"), "{text}");
}
