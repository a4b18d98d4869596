//! Training that tunes itself.

use crate::stopping::noise;
use crate::{Place, done, fails, json, run};

#[test]
fn ratings_tune_themselves_and_the_command_printed_does_the_same() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("run.json"));
    let common = ["-w", "1", "--dims", "4", "--no-biases", "--iterations", "30"];
    let report = place.name("run.html");
    let output = ["--json", &record, "--report", &report, "--model", &place.name("model")];
    let printed = done(&[&["tune", "mf", &ratings][..], &common, &output].concat());
    let found = json(&record);
    let tuning = &found["tuning"];
    let trials = tuning["trials"].as_array().unwrap();
    let first: Vec<_> = trials.iter().filter(|trial| trial["search"] == 0).collect();
    assert!((2..=12).contains(&first.len()), "{tuning}");
    assert_eq!(first.iter().filter(|trial| trial["chosen"] == true).count(), 1, "{tuning}");
    assert_eq!(tuning["time"], "samples");
    assert!(tuning["most_branches"].as_u64().unwrap() <= 3, "{tuning}");
    // An update of the model goes on as the run ended.
    let last = tuning["settings"].as_array().unwrap().last().unwrap()[1].as_str().unwrap();
    let last: f64 = last.strip_prefix("step=").unwrap().parse().unwrap();
    let step = json(place.name("model/model.json"))["config"]["step"].as_f64().unwrap();
    assert!((step - last).abs() <= 1e-6 * last, "{step}: {tuning}");

    let page = std::fs::read_to_string(&report).unwrap();
    assert!(page.contains("<h2>Tuning</h2>") && page.contains("chosen"), "{page}");

    // The chosen setting, from the beginning, is the same run.
    let command = tuning["command"].as_str().unwrap();
    assert!(printed.contains(command), "{printed}");
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!((words[0], words[1], words.contains(&"--step")), ("megagrid", "mf", true), "{command}");
    assert!(!command.contains("--tune"), "{command}");
    // It leaves a model, and nothing of the tuned run is written over.
    assert!(!words.contains(&"--json") && !words.contains(&"--report"), "{command}");
    let before = std::fs::read(&record).unwrap();
    let same = place.name("same.json");
    done(&[&words[1..], &["--evaluate-every", "1", "--json", &same]].concat());
    assert!(std::fs::read(&record).unwrap() == before);
    assert!(place.path("model-again/model.json").exists(), "{command}");
    let fixed = json(&same);
    let objectives = |record: &serde_json::Value| -> Vec<f64> {
        record["iterations"].as_array().unwrap().iter().map(|one| one["objective"].as_f64().unwrap()).collect()
    };
    let (tuned, fixed) = (objectives(&found), objectives(&fixed));
    let settings = tuning["settings"].as_array().unwrap();
    let shared = settings.get(1).map_or(tuned.len(), |second| second[0].as_u64().unwrap() as usize);
    assert_eq!(tuned[..shared], fixed[..shared], "{settings:?}");
}

#[test]
fn a_tuned_run_is_reproducible() {
    let place = Place::new();
    let ratings = place.ratings();
    let of = |name: &str, seed: &str| {
        let record = place.name(name);
        let tune = ["tune", "mf", &ratings, "-w", "1", "--dims", "4", "--iterations", "15"];
        done(&[&tune[..], &["--seed", seed, "--json", &record]].concat());
        let record = json(&record);
        (record["tuning"]["trials"].to_string(), record["result"]["objective"].to_string())
    };
    assert_eq!(of("a.json", "3"), of("b.json", "3"));
    assert_ne!(of("a.json", "3"), of("c.json", "4"));
}

#[test]
fn every_searcher_serves() {
    let place = Place::new();
    let ratings = place.ratings();
    let tune = ["tune", "mf", &ratings, "--dims", "4", "--iterations", "12", "-w"];
    for searcher in ["random", "grid", "tpe", "gp"] {
        let out = done(&[&tune[..], &["1", "--searcher", searcher]].concat());
        assert!(out.contains(&format!("({searcher})")), "{out}");
    }
    let lists = ["2", "--tune", "step=0.05,0.1", "--tune", "slack=0,2", "--tune", "workers=1,2"];
    let out = done(&[&tune[..], &lists].concat());
    assert!(out.contains("(grid)"), "{out}");
}

