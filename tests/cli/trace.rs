//! `--trace` writes a timeline that fits the trace event format: parts lie within each other, all workers are there.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use serde_json::Value;

use crate::{Place, done, fails};

/// The complete events of a trace, by process and worker: category, begin, end.
type Tracks = BTreeMap<(u64, u64), Vec<(String, f64, f64)>>;

fn tracks(file: &str) -> Tracks {
    let trace: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let mut tracks = Tracks::new();
    let mut named = Vec::new();
    for event in trace["traceEvents"].as_array().unwrap() {
        let track = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        let name = event["name"].as_str().unwrap();
        match event["ph"].as_str().unwrap() {
            "M" => named.push((name.to_owned(), track)),
            "X" => {
                let (begin, took) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
                assert!(begin >= 0.0 && took >= 0.0 && !name.is_empty(), "{event}");
                let category = event["cat"].as_str().unwrap().to_owned();
                tracks.entry(track).or_default().push((category, begin, begin + took));
            }
            other => panic!("an event of phase {other}"),
        }
    }
    for track in tracks.keys() {
        for kind in ["process_name", "thread_name"] {
            assert!(named.contains(&(kind.to_owned(), *track)), "{track:?} has no {kind}");
        }
    }
    tracks
}

/// Parts of a worker may lie one after the other or one within the other. Times are rounded to nanoseconds.
fn assert_nested(track: &[(String, f64, f64)]) {
    const ROUNDING: f64 = 0.002;
    let mut parts = track.to_vec();
    parts.sort_by(|a, b| a.1.total_cmp(&b.1).then(b.2.total_cmp(&a.2)));
    let mut open: Vec<(String, f64, f64)> = Vec::new();
    for part in parts {
        while open.last().is_some_and(|last| last.2 <= part.1 + ROUNDING) {
            open.pop();
        }
        if let Some(around) = open.last() {
            assert!(part.2 <= around.2 + ROUNDING, "{part:?} ends after {around:?}, in which it begins");
        }
        open.push(part);
    }
}

fn assert_complete(tracks: &Tracks, expected: &[(u64, u64)], seconds: f64) {
    assert_eq!(tracks.keys().copied().collect::<Vec<_>>(), expected);
    for (track, parts) in tracks {
        assert_nested(parts);
        for kind in ["iteration", "clock", "step", "task"] {
            assert!(parts.iter().any(|part| part.0 == kind), "{track:?} has no {kind}");
        }
        assert_eq!(parts.iter().filter(|part| part.0 == "iteration").count(), 3, "{track:?}");
        let (begin, end) =
            parts.iter().fold((f64::MAX, 0.0_f64), |(begin, end), part| (begin.min(part.1), end.max(part.2)));
        assert!(end - begin <= seconds * 1e6, "{track:?}: {begin} to {end} us in a run of {seconds} s");
    }
}

#[test]
fn workers_of_one_process() {
    let place = Place::new();
    let (graph, file) = (place.name("graph.txt"), place.name("trace.json"));
    done(&["generate", "rmat", &graph, "--scale", "10"]);
    let begin = Instant::now();
    done(&["pagerank", &graph, "-w", "3", "--iterations", "3", "--tolerance", "0", "-q", "--trace", &file]);
    assert_complete(&tracks(&file), &[(0, 0), (0, 1), (0, 2)], begin.elapsed().as_secs_f64());
    fails(&["plan", "pagerank", &graph, "--trace", &file], 2, &["--trace is not for plan"]);
}

#[test]
fn several_processes_and_virtual_workers() {
    let place = Place::new();
    let (ratings, file) = (place.ratings(), place.name("trace.json"));
    let mf = ["mf", &ratings, "--dims", "8", "--iterations", "3", "-q", "--trace", &file];
    let begin = Instant::now();
    done(&[&["launch", "-n", "2", "--"], &mf[..], &["-w", "1"]].concat());
    assert_complete(&tracks(&file), &[(0, 0), (1, 1)], begin.elapsed().as_secs_f64());
    // Modelled time is as long as the model says.
    done(&[&mf[..], &["--virtual-workers", "2", "--clock-cost", "0.001"]].concat());
    assert_complete(&tracks(&file), &[(0, 0), (1, 1)], f64::INFINITY);
}

#[cfg(target_os = "linux")]
#[test]
fn a_model_is_not_lost_with_its_timeline() {
    let place = Place::new();
    let (ratings, record) = (place.ratings(), place.name("run.json"));
    for launch in [&[][..], &["launch", "-n", "2", "--"]] {
        let model = place.name(&format!("model-{}", launch.len()));
        let mf = ["mf", &ratings, "--dims", "4", "--iterations", "2", "-q", "-w", "1"];
        let ran =
            crate::run(&[launch, &mf[..], &["--model", &model, "--json", &record, "--trace", "/dev/full"]].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("/dev/full: No space left on device"), "{}", ran.stderr);
        assert!(fs::exists(format!("{model}/model.json")).unwrap(), "{}", ran.stderr);
        assert_eq!(crate::json(&record)["command"], "mf");
    }
}
