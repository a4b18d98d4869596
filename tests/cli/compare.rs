//! `megagrid compare`: every training command on every system, its table, its record and its page.

use serde_json::Value;

use crate::{Place, done, fails, json};

/// What every row of the table and of the JSON has to say.
const FIELDS: &str = "system iteration_seconds setup_seconds target_seconds target_iterations shares sent_bytes messages \
    memory_bytes peak_rss_bytes user_lines objective runs";

fn corpus(place: &Place) -> String {
    let line = |at: usize| ["cat dog cat mouse dog", "car bus car road bus", "cat mouse dog", "road car bus"][at % 4];
    place.file("corpus.txt", (0..40).map(|at| format!("{}\n", line(at))).collect::<String>())
}

fn samples(place: &Place) -> String {
    let line = |at: usize| {
        let label = if at.is_multiple_of(3) { 1 } else { -1 };
        format!("{label} {}:1 {}:0.5 {}:{}\n", 1 + at % 3, 4 + at % 5, 10 + at % 7, 1 + at % 2)
    };
    place.file("samples.svm", (0..60).map(line).collect::<String>())
}

/// Compares on all systems that run a job; returns the record, whose table it checks, and the page.
fn compare(place: &Place, args: &[&str]) -> (Value, String) {
    compare_by(1, place, args)
}

