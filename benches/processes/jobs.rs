//! PageRank and matrix factorization, as the command runs them: 2 processes × 1 thread against 1 × 2, interleaved.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::floors::{Floors, Result};

/// Rounds; each runs every shape once.
const ROUNDS: usize = 5;

/// Two processes take at most this many times as long as one with two threads.
const MOST: f64 = 1.35;

/// A job with its input, and what starts it in two processes.
struct Job {
    name: &'static str,
    generate: &'static [&'static str],
    train: &'static [&'static str],
}

const JOBS: [Job; 2] = [
    Job {
        name: "PageRank, RMAT scale 20",
        generate: &["rmat", "--scale", "20", "--clean"],
        train: &["pagerank", "--iterations", "20", "--tolerance", "1e-30"],
    },
    Job {
        name: "MF, k = 32, 9 M ratings",
        generate: &["ratings", "--left", "48000", "--right", "17770", "--edges", "9000000"],
        train: &["mf", "--dims", "32", "--iterations", "10"],
    },
];

/// Measures every job. Each shape's time is that of its best iteration over all rounds.
pub fn measure_all(floors: &mut Floors) -> Result<()> {
    let binary = std::env::var_os("MEGAGRID_BIN").map_or_else(beside, PathBuf::from);
    let directory = std::env::temp_dir().join(format!("megagrid-processes-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let measured = JOBS.iter().try_for_each(|job| measure(&binary, &directory, job, floors));
    std::fs::remove_dir_all(&directory)?;
    measured
}

/// The command in the folder of release builds, of which benches' is a part.
fn beside() -> PathBuf {
    let bench = std::env::current_exe().unwrap_or_default();
    bench.ancestors().nth(2).unwrap_or(Path::new("target/release")).join("megagrid")
}

fn measure(binary: &Path, directory: &Path, job: &Job, floors: &mut Floors) -> Result<()> {
    let input = directory.join(format!("{}.mgrid", job.train[0]));
    run(Command::new(binary).args(["generate", job.generate[0]]).arg(&input).args(&job.generate[1..]))?;
    let record = directory.join("record.json");
    let (mut threads, mut processes) = (Vec::new(), Vec::new());
    let mut sent_bytes = 0.0;
    for _ in 0..ROUNDS {
        let train = |command: &mut Command, workers: &str| {
            let command = command.args(job.train).arg(&input).args(["-q", "-w", workers, "--json"]).arg(&record);
            run(command).and_then(|()| iterations(&record))
        };
        threads.push(train(&mut Command::new(binary), "2")?.0);
        let (seconds, bytes) = train(Command::new(binary).args(["launch", "-n", "2", "--"]), "1")?;
        processes.push(seconds);
        sent_bytes = bytes;
    }
    let [threads, processes] = [threads, processes].map(|all| all.into_iter().fold(f64::INFINITY, f64::min));
    let (threads_ms, processes_ms, megabytes) = (1e3 * threads, 1e3 * processes, sent_bytes / 1e6);
    println!("{}: 1 x 2 {threads_ms:.2} ms, 2 x 1 {processes_ms:.2} ms, {megabytes:.2} MB sent an iteration", job.name);
    floors.at_most(&format!("{}, 2 x 1 by 1 x 2", job.name), processes / threads, MOST);
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {said}").into()) }
}

/// Returns the least seconds of an iteration after the first, and the bytes that one sent.
fn iterations(record: &Path) -> Result<(f64, f64)> {
    let record: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(record)?)?;
    let all = record["iterations"].as_array().ok_or("a record without iterations")?;
    let number = |one: &serde_json::Value, name: &str| one[name].as_f64().unwrap_or(f64::NAN);
    let seconds = all.iter().skip(1).map(|one| number(one, "seconds")).fold(f64::INFINITY, f64::min);
    Ok((seconds, all.last().map_or(0.0, |one| number(one, "sent_bytes"))))
}