#[test]
fn topics_and_samples_tune_themselves() {
    let place = Place::new();
    let corpus = place.name("corpus.txt");
    done(&["generate", "corpus", &corpus, "--documents", "60", "--vocabulary", "50", "--topics", "4"]);
    let record = place.name("lda.json");
    done(&["tune", "lda", &corpus, "-k", "4", "--iterations", "20", "-w", "2", "--json", &record]);
    let found = json(&record);
    assert!(found["tuning"]["trials"].as_array().unwrap().len() >= 2, "{}", found["tuning"]);
    assert!(found["tuning"]["command"].as_str().unwrap().contains("--sampler"), "{}", found["tuning"]);
    assert_eq!(found["iterations"].as_array().unwrap().len(), 20);

    let clicks = place.name("clicks.libsvm");
    done(&["generate", "clicks", &clicks, "--samples", "300", "--features", "100"]);
    let record = place.name("blockpg.json");
    // Features descend one after the other there unless blocks are asked for.
    fails(&["tune", "blockpg", &clicks, "-w", "1"], 2, &["no setting that is worth a search", "--tune"]);
    for (tune, found_by) in [(&[][..], "--workers"), (&["--tune", "blocks=20,50"], "--blocks")] {
        done(&[&["tune", "blockpg", &clicks, "-w", "2", "--json", &record], tune].concat());
        let found = json(&record);
        assert!(found["tuning"]["command"].as_str().unwrap().contains(found_by), "{}", found["tuning"]);
        assert_eq!(found["tuning"]["ended_by"], "tolerance", "{}", found["tuning"]);
        assert!(found["result"]["metrics"]["gap"].as_f64().unwrap() <= 1e-6, "{}", found["result"]);
    }
}

#[test]
fn processes_tune_as_one_does() {
    let place = Place::new();
    let (clicks, ratings) = (place.name("clicks.libsvm"), place.ratings());
    done(&["generate", "clicks", &clicks, "--samples", "300", "--features", "100"]);
    let of = |name: &str, launch: &[&str], command: &[&str]| {
        let record = place.name(name);
        let options = ["--time", "samples", "-q", "--json", &record];
        done(&[launch, &["tune"], command, &options].concat());
        let record = json(&record);
        let trials = record["tuning"]["trials"].as_array().unwrap().clone();
        assert!(trials.len() >= 2, "{}", record["tuning"]);
        (trials, record["result"]["objective"].clone(), record["iterations"].as_array().unwrap().len())
    };
    let two = ["launch", "-n", "2", "--"];
    // Without slack training itself is the same in both shapes.
    let clicks = ["blockpg", &clicks, "--tune", "blocks=10,20,40"];
    let one = of("1x2", &[], &[&clicks[..], &["-w", "2"]].concat());
    assert_eq!(of("2x1", &two, &[&clicks[..], &["-w", "1"]].concat()), one);
    let ratings = ["mf", &ratings, "-w", "1", "--iterations", "15", "--dims", "4"];
    assert_eq!(of("a", &two, &ratings), of("b", &two, &ratings));
    // Slack changes what crosses between processes, workers the layout.
    let mixed = ["--tune", "step=0.1,0.05", "--tune", "slack=0,2", "--tune", "workers=1,2"];
    assert_eq!(of("mixed", &two, &[&ratings[..], &mixed].concat()).2, 15);
}

#[test]
fn a_tuned_run_can_be_continued() {
    let place = Place::new();
    let (ratings, saved) = (place.ratings(), place.name("saved"));
    let of = |name: &str, iterations: &str, options: &[&str]| {
        let record = place.name(name);
        let command =
            ["tune", "mf", &ratings, "-w", "1", "--dims", "4", "-q", "--seed", "2", "--iterations", iterations];
        done(&[&command[..], &["--json", &record], options].concat());
        json(&record)
    };
    let objectives = |record: &serde_json::Value| -> Vec<f64> {
        record["iterations"].as_array().unwrap().iter().map(|one| one["objective"].as_f64().unwrap()).collect()
    };
    let whole = of("whole.json", "60", &[]);
    assert!(whole["tuning"]["settings"].as_array().unwrap().len() > 1, "{}", whole["tuning"]);
    let (all, searched) = (objectives(&whole), whole["tuning"]["settings"][1][0].as_u64().unwrap());
    // What goes on searches again where the whole run did.
    for at in [searched / 2, searched - 1] {
        let saved = format!("{saved}-{at}");
        of("first.json", &at.to_string(), &["--checkpoint", &saved]);
        let rest = of("rest.json", "60", &["--resume", &saved]);
        assert_eq!(objectives(&rest), all[at as usize..], "from {at}");
        for part in ["settings", "trials"] {
            assert_eq!(rest["tuning"][part], whole["tuning"][part], "from {at}");
        }
    }
    let saved = format!("{saved}-{}", searched - 1);
    let refused = |command: &[&str], parts: &[&str]| {
        fails(&[command, &[&ratings, "-w", "1", "--dims", "4", "--seed", "2", "--resume", &saved]].concat(), 1, parts);
    };
    refused(&["mf"], &["of a run with tune", "use the same options"]);
    refused(&["tune", "mf", "--tune", "step=0.1,0.2"], &["of a run with tune", "use the same options"]);
    std::fs::remove_file(std::path::Path::new(&saved).join("tuning.json")).unwrap();
    refused(&["tune", "mf"], &["tuning.json", "which says what tuning came to"]);
}

