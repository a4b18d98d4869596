//! L1 logistic regression: training time to a relative gap of the objective.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::curve::{Curve, soonest};
use crate::process::{number, pinned, run_megagrid, run_peer};
use crate::summary::{MEGAGRID, Table};
use crate::texts::{Source, Text, prepare};
use crate::{Options, Programs};

const THREADS: [u32; 2] = [1, 2];
/// The peers' objective: sum of log losses + |w|_1. There is no intercept unless `--intercept` asks for one.
const MEGAGRID_ARGUMENTS: [&str; 4] = ["--l1", "1", "--iterations", "200"];
const GAPS: [(&str, f64); 2] = [("s to gap 1e-3", 1e-3), ("s to gap 1e-5", 1e-5)];
const PEAK_MEMORY: &str = "peak memory, MB";
/// How far below the peers' best Megagrid may end before it is taken for an error of the objective.
const BELOW_BEST: f64 = 1e-5;

/// A peer: its shown name, as `logistic_runner.py` knows it, and its own tolerances, loosest first.
struct Peer(&'static str, &'static str, &'static str);

const PEERS: [Peer; 3] = [
    Peer("liblinear 2.50.0", "liblinear", "3e-1,1e-1,3e-2,1e-2,3e-3,1e-3,3e-4,1e-4,1e-5,1e-7"),
    Peer("skglm 0.5", "skglm", "1e-3,3e-4,1e-4,5e-5,3e-5,2.5e-5,2e-5,1e-5,1e-6"),
    Peer("celer 0.7.4", "celer", "1,1e-1,1e-2,1e-3"),
];

const INPUTS: [Text; 3] = [
    Text {
        name: "clicks.libsvm",
        source: Source::Generated(
            "clicks",
            &["--samples", "200000", "--features", "100000", "--mean-features", "51.3", "--click-rate", "0.5"],
        ),
        action: "unit",
    },
    Text { name: "news20.libsvm", source: Source::Real("news20/news20.gz"), action: "unit" },
    Text { name: "a9a.libsvm", source: Source::Real("a9a/a9a.gz"), action: "unpack" },
];
const QUICK: [Text; 1] =
    [Text { name: "clicks-small.libsvm", source: Source::Generated("clicks", &[]), action: "unit" }];

/// Runs all rounds of every input that the options leave.
pub fn measure(programs: &Programs, options: &Options) -> Result<Vec<Table>> {
    let inputs: &[Text] = if options.quick { &QUICK } else { &INPUTS };
    let mut tables = Vec::new();
    for text in inputs.iter().filter(|text| options.wants(text.name)) {
        if let Some(samples) = prepare(programs, text)? {
            tables.push(measure_input(programs, options, text.name, &samples)?);
        }
    }
    Ok(tables)
}

/// One trial: the objective over seconds of training, by iteration or by tolerance.
struct Trial {
    system: &'static str,
    threads: u32,
    /// What each point is: an iteration or a tolerance.
    labels: Vec<String>,
    curve: Curve,
    peak_bytes: f64,
}

fn measure_input(programs: &Programs, options: &Options, name: &str, samples: &Path) -> Result<Table> {
    let title = format!("L1 logistic regression, {name}: l1 = 1 (C = 1), no intercept");
    let mut table = Table::new(title, format!("benches/peers/run blockpg --inputs {name}"));
    let mut trials = Vec::new();
    for round in 1..=options.rounds {
        eprintln!("blockpg, {name}, round {round} of {}", options.rounds);
        for (index, threads) in THREADS.into_iter().enumerate() {
            trials.push(megagrid(programs, samples, threads)?);
            // The peers stand between Megagrid's trials.
            for peer in PEERS.iter().skip(index).step_by(THREADS.len()) {
                trials.push(run_package(programs, samples, peer)?);
            }
        }
    }
    let best = best_objective(&trials)?;
    for trial in &trials {
        add(&mut table, trial, best);
    }
    table.note(format!("best objective: {best:.6}; a gap is (objective - best) / best"));
    table.note("the peers have one thread: with two, Megagrid is compared with the same trials".to_owned());
    let last_round = trials.len() - trials.len() / options.rounds as usize;
    for trial in &trials[last_round..] {
        table.note(format!("{}, {} threads, last round: {}", trial.system, trial.threads, gaps_over_time(trial, best)));
    }
    Ok(table)
}

/// The smallest objective of all trials. Megagrid's own counts only as far as a peer confirms it.
fn best_objective(trials: &[Trial]) -> Result<f64> {
    let smallest = |ours: bool| {
        let points = trials.iter().filter(|trial| (trial.system == MEGAGRID) == ours).flat_map(|trial| &trial.curve);
        points.map(|point| point.1).fold(f64::INFINITY, f64::min)
    };
    let (ours, peers) = (smallest(true), smallest(false));
    ensure!(
        ours > peers * (1.0 - BELOW_BEST),
        "megagrid's objective {ours} is far below {peers}, the best of the peers: it is not the same problem"
    );
    Ok(ours.min(peers))
}

fn add(table: &mut Table, trial: &Trial, best: f64) {
    let threads = if trial.system == MEGAGRID { vec![trial.threads] } else { THREADS.to_vec() };
    for threads in threads {
        for (measure, gap) in GAPS {
            table.add(trial.system, threads, measure, soonest(&trial.curve, best * (1.0 + gap)));
        }
        table.add(trial.system, threads, PEAK_MEMORY, Some(trial.peak_bytes / 1e6));
    }
}

/// Time and gap at every tolerance of a peer; of Megagrid, at the first iteration below each power of ten.
fn gaps_over_time(trial: &Trial, best: f64) -> String {
    let mut shown = Vec::new();
    let mut decade = i32::MAX;
    for (label, (seconds, objective)) in trial.labels.iter().zip(&trial.curve) {
        let gap = (objective - best) / best;
        let reached = if gap > 0.0 { gap.log10().floor() as i32 } else { -16 };
        if trial.system != MEGAGRID || reached < decade {
            shown.push(format!("{label}: {seconds:.3} s {gap:.1e}"));
        }
        decade = decade.min(reached);
    }
    shown.join(", ")
}

fn run_package(programs: &Programs, samples: &Path, peer: &Peer) -> Result<Trial> {
    let Peer(system, package, stops) = peer;
    let python = programs.python.as_deref().context("no Python")?;
    let trial = run_peer(pinned(1, python).arg(&programs.logistic_runner).arg(samples).args([package, stops]))?;
    let runs = trial["runs"].as_array().context("no runs")?;
    let label = |run: &Value| run["stop"].as_str().unwrap_or_default().to_owned();
    read_trial(system, 1, &trial, runs, label)
}

fn megagrid(programs: &Programs, samples: &Path, threads: u32) -> Result<Trial> {
    let mut command = pinned(threads, &programs.megagrid);
    command.arg("blockpg").arg(samples).args(MEGAGRID_ARGUMENTS).args(["--evaluate-every", "1", "-w", &threads.to_string()]);
    let trial = run_megagrid(&mut command, &programs.work.join("blockpg.json"))?;
    let iterations = trial["iterations"].as_array().context("the run record has no iterations")?;
    read_trial(MEGAGRID, threads, &trial, iterations, |step| step["iteration"].to_string())
}

fn read_trial(
    system: &'static str,
    threads: u32,
    trial: &Value,
    points: &[Value],
    label: impl Fn(&Value) -> String,
) -> Result<Trial> {
    let point = |point: &Value| Ok((number(point, "/train_seconds")?, number(point, "/objective")?));
    Ok(Trial {
        system,
        threads,
        labels: points.iter().map(label).collect(),
        curve: points.iter().map(point).collect::<Result<_>>()?,
        peak_bytes: number(trial, "/peak_rss_bytes")?,
    })
}
