//! Sparse regression of few features that are alike, which Newton's steps solve, as its user sees it.

use std::fmt::Write;
use std::fs;

use megagrid_partition::SplitMix;

use crate::{Place, done, json};

const FEATURES: usize = 24;

/// Writes samples of features that are mixtures of four numbers each, with some noise; or are independent.
fn samples(place: &Place, name: &str, are_alike: bool) -> String {
    let mut random = SplitMix::new(7, 0);
    let mut uniform = || random.unit() - 0.5;
    let mixtures: Vec<[f64; 4]> = (0..FEATURES).map(|_| [(); 4].map(|()| uniform())).collect();
    let mut text = String::new();
    for _ in 0..1500 {
        let hidden = [(); 4].map(|()| uniform());
        let mixed = |mixture: &[f64; 4]| mixture.iter().zip(hidden).map(|(part, number)| part * number).sum::<f64>();
        let values: Vec<f64> = mixtures
            .iter()
            .map(|mixture| if are_alike { mixed(mixture) + 0.05 * uniform() } else { uniform() })
            .collect();
        let score = 8.0 * (values[0] - values[1]) + uniform();
        write!(text, "{}", if score > 0.0 { 1 } else { -1 }).unwrap();
        (1..).zip(&values).for_each(|(feature, value)| write!(text, " {feature}:{value:.6}").unwrap());
        text.push('\n');
    }
    place.file(name, text)
}

#[test]
fn alike_features_take_newtons_steps_and_others_descend() {
    let place = Place::new();
    for (are_alike, stage) in [(true, "Meet"), (false, "Descend")] {
        let plan = done(&["plan", "blockpg", &samples(&place, "train.libsvm", are_alike), "-w", "1"]);
        assert!(plan.contains(stage), "{plan}");
    }
}

#[test]
fn settings_are_found_where_newtons_steps_would_be_taken() {
    let place = Place::new();
    let (train, record) = (samples(&place, "train.libsvm", true), place.name("run.json"));
    for tune in [&[][..], &["--tune", "blocks=2,4"], &["--tune", "workers=1,2"]] {
        done(&[&["tune", "blockpg", &train, "-w", "2", "--iterations", "12", "--json", &record], tune].concat());
        let trials = json(&record)["tuning"]["trials"].clone();
        assert!(trials.as_array().unwrap().iter().all(|trial| trial["label"] != "diverged"), "{trials}");
    }
}

#[test]
fn newtons_steps_end_at_the_optimum_that_blocks_find() {
    let place = Place::new();
    let (train, record) = (samples(&place, "train.libsvm", true), place.name("run.json"));
    let weights: String = (0..1500).map(|sample| format!("{}\n", 0.5 + f64::from(sample % 3))).collect();
    let weights = place.file("weights.txt", weights);
    for penalties in [&["--l1", "1"][..], &["--l1", "0.1", "--l2", "0.5"], &["--l1", "0", "--l2", "1"]] {
        let run_by = |processes: &[&str], options: &[&str]| {
            let args = ["blockpg", &train, "--intercept", "--sample-weights", &weights, "--json", &record, "-q"];
            done(&[processes, &args, penalties, options].concat());
            let result = json(&record)["result"].clone();
            assert_eq!(result["ended_by"], "tolerance", "{penalties:?} {options:?}");
            let iterations = json(&record)["iterations"].as_array().unwrap().len();
            (result["objective"].as_f64().unwrap(), iterations)
        };
        let by_blocks = ["--blocks", "4", "-w", "1", "--tolerance", "1e-7", "--iterations", "100000"];
        let (by_blocks, _) = run_by(&[], &by_blocks);
        for (processes, workers) in [(&[][..], "1"), (&[], "2"), (&["launch", "-n", "2", "--"], "1")] {
            let (found, iterations) = run_by(processes, &["-w", workers, "--tolerance", "1e-9"]);
            assert!((found / by_blocks - 1.0).abs() < 2e-7, "{penalties:?}: {found}, by blocks {by_blocks}");
            assert!(iterations < 30, "{penalties:?}: {iterations} iterations");
        }
    }
}

#[test]
fn several_processes_take_newtons_steps_and_send_what_the_plan_says() {
    let place = Place::new();
    for are_alike in [true, false] {
        let (train, record) = (samples(&place, "train.libsvm", are_alike), place.name("run.json"));
        let plan = done(&["plan", "blockpg", &train, "--processes", "2", "-w", "1"]);
        assert!(plan.contains("Meet"), "{plan}");
        let traffic = plan.lines().find_map(|line| line.strip_prefix("traffic")).unwrap_or_else(|| panic!("{plan}"));
        let bytes: f64 = traffic.split_whitespace().next().unwrap().parse().unwrap();
        assert!(bytes > (2 * FEATURES * FEATURES * size_of::<f64>()) as f64, "{traffic}");
        done(&["launch", "-n", "2", "--", "blockpg", &train, "-w", "1", "--iterations", "3", "-q", "--json", &record]);
        for iteration in json(&record)["iterations"].as_array().unwrap() {
            assert_eq!(iteration["sent_bytes"].as_f64(), Some(bytes), "{iteration}");
        }
    }
}

#[test]
fn newtons_steps_are_resumed_to_the_same_bits() {
    let place = Place::new();
    let train = samples(&place, "train.libsvm", true);
    for (at, (processes, workers)) in
        [(&[][..], "1"), (&[], "2"), (&["launch", "-n", "2", "--"], "1")].into_iter().enumerate()
    {
        let weights = |name: &str, options: &[&str]| {
            let model = place.name(&format!("{name}-{at}"));
            let args = ["blockpg", &train, "--l1", "0.1", "--tolerance", "0", "-w", workers, "-q", "--model", &model];
            done(&[processes, &args, options].concat());
            fs::read(format!("{model}/weights.parquet")).unwrap()
        };
        let saved = place.name(&format!("saved-{at}"));
        let straight = weights("straight", &["--iterations", "6"]);
        assert_ne!(weights("begun", &["--iterations", "3", "--checkpoint", &saved]), straight);
        assert_eq!(
            weights("resumed", &["--iterations", "6", "--resume", &saved]),
            straight,
            "{processes:?}, {workers} workers"
        );
    }
}
