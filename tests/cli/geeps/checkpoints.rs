//! Checkpoints of `megagrid geeps`, and runs that go on from them.

use std::fs;
use std::path::Path;

use super::{found, record, samples};
use crate::{Place, done, fails, json};

/// The names and bytes of what is in a directory.
fn files(path: &Path) -> Vec<(String, Vec<u8>)> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    let mut files: Vec<_> = fs::read_dir(path).unwrap().map(entry).collect();
    files.sort();
    files
}

#[test]
fn a_run_that_is_continued_ends_as_one_that_never_stopped() {
    let place = Place::new();
    let (samples, ratings) = (samples(&place), place.ratings());
    let networks = ["mlp", &samples, "--batch", "15", "-w", "2", "--optimizer", "adagrad"];
    let factors = ["mf", &ratings, "--batch", "64", "-w", "2"];
    for (args, name) in [(&networks[..], "networks"), (&factors, "factors")] {
        let [whole, parts] = ["whole", "parts"].map(|part| format!("{name}-{part}"));
        let to = |directory: &str, epochs: &str, more: &[&str]| {
            let directory = place.name(directory);
            record(&place, &[args, &["--epochs", epochs, "--checkpoint", &directory], more].concat())
        };
        let expected = found(&to(&whole, "5", &[]));
        let begun = to(&parts, "3", &["--checkpoint-every", "2"]);
        assert_eq!(found(&begun), expected[..3]);
        // With little memory, which is no part of a state.
        let least = begun["config"]["plan"]["least_budget"].to_string();
        let rest = to(&parts, "5", &["--resume", &place.name(&parts), "--budget", &least]);
        assert_eq!(found(&rest), expected[3..]);
        assert_eq!(rest["iterations"][0]["iteration"], 4);
        assert_eq!(rest["result"]["iterations"], 5);
        let last = |directory: &str| files(&place.path(directory).join("epoch-5"));
        assert!(last(&whole).len() > 2);
        assert!(last(&whole) == last(&parts), "the same tables and local data");
        let kept: Vec<_> = fs::read_dir(place.path(&parts)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(kept.len(), 2, "options and the newest state: {kept:?}");
        // Nothing is left to be done.
        assert_eq!(found(&to(&parts, "5", &["--resume", &place.name(&parts)])), []);
    }
}

/// The command that a run was continued by can be given again, whatever came of it, and names directories by any path.
#[test]
fn a_continued_run_can_be_continued_by_the_same_command() {
    let place = Place::new();
    let samples = samples(&place);
    let [first, second] = ["first", "second"].map(|name| place.name(name));
    let args = ["geeps", "mlr", &samples, "--batch", "15", "-q"];
    done(&[&args[..], &["--epochs", "2", "--checkpoint", &first]].concat());
    for epochs in ["2", "2", "4"] {
        done(&[&args[..], &["--epochs", epochs, "--resume", &first, "--checkpoint", &second]].concat());
    }
    let more = ["--epochs", "5", "--resume", &first, "--checkpoint", &second];
    fails(&[&args[..], &more].concat(), 1, &["has a checkpoint of 4 epochs"]);
    let same = format!("{}/../second", place.name("first"));
    for epochs in ["4", "5"] {
        done(&[&args[..], &["--epochs", epochs, "--resume", &same, "--checkpoint", &second]].concat());
    }
    done(&[&args[..], &["--epochs", "5", "--checkpoint", &place.name("whole")]].concat());
    let last = |directory: &str| files(&place.path(directory).join("epoch-5"));
    assert!(last("second") == last("whole"), "the same tables and local data");
}

#[test]
fn checkpoints_of_other_runs_are_refused() {
    let place = Place::new();
    let samples = samples(&place);
    let directory = place.name("states");
    let args = ["geeps", "mlr", &samples, "--batch", "15", "--epochs", "2"];
    done(&[&args[..], &["--checkpoint", &directory, "-q"]].concat());
    let with = |more: &[&str], code, parts: &[&str]| fails(&[&args[..], more].concat(), code, parts);
    let other = place.file("other.svm", fs::read_to_string(&samples).unwrap().replacen("1:", "1:9", 1));
    let other = ["geeps", "mlr", &other, "--batch", "15", "--epochs", "2", "--resume", &directory];
    fails(&other, 1, &["data \"", "and now it is"]);
    // A run with nothing left to do leaves what it went on from.
    let second = place.name("second");
    done(&[&args[..], &["--resume", &directory, "--checkpoint", &second, "-q"]].concat());
    done(&[&args[..], &["--resume", &second, "-q"]].concat());
    with(&["--resume", &directory, "--seed", "2"], 1, &["states", "seed 1, and now it is 2"]);
    with(&["--resume", &directory, "-w", "2"], 1, &["workers 1, and now it is 2"]);
    with(&["--resume", &directory, "--step", "0.25"], 1, &["step 0.1, and now it is 0.25"]);
    with(&["--checkpoint", &directory], 1, &["has a checkpoint of 2 epochs", "--resume"]);
    with(&["--resume", &place.name("nowhere")], 1, &["nowhere", "no whole checkpoint is there"]);
    with(&["--checkpoint-every", "2"], 2, &["--checkpoint"]);
    fails(&["geeps", "plan", "mlr", &samples, "--resume", &directory], 2, &["are not for plan"]);
    let file = place.path("states").join("epoch-2").join("table-0.npy");
    fs::write(&file, "no array").unwrap();
    with(&["--resume", &directory], 1, &["table-0.npy", "not a NumPy array"]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_a_checkpoint() {
    use std::process::{Command, Stdio};
    let place = Place::new();
    let (samples, directory) = (samples(&place), place.name("states"));
    let args = ["geeps", "mlr", &samples, "--batch", "15"];
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("megagrid"))
        .args(args)
        .args(["--epochs", "1000000000", "--checkpoint", &directory, "--checkpoint-every", "1"])
        .args(["--json", &place.name("left.json"), "--report", &place.name("left.html")])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let is_state = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("epoch-"))
    };
    let has_state = || fs::read_dir(place.path("states")).is_ok_and(|mut entries| entries.any(is_state));
    while !has_state() {
        assert!(child.try_wait().unwrap().is_none(), "it trains until it is interrupted");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains("interrupted after iteration"), "{message}");
    assert!(message.contains("continue with --resume"), "{message}");
    let left = json(place.name("left.json"));
    let epochs = left["result"]["iterations"].as_u64().unwrap();
    assert!(message.contains(&format!("interrupted after iteration {epochs};")), "{message}");
    assert_eq!(
        (left["iterations"].as_array().unwrap().len() as u64, &left["result"]["ended_by"]),
        (epochs, &"interrupt".into())
    );
    assert!(left["machine"]["memory_bytes"].as_u64() > Some(0) && left["staleness"]["-1"].as_u64() > Some(0), "{left}");
    assert!(place.path("left.html").is_file());
    let kept = fs::read_dir(place.path("states")).unwrap().filter_map(|entry| {
        entry.unwrap().file_name().to_str().unwrap().strip_prefix("epoch-").map(|epochs| epochs.parse::<u64>().unwrap())
    });
    let more = (kept.max().unwrap() + 2).to_string();
    let rest = record(&place, &[&args[1..], &["--resume", &directory, "--epochs", &more]].concat());
    assert_eq!(rest["iterations"].as_array().unwrap().len(), 2);
}
