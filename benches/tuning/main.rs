//! What tuning a run costs, against the best fixed setting (Cui's thesis, §5.4.3, Figure 5.7) and against two other tuners (§5.4.2, Figure
//! 5.3, of AlexNet there).
//!
//!     cargo tuning [movielens|anime|generated|forks|networks] [--first SEED] [--seeds N] [--json FILE]
//!
//! Matrix factorization much as in the thesis: factors alone, steps by AdaGrad where the thesis has AdaRevision; the step is any from 1e-5 to 1, the slack 0, 1, 3 or 7
//! (one worker: it has no effect, and the tuners do not know). One pass is one clock. The target of a seed is the loss of the best
//! run of a grid of fixed steps when that changes by less than 1 % over 10 passes. Time is ratings processed, trials included.

mod figures;
mod forks;
mod network;
mod trainer;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use megagrid_algorithms::mf::Config;
use megagrid_benches::findings::{Findings, Verdicts};
use megagrid_benches::inputs;
use megagrid_benches::measure::median;
use megagrid_results::published::Evidence;
use megagrid_tuner::baselines::{Limits, hyperband, spearmint};
use megagrid_tuner::{Branch, Ended, Options, Plateau, ROOT, Setting, Space, Trainer, Tuned, Value, tune};
use trainer::{Error, Factorization, Ratings};

/// Fixed steps for each decade from 1e-5 to 1.
const PER_DECADE: u32 = 5;
/// A step is called slow if it takes more than this many times as long as the best one.
const SLOW: u64 = 10;
/// Where baselines give up, in times of the best fixed step.
const LIMIT: f64 = 15.0;
/// Passes of a fixed step, at most, to find the target.
const PASSES: u64 = 400;

fn main() -> io::Result<ExitCode> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let mut verdicts = Verdicts::new(&mut args)?;
    let mut findings = Findings::new(Evidence::Counted, &[]);
    let is_bench = args.iter().any(|arg| arg == "--bench");
    let number = |name: &str, default| {
        args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    let first: u64 = number("--first", 1);
    let seeds = first..first + number("--seeds", 10);
    let has = |name: &str| args.iter().any(|arg| arg == name);
    let all = ["movielens", "anime", "generated", "forks", "networks"];
    let any = all.iter().any(|name| has(name));
    if !is_bench {
        forks::run(200, 100, 2000, 3);
        let ratings = Ratings::new(inputs::ratings(100, 50, 1000));
        compare("tiny", &ratings, &Config { dims: 4, ..thesis() }, 1..2, &mut findings);
        let right = figures::tiny().map_err(io::Error::other)?;
        assert!(right > 0.9, "a line separates the classes, and {right} of them are right");
        return Ok(ExitCode::SUCCESS);
    }
    if has("forks") || !any {
        forks::run(72_000, 10_000, 10_000_000, 15);
    }
    for name in &all[..3] {
        if has(name) || !any {
            match load(name) {
                Some(ratings) => compare(name, &ratings, &thesis(), seeds.clone(), &mut findings),
                None => findings.cannot(format!("{name}: its file is not there")),
            }
        }
    }
    // Hours, which are not asked for without their name.
    if has("networks") {
        figures::run(&mut findings, &seeds);
    }
    verdicts.add(19, "MLtuner, section 5.4: tuned runs against fixed steps and two other tuners", findings)?;
    Ok(verdicts.exit_code())
}

/// The thesis' model: factors alone, first values with a deviation of 0.1.
fn thesis() -> Config {
    Config { dims: 32, lambda: 0.05, init_std: 0.1, biases: false, ..Config::default() }
}