/// The same by `workers` workers.
fn compare_by(workers: usize, place: &Place, args: &[&str]) -> (Value, String) {
    let (record, page, count) = (place.name("compare.json"), place.name("compare.html"), workers.to_string());
    let rest = ["--repeat", "2", "--json", &record, "--report", &page, "-w", &count];
    let text = done(&[&["compare"], args, &rest].concat());
    let (record, page) = (json(record), std::fs::read_to_string(page).unwrap());
    let systems = record["systems"].as_array().unwrap();
    for column in ["iteration", "to target", "setup", "compute/wait/sync", "bytes", "messages", "peak", "lines"] {
        assert!(text.contains(column), "no {column} in {text}");
    }
    assert_eq!(record["command"], format!("compare {}", args[0]));
    for one in systems {
        let name = one["system"].as_str().unwrap();
        assert!(text.contains(name) && page.contains(&format!(">{name}<")), "{name}");
        for field in FIELDS.split(' ') {
            assert!(one.get(field).is_some(), "{name}: no {field}");
        }
        let runs = one["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 2, "{name}");
        for run in runs {
            assert_eq!(run["command"], args[0]);
            assert_eq!(run["iterations"].as_array().unwrap().len(), 5, "{name}");
            assert_eq!(run["config"], runs[0]["config"]);
            assert_eq!(run["iterations"][4]["workers"].as_array().unwrap().len(), workers, "{name}");
            assert!(run["machine"]["replication_factor"].as_f64().unwrap() >= 1.0, "{name}");
        }
        let Value::Object(spread) = &one["iteration_seconds"] else { panic!("{name}: {one}") };
        let [min, median, max] = ["min", "median", "max"].map(|of| spread[of].as_f64().unwrap());
        assert!(0.0 < min && min <= median && median <= max, "{name}");
        assert!(one["target_seconds"]["median"].as_f64().unwrap() > 0.0, "{name}: all runs reach the worst objective");
    }
    (record, page)
}

/// All systems end with the same objective: rounding apart, the job is the same.
fn agrees(record: &Value, within: f64) {
    let of = |one: &Value| one["objective"]["median"].as_f64().unwrap();
    let systems = record["systems"].as_array().unwrap();
    for one in systems {
        let (first, here) = (of(&systems[0]), of(one));
        assert!((first - here).abs() <= within * first.abs(), "{}: {here}, not {first}", one["system"]);
    }
}

fn names(record: &Value) -> Vec<&str> {
    record["systems"].as_array().unwrap().iter().map(|one| one["system"].as_str().unwrap()).collect()
}

fn is_one_page(page: &str) {
    assert!(page.starts_with("<!doctype html>"));
    for outside in ["http://", "https://", "src=", "url(", "@import", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for shown in
        ["prefers-color-scheme", "@media print", "objective by iteration", "share of the workers", "peak memory"]
    {
        assert!(page.contains(shown), "no {shown}");
    }
    assert!(!page.contains("NaN"));
}

#[test]
fn mf_runs_on_all_systems_by_gradients() {
    let place = Place::new();
    let (record, page) = compare(&place, &["mf", &place.ratings(), "--iterations", "5", "--dims", "4"]);
    assert_eq!(names(&record)[..3], ["megagrid", "gas", "gas-faithful"]);
    agrees(&record, 1e-4);
    is_one_page(&page);
    for run in record["systems"].as_array().unwrap() {
        assert_eq!(run["runs"][0]["input"]["edges"], 960);
    }
}

#[test]
fn geeps_takes_the_same_steps() {
    let place = Place::new();
    let ratings = place.ratings();
    let plain = "--iterations 5 --dims 4 --optimizer sgd --decay 0 --no-biases --step 0.01 --unit 1";
    let plain: Vec<&str> = plain.split(' ').collect();
    let systems = ["--systems", "megagrid,iterstore,geeps"];
    for workers in [1, 3] {
        let (record, page) = compare_by(workers, &place, &[&["mf", &ratings], &plain[..], &systems].concat());
        assert_eq!(names(&record), ["megagrid", "iterstore", "geeps"]);
        agrees(&record, 1e-5);
        is_one_page(&page);
    }
    for (of, advice) in [("mf", "use --optimizer sgd --decay 0 --no-biases"), ("pagerank", "it has mf only")] {
        let args = ["compare", of, &ratings, "--systems", "geeps"];
        fails(&args, 2, &["geeps does not run this job", advice]);
    }
    let args = [&["compare", "mf", &ratings], &plain[..], &["--systems", "geeps", "--gradient", "in-place"]].concat();
    fails(&args, 2, &["it changes nothing in place"]);
}

#[test]
fn pagerank_runs_on_all_systems() {
    let place = Place::new();
    let (record, page) = compare(&place, &["pagerank", &place.graph(), "--iterations", "5"]);
    agrees(&record, 1e-4);
    is_one_page(&page);
    assert_eq!(record["rounds"], 2);
}

#[test]
fn als_runs_on_all_systems() {
    let place = Place::new();
    let ratings = place.ratings();
    // Of the second some ratings are no feedback. So few pairs have the rank of a few dimensions: a small lambda would leave the rest to
    // rounding.
    for more in [&[][..], &["--ratings-above", "3", "--block", "16"]] {
        let args = [&["als", &ratings, "--iterations", "5", "--dims", "20", "--lambda", "0.1"], more].concat();
        let (record, page) = compare_by(2, &place, &args);
        assert_eq!(names(&record).len(), 7, "all but geeps");
        agrees(&record, 1e-5);
        is_one_page(&page);
    }
    let als = |rest: &[&'static str]| [&["compare", "als", &ratings, "--systems", "essp"][..], rest].concat();
    fails(
        &als(&["--consistency", "ssp", "--slack", "1"]),
        2,
        &["essp does not run this job", "users and items take turns"],
    );
    fails(&als(&["--ranking", "5"]), 2, &["essp does not run this job", "leave out --ranking"]);
    fails(&als(&["--holdout-last", "1"]), 2, &["essp does not run this job", "--holdout"]);
    fails(&als(&["--block", "10"]), 2, &["block", "a multiple of 16"]);
    let bad = place.file("bad.csv", "1,2,3\n1,2,-1\n");
    fails(&["compare", "als", &bad, "--repeat", "1"], 1, &["bad.csv", "-1", "expected 0 or a number above"]);
}

#[test]
fn lda_runs_on_all_systems() {
    let place = Place::new();
    let args = ["lda", &corpus(&place), "--format", "text", "-k", "3", "--iterations", "5"];
    let (record, page) = compare(&place, &args);
    // Systems visit tokens in different orders, which so small a corpus shows.
    agrees(&record, 0.25);
    is_one_page(&page);
    assert_eq!(record["maximizes"], true);
}

#[test]
fn blockpg_runs_on_all_systems() {
    let place = Place::new();
    let (record, page) =
        compare(&place, &["blockpg", &samples(&place), "--iterations", "5", "--l1", "0.5", "--blocks", "3"]);
    // The same blocks in the same order.
    agrees(&record, 1e-5);
    is_one_page(&page);
}

/// Compares Megagrid and the parameter servers in `processes` processes of one worker; returns the record.
fn in_processes(place: &Place, processes: &str, args: &[&str]) -> Value {
    let (record, page) = (place.name("processes.json"), place.name("processes.html"));
    let rest = ["--processes", processes, "-w", "1", "--repeat", "1", "--json", &record, "--report", &page];
    let text = done(&[&["compare"], args, &rest].concat());
    let (record, page) = (json(record), std::fs::read_to_string(page).unwrap());
    assert!(text.contains(&format!("{processes} processes")) && page.contains(&format!("in {processes} processes")));
    is_one_page(&page);
    assert_eq!(names(&record), ["megagrid", "gas", "gas-faithful", "ps-naive", "lazytable", "essp", "iterstore"]);
    assert_eq!(record["cuts"].as_object().unwrap().len(), 2, "{record}");
    let number: usize = processes.parse().unwrap();
    for one in record["systems"].as_array().unwrap() {
        let name = one["system"].as_str().unwrap();
        let last = &one["runs"][0]["iterations"][4];
        assert_eq!(last["workers"].as_array().unwrap().len(), number, "{name}: each worker is told of");
        let bytes = last["process_bytes"].as_array().unwrap();
        let sum = bytes.iter().map(|bytes| bytes.as_u64().unwrap()).sum::<u64>();
        assert!(
            bytes.len() == number && sum > 0 && last["sent_bytes"] == sum,
            "{name}: bytes by process add up: {last}"
        );
        assert_eq!(one["processes"].as_array().unwrap().len(), number, "{name}");
    }
    record
}

#[test]
fn several_processes_reach_the_same_objectives() {
    let place = Place::new();
    for processes in ["2", "4"] {
        let mf = in_processes(&place, processes, &["mf", &place.ratings(), "--iterations", "5", "--dims", "4"]);
        agrees(&mf, 1e-5);
        let als = in_processes(&place, processes, &["als", &place.ratings(), "--iterations", "5", "--dims", "4"]);
        agrees(&als, 1e-5);
        let pagerank = in_processes(&place, processes, &["pagerank", &place.graph(), "--iterations", "5"]);
        agrees(&pagerank, 1e-5);
        let samples = ["blockpg", &samples(&place), "--iterations", "5", "--l1", "0.5", "--blocks", "3"];
        agrees(&in_processes(&place, processes, &samples), 1e-5);
        let topics = ["lda", &corpus(&place), "--format", "text", "-k", "3", "--iterations", "5"];
        agrees(&in_processes(&place, processes, &topics), 0.25);
    }
}

#[test]
fn a_cut_is_chosen_and_changes_no_objective() {
    let place = Place::new();
    let (graph, record) = (place.graph(), place.name("cut.json"));
    let gas = ["compare", "pagerank", &graph, "--systems", "gas,gas-faithful", "--repeat", "1", "--iterations", "4"];
    let run = |cut: &str| {
        done(&[&gas[..], &["--processes", "4", "-w", "1", "--cut", cut, "--json", &record]].concat());
        let found = json(&record);
        assert_eq!((&found["cuts"]["gas"], &found["cuts"]["gas-faithful"]), (&cut.into(), &cut.into()));
        [0, 1].map(|at| &found["systems"][at]["objective"]["median"]).map(|one| one.as_f64().unwrap())
    };
    let all = ["random", "bicut"].map(run);
    assert!(all.as_flattened().iter().all(|one| (one / all[0][0] - 1.0).abs() < 1e-5), "{all:?}");
    fails(&[&gas[..], &["--cut", "grid"]].concat(), 2, &["--cut is between processes"]);
    fails(&[&gas[..], &["--processes", "2", "--cut", "metis"]].concat(), 2, &["metis", "hybrid"]);
    let servers = ["compare", "pagerank", &graph, "--systems", "essp", "--processes", "2", "--cut", "grid"];
    fails(&servers, 2, &["--cut is for gas"]);
    let topics =
        ["compare", "lda", &corpus(&place), "--format", "text", "-k", "3", "--processes", "2", "--systems", "gas"];
    fails(&[&topics[..], &["--cut", "grid"]].concat(), 2, &["take --cut bicut"]);
}

#[test]
fn processes_take_an_input_behind_two_dashes() {
    let place = Place::new();
    let args = ["compare", "mf", "--processes", "2", "--repeat", "1", "--iterations", "1", "--systems", "megagrid"];
    assert!(done(&[&args[..], &["--", &place.ratings()]].concat()).contains("2 processes"));
}

#[test]
fn what_has_no_processes_is_refused() {
    let place = Place::new();
    let ratings = place.ratings();
    let mf = |rest: &[&'static str]| [&["compare", "mf", &ratings][..], rest].concat();
    fails(&mf(&["--processes", "0"]), 2, &["--processes", "1..=64"]);
    fails(&mf(&["--processes", "2", "--systems", "geeps"]), 2, &["geeps does not run", "leave out --processes"]);
    fails(&mf(&["--processes", "2", "--cache", "somewhere"]), 2, &["--cache is for one process"]);
    let slack = ["--processes", "2", "--systems", "ps-naive", "--consistency", "ssp", "--slack", "1"];
    fails(&mf(&slack), 2, &["ps-naive does not run", "leave out --slack"]);
    fails(&["compare", "blockpg", &samples(&place), "--gather", "first"], 2, &["--gather is not for blockpg"]);
    fails(&["compare", "mf", &place.name("none.csv"), "--processes", "2"], 1, &["none.csv"]);
    let bad = place.file("bad.csv", "1,2,3\n1,2,x\n");
    fails(&["compare", "mf", &bad, "--processes", "2", "--repeat", "1"], 1, &["bad.csv:2", "megagrid"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_is_killed_ends_the_command_with_one_message() {
    use crate::launched::{self, end, process, send};
    use std::process::{Command, Stdio};
    let place = Place::new();
    let ratings = place.ratings();
    for (system, victim) in
        [("iterstore", 0), ("iterstore", 1), ("ps-naive", 1), ("gas", 0), ("gas-faithful", 1), ("megagrid", 1)]
    {
        let args = ["compare", "mf", &ratings, "--processes", "2", "-w", "1", "-q", "--iterations", "1000000000"];
        let compared = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
            .args(args)
            .args(["--systems", system])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let other = process(&compared, 1 - victim, None);
        let victim_id = process(&compared, victim, None);
        // Servers have connections of their own; iterations begin at once when these are there.
        let sockets = |id: u32| {
            let files = std::fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
            let names = files.filter_map(|file| std::fs::read_link(file.path()).ok());
            names.filter(|name| name.to_string_lossy().starts_with("socket:")).count()
        };
        launched::wait(|| sockets(victim_id) >= 3);
        std::thread::sleep(std::time::Duration::from_millis(300));
        let begin = std::time::Instant::now();
        send("-KILL", victim_id);
        let (code, messages) = end(compared);
        assert!(begin.elapsed() < std::time::Duration::from_secs(10), "{:?}: {messages}", begin.elapsed());
        assert_eq!(code, Some(1), "{messages}");
        assert_eq!(messages.lines().count(), 1, "{messages}");
        assert!(messages.starts_with(&format!("megagrid: on {system}: process {victim} (127.0.0.1:")), "{messages}");
        assert!(messages.contains(" is lost: "), "{messages}");
        assert!(!std::fs::exists(format!("/proc/{other}")).unwrap());
    }
}

#[test]
fn a_target_that_no_run_reaches_is_said_so() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("c.json"));
    let args =
        ["compare", "mf", &ratings, "--systems", "megagrid", "--repeat", "1", "--iterations", "2", "--target", "1"];
    assert!(done(&args).contains("not reached"));
    let stdout = done(&[&args[..], &["--json", "-"]].concat());
    let record_of: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(record_of["target"], 1.0);
    assert_eq!(record_of["systems"][0]["target_seconds"], Value::Null);
    assert!(!std::path::Path::new(&record).exists());
    assert_eq!(done(&[&args[..], &["-q"]].concat()), "");
}

#[test]
fn numbers_are_short_and_a_record_of_a_comparison_is_told_from_others() {
    let place = Place::new();
    let (graph, record) = (place.graph(), place.name("c.json"));
    let args = ["compare", "pagerank", &graph, "--systems", "megagrid", "--repeat", "1", "--iterations", "2"];
    let target = ["--target", "0.00000002869598835084572", "--json", &record];
    let text = done(&[&args[..], &target].concat());
    assert!(text.starts_with("compare pagerank: 1 round, target 2.8696e-8\n"), "{text}");
    assert!(done(&[&args[..], &["--target", "0.25"]].concat()).contains(", target 0.25\n"));
    fails(&["view", &record], 1, &["c.json", "is a record of megagrid compare", "its --report"]);
}

/// Where clocks are several iterations apart, most send nothing, and a median would say that none does.
#[test]
fn what_only_some_iterations_send_is_not_lost() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("c.json"));
    let args = ["compare", "mf", &ratings, "--gradient", "in-place", "--systems", "megagrid", "--repeat", "1"];
    let rest = ["--processes", "2", "-w", "1", "--iterations", "8", "--work-per-clock", "4", "--json", &record];
    done(&[&args[..], &rest].concat());
    let found = json(&record);
    let system = &found["systems"][0];
    let iterations = system["runs"][0]["iterations"].as_array().unwrap();
    let mean = |of: &dyn Fn(&Value) -> f64| iterations.iter().map(of).sum::<f64>() / iterations.len() as f64;
    let is = |found: &Value, expected: f64| {
        let found = found["median"].as_f64().unwrap();
        assert!(found > 0.0 && (found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}: {iterations:?}");
    };
    is(&system["sent_bytes"], mean(&|one| one["sent_bytes"].as_f64().unwrap()));
    is(&system["iteration_seconds"], mean(&|one| one["seconds"].as_f64().unwrap()));
    assert!(system["messages"]["median"].as_f64().unwrap() > 0.0);
    let of_each = system["processes"].as_array().unwrap();
    is(&of_each[1]["sent_bytes"], mean(&|one| one["process_bytes"][1].as_f64().unwrap()));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let place = Place::new();
    let ratings = place.ratings();
    let missing = place.name("missing.csv");
    let bad = place.file("bad.csv", "1,2,3\n1,2,x\n");
    let mf = |rest: &[&'static str]| [&["compare", "mf", &ratings][..], rest].concat();
    fails(&mf(&["--systems", "petuum"]), 2, &["petuum", "iterstore"]);
    fails(&mf(&["--repeat", "0"]), 2, &["--repeat"]);
    fails(&mf(&["--systems", "gas,gas"]), 2, &["twice"]);
    fails(&mf(&["--systems", "gas", "--gradient", "in-place"]), 2, &["gas", "--gradient batch"]);
    fails(&mf(&["--systems", "gas", "--holdout", "0.1"]), 2, &["gas", "--holdout"]);
    fails(&mf(&["--systems", "gas", "--consistency", "ssp", "--slack", "1"]), 2, &["gas", "slack"]);
    fails(&mf(&["--model", "somewhere"]), 2, &["--model"]);
    fails(&mf(&["--target", "NaN"]), 2, &["target"]);
    fails(&mf(&["--dims", "0"]), 2, &["dims"]);
    fails(&mf(&["--optimizer", "adam"]), 2, &["--optimizer sgd or adagrad", "which all systems have"]);
    fails(&mf(&["--work-per-clock", "0.25"]), 2, &["leave out --work-per-clock"]);
    fails(&mf(&["--batch", "9"]), 2, &["leave out --batch"]);
    for system in ["iterstore", "ps-naive"] {
        for option in [["--work-per-clock", "4"], ["--batch", "9"]] {
            let args = [&mf(&["--gradient", "in-place", "--systems"])[..], &[system], &option].concat();
            fails(&args, 2, &[system, &format!("its clocks are iterations: leave out {}", option[0])]);
        }
    }
    let topics = ["compare", "lda", &corpus(&place), "--format", "text", "-k", "3", "--work-per-clock"];
    fails(&[&topics[..], &["2", "--systems", "gas"]].concat(), 2, &["gas", "leave out --work-per-clock"]);
    fails(&mf(&["--patience", "3"]), 2, &["--patience goes with test data"]);
    fails(&mf(&["--evaluate-every", "2"]), 2, &["after each iteration"]);
    fails(&mf(&["--strategy", "bicut"]), 2, &["--strategy is for the training command", "--cut"]);
    let help = done(&["compare", "mf", "--help"]);
    for option in ["--checkpoint", "--patience", "--strategy", "--trace", "--live", "--model"] {
        assert!(!help.contains(&format!("\n      {option}")), "{option}");
    }
    fails(&["compare", "mf", &missing], 1, &["missing.csv"]);
    fails(&["compare", "mf", &bad, "--repeat", "1"], 1, &["bad.csv:2", "megagrid"]);
    fails(&["compare", "mf", &ratings, "--report", "/nowhere/r.html"], 1, &["/nowhere/r.html"]);
}
