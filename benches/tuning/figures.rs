//! Figures 5.3, 5.5, 5.8, 5.10 and 5.11 of the thesis, in samples rather than seconds, of a perceptron and of logistic regression on
//! news20, both judged by noisy losses of mini-batches and tuned again where the accuracy on others stops rising.
//!
//! Four tunables, as in the thesis (Table 5.3): the step from 1e-5 to 1, the momentum from 0 to 0.99, mini-batches of 4, 16 or 64,
//! and the slack, which has no effect on one worker, and the tuners do not know.

use std::ops::Range;

use megagrid_benches::classes;
use megagrid_benches::findings::{Findings, root};
use megagrid_benches::measure::{mean_and_deviation, median};
use megagrid_benches::plot::Line;
use megagrid_geeps::Error;
use megagrid_geeps::apps::Samples;
use megagrid_partition::SplitMix;
use megagrid_tuner::baselines::{Found, Limits, hyperband, spearmint};
use megagrid_tuner::{Branch, Options, ROOT, Setting, Space, Trainer, Tunable, Tuned, Value, tune};

use super::network::{Networks, Task};

/// Features of a sample: a mini-batch is dense.
const FEATURES: usize = 300;
/// Samples, a fifth of which are to test on.
const SAMPLES: usize = 6000;
const TUNABLES: [&str; 4] = ["step=log:1e-5..1", "momentum=0..0.99", "batch=4,16,64", "slack=0,1,3,7"];
/// Passes of a run at most.
const PASSES: u64 = 40;
/// Fixed settings: the momentum and the mini-batch that the literature takes, and these steps.
const FIXED: [f64; 7] = [1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0];
const MOMENTUM: f64 = 0.9;
const BATCH: f64 = 16.0;
/// Passes without a better accuracy that end a run of a fixed setting.
const PATIENCE: usize = 5;
/// The part of the accuracy of the best fixed setting that is to be reached.
const TARGET: f64 = 0.98;
/// Where Spearmint and Hyperband give up, in times of what the tuned run took to the target.
const LIMIT: f64 = 12.0;
/// How far from each other accuracies may be that are nearly the same.
const NEAR: f64 = 0.02;
/// Settings to begin with that are not searched for.
const RANDOM: u64 = 2;

/// What happened over samples of all branches: the part of others that was right.
type Curve = Vec<(f64, f64)>;

/// Re-enacts the figures with the applications that there are data for.
pub fn run(findings: &mut Findings, seeds: &Range<u64>) {
    let file = root().join("../shared/data/news20/news20.gz");
    let parts = match classes::read(&file, FEATURES, SAMPLES) {
        Ok(parts) => parts,
        Err(error) => return findings.cannot(format!("figures of networks: {error}")),
    };
    for (name, hidden) in [("logistic regression", vec![]), ("perceptron", vec![32])] {
        of_task(name, &Task { hidden, parts: parts.clone() }, seeds, findings);
    }
}

/// Tunes a run on tiny data, whose classes a line separates, for tests. Returns the part of others that is right at best.
pub fn tiny() -> Result<f64, String> {
    let samples = |count: usize, seed: u64| {
        let mut random = SplitMix::new(seed, 0);
        let mut value = || 2.0 * random.unit() as f32 - 1.0;
        let values: Vec<f32> = (0..2 * count).map(|_| value()).collect();
        let classes = values.chunks_exact(2).map(|pair| u32::from(pair[0] > pair[1])).collect();
        let offsets = (0..=count).map(|sample| 2 * sample).collect();
        Samples::new([2, 2], offsets, [0, 1].repeat(count), values, classes)
    };
    let parts = [samples(320, 1), samples(80, 2)].map(|part| part.map_err(|error| error.to_string()));
    let [train, test] = parts;
    Ok(tuned(&Task { hidden: vec![4], parts: [train?, test?] }, 1, 1, None)?.best)
}

fn space(copies: usize) -> Space {
    let copy = |at: usize| TUNABLES.map(|text| if at == 0 { text.to_owned() } else { format!("no-{text}") });
    let tunables = (0..copies).flat_map(copy).map(|text| text.parse().expect("a tunable"));
    Space::new(tunables.collect()).expect("a space")
}

/// A run: what it came to, its best accuracy, and the accuracies on the way.
struct Ran {
    tuned: Tuned,
    best: f64,
    curve: Curve,
}

impl Ran {
    /// Returns the samples of all branches until an accuracy was reached on the run itself.
    fn reached(&self, accuracy: f64) -> Option<f64> {
        self.curve.iter().find(|(_, right)| *right >= accuracy).map(|(samples, _)| *samples)
    }
}

fn tuned(task: &Task, seed: u64, copies: usize, initial: Option<Setting>) -> Result<Ran, String> {
    let epoch = task.epoch();
    let options = Options {
        seed,
        clocks: PASSES * epoch,
        budget: PASSES * epoch,
        decisions_count: false,
        initial,
        ..Options::default()
    };
    let mut trainer = Networks::new(task, seed).map_err(|error| error.to_string())?;
    let tuned = tune(&mut trainer, &space(copies), &options, &mut |_| {}).map_err(|failure| failure.to_string())?;
    let curve: Curve = tuned.line.iter().filter_map(|step| Some((step.elapsed, 1.0 - step.tested?))).collect();
    let best = curve.iter().map(|point| point.1).fold(0.0, f64::max);
    Ok(Ran { tuned, best, curve })
}

