//! Sparse logistic regression as its user sees it.

use std::fmt::Write;

use crate::{Place, done, fails, json, run};

/// Writes samples whose label two of eight features decide, with some noise; labels 1 and 2.
fn samples(place: &Place, name: &str, rows: u32) -> String {
    let mut text = String::new();
    for row in 0..rows {
        let bit = |n: u32| (row.wrapping_mul(2_654_435_761).wrapping_add(n * 40_503) >> (n + 9)) & 1 == 1;
        let score = 2 * i32::from(bit(0)) - 2 * i32::from(bit(1)) + i32::from(row % 7 == 0) - i32::from(row % 5 == 0);
        write!(text, "{}", if score > 0 { 2 } else { 1 }).unwrap();
        for feature in (0..8).filter(|&feature| bit(feature)) {
            write!(text, " {}:{}", feature + 1, 1 + feature % 2).unwrap();
        }
        text.push('\n');
    }
    place.file(name, text)
}

#[test]
fn a_run_converges_to_a_certificate_and_its_model_predicts() {
    let place = Place::new();
    let (train, test) = (samples(&place, "train.libsvm", 900), samples(&place, "test.libsvm", 400));
    let (model, record) = (place.name("model"), place.name("run.json"));
    let text = done(&[
        "blockpg",
        &train,
        "--positive",
        "2",
        "--l1",
        "1,8",
        "--intercept",
        "--test",
        &test,
        "--model",
        &model,
        "--json",
        &record,
    ]);
    assert!(text.contains("l1 8: objective") && text.contains("l1 1: objective"), "{text}");
    let result = &json(&record)["result"];
    assert_eq!(result["ended_by"], "tolerance");
    let metric = |name: &str| result["metrics"][name].as_f64().unwrap();
    assert!(metric("gap") <= 1e-6 && metric("kkt_violation") < 1e-2, "{result}");
    assert!(metric("nonzeros") >= 2.0 && metric("loss") < result["objective"].as_f64().unwrap());

    let chances = done(&["predict", &model, &test]);
    let labels = std::fs::read_to_string(&test).unwrap();
    let pairs: Vec<(f64, bool)> = chances
        .lines()
        .zip(labels.lines())
        .map(|(chance, line)| (chance.parse().unwrap(), line.starts_with('2')))
        .collect();
    assert_eq!(pairs.len(), 400);
    let loss: f64 = pairs.iter().map(|&(p, is_one)| -(if is_one { p } else { 1.0 - p }).ln()).sum::<f64>() / 400.0;
    assert!((loss - metric("test_log_loss")).abs() < 1e-6, "{loss}, {}", metric("test_log_loss"));
    let right = pairs.iter().filter(|&&(p, is_one)| (p >= 0.5) == is_one).count() as f64 / 400.0;
    assert!((right - metric("test_accuracy")).abs() < 1e-9);
    let (mut wins, mut all) = (0.0, 0.0);
    for &(p, _) in pairs.iter().filter(|pair| pair.1) {
        for &(q, _) in pairs.iter().filter(|pair| !pair.1) {
            all += 1.0;
            wins += if p > q {
                1.0
            } else if p == q {
                0.5
            } else {
                0.0
            };
        }
    }
    assert!((wins / all - metric("test_auc")).abs() < 1e-6);
    assert!(done(&["predict", &model, &test, "--quality"]).contains("auc "));
}

#[test]
fn a_warm_start_converges_at_once() {
    let place = Place::new();
    let train = samples(&place, "train.libsvm", 900);
    let (model, first, second) = (place.name("model"), place.name("first.json"), place.name("second.json"));
    let begin = ["blockpg", &train, "--positive", "2", "--json"];
    // The gap may rise for an iteration: the start is better than what ends the second run.
    done(&[&begin[..], &[&first, "--model", &model, "--tolerance", "1e-8"]].concat());
    done(&[&begin[..], &[&second, "--warm-start", &model]].concat());
    let iterations = |path: &str| json(path)["result"]["iterations"].as_u64().unwrap();
    assert!(iterations(&second) <= 2 && iterations(&second) <= iterations(&first));
}

#[test]
fn weights_of_samples_count_as_repetition() {
    let place = Place::new();
    let once = samples(&place, "once.libsvm", 300);
    let text = std::fs::read_to_string(&once).unwrap();
    let twice = place.file("twice.libsvm", text.lines().map(|line| format!("{line}\n{line}\n")).collect::<String>());
    let weights = place.file("weights.txt", "2\n".repeat(300));
    let (a, b) = (place.name("a.json"), place.name("b.json"));
    done(&["blockpg", &twice, "--positive", "2", "--json", &a]);
    done(&["blockpg", &once, "--positive", "2", "--sample-weights", &weights, "--json", &b]);
    let objective = |path: &str| json(path)["result"]["objective"].as_f64().unwrap();
    assert!((objective(&a) / objective(&b) - 1.0).abs() < 1e-5);
}

#[test]
fn a_penalty_too_large_leaves_an_empty_model_and_a_note() {
    let place = Place::new();
    let (train, model) = (samples(&place, "train.libsvm", 100), place.name("model"));
    let text = done(&["blockpg", &train, "--positive", "2", "--l1", "1e6", "--model", &model]);
    assert!(text.contains("no feature has a weight"), "{text}");
    let chances = done(&["predict", &model, &train]);
    assert!(chances.lines().all(|chance| chance == "0.500000000"), "{chances}");
}

#[test]
fn wrong_usage_and_bad_samples_are_told() {
    let place = Place::new();
    let train = samples(&place, "train.libsvm", 50);
    fails(&["blockpg", &train, "--delay", "2", "--slack", "2"], 2, &["--slack"]);
    fails(&["blockpg", &train, "--delay", "2", "--consistency", "ssp"], 2, &["--delay"]);
    fails(&["blockpg", &train, "--positive", "2", "--l1", "-1"], 2, &["l1 is -1"]);
    fails(&["blockpg", &train, "--positive", "2", "--l2", "-1"], 2, &["l2 is -1"]);
    fails(&["blockpg", &train], 1, &["train.libsvm:", "label"]);
    fails(&["blockpg", &train, "--positive", "3"], 1, &["all 50 samples have the label -1"]);
    let weights = place.file("weights.txt", "1\n-1\n");
    fails(&["blockpg", &train, "--positive", "2", "--sample-weights", &weights], 1, &["weights.txt:2", "-1"]);
    assert_eq!(run(&["blockpg", &train, "--positive", "2", "--delay", "2"]).code, Some(0));
}
