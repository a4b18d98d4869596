//! Ratings to test on, and the error of a model on them.

use megagrid_stages::kernels::dot;
use megagrid_stages::simd::{Kernel, Level, prefetch};
use rayon::slice::ParallelSliceMut;

use super::Config;

/// Ratings to test on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestSet {
    /// User, item and rating, by user.
    known: Vec<(u32, u32, f32)>,
    /// Ratings whose user or item, `None` here, has no row.
    others: Vec<(Option<u32>, Option<u32>, f32)>,
}

impl TestSet {
    /// Takes ratings of known users and items, in any order, and of others. Those of a user stay in their order.
    #[must_use]
    pub fn new(mut known: Vec<(u32, u32, f32)>, others: Vec<(Option<u32>, Option<u32>, f32)>) -> Self {
        // The row of a user is in a cache while his ratings are looked at. Those of most files are in order, which a stable sort sees.
        known.par_sort_by_key(|&(user, ..)| user);
        Self { known, others }
    }

    /// Returns user, item and rating of those whose users and items have rows.
    #[must_use]
    pub fn known(&self) -> &[(u32, u32, f32)] {
        &self.known
    }

    /// Returns the others: what has no row is `None`.
    #[must_use]
    pub fn others(&self) -> &[(Option<u32>, Option<u32>, f32)] {
        &self.others
    }

    /// Keeps the ratings of known users and items for which this holds.
    pub fn retain(&mut self, is_kept: impl FnMut(&(u32, u32, f32)) -> bool) {
        self.known.retain(is_kept);
    }

    /// Returns the number of ratings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len() + self.others.len()
    }

    /// Tells whether there is no rating.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The rows of a model in training, by id.
#[derive(Clone, Copy, Debug)]
pub struct Rows<U, I> {
    /// Parameters.
    pub config: Config,
    /// What predictions begin with.
    pub mean: f32,
    /// Rows of users.
    pub users: U,
    /// Rows of items.
    pub items: I,
}

impl<'r, U: Fn(usize) -> &'r [f32], I: Fn(usize) -> &'r [f32]> Rows<U, I> {
    /// Returns the sum of squared errors on ratings of users and items that have rows, in their order.
    pub fn squared_errors(&self, level: Level, ratings: &[(u32, u32, f32)]) -> f64 {
        level.run(SquaredErrors { rows: self, ratings })
    }

    /// Returns the sum of squared errors on other ratings: what is predicted is the mean and the biases that there are.
    pub fn squared_errors_of_others(&self, ratings: &[(Option<u32>, Option<u32>, f32)]) -> f64 {
        let Config { dims, biases, unit, .. } = self.config;
        let bias = |row: Option<&[f32]>, at: usize| row.filter(|_| biases).map_or(0.0, |row| row[at]);
        let squared = |&(user, item, rating): &(Option<u32>, Option<u32>, f32)| {
            let user = bias(user.map(|user| (self.users)(user as usize)), dims);
            let item = bias(item.map(|item| (self.items)(item as usize)), dims + 1);
            f64::from(rating - self.mean - unit * (user + item)).powi(2)
        };
        ratings.iter().map(squared).sum()
    }
}

/// Ratings from which on rows are fetched: items of a user are anywhere in memory.
const AHEAD: usize = 8;

struct SquaredErrors<'s, R> {
    rows: &'s R,
    ratings: &'s [(u32, u32, f32)],
}

impl<'r, U: Fn(usize) -> &'r [f32], I: Fn(usize) -> &'r [f32]> Kernel for SquaredErrors<'_, Rows<U, I>> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Rows { config: Config { unit, .. }, mean, users, items } = self.rows;
        let mut sum = 0.0;
        for (at, &(user, item, rating)) in self.ratings.iter().enumerate() {
            if let Some(&(user, item, _)) = self.ratings.get(at + AHEAD) {
                for row in [users(user as usize), items(item as usize)] {
                    prefetch(row.as_ptr(), size_of_val(row));
                }
            }
            sum += f64::from(rating - mean - unit * dot(users(user as usize), items(item as usize))).powi(2);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two users and one item with one factor and biases: rows are [p, b, 1] and [q, 1, b], padded.
    fn rows() -> Rows<impl Fn(usize) -> &'static [f32], impl Fn(usize) -> &'static [f32]> {
        static USERS: [[f32; 16]; 2] = {
            let mut rows = [[0.0; 16]; 2];
            (rows[0][0], rows[0][1], rows[0][2]) = (2.0, 0.5, 1.0);
            (rows[1][1], rows[1][2]) = (-0.25, 1.0);
            rows
        };
        static ITEMS: [[f32; 16]; 1] = {
            let mut rows = [[0.0; 16]; 1];
            (rows[0][0], rows[0][1], rows[0][2]) = (0.75, 1.0, 0.125);
            rows
        };
        let config = Config { dims: 1, ..Config::default() };
        Rows { config, mean: 3.0, users: |id: usize| &USERS[id][..], items: |id: usize| &ITEMS[id][..] }
    }

    #[test]
    fn errors_are_the_ratings_less_the_predictions() {
        // 3 + 2 · 0.75 + 0.5 + 0.125 = 5.125, and 3 − 0.25 + 0.125 = 2.875.
        for level in Level::available() {
            assert_eq!(rows().squared_errors(level, &[(0, 0, 4.125), (1, 0, 3.375)]), 1.25);
        }
        let others = [(Some(0), None, 4.0), (None, Some(0), 3.125), (None, None, 5.0)];
        assert_eq!(rows().squared_errors_of_others(&others), 0.25 + 4.0);
    }
}
