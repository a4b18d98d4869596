//! What `predict`, and training on samples, tell of what they do.

use std::fmt::Write;

use crate::{Place, classes, done, json, run};

fn number(line: &str, name: &str) -> f64 {
    let mut words = line.split([' ', ',']).skip_while(|word| *word != name);
    words.nth(1).and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no {name} in {line}"))
}

#[test]
fn each_model_of_a_path_is_tested_and_the_best_is_named() {
    let (place, path) = (Place::new(), ["20", "2", "0.5"]);
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
            let args = ["blockpg", &train, "--test", &test, "--l1", l1, "--tolerance", "1e-8", "--json", &record];
            (run(&[&args[..], &[how, "-w", "1"]].concat()), json(&record)["result"].clone())
        };
        let (ran, result) = fitted(&path.join(","));
        let lines = ran.stdout.lines().filter(|line| line.contains(": objective"));
        let losses: Vec<f64> = lines.clone().map(|line| number(line, tested)).collect();
        assert!(losses.len() == 3 && losses.is_sorted_by(|a, b| a > b), "{}", ran.stdout);
        let iterations: f64 = lines
            .map(|line| line.split(", ").find_map(|part| part.strip_suffix(" iterations")).unwrap())
            .map(|number| number.parse::<f64>().unwrap())
            .sum();
        assert_eq!(Some(iterations), result["iterations"].as_f64(), "{}", ran.stdout);
        assert!(ran.stdout.contains("l1 0.5 was the best on test data"), "{}", ran.stdout);
        if tested == "test_log_loss" {
            for (l1, loss) in path.iter().zip(losses) {
                let (alone, result) = fitted(l1);
                let expected = result["metrics"][tested].as_f64().unwrap();
                assert!((loss - expected).abs() < 1e-3, "l1 {l1}: {loss}, alone {expected}");
                assert!(!alone.stdout.contains("the best on test data"), "{}", alone.stdout);
            }
        }
    }
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
