//! The tuners on losses of samples: a clock is a mini-batch, and its loss is noise around the loss.

use std::collections::BTreeMap;

use megagrid_tuner::baselines::{Limits, hyperband, spearmint};
use megagrid_tuner::searcher::Kind;
use megagrid_tuner::{
    Branch, Clock, Ended, Failure, Label, Noise, Options, Plateau, ROOT, Setting, Space, Trainer, Tuned, Value, tune,
};

/// Mini-batches of an epoch.
const EPOCH: u64 = 200;

/// A branch: its loss, what is left of the loss after a mini-batch, and the mini-batches that it has done.
type State = (f64, f64, u64);

/// A loss that falls to a floor by the part `step` in each mini-batch, and diverges where `step` is above 1. What is reported is up to
/// `noise` of it off, white noise by a seed. Steps over `dulls` keep the loss from falling below a tenth.
struct Batches {
    branches: BTreeMap<Branch, State>,
    noise: f64,
    seed: u64,
    floor: f64,
    dulls: f64,
    is_tested: bool,
}

impl Batches {
    fn new(seed: u64, noise: f64) -> Self {
        let branches = BTreeMap::from([(ROOT, (1.0, 0.0, 0))]);
        Self { branches, noise, seed, floor: 1e-9, dulls: f64::INFINITY, is_tested: false }
    }

