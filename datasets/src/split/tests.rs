use std::collections::BTreeSet;

use megagrid_partition::SplitMix;

use super::*;
use crate::{Format, parse_ratings};

#[test]
fn a_split_by_user_takes_as_many_of_each_that_has_more() {
    // User n has n ratings.
    let lines = |users: &mut dyn Iterator<Item = u32>| -> String {
        users.flat_map(|user| (0..user).map(move |item| format!("u{user} i{} 3\n", item * 7 % 31))).collect()
    };
    let ratings = parse_ratings(lines(&mut (1..20)).as_bytes(), Format::Ratings).unwrap();
    let [train, test] = by_user(&ratings, Share::Number(3), 5).unwrap();
    let count = |part: &Dataset<f32>, user: u32| {
        part.left_names
            .find(&format!("u{user}"))
            .map_or(0, |id| part.edges.left.iter().filter(|&&left| left == id).count())
    };
    for user in 1..20 {
        let tested = if user > 3 { 3 } else { 0 };
        assert_eq!((count(&test, user), count(&train, user)), (tested, user as usize - tested));
    }
    // Neither the order of lines nor that of users matters.
    let turned = parse_ratings(lines(&mut (1..20).rev()).as_bytes(), Format::Ratings).unwrap();
    let sorted = |part: &Dataset<f32>| BTreeSet::from_iter(named(part));
    assert_eq!(sorted(&by_user(&turned, Share::Number(3), 5).unwrap()[1]), sorted(&test));
    assert!(sorted(&by_user(&ratings, Share::Number(3), 6).unwrap()[1]) != sorted(&test), "the seed decides");
    // A third of them, rounded down.
    let [_, third] = by_user(&ratings, Share::Part(1.0 / 3.0), 5).unwrap();
    (1..20).for_each(|user| assert_eq!(count(&third, user), user as usize / 3));
    let none = by_user(&ratings, Share::Number(19), 5).unwrap_err().to_string();
    assert!(none.starts_with("no user has ratings of enough items to keep 19 of them"), "{none}");
}

fn of(seed: u64) -> Draw<'static> {
    Draw { seed, ..Draw::default() }
}

/// Of pairs with a rating above a bound as many are drawn as of a data set that has these only.
#[test]
fn what_does_not_count_is_not_drawn_and_counts_for_nobody() {
    let (ratings, _) = timed(3);
    let draw = Draw { above: Some(1.5), ..of(4) };
    let is_high: Vec<bool> = {
        let pairs: BTreeSet<(u32, u32)> =
            named_ends(&ratings).filter(|edge| edge.2 > 1.5).map(|edge| (edge.0, edge.1)).collect();
        named_ends(&ratings).map(|edge| pairs.contains(&(edge.0, edge.1))).collect()
    };
    let [high, _] = parts(&ratings, &is_high.iter().map(|high| !high).collect::<Vec<_>>());
    for share in [Share::Number(2), Share::Part(0.3)] {
        let expected = split_by_user(&high, share, of(4)).unwrap()[1].clone();
        let [train, test] = split_by_user(&ratings, share, draw).unwrap();
        assert_eq!(test.edges, expected.edges, "{share}");
        assert_eq!(train.edges.num_edges() + test.edges.num_edges(), ratings.edges.num_edges());
        let [_, _, tested] = split_users(&ratings, Share::Number(5), share, draw).unwrap();
        let [_, _, of_high] = split_users(&high, Share::Number(5), share, of(4)).unwrap();
        assert_eq!(BTreeSet::from_iter(named(&tested)), BTreeSet::from_iter(named(&of_high)), "{share}");
    }
}

fn named_ends(ratings: &Dataset<f32>) -> impl Iterator<Item = (u32, u32, f32)> {
    let EdgeList { left, right, data, .. } = &ratings.edges;
    left.iter().zip(right).zip(data).map(|((&user, &item), &rating)| (user, item, rating))
}

fn by_user(ratings: &Dataset<f32>, share: Share, seed: u64) -> Result<[Dataset<f32>; 2], Error> {
    split_by_user(ratings, share, Draw { seed, ..Draw::default() })
}

