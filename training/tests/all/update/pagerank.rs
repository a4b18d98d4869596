//! `pagerank`.

use std::collections::{HashMap, HashSet};

use megagrid_partition::SplitMix;
use megagrid_training::pagerank::{LinkOptions, RankOptions, Ranking, Ranks};
use megagrid_training::update::Changes;

use super::{Desk, added, by_default, removed};

/// Links of a random graph whose vertices differ in degree; some of them have none out.
fn links(number: usize, seed: u64) -> Vec<String> {
    let mut random = SplitMix::new(seed, 0);
    let mut seen = HashSet::new();
    let mut page = |most: u64| (random.unit().powi(2) * most as f64) as u64;
    std::iter::from_fn(|| Some((page(900), page(1000))))
        .filter(|link| seen.insert(*link))
        .take(number)
        .map(|(from, to)| format!("{from} {to}\n"))
        .collect()
}

fn desk(weights: bool) -> Desk<Ranking> {
    let how = if weights { || LinkOptions { weights: true, ..by_default() } } else { by_default::<LinkOptions> };
    Desk::new(RankOptions { tolerance: 1e-8, iterations: 300, ..RankOptions::default() }, how)
}

fn scores(ranks: &Ranks) -> HashMap<String, f32> {
    ranks.ranked.names.iter().map(|name| name.into_owned()).zip(ranks.ranked.scores.iter().copied()).collect()
}

/// Fails unless all scores of two models are equal to 1e-8.
fn assert_same(found: &Ranks, expected: &Ranks) {
    let (found, expected) = (scores(found), scores(expected));
    assert_eq!(found.len(), expected.len());
    for (name, score) in expected {
        assert!((found[&name] - score).abs() <= 1e-8, "{name}: {} and {score}", found[&name]);
    }
}

#[test]
fn links_that_arrive_and_links_that_go_have_the_ranks_of_a_training_on_what_is_left() {
    let all = links(9000, 3);
    for changed in [1, 9, 90, 900] {
        let desk = desk(false);
        let (new, old) = all.split_at(changed);
        let with_all = desk.train(&desk.write("all.txt", &all)).1;
        let (directory, with_old) = desk.train(&desk.write("old.txt", old));
        let updated = desk.update(&directory, &added(desk.write("new.txt", new))).unwrap();
        assert_same(updated.model.as_ref().unwrap(), with_all.model.as_ref().unwrap());
        let iterations = |record: &megagrid_training::record::Record| record.result.iterations;
        assert!(iterations(&updated.record) < iterations(&with_all.record), "{changed} links");
        let updated = desk.update(&directory, &removed(desk.path("new.txt"))).unwrap();
        assert_same(updated.model.as_ref().unwrap(), with_old.model.as_ref().unwrap());
    }
}

#[test]
fn weighted_links_are_replaced() {
    let desk = desk(true);
    let weighted = |by: u64| -> Vec<String> {
        let lines = links(3000, 5).into_iter().enumerate();
        lines.map(|(at, line)| format!("{} {}\n", line.trim(), 1 + at as u64 % by)).collect()
    };
    let (before, after) = (weighted(7), weighted(5));
    let changed = |lines: &[String]| lines[..20].to_vec();
    let expected = [changed(&after), before[20..].to_vec()].concat();
    let (directory, _) = desk.train(&desk.write("old.txt", &before));
    let changes = Changes {
        removed: Some(desk.write("gone.txt", &changed(&before))),
        added: Some(desk.write("new.txt", &changed(&after))),
        data: None,
        ..Changes::default()
    };
    let updated = desk.update(&directory, &changes).unwrap();
    assert_same(&updated.model.unwrap(), desk.train(&desk.write("all.txt", &expected)).1.model.as_ref().unwrap());
}
