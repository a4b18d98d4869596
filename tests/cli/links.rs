//! Comparisons over links of a given rate, in network namespaces; skipped where these are not allowed.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::launched::{end, process, send, wait};
use crate::{Place, done, fails};

/// Tells whether this machine has network namespaces for the tests, and says so where it has none.
pub fn has_namespaces() -> bool {
    let name = format!("megagrid-test-{}-{:?}", std::process::id(), std::thread::current().id());
    let ip = |args: &[&str]| Command::new("ip").args(args).stderr(Stdio::null()).status().is_ok_and(|ip| ip.success());
    let has_tc = || Command::new("tc").arg("-V").stdout(Stdio::null()).status().is_ok_and(|tc| tc.success());
    let has = ip(&["netns", "add", &name]) && ip(&["netns", "delete", &name]) && has_tc();
    if !has {
        eprintln!("skipped: network namespaces take root, ip and tc");
    }
    has
}

/// The namespaces that a command has made.
fn namespaces(of: u32) -> Vec<String> {
    let listed = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| name.starts_with(&format!("megagrid-{of}-"))).map(str::to_owned).collect()
}

#[test]
fn links_are_between_processes() {
    let place = Place::new();
    let ratings = place.ratings();
    fails(&["compare", "mf", &ratings, "--link", "1Gbit"], 2, &["--link is between processes", "--processes"]);
    fails(&["compare", "mf", &ratings, "--processes", "2", "--link", "1Gbit,1ms"], 2, &["a rate such as 100Mbit"]);
}

#[test]
fn a_slow_link_changes_no_objective() {
    if !has_namespaces() {
        return;
    }
    let place = Place::new();
    let (ratings, record, page) = (place.ratings(), place.name("links.json"), place.name("links.html"));
    let mut objectives = Vec::new();
    for link in [&[][..], &["--link", "20Mbit"]] {
        let args = ["compare", "mf", &ratings, "--processes", "2", "-w", "1", "--repeat", "1", "--iterations", "3"];
        let rest = ["--systems", "megagrid,lazytable", "--json", &record, "--report", &page];
        let text = done(&[&args[..], &rest, link].concat());
        assert_eq!(text.contains("links of 20 Mbit/s"), !link.is_empty(), "{text}");
        let found: Value = serde_json::from_str(&std::fs::read_to_string(&record).unwrap()).unwrap();
        assert_eq!(found["link"].as_str(), (!link.is_empty()).then_some("20 Mbit/s"));
        let objective = |at: usize| found["systems"][at]["runs"][0]["result"]["objective"].as_f64().unwrap();
        objectives.push([objective(0), objective(1)]);
    }
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("whose link carries 20 Mbit/s each way"), "{page}");
    for at in [0, 1] {
        let [over_loopback, over_link] = [objectives[0][at], objectives[1][at]];
        assert!((over_loopback / over_link - 1.0).abs() < 1e-6, "{over_loopback} and {over_link}");
    }
}

/// Starts a comparison without end, waits until its processes compute, and returns it.
fn endless(place: &Place, system: &str) -> std::process::Child {
    let ratings = place.ratings();
    let args = ["compare", "mf", &ratings, "--processes", "2", "-w", "1", "-q", "--iterations", "1000000000"];
    let compared = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
        .args(args)
        .args(["--link", "100Mbit", "--systems", system])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let first = process(&compared, 0, None);
    // Servers have connections of their own; iterations begin at once when these are there.
    let sockets = || {
        let files = std::fs::read_dir(format!("/proc/{first}/fd")).into_iter().flatten().flatten();
        let names = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        names.filter(|name| name.to_string_lossy().starts_with("socket:")).count()
    };
    wait(|| sockets() >= 3);
    std::thread::sleep(Duration::from_millis(500));
    compared
}

#[test]
fn a_link_that_is_cut_ends_all_processes_with_one_message() {
    if !has_namespaces() {
        return;
    }
    let place = Place::new();
    for system in ["megagrid", "lazytable", "iterstore", "ps-naive"] {
        let compared = endless(&place, system);
        let (id, others) = (compared.id(), [0, 1].map(|number| process(&compared, number, None)));
        let space = format!("megagrid-{id}-1");
        let begin = Instant::now();
        let cut = Command::new("ip").args(["-n", &space, "link", "set", "data", "down"]).status().unwrap();
        assert!(cut.success());
        let (code, messages) = end(compared);
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}: {messages}", begin.elapsed());
        assert_eq!(code, Some(1), "{messages}");
        assert_eq!(messages.lines().count(), 1, "{messages}");
        assert!(messages.starts_with(&format!("megagrid: on {system}: process ")), "{messages}");
        assert!(messages.contains(" is lost: "), "{messages}");
        assert!(others.iter().all(|other| !std::fs::exists(format!("/proc/{other}")).unwrap()));
        assert_eq!(namespaces(id), [""; 0]);
        // The next one has a network of its own.
        let next = ["compare", "mf", &place.ratings(), "--processes", "2", "-w", "1", "--link", "100Mbit", "--systems"];
        let text = done(&[&next[..], &[system, "--repeat", "1", "--iterations", "2"]].concat());
        assert!(text.contains("links of 100 Mbit/s"), "{text}");
    }
}

#[test]
fn an_interrupt_leaves_no_namespaces() {
    if !has_namespaces() {
        return;
    }
    let place = Place::new();
    let compared = endless(&place, "iterstore");
    let id = compared.id();
    assert_eq!(namespaces(id).len(), 3);
    send("-INT", id);
    let (code, messages) = end(compared);
    assert_eq!(code, Some(130), "{messages}");
    assert_eq!(namespaces(id), [""; 0]);
}
