//! Optimizers of factorization.

use crate::{Place, done, fails, json};

const ALL: [&str; 7] = ["sgd", "momentum", "nesterov", "rmsprop", "adagrad", "adam", "adadelta"];

fn train_rmse(record: &serde_json::Value) -> f64 {
    record["result"]["metrics"]["train_rmse"].as_f64().unwrap_or_else(|| panic!("{}", record["result"]))
}

#[test]
fn every_optimizer_learns_by_its_defaults_in_place_and_by_batches() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("run.json"));
    let of = |gradient: &str, optimizer: &str| {
        let args = ["mf", &ratings, "--dims", "4", "--gradient", gradient, "--optimizer", optimizer];
        let more = ["--init-std", "0.3", "--iterations", "200", "-w", "2", "-q"];
        done(&[&args[..], &more, &["--json", &record]].concat());
        json(&record)
    };
    for gradient in ["in-place", "batch"] {
        for optimizer in ALL {
            let found = of(gradient, optimizer);
            // While the second iteration goes on: less than after the first.
            let begin = found["iterations"][1]["metrics"]["running_rmse"].as_f64().unwrap();
            let end = train_rmse(&found);
            assert!(end < 0.7 * begin, "{gradient}, {optimizer}: {end}, at first {begin}");
            // What was not said is in the record as it was.
            let config = &found["config"];
            assert!(config["step"].is_number(), "{config}");
            assert_eq!(
                config["momentum"].is_number(),
                ["momentum", "nesterov", "adam"].contains(&optimizer),
                "{config}"
            );
            assert_eq!(config["rho"].is_number(), ["rmsprop", "adam", "adadelta"].contains(&optimizer), "{config}");
        }
    }
}

#[test]
fn what_is_remembered_is_in_checkpoints_and_goes_on_with_its_optimizer_only() {
    let place = Place::new();
    let ratings = place.ratings();
    for optimizer in ["nesterov", "adam"] {
        for gradient in ["in-place", "batch"] {
            let saved = place.name(&format!("{optimizer}-{gradient}"));
            let of = |iterations: &str, more: &[&str]| {
                let record = place.name("run.json");
                let args = ["mf", &ratings, "--dims", "4", "--optimizer", optimizer, "--gradient", gradient, "-w", "2"];
                let last = ["-q", "--iterations", iterations, "--json", &record];
                done(&[&args[..], &last, more].concat());
                json(&record)["result"]["objective"].as_f64().unwrap()
            };
            let straight = of("10", &[]);
            of("5", &["--checkpoint", &saved]);
            assert_eq!(of("10", &["--resume", &saved]), straight, "{optimizer}, {gradient}");
            let other = ["mf", &ratings, "--dims", "4", "--optimizer", "rmsprop", "--gradient", gradient, "-w", "2"];
            fails(&[&other[..], &["--resume", &saved]].concat(), 1, &["use the same options"]);
        }
    }
}

#[test]
fn parameters_of_optimizers_are_tuned() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("run.json"));
    let args = ["tune", "mf", &ratings, "--optimizer", "momentum", "--tune", "momentum=0.5,0.8", "--dims", "4"];
    done(&[&args[..], &["--iterations", "20", "-w", "1", "-q", "--json", &record]].concat());
    let found = json(&record);
    let settings: Vec<&str> =
        found["tuning"]["trials"].as_array().unwrap().iter().map(|trial| trial["setting"].as_str().unwrap()).collect();
    assert!(settings.contains(&"momentum=0.5") && settings.contains(&"momentum=0.8"), "{settings:?}");
    fails(&["tune", "mf", &ratings, "--tune", "rho=0.5,0.8"], 2, &["rho is of --optimizer rmsprop, adam or adadelta"]);
}

#[test]
fn least_squares_take_no_steps_and_are_kept_and_answer_as_other_factors() {
    let place = Place::new();
    let (ratings, record, model, saved) =
        (place.ratings(), place.name("run.json"), place.name("model"), place.name("saved"));
    let of = |iterations: &str, more: &[&str]| {
        let args = ["mf", &ratings, "--dims", "4", "--optimizer", "als", "-q", "--json", &record];
        done(&[&args[..], &["--iterations", iterations], more].concat());
        json(&record)
    };
    let (first, last) = (of("1", &[]), of("10", &["-w", "2"]));
    assert!(train_rmse(&last) < 0.7 * train_rmse(&first), "{}, at first {}", train_rmse(&last), train_rmse(&first));
    let config = &last["config"];
    assert!(config["step"].is_null() && config["batch"].is_null(), "{config}");
    assert_eq!(config["lambda"].as_f64().map(|lambda| lambda as f32), Some(0.1), "{config}");
    let with_slack = train_rmse(&of("10", &["-w", "2", "--slack", "2", "--consistency", "ssp"]));
    assert!((with_slack / train_rmse(&last) - 1.0).abs() < 0.01, "{with_slack}, without {}", train_rmse(&last));
    of("5", &["-w", "2", "--checkpoint", &saved]);
    let resumed = of("10", &["-w", "2", "--resume", &saved, "--model", &model]);
    assert_eq!(train_rmse(&resumed), train_rmse(&last));
    // The model of least squares goes on with them, and people whom it does not know are solved for.
    let more = place.file("more.csv", "u0,i0,4\n");
    done(&["update", &model, &more, "--iterations", "2", "-q"]);
    done(&["recommend", &model, "--fold-in", &ratings, "-n", "2"]);
    for more in
        [["--step", "0.1"], ["--decay", "0.1"], ["--gradient", "batch"], ["--batch", "10"], ["--work-per-clock", "0.5"]]
    {
        fails(
            &[&["mf", &ratings, "--optimizer", "als"], &more[..]].concat(),
            2,
            &["als", more[0].trim_start_matches('-')],
        );
    }
    fails(&["tune", "mf", &ratings, "--optimizer", "als"], 2, &["als takes no steps"]);
}