fn least(errors: &[(u64, f64)]) -> f64 {
    errors.iter().map(|(_, error)| *error).fold(f64::INFINITY, f64::min)
}

/// Returns the errors on test data by iteration: all but those of trials that became the run, of which the last one counts.
fn tested(record: &serde_json::Value) -> Vec<(u64, f64)> {
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let tuning = &record["tuning"];
    let chosen = || tuning["trials"].as_array().unwrap().iter().filter(|trial| trial["chosen"] == true);
    // Where no trial of the first search made progress, the run began with what is taken without one, and with no trial.
    let is_of_none = chosen().all(|trial| trial["search"] != 0);
    let begun = tuning["settings"].as_array().unwrap().iter().map(|setting| number(&setting[0]));
    let begun = begun.skip(usize::from(is_of_none));
    let trials: Vec<_> =
        begun.zip(chosen()).map(|(begun, trial)| begun + 1..begun + number(&trial["iterations"])).collect();
    let errors = record["iterations"].as_array().unwrap().iter();
    let errors = errors.map(|one| (number(&one["iteration"]), one["metrics"]["test_rmse"].as_f64().unwrap()));
    errors.filter(|(iteration, _)| !trials.iter().any(|trial| trial.contains(iteration))).collect()
}

#[test]
fn a_run_is_tuned_again_where_the_error_on_test_data_falls_no_further() {
    let place = Place::new();
    let (ratings, report) = (noise(&place), place.name("run.html"));
    let of = |name: &str, iterations: &str, options: &[&str]| {
        let (record, model) = (place.name(&format!("{name}.json")), place.name(name));
        let command = ["tune", "mf", &ratings, "-w", "1", "--dims", "4", "--lambda", "0", "--holdout", "0.2", "-q"];
        let common = ["--iterations", iterations, "--json", &record, "--model", &model];
        done(&[&command[..], &common, options].concat());
        (json(&record), std::fs::read(std::path::Path::new(&model).join("users.npy")).unwrap())
    };
    let (whole, model) = of("whole", "100", &["--report", &report]);
    let (tuning, all) = (&whole["tuning"], tested(&whole));
    let stalled = tuning["stalled"].as_array().unwrap();
    let after = stalled[0]["after"].as_u64().unwrap();
    for one in stalled {
        let until = all.iter().position(|(iteration, _)| one["after"] == *iteration).unwrap() + 1;
        // Patience is five evaluations.
        let (before, last) = all[..until].split_at(until - 4);
        assert_eq!(one["best"], least(before), "{tuning}");
        assert_eq!(
            one["errors"],
            serde_json::json!(last.iter().map(|(_, error)| error).collect::<Vec<_>>()),
            "{tuning}"
        );
        assert!(least(last) >= least(before), "{tuning}");
    }
    assert_eq!(tuning["settings"][1][0], after, "{tuning}");
    assert_eq!(whole["result"]["metrics"]["test_rmse"], least(&all), "the model is the best on test data");
    let page = std::fs::read_to_string(&report).unwrap();
    let [first, second] = [0, 1].map(|at| stalled[at]["after"].clone());
    assert_eq!(stalled.len(), 2, "{tuning}");
    assert!(page.contains(&format!("fell no further at iterations {first} and {second}.")), "{page}");

    // What goes on searches again where the whole run did: later, or first of all.
    for at in [after - 2, after] {
        let saved = place.name(&format!("saved-{at}"));
        of(&format!("first-{at}"), &at.to_string(), &["--checkpoint", &saved]);
        let (rest, same) = of(&format!("rest-{at}"), "100", &["--resume", &saved]);
        for part in ["settings", "trials", "stalled", "ended_by"] {
            assert_eq!(rest["tuning"][part], tuning[part], "{part} from {at}");
        }
        for part in ["iterations", "best_iteration", "metrics", "objective"] {
            assert_eq!(rest["result"][part], whole["result"][part], "{part} from {at}");
        }
        assert!(same == model, "the model from {at}");
    }
}

