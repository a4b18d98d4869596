//! The run record: its fields, and numbers that another computation confirms.

use serde_json::Value;

#[cfg(unix)]
use std::process::{Command, Stdio};

use crate::{Place, done, fails, json};

fn has(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(value.get(field).is_some(), "no {field} in {value}");
    }
}

fn has_schema(record: &Value, command: &str) {
    has(record, &["megagrid", "command", "config", "input", "phases", "iterations", "staleness", "result"]);
    has(record, &["peak_rss_bytes", "machine"]);
    assert_eq!(record["command"], command);
    has(&record["input"], &["left", "right", "edges", "test_edges"]);
    has(&record["phases"], &["load", "partition", "plan", "train"]);
    has(&record["result"], &["objective", "metrics", "iterations", "edges_per_second"]);
    has(&record["machine"], &["workers", "vector", "memory_estimate_bytes"]);
    let mut before = 0.0;
    for (at, one) in record["iterations"].as_array().unwrap().iter().enumerate() {
        has(one, &["seconds", "objective", "metrics", "compute_seconds", "wait_seconds", "sync_seconds", "sent_bytes"]);
        assert_eq!(one["iteration"], at as u64 + 1);
        assert_eq!(one["updates"], record["input"]["edges"]);
        let train_seconds = one["train_seconds"].as_f64().unwrap();
        assert!(train_seconds >= before);
        before = train_seconds;
    }
    assert_eq!(record["phases"]["train"].as_f64().unwrap(), before);
    assert!(record["staleness"]["-1"].as_u64().unwrap() > 0);
}

#[test]
fn mf_writes_its_record() {
    let place = Place::new();
    let path = place.name("run.json");
    let args =
        ["mf", &place.ratings(), "--holdout", "0.2", "-w", "2", "--iterations", "3", "--json", &path, "--seed", "7"];
    let summary = done(&args);
    assert!(summary.contains("test_rmse"), "{summary}");
    let record = json(&path);
    has_schema(&record, "mf");
    let input = &record["input"];
    assert_eq!(input["left"], 40);
    assert_eq!(input["right"], 30);
    assert_eq!(input["edges"].as_u64().unwrap() + input["test_edges"].as_u64().unwrap(), 960);
    assert_eq!(record["iterations"].as_array().unwrap().len(), 3);
    has(&record["result"]["metrics"], &["train_rmse", "test_rmse"]);
    let config = &record["config"];
    for (name, value) in [("dims", 32.into()), ("seed", Value::from(7)), ("workers", 2.into()), ("slack", 0.into())] {
        assert_eq!(config[name], value, "{name}");
    }
    has(config, &["input", "format", "lambda", "step", "biases", "mean", "batch", "work_per_clock", "vector", "test"]);
    // Running again replaces the record.
    done(&args);
}

#[test]
fn runs_are_seen_beside_each_other() {
    let place = Place::new();
    let (ratings, runs) = (place.ratings(), place.name("runs"));
    std::fs::create_dir(&runs).unwrap();
    for dims in ["4", "16"] {
        let path = format!("{runs}/dims-{dims}.json");
        done(&[
            "mf",
            &ratings,
            "--holdout",
            "0.2",
            "--dims",
            dims,
            "--iterations",
            "3",
            "-w",
            "1",
            "-q",
            "--json",
            &path,
        ]);
    }
    std::fs::write(format!("{runs}/other.json"), "{}").unwrap();
    let page = place.name("runs.html");
    let text = done(&["view", &runs, "--output", &page]);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["run", "dims", "iterations"], "{text}");
    assert_eq!((&rows[1][..3], &rows[2][..3]), (&["dims-4", "4", "3"][..], &["dims-16", "16", "3"][..]), "{text}");
    assert_eq!(rows.len(), 3, "{text}");
    assert!(rows[0].contains(&"test_rmse") && !rows[0].contains(&"json"), "{text}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("<th>dims") && html.matches(">dims-16<").count() > 2, "a table and curves");

    let links = place.name("pagerank.json");
    done(&["pagerank", &place.graph(), "-q", "--json", &links]);
    fails(&["view", &runs, &links], 2, &["pagerank is of pagerank, dims-4 of mf"]);
    fails(&["view", &ratings], 1, &["ratings.csv", "expected a record"]);
    fails(&["view", &place.name("nowhere.json")], 1, &["nowhere.json"]);
    std::fs::create_dir(place.name("empty")).unwrap();
    fails(&["view", &place.name("empty")], 2, &["empty has no record"]);
}

#[test]
fn pagerank_writes_its_record_to_stdout() {
    let place = Place::new();
    let record: Value = serde_json::from_str(&done(&["pagerank", &place.graph(), "--json", "-"])).unwrap();
    has_schema(&record, "pagerank");
    let metrics = &record["result"]["metrics"];
    assert!((metrics["sum"].as_f64().unwrap() - 1.0).abs() < 1e-6);
    assert!(metrics["residual"].as_f64().unwrap() <= 1e-6);
    assert_eq!(record["result"]["objective"], metrics["residual"]);
    assert_eq!(record["result"]["ended_by"], "tolerance");
}

