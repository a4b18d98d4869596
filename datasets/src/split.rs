//! Train/test split of ratings.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use megagrid_partition::EdgeList;

use crate::{Dataset, Dictionary, Error};

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
    let (mut train, mut test) = (empty_like(&ratings.edges), empty_like(&ratings.edges));
    let ends = ratings.edges.left.iter().zip(&ratings.edges.right);
    for ((&left, &right), &rating) in ends.zip(&ratings.edges.data) {
        let pair = [left_hashes[left as usize], right_hashes[right as usize]];
        let part = if xxh3_64(bytemuck::cast_slice(&pair)) < bound { &mut test } else { &mut train };
        part.push(left, right, rating);
    }
    check_parts(holdout, [&train, &test])?;
    let named =
        |edges| Dataset { edges, left_names: ratings.left_names.clone(), right_names: ratings.right_names.clone() };
    Ok((named(train), named(test)))
}

/// Splits off `number` ratings of each user that has more, which follow from the seed and the names of their two ends. Other users
/// keep theirs for training.
///
/// # Errors
/// Where no user has more, or `number` is 0.
pub fn split_by_user(ratings: &Dataset<f32>, number: usize, seed: u64) -> Result<(Dataset<f32>, Dataset<f32>), Error> {
    let right_hashes = hashes(ratings.right_names(), seed);
    let edges = &ratings.edges;
    let mut order: Vec<u32> = (0..edges.num_edges() as u32).collect();
    let (user, item) = (|edge: u32| edges.left[edge as usize], |edge: u32| edges.right[edge as usize]);
    let left_hashes = hashes(&ratings.left_names, !seed);
    let key = |edge: u32| {
        let pair = [left_hashes[user(edge) as usize], right_hashes[item(edge) as usize]];
        (user(edge), xxh3_64(bytemuck::cast_slice(&pair)), edge)
    };
    order.sort_unstable_by_key(|&edge| key(edge));
    let mut is_test = vec![false; order.len()];
    for of_user in order.chunk_by(|&a, &b| user(a) == user(b)).filter(|edges| number > 0 && edges.len() > number) {
        // Further ratings of a pair go with the first.
        let last = key(of_user[number - 1]).1;
        of_user.iter().filter(|&&edge| key(edge).1 <= last).for_each(|&edge| is_test[edge as usize] = true);
    }
    let (mut train, mut test) = (empty_like(edges), empty_like(edges));
    for (edge, is_test) in is_test.into_iter().enumerate() {
        let part = if is_test { &mut test } else { &mut train };
        part.push(edges.left[edge], edges.right[edge], edges.data[edge]);
    }
    if test.num_edges() == 0 {
        return Err(Error::HoldoutPerUser { number, num_edges: edges.num_edges() });
    }
    let named =
        |edges| Dataset { edges, left_names: ratings.left_names.clone(), right_names: ratings.right_names.clone() };
    Ok((named(train), named(test)))
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

fn empty_like(edges: &EdgeList<f32>) -> EdgeList<f32> {
    let (num_left, num_right, square) = (edges.num_left, edges.num_right, edges.square);
    EdgeList { num_left, num_right, square, ..EdgeList::default() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Format, parse_ratings};

    #[test]
    fn a_split_by_user_takes_as_many_of_each_that_has_more() {
        // User n has n ratings.
        let lines = |users: &mut dyn Iterator<Item = u32>| -> String {
            users.flat_map(|user| (0..user).map(move |item| format!("u{user} i{} 3\n", item * 7 % 31))).collect()
        };
        let ratings = parse_ratings(lines(&mut (1..20)).as_bytes(), Format::Ratings).unwrap();
        let (train, test) = split_by_user(&ratings, 3, 5).unwrap();
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
        assert_eq!(sorted(&split_by_user(&turned, 3, 5).unwrap().1), sorted(&test));
        assert!(sorted(&split_by_user(&ratings, 3, 6).unwrap().1) != sorted(&test), "the seed decides");
        let none = split_by_user(&ratings, 19, 5).unwrap_err().to_string();
        assert!(none.starts_with("no user has more than 19 of the 190 ratings"), "{none}");
    }

    fn lines(order: impl Iterator<Item = u32>) -> String {
        // Some pairs repeat: 211 and 13 are coprime, and i runs beyond their product.
        order.map(|i| format!("u{} i{} {}\n", i % 211, i % 13, i % 5)).collect()
    }

    fn named(part: &Dataset<f32>) -> Vec<(String, String, u32)> {
        let edge = |i: usize| {
            let (left, right) = (part.edges.left[i], part.edges.right[i]);
            let (left, right) = (part.left_names.name(left), part.right_names().name(right));
            (left.into_owned(), right.into_owned(), part.edges.data[i] as u32)
        };
        let mut edges: Vec<_> = (0..part.edges.num_edges()).map(edge).collect();
        edges.sort();
        edges
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
