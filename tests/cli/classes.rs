//! Samples of many classes as their user sees them.

use std::fmt::Write;
use std::fs;

use megagrid_datasets::output::{Column, read_table};

use crate::{Place, done, fails, json};

/// Writes samples of three classes with these names, each with a feature of its own beside others.
pub(crate) fn samples(place: &Place, name: &str, classes: [&str; 3], rows: u32) -> String {
    let mut text = String::new();
    for row in 0..rows {
        let class = (row.wrapping_mul(2_654_435_761) >> 7) % 3;
        // One in nine has the feature of another.
        let shown = if row % 9 == 4 { (class + 1) % 3 } else { class };
        writeln!(
            text,
            "{} {}:1 {}:0.5 {}:{}",
            classes[class as usize],
            shown + 1,
            4 + row % 4,
            9 + row % 5,
            1 + row % 2
        )
        .unwrap();
    }
    place.file(name, text)
}

const WORDS: [&str; 3] = ["fruit", "metal", "wood"];

fn rows(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|line| line.split(',').collect()).collect()
}

#[test]
fn classes_are_predicted_with_their_probabilities() {
    let place = Place::new();
    let (train, test) = (samples(&place, "train.libsvm", WORDS, 600), samples(&place, "test.libsvm", WORDS, 200));
    for l1 in ["1", "0.2"] {
        let (model, record) = (place.name(l1), place.name(&format!("{l1}.json")));
        let fit = ["blockpg", &train, "--intercept", "--l1", l1, "--test", &test, "--model", &model];
        let text = done(&[&fit[..], &["--json", &record]].concat());
        assert!(text.contains(&format!("l1 {l1}: objective")), "{text}");
        let result = &json(&record)["result"];
        let metric = |name: &str| result["metrics"][name].as_f64().unwrap();
        assert!(result["ended_by"] == "tolerance" && metric("gap") <= 1e-6, "{result}");

        let table = done(&["predict", &model, &test]);
        let rows = rows(&table);
        let header = ["sample", "class", "probability_fruit", "probability_metal", "probability_wood"];
        assert_eq!((rows[0].as_slice(), rows.len()), (&header[..], 201));
        let labels = fs::read_to_string(&test).unwrap();
        let (mut right, mut loss) = (0.0, 0.0);
        for (row, line) in rows[1..].iter().zip(labels.lines()) {
            let chances: Vec<f64> = row[2..].iter().map(|chance| chance.parse().unwrap()).collect();
            assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{row:?}");
            let class = WORDS.iter().position(|word| line.starts_with(word)).unwrap();
            assert!(
                WORDS
                    .iter()
                    .zip(&chances)
                    .all(|(word, chance)| (row[1] == *word) == (chances.iter().all(|c| c <= chance)))
            );
            right += f64::from(u8::from(row[1] == WORDS[class]));
            loss -= chances[class].ln();
        }
        assert!((right / 200.0 - metric("test_accuracy")).abs() < 1e-9 && right > 170.0, "{right}");
        assert!((loss / 200.0 - metric("test_log_loss")).abs() < 1e-6, "{loss}");
        let quality = done(&["predict", &model, &test, "--quality"]);
        assert!(quality.contains("accuracy 0.") && !quality.contains("auc"), "{quality}");

        let top = done(&["top", &model, "-n", "1"]);
        let lines: Vec<&str> = top.lines().collect();
        assert_eq!([lines[0], lines[2], lines[4]], ["class fruit", "class metal", "class wood"], "{top}");
        let of_table = done(&["top", &model, "-n", "2", "--json", "-"]);
        assert_eq!(of_table.lines().count(), 6, "{of_table}");
    }
}

#[test]
fn chances_of_two_classes_are_a_whole_table_where_a_place_is_named() {
    let place = Place::new();
    let (train, model) = (samples(&place, "s.libsvm", ["1", "1", "7"], 300), place.name("model"));
    done(&["blockpg", &train, "--model", &model, "-q"]);
    let [csv, parquet] = ["chances.csv", "chances.parquet"].map(|name| place.name(name));
    for output in [&csv, &parquet] {
        assert_eq!(done(&["predict", &model, &train, "--output", output]), "");
    }
    let table = read_table(&place.path("chances.parquet")).unwrap();
    let (Column::U64(samples), Column::F64(chances)) = (&table[0].1, &table[1].1) else { panic!("{table:?}") };
    let lines = samples.iter().zip(chances.iter()).map(|(sample, chance)| format!("{sample},{chance}\n"));
    let expected = format!("sample,probability_7\n{}", lines.collect::<String>());
    assert_eq!(fs::read_to_string(&csv).unwrap(), expected);
    assert_eq!(done(&["predict", &model, &train, "--output", "-"]), expected);
    let plain: String = chances.iter().map(|chance| format!("{chance:.9}\n")).collect();
    assert_eq!(done(&["predict", &model, &train]), plain);
}

