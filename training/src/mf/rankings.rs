//! How well a model ranks items for the users of test data.

use megagrid_algorithms::ranking::{METRICS, Ranking, Sums};
use megagrid_algorithms::search::Index;
use megagrid_stages::simd::Level;
use rayon::prelude::*;

use super::data::Ratings;
use crate::record::Metrics;

/// Users that items are ranked for at a time.
const CHUNK: usize = 64;

/// Measures it, where it is asked for, by the first `dims` items of rows. The sums' order does not depend on threads.
pub fn rankings<'r>(
    ratings: &Ratings,
    level: Level,
    (dims, num_items): (usize, usize),
    users: impl Fn(usize) -> &'r [f32] + Sync,
    items: impl Fn(usize) -> &'r [f32],
) -> Metrics {
    let Some((k, queries)) = &ratings.ranking else { return Metrics::new() };
    let items = Index::new(dims, num_items, |item, row| row.copy_from_slice(&items(item)[..dims]));
    let ranking = Ranking { users: &users, items: &items, k: *k };
    let chunks: Vec<_> = (0..queries.users.len()).step_by(CHUNK).collect();
    let of_chunk = |&first: &usize| ranking.of(level, queries, first..(first + CHUNK).min(queries.users.len()));
    let sums: Vec<Sums> = chunks.par_iter().map(of_chunk).collect();
    let sums = sums.iter().fold(Sums::default(), |sums, more| sums.and(more));
    let means = METRICS.iter().zip(sums.means()).map(|(name, mean)| (format!("test_{name}").into(), mean));
    means.chain([("test_coverage".into(), sums.coverage(num_items))]).collect()
}
