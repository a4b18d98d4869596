//! A trainer with a known optimum, and the tuners on it.

use std::collections::BTreeMap;

use megagrid_tuner::baselines::{Limits, hyperband, spearmint};
use megagrid_tuner::searcher::Kind;
use megagrid_tuner::{
    Branch, Clock, Ended, Error, Event, Failure, Label, Noise, Options, Plateau, Progress, ROOT, Setting, Space,
    Trainer, Tuned, resume, tune,
};

/// Gradient descent on x²/2 from x = 1 with a step that is to be found: x shrinks by 1 − step in each clock, so that 1 is best
/// and steps above 2 diverge. From clock `dulls` on a tenth of the step is best.
struct Descent {
    branches: BTreeMap<Branch, (f64, f64, u64)>,
    noise: Noise,
    /// Added to reports, by turns.
    jitter: f64,
    floor: f64,
    dulls: u64,
    most: usize,
    enough: f64,
    /// The held-out error by the number of clocks before.
    held_out: Option<Box<dyn Fn(u64) -> f64>>,
    /// What was kept last, and the clocks of the run after which it fails.
    kept: Option<(f64, u64, Progress)>,
    fails_after: usize,
}

impl Descent {
    fn new() -> Self {
        let branches = BTreeMap::from([(ROOT, (1.0, 0.0, 0))]);
        let noise = Noise::Exact;
        Self {
            branches,
            noise,
            jitter: 0.0,
            floor: 0.0,
            dulls: u64::MAX,
            most: 1,
            enough: f64::NEG_INFINITY,
            held_out: None,
            kept: None,
            fails_after: usize::MAX,
        }
    }

    fn loss(&self, branch: Branch) -> f64 {
        let (x, _, clocks) = self.branches[&branch];
        self.floor + 0.5 * x * x + self.jitter * (clocks as f64 * 2.399).sin()
    }
}

impl Trainer for Descent {
    type Error = String;

    fn noise(&self) -> Noise {
        self.noise
    }

    fn fork(&mut self, parent: Branch, child: Branch, setting: &Setting) -> Result<(), String> {
        let step = setting.number("step").ok_or("no step")?;
        let (x, _, clocks) = *self.branches.get(&parent).ok_or("no parent")?;
        self.branches.insert(child, (x, step, clocks));
        self.most = self.most.max(self.branches.len());
        Ok(())
    }

    fn schedule(&mut self, branch: Branch) -> Result<Clock, String> {
        let dulls = self.dulls;
        let (x, step, clocks) = self.branches.get_mut(&branch).ok_or("no such branch")?;
        let step = if *clocks >= dulls { 10.0 * *step } else { *step };
        *x *= 1.0 - step;
        // Far from there everything overflows, as training does.
        if x.abs() > 1e3 {
            *x = f64::INFINITY;
        }
        *clocks += 1;
        let tested = self.held_out.as_ref().map(|error| error(*clocks));
        Ok(Clock { time: 1.0, loss: self.loss(branch), tested, finished: self.loss(branch) < self.enough })
    }

    fn report(&mut self, branch: Branch) -> Result<f64, String> {
        Ok(self.loss(branch))
    }

    fn free(&mut self, branch: Branch) -> Result<(), String> {
        self.branches.remove(&branch).map(drop).ok_or("freed twice".to_owned())
    }

    fn keep(&mut self, branch: Branch, progress: &Progress, is_last: bool) -> Result<(), String> {
        let (x, _, clocks) = *self.branches.get(&branch).ok_or("not there to be kept")?;
        assert_eq!(clocks, progress.line.len() as u64);
        self.kept = Some((x, clocks, progress.clone()));
        if is_last || clocks < self.fails_after as u64 { Ok(()) } else { Err("pulled out".to_owned()) }
    }
}

fn space(text: &str) -> Space {
    Space::new(vec![text.parse().unwrap(), "slack=0,1,3,7".parse().unwrap()]).unwrap()
}

fn options(seed: u64) -> Options {
    Options { seed, clocks: 60, budget: 40, decisions_count: false, ..Options::default() }
}

fn run(trainer: &mut Descent, space: &Space, options: &Options) -> Result<Tuned, Failure<String>> {
    tune(trainer, space, options, &mut |_| {})
}

#[test]
fn the_best_step_is_found() {
    for kind in [Kind::Tpe, Kind::Gp, Kind::Grid] {
        for seed in 0..10 {
            let mut trainer = Descent::new();
            let options = Options { searcher: kind, target: Some(1e-4), budget: 60, ..options(seed) };
            let tuned = run(&mut trainer, &space("step=log:1e-5..1.9"), &options).unwrap();
            assert_eq!(tuned.ended, Ended::Target, "{kind:?}, seed {seed}: {:?}", tuned.settings);
            let step = tuned.setting().unwrap().number("step").unwrap();
            assert!((0.3..1.7).contains(&step), "{kind:?}, seed {seed}: {step}");
        }
    }
}