#[test]
fn nothing_is_searched_where_the_next_evaluation_may_end_the_run() {
    let place = Place::new();
    let (ratings, record) = (noise(&place), place.name("run.json"));
    let tune = ["tune", "mf", &ratings, "-w", "1", "--dims", "4", "--lambda", "0", "--holdout", "0.2", "-q"];
    done(&[&tune[..], &["--iterations", "200", "--patience", "1", "--json", &record]].concat());
    let found = json(&record);
    assert_eq!(found["result"]["ended_by"], "patience");
    assert!(found["tuning"].get("stalled").is_none(), "{}", found["tuning"]);
    assert!(found["tuning"]["trials"].as_array().unwrap().iter().all(|trial| trial["search"] == 0), "{found}");
}

#[test]
fn what_cannot_be_tuned_is_refused() {
    let place = Place::new();
    let ratings = place.ratings();
    let tune =
        |options: &[&str], code, parts: &[&str]| fails(&[&["tune", "mf", &ratings], options].concat(), code, parts);
    tune(
        &["--tune", "lambda=0..1"],
        2,
        &["tune lambda: mf has no such tunable; it has step, decay, momentum, rho, slack, batch, workers"],
    );
    tune(&["--tune", "step=1..1"], 2, &["tune step: 1..1 is empty"]);
    tune(&["--tune", "step=log:0..1"], 2, &["has no logarithm"]);
    tune(&["--tune", "step=0,0.1"], 2, &["tune step=0: step is 0; expected a number above 0"]);
    tune(&["--tune", "slack=0.5,1"], 2, &["tune slack=0.5", "expected a whole number"]);
    tune(&["--tune", "slack=0..3"], 2, &["tune slack=0..3: slack is a whole number; give a list"]);
    tune(
        &["--optimizer", "als"],
        2,
        &["als takes no steps, and step is tuned by default", "with --tune: slack, workers"],
    );
    tune(&["--tune", "decay=0,1"], 2, &["adagrad", "--optimizer"]);
    tune(&["--tune", "step=0.1"], 2, &["nothing to tune"]);
    tune(&["--tune", "step"], 2, &["no = in it"]);
    tune(&["--budget", "0"], 2, &["a budget of 0 is too small for one trial"]);
    tune(&["--evaluate-every", "5"], 2, &["tune measures after each iteration", "leave out --evaluate-every"]);
    tune(&["--consistency", "async", "--tune", "slack=0,1"], 2, &["with --consistency async there is no bound"]);
    tune(&["--virtual-workers", "4"], 2, &["--virtual-workers is not for tune"]);
    tune(&["--tune", "step=log:1e4..1e6", "--dims", "4"], 1, &["diverged", "the least bad was step="]);
    fails(&["tune", "lda", &ratings, "--tune", "topics=5,10"], 2, &["lda has no such tunable; it has sampler"]);
    let ran = run(&["tune", "--help"]);
    assert!(ran.stdout.contains("megagrid tune mf ratings.csv"), "{}", ran.stdout);
}

/// Returns the words of the command that a tuned run prints.
fn printed(args: &[&str]) -> Vec<String> {
    let text = done(&[&["tune"], args].concat());
    let line = text.lines().find_map(|line| line.trim().split_once(" without trials: ")).unwrap().1;
    line.split(' ').map(str::to_owned).collect()
}

fn value<'w>(words: &'w [String], option: &str) -> Option<&'w str> {
    let at = words.iter().position(|word| word == option)?;
    assert_eq!(words.iter().filter(|word| *word == option).count(), 1, "{words:?}");
    Some(&words[at + 1])
}

