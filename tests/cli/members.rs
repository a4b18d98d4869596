//! Processes that are started by hand: what does not fit ends all, with one message.

use std::mem::ManuallyDrop;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use megagrid_engine::cluster::FreePorts;

#[cfg(feature = "baselines")]
use crate::json;
use crate::{Place, done, fails};

/// Addresses that are free, kept until the tests end.
pub fn addresses(processes: usize) -> Vec<String> {
    let ports = ManuallyDrop::new(FreePorts::find(processes).unwrap());
    ports.addresses().to_vec()
}

/// Runs a process for each command, all at a time; `numbers` are those that they are told.
fn run_all(hosts: &[String], numbers: &[usize], commands: &[&[&str]]) -> Vec<(Option<i32>, String)> {
    let start = |(number, command): (&usize, &&[&str])| {
        Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
            .args(*command)
            .args(["-w", "1", "-q"])
            .env("MEGAGRID_HOSTS", hosts.join(","))
            .env("MEGAGRID_PROCESS", number.to_string())
            .env("MEGAGRID_PATIENCE", "3")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let processes: Vec<_> = numbers.iter().zip(commands).map(start).collect();
    let end = |Output { status, stderr, .. }| (status.code(), String::from_utf8(stderr).unwrap());
    processes.into_iter().map(|process| end(process.wait_with_output().unwrap())).collect()
}

/// All processes fail, each with one message that holds one of `parts`.
fn all_fail(hosts: &[String], numbers: &[usize], commands: &[&[&str]], parts: &[&str]) {
    for (code, message) in run_all(hosts, numbers, commands) {
        assert_eq!(code, Some(1), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(parts.iter().any(|part| message.contains(part)), "none of {parts:?} in: {message}");
    }
}

/// What each writes and shows is no part of what all have to agree on.
#[cfg(feature = "baselines")]
#[test]
fn outputs_of_processes_may_differ() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("run.json"));
    let same: &[&str] = &["geeps", "mf", &ratings, "--epochs", "2"];
    let ended = run_all(&addresses(2), &[0, 1], &[&[same, &["--json", &record]].concat(), same]);
    assert!(ended.iter().all(|(code, _)| *code == Some(0)), "{ended:?}");
    assert_eq!(json(record)["config"]["processes"], 2);
}

