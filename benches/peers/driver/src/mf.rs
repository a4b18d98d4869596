//! Matrix factorization: time of an iteration, and training time to the best test RMSE of LIBMF.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::curve::{Curve, reach};
use crate::inputs::{self, RatingsInput};
use crate::process::{number, pinned, run_megagrid, run_peer};
use crate::summary::{MEGAGRID, Table};
use crate::{Options, Programs};

const THREADS: [u32; 2] = [1, 2];
/// Megagrid and the loop train this long, for a curve that passes LIBMF's best.
const ITERATIONS: usize = 30;
const PER_ITERATION: &str = "s per iteration";
const TO_BEST: &str = "s to LIBMF's best test RMSE";
const TO_NEAR_BEST: &str = "s to that + 0.001";
/// What "near" adds: the last thousandth can take half of the iterations.
const NEAR: f64 = 0.001;

/// Runs all rounds for one number of latent dimensions.
pub fn measure(programs: &Programs, options: &Options, dims: u32) -> Result<Table> {
    let input = inputs::ratings(programs, options)?;
    let title = format!("Matrix factorization, k = {dims}: {} training ratings", input.num_train);
    let mut table = Table::new(title, format!("benches/peers/run mf --dims {dims}"));
    let libmf = Libmf { programs, input: &input, dims };
    let goal = if programs.python.is_some() {
        let curve = libmf.curve()?;
        let best = curve.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        table.note(format!("best test RMSE of LIBMF: {best:.4}; lambda 0.05, step 0.1 on all sides"));
        Some((curve, best))
    } else {
        table.note("no Python here: LIBMF was not run".to_owned());
        None
    };
    let mut last = 0.0;
    for round in 1..=options.rounds {
        eprintln!("mf, k = {dims}, round {round} of {}", options.rounds);
        for threads in THREADS {
            let mut curves = Vec::new();
            if threads == 1 {
                curves.push(("naive", naive(programs, &input, dims)?));
            }
            let (per_iteration, curve) = megagrid(programs, &input, dims, threads)?;
            last = curve.last().map_or(f64::NAN, |point| point.1);
            curves.push((MEGAGRID, (per_iteration, curve)));
            if let Some((quality, best)) = &goal {
                for (system, native) in libmf.builds() {
                    let seconds = libmf.seconds_per_iteration(threads, native, *best)?;
                    curves.push((system, (seconds, quality.iter().map(|&(n, rmse)| (n * seconds, rmse)).collect())));
                }
            }
            for (system, (per_iteration, curve)) in curves {
                table.add(system, threads, PER_ITERATION, Some(per_iteration));
                if let Some((_, best)) = &goal {
                    table.add(system, threads, TO_BEST, reach(&curve, *best));
                    table.add(system, threads, TO_NEAR_BEST, reach(&curve, best + NEAR));
                }
            }
        }
    }
    table.note(format!("megagrid's test RMSE after {ITERATIONS} iterations: {last:.4}"));
    table.note("ratings per second = training ratings / s per iteration, so its ratios are the same".to_owned());
    Ok(table)
}

fn megagrid(programs: &Programs, input: &RatingsInput, dims: u32, threads: u32) -> Result<(f64, Curve)> {
    let mut command = pinned(threads, &programs.megagrid);
    command.arg("mf").arg(&input.train_text).arg("--test").arg(&input.test_text);
    command.args(["--dims", &dims.to_string(), "--no-biases", "-w", &threads.to_string()]);
    command.args(["--iterations", &ITERATIONS.to_string(), "--lambda", "0.05", "--step", "0.1"]);
    let trial = run_megagrid(&mut command, &programs.work.join("mf.json"))?;
    let edges = number(&trial, "/input/edges")? as u64;
    ensure!(edges == input.num_train, "megagrid read {edges} ratings, expected {}", input.num_train);
    let steps = trial["iterations"].as_array().context("the run record has no iterations")?;
    let point = |step: &Value| Ok((number(step, "/train_seconds")?, number(step, "/metrics/test_rmse")?));
    let curve = steps.iter().map(point).collect::<Result<Curve>>()?;
    Ok((input.num_train as f64 / number(&trial, "/result/edges_per_second")?, curve))
}

fn naive(programs: &Programs, input: &RatingsInput, dims: u32) -> Result<(f64, Curve)> {
    let mut command = pinned(1, &programs.naive);
    command.arg("mf").arg(&input.train_binary).arg(&input.test_binary);
    let trial = run_peer(command.args([dims.to_string(), ITERATIONS.to_string()]))?;
    let mut curve = Curve::new();
    let mut elapsed = 0.0;
    let mut seconds = Vec::new();
    for step in 0..ITERATIONS {
        seconds.push(number(&trial, &format!("/epoch_seconds/{step}"))?);
        elapsed += seconds[step];
        curve.push((elapsed, number(&trial, &format!("/test_rmse/{step}"))?));
    }
    // The first iteration warms up on every side.
    seconds.remove(0);
    seconds.sort_by(f64::total_cmp);
    Ok((seconds[seconds.len() / 2], curve))
}

/// LIBMF by way of PyPI.
struct Libmf<'a> {
    programs: &'a Programs,
    input: &'a RatingsInput,
    dims: u32,
}

impl Libmf<'_> {
    /// The package as installed and, where it could be compiled, the same sources with AVX.
    fn builds(&self) -> Vec<(&'static str, bool)> {
        let mut builds = vec![("libmf 0.9.2 (PyPI)", false)];
        if self.programs.libmf_avx.is_some() {
            builds.push(("libmf 0.9.2 (AVX build)", true));
        }
        builds
    }

    fn run(&self, threads: u32, avx: bool, counts: &[u32]) -> Result<Value> {
        let python = self.programs.python.as_deref().context("no Python")?;
        let mut command: Command = pinned(threads, python);
        if let Some(library) = self.programs.libmf_avx.as_ref().filter(|_| avx) {
            command.env("LIBMF_OBJ", library);
        }
        let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
        command.arg(&self.programs.libmf_runner).arg(&self.input.train_binary).arg(&self.input.test_binary);
        run_peer(command.args([self.dims.to_string(), threads.to_string(), counts.join(",")]))
    }

    /// Test RMSE by iterations, until it has risen twice. Each point is a training from scratch,
    /// because the package evaluates nothing on the way.
    fn curve(&self) -> Result<Curve> {
        let mut curve = Curve::new();
        let mut rises = 0;
        for count in (2..=40).step_by(2) {
            eprintln!("libmf, k = {}: quality after {count} iterations", self.dims);
            let trial = self.run(2, true, &[count])?;
            let rmse = number(&trial, "/runs/0/test_rmse")?;
            rises += u32::from(curve.last().is_some_and(|&(_, before)| rmse > before));
            curve.push((f64::from(count), rmse));
            if rises == 2 {
                break;
            }
        }
        Ok(curve)
    }

    /// (T(12) − T(2)) / 10, which takes set-up out.
    fn seconds_per_iteration(&self, threads: u32, avx: bool, best: f64) -> Result<f64> {
        let trial = self.run(threads, avx, &[2, 12])?;
        let rmse = number(&trial, "/runs/1/test_rmse")?;
        ensure!(rmse < best + 0.1, "libmf: test RMSE {rmse} after 12 iterations, its best was {best}");
        Ok((number(&trial, "/runs/1/seconds")? - number(&trial, "/runs/0/seconds")?) / 10.0)
    }
}
