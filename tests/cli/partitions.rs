//! A network that is cut between two machines, and comes back: namespaces joined by a pair of interfaces; skipped where these are not allowed.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::launched::{end, newest, send, wait};
use crate::links::has_namespaces;
use crate::{Place, done, json};

/// The interface of a machine.
const END: &str = "data";

/// Two namespaces. They are deleted with it, and what still runs in them, after a test that fails, is killed.
struct Machines([String; 2]);

impl Machines {
    fn new(name: &str) -> Self {
        let machines = Self([0, 1].map(|number| format!("megagrid-{name}-{}-{number}", std::process::id())));
        let [first, second] = &machines.0;
        machines.0.iter().for_each(|space| ip(&["netns", "add", space]));
        ip(&["link", "add", END, "netns", first, "type", "veth", "peer", "name", END, "netns", second]);
        for (space, host) in machines.0.iter().zip(hosts()) {
            ip(&["-n", space, "address", "add", &format!("{host}/24"), "dev", END]);
            ip(&["-n", space, "link", "set", "lo", "up"]);
            ip(&["-n", space, "link", "set", END, "up"]);
        }
        machines
    }

    /// Starts a command on both machines, one worker each.
    fn start(&self, command: &[&str]) -> [Child; 2] {
        let addresses = hosts().map(|host| format!("{host}:7100")).join(",");
        [0, 1].map(|number| {
            Command::new("ip")
                .args(["netns", "exec", &self.0[number]])
                .arg(assert_cmd::cargo::cargo_bin!("megagrid"))
                .args(command)
                .args(["-w", "1", "-q"])
                .env("MEGAGRID_HOSTS", &addresses)
                .env("MEGAGRID_PROCESS", number.to_string())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
    }

    fn set(&self, state: &str) {
        ip(&["-n", &self.0[1], "link", "set", END, state]);
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        // A test that fails ends here too, where one of them may be missing.
        for space in &self.0 {
            let running = Command::new("ip").args(["netns", "pids", space]).output();
            let running = running.map(|ip| String::from_utf8_lossy(&ip.stdout).into_owned()).unwrap_or_default();
            for id in running.split_whitespace() {
                let _ = Command::new("kill").args(["-KILL", id]).status();
            }
            let _ = Command::new("ip").args(["netns", "delete", space]).status();
        }
    }
}

fn hosts() -> [&'static str; 2] {
    ["10.78.0.1", "10.78.0.2"]
}

fn ip(args: &[&str]) {
    assert!(Command::new("ip").args(args).status().unwrap().success(), "ip {args:?}");
}

/// Cuts the network of a job for more than 8 s: both processes say so once and end, and the next run goes on from what is saved, to where one that
/// was not cut ends.
#[test]
fn a_job_on_a_network_that_is_cut_ends_and_goes_on() {
    if !has_namespaces() {
        return;
    }
    let (place, machines) = (Place::new(), Machines::new("cut"));
    let (ratings, saved) = (place.ratings(), place.name("saved"));
    let job = ["mf", &ratings, "--dims", "4"];
    let saves = ["--iterations", "1000000000", "--checkpoint", &saved, "--checkpoint-every", "5"];
    let processes = machines.start(&[&job[..], &saves].concat());
    wait(|| newest(&saved) >= Some(10));
    machines.set("down");
    let begin = Instant::now();
    for process in processes {
        let (code, messages) = end(process);
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}: {messages}", begin.elapsed());
        assert_eq!(code, Some(1), "{messages}");
        assert_eq!(messages.lines().count(), 1, "{messages}");
        assert!(messages.starts_with("megagrid: process ") && messages.contains(" is lost: "), "{messages}");
    }
    machines.set("up");
    let (last, record) = (newest(&saved).unwrap(), place.name("record.json"));
    let until = (last + 5).to_string();
    let ends = ["--iterations", &until, "--json", &record];
    for process in machines.start(&[&job[..], &ends, &["--resume", &saved]].concat()) {
        assert_eq!(end(process), (Some(0), String::new()));
    }
    assert_eq!(json(&record)["iterations"][0]["iteration"], last + 1, "it goes on from what is saved");
    let result = || {
        let result = &json(&record)["result"];
        (result["iterations"].as_u64().unwrap(), result["objective"].as_f64().unwrap())
    };
    let resumed = result();
    done(&[&["launch", "-n", "2", "--"], &job[..], &["-w", "1", "-q"], &ends].concat());
    assert_eq!(resumed, result(), "iterations and objective");
}

/// A cut of 2 s is only waited for: iterations go on when the link is up again.
#[test]
fn a_job_outlasts_a_short_cut() {
    if !has_namespaces() {
        return;
    }
    let (place, machines) = (Place::new(), Machines::new("short"));
    let (ratings, saved) = (place.ratings(), place.name("saved"));
    let saves = ["--iterations", "1000000000", "--checkpoint", &saved, "--checkpoint-every", "1"];
    let processes = machines.start(&[&["mf", &ratings, "--dims", "4"], &saves[..]].concat());
    wait(|| newest(&saved) >= Some(2));
    machines.set("down");
    std::thread::sleep(Duration::from_secs(2));
    let when_cut = newest(&saved);
    machines.set("up");
    wait(|| newest(&saved) > when_cut);
    // It runs without end, and one interrupt ends all of it.
    send("-INT", processes[0].id());
    for process in processes {
        let (code, messages) = end(process);
        assert_eq!(code, Some(130), "{messages}");
    }
}