#[test]
fn three_branches_are_alive_once_the_trial_time_is_found() {
    let mut trainer = Descent::new();
    let tuned = run(&mut trainer, &space("step=log:1e-5..1.9"), &options(1)).unwrap();
    assert_eq!((tuned.most_alive, trainer.most), (3, 3));
    assert_eq!(trainer.branches.keys().collect::<Vec<_>>(), [&tuned.branch]);
    assert!(tuned.trials.len() >= 5);
    assert_eq!(tuned.trials.iter().filter(|trial| trial.chosen && trial.search == 0).count(), 1);
}

#[test]
fn a_seed_decides_everything() {
    let of = |seed| run(&mut Descent::new(), &space("step=log:1e-5..3"), &options(seed)).unwrap();
    let text = |tuned: &Tuned| format!("{:?}", tuned);
    assert_eq!(text(&of(3)), text(&of(3)));
    assert_ne!(text(&of(3)), text(&of(4)));
}

#[test]
fn noise_makes_trials_longer() {
    let mut trainer = Descent { noise: Noise::Sampled, jitter: 0.02, ..Descent::new() };
    let tuned = run(&mut trainer, &space("step=log:1e-4..0.1"), &Options { budget: 2000, ..options(2) }).unwrap();
    let longest = tuned.trials.iter().map(|trial| trial.clocks).max().unwrap();
    assert!(longest >= 9, "{longest}");
    assert!(tuned.trials.iter().any(|trial| trial.label == Label::Converging));
}

#[test]
fn a_plateau_tunes_again_and_a_converged_run_ends() {
    // Steps that were best become ten times too large: progress ends, and a search finds smaller ones.
    let mut trainer = Descent { dulls: 20, floor: 1e-9, ..Descent::new() };
    let plateau = Plateau { clocks: 3, change: 0.5 };
    let options = Options { retune: Some(plateau), clocks: 200, ..options(5) };
    let tuned = run(&mut trainer, &space("step=log:0.01..0.15"), &options).unwrap();
    assert_eq!(tuned.ended, Ended::Converged);
    assert!(tuned.trials.iter().any(|trial| trial.search > 0));
    let of = |search| tuned.trials.iter().filter(|trial| trial.search == search).count();
    let searches = tuned.trials.iter().map(|trial| trial.search).max().unwrap();
    assert!(
        (1..=searches).all(|search| of(search) <= of(search - 1)),
        "each search has no more trials than the one before"
    );
    assert!(tuned.trials.iter().filter(|trial| trial.search > 0).all(|trial| trial.clocks <= 3));
    assert_eq!(trainer.branches.len(), 1);
    assert!((tuned.line.len() as u64) < 200);
}