fn load(name: &str) -> Option<Ratings> {
    let path = match name {
        "movielens" => "../shared/data/movielens-100k/u.data.gz",
        "anime" => "../shared/data/anime/anime_ratings.dat.gz",
        _ => return Some(Ratings::new(inputs::ratings(2000, 1000, 200_000))),
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let read = megagrid_datasets::read_ratings(&path, None).ok()?;
    let mut edges = read.in_degree_order().edges;
    let mean = edges.data.iter().map(|&rating| f64::from(rating)).sum::<f64>() / edges.data.len() as f64;
    edges.data.iter_mut().for_each(|rating| *rating -= mean as f32);
    Some(Ratings::new(edges))
}

fn space() -> Space {
    let tunables = ["step=log:1e-5..1", "slack=0,1,3,7"].map(|text| text.parse().expect("a tunable"));
    Space::new(tunables.to_vec()).expect("a space")
}

/// The grid of fixed steps.
fn steps() -> impl Iterator<Item = f64> {
    (0..=5 * PER_DECADE).map(|n| 10_f64.powf(-5.0 + f64::from(n) / f64::from(PER_DECADE)))
}

/// A run with a fixed step, which can be gone on with.
struct Fixed<'r> {
    step: f64,
    training: Factorization<'r>,
    /// After each pass.
    losses: Vec<f64>,
}

impl<'r> Fixed<'r> {
    const BRANCH: Branch = Branch(1);

    fn new(ratings: &'r Ratings, config: &Config, seed: u64, step: f64) -> Result<Self, Error> {
        let mut training = Factorization::new(ratings, *config, seed)?;
        training.fork(ROOT, Self::BRANCH, &Setting::new(vec![("step".to_owned(), Value::Number(step))]))?;
        Ok(Self { step, training, losses: Vec::new() })
    }

    /// Goes on until a loss is no number or `end` says so.
    fn run(&mut self, mut end: impl FnMut(&[f64]) -> bool) -> Result<(), Error> {
        while !end(&self.losses) && self.losses.last().is_none_or(|loss| loss.is_finite()) {
            self.losses.push(self.training.schedule(Self::BRANCH)?.loss);
        }
        Ok(())
    }

    /// Returns the passes to a loss.
    fn reached(&self, target: f64) -> Option<usize> {
        self.losses.iter().position(|loss| *loss <= target).map(|at| at + 1)
    }
}

/// What the best fixed step takes.
struct Best {
    target: f64,
    step: f64,
    passes: usize,
    /// The part of the steps that take longer than [`SLOW`] times the passes.
    slow: f64,
}

/// Runs all fixed steps to a plateau, whose best loss is the target, and those that may yet be the first there on to it; those that
/// may be slow too, if they are to be counted.
fn best_fixed(ratings: &Ratings, config: &Config, seed: u64, counts_slow: bool) -> Result<Best, Error> {
    let plateau = Plateau::default();
    let mut runs: Vec<Fixed> =
        steps().map(|step| Fixed::new(ratings, config, seed, step)).collect::<Result<_, Error>>()?;
    for run in &mut runs {
        run.run(|losses| plateau.is_reached(losses) || losses.len() as u64 >= PASSES)?;
    }
    let ends = runs.iter().filter_map(|run| run.losses.last().copied().filter(|loss| loss.is_finite()));
    let target = ends.fold(f64::INFINITY, f64::min);
    let reached = runs.iter().filter_map(|run| Some((run.step, run.reached(target)?)));
    let (mut step, mut passes) = reached.min_by_key(|(_, passes)| *passes).unwrap_or((f64::NAN, PASSES as usize));
    let mut slow = 0;
    for run in &mut runs {
        let most = if counts_slow { passes * SLOW as usize } else { passes - 1 };
        run.run(|losses| losses.last().is_some_and(|loss| *loss <= target) || losses.len() >= most)?;
        match run.reached(target) {
            Some(earlier) if earlier < passes => (step, passes) = (run.step, earlier),
            Some(_) => {}
            None => slow += 1,
        }
    }
    Ok(Best { target, step, passes, slow: slow as f64 / runs.len() as f64 })
}

/// What one seed came to; times are in passes.
struct Race {
    best: Best,
    tuned: Result<Tuned, String>,
    spearmint: Option<f64>,
    hyperband: Option<f64>,
    /// Ratings of a pass.
    pass: f64,
}

impl Race {
    /// Returns how long the tuned run took to the target, if it got there.
    fn time(&self) -> Option<f64> {
        let tuned = self.tuned.as_ref().ok().filter(|tuned| tuned.ended == Ended::Target);
        tuned.map(|tuned| tuned.elapsed / self.pass)
    }

    fn tuning(&self) -> f64 {
        self.tuned.as_ref().map_or(f64::NAN, |tuned| tuned.tuning / self.pass)
    }

