//! Sparse logistic regression as its user sees it.

use std::fmt::Write;
use std::fs;

use crate::{Place, done, fails, json, run};

/// Writes samples whose label two of eight features decide, with some noise; labels 1 and 2.
pub(crate) fn samples(place: &Place, name: &str, rows: u32) -> String {
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
    let fit = ["blockpg", &train, "--positive", "2", "--l1", "1,8", "--intercept", "--test", &test];
    let text = done(&[&fit[..], &["--model", &model, "--json", &record]].concat());
    assert!(text.contains("l1 8: objective") && text.contains("l1 1: objective"), "{text}");
    assert!(text.contains("the model is that of l1"), "{text}");
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
            wins += 0.5 * (f64::from(p >= q) + f64::from(p > q));
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
    done(&[&begin[..], &[&second, "--from", &model]].concat());
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
    fails(&["blockpg", &train, "--positive", "3"], 1, &["all 50 samples have the label -1"]);
    let weights = place.file("weights.txt", "1\n-1\n");
    fails(&["blockpg", &train, "--positive", "2", "--sample-weights", &weights], 1, &["weights.txt:2", "-1"]);
    assert_eq!(run(&["blockpg", &train, "--positive", "2", "--delay", "2"]).code, Some(0));
}

#[test]
fn calibrated_probabilities_are_of_a_line_of_the_scores_and_lose_less_on_the_samples_that_were_kept() {
    let place = Place::new();
    let (train, test) = (samples(&place, "train.libsvm", 60), samples(&place, "test.libsvm", 400));
    let (plain, calibrated) = (place.name("plain"), place.name("calibrated"));
    let fit = ["blockpg", &train, "--positive", "2", "--l1", "0.1", "--intercept", "--test", &test];
    done(&[&fit[..], &["--model", &plain]].concat());
    let text = done(&[&fit[..], &["--calibrate", "--model", &calibrated]].concat());
    assert!(text.contains("calibrated for class 1: "), "{text}");
    let line = &json(format!("{calibrated}/model.json"))["calibration"][0];
    let [slope, offset] = ["slope", "offset"].map(|name| line[name].as_f64().unwrap());
    // Enough digits of those that are neither sure nor impossible.
    let score =
        |chance: &str| chance.parse::<f64>().ok().filter(|p| (0.001..0.999).contains(p)).map(|p| (p / (1.0 - p)).ln());
    let [before, after] = [&plain, &calibrated].map(|model| done(&["predict", model, &test]));
    let pairs = before.lines().zip(after.lines()).filter_map(|(before, after)| score(before).zip(score(after)));
    let apart: Vec<f64> = pairs.map(|(before, after)| (slope * before + offset - after).abs()).collect();
    assert!(apart.len() > 100 && apart.iter().all(|apart| *apart < 1e-4), "{apart:?}");
    let [before, after] = [&plain, &calibrated].map(|model| {
        let quality = done(&["predict", model, &test, "--quality", "--json", "-"]);
        serde_json::from_str::<serde_json::Value>(&quality).unwrap()
    });
    let of = |quality: &serde_json::Value, name: &str| quality[name].as_f64().unwrap();
    assert!(of(&after, "log_loss") < of(&before, "log_loss"), "{before} {after}");
    assert!((of(&after, "auc") - of(&before, "auc")).abs() < 1e-9, "{before} {after}");
    fails(&["blockpg", &train, "--positive", "2", "--calibrate"], 2, &["--calibrate", "--holdout"]);
}

#[test]
fn ridge_and_elastic_net_have_a_certificate() {
    let place = Place::new();
    let train = samples(&place, "train.libsvm", 900);
    let fit = ["blockpg", &train, "--positive", "2", "--intercept", "-q", "-w", "2"];
    for (l1, l2) in [("0", "1"), ("0", "0.01"), ("0.5", "2")] {
        // Features one after the other, and by blocks.
        let objectives = [&[][..], &["--blocks", "4"]].map(|how| {
            let record = place.name("run.json");
            done(&[&fit[..], &["--l1", l1, "--l2", l2, "--json", &record], how].concat());
            let result = &json(&record)["result"];
            assert_eq!(result["ended_by"], "tolerance", "l1 {l1}, l2 {l2}, {how:?}");
            assert!(result["metrics"]["gap"].as_f64().unwrap() <= 1e-6, "{result}");
            result["objective"].as_f64().unwrap()
        });
        assert!((objectives[0] / objectives[1] - 1.0).abs() < 2e-6, "l1 {l1}, l2 {l2}: {objectives:?}");
    }
    fails(&[&fit[..], &["--l1", "0"]].concat(), 2, &["l1 is 0; expected a number above 0, or l2 above 0"]);
}

