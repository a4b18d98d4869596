//! GeePS, Figure 4.13: accuracy by samples under BSP, under SSP with slack 1 and without a bound. A perceptron is trained for real;
//! threads are machines, so staleness is what their scheduling makes of it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use megagrid_geeps::apps::network::{Optimizer, Settings};
use megagrid_geeps::apps::{Application, Network, Samples};
use megagrid_geeps::device::Cpu;
use megagrid_geeps::memory::Plan;
use megagrid_geeps::run::{Run, record, train};
use megagrid_geeps::{Consistency, Error};

use super::timing::WORKERS;
use megagrid_benches::classes;
use megagrid_benches::findings::{Findings, root};
use megagrid_benches::measure::median;

const EPOCHS: u64 = 16;
const SEEDS: u64 = 5;
/// As in the thesis (section 4.4.1).
const MOMENTUM: f32 = 0.9;
const STEPS: [f32; 5] = [0.02, 0.05, 0.1, 0.2, 0.4];
/// Features that are kept: those that most samples have, as mini-batches are dense.
const FEATURES: usize = 1000;
const KINDS: [(&str, Consistency); 3] =
    [("BSP", Consistency::Bsp), ("slack 1", Consistency::Ssp { slack: 1 }), ("no bound", Consistency::Async)];

/// Accuracy on the samples to test on, by samples trained on.
type Curve = Vec<(f64, f64)>;

/// Trains on news20, and on files of samples that are named after the figure, such as digits.
pub fn run(findings: &mut Findings) {
    let mut files: Vec<_> =
        findings.parts.iter().filter(|part| Path::new(part).is_file()).map(|part| part.into()).collect();
    let news = root().join("../shared/data/news20/news20.gz");
    if news.is_file() {
        files.insert(0, news);
    } else {
        findings.cannot("Figure 4.13 on news20: ../shared/data/news20/news20.gz is not there");
    }
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match classes::read(&file, FEATURES, usize::MAX) {
            Ok(parts) => compare(findings, &name, &parts),
            Err(error) => findings.check(format!("{name}: {error}"), false),
        }
    }
}

fn compare(findings: &mut Findings, name: &str, parts: &[Samples; 2]) {
    println!("    {name}: {} samples, {} to test on, {WORKERS} workers", parts[0].len(), parts[1].len());
    // Of each kind and step, the curves of all seeds.
    let curves = KINDS.map(|(kind, consistency)| STEPS.map(|step| runs(name, parts, kind, consistency, step)));
    let best = |curves: &[Curve]| median(curves.iter().map(most).collect());
    let reached = |kind: &[Vec<Curve>; STEPS.len()]| kind.iter().map(|curves| best(curves)).fold(0.0, f64::max);
    let target = 0.98 * reached(&curves[0]);
    let needed = |curves: &[Curve]| median(curves.iter().map(|curve| samples_to(curve, target)).collect());
    let mut lines = Vec::new();
    let mut least = Vec::new();
    for ((kind, _), of_steps) in KINDS.iter().zip(&curves) {
        let of_steps: Vec<(f32, f64, &Vec<Curve>)> =
            STEPS.into_iter().zip(of_steps).map(|(step, curves)| (step, needed(curves), curves)).collect();
        let all: Vec<String> = of_steps.iter().map(|(step, needed, _)| format!("{needed:.0} at {step}")).collect();
        println!("    {name}, {kind}: samples to {:.1} %, by the step: {}", 100.0 * target, all.join(", "));
        let (_, samples, curves) = of_steps.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("there are steps");
        least.push(samples);
        let middle = (0..curves[0].len())
            .map(|at| (curves[0][at].0, 100.0 * median(curves.iter().map(|curve| curve[at].1).collect())));
        lines.push(((*kind).to_owned(), middle.collect()));
    }
    for (at, published) in [(1, 2), (2, 3)] {
        let times = least[at] / least[0];
        let claim =
            format!("{name}: with {} {times:.2} times BSP's samples, each at its best step ({published})", KINDS[at].0);
        findings.check(claim, times > 1.0);
    }
    let title = format!("Accuracy on {name}, real (GeePS, Figure 4.13)");
    findings.plot(&format!("row-20-accuracy-{name}"), &title, ["samples trained on", "% right of others"], lines);
}

/// Trains with each seed.
fn runs(name: &str, parts: &[Samples; 2], kind: &str, consistency: Consistency, step: f32) -> Vec<Curve> {
    let mut ages: BTreeMap<i64, u64> = BTreeMap::new();
    let curves: Vec<Curve> = (0..SEEDS).map(|seed| trained(parts, consistency, step, seed, &mut ages)).collect();
    let reads: u64 = ages.values().sum();
    let mean = ages.iter().map(|(&age, &reads)| age as f64 * reads as f64).sum::<f64>() / reads as f64;
    let reached = 100.0 * median(curves.iter().map(most).collect());
    println!("    {name}, {kind}, step {step}: {reached:.1} % right at best, age of what was read {mean:.2}");
    curves
}

fn trained(
    parts: &[Samples; 2],
    consistency: Consistency,
    step: f32,
    seed: u64,
    ages: &mut BTreeMap<i64, u64>,
) -> Curve {
    let network = |samples: &Samples, workers, batch| {
        let settings = Settings {
            hidden: vec![32],
            workers,
            batch,
            step,
            optimizer: Optimizer::Momentum { momentum: MOMENTUM },
            seed,
        };
        Network::new(samples.clone(), settings).expect("settings are in range")
    };
    // As few as leave ten iterations of an epoch.
    let batch = (parts[0].len() / (10 * WORKERS)).clamp(1, 16);
    let (network, tested) = (network(&parts[0], WORKERS, batch), network(&parts[1], 1, 1));
    let (trace, _) = record(&network, 0).expect("accesses are in order");
    let budget = Plan::full_budget(&trace);
    let run = Run { workers: WORKERS, epochs: EPOCHS, consistency, budget, prefetch: true };
    let (mut curve, mut samples) = (Curve::new(), 0);
    let finish = train(&network, &run, |_| Ok(Arc::new(Cpu::new())), None, &mut |epoch, take| {
        samples += epoch.samples;
        let accuracy = take().map_or(0.0, |state| tested.measure(&state.values).metrics["accuracy"]);
        curve.push((samples as f64, accuracy));
        ControlFlow::Continue(())
    });
    match finish {
        Ok(finish) => finish.staleness.iter().for_each(|(&age, &reads)| *ages.entry(age).or_insert(0) += reads),
        // The step is too large, and nothing is right from here on.
        Err(Error::Diverged { .. } | Error::NoObjective { .. }) => curve.resize(EPOCHS as usize, (samples as f64, 0.0)),
        Err(error) => panic!("training failed: {error}"),
    }
    curve
}

fn most(curve: &Curve) -> f64 {
    curve.iter().map(|point| point.1).fold(0.0, f64::max)
}

/// Returns the samples at which an accuracy is first reached, between epochs on the straight line.
fn samples_to(curve: &Curve, accuracy: f64) -> f64 {
    let before = [(0.0, 0.0)].into_iter().chain(curve.iter().copied());
    before.zip(curve).find(|(_, after)| after.1 >= accuracy).map_or(f64::INFINITY, |(before, after)| {
        before.0 + (after.0 - before.0) * (accuracy - before.1) / (after.1 - before.1)
    })
}
