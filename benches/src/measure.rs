//! Interleaved measuring: what is compared runs in turn, round after round, so that a slow minute falls on all.

use std::time::Instant;

use megagrid_engine::{Engine, IterationReport};
use megagrid_stages::Program;

/// One of several things that are compared.
pub struct Contestant<'c> {
    name: String,
    run: Box<dyn FnMut() -> f64 + 'c>,
}

impl<'c> Contestant<'c> {
    /// Takes a function that returns the seconds that it measured.
    pub fn new(name: impl Into<String>, run: impl FnMut() -> f64 + 'c) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// Returns how long a function takes, in seconds.
pub fn seconds<T>(run: impl FnOnce() -> T) -> f64 {
    let begin = Instant::now();
    std::hint::black_box(run());
    begin.elapsed().as_secs_f64()
}

/// Runs all contestants in turn, once without counting and then `rounds` times, and prints each one's median, range,
/// `units` per second, and time as a multiple of the first one's. Returns the medians, in seconds.
pub fn compare(title: &str, unit: &str, units: f64, rounds: usize, mut contestants: Vec<Contestant<'_>>) -> Vec<f64> {
    let mut samples = vec![Vec::with_capacity(rounds); contestants.len()];
    for round in 0..=rounds {
        for (contestant, samples) in contestants.iter_mut().zip(&mut samples) {
            let seconds = (contestant.run)();
            if round > 0 {
                samples.push(seconds);
            }
        }
    }
    let (header, unit) = ("                                    median ms        min        max", format!("M {unit}/s"));
    println!("\n{title}\n{header} {unit:>12}   ratio");
    let medians: Vec<f64> = samples.iter().map(|of| median(of.clone())).collect();
    for ((contestant, of), median) in contestants.iter().zip(&samples).zip(&medians) {
        let [least, most] = [f64::min, f64::max].map(|pick| 1e3 * of.iter().copied().fold(*median, pick));
        let (ms, speed, ratio) = (median * 1e3, units / median / 1e6, median / medians[0]);
        let name = &contestant.name;
        println!("{name:<34} {ms:>10.2} {least:>10.2} {most:>10.2} {speed:>12.1} {ratio:>7.2}");
    }
    medians
}

/// Runs all in turn, once without counting and then `rounds` times, and returns each one's median seconds.
///
/// # Panics
/// Without rounds.
pub fn interleaved<const N: usize>(rounds: usize, mut runs: [Box<dyn FnMut() + '_>; N]) -> [f64; N] {
    let mut samples = [const { Vec::new() }; N];
    for round in 0..=rounds {
        for (run, samples) in runs.iter_mut().zip(&mut samples) {
            let seconds = seconds(run);
            if round > 0 {
                samples.push(seconds);
            }
        }
    }
    samples.map(median)
}

/// Runs an engine for some iterations more, and returns their reports.
///
/// # Panics
/// Where a stage does.
pub fn iterate<P: Program>(engine: &mut Engine<P>, iterations: u64) -> Vec<IterationReport> {
    let mut reports = Vec::new();
    let last = engine.iterations() + iterations;
    let run = engine.run_until(last, |engine, _| {
        reports.extend_from_slice(engine.reports());
        Ok(false)
    });
    run.expect("stages do not panic");
    reports
}

/// Returns the median of some values: of an even number of them the upper one.
///
/// # Panics
/// Without values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the mean of values and their standard deviation.
pub fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt())
}
