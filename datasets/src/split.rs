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
mod tests;