#[test]
fn labels_of_samples_to_predict_may_be_anything() {
    let place = Place::new();
    let (train, model) = (samples(&place, "train.libsvm", 300), place.name("model"));
    done(&["blockpg", &train, "--positive", "2", "--model", &model]);
    let expected = done(&["predict", &model, &train]);
    let text = fs::read_to_string(&train).unwrap();
    for label in ["", "7", "-0.5", "?", "unknown", "1e999"] {
        let lines = text.lines().map(|line| format!("{label}{}  # as before\n", &line[1..]));
        // A line without a label and without a feature would be a comment.
        let lines: String =
            lines.map(|line| line.replacen("  #", if label.is_empty() { " 1:0 #" } else { " #" }, 1)).collect();
        assert_eq!(done(&["predict", &model, &place.file("new.txt", lines)]), expected, "label {label:?}");
    }
    let new = place.file("new.txt", "? 1:1\n");
    fails(&["predict", &model, &new, "--quality"], 1, &["new.txt:1: label: found \"?\", expected a number"]);
    let huge = place.file("huge.txt", "1 1:1e20 2:1\n0 1:-1e20\n");
    fails(&["blockpg", &huge], 1, &["has the value 1e20", "--normalize"]);
    let (few, weights) = (place.file("few.txt", "1 1:1\n0 2:1\n"), place.file("weights.txt", "0\n1\n"));
    fails(&["blockpg", &few, "--sample-weights", &weights], 1, &["all samples of class 1 weigh 0"]);
    let strange = place.file("strange.txt", "? 901:1 902:1\n");
    let told = |input: &str| run(&["predict", &model, input]).stderr;
    assert!(told(&strange).contains("no feature of the samples (901, 902 …) has a weight in the model ("));
    assert_eq!(told(&train), "");
    let bad = place.file("bad.txt", "? 1:1\n1:one\n");
    fails(&["predict", &model, &bad], 1, &["bad.txt:2: feature value: found \"one\""]);
}

#[test]
fn a_cache_predicts_as_its_text() {
    let place = Place::new();
    let (train, model, cache) = (samples(&place, "train.libsvm", 300), place.name("model"), place.name("s.mgrid"));
    done(&["blockpg", &train, "--positive", "2", "--intercept", "--model", &model]);
    done(&["convert", &train, &cache, "--positive", "2"]);
    assert_eq!(done(&["predict", &model, &cache]), done(&["predict", &model, &train]));
    assert_eq!(done(&["predict", &model, &cache, "--quality"]), done(&["predict", &model, &train, "--quality"]));
}

#[test]
fn normalized_samples_count_alike_whatever_their_lengths() {
    let place = Place::new();
    let train = samples(&place, "train.libsvm", 300);
    // Powers of two, so that not a bit is lost.
    let scaled = |(row, line): (usize, &str)| {
        let by = [0.25, 1.0, 2.0, 64.0][row % 4];
        let (label, features) = line.split_once(' ').unwrap_or((line, ""));
        let value = |pair: &str| {
            let (feature, value) = pair.split_once(':').unwrap();
            format!(" {feature}:{}", value.parse::<f64>().unwrap() * by)
        };
        format!("{label}{}\n", features.split_whitespace().map(value).collect::<String>())
    };
    let text = fs::read_to_string(&train).unwrap();
    let other = place.file("scaled.libsvm", text.lines().enumerate().map(scaled).collect::<String>());
    let trained = |input: &str, name: &str, more: &[&str]| {
        let (model, record) = (place.name(name), place.name("run.json"));
        let args = ["blockpg", input, "--positive", "2", "-w", "1", "--model", &model, "--json", &record];
        done(&[&args[..], more].concat());
        (json(&record)["result"]["objective"].to_string(), done(&["predict", &model, input]))
    };
    let expected = trained(&train, "a", &["--normalize"]);
    assert_eq!(trained(&other, "b", &["--normalize"]), expected);
    assert_ne!(trained(&other, "c", &[]), expected);
}