/// Trains with a fixed setting until its accuracy rises no further.
fn fixed(task: &Task, seed: u64, step: f64) -> Result<Curve, String> {
    let values = [("step", step), ("momentum", MOMENTUM), ("batch", BATCH)];
    let setting = Setting::new(values.map(|(name, value)| (name.to_owned(), Value::Number(value))).to_vec());
    let mut trainer = Networks::new(task, seed).map_err(|error| error.to_string())?;
    trainer.fork(ROOT, Branch(1), &setting).map_err(|error| error.to_string())?;
    for _ in 0..PASSES * task.epoch() {
        let clock = trainer.schedule(Branch(1)).map_err(|error| error.to_string())?;
        let best = (0..trainer.tested.len()).rev().max_by(|&a, &b| trainer.tested[a].1.total_cmp(&trainer.tested[b].1));
        if !clock.loss.is_finite() || best.is_some_and(|best| best + PATIENCE < trainer.tested.len()) {
            break;
        }
    }
    Ok(trainer.tested)
}

/// Returns the best accuracy of a curve.
fn most(curve: &Curve) -> f64 {
    curve.iter().map(|point| point.1).fold(0.0, f64::max)
}

/// Returns what was best so far, at each test.
fn best_so_far(curve: &Curve) -> Curve {
    let mut best = 0.0_f64;
    let so_far = curve.iter().map(|&(samples, right)| {
        best = best.max(right);
        (samples, 100.0 * best)
    });
    so_far.collect()
}

/// What one seed came to.
struct Race {
    ours: Ran,
    /// The best accuracy of fixed steps, and the fewest samples that one of them takes to the target.
    manual: (f64, f64),
    /// Samples that Spearmint and Hyperband take to the target, at least, and their curves.
    others: [(f64, Curve); 2],
    suboptimal: Vec<Ran>,
    doubled: Ran,
}

fn race(task: &Task, seed: u64) -> Result<Race, String> {
    let curves = FIXED.map(|step| fixed(task, seed, step));
    let curves: Vec<Curve> = curves.into_iter().collect::<Result<_, _>>()?;
    let best = curves.iter().map(most).fold(0.0, f64::max);
    let target = TARGET * best;
    let reached = |curve: &Curve| curve.iter().find(|point| point.1 >= target).map(|point| point.0);
    let least = curves.iter().filter_map(reached).fold(f64::INFINITY, f64::min);
    let ours = tuned(task, seed, 1, None)?;
    let limit = LIMIT * ours.reached(target).unwrap_or(ours.tuned.elapsed);
    let limits = Limits { target: 1.0 - target, time: limit, clocks: PASSES * task.epoch() };
    let other = |of: &dyn Fn(&mut Networks<'_>) -> Result<Found, Error>| -> Result<(f64, Curve), String> {
        let mut trainer = Networks::new(task, seed).map_err(|error| error.to_string())?;
        let found = of(&mut trainer).map_err(|error| error.to_string())?;
        Ok((found.reached.unwrap_or(limit), trainer.tested))
    };
    let space = space(1);
    let spearmint = other(&|trainer| spearmint(trainer, &space, seed, limits, &mut |_| {}))?;
    let hyperband = other(&|trainer| hyperband(trainer, &space, seed, limits, &mut |_| {}))?;
    let suboptimal = random(seed).into_iter().map(|setting| tuned(task, seed, 1, Some(setting)));
    let suboptimal = suboptimal.collect::<Result<_, _>>()?;
    let doubled = tuned(task, seed, 2, None)?;
    Ok(Race { ours, manual: (best, least), others: [spearmint, hyperband], suboptimal, doubled })
}

/// Returns settings that are drawn at random.
fn random(seed: u64) -> Vec<Setting> {
    let (space, mut random) = (space(1), SplitMix::new(seed, 1));
    let mut draw = |tunable: &Tunable| {
        let at = tunable.choices().map_or(random.unit(), |choices| (random.unit() * choices as f64).floor());
        (tunable.name().to_owned(), tunable.at(at))
    };
    (0..RANDOM).map(|_| Setting::new(space.tunables().iter().map(&mut draw).collect())).collect()
}