/// Noise of the width 1 around 0, by a seed.
fn noise(seed: u64, clock: u64) -> f64 {
    let mixed = (seed * 1000 + clock + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
}

/// A run on held-out errors, whose loss falls by more than 10 % in 10 clocks all the way.
fn held_out(clocks: u64, error: impl Fn(u64) -> f64 + 'static) -> Tuned {
    let mut trainer = Descent { held_out: Some(Box::new(error)), ..Descent::new() };
    let tuned = run(&mut trainer, &space("step=log:0.01..0.02"), &Options { clocks, ..options(5) }).unwrap();
    let losses: Vec<f64> = tuned.line.iter().map(|step| step.loss).collect();
    assert!((0..losses.len()).all(|at| !Plateau::default().is_reached(&losses[..=at])), "losses tune nothing");
    tuned
}

#[test]
fn a_plateau_of_the_held_out_error_tunes_again_while_the_loss_falls() {
    let tuned = held_out(200, |clock| 25_u64.saturating_sub(clock) as f64);
    // The last four of 29 clocks are no better than the 25th.
    assert_eq!(tuned.settings.iter().map(|(clocks, _)| *clocks).collect::<Vec<_>>(), [0, 29]);
    assert_eq!((tuned.stalled[0].after, tuned.stalled[0].best), (29, 0.0));
    assert_eq!(tuned.stalled[0].errors, [0.0; 4]);
    // The other setting was of no use.
    assert_eq!((tuned.ended, tuned.stalled.len(), tuned.line.len()), (Ended::Converged, 2, 33));
    let best = tuned.line.iter().filter_map(|step| step.tested).fold(f64::INFINITY, f64::min);
    assert_eq!(best, tuned.stalled[1].best);
}

#[test]
fn a_setting_that_is_of_use_is_tuned_again_in_its_turn() {
    // The error falls on from clock 30, after the first plateau.
    let tuned = held_out(200, |clock| 25_u64.saturating_sub(clock) as f64 - (clock.clamp(29, 50) - 29) as f64);
    assert_eq!(tuned.stalled.iter().map(|stalled| stalled.after).collect::<Vec<_>>(), [29, 54, 58]);
    assert_eq!(tuned.ended, Ended::Converged);
}

#[test]
fn noise_of_the_held_out_error_tunes_nothing() {
    for seed in 0..20 {
        // Falls by 0.08 in four clocks, more than the noise is wide.
        let error = move |clock: u64| 5.0 - 0.02 * clock as f64 + 0.07 * noise(seed, clock);
        assert!((1..60).any(|clock| error(clock + 1) > error(clock)), "the noise is real");
        let tuned = held_out(60, error);
        assert!(tuned.stalled.is_empty() && tuned.trials.iter().all(|trial| trial.search == 0), "seed {seed}");
        assert_eq!((tuned.ended, tuned.line.len()), (Ended::Clocks, 60));
        let tuned = held_out(200, move |clock| error(clock.min(30)) + 0.07 * noise(seed + 20, clock));
        assert!(tuned.stalled[0].after >= 30, "seed {seed}: {:?}", tuned.stalled);
    }
}

#[test]
fn where_held_out_errors_tune_nothing_neither_do_losses() {
    let mut trainer = Descent { held_out: Some(Box::new(|_| 1.0)), dulls: 20, floor: 1e-9, ..Descent::new() };
    let options =
        Options { retune: Some(Plateau { clocks: 3, change: 0.5 }), held_out: None, clocks: 60, ..options(5) };
    let tuned = run(&mut trainer, &space("step=log:0.01..0.15"), &options).unwrap();
    assert_eq!((tuned.ended, tuned.line.len(), tuned.settings.len()), (Ended::Clocks, 60, 1));
    let losses: Vec<f64> = tuned.line.iter().map(|step| step.loss).collect();
    assert!((0..60).any(|at| options.retune.unwrap().is_reached(&losses[..=at])), "losses have a plateau");
}

#[test]
fn tuning_again_makes_no_run_longer_than_it_may_be() {
    for clocks in 29..34 {
        let tuned = held_out(clocks, |clock| 25_u64.saturating_sub(clock) as f64);
        assert_eq!(tuned.line.len() as u64, clocks);
        let mut trainer = Descent { dulls: 20, floor: 1e-9, ..Descent::new() };
        let plateau = Some(Plateau { clocks: 3, change: 0.5 });
        let options = Options { retune: plateau, clocks, ..options(5) };
        let tuned = run(&mut trainer, &space("step=log:0.01..0.15"), &options).unwrap();
        assert!(tuned.line.len() as u64 <= clocks);
    }
}

#[test]
fn a_run_that_was_kept_goes_on_as_if_it_had_not_stopped() {
    let plateau = Plateau { clocks: 3, change: 0.6 };
    let (options, space) =
        (Options { retune: Some(plateau), clocks: 200, ..options(5) }, space("step=log:0.01..0.198"));
    let descent = || Descent { dulls: 10, enough: 1e-12, ..Descent::new() };
    let whole = run(&mut descent(), &space, &options).unwrap();
    assert!(whole.settings.len() > 1 && whole.ended == Ended::Finished, "{:?}", whole.settings);
    let of = |tuned: &Tuned| {
        let losses: Vec<f64> = tuned.line.iter().map(|step| step.loss).collect();
        let trials = tuned.trials.iter().map(|trial| (trial.search, trial.setting.clone(), trial.clocks));
        (losses, tuned.settings.clone(), trials.collect::<Vec<_>>(), tuned.ended, tuned.elapsed)
    };
    for clock in whole.settings[0].0 as usize + 1..whole.line.len() {
        let mut trainer = Descent { fails_after: clock, ..descent() };
        assert_eq!(run(&mut trainer, &space, &options).unwrap_err().to_string(), "pulled out");
        let (x, clocks, progress) = trainer.kept.unwrap();
        let step = progress.setting().unwrap().number("step").unwrap();
        let branches = BTreeMap::from([(ROOT, (x, step, clocks))]);
        // What was written after the branch was saved is forgotten.
        let mut later = progress.clone();
        later.line.push(*later.line.last().unwrap());
        for progress in [progress, later.back_to(clocks).unwrap()] {
            let mut trainer = Descent { branches: branches.clone(), ..descent() };
            let tuned = resume(&mut trainer, &space, &options, progress, &mut |_| {}).unwrap();
            assert_eq!(of(&tuned), of(&whole), "from clock {clocks}");
        }
    }
    let none = resume(&mut descent(), &space, &options, Progress::default(), &mut |_| {}).unwrap_err();
    assert!(matches!(none, Failure::Tuning(Error::OtherSpace)), "{none}");
    assert!(Progress::default().back_to(1).is_none());
}

#[test]
fn a_trainer_says_when_it_is_done() {
    let mut trainer = Descent { enough: 1e-6, ..Descent::new() };
    let tuned = run(&mut trainer, &space("step=log:0.1..1.5"), &options(3)).unwrap();
    assert_eq!(tuned.ended, Ended::Finished);
    assert!(tuned.loss() < 1e-6 && tuned.line.iter().rev().skip(1).all(|step| step.loss >= 1e-6));
}

#[test]
fn a_search_ends_where_all_trials_are_done_and_none_has_moved() {
    let mut trainer = Descent { enough: f64::INFINITY, ..Descent::new() };
    let tuned = run(&mut trainer, &space("step=1e-300,2e-300"), &options(1)).unwrap();
    assert_eq!(tuned.ended, Ended::Finished);
    assert!(tuned.trials.iter().all(|trial| trial.clocks == 1), "{:?}", tuned.trials);
}

#[test]
fn the_line_is_that_of_the_chosen_branches() {
    let mut trainer = Descent::new();
    let mut clocks = 0;
    let tuned = tune(&mut trainer, &space("step=log:1e-3..1.9"), &options(8), &mut |event| {
        clocks += u64::from(matches!(event, Event::Clock { .. }));
    })
    .unwrap();
    let given_up: u64 = tuned.trials.iter().filter(|trial| !trial.chosen).map(|trial| trial.clocks).sum();
    assert_eq!(clocks, tuned.line.len() as u64 + given_up);
    assert_eq!(tuned.elapsed, clocks as f64);
    assert_eq!(tuned.tuning, given_up as f64);
    assert!(tuned.line.windows(2).all(|pair| pair[0].elapsed <= pair[1].elapsed));
}

#[test]
fn what_cannot_be_tuned_is_told() {
    let of = |text: &str, options: &Options| run(&mut Descent::new(), &space(text), options).unwrap_err();
    let diverged = of("step=log:2000..3000", &options(1));
    assert!(matches!(diverged, Failure::Tuning(Error::AllDiverged { .. })), "{diverged}");
    assert!(diverged.to_string().contains("the least bad was step="), "{diverged}");
    let listed = of("step=2000,3000", &Options { searcher: Kind::Grid, ..options(1) });
    assert!(listed.to_string().starts_with("all 8 settings"), "{listed}");
    let small = of("step=log:1e-3..1", &Options { budget: 0, ..options(1) });
    assert!(small.to_string().contains("too small for one trial"), "{small}");
    let mut noisy = Descent { noise: Noise::Sampled, ..Descent::new() };
    let small = run(&mut noisy, &space("step=log:1e-3..1"), &Options { budget: 8, ..options(1) }).unwrap_err();
    assert!(small.to_string().contains("too small for one trial"), "{small}");
}

#[test]
fn a_trainer_that_fails_ends_the_run() {
    let space = Space::new(vec!["size=1..2".parse().unwrap()]).unwrap();
    let failure = run(&mut Descent::new(), &space, &options(1)).unwrap_err();
    assert_eq!(failure.to_string(), "no step");
}

#[test]
fn baselines_reach_the_target_later() {
    let space = space("step=log:1e-5..3");
    let (mut ours, mut spearmints, mut hyperbands) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 0..11 {
        let limits = Limits { target: 1e-3, time: 1e5, clocks: 1000 };
        let options = Options { target: Some(1e-3), clocks: 1000, retune: None, ..options(seed) };
        ours.push(run(&mut Descent::new(), &space, &options).unwrap().elapsed);
        let of = spearmint(&mut Descent::new(), &space, seed, limits, &mut |_| {}).unwrap();
        spearmints.push(of.reached.unwrap());
        let mut trainer = Descent::new();
        hyperbands.push(hyperband(&mut trainer, &space, seed, limits, &mut |_| {}).unwrap().reached.unwrap());
        assert_eq!(trainer.branches.len(), 1, "only the root is left");
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (ours, spearmint, hyperband) = (median(&mut ours), median(&mut spearmints), median(&mut hyperbands));
    assert!(ours < spearmint, "{ours} {spearmint} {hyperband}");
}
