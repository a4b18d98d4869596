//! What models of factors answer for many users or items: the best items of users, and vertices that are alike.

use std::borrow::Borrow;

use megagrid_algorithms::fold_in::Folded;
use megagrid_algorithms::mf::Model;
use megagrid_algorithms::search::{Found, Index};
use megagrid_partition::Side;
use megagrid_stages::simd::Level;
use rayon::prelude::*;

/// Keeps a prediction within the range of ratings, if there is one.
pub(super) fn clipped(rating: f32, range: Option<[f32; 2]>) -> f32 {
    range.map_or(rating, |[least, greatest]| rating.max(least).min(greatest))
}

/// The items that a model predicts the highest ratings of, or that users may want most.
#[derive(Debug)]
pub struct Recommendations<M> {
    model: M,
    range: Option<[f32; 2]>,
    /// Rows of items, with their biases.
    items: Index,
}

impl<M: Borrow<Model> + Sync> Recommendations<M> {
    /// Takes a model, and what predictions are kept within. Items are put in order as they were predicted before that.
    #[must_use]
    pub fn new(model: M, range: Option<[f32; 2]>) -> Self {
        let Model { dims, items, item_biases, .. } = model.borrow();
        let has_biases = !item_biases.is_empty();
        let items = Index::new(dims + usize::from(has_biases), items.len() / dims, |item, row| {
            row[..*dims].copy_from_slice(&items[item * dims..][..*dims]);
            row[*dims..].iter_mut().for_each(|bias| *bias = item_biases[item]);
        });
        Self { model, range, items }
    }

    /// Returns the `number` best items of each user, best first, ties by item; `left_out` are the items, ascending, that are not shown to a
    /// user, by its place among `users`. The answer does not depend on the number of threads.
    ///
    /// # Panics
    /// Where the model has no such user.
    pub fn of<'l>(
        &self,
        users: &[u32],
        number: usize,
        left_out: impl Fn(usize) -> &'l [u32] + Sync,
    ) -> Vec<Vec<Found>> {
        let Model { dims, users: rows, user_biases, .. } = self.model.borrow();
        let row = |user: u32| &rows[user as usize * dims..][..*dims];
        let bias = |user: u32| user_biases.get(user as usize).copied().unwrap_or(0.0);
        self.best(users.len(), |at| (row(users[at]), bias(users[at])), number, left_out)
    }

    /// As [`of`](Self::of), for people by their rows and biases.
    pub fn of_people<'l>(
        &self,
        people: &[Folded],
        number: usize,
        left_out: impl Fn(usize) -> &'l [u32] + Sync,
    ) -> Vec<Vec<Found>> {
        self.best(people.len(), |at| (&people[at].0, people[at].1), number, left_out)
    }

    fn best<'l, 'r>(
        &self,
        count: usize,
        user: impl Fn(usize) -> (&'r [f32], f32) + Sync,
        number: usize,
        left_out: impl Fn(usize) -> &'l [u32] + Sync,
    ) -> Vec<Vec<Found>> {
        let Model { dims, mean, .. } = self.model.borrow();
        let fill = |at: usize, row: &mut [f32]| {
            row[..*dims].copy_from_slice(user(at).0);
            row[*dims..].fill(1.0);
        };
        let mut best = all(&self.items, count, fill, number, left_out);
        for (at, found) in best.iter_mut().enumerate() {
            let begin = mean + user(at).1;
            found.iter_mut().for_each(|(_, rating)| *rating = clipped(begin + *rating, self.range));
        }
        best
    }
}

/// Items or users whose factors point the same way.
#[derive(Debug)]
pub struct Similar {
    dims: usize,
    /// Rows of length 1; of length 0 where they were.
    rows: Vec<f32>,
    index: Index,
}

impl Similar {
    /// Takes the items or users of a model.
    #[must_use]
    pub fn new(model: &Model, side: Side) -> Self {
        let (dims, rows) = (model.dims, if side == Side::Left { &model.users } else { &model.items });
        let mut rows = rows.clone();
        for row in rows.chunks_exact_mut(dims) {
            let length = row.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
            let scale = if length > 0.0 { (1.0 / length) as f32 } else { 0.0 };
            row.iter_mut().for_each(|value| *value *= scale);
        }
        let index = Index::new(dims, rows.len() / dims, |at, row| row.copy_from_slice(&rows[at * dims..][..dims]));
        Self { dims, rows, index }
    }

