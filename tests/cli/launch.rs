//! `megagrid launch`: wrong usage, and how processes end together.

use std::fs;
use std::process::Child;

use crate::{Place, done, fails, json, run};

#[test]
fn wrong_usage_is_told() {
    let place = Place::new();
    let graph = place.graph();
    let command = ["--", "pagerank", &graph];
    let wrong = |options: &[&str], parts: &[&str]| fails(&[&["launch"], options].concat(), 2, parts);
    wrong(&[&["-n", "0"], &command[..]].concat(), &["0", "1..=1024"]);
    wrong(&["-n", "2"], &["COMMAND"]);
    wrong(&["-n", "2", "--"], &["COMMAND"]);
    wrong(&command, &["-n"]);
    wrong(
        &["-n", "2", "--", "inspect", &graph],
        &["\"inspect\" is no training command", "pagerank, mf, als, lda, blockpg"],
    );
    wrong(&["-n", "2", "--", "pagerank", &graph, "--dampening", "1"], &["--dampening"]);
    wrong(&["-n", "2", "--", "pagerank"], &["<INPUT>"]);
    wrong(&[&["-n", "9", "--port-base", "65530"], &command[..]].concat(), &["--port-base 65530"]);
    wrong(&[&["-n", "2", "--process", "0"], &command[..]].concat(), &["cannot be used"]);
    wrong(&[&["--process", "0"], &command[..]].concat(), &["--hostfile"]);
    let hosts = place.file("hosts", "a:1\nb:2\n");
    wrong(&[&["--hostfile", &hosts], &command[..]].concat(), &["--process"]);
    wrong(&[&["--hostfile", &hosts, "-n", "2", "--process", "0"], &command[..]].concat(), &["cannot be used"]);
    wrong(&[&["--hostfile", &hosts, "--process", "2"], &command[..]].concat(), &["hosts: has 2 processes", "number 2"]);
    let hosts = place.file("bad", "a:1\n\nb\n");
    wrong(&[&["--hostfile", &hosts, "--process", "0"], &command[..]].concat(), &["bad:3: \"b\" has no port"]);
    let missing = place.name("missing");
    fails(&[&["launch", "--hostfile", &missing, "--process", "0"], &command[..]].concat(), 1, &["missing: No such"]);
}

#[test]
fn help_is_that_of_the_command() {
    assert!(done(&["launch", "--help"]).contains("ssh node1 megagrid launch --hostfile hosts.txt"));
    assert!(done(&["launch", "-n", "2", "--", "mf", "--help"]).contains("--dims"));
}

#[test]
fn one_process_runs_as_without_launch() {
    let place = Place::new();
    let graph = place.graph();
    let printed = done(&["launch", "-n", "1", "--", "pagerank", &graph, "--json", "-"]);
    let record: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(record["command"], "pagerank");
}

#[test]
fn options_are_added_before_what_is_none() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("run.json"));
    done(&["launch", "-n", "2", "--", "mf", "-q", "--iterations", "2", "--json", &record, "--", &ratings]);
    assert_eq!(json(record)["machine"]["processes"], 2);
}

#[test]
fn a_failure_ends_all() {
    let place = Place::new();
    let ran = run(&["launch", "-n", "3", "--", "mf", &place.name("none.csv")]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("none.csv: No such file"), "{}", ran.stderr);
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.starts_with("megagrid: process ") && last.contains("ended with exit code 1"), "{last}");
}

