//! Data that count already are not added again.

use std::path::PathBuf;

use megagrid_training::Algorithm;
use megagrid_training::als::{AlsOptions, FeedbackOptions, ImplicitFactorization};
use megagrid_training::blockpg::{LinearOptions, Regression, SampleOptions};
use megagrid_training::input::Source;
use megagrid_training::mf::{FactorOptions, Factorization, RatingOptions};
use megagrid_training::update::Changes;

use super::{Desk, added, by_default, refused, removed, run};

/// Plays of users whose numbers begin at `first`.
fn plays(first: u64) -> Vec<String> {
    (0..60).map(|n| format!("u{},i{},{}\n", first + n / 4, n % 7, 1 + n % 5)).collect()
}

fn of_ratings() -> Desk<Factorization> {
    let options = FactorOptions { dims: 2, lambda: Some(0.1), ..FactorOptions::default() };
    Desk::new(options, || RatingOptions { holdout: Some(0.1), ..by_default() })
}

fn of_feedback() -> Desk<ImplicitFactorization> {
    Desk::new(AlsOptions { dims: 2, iterations: 2, ..AlsOptions::default() }, by_default::<FeedbackOptions>)
}

/// A model of what was kept of an input, as a copy with a name of its own.
fn of_kept<A: Algorithm>(desk: &Desk<A>, kept_of: PathBuf) -> PathBuf {
    let kept = desk.write("kept.csv", &plays(0));
    desk.train_on(Source { kept_of: Some(kept_of), ..Source::new(kept) }, &run()).0
}

#[test]
fn what_was_kept_in_a_cache_counts_by_its_own_name() {
    let desk = of_feedback();
    let input = desk.write("plays.csv", &plays(0));
    let directory = of_kept(&desk, input.clone());
    let again = |path: &PathBuf| refused(desk.update(&directory, &added(path.clone())));
    assert!(again(&input).contains("plays.csv: is what the model was trained on"), "{}", again(&input));
    // Another update forgets it as little.
    desk.update(&directory, &added(desk.write("more.csv", &plays(90)))).unwrap();
    assert!(again(&input).contains("plays.csv: is what the model was trained on"), "{}", again(&input));
}

#[test]
fn a_part_of_what_was_kept_in_a_cache_counts() {
    let desk = of_feedback();
    let part = desk.write("parts-1.csv", &plays(0));
    let directory = of_kept(&desk, desk.path("parts-*.csv"));
    let said = refused(desk.update(&directory, &added(part)));
    assert!(said.contains("parts-1.csv: stands among the files of") && said.contains("parts-*.csv"), "{said}");
    // A model that goes on with new ratings only may have been trained before a part arrived; the cache does not have it then.
    let desk = of_ratings();
    desk.write("parts-1.csv", &plays(0));
    let directory = of_kept(&desk, desk.path("parts-*.csv"));
    desk.update(&directory, &added(desk.write("parts-2.csv", &plays(30)))).unwrap();
    let updated = desk.update(&directory, &removed(desk.write("gone.csv", &plays(0)[..1]))).unwrap();
    assert_eq!(updated.record.input.edges, 119);
}

#[test]
fn what_stands_among_data_that_are_named_counts() {
    let how = || SampleOptions { hash_bits: Some(6), ..by_default() };
    let desk = Desk::<Regression>::new(LinearOptions::default(), how);
    let samples = |from: u64| (from..from + 40).map(|n| format!("{} {}:1 {}:2\n", n % 2, 1 + n % 2, 3 + n % 9));
    let write = |name: &str, from: u64| desk.write(name, &samples(from).collect::<Vec<_>>());
    write("clicks-1.libsvm", 0);
    let clicks = desk.path("clicks-*.libsvm");
    let (directory, _) = desk.train(&clicks);
    let today = write("clicks-2.libsvm", 40);
    let named = |added: PathBuf| Changes { added: Some(added), data: Some(clicks.clone()), ..Changes::default() };
    let said = refused(desk.update(&directory, &named(today)));
    assert!(said.contains("clicks-2.libsvm: stands among the files of"), "{said}");
    // Nor does a pattern that fits it.
    let said = refused(desk.update(&directory, &named(desk.path("clicks-[23].libsvm"))));
    assert!(said.contains("clicks-[23].libsvm: stands among the files of"), "{said}");
}

#[test]
fn what_was_added_before_and_stands_among_all_counts() {
    let desk = of_ratings();
    desk.write("parts-1.csv", &plays(0));
    let parts = desk.path("parts-*.csv");
    let (directory, _) = desk.train(&parts);
    // It is new to a model that goes on with new ratings only.
    desk.update(&directory, &added(desk.write("parts-2.csv", &plays(30)))).unwrap();
    let gone = removed(desk.write("gone.csv", &plays(0)[..1]));
    let said = refused(desk.update(&directory, &gone));
    assert!(said.contains("parts-2.csv: was added by an update, and stands among the files of"), "{said}");
    let updated = desk.update(&directory, &Changes { data: Some(parts), ..gone }).unwrap();
    assert_eq!(updated.record.input.edges, 119);
}
