//! Train/test split of ratings.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use megagrid_partition::parallel::{fill, map};
use megagrid_partition::{EdgeList, GroupedEdges, Side};

use crate::{Dataset, Dictionary, Error, Share};

/// Splits ratings into those to train on and those to test on, about the fraction `holdout` of them. Both parts keep
/// all vertices and their names; within a part the ratings keep their order.
///
/// Where a rating goes follows from the seed and the names of its two ends, so it depends neither on threads nor on
/// the order of lines and files. Ratings of the same pair stay together: none is tested with its own copy known.
///
/// # Errors
/// Where `holdout` is not above 0 and below 1, or leaves nothing in one of the parts.
///
/// # Examples
/// ```
/// let lines: String = (0..1000).map(|i| format!("{} {} 3.5\n", i % 40, i / 40)).collect();
/// let ratings = megagrid_datasets::parse_ratings(lines.as_bytes(), megagrid_datasets::Format::Ratings)?;
/// let (train, test) = megagrid_datasets::split(&ratings, 0.1, 1)?;
/// assert_eq!(train.edges.num_edges() + test.edges.num_edges(), 1000);
/// # Ok::<(), megagrid_datasets::Error>(())
/// ```
pub fn split(ratings: &Dataset<f32>, holdout: f64, seed: u64) -> Result<(Dataset<f32>, Dataset<f32>), Error> {
    let bound = bound(holdout)?;
    let left_hashes = hashes(&ratings.left_names, seed);
    let right_hashes = hashes(ratings.right_names(), !seed);
    let EdgeList { left, right, .. } = &ratings.edges;
    let is_test = fill(ratings.edges.num_edges(), |edge| {
        let pair = [left_hashes[left[edge] as usize], right_hashes[right[edge] as usize]];
        xxh3_64(bytemuck::cast_slice(&pair)) < bound
    });
    let [train, test] = parts(ratings, &is_test);
    check_parts(holdout, [&train.edges, &test.edges])?;
    Ok((train, test))
}

/// How ratings of a user are drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draw<'t> {
    /// When each rating was made: the latest are drawn.
    pub times: Option<&'t [f64]>,
    /// Only pairs of which a rating is above this count.
    pub above: Option<f32>,
    /// Decides what times do not.
    pub seed: u64,
}

impl Draw<'_> {
    /// Tells whether a pair with these ratings among all counts.
    fn counts(&self, all: &[f32], of_pair: &[u32]) -> bool {
        self.above.is_none_or(|bound| of_pair.iter().any(|&edge| all[edge as usize] > bound))
    }
}

/// Splits off some ratings of each user: those that follow from the seed and the names of their two ends, or with times the latest,
/// where the seed decides between equal ones. Users of whom none would be left keep theirs for training.
///
/// Ratings of the same pair stay together, at the latest of their times, and count as one.
///
/// # Errors
/// Where no user has enough of them; a share out of range; times that are not as many as ratings; more than 2^32 - 1 ratings.
pub fn split_by_user(ratings: &Dataset<f32>, share: Share, draw: Draw<'_>) -> Result<[Dataset<f32>; 2], Error> {
    share.check()?;
    let (edges, Draw { times, seed, .. }) = (&ratings.edges, draw);
    if let Some(times) = times.filter(|times| times.len() != edges.num_edges()) {
        return Err(Error::Times { times: times.len(), num_edges: edges.num_edges() });
    }
    let hashes = [(&ratings.left_names, !seed), (ratings.right_names(), seed)].map(|(names, seed)| hashes(names, seed));
    let pick = |user: usize, items: &[u32], edges: &[u32]| {
        let (mut begin, of_user) = (0, hashes[0][user]);
        let pair = |same: &[u32]| {
            let item = same[0] as usize;
            let edges = &edges[begin..begin + same.len()];
            begin += same.len();
            let time = |times: &[f64]| edges.iter().map(|&edge| times[edge as usize]).fold(f64::NEG_INFINITY, f64::max);
            let hash = xxh3_64(bytemuck::cast_slice(&[of_user, hashes[1][item]]));
            Pair { hash, time: times.map_or(0.0, time), edges }
        };
        let mut pairs: Vec<Pair<'_>> = items.chunk_by(|a, b| a == b).map(pair).collect();
        pairs.retain(|pair| draw.counts(&ratings.edges.data, pair.edges));
        pairs.sort_by(|a, b| b.time.total_cmp(&a.time).then(a.hash.cmp(&b.hash)));
        pairs.truncate(share.of(pairs.len()));
        pairs.iter().flat_map(|pair| pair.edges.iter().copied()).collect::<Vec<u32>>()
    };
    let mut is_test = vec![false; edges.num_edges()];
    each_user(edges, pick)?.iter().flatten().for_each(|&edge| is_test[edge as usize] = true);
    if !is_test.contains(&true) {
        return Err(none_tested(share, edges));
    }
    Ok(parts(ratings, &is_test))
}

/// Deals ratings to those to train on and those to test on, which keep all vertices.
fn parts(ratings: &Dataset<f32>, is_test: &[bool]) -> [Dataset<f32>; 2] {
    let named =
        |edges| Dataset { edges, left_names: ratings.left_names.clone(), right_names: ratings.right_names.clone() };
    ratings.edges.parts(is_test).map(named)
}