    /// Returns that time as a multiple of the best fixed step's.
    fn ratio(&self) -> f64 {
        self.time().unwrap_or(f64::INFINITY) / self.best.passes as f64
    }
}

fn race(ratings: &Ratings, config: &Config, seed: u64, counts_slow: bool) -> Result<Race, Error> {
    let best = best_fixed(ratings, config, seed, counts_slow)?;
    let pass = ratings.len() as f64;
    let options = Options {
        seed,
        clocks: 20 * best.passes as u64,
        target: Some(best.target),
        retune: None,
        decisions_count: false,
        ..Options::default()
    };
    let training = || Factorization::new(ratings, *config, seed);
    let tuned = tune(&mut training()?, &space(), &options, &mut |_| {}).map_err(|failure| failure.to_string());
    let limits = Limits { target: best.target, time: LIMIT * best.passes as f64 * pass, clocks: PASSES };
    let spearmint = spearmint(&mut training()?, &space(), seed, limits, &mut |_| {})?.reached.map(|time| time / pass);
    let hyperband = hyperband(&mut training()?, &space(), seed, limits, &mut |_| {})?.reached.map(|time| time / pass);
    Ok(Race { best, tuned, spearmint, hyperband, pass })
}

fn compare(name: &str, ratings: &Ratings, config: &Config, seeds: std::ops::Range<u64>, findings: &mut Findings) {
    println!("\n{name}: {} ratings, k = {}; time in passes", ratings.len(), config.dims);
    println!("seed best step   time  tuned  tuning  trials  ratio spearmint hyperband  chosen");
    let mut races = Vec::new();
    for seed in seeds.clone() {
        let race = match race(ratings, config, seed, seed == 1) {
            Ok(race) => race,
            Err(error) => return findings.check(format!("{name}, seed {seed}: {error}"), false),
        };
        let shown = |time: Option<f64>| time.map_or("-".to_owned(), |time| format!("{time:.0}"));
        let (trials, chosen) = match &race.tuned {
            Ok(tuned) => (tuned.trials.len(), tuned.setting().map(ToString::to_string).unwrap_or_default()),
            Err(failure) => (0, failure.clone()),
        };
        let (Best { step, passes, .. }, tuning, ratio) = (&race.best, race.tuning(), race.ratio());
        let [tuned, spearmint, hyperband] = [race.time(), race.spearmint, race.hyperband].map(shown);
        print!("{seed:>4} {step:>9.4} {passes:>6} {tuned:>6} {tuning:>7.0} {trials:>7} {ratio:>6.2} ");
        println!("{spearmint:>9} {hyperband:>9}  {chosen}");
        races.push(race);
    }
    let median = |of: &dyn Fn(&Race) -> f64| median(races.iter().map(of).collect());
    let most = races.iter().map(Race::ratio).fold(0.0, f64::max);
    let ratio = median(&Race::ratio);
    let what = format!("{name}: close to the best fixed step, at most 1.5 times: {ratio:.2} in the median");
    findings.check(format!("{what}, at most {most:.2}"), ratio <= 1.5);
    // A baseline that gave up took the limit at least.
    let at_least = |reached: Option<f64>, race: &Race| {
        reached.unwrap_or(LIMIT * race.best.passes as f64) / race.time().unwrap_or(f64::INFINITY)
    };
    let spearmint = median(&|race| at_least(race.spearmint, race));
    findings.check(format!("{name}: 3 times as fast as Spearmint: {spearmint:.1} or more"), spearmint >= 3.0);
    let hyperband = median(&|race| at_least(race.hyperband, race));
    findings.check(format!("{name}: 9 times as fast as Hyperband: {hyperband:.1} or more"), hyperband >= 9.0);
    let part = median(&|race| 100.0 * race.tuning() / (race.tuning() + 100.0));
    println!("  tuning, of a run of 100 passes: {part:.0} %");
    if seeds.start == 1 {
        let slow = races[0].best.slow * 100.0;
        let what = format!("{name}: over 40 % of fixed steps are over {SLOW} times slower than the best, or diverge");
        findings.check(format!("{what}: {slow:.0} %, seed 1"), slow > 40.0);
    }
}