#[test]
fn a_model_of_two_classes_has_its_largest_weights_listed() {
    let place = Place::new();
    let (train, model) = (samples(&place, "s.libsvm", ["1", "1", "7"], 300), place.name("model"));
    done(&["blockpg", &train, "--model", &model, "-q"]);
    let top = done(&["top", &model, "-n", "1"]);
    assert!(top.starts_with("class 7\n") && top.lines().count() == 2, "{top}");
    // Features that are numbers have the type that they have elsewhere.
    let row: serde_json::Value = serde_json::from_str(&done(&["top", &model, "-n", "1", "--json", "-"])).unwrap();
    assert!(row["id"].is_u64() && row["class"] == "7", "{row}");
    fails(&["top", &model, "--hubs"], 2, &["--hubs is for models of hits"]);
}

#[test]
fn a_cache_holds_classes_that_are_numbers() {
    let place = Place::new();
    let (numbers, words) =
        (samples(&place, "numbers.libsvm", ["1", "2.5", "-3"], 300), samples(&place, "words.libsvm", WORDS, 300));
    let cache = place.name("s.mgrid");
    done(&["convert", &numbers, &cache]);
    let weights = [&numbers, &cache].map(|input| {
        let model = place.name(&format!("of-{}", input.rsplit('/').next().unwrap()));
        done(&["blockpg", input, "--model", &model, "-q", "-w", "1"]);
        done(&["top", &model, "-n", "3"])
    });
    assert_eq!(weights[0], weights[1]);
    assert!(weights[0].starts_with("class -3\n"), "{}", weights[0]);
    fails(&["convert", &words, &place.name("w.mgrid")], 1, &["\"fruit\" is none; number the classes"]);
}

#[test]
fn classes_weigh_what_is_asked_for() {
    let place = Place::new();
    let train = samples(&place, "s.libsvm", ["0", "1", "2"], 300);
    let text = fs::read_to_string(&train).unwrap();
    let weights: String = text.lines().map(|line| if line.starts_with('2') { "3\n" } else { "1\n" }).collect();
    let weights = place.file("weights.txt", weights);
    let objective = |how: &[&str]| {
        let record = place.name("run.json");
        done(&[&["blockpg", &train, "--json", &record, "-q"], how].concat());
        json(&record)["result"]["objective"].as_f64().unwrap()
    };
    let [by_class, by_sample] = [&["--class-weight", "2=3"][..], &["--sample-weights", &weights]].map(objective);
    assert!((by_class / by_sample - 1.0).abs() < 1e-6, "{by_class}, {by_sample}");
    assert!((objective(&["--class-weight", "balanced"]) / objective(&[]) - 1.0).abs() > 1e-6);
    let of = |weights: &'static str| ["blockpg", &train[..], "--class-weight", weights].map(str::to_owned);
    let refused = |weights: &'static str, code: i32, text: &str| {
        let args = of(weights);
        fails(&args.each_ref().map(|arg| &arg[..]), code, &[text]);
    };
    refused("7=1", 2, "names the class 7, and the classes are 0, 1, 2");
    for weights in ["1=-1", "1=nan", "1=0", "1=1e300", "1", "-1=x"] {
        refused(weights, 2, "--class-weight");
    }
}

#[test]
fn classes_are_continued_to_the_same_bits_and_stopped_early_one_by_one() {
    let place = Place::new();
    let train = samples(&place, "s.libsvm", WORDS, 300);
    for processes in [&[][..], &["launch", "-n", "2", "--"]] {
        let how =
            ["blockpg", &train, "--intercept", "--l1", "0.01", "--holdout", "0.4", "--patience", "2", "-w", "1", "-q"];
        let fit = |name: &str, options: &[&str]| {
            let (model, record) = (place.name(&format!("{name}-{}", processes.len())), place.name("run.json"));
            done(&[processes, &how, &["--model", &model, "--json", &record], options].concat());
            (fs::read(format!("{model}/weights.parquet")).unwrap(), json(&record))
        };
        let (weights, whole) = fit("whole", &[]);
        assert_eq!(whole["result"]["ended_by"], "patience", "{}", whole["result"]);
        // The last iterations are of the last class, those before of another.
        let all = whole["iterations"].as_array().unwrap();
        let last = all.iter().filter(|one| !one["metrics"]["test_log_loss"].is_null()).count();
        assert!(0 < last && last < all.len() && all.iter().all(|one| one["metrics"]["test_class_log_loss"].is_f64()));
        let saved = place.name(&format!("saved-{}", processes.len()));
        fit("begun", &["--iterations", "2", "--checkpoint", &saved, "--checkpoint-every", "3"]);
        let (short, _) = fit("short", &["--iterations", "2"]);
        let (again, _) = fit("again", &["--iterations", "2", "--resume", &saved]);
        assert!(short != weights && short == again);
    }
}

