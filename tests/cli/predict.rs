//! What `predict`, and training on samples, tell of what they do.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{Place, classes, done, fails, json, run};

fn number(line: &str, name: &str) -> f64 {
    let mut words = line.split([' ', ',']).skip_while(|word| *word != name);
    words.nth(1).and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no {name} in {line}"))
}

#[test]
fn each_model_of_a_path_is_tested_and_the_best_is_the_model() {
    let (place, path) = (Place::new(), ["20", "2", "0.002"]);
    let (three, two) = (["a", "b", "c"], ["a", "a", "b"]);
    for (at, (names, how, tested)) in [
        (two, "--intercept", "test_log_loss"),
        (three, "--multinomial", "test_log_loss"),
        (three, "--intercept", "test_class_log_loss"),
    ]
    .into_iter()
    .enumerate()
    {
        let [train, test] = [300, 120].map(|rows| classes::samples(&place, &format!("{at}-{rows}"), names, rows));
        let record = place.name("run.json");
        let fitted = |l1: &str| {
            let args = ["blockpg", &train, "--test", &test, "--l1", l1, "--tolerance", "1e-7", "--json", &record];
            (run(&[&args[..], &[how, "-w", "1"]].concat()), json(&record)["result"].clone())
        };
        let (ran, result) = fitted(&path.join(","));
        let lines = ran.stdout.lines().filter(|line| line.contains(": objective"));
        let losses: Vec<f64> = lines.clone().map(|line| number(line, tested)).collect();
        assert_eq!(losses.len(), path.len(), "{}", ran.stdout);
        let iterations: f64 = lines
            .map(|line| line.split(", ").find_map(|part| part.strip_suffix(" iterations")).unwrap())
            .map(|number| number.parse::<f64>().unwrap())
            .sum();
        assert_eq!(Some(iterations), result["iterations"].as_f64(), "{}", ran.stdout);
        let best = (0..path.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap();
        assert!(best > 0, "{}", ran.stdout);
        let said = format!("the model is that of l1 {}, the best on test data", path[best]);
        assert!(ran.stdout.contains(&said), "{}", ran.stdout);
        let near = |a: &Value, b: &Value, most: f64| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < most;
        for (at, l1) in path.iter().enumerate() {
            let (alone, of_one) = fitted(l1);
            assert!(!alone.stdout.contains("the best on test data"), "{}", alone.stdout);
            let (one, all) = (&of_one["metrics"], &result["metrics"]);
            if tested == "test_log_loss" {
                assert!(near(&result["path"][at]["tested"][tested], &one[tested], 1e-3), "l1 {l1}: {result}, {of_one}");
            }
            if at == best {
                assert_eq!(all["l1"].as_f64(), l1.parse().ok());
                assert!(near(&all["test_log_loss"], &one["test_log_loss"], 1e-3), "l1 {l1}: {result}, {of_one}");
                assert!(near(&result["objective"], &of_one["objective"], 1e-4), "l1 {l1}: {result}, {of_one}");
            }
        }
    }
}

#[test]
fn the_model_of_a_checkpoint_is_the_best_of_the_path_so_far() {
    let place = Place::new();
    let (a, b) = (["a", "a", "b"], ["a", "b", "c"]);
    for (at, (names, how)) in [(a, "--intercept"), (b, "--multinomial")].into_iter().enumerate() {
        let train = classes::samples(&place, &at.to_string(), names, 300);
        let [model, run, part] = ["model", "run", "part"].map(|name| place.name(&format!("{name}{at}")));
        let fit = ["blockpg", &train, "--l1", "path", "--holdout", "0.3", how, "-w", "1", "-q", "--checkpoint-model"];
        done(&[&fit[..], &["--model", &model, "--checkpoint", &run]].concat());
        let weights = |directory: &str| fs::read(Path::new(directory).join("weights.parquet")).unwrap();
        assert_eq!(weights(&format!("{run}/model")), weights(&model));
        assert_eq!(
            json(format!("{run}/model/model.json"))["metrics"]["l1"],
            json(format!("{model}/model.json"))["metrics"]["l1"]
        );
        // Within the path, after as many iterations as end the training of its first few.
        let few = ["--checkpoint", &part, "--checkpoint-every", "2", "--iterations", "2", "--tolerance", "0"];
        done(&[&fit[..], &few].concat());
        assert!(json(format!("{part}/model/model.json"))["metrics"]["l1"].as_f64() > Some(0.0));
    }
}

#[test]
fn a_path_that_follows_from_samples_begins_where_no_feature_has_a_weight() {
    let place = Place::new();
    for (names, how) in [(["a", "a", "b"], "--intercept"), (["a", "b", "c"], "--multinomial"), (["a", "b", "c"], "-q")]
    {
        let train = classes::samples(&place, &names.join(""), names, 300);
        let (record, model) = (place.name("run.json"), place.name(&format!("model{}{how}", names.join(""))));
        let args = ["blockpg", &train, "--l1", "path", "--holdout", "0.3", how, "-w", "1"];
        done(&[&args[..], &["--json", &record, "--model", &model]].concat());
        let result = json(&record)["result"].clone();
        let path = result["path"].as_array().unwrap();
        let of = |one: &Value| (one["l1"].as_f64().unwrap(), one["certificate"]["nonzeros"].as_u64().unwrap());
        let (first, next, last) = (of(&path[0]), of(&path[2]), of(&path[19]));
        assert!(path.len() == 20 && first.1 == 0 && next.1 > 0 && last.1 > next.1, "{result}");
        assert!((last.0 / first.0 - 1e-3).abs() < 1e-5, "{result}");
        assert_eq!(json(&record)["config"]["l1"].as_array().map(Vec::len), Some(20));
        // An update goes on with the l1 of the model.
        let chosen = &result["metrics"]["l1"];
        let more = classes::samples(&place, &format!("more{}{how}", names.join("")), names, 30);
        done(&["update", &model, &more, "--json", &record, "-q"]);
        assert_eq!(&json(&record)["config"]["l1"][0], chosen);
        fails(&["blockpg", &train, "--l1", "path"], 2, &["--holdout 0.1"]);
    }
    fails(&["blockpg", &place.name("abc"), "--l1", "4,low"], 2, &["\"low\"", "the word path by itself"]);
}

#[test]
fn a_column_that_the_model_knows_otherwise_is_told() {
    let place = Place::new();
    let table = |name: &str, members: [&str; 2]| {
        let mut text = "label,age,member\n".to_owned();
        (0..90).for_each(|at| writeln!(text, "{},{at},{}", at % 2, members[at % 2]).unwrap());
        place.file(name, text)
    };
    let (numbers, texts) = (table("numbers.csv", ["0", "3"]), table("texts.csv", ["no", "yes"]));
    let told = |train: &str, new: &str, model: &str| {
        let model = place.name(model);
        done(&["blockpg", train, "--columns", "label=label", "--l1", "0.1", "--model", &model, "-q"]);
        assert_eq!(run(&["predict", &model, train]).stderr, "");
        run(&["predict", &model, new]).stderr
    };
    let found = told(&numbers, &texts, "numbers");
    assert!(found.contains("have member=no where the model has member; such values count nothing"), "{found}");
    let some = place.file("some.csv", "label,age,member\n0,1,3\n1,2,N.A.\n");
    let found = run(&["predict", &place.name("numbers"), &some]).stderr;
    assert!(found.contains("have member=N.A. where the model has member;"), "{found}");
    let found = told(&texts, &numbers, "texts");
    assert!(found.contains("have member where the model has member="), "{found}");
}

#[test]
fn values_that_single_precision_hardly_tells_apart_are_told() {
    let place = Place::new();
    let told = |since: u32| {
        let mut text = "label,ts,age\n".to_owned();
        (0..60).for_each(|at| writeln!(text, "{},{},{}", at % 2, since + 10 * at, at % 7).unwrap());
        let train = place.file("train.csv", text);
        run(&["blockpg", &train, "--columns", "label=label", "--iterations", "3"]).stderr
    };
    let found = told(1_700_000_000);
    assert!(found.contains("ts: values of a feature differ by less than single precision tells apart"), "{found}");
    let found = told(0);
    assert!(!found.contains("single precision"), "{found}");
}

#[test]
fn a_feature_that_is_called_as_labels_are_is_one_where_there_are_none() {
    let place = Place::new();
    let (mut train, mut rest) = ("x,y,label\n".to_owned(), "x,y\n".to_owned());
    for sample in 0..60 {
        let (x, y) = (f64::from(sample * 7 % 11) - 5.0, f64::from(sample * 5 % 13) - 6.0);
        writeln!(train, "{x},{y},{}", i32::from(y > 0.0)).unwrap();
        writeln!(rest, "{x},{y}").unwrap();
    }
    let (train, rest) = (place.file("train.csv", train), place.file("rest.csv", rest));
    let (model, other) = (place.name("model"), place.name("other"));
    done(&["blockpg", &train, "--intercept", "--l1", "0.1", "--model", &model]);
    let chances = done(&["predict", &model, &train]);
    assert!(chances.lines().any(|chance| chance.parse::<f64>().unwrap() > 0.9), "{chances}");
    assert_eq!(done(&["predict", &model, &rest]), chances);
    // Where the column of labels was named another one is no such column either.
    done(&["blockpg", &train, "--columns", "label=label", "--l1", "0.1", "--intercept", "--model", &other]);
    assert_eq!(done(&["predict", &other, &rest]), chances);
}