#[test]
fn the_command_printed_is_made_of_resolved_options() {
    let place = Place::new();
    let ratings = place.ratings();
    let mf = ["mf", &ratings, "--dims", "4", "-w", "1", "--model", &place.name("model")];
    // The iterations of tune are others than those of mf.
    let words = printed(&mf);
    assert_eq!(value(&words, "--iterations"), Some("100"));
    let model = place.name("model-again");
    assert_eq!((value(&words, "--workers"), value(&words, "--model")), (Some("1"), Some(&*model)));
    assert_eq!(value(&words, "-w"), None);
    // A slack that was given is the one that was found, or none.
    let slack = ["--consistency", "ssp", "--slack", "3", "--tune", "slack=0,2", "--tune", "workers=1,2"];
    let words = printed(&[&mf[..6], &["--iterations", "14"], &slack].concat());
    let found = value(&words, "--slack").is_some();
    assert!(!found || value(&words, "--slack") == Some("2"), "{words:?}");
    assert_eq!(value(&words, "--consistency").is_some(), found, "{words:?}");
    assert!(matches!(value(&words, "--workers"), Some("1" | "2")), "{words:?}");

    let clicks = place.name("clicks.libsvm");
    done(&["generate", "clicks", &clicks, "--samples", "300", "--features", "100"]);
    let words = printed(&["blockpg", &clicks, "--batch", "500", "--tune", "blocks=10,20", "-w", "1"]);
    assert!(value(&words, "--blocks").is_some() && value(&words, "--batch").is_none(), "{words:?}");
}

#[cfg(unix)]
#[test]
fn a_path_that_is_no_unicode_is_no_panic() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let path = place.path("").join(std::ffi::OsStr::from_bytes(b"rat\xff ings.csv"));
    std::fs::rename(place.ratings(), &path).unwrap();
    let output = assert_cmd::cargo::cargo_bin_cmd!("megagrid")
        .args(["tune", "mf"])
        .arg(&path)
        .args(["--dims", "4", "-w", "1", "--iterations", "12"])
        .output()
        .unwrap();
    let (text, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(text.contains("rat\u{fffd} ings.csv' --"), "quoted, with a mark for what is no Unicode: {text}");
}

#[test]
fn what_is_asked_for_is_tried_and_of_lists_all() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("run.json"));
    let of = |args: &[&str]| {
        let said = done(&[&["tune"], args, &["-w", "1", "--iterations", "16", "--json", &record]].concat());
        let tuning = json(&record)["tuning"].clone();
        let trials: Vec<(String, u64, f64)> = tuning["trials"]
            .as_array()
            .unwrap()
            .iter()
            .map(|trial| {
                let number = |name: &str| trial[name].as_f64().unwrap();
                (trial["setting"].as_str().unwrap().to_owned(), number("iterations") as u64, number("speed"))
            })
            .collect();
        (said, trials)
    };
    let (said, trials) = of(&["als", &ratings, "--dims", "64", "--block", "48"]);
    let mut settings: Vec<&str> = trials.iter().map(|(setting, ..)| &**setting).collect();
    settings.sort_unstable();
    assert_eq!(
        settings,
        ["block=16", "block=32", "block=48", "block=64"],
        "each once, and the one that was given: {said}"
    );
    assert!(trials.iter().all(|(_, iterations, speed)| *iterations > 0 && *speed > 0.0), "{trials:?}");
    assert!(said.contains("tuned by 4 trials (grid), "), "{said}");
    // Fewer iterations of trials than settings.
    let (said, trials) = of(&["als", &ratings, "--dims", "64", "--budget", "2"]);
    assert_eq!(trials.len(), 2, "{trials:?}");
    assert!(said.contains("tuned by 2 trials of 2 of 3 settings (grid), "), "{said}");
}

#[test]
fn the_first_search_tries_as_many_settings_as_allowed() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("run.json"));
    for most in [1, 3] {
        let trials = most.to_string();
        let tune = ["tune", "mf", &ratings, "-w", "1", "--dims", "2", "--iterations", "10", "--searcher", "random"];
        done(&[&tune[..], &["--no-retune", "--trials", &trials, "--json", &record, "-q"]].concat());
        let found = json(&record);
        let tried = found["tuning"]["trials"].as_array().unwrap().len();
        assert!((1..=most).contains(&tried), "{tried} of {most}: {found}");
    }
    fails(&["tune", "mf", &ratings, "--trials", "0"], 2, &["--trials"]);
    // One trial, which is the run: nothing of it was lost.
    let als =
        ["tune", "mf", &ratings, "--optimizer", "als", "--tune", "workers=1,2", "--trials", "1", "--iterations", "12"];
    let said = done(&als);
    assert!(said.starts_with("tuned by 1 trial of 1 of 2 settings (grid), "), "{said}");
}
