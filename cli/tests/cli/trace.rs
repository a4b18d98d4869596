//! `--trace` writes a timeline that fits the trace event format: parts lie within each other, all workers are there.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::{megagrid, ok};

/// The complete events of a trace, by process and worker: category, begin, end.
type Tracks = BTreeMap<(u64, u64), Vec<(String, f64, f64)>>;

fn tracks(file: &Path) -> Tracks {
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
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
        let (begin, end) = parts.iter().fold((f64::MAX, 0.0_f64), |(begin, end), part| (begin.min(part.1), end.max(part.2)));
        assert!(end - begin <= seconds * 1e6, "{track:?}: {begin} to {end} us in a run of {seconds} s");
    }
}

#[test]
fn workers_of_one_process() {
    let place = tempfile::tempdir().unwrap();
    let (graph, file) = (place.path().join("graph.txt"), place.path().join("trace.json"));
    ok(megagrid().args(["generate", "rmat"]).arg(&graph).args(["--scale", "10"]));
    let begin = std::time::Instant::now();
    ok(megagrid().arg("pagerank").arg(&graph).args(["-w", "3", "--iterations", "3", "--tolerance", "0", "--trace"]).arg(&file));
    assert_complete(&tracks(&file), &[(0, 0), (0, 1), (0, 2)], begin.elapsed().as_secs_f64());
}

#[test]
fn several_processes_and_virtual_workers() {
    let place = tempfile::tempdir().unwrap();
    let (ratings, file) = (place.path().join("ratings.txt"), place.path().join("trace.json"));
    ok(megagrid().args(["generate", "ratings"]).arg(&ratings).args(["--users", "300", "--items", "100", "--ratings", "5000"]));
    let begin = std::time::Instant::now();
    let training = |command: &mut assert_cmd::Command| {
        command.arg("mf").arg(&ratings).args(["--dims", "8", "--iterations", "3", "--trace"]).arg(&file);
    };
    let mut launched = megagrid();
    launched.args(["launch", "-n", "2", "--"]);
    training(&mut launched);
    ok(launched.args(["-w", "1"]));
    assert_complete(&tracks(&file), &[(0, 0), (1, 1)], begin.elapsed().as_secs_f64());

    let mut modelled = megagrid();
    training(&mut modelled);
    ok(modelled.args(["--virtual-workers", "2", "--clock-cost", "0.001"]));
    // Modelled time is as long as the model says.
    assert_complete(&tracks(&file), &[(0, 0), (1, 1)], f64::INFINITY);
}