/// Ratings of some users, at times among which there are equal ones; some pairs are there twice.
fn timed(seed: u64) -> (Dataset<f32>, Vec<f64>) {
    let mut random = SplitMix::new(seed, 0);
    let lines: Vec<_> = (0..400).map(|at| (random.below(30), random.below(25), at % 5, random.below(40))).collect();
    let text: String = lines.iter().map(|(user, item, rating, _)| format!("u{user} i{item} {rating}\n")).collect();
    let ratings = parse_ratings(text.as_bytes(), Format::Ratings).unwrap();
    (ratings, lines.iter().map(|line| line.3 as f64).collect())
}

#[test]
fn the_latest_ratings_of_each_user_are_later_than_all_others() {
    let (ratings, times) = timed(3);
    let pairs = |part: &Dataset<f32>| -> BTreeSet<(u32, u32)> {
        part.edges.left.iter().copied().zip(part.edges.right.iter().copied()).collect()
    };
    for share in [Share::Number(1), Share::Number(4), Share::Part(0.3)] {
        let [train, test] = split_by_user(&ratings, share, Draw { times: Some(&times), seed: 1, above: None }).unwrap();
        assert_eq!(train.edges.num_edges() + test.edges.num_edges(), 400);
        let (train, test) = (pairs(&train), pairs(&test));
        assert!(train.is_disjoint(&test), "ratings of a pair stay together");
        let latest = |pair: (u32, u32)| {
            let ends = ratings.edges.left.iter().zip(&ratings.edges.right).zip(&times);
            ends.filter(|((user, item), _)| (**user, **item) == pair).map(|(_, &time)| time).fold(0.0, f64::max)
        };
        for user in 0..ratings.edges.num_left as u32 {
            let of_user = |pairs: &BTreeSet<(u32, u32)>| -> Vec<f64> {
                pairs.iter().filter(|pair| pair.0 == user).map(|&pair| latest(pair)).collect()
            };
            let (known, kept) = (of_user(&train), of_user(&test));
            let items = known.len() + kept.len();
            let expected = match share {
                Share::Number(number) => {
                    if items > number {
                        number
                    } else {
                        0
                    }
                }
                Share::Part(part) => (items as f64 * part) as usize,
            };
            assert_eq!(kept.len(), expected, "{share} of {items}");
            let (last_known, first_kept) =
                (known.iter().fold(0.0, |a: f64, b| a.max(*b)), kept.iter().fold(f64::INFINITY, |a, b| a.min(*b)));
            assert!(last_known <= first_kept);
        }
    }
    let error = split_by_user(&ratings, Share::Number(1), Draw { times: Some(&times[1..]), seed: 1, above: None })
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("399 times of 400 ratings"), "{error}");
}

#[test]
fn whole_users_are_split_off_with_their_ratings() {
    let (ratings, times) = timed(5);
    let users = |part: &Dataset<f32>| named(part).into_iter().map(|(user, ..)| user).collect::<BTreeSet<_>>();
    for (of_users, times) in [(Share::Number(7), None), (Share::Part(0.2), Some(&times[..]))] {
        let [train, known, test] =
            split_users(&ratings, of_users, Share::Part(0.25), Draw { times, seed: 9, above: None }).unwrap();
        let expected = if times.is_some() { ratings.edges.num_left / 5 } else { 7 };
        assert!(users(&train).is_disjoint(&users(&known)));
        assert_eq!((users(&known).len(), train.left_names.len()), (expected, ratings.edges.num_left - expected));
        assert_eq!(users(&test), users(&known));
        let mut all = [named(&train), named(&known), named(&test)].concat();
        all.sort();
        assert_eq!(all, named(&ratings));
        // Those of the users that were split off are split as if there were nobody else.
        let theirs: Vec<bool> =
            named_in_order(&ratings).iter().map(|(user, ..)| users(&known).contains(user)).collect();
        let of_them = times
            .map(|times| times.iter().zip(&theirs).filter(|(_, of)| **of).map(|(time, _)| *time).collect::<Vec<f64>>());
        let theirs = ratings.clone().kept(&theirs);
        let [_, expected] =
            split_by_user(&theirs, Share::Part(0.25), Draw { times: of_them.as_deref(), seed: 9, above: None })
                .unwrap();
        assert_eq!(named(&test), named(&expected));
    }
    let error = split_users(&ratings, Share::Number(30), Share::Number(1), of(1)).unwrap_err().to_string();
    assert!(error.starts_with("30 of 30 users leaves none"), "{error}");
}