    /// Returns noise of the width 2 around 0.
    fn white(&self, branch: Branch, clock: u64) -> f64 {
        let mixed = (self.seed << 40 ^ branch.0 << 20 ^ clock).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

impl Trainer for Batches {
    type Error = String;

    fn noise(&self) -> Noise {
        Noise::Sampled
    }

    fn epoch(&self) -> u64 {
        EPOCH
    }

    fn fork(&mut self, parent: Branch, child: Branch, setting: &Setting) -> Result<(), String> {
        let step = setting.number("step").ok_or("no step")?;
        let (loss, _, clocks) = *self.branches.get(&parent).ok_or("no parent")?;
        self.branches.insert(child, (loss, step, clocks));
        Ok(())
    }

    fn schedule(&mut self, branch: Branch) -> Result<Clock, String> {
        let (floor, dulls) = (self.floor, self.dulls);
        let (loss, step, clocks) = self.branches.get_mut(&branch).ok_or("no such branch")?;
        let least = if *step > dulls { 0.1 } else { floor };
        *loss = if *step > 1.0 { f64::INFINITY } else { (*loss * (1.0 - *step)).max(least) };
        *clocks += 1;
        let (loss, clocks) = (*loss, *clocks);
        let tested = (self.is_tested && clocks % EPOCH == 0).then_some(loss);
        Ok(Clock { time: 1.0, loss: loss * (1.0 + self.noise * self.white(branch, clocks)), tested, finished: false })
    }

    fn report(&mut self, branch: Branch) -> Result<f64, String> {
        self.branches.get(&branch).map(|state| state.0).ok_or("no such branch".to_owned())
    }

    fn free(&mut self, branch: Branch) -> Result<(), String> {
        self.branches.remove(&branch).map(drop).ok_or("freed twice".to_owned())
    }
}

fn options(seed: u64) -> Options {
    Options { seed, clocks: 4 * EPOCH, budget: 10_000, retune: None, decisions_count: false, ..Options::default() }
}

fn run(trainer: &mut Batches, tunable: &str, options: &Options) -> Tuned {
    let space = Space::new(vec![tunable.parse().unwrap()]).unwrap();
    tune(trainer, &space, options, &mut |_| {}).unwrap()
}

fn step(tuned: &Tuned) -> f64 {
    tuned.setting().unwrap().number("step").unwrap()
}

#[test]
fn trials_are_shorter_than_an_epoch_and_longer_where_there_is_more_noise() {
    let longest = |noise: f64, seed: u64| {
        let options = Options { searcher: Kind::Grid, ..options(seed) };
        let tuned = run(&mut Batches::new(seed, noise), "step=1e-4,1e-3,0.01,3", &options);
        // In a trial the loss falls by the factor e at most: steps of a tenth are not to be taken for it.
        assert_eq!(step(&tuned), 0.01, "noise {noise}, seed {seed}: {:?}", tuned.trials);
        let trials = tuned.trials.iter().filter(|trial| trial.label != Label::Diverged);
        assert!(trials.clone().any(|trial| trial.label == Label::Converging));
        trials.map(|trial| trial.clocks).max().unwrap()
    };
    let mut sums = [0; 2];
    for seed in 0..20 {
        let [quiet, noisy] = [0.01, 0.3].map(|noise| longest(noise, seed));
        sums = [sums[0] + quiet, sums[1] + noisy];
        assert!((9..EPOCH).contains(&quiet) && quiet <= noisy && noisy <= 2 * EPOCH, "{quiet}, {noisy}");
    }
    assert!(sums[1] > 2 * sums[0], "{sums:?}");
}

#[test]
fn a_step_of_a_range_is_found_in_spite_of_noise() {
    for seed in 0..20 {
        let tuned = run(&mut Batches::new(seed, 0.1), "step=log:1e-5..2", &options(seed));
        // 0.01 takes a hundredth of an epoch's time to e^-2.
        assert!((0.01..=1.0).contains(&step(&tuned)), "seed {seed}: {}", step(&tuned));
    }
}

#[test]
fn plateaus_are_of_the_means_of_epochs() {
    let plateau = Plateau { clocks: 2, change: 0.1 };
    let options = Options { retune: Some(plateau), clocks: 20 * EPOCH, ..options(3) };
    // 10 % less after 105 mini-batches, a third of which noise covers: no plateau.
    let tuned = run(&mut Batches::new(3, 0.3), "step=log:0.0009..0.001", &options);
    assert_eq!((tuned.settings.len(), tuned.ended), (1, Ended::Clocks));
    // What is reported falls no further: it is tuned again, in trials of an epoch at most, and ends.
    let mut flat = Batches { floor: 0.3, ..Batches::new(3, 0.3) };
    let tuned = run(&mut flat, "step=log:0.01..0.02", &options);
    assert_eq!(tuned.ended, Ended::Converged);
    assert!((tuned.line.len() as u64) < 8 * EPOCH, "{}", tuned.line.len());
    assert!(tuned.trials.iter().filter(|trial| trial.search > 0).all(|trial| trial.clocks <= EPOCH));
}

#[test]
fn a_run_recovers_from_a_bad_first_setting() {
    let begin = |step: f64| Some(Setting::new(vec![("step".to_owned(), Value::Number(step))]));
    let retuned = |seed: u64, first: f64| {
        let mut trainer = Batches { is_tested: true, dulls: 0.3, ..Batches::new(seed, 0.1) };
        let options = Options { initial: begin(first), clocks: 60 * EPOCH, ..options(seed) };
        (run(&mut trainer, "step=log:1e-4..0.9", &options), trainer)
    };
    for seed in 0..10 {
        // Too large a step: the loss does not fall below a tenth.
        let (tuned, trainer) = retuned(seed, 0.9);
        let (before, first) = &tuned.settings[0];
        assert!(*before == 0 && (first.number("step").unwrap() - 0.9).abs() < 1e-9, "{first}");
        assert!(tuned.settings.len() > 1 && tuned.stalled[0].best == 0.1, "seed {seed}: {:?}", tuned.settings);
        let best = tuned.line.iter().filter_map(|step| step.tested).fold(f64::INFINITY, f64::min);
        assert!(best < 0.01, "seed {seed}: {best}");
        assert!(tuned.trials.iter().all(|trial| trial.clocks <= EPOCH));
        assert_eq!(trainer.branches.keys().collect::<Vec<_>>(), [&tuned.branch]);
    }
    let space = Space::new(vec!["step=log:1e-4..0.9".parse().unwrap()]).unwrap();
    let elsewhere = Options { initial: Some(Setting::new(vec![])), ..options(1) };
    let failure = tune(&mut Batches::new(1, 0.0), &space, &elsewhere, &mut |_| {}).unwrap_err();
    assert!(matches!(failure, Failure::Tuning(megagrid_tuner::Error::Initial(_))), "{failure}");
}

#[test]
fn baselines_are_judged_by_held_out_errors_where_there_are_any() {
    let space = Space::new(vec!["step=log:1e-4..0.9".parse().unwrap()]).unwrap();
    let limits = Limits { target: 0.01, time: 1e6, clocks: 100 * EPOCH };
    for seed in 0..3 {
        let trainer = || Batches { is_tested: true, ..Batches::new(seed, 0.5) };
        let (mut one, mut other) = (trainer(), trainer());
        let found = spearmint(&mut one, &space, seed, limits, &mut |_| {}).unwrap();
        assert!(found.best.unwrap().0 <= 0.01);
        // It is tested after epochs only.
        assert_eq!(found.reached.unwrap() % EPOCH as f64, 0.0);
        let found = hyperband(&mut other, &space, seed, limits, &mut |_| {}).unwrap();
        assert_eq!(found.reached.unwrap() % EPOCH as f64, 0.0);
    }
}