fn of_task(name: &str, task: &Task, seeds: &Range<u64>, findings: &mut Findings) {
    let [train, test] = task.parts.each_ref().map(|part| part.len());
    println!("\n{name}: {train} samples, {test} to test on; time in passes over the samples, all branches");
    println!(
        "seed  tuned  after  trials  settings  fixed  after  tuned  Spearmint  Hyperband  random first  8 tunables  after"
    );
    println!("          %                              %       to the target, passes             %            %");
    let pass = train as f64;
    let mut races = Vec::new();
    for seed in seeds.clone() {
        let race = match race(task, seed) {
            Ok(race) => race,
            Err(error) => return findings.check(format!("{name}, seed {seed}: {error}"), false),
        };
        let Race { ours, manual, others, suboptimal, doubled } = &race;
        let random: Vec<String> = suboptimal.iter().map(|ran| format!("{:.1}", 100.0 * ran.best)).collect();
        let to_target = ours.reached(TARGET * manual.0).unwrap_or(f64::INFINITY) / pass;
        let [spearmint, hyperband] = others.each_ref().map(|other| other.0 / pass);
        print!(
            "{seed:>4} {:>6.1} {:>6.1} {:>7}",
            100.0 * ours.best,
            ours.tuned.elapsed / pass,
            ours.tuned.trials.len()
        );
        print!("{:>10} {:>6.1} {:>6.1}", ours.tuned.settings.len(), 100.0 * manual.0, manual.1 / pass);
        print!(" {to_target:>6.1} {spearmint:>10.1} {hyperband:>10.1} {:>13}", random.join(" "));
        println!(" {:>11.1} {:>6.1}", 100.0 * doubled.best, doubled.tuned.elapsed / pass);
        races.push(race);
    }
    judge(name, &races, pass, findings);
}

fn judge(name: &str, races: &[Race], pass: f64, findings: &mut Findings) {
    let middle = |of: &dyn Fn(&Race) -> f64| median(races.iter().map(of).collect());
    let to_target = |race: &Race| race.ours.reached(TARGET * race.manual.0).unwrap_or(f64::INFINITY);

    // Figure 5.3.
    for (at, other, times) in [(0, "Spearmint", 3.0), (1, "Hyperband", 9.0)] {
        let found = middle(&|race| race.others[at].0 / to_target(race));
        let what = format!("Figure 5.3, {name}: tuned runs are {times:.0} times as fast as {other}");
        findings.check(format!("{what}: {found:.1}, or more"), found >= times);
    }
    // Figure 5.5.
    let best: Vec<f64> = races.iter().map(|race| race.ours.best).collect();
    let (accuracy, spread) = mean_and_deviation(&best);
    let times: Vec<f64> = races.iter().map(|race| race.ours.tuned.elapsed).collect();
    let (time, deviation) = mean_and_deviation(&times);
    let what = format!("Figure 5.5, {name}: runs end at nearly the same accuracy, a deviation of 0.01 of it");
    let found =
        format!("{:.3} at {:.1} %; of time {:.2} (0.22)", spread / accuracy, 100.0 * accuracy, deviation / time);
    findings.check(format!("{what}: {found}"), spread / accuracy <= 0.015);
    // Figure 5.8.
    let gap = middle(&|race| race.ours.best - race.manual.0);
    let what = format!("Figure 5.8, {name}: tuned runs are as accurate as the best fixed step");
    findings.check(format!("{what}: {:+.1} points", 100.0 * gap), gap >= -0.5 * NEAR);
    let ratio = middle(&|race| to_target(race) / race.manual.1);
    let what = format!("Figure 5.8, {name}: and take at most about 5 times as long as one who knows it");
    findings.check(format!("{what}: {ratio:.1} times"), ratio <= 6.0);
    // Figure 5.10.
    let worst = |race: &Race| race.suboptimal.iter().map(|ran| ran.best - race.ours.best).fold(f64::INFINITY, f64::min);
    let (typical, worst) = (middle(&worst), races.iter().map(worst).fold(f64::INFINITY, f64::min));
    let what = format!("Figure 5.10, {name}: from random first settings runs become as accurate");
    let found =
        format!("the worst of {RANDOM} {:+.1} points in the median, {:+.1} at worst", 100.0 * typical, 100.0 * worst);
    findings.check(format!("{what}: {found}"), typical >= -NEAR);
    // Figure 5.11.
    let gap = middle(&|race| race.doubled.best - race.ours.best);
    let what = format!("Figure 5.11, {name}: with 8 tunables runs are as accurate");
    findings.check(format!("{what}: {:+.1} points", 100.0 * gap), gap.abs() <= NEAR);
    let ratio = middle(&|race| race.doubled.tuned.tuning / race.ours.tuned.tuning);
    let what = format!("Figure 5.11, {name}: and tuning takes about twice as long");
    findings.check(format!("{what}: {ratio:.2} times"), (0.5..=4.0).contains(&ratio));

    let first = &races[0];
    let [spearmint, hyperband] = first.others.each_ref().map(|other| best_so_far(&other.1));
    let named = |name: &str, curve: Curve| -> Line {
        (name.to_owned(), curve.into_iter().map(|(samples, right)| (samples / pass, right)).collect())
    };
    let mut lines = vec![named("tuned", best_so_far(&first.ours.curve))];
    lines.extend([named("Spearmint", spearmint), named("Hyperband", hyperband)]);
    lines.push(named("random first", best_so_far(&first.suboptimal[0].curve)));
    lines.push(named("8 tunables", best_so_far(&first.doubled.curve)));
    let title = format!("MLtuner, Figures 5.3, 5.10 and 5.11: {name}");
    let file = format!("row-19-{}", name.replace(' ', "-"));
    findings.plot(&file, &title, ["passes over the samples, all branches", "% right of others, best so far"], lines);
}
