//! Ctrl-C and checkpoints: exit 130, a record of what was done, no model, and a run that can be continued.
#![cfg(unix)]

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{Place, done, fails, json, run};

#[test]
fn an_interrupt_ends_after_the_iteration() {
    // With slack all meet after every second iteration, and the run ends there.
    let slack = ["--consistency", "essp", "--slack", "1", "--evaluate-every", "2"];
    for (signal, options) in [("-INT", &[][..]), ("-TERM", &[]), ("-INT", &slack)] {
        let place = Place::new();
        let checkpoint = place.name("checkpoint");
        let (record, model) = (place.name("run.json"), place.name("model"));
        let child = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
            .args([
                "mf",
                &place.ratings(),
                "--iterations",
                "1000000000",
                "--json",
                &record,
                "--model",
                &model,
                "-w",
                "1",
            ])
            .args(["--checkpoint", &checkpoint])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Usually it iterates by then. Before, it ends with the same code and nothing to say.
        std::thread::sleep(Duration::from_millis(500));
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{message}");
        assert!(!place.path("model").exists());
        if message.contains("interrupted after iteration") {
            let record = json(&record);
            assert_eq!(record["result"]["ended_by"], "interrupt");
            let iterations = record["result"]["iterations"].as_u64().unwrap();
            assert!(iterations > 0 && (options.is_empty() || iterations.is_multiple_of(2)));
            let more = (iterations + 1).to_string();
            done(&["mf", &place.ratings(), "--resume", &checkpoint, "--iterations", &more, "-q", "-w", "1"]);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_a_comparison_and_its_run() {
    use crate::launched::{children, end, send, wait};
    let place = Place::new();
    let compared = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
        .args([
            "compare",
            "mf",
            &place.ratings(),
            "--systems",
            "megagrid",
            "--iterations",
            "1000000000",
            "-w",
            "1",
            "-q",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait(|| !children(&compared).is_empty());
    let run = children(&compared)[0];
    std::thread::sleep(Duration::from_millis(500));
    send("-TERM", compared.id());
    let (code, messages) = end(compared);
    assert_eq!(code, Some(130), "{messages}");
    assert!(!fs::exists(format!("/proc/{run}")).unwrap());
}

#[test]
fn a_continued_run_ends_as_one_that_never_stopped() {
    let place = Place::new();
    let (ratings, graph) = (place.ratings(), place.graph());
    let commands = [("users.npy", ["mf", &ratings, "--biases"]), ("scores.npy", ["pagerank", &graph, "--tolerance=0"])];
    for (file, command) in commands {
        let [whole, rest, first] = ["whole", "rest", "first"].map(|name| place.name(&format!("{}-{name}", command[0])));
        let with = |options: &[&str]| done(&[&command[..], &["-q", "-w", "2"], options].concat());
        with(&["--iterations", "9", "--model", &whole]);
        with(&["--iterations", "5", "--checkpoint", &first, "--checkpoint-every", "2"]);
        let path = place.name("run.json");
        with(&["--iterations", "9", "--resume", &first, "--model", &rest, "--json", &path]);
        let read = |model: &str| fs::read(std::path::Path::new(model).join(file)).unwrap();
        assert_eq!(read(&whole), read(&rest), "{command:?}");
        let record = json(&path);
        assert_eq!(record["iterations"][0]["iteration"], 6);
        assert_eq!((&record["result"]["iterations"], &record["result"]["done_before"]), (&9.into(), &5.into()));
        let row = done(&["view", &path]);
        assert!(row.contains("5+4"), "{row}");
    }
}

#[test]
fn checkpoints_of_other_runs_are_refused() {
    let place = Place::new();
    let (ratings, graph, directory) = (place.ratings(), place.graph(), place.name("checkpoint"));
    done(&["mf", &ratings, "--lambda", "0.1", "--iterations", "2", "--checkpoint", &directory, "-q"]);
    fails(&["mf", &ratings, "--resume", &directory, "--lambda", "0.2"], 1, &["lambda 0.1", "now it is 0.2"]);
    fails(&["mf", &ratings, "--checkpoint", &directory, "--seed", "2"], 1, &["checkpoint"]);
    fails(&["pagerank", &graph, "--resume", &directory], 1, &["command \"mf\"", "now it is \"pagerank\""]);
    fails(&["mf", &ratings, "--resume", &place.name("none")], 1, &["none"]);
    let file = place.file("file", "no directory");
    fails(&["mf", &ratings, "--checkpoint", &file], 1, &["file"]);
    let more = run(&["mf", &ratings, "--lambda", "0.1", "--iterations", "1", "--resume", &directory, "-q"]).stderr;
    assert!(more.contains("2 iterations, more than the 1 asked for"), "{more}");
    let only = format!("{directory}/iteration-00002");
    fails(&["mf", &ratings, "--lambda", "0.1", "--resume", &only], 1, &["one of those in", "name that directory"]);
    fs::write(format!("{only}/checkpoint.json"), "{").unwrap();
    fails(&["mf", &ratings, "--lambda", "0.1", "--resume", &directory], 1, &["checkpoint.json", "name a directory"]);
}

/// As `nohup` starts it.
#[test]
#[cfg(target_os = "linux")]
fn a_terminal_that_hangs_up_ends_nothing_where_that_is_ignored() {
    let place = Place::new();
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(assert_cmd::cargo::cargo_bin!("megagrid"))
        .args(["mf", &place.ratings(), "--iterations", "1000000000", "-w", "1", "-q"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let id = child.id().to_string();
    let send = |signal: &str| assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    std::thread::sleep(Duration::from_millis(500));
    send("-HUP");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(child.try_wait().unwrap(), None);
    send("-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn variables_that_are_no_text_are_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    for name in ["MEGAGRID_SECRET", "MEGAGRID_TOKEN", "MEGAGRID_HOSTS"] {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"));
        let output =
            command.args(["mf", &place.ratings(), "-q"]).env(name, OsStr::from_bytes(b"geheim\xff")).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), message.contains(&format!("{name} is not UTF-8"))),
            (Some(2), true),
            "{message}"
        );
    }
}