    /// Returns the `number` vertices most similar to each of these, without itself, the most similar first, ties by vertex, with the cosine of
    /// the angle between factors.
    ///
    /// # Panics
    /// Where the model has no such vertex.
    #[must_use]
    pub fn to(&self, vertices: &[u32], number: usize) -> Vec<Vec<Found>> {
        let row = |at: usize| &self.rows[vertices[at] as usize * self.dims..][..self.dims];
        let fill = |at: usize, to: &mut [f32]| to.copy_from_slice(row(at));
        all(&self.index, vertices.len(), fill, number, |at| &vertices[at..=at])
    }
}

/// Searches for `count` rows on all threads.
fn all<'l>(
    index: &Index,
    count: usize,
    fill: impl Fn(usize, &mut [f32]) + Sync,
    number: usize,
    left_out: impl Fn(usize) -> &'l [u32] + Sync,
) -> Vec<Vec<Found>> {
    let level = Level::detect();
    let together = index.queries_together().min(count.div_ceil(rayon::current_num_threads())).max(1);
    let parts: Vec<usize> = (0..count).step_by(together).collect();
    let of_part = |&first: &usize| {
        let part = first..(first + together).min(count);
        index.best(level, part, &fill, number, &left_out)
    };
    match &parts[..] {
        // A thread that has one question answers it sooner than it wakes another.
        [only] => of_part(only),
        _ => parts.par_iter().flat_map_iter(of_part).collect(),
    }
}

#[cfg(test)]
mod tests {
    use megagrid_partition::SplitMix;

    use super::*;

    fn model(biases: bool) -> Model {
        let mut random = SplitMix::new(4, 0);
        let mut numbers = |count: usize| -> Vec<f32> { (0..count).map(|_| random.unit() as f32 - 0.5).collect() };
        let (user_biases, item_biases) = if biases { (numbers(30), numbers(90)) } else { Default::default() };
        Model {
            dims: 20,
            mean: 3.0,
            unit: 1.0,
            users: numbers(30 * 20),
            items: numbers(90 * 20),
            user_biases,
            item_biases,
        }
    }

    #[test]
    fn the_best_items_are_those_of_the_highest_predictions() {
        for biases in [true, false] {
            let model = model(biases);
            let seen: Vec<Vec<u32>> =
                (0..30).map(|user| (0..90).filter(|item| (item * 7 + user) % 3 == 0).collect()).collect();
            let users: Vec<u32> = (0..30).rev().collect();
            let best = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let recommendations = Recommendations::new(&model, Some([2.5, 3.5]));
                pool.install(|| recommendations.of(&users, 12, |at| &seen[users[at] as usize]))
            };
            let found = best(1);
            assert_eq!(found, best(3));
            for (&user, found) in users.iter().zip(&found) {
                let mut expected: Vec<(u32, f32)> =
                    (0..90).map(|item| (item, model.predict(user as usize, item as usize))).collect();
                expected.retain(|(item, _)| !seen[user as usize].contains(item));
                expected.sort_by(|a, b| b.1.total_cmp(&a.1));
                for ((item, rating), (expected, predicted)) in found.iter().zip(&expected) {
                    assert_eq!(item, expected, "user {user}");
                    assert!((rating - predicted.clamp(2.5, 3.5)).abs() < 1e-5, "{rating}, not {predicted}");
                }
                assert_eq!(found.len(), 12);
            }
        }
    }

    #[test]
    fn vertices_are_alike_by_the_cosine_of_their_factors() {
        let mut model = model(false);
        model.items[..20].fill(0.0);
        for (side, rows) in [(Side::Left, &model.users), (Side::Right, &model.items)] {
            let rows: Vec<&[f32]> = rows.chunks_exact(20).collect();
            let cosine = |a: &[f32], b: &[f32]| {
                let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
                product(a, b) / (product(a, a) * product(b, b)).sqrt().max(1e-30)
            };
            let found = Similar::new(&model, side).to(&[0, 5, 29], 1000);
            for (of, found) in [0_usize, 5, 29].into_iter().zip(found) {
                let mut ids: Vec<u32> = found.iter().map(|one| one.0).collect();
                assert!(found.is_sorted_by(|a, b| a.1 > b.1 || a.1 == b.1 && a.0 < b.0), "{found:?}");
                for (other, score) in found {
                    let expected = cosine(rows[of], rows[other as usize]);
                    assert!(
                        (f64::from(score) - expected).abs() < 1e-5,
                        "{side:?} {of} and {other}: {score}, not {expected}"
                    );
                }
                ids.sort_unstable();
                assert!(
                    ids.into_iter().eq((0..rows.len() as u32).filter(|&other| other as usize != of)),
                    "all but itself"
                );
            }
        }
    }
}