#[test]
fn what_differs_is_named_in_all_processes() {
    let place = Place::new();
    let (ratings, saved) = (place.ratings(), place.name("saved"));
    let same: &[&str] = &["mf", &ratings];
    let differs = |other: &[&str], parts: &[&str]| all_fail(&addresses(2), &[0, 1], &[same, other], parts);
    differs(&["mf", &ratings, "--seed", "2"], &["process 1 has seed 2, process 0 has seed 1"]);
    differs(&["mf", &ratings, "--lambda", "0.5"], &["process 1 has lambda 0.5"]);
    differs(
        &["mf", &ratings, "--strategy", "auto"],
        &["process 1 has strategy \"auto\", process 0 has strategy \"bicut\""],
    );
    differs(
        &["mf", &ratings, "--checkpoint", &saved],
        &["process 1 has checkpoint set, process 0 has checkpoint unset"],
    );
    let tune = |more: &[&'static str]| [&["tune", "mf", ratings.as_str()], more].concat();
    let parts = ["process 1 has tune [\"step=0.1,0.2\"], process 0 has tune [\"step=0.1,0.3\"]"];
    let [one, other] = ["step=0.1,0.3", "step=0.1,0.2"].map(|values| tune(&["--tune", values]));
    all_fail(&addresses(2), &[0, 1], &[&one, &other], &parts);
    let graph = place.graph();
    differs(&["pagerank", &graph], &["process 1 has command pagerank, process 0 has command mf"]);
    let other = place.file("other.csv", "u1,i1,3.0\nu2,i2,4.5\n");
    differs(&["mf", &other], &["has another file of this name"]);
    let cache = place.name("ratings.mgrid");
    done(&["convert", &ratings, &cache]);
    differs(&["mf", &cache], &["process 1 has as input a cache, process 0 has as input no cache"]);
    differs(&["mf", &ratings, "--holdout", "0.1"], &["process 1 has holdout 0.1, process 0 has holdout unset"]);
    assert!(!place.path("saved").exists());
}

#[test]
fn files_and_outputs_that_differ_are_named() {
    let place = Place::new();
    let ratings = place.ratings();
    let both = |one: &[&str], other: &[&str], part: &str| {
        let [one, other] = [one, other].map(|options| [&["mf", &ratings, "--iterations", "2"], options].concat());
        all_fail(&addresses(2), &[0, 1], &[&one, &other], &[part]);
    };
    let [one, other] = ["1", "2"].map(|seed| {
        let model = place.name(&format!("model{seed}"));
        done(&["mf", &ratings, "--iterations", "1", "--seed", seed, "--model", &model, "-q"]);
        model
    });
    both(&["--from", &one], &["--from", &other], "process 1 has from with the checksum");
    let [few, many] = [("few", "u1,i1,3\n"), ("many", "u1,i1,3\nu2,i1,4\n")]
        .map(|(name, text)| place.file(&format!("{name}.csv"), text));
    both(&["--test", &few], &["--test", &many], "process 1 has test with the checksum");
    both(&["--test", &few], &[], "process 0 has test with the checksum");
    both(&[], &["--trace", &place.name("trace")], "process 1 has trace set, process 0 has trace unset");
    both(&[], &["--model", &place.name("model")], "--model is given to another process and not to process 0");
    let [here, there] = ["here", "there"].map(|name| place.name(name));
    both(&["--checkpoint", &here], &["--checkpoint", &there], "all processes have to see the same directory");
    let left: Vec<_> = std::fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["options.json"]);
}

#[test]
fn who_is_missing_is_named() {
    let place = Place::new();
    let ratings = place.ratings();
    let command: &[&str] = &["mf", &ratings];
    let hosts = addresses(2);
    all_fail(&hosts, &[0], &[command], &["process 1 (127.0.0.1:"]);
    all_fail(&hosts, &[1], &[command], &["process 0 (127.0.0.1:"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let in_use = [taken.local_addr().unwrap().to_string(), hosts[1].clone()];
    all_fail(&in_use, &[0], &[command], &["process 0 cannot listen at 127.0.0.1:"]);
    let nowhere = [hosts[0].clone(), "no-such-host.invalid:4000".to_owned()];
    all_fail(&nowhere, &[0], &[command], &["process 1 (no-such-host.invalid:4000)"]);
    let mut ended = run_all(&hosts, &[0, 1, 1], &[command; 3]);
    ended.sort();
    assert_eq!(ended[..2], [(Some(0), String::new()), (Some(0), String::new())]);
    assert!(ended[2].1.contains("process 1 cannot listen at 127.0.0.1:"), "{ended:?}");
}

#[test]
fn more_processes_than_shards_are_refused() {
    let place = Place::new();
    let ratings = place.file("few.csv", "u1,i1,3.0\nu2,i2,4.5\nu2,i1,1.0\n");
    let command: &[&str] = &["mf", &ratings];
    let message = ["there are 3 processes, and the edges make 2 shards to share out"];
    all_fail(&addresses(3), &[0, 1, 2], &[command; 3], &message);
    let ran = crate::run(&[&["launch", "-n", "3", "--"], command].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches(message[0]).count(), 1, "{}", ran.stderr);
    fails(&["plan", "mf", &ratings, "--processes", "3"], 1, &message);
}

#[test]
fn options_that_no_process_can_have_are_refused() {
    let place = Place::new();
    let ratings = place.ratings();
    let ran = crate::run(&["launch", "-n", "2", "--", "mf", &ratings, "--slack", "2"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--slack goes with --consistency ssp or essp"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("--slack goes").count(), 1, "{}", ran.stderr);
    fails(&["launch", "-n", "2000", "--", "mf", &ratings], 2, &["1..=1024"]);
}
