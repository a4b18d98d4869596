//! Implicit feedback as its user sees it: rankings, models that answer, and all that the other algorithms have.

use std::fs;
use std::path::Path;

use megagrid_datasets::output::read_npy;

use crate::{Place, done, fails, json};

/// Users of two kinds, who each use most items of their kind.
fn plays() -> String {
    let pairs = (0..40).flat_map(|user| {
        (0..20).filter(move |item| user % 2 == item % 2 && (user + item) % 7 > 0).map(move |item| (user, item))
    });
    pairs.map(|(user, item)| format!("u{user},i{item},{}\n", 1 + (user + item) % 3)).collect()
}

#[test]
fn what_a_user_may_want_is_ranked_and_recommended() {
    let place = Place::new();
    let input = place.file("plays.csv", plays());
    let (model, record) = (place.name("songs"), place.name("run.json"));
    let als = ["als", &input, "--dims", "4", "-w", "2", "-q"];
    done(&[&als[..], &["--holdout-per-user", "1", "--ranking", "8", "--model", &model, "--json", &record]].concat());
    let found = json(&record);
    for name in ["test_recall", "test_ndcg", "test_map", "test_mrr", "test_hit_rate", "test_coverage"] {
        assert!(found["result"]["metrics"][name].as_f64().unwrap() > 0.0, "{name}: {found}");
    }
    assert!(found["result"]["metrics"]["test_recall"].as_f64().unwrap() > 0.9, "of eight the items of a kind: {found}");
    let objectives: Vec<f64> =
        found["iterations"].as_array().unwrap().iter().map(|one| one["objective"].as_f64().unwrap()).collect();
    assert!(objectives.is_sorted_by(|a, b| a > b), "{objectives:?}");
    // User 0 has even items, of which (0 + item) % 7 = 0 are left: 0 and 14.
    let best = done(&["recommend", &model, "u0", "-n", "2", "--exclude", &input]);
    assert!(best.contains("  i0\n") && best.contains("  i14\n"), "{best}");
    // Ratings above a bound; those of mf are ranked as well.
    done(&[&als[..], &["--ratings-above", "1.5", "--holdout", "0.2", "--json", &record]].concat());
    assert!(json(&record)["result"]["metrics"]["test_ndcg"].as_f64().unwrap() > 0.0);
    done(&["mf", &input, "--holdout", "0.2", "--ranking", "5", "--iterations", "3", "-q", "--json", &record]);
    assert!(json(&record)["result"]["metrics"]["test_hit_rate"].is_number());
}

#[test]
fn what_is_no_feedback_is_refused() {
    let place = Place::new();
    let bad = place.file("bad.csv", "u1,i1,2\nu2,i1,-1.5\n");
    fails(&["als", &bad], 1, &["bad.csv", "user \"u2\" on item \"i1\" is -1.5", "--ratings-above"]);
    let none = place.file("none.csv", "u1,i1,0\nu2,i1,0\n");
    fails(&["als", &none], 1, &["none.csv", "none of the 2 values is above 0"]);
    let text = place.file("text.csv", "u1,i1,2\nu2,i1,nan\n");
    fails(&["als", &text], 1, &["text.csv", "2", "nan"]);
    fails(&["als", &bad, "--block", "17"], 2, &["block is 17; expected a multiple of 16"]);
    fails(&["als", &bad, "--holdout-per-user", "5", "--ratings-above", "0"], 1, &["no user has more than 5"]);
}

#[test]
fn plans_checkpoints_and_several_processes_come_with_the_framework() {
    let place = Place::new();
    let input = place.file("plays.csv", plays());
    assert!(done(&["plan", "als", &input, "-w", "2"]).contains("memory"));
    let bytes = |model: &str| fs::read(Path::new(model).join("items.npy")).unwrap();
    let als = ["als", &input, "-q", "--dims", "20", "--model"];
    let [whole, rest, half, saved] = ["whole", "rest", "half", "saved"].map(|name| place.name(name));
    done(&[&als[..], &[&whole, "-w", "2", "--iterations", "6"]].concat());
    done(&[&als[..], &[&half, "-w", "2", "--iterations", "3", "--checkpoint", &saved]].concat());
    done(&[&als[..], &[&rest, "-w", "2", "--iterations", "6", "--resume", &saved]].concat());
    assert_eq!(bytes(&whole), bytes(&rest));
    let two = place.name("two");
    done(&[&["launch", "-n", "2", "--"], &als[..], &[&two, "-w", "1", "--iterations", "6"]].concat());
    // Gramians are added up in another order.
    let values = |model: &str| read_npy::<f32>(&Path::new(model).join("items.npy"), 2).unwrap().values;
    let pairs: Vec<(f32, f32)> = values(&whole).into_iter().zip(values(&two)).collect();
    assert!(!pairs.is_empty() && pairs.iter().all(|(one, two)| (one - two).abs() < 1e-5), "{pairs:?}");
    done(&["tune", "als", &input, "-q", "-w", "1", "--iterations", "6", "--dims", "20"]);
}
