//! Ratings of any scale: the same ratings, times a power of four, are learned as well, to the last bit. A wrong one does not change the scale.

use std::fs;

use megagrid_datasets::output::read_npy;
use serde_json::Value;

use crate::{Place, done, fails, json, run};

impl Place {
    /// Writes ratings times 16, as they are and by 16, in decimals without rounding.
    fn in_units(&self) -> [(String, f64); 3] {
        let all = fs::read_to_string(self.ratings()).unwrap();
        [16.0, 1.0, 0.0625].map(|times| {
            let scaled = all.lines().map(|line| {
                let (pair, rating) = line.rsplit_once(',').unwrap();
                format!("{pair},{:.7}\n", rating.parse::<f64>().unwrap() * times)
            });
            (self.file(&format!("by-{times}.csv"), scaled.collect::<String>()), times)
        })
    }

    fn record(&self, args: &[&str]) -> Value {
        let path = self.name("record.json");
        done(&[args, &["-q", "-w", "2", "--json", &path]].concat());
        json(&path)
    }
}

/// The numbers of an array of a model.
fn values(model: &str, file: &str) -> Vec<f32> {
    read_npy::<f32>(format!("{model}/{file}").as_ref(), if file.contains("bias") { 1 } else { 2 }).unwrap().values
}

#[test]
fn ratings_of_any_scale_are_learned_alike() {
    let place = Place::new();
    for optimizer in ["adagrad", "als", "adam"] {
        let found = place.in_units().map(|(ratings, times)| {
            let model = place.name("model");
            let how = ["--optimizer", optimizer, "--holdout", "0.2", "--model", &model];
            let record = place.record(&[&["mf", &ratings, "--dims", "4", "--iterations", "5"], &how[..]].concat());
            let metrics = &record["result"]["metrics"];
            let errors = ["test_rmse", "running_rmse"].map(|name| metrics[name].as_f64().unwrap() / times);
            assert_eq!(record["config"]["unit"].as_f64().unwrap(), times / 2.0);
            let scaled =
                |file, by: f64| values(&model, file).iter().map(|value| value / by as f32).collect::<Vec<f32>>();
            let [users, biases] = [scaled("users.npy", times.sqrt()), scaled("item_biases.npy", times)];
            fs::remove_dir_all(&model).unwrap();
            (errors, record["result"]["objective"].clone(), users, biases)
        });
        assert_eq!(found[0], found[1], "{optimizer}");
        assert_eq!(found[2], found[1], "{optimizer}");
    }
}

#[test]
fn what_goes_on_goes_on_in_its_unit() {
    let place = Place::new();
    let [(percents, _), _, (parts, _)] = place.in_units();
    let model = place.name("percents");
    done(&["mf", &percents, "--dims", "4", "-q", "--model", &model]);
    assert_eq!(json(place.path("percents/model.json"))["unit"], 8.0);
    fails(&["mf", &percents, "--dims", "4", "--from", &model, "--unit", "1"], 1, &["divided by 8", "leave out --unit"]);
    fails(&["mf", &percents, "--unit", "0"], 2, &["unit is 0"]);
    // New ratings may spread less than those before.
    let record = place.record(&["mf", &parts, "--dims", "4", "--from", &model]);
    assert_eq!(record["config"]["unit"], 8.0);
    let more = place.file("more.csv", "u0,i0,55\n");
    done(&["update", &model, &more, "-q"]);
    assert_eq!(json(place.path("percents/model.json"))["unit"], 8.0);
}

#[test]
fn people_unseen_are_placed_alike() {
    let place = Place::new();
    let found = place.in_units().map(|(ratings, times)| {
        let model = place.name("model");
        done(&["mf", &ratings, "--dims", "4", "-q", "-w", "2", "--model", &model]);
        let theirs =
            [("i3", 3.5), ("i8", 2.5), ("i9", 4.0)].map(|(item, rating)| format!("ann,{item},{}\n", rating * times));
        let theirs = place.file("theirs.csv", theirs.concat());
        let told = done(&["recommend", &model, "--fold-in", &theirs, "-n", "5", "--no-clip", "--output", "-"]);
        fs::remove_dir_all(&model).unwrap();
        let scaled = told.lines().skip(1).map(|line| {
            let (item, score) = line.rsplit_once(',').unwrap();
            (item.to_owned(), score.parse::<f64>().unwrap() / times)
        });
        scaled.unzip::<_, _, Vec<String>, Vec<f64>>()
    });
    let (items, scores) = &found[1];
    assert_eq!(items.len(), 5);
    for (others, of_others) in &found {
        assert_eq!(others, items);
        // They are told in six digits.
        assert!(of_others.iter().zip(scores).all(|(a, b)| (a - b).abs() < 1e-5), "{of_others:?}, not {scores:?}");
    }
}

#[test]
fn one_wrong_rating_does_not_hide_the_others() {
    let place = Place::new();
    let (ratings, path) = (place.ratings(), place.name("record.json"));
    let all = fs::read_to_string(&ratings).unwrap();
    for optimizer in ["adagrad", "momentum"] {
        let error_with = |wrong: &str| {
            let trained_on = place.file("trained-on.csv", format!("{all}{wrong}"));
            let how = ["--test", &ratings, "--dims", "4", "--optimizer", optimizer, "--json", &path];
            let told = run(&[&["mf", &trained_on], &how[..]].concat());
            assert_eq!(told.code, Some(0), "{}", told.stderr);
            assert_eq!(told.stderr.contains("are far from all others"), !wrong.is_empty(), "{}", told.stderr);
            let record = json(&path);
            assert_eq!(record["config"]["unit"], 0.5);
            record["result"]["metrics"]["test_rmse"].as_f64().unwrap()
        };
        let (without, with) = (error_with(""), error_with("u1,i1,1e9\n"));
        assert!(with < 1.1 * without, "{optimizer}: {with}, not {without}");
    }
}