#[test]
fn classes_that_are_fitted_together_have_the_chances_of_a_softmax() {
    let place = Place::new();
    let (train, test) = (samples(&place, "train.libsvm", WORDS, 600), samples(&place, "test.libsvm", WORDS, 200));
    let (model, record) = (place.name("model"), place.name("run.json"));
    let fit = ["blockpg", &train, "--multinomial", "--intercept", "--l1", "1", "--test", &test];
    let text = done(&[&fit[..], &["--model", &model, "--json", &record]].concat());
    assert!(text.contains("l1 1: objective"), "{text}");
    let result = &json(&record)["result"];
    let metric = |name: &str| result["metrics"][name].as_f64().unwrap();
    assert!(result["ended_by"] == "tolerance" && metric("gap") <= 1e-6, "{result}");
    let table = done(&["predict", &model, &test]);
    let labels = fs::read_to_string(&test).unwrap();
    let mut loss = 0.0;
    for (row, line) in rows(&table)[1..].iter().zip(labels.lines()) {
        let chances: Vec<f64> = row[2..].iter().map(|chance| chance.parse().unwrap()).collect();
        assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{row:?}");
        loss -= chances[WORDS.iter().position(|word| line.starts_with(word)).unwrap()].ln();
    }
    assert!((loss / 200.0 - metric("test_log_loss")).abs() < 1e-6, "{loss}");
    // Each class against the rest has other weights, and no better chances on what it was fitted to.
    let rest = place.name("rest");
    done(&["blockpg", &train, "--intercept", "--l1", "1", "--model", &rest, "-q"]);
    let [together, apart] = [&model, &rest].map(|model| {
        let text = done(&["predict", model, &train, "--quality", "--json", "-"]);
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["log_loss"].as_f64().unwrap()
    });
    assert!(together < apart, "{together}, and {apart} against the rest");

    let (updated, more) = (place.name("updated"), samples(&place, "more.libsvm", WORDS, 100));
    done(&["update", &model, &more, "--model", &updated, "-q"]);
    assert_eq!(json(format!("{updated}/model.json"))["config"]["multinomial"], true);
    fails(&[&["launch", "-n", "2", "--"], &fit[..]].concat(), 2, &["--multinomial is for one process"]);
    fails(&[&fit[..], &["--calibrate"]].concat(), 2, &["--calibrate", "--multinomial"]);
    fails(&[&["tune"], &fit[..]].concat(), 2, &["3 classes"]);
}

#[test]
fn what_cannot_be_told_apart_is_refused() {
    let place = Place::new();
    let target: String = (0..1500).map(|row| format!("{}.5 1:{row}\n", row)).collect();
    let target = place.file("target.libsvm", target);
    fails(&["blockpg", &target], 1, &["target.libsvm", "say which ones are positive"]);
    let one = place.file("one.libsvm", "3 1:1\n3 2:1\n");
    fails(&["blockpg", &one], 1, &["all 2 samples have the label 3"]);
    let train = samples(&place, "s.libsvm", WORDS, 100);
    let other = place.file("other.libsvm", "stone 1:1\nwood 2:1\n");
    fails(&["blockpg", &train, "--test", &other], 1, &["label stone", "fruit, metal, wood"]);
    fails(&["blockpg", &train, "--positive", "1"], 1, &["s.libsvm:1: label: found"]);
    done(&["tune", "blockpg", &train, "--positive", "fruit", "--trials", "1", "-q"]);
    fails(&["tune", "blockpg", &train], 2, &["3 classes", "--positive"]);
    let checkpoints = ["blockpg", &train, "--checkpoint", &place.name("c"), "--checkpoint-model"];
    fails(&checkpoints, 2, &["--checkpoint-model", "3 classes"]);
    let model = place.name("model");
    done(&["blockpg", &train, "--model", &model, "-q"]);
    fails(&["predict", &model, &other, "--quality"], 1, &["label stone", "fruit, metal, wood"]);
    // Features that a model does not know count nothing.
    let unknown = place.file("unknown.libsvm", "99:1 100:2\n");
    assert_eq!(done(&["predict", &model, &unknown]).lines().count(), 2);
}

#[test]
fn lines_of_json_name_classes_whatever_these_are_called() {
    let place = Place::new();
    let classes = ["lab\"a", "b\\", "c"];
    let (train, model) = (samples(&place, "s.libsvm", classes, 90), place.name("model"));
    done(&["blockpg", &train, "--model", &model, "-q"]);
    for line in done(&["predict", &model, &train, "--json", "-"]).lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(classes.iter().all(|class| row[format!("probability_{class}")].is_number()), "{row}");
    }
}