/// A job that is started again would go on from what is in its directory: not from another run's, and not because of an error.
#[test]
fn an_error_is_no_death() {
    let place = Place::new();
    let (ratings, saved, model) = (place.ratings(), place.name("saved"), place.name("model"));
    let mf = ["mf", &ratings, "-w", "1", "-q", "--dims", "4", "--checkpoint", &saved];
    let launch = |rest: &[&str], parts: &[&str]| {
        let ran = run(&[&["launch", "-n", "2", "--restarts", "2", "--"], rest].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        for part in parts {
            assert!(ran.stderr.contains(part), "no \"{part}\" in: {}", ran.stderr);
        }
        assert!(!ran.stderr.contains("restart 1"), "{}", ran.stderr);
        let last = ran.stderr.lines().last().unwrap();
        assert!(last.ends_with("all processes have ended; --restarts is for processes that die"), "{last}");
    };
    done(&[&mf[..], &["--iterations", "5"]].concat());
    let other = ["--iterations", "3", "--model", &model];
    launch(&[&mf[..], &other].concat(), &["a checkpoint of iteration 5, and 0 are done"]);
    assert!(!fs::exists(&model).unwrap());
    let bad = place.file("bad.csv", "1,2,3\n1,2,x\n");
    launch(&["mf", &bad], &["bad.csv:2"]);
    launch(&["mf", &place.name("none.csv")], &["none.csv: No such file"]);
}

#[cfg(target_os = "linux")]
mod signals {
    use super::*;
    use crate::launched::{self, end, process, send};

    /// A launched command that does not end by itself.
    fn launch(options: &[&str], command: &[&str], place: &Place) -> Child {
        let ratings = place.ratings();
        launched::mf(options, &[&[&ratings, "--iterations", "1000000000"], command].concat())
    }

    /// Waits for the end of all, which the second process caused; returns what is said of its loss.
    fn ended_by_process_1(launched: Child, how: &str) -> String {
        let (code, messages) = end(launched);
        assert_eq!(code, Some(1), "{messages}");
        // The process may have been in the middle of a connection, which the other then warns of.
        let lines: Vec<_> = messages.lines().filter(|line| !line.starts_with(" WARN ")).collect();
        assert_eq!(lines.len(), 2, "{messages}");
        assert!(lines[0].starts_with("megagrid: process 1 (127.0.0.1:"), "{messages}");
        assert_eq!(lines[1], format!("megagrid: process 1 {how}; all processes have ended"));
        lines[0].to_owned()
    }

    #[test]
    fn a_process_that_is_killed_ends_the_others() {
        let place = Place::new();
        let launched = launch(&["-n", "2"], &[], &place);
        launched::is_training(&launched);
        let other = process(&launched, 0, None);
        send("-KILL", process(&launched, 1, None));
        ended_by_process_1(launched, "was killed by signal 9");
        assert!(!fs::exists(format!("/proc/{other}")).unwrap());
    }

    #[test]
    fn a_process_that_is_lost_while_tuning_ends_the_others() {
        for (signal, how) in [("-KILL", "was killed by signal 9"), ("-STOP", "did not end with the others")] {
            let place = Place::new();
            // With steps that change nothing the first search has no end.
            let endless = ["--iterations", "1000000000", "--budget", "1000000000", "--tune", "step=1e-30..2e-30"];
            let launched = launched::tune_mf(&["-n", "2"], &[&[&*place.ratings()], &endless[..]].concat());
            launched::is_training(&launched);
            let other = process(&launched, 0, None);
            send(signal, process(&launched, 1, None));
            ended_by_process_1(launched, how);
            assert!(!fs::exists(format!("/proc/{other}")).unwrap());
        }
    }

    #[test]
    fn an_interrupt_goes_to_all() {
        for signal in ["-INT", "-TERM"] {
            let place = Place::new();
            let launched = launch(&["-n", "2"], &[], &place);
            let processes = [0, 1].map(|number| process(&launched, number, None));
            launched::is_training(&launched);
            send(signal, launched.id());
            let (code, messages) = end(launched);
            assert_eq!(code, Some(130), "{messages}");
            assert!(processes.iter().all(|id| !fs::exists(format!("/proc/{id}")).unwrap()));
        }
    }

    #[test]
    fn an_interrupted_job_can_be_continued_by_one_process() {
        let place = Place::new();
        let (directory, model) = (place.name("saved"), place.name("model"));
        let launched = launch(&["-n", "2"], &["--checkpoint", &directory, "--model", &model], &place);
        launched::is_training(&launched);
        send("-TERM", launched.id());
        let (code, messages) = end(launched);
        assert_eq!(code, Some(130), "{messages}");
        assert!(messages.contains(&format!("continue with --resume {directory}")), "{messages}");
        assert!(!place.path("model").exists());
        let saved = launched::newest(&directory).unwrap();
        let more = (saved + 2).to_string();
        let path = place.name("run.json");
        let mf = ["mf", &place.ratings(), "--resume", &directory, "--iterations", &more];
        done(&[&mf[..], &["-q", "-w", "1", "--json", &path]].concat());
        assert_eq!(crate::json(path)["iterations"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_restart_continues_from_the_checkpoint() {
        let place = Place::new();
        let directory = place.name("saved");
        let command = ["--checkpoint", &directory, "--checkpoint-every", "10"];
        let launched = launch(&["-n", "1", "--restarts", "1"], &command, &place);
        let first = process(&launched, 0, None);
        launched::wait(|| launched::newest(&directory).is_some());
        send("-KILL", first);
        let second = process(&launched, 0, Some(first));
        let arguments = fs::read_to_string(format!("/proc/{second}/cmdline")).unwrap();
        assert!(arguments.contains(&format!("--resume\0{directory}")), "{arguments}");
        send("-KILL", second);
        let (code, messages) = end(launched);
        assert_eq!(code, Some(1), "{messages}");
        let lines: Vec<_> = messages.lines().collect();
        assert_eq!(lines.len(), 2, "{messages}");
        assert!(lines[0].contains("killed by signal 9; restart 1 of 1 from the last checkpoint in "), "{messages}");
        assert!(lines[1].contains("killed by signal 9; all processes have ended"), "{messages}");
    }

    /// Killed while it reads, before it could say that the checkpoints are not its own.
    #[test]
    fn a_restart_does_not_go_on_with_another_run() {
        let place = Place::new();
        let (ratings, saved, pipe) = (place.ratings(), place.name("saved"), place.name("test.csv"));
        let mf = ["mf", &ratings, "-w", "1", "-q", "--dims", "4", "--checkpoint", &saved];
        done(&[&mf[..], &["--iterations", "5"]].concat());
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Nobody writes into it.
        let launched = launched::launch(&["-n", "1", "--restarts", "1"], &[&mf[..], &["--test", &pipe]].concat());
        let first = process(&launched, 0, None);
        send("-KILL", first);
        let second = process(&launched, 0, Some(first));
        let arguments = fs::read_to_string(format!("/proc/{second}/cmdline")).unwrap();
        assert!(!arguments.contains("--resume"), "{arguments}");
        send("-KILL", second);
        let (code, messages) = end(launched);
        assert_eq!(code, Some(1), "{messages}");
        assert!(
            messages.contains("restart 1 of 1 from the beginning: the job has written no checkpoint"),
            "{messages}"
        );
    }

    #[test]
    fn a_process_that_pauses_is_waited_for_with_bounded_memory() {
        let place = Place::new();
        let record = place.name("run.json");
        let ratings = place.ratings();
        let command = [&ratings, "--consistency", "async", "--iterations", "1000", "--json", &record];
        let launched = launched::mf(&["-n", "2"], &command);
        launched::is_training(&launched);
        let paused = process(&launched, 1, None);
        send("-STOP", paused);
        std::thread::sleep(std::time::Duration::from_secs(1));
        send("-CONT", paused);
        let (code, messages) = end(launched);
        assert_eq!(code, Some(0), "{messages}");
        let record = crate::json(&record);
        let last = record["iterations"].as_array().unwrap().last().unwrap();
        let kept = last["unacknowledged_bytes"].as_u64().unwrap();
        // 64 clocks of 30 items with 34 numbers each.
        assert!(kept > 0 && kept <= 64 * 30 * 34 * 4, "{kept}");
    }

    #[test]
    fn a_process_that_stalls_is_named() {
        let place = Place::new();
        let launched = launch(&["-n", "2"], &[], &place);
        let stalled = process(&launched, 1, None);
        launched::is_training(&launched);
        send("-STOP", stalled);
        let lost = ended_by_process_1(launched, "did not end with the others");
        assert!(lost.ends_with("is lost: no heartbeat for 8 s"), "{lost}");
        assert!(!fs::exists(format!("/proc/{stalled}")).unwrap());
    }
}