/// An item, with all ratings of it by one user.
struct Pair<'e> {
    /// Follows from the seed and both names.
    hash: u64,
    /// The latest.
    time: f64,
    edges: &'e [u32],
}

/// Returns what `task` makes of each user, the items that they rated, ascending, and the ratings' places among all. Runs on all threads.
fn each_user<R: Send>(
    edges: &EdgeList<f32>,
    task: impl Fn(usize, &[u32], &[u32]) -> R + Sync,
) -> Result<Vec<R>, Error> {
    let num_edges: u32 = edges.num_edges().try_into().map_err(|_| Error::HoldoutSize(edges.num_edges()))?;
    let (left, right) = (edges.left.clone(), edges.right.clone());
    let (num_left, num_right) = (edges.num_left, edges.num_right);
    let places = EdgeList { num_left, num_right, square: false, left, right, data: (0..num_edges).collect() };
    let by_user = GroupedEdges::new(places, &[Side::Left]);
    Ok(map(num_left, |user| {
        let (items, places) = by_user.row(Side::Left, user);
        task(user, items, places)
    }))
}

fn none_tested(share: Share, edges: &EdgeList<f32>) -> Error {
    Error::HoldoutPerUser { share: share.to_string(), num_edges: edges.num_edges() }
}

/// Splits whole users off, who follow from the seed and their names, and then some ratings of each of them, as [`split_by_user`] does.
/// Returns the ratings of the others, who are all that training is to know, and of those users the ratings that a model may be told and
/// those that it is tested on. Vertices without a rating are in neither. Only users are taken of whom the share of ratings to test on is
/// not none: the others stay in training.
///
/// This is strong generalization, as Liang, Krishnan, Hoffman and Jebara (2018) measure it.
///
/// # Errors
/// As [`split_by_user`]; where no user is taken.
pub fn split_users(
    ratings: &Dataset<f32>,
    users: Share,
    share: Share,
    draw: Draw<'_>,
) -> Result<[Dataset<f32>; 3], Error> {
    users.check()?;
    share.check()?;
    let (times, hashes) = (draw.times, hashes(&ratings.left_names, draw.seed));
    let count = |_, items: &[u32], edges: &[u32]| {
        let mut begin = 0;
        let counts = |same: &[u32]| {
            begin += same.len();
            draw.counts(&ratings.edges.data, &edges[begin - same.len()..begin])
        };
        items.chunk_by(|a, b| a == b).map(counts).filter(|counts| *counts).count()
    };
    let num_items = each_user(&ratings.edges, count)?;
    let is_testable = |&user: &u32| share.of(num_items[user as usize]) > 0;
    let mut drawn: Vec<u32> = (0..ratings.edges.num_left as u32).filter(is_testable).collect();
    if drawn.is_empty() {
        return Err(none_tested(share, &ratings.edges));
    }
    drawn.sort_by_key(|&user| hashes[user as usize]);
    let num_users = drawn.len();
    drawn.truncate(users.of(num_users));
    if drawn.is_empty() {
        return Err(Error::HoldoutUsers { share: users.to_string(), num_users });
    }
    let mut is_drawn = vec![false; ratings.edges.num_left];
    drawn.iter().for_each(|&user| is_drawn[user as usize] = true);
    let [others, theirs] = [false, true].map(|which| {
        let is_kept: Vec<bool> = ratings.edges.left.iter().map(|&user| is_drawn[user as usize] == which).collect();
        let of_kept = times.map(|times| times.iter().zip(&is_kept).filter(|(_, kept)| **kept).map(|(time, _)| *time));
        (ratings.clone().kept(&is_kept), of_kept.map(Iterator::collect::<Vec<f64>>))
    });
    let [known, test] = split_by_user(&theirs.0, share, Draw { times: theirs.1.as_deref(), ..draw })?;
    Ok([others.0, known, test])
}

/// Returns the number that about the fraction `holdout` of all hashes is below.
pub(crate) fn bound(holdout: f64) -> Result<u64, Error> {
    if !(holdout > 0.0 && holdout < 1.0) {
        return Err(Error::HoldoutRange(holdout));
    }
    // Rounds to below 2^64: the largest fraction below 1 is 1 - 2^-53.
    Ok((holdout * 2f64.powi(64)) as u64)
}

/// Refuses a split into training and testing that leaves nothing in one of them.
pub(crate) fn check_parts<T>(holdout: f64, parts: [&EdgeList<T>; 2]) -> Result<(), Error> {
    let num_edges = parts.iter().map(|edges| edges.num_edges()).sum();
    let mut named = ["training", "testing"].into_iter().zip(parts);
    let empty = named.find(|(_, edges)| edges.num_edges() == 0);
    empty.map_or(Ok(()), |(part, _)| Err(Error::HoldoutEmpty { holdout, num_edges, part }))
}

fn hashes(names: &Dictionary, seed: u64) -> Vec<u64> {
    names.iter().map(|name| xxh3_64_with_seed(name.as_bytes(), seed)).collect()
}

#[cfg(test)]
mod tests {
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
            let [train, test] =
                split_by_user(&ratings, share, Draw { times: Some(&times), seed: 1, above: None }).unwrap();
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
            let of_them = times.map(|times| {
                times.iter().zip(&theirs).filter(|(_, of)| **of).map(|(time, _)| *time).collect::<Vec<f64>>()
            });
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
}