#[test]
fn clocks_and_slack_show_in_the_staleness() {
    let place = Place::new();
    let path = place.name("run.json");
    let clocks = ["--work-per-clock", "0.25", "--iterations", "5", "--json", &path, "-q", "-w", "2"];
    done(&[&["mf", &place.ratings(), "--consistency", "ssp", "--slack", "3"][..], &clocks].concat());
    let record = json(&path);
    assert_eq!(record["config"]["batch"], 240);
    for age in record["staleness"].as_object().unwrap().keys() {
        let age: i64 = age.parse().unwrap();
        assert!((-4..=-1).contains(&age), "{age}");
    }
}

#[test]
fn a_report_is_one_page_that_fetches_nothing() {
    let place = Place::new();
    let path = place.name("run.html");
    done(&["mf", &place.ratings(), "--holdout", "0.1", "--iterations", "4", "--report", &path, "-q"]);
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!doctype html>"));
    for shown in ["objective", "test_rmse", "staleness", "<svg", "lambda", "prefers-color-scheme", "@media print"] {
        assert!(page.contains(shown), "no {shown}");
    }
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("src="));
    assert!(!page.contains("NaN") && !page.contains("inf"), "only numbers are drawn");
    let embedded = page.split_once("id=record>").unwrap().1.split_once("</script>").unwrap().0;
    has_schema(&serde_json::from_str(embedded).unwrap(), "mf");
}

#[test]
fn nothing_is_printed_when_quiet() {
    let place = Place::new();
    assert_eq!(done(&["pagerank", &place.graph(), "--quiet"]), "");
}

#[test]
fn the_configuration_has_resolved_values() {
    let place = Place::new();
    let path = place.name("run.json");
    let config = |args: &[&str]| {
        done(&[args, &["-q", "--json", &path]].concat());
        json(&path)["config"].clone()
    };
    let posts = place.file("posts.txt", "tea and rye\nrye and oats\n".repeat(9));
    let lda = config(&["lda", &posts, "-k", "2", "--iterations", "2"]);
    assert_eq!((&lda["format"], &lda["sampler"], &lda["annealing"]), (&"text".into(), &"dense".into(), &25.into()));
    assert_eq!(config(&["mf", &place.ratings(), "--iterations", "1"])["format"], "ratings");
    let samples = place.file("s.libsvm", "1 1:1 2:1\n-1 2:1\n1 1:2\n");
    let blockpg = config(&["blockpg", &samples, "-w", "1", "--blocks", "2"]);
    assert_eq!((&blockpg["blocks"], &blockpg["batch"], &blockpg["slack"]), (&2.into(), &2.into(), &0.into()));
    assert_eq!(blockpg["workers"], 1);
}

#[test]
fn test_errors_obey_the_vector_level() {
    let place = Place::new();
    let (ratings, path) = (place.ratings(), place.name("run.json"));
    let rmse = |level: &str| {
        let mf = ["mf", &ratings, "--holdout", "0.2", "--dims", "16", "--iterations", "1", "-w", "1", "-q"];
        done(&[&mf[..], &["--vector", level, "--json", &path]].concat());
        json(&path)["result"]["metrics"]["test_rmse"].as_f64().unwrap()
    };
    // Levels round in other places, so no more than that the answer is the same but for rounding.
    let plain = rmse("plain");
    for level in megagrid_stages::simd::Level::available() {
        assert!((rmse(level.name()) / plain - 1.0).abs() < 1e-4, "{}", level.name());
    }
}

/// What a run leaves does not depend on whether anybody reads what it says.
#[cfg(unix)]
#[test]
fn models_and_records_are_written_where_nobody_reads_what_is_said() {
    let place = Place::new();
    let (ratings, record, model) = (place.ratings(), place.name("run.json"), place.name("model"));
    let of = |args: &[&str]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"));
        let mut child = command.args(args).args(["--json", &record]).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{args:?}");
        std::fs::remove_file(&record).unwrap();
    };
    let fit = [&ratings, "--dims", "4", "--iterations", "5", "-w", "1", "--model", &model];
    of(&[&["mf"][..], &fit].concat());
    assert!(place.path("model/model.json").exists());
    let more = place.file("more.csv", "u0,i0,4\n");
    of(&["update", &model, &more, "--data", &ratings]);
    std::fs::remove_dir_all(&model).unwrap();
    of(&[&["tune", "mf"][..], &fit, &["--tune", "step=0.05,0.1"]].concat());
    assert!(place.path("model/model.json").exists());
    of(&["compare", "mf", &ratings, "--systems", "megagrid", "--repeat", "1", "--iterations", "2"]);
}