#[test]
fn a_resumed_run_goes_on_as_if_it_had_never_stopped() {
    let place = Place::new();
    let train = samples(&place, "train.libsvm", 300);
    for workers in ["1", "2"] {
        let weights = |name: &str, options: &[&str]| {
            let name = format!("{name}-{workers}");
            let args = ["blockpg", &train, "--positive", "2", "--tolerance", "0", "-w", workers, "-q"];
            done(&[&args[..], &["--model", &place.name(&name)], options].concat());
            fs::read(place.path(&name).join("weights.parquet")).unwrap()
        };
        let saved = place.name(&format!("saved-{workers}"));
        let straight = weights("straight", &["--iterations", "8"]);
        assert_ne!(weights("begun", &["--iterations", "3", "--checkpoint", &saved]), straight);
        assert_eq!(weights("resumed", &["--iterations", "8", "--resume", &saved]), straight, "{workers} workers");
    }
}

#[test]
fn a_run_is_not_resumed_with_other_labels_or_weights() {
    let place = Place::new();
    let (train, saved) = (samples(&place, "train.libsvm", 300), place.name("saved"));
    let weights = |last: &str| place.file("weights.txt", "1\n".repeat(299) + last + "\n");
    let of = |weights: &str| ["blockpg", &train, "--positive", "2", "--sample-weights", weights].map(str::to_owned);
    let args = of(&weights("2"));
    let args = args.each_ref().map(|arg| &arg[..]);
    done(&[&args[..], &["--tolerance", "0", "--iterations", "2", "--checkpoint", &saved, "-q"]].concat());
    let resume = [&args[..], &["--resume", &saved, "-q"]].concat();
    done(&resume);
    let refused = ["digest of labels and weights of samples", "use the same options and data"];
    weights("1");
    fails(&resume, 1, &refused);
    weights("2");
    // Another option is named first, whatever it makes of labels.
    let other = ["blockpg", &train, "--positive", "1", "--sample-weights", args[5], "--resume", &saved];
    fails(&other, 1, &["of a run with positive"]);
    let text = fs::read_to_string(&train).unwrap();
    let flip = |line: &str| match line.split_once(' ') {
        Some(("2", rest)) => format!("1 {rest}\n"),
        Some((_, rest)) => format!("2 {rest}\n"),
        None => format!("{line}\n"),
    };
    place.file("train.libsvm", text.lines().map(flip).collect::<String>());
    fails(&resume, 1, &refused);
}

#[test]
fn a_path_ends_where_its_last_penalty_alone_would_and_is_resumed_in_it() {
    let place = Place::new();
    let (train, saved, record) = (samples(&place, "train.libsvm", 300), place.name("saved"), place.name("run.json"));
    let run = |options: &[&str]| {
        let args = ["blockpg", &train, "--positive", "2", "-w", "1", "--json", &record];
        let text = done(&[&args[..], options].concat());
        (text, json(&record)["result"]["objective"].as_f64().unwrap())
    };
    let (_, alone) = run(&["--l1", "1"]);
    // In any order: the largest is the first. What stands twice counts once.
    let (text, of_path) = run(&["--l1", "1,20,5,1,20"]);
    let places: Vec<usize> = ["l1 20:", "l1 5:", "l1 1:"].iter().map(|l1| text.find(l1).unwrap()).collect();
    assert!(places.is_sorted(), "{text}");
    run(&["--l1", "1,20,5", "--tolerance", "0", "--iterations", "2", "--checkpoint", &saved]);
    // What is continued lists what came of all penalties.
    let (text, resumed) = run(&["--l1", "1,20,5", "--resume", &saved]);
    assert!(["l1 20:", "l1 5:", "l1 1:"].iter().all(|l1| text.contains(l1)), "{text}");
    // Each is known to be within 1e-6 of the optimum.
    for found in [of_path, resumed] {
        assert!((found / alone - 1.0).abs() < 2e-6, "{found}, {alone}");
    }
    let other = ["blockpg", &train, "--positive", "2", "-w", "1", "--l1", "2", "--resume", &saved];
    fails(&other, 1, &["l1", "use the same options"]);
}
