//! Jobs of several processes with slack, or clocks of several iterations: they go on in any shape, and are tuned.

use super::{Place, done, fails, json, run};

const ESSP: [&str; 4] = ["--consistency", "essp", "--slack", "1"];

/// Runs a quiet command as `processes` processes of one worker.
fn launched(processes: &str, command: &[&str]) {
    done(&[&["launch", "-n", processes, "--"], command, &["-w", "1", "-q"]].concat());
}

#[test]
fn checkpoints_of_a_job_with_slack_are_gone_on_from_in_any_shape() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("run.json"));
    for (at, how) in [&ESSP[..], &["--consistency", "async"], &["--work-per-clock", "2"]].into_iter().enumerate() {
        let (from, next) = (place.name(&format!("from-{at}")), place.name(&format!("next-{at}")));
        let mf = |last: &'static str| {
            [&["mf", &ratings, "--dims", "4", "--json", &record, "--iterations", last], how].concat()
        };
        launched("2", &[&mf("4")[..], &["--checkpoint", &from]].concat());
        for processes in ["2", "3"] {
            launched(processes, &[&mf("8")[..], &["--resume", &from]].concat());
            let found = json(&record);
            assert_eq!(found["result"]["iterations"], 8, "{how:?}");
            let rmse = found["result"]["metrics"]["train_rmse"].as_f64().unwrap();
            assert!(rmse < 1.0, "{how:?}, {processes} processes: {rmse}");
        }
        done(&[&mf("6")[..], &["--resume", &from, "--checkpoint", &next, "-w", "1", "-q"]].concat());
        launched("2", &[&mf("8")[..], &["--resume", &next]].concat());
    }
    fails(
        &["mf", &ratings, "--dims", "5", "--resume", &place.name("from-0")],
        1,
        &["of a run with dims 4, and now it is 5"],
    );
}

#[test]
fn batches_are_those_of_the_processes_that_go_on() {
    let place = Place::new();
    let samples: String = (0..200).map(|at| format!("{} {}:1 {}:0.5\n", at % 2, at % 7 + 1, at % 11 + 8)).collect();
    let (samples, from) = (place.file("samples.libsvm", samples), place.name("from"));
    let fit = |last: &'static str| ["blockpg", &samples, "--l1", "0.1", "--iterations", last];
    launched("2", &[&fit("3")[..], &["--checkpoint", &from]].concat());
    launched("3", &[&fit("6")[..], &["--resume", &from]].concat());
    let alone = |more: &[&'static str]| [&fit("6")[..], &["--resume", &from, "-w", "1", "-q"], more].concat();
    done(&alone(&["--blocks", "20"]));
    fails(&alone(&[]), 1, &["features \"in blocks, as with --blocks\", and now it is \"without blocks"]);
}

#[test]
fn slack_and_delay_are_tuned_on_one_grid() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("run.json"));
    let tune = |how: &[&str]| {
        launched("2", &[&["tune", "mf", &ratings, "--iterations", "10", "--json", &record], how].concat())
    };
    tune(&ESSP);
    tune(&["--work-per-clock", "2"]);
    tune(&["--tune", "slack=0,1,3"]);
    assert_eq!(json(&record)["config"]["batch"], 60, "a sixteenth of all ratings, whatever the slack");
    let samples = place.file("samples.libsvm", "1 1:1 2:1\n0 2:1 3:2\n1 1:2 3:1\n0 2:2\n".repeat(20));
    done(&["tune", "blockpg", &samples, "--tune", "delay=0,2", "--iterations", "10", "-w", "1", "-q"]);
}

#[test]
fn a_slack_beyond_all_clocks_binds_nobody() {
    let place = Place::new();
    let ratings = place.ratings();
    let most = u64::MAX.to_string();
    done(&["mf", &ratings, "--consistency", "ssp", "--slack", &most, "--iterations", "3", "-w", "2", "-q"]);
}

#[test]
fn running_errors_are_of_an_iteration_however_many_a_clock_has() {
    let place = Place::new();
    let ratings = place.ratings();
    let running = |work: &str, iterations: &str| {
        let record = place.name("run.json");
        done(&[
            "mf",
            &ratings,
            "--work-per-clock",
            work,
            "--iterations",
            iterations,
            "--unit",
            "1",
            "-q",
            "-w",
            "1",
            "--json",
            &record,
        ]);
        json(&record)["result"]["metrics"]["running_rmse"].as_f64().unwrap()
    };
    let usual = running("1", "8");
    for (work, iterations) in [("4", "8"), ("3", "7")] {
        let found = running(work, iterations);
        assert!((found / usual - 1.0).abs() < 0.5, "{work} iterations a clock: {found}, else {usual}");
    }
}

#[test]
fn sums_of_many_numbers_are_foreseen_to_the_byte() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("run.json"));
    let als = ["als", &ratings, "--dims", "20", "--iterations", "3"];
    launched("2", &[&als[..], &["--json", &record]].concat());
    let alone = place.name("alone.json");
    done(&[&als[..], &["--json", &alone, "-w", "1", "-q"]].concat());
    let table = done(&["view", &alone, &record]);
    assert!(table.lines().next().unwrap().contains("processes"), "{table}");
    let sent = json(&record)["iterations"][2]["sent_bytes"].as_u64().unwrap();
    let plan = run(&[&["plan"], &als[..], &["--processes", "2", "-w", "1"]].concat()).stdout;
    assert!(plan.contains(&format!("{sent} bytes")), "{sent} bytes were sent: {plan}");
    // So are those of scores of several sets.
    let (links, sets) = (place.graph(), place.file("sets.txt", "1\n2 3\n4\n"));
    let rank = ["pagerank", &links, "--restart-sets", &sets, "--iterations", "3"];
    launched("2", &[&rank[..], &["--tolerance", "0", "--json", &record]].concat());
    let sent = json(&record)["iterations"][2]["sent_bytes"].as_u64().unwrap();
    let plan = run(&[&["plan"], &rank[..], &["--processes", "2", "-w", "1"]].concat()).stdout;
    assert!(plan.contains(&format!("{sent} bytes")), "{sent} bytes were sent: {plan}");
}