#[test]
fn users_with_too_few_items_to_be_tested_stay_in_training() {
    // User n has n items, each twice: of fewer than five a fifth is none.
    let items = (1..10).flat_map(|user| (0..2 * user).map(move |item| (user, item % user)));
    let text: String = items.map(|(user, item)| format!("u{user} i{item} 3\n")).collect();
    let ratings = parse_ratings(text.as_bytes(), Format::Ratings).unwrap();
    let users = |part: &Dataset<f32>| named(part).into_iter().map(|(user, ..)| user).collect::<BTreeSet<_>>();
    for seed in 0..10 {
        let [train, known, test] = split_users(&ratings, Share::Number(4), Share::Part(0.2), of(seed)).unwrap();
        assert_eq!((users(&known).len(), users(&known)), (4, users(&test)));
        assert!(["u1", "u2", "u3", "u4"].iter().all(|&user| users(&train).contains(user)));
    }
    let error = split_users(&ratings, Share::Number(5), Share::Part(0.2), of(1)).unwrap_err().to_string();
    assert!(error.starts_with("5 of 5 users leaves none"), "{error}");
}

fn lines(order: impl Iterator<Item = u32>) -> String {
    // Some pairs repeat: 211 and 13 are coprime, and i runs beyond their product.
    order.map(|i| format!("u{} i{} {}\n", i % 211, i % 13, i % 5)).collect()
}

fn named(part: &Dataset<f32>) -> Vec<(String, String, u32)> {
    let mut edges = named_in_order(part);
    edges.sort();
    edges
}

fn named_in_order(part: &Dataset<f32>) -> Vec<(String, String, u32)> {
    let edge = |i: usize| {
        let (left, right) = (part.edges.left[i], part.edges.right[i]);
        let (left, right) = (part.left_names.name(left), part.right_names().name(right));
        (left.into_owned(), right.into_owned(), part.edges.data[i] as u32)
    };
    (0..part.edges.num_edges()).map(edge).collect()
}

#[test]
fn the_split_is_a_partition_that_ignores_order() {
    let forward = parse_ratings(lines(0..5000).as_bytes(), Format::Ratings).unwrap();
    let backward = parse_ratings(lines((0..5000).rev()).as_bytes(), Format::Ratings).unwrap();
    let (train, test) = split(&forward, 0.2, 7).unwrap();
    let (train_backward, test_backward) = split(&backward, 0.2, 7).unwrap();
    assert_eq!(named(&train), named(&train_backward));
    assert_eq!(named(&test), named(&test_backward));
    let mut all = [named(&train), named(&test)].concat();
    all.sort();
    assert_eq!(all, named(&forward));
    let pairs = |part| named(part).into_iter().map(|(left, right, _)| (left, right)).collect::<BTreeSet<_>>();
    assert!(pairs(&train).is_disjoint(&pairs(&test)), "a repeated pair stays together");
    let fraction = test.edges.num_edges() as f64 / 5000.0;
    // 2743 pairs: the standard deviation of the fraction is below 0.01.
    assert!((fraction - 0.2).abs() < 0.04, "{fraction}");
    assert_ne!(named(&split(&forward, 0.2, 8).unwrap().1), named(&test));
}

#[test]
fn fractions_out_of_range_are_refused() {
    let ratings = parse_ratings(b"1 2 3\n4 5 6\n", Format::Ratings).unwrap();
    for holdout in [0.0, 1.0, 1.2, -0.1, f64::NAN, f64::INFINITY] {
        let error = split(&ratings, holdout, 1).unwrap_err();
        assert!(error.to_string().starts_with("holdout"), "{error}");
        assert!(matches!(error, Error::HoldoutRange(_)));
    }
    let error = split(&ratings, 1e-12, 1).unwrap_err();
    assert!(matches!(error, Error::HoldoutEmpty { part: "testing", .. }), "{error}");
    let error = split(&ratings, 1.0 - 1e-12, 1).unwrap_err();
    assert!(matches!(error, Error::HoldoutEmpty { part: "training", .. }), "{error}");
}
