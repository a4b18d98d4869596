//! Rows of users that training has not seen: the minimum of the objective for a user's row, where the rows of items stand.
//!
//! | model | minimized for a user of n ratings or values of feedback |
//! |---|---|
//! | [`mf`](crate::mf) | Σ (r − μ − b_i − p·q_i − b)² + λ n (s \|p\|² + b²), s the unit of ratings in training |
//! | [`als`] | Σ r (1 − p·q_i)² + α₀ Σ (t_i − p·q_i)² + λ (α₀ \|I\| + n)^ν \|p\|², the second sum over all items I |
//!
//! Both are ridge regressions, solved by elimination ([`Solver`]) and once more from there, which takes out most of what rounding left.

use std::borrow::{Borrow, Cow};

use megagrid_stages::{ROW_ALIGN, row_width};

use crate::als::{self, gramian, tiled};
use crate::least_squares::{Known, LEAST_LAMBDA, Neighbor, Solver, Weights};
use crate::mf::Model;

/// What is minimized.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Squared errors of ratings, with the weight λ of the regularizer for each.
    Ratings {
        /// λ.
        lambda: f32,
    },
    /// The loss of implicit feedback.
    Feedback(als::Config),
}

/// Items whose rows stand.
#[derive(Clone, Debug)]
pub struct FoldIn<M> {
    items: M,
    loss: Loss,
    /// Length of a row with what stands beside the factor, padded.
    width: usize,
    /// α₀ times the Gramian of all items; empty for ratings.
    gramian: Vec<[f32; ROW_ALIGN]>,
}

/// A row and a bias, which is 0 where the model has none.
pub type Folded = (Vec<f32>, f32);

impl<M: Borrow<Model>> FoldIn<M> {
    /// Takes a model, whose users do not matter.
    #[must_use]
    pub fn new(model: M, loss: Loss) -> Self {
        let items = model.borrow();
        let (dims, has_biases) = (items.dims, !items.item_biases.is_empty());
        let width = row_width(dims + usize::from(has_biases));
        let gramian = match loss {
            Loss::Ratings { .. } => Vec::new(),
            Loss::Feedback(config) => {
                let rows = items.items.chunks_exact(dims);
                let total = gramian(dims, rows.len(), |item, row| {
                    row[..dims].copy_from_slice(&items.items[item * dims..][..dims])
                });
                tiled(|row, column| (total[row * width + column] / f64::from(config.alpha)) as f32, width)
            }
        };
        Self { items: model, loss, width, gramian }
    }

    /// Solves for the row of a user who rated these items, or gave feedback above 0 on them. Of one without any all is 0. Feedback on an
    /// item that is named again is added up.
    ///
    /// # Panics
    /// Where the model has no such item.
    #[must_use]
    pub fn solve(&self, solver: &mut Solver, rated: &[(u32, f32)]) -> Folded {
        let Model { dims, unit, items, item_biases, .. } = self.items.borrow();
        let (dims, root) = (*dims, unit.sqrt());
        let mut own = vec![0.0; self.width];
        if rated.is_empty() {
            return (own[..dims].to_vec(), 0.0);
        }
        let rated = &*if matches!(self.loss, Loss::Feedback(_)) { by_item(rated) } else { Cow::Borrowed(rated) };
        let bias = (!item_biases.is_empty()).then_some(dims);
        let mut rows = vec![0.0; rated.len() * self.width];
        for (row, &(item, _)) in rows.chunks_exact_mut(self.width).zip(rated) {
            row[..dims].copy_from_slice(&items[item as usize * dims..][..dims]);
            // The regularizer, which has one weight here, weighs a bias by 1 / unit of that of a factor.
            bias.into_iter().for_each(|one| row[one] = root);
        }
        let weights = self.weights(rated.len());
        solver.take_in(&own, rated.len(), &Rated { of: self, rows: &rows, rated });
        for _ in 0..2 {
            solver.solve(&mut own, self.width, weights);
        }
        (own[..dims].to_vec(), bias.map_or(0.0, |bias| own[bias] * root))
    }

    fn weights(&self, rated: usize) -> Weights<'_> {
        let gramian = &self.gramian[..];
        let Model { dims, unit, items, .. } = self.items.borrow();
        match self.loss {
            Loss::Ratings { lambda } => {
                Weights { gramian, unseen: 0.0, rho: lambda.max(LEAST_LAMBDA) * unit * rated as f32 }
            }
            Loss::Feedback(config) => {
                let items = items.len() / dims;
                Weights { gramian, unseen: 1.0 / config.alpha, rho: config.rho(rated, items) }
            }
        }
    }
}

/// Returns the feedback on each item, where an item may stand in several places.
fn by_item(rated: &[(u32, f32)]) -> Cow<'_, [(u32, f32)]> {
    if rated.is_sorted_by(|a, b| a.0 < b.0) {
        return Cow::Borrowed(rated);
    }
    let mut rated = rated.to_vec();
    rated.sort_by_key(|&(item, _)| item);
    rated.dedup_by(|again, first| {
        again.0 == first.0 && {
            first.1 += again.1;
            true
        }
    });
    Cow::Owned(rated)
}

/// What a user rated: the rows of these items, and their numbers and values.
struct Rated<'f, M> {
    of: &'f FoldIn<M>,
    rows: &'f [f32],
    rated: &'f [(u32, f32)],
}

impl<'f, M: Borrow<Model>> Known<'f> for Rated<'f, M> {
    #[inline(always)]
    fn neighbor(&self, edge: usize) -> Option<Neighbor<'f>> {
        let Model { mean, item_biases, .. } = self.of.items.borrow();
        let (loss, width) = (self.of.loss, self.of.width);
        let (row, (item, value)) = (&self.rows[edge * width..][..width], self.rated[edge]);
        Some(match loss {
            Loss::Feedback(config) => Neighbor::of_feedback(row, value, 1.0 / config.alpha),
            Loss::Ratings { .. } => {
                let bias = item_biases.get(item as usize).copied().unwrap_or(0.0);
                Neighbor { row, root: 1.0, target: value - mean - bias }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use megagrid_partition::SplitMix;

    use super::*;

    /// Solves by Gauss and Jordan, with pivots, in double precision.
    fn eliminated(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
        for at in 0..right.len() {
            let pivot = (at..right.len()).max_by(|&a, &b| matrix[a][at].abs().total_cmp(&matrix[b][at].abs())).unwrap();
            matrix.swap(at, pivot);
            right.swap(at, pivot);
            for row in (0..right.len()).filter(|&row| row != at) {
                let factor = matrix[row][at] / matrix[at][at];
                (at..matrix.len()).for_each(|column| matrix[row][column] -= factor * matrix[at][column]);
                right[row] -= factor * right[at];
            }
        }
        (0..right.len()).map(|at| right[at] / matrix[at][at]).collect()
    }

    fn model(dims: usize, biases: bool) -> Model {
        let mut random = SplitMix::new(9, dims as u64);
        let mut numbers = |count: usize| -> Vec<f32> { (0..count).map(|_| random.unit() as f32 - 0.4).collect() };
        let item_biases = if biases { numbers(50) } else { Vec::new() };
        let (users, items, user_biases) = (Vec::new(), numbers(50 * dims), Vec::new());
        Model { dims, mean: 3.25, unit: 1.0, users, items, user_biases, item_biases }
    }

    /// The normal equations of weights and targets of all items.
    fn dense(rows: &[Vec<f64>], pairs: &[(f64, f64)], rho: impl Fn(usize) -> f64) -> Vec<f64> {
        let size = rows[0].len();
        let (mut matrix, mut right) = (vec![vec![0.0; size]; size], vec![0.0; size]);
        for (row, (weight, target)) in rows.iter().zip(pairs) {
            for a in 0..size {
                right[a] += weight * target * row[a];
                (0..size).for_each(|b| matrix[a][b] += weight * row[a] * row[b]);
            }
        }
        (0..size).for_each(|a| matrix[a][a] += rho(a));
        eliminated(matrix, right)
    }

    fn assert_near(found: &Folded, expected: &[f64]) {
        let values = found.0.iter().chain([&found.1]);
        for (value, expected) in values.zip(expected.iter().chain([&0.0])) {
            assert!((f64::from(*value) - expected).abs() < 1e-5, "{found:?}, not {expected:?}");
        }
    }

    /// Of a few items, and of nearly all.
    fn rated(values: &[f32]) -> [Vec<(u32, f32)>; 3] {
        [1, 6, 47].map(|count| (0..count).map(|n| (n as u32 * 17 % 50, values[n % values.len()])).collect())
    }

    #[test]
    fn ratings_are_those_of_a_dense_ridge_regression() {
        for (dims, biases, unit) in
            [(3, true, 1.0), (16, true, 1.0), (16, false, 16.0), (40, true, 1.0), (5, true, 4.0)]
        {
            let model = Model { unit, ..model(dims, biases) };
            let mut solver = Solver::default();
            for rated in rated(&[1.0, 4.5, 3.0, 5.0]) {
                let rows: Vec<Vec<f64>> = (0..50)
                    .map(|item| {
                        let row = model.items[item * dims..][..dims].iter().map(|&value| f64::from(value));
                        row.chain(biases.then_some(1.0)).collect()
                    })
                    .collect();
                let mut pairs = [(0.0, 0.0); 50];
                for &(item, value) in &rated {
                    let bias = model.item_biases.get(item as usize).copied().unwrap_or(0.0);
                    pairs[item as usize] = (1.0, f64::from(value) - 3.25 - f64::from(bias));
                }
                let found = FoldIn::new(&model, Loss::Ratings { lambda: 0.05 }).solve(&mut solver, &rated);
                let rho = |at: usize| if at < dims { f64::from(unit) } else { 1.0 } * f64::from(0.05_f32) * rated.len() as f64;
                assert_near(&found, &dense(&rows, &pairs, rho));
            }
        }
    }

    #[test]
    fn feedback_is_that_of_the_dense_normal_equations() {
        for dims in [3, 16, 40] {
            let model = Model { mean: 0.0, ..model(dims, false) };
            let config = als::Config { dims, lambda: 0.02, alpha: 4.0, nu: 0.8, ..als::Config::default() };
            for rated in rated(&[1.0, 0.5, 2.0]) {
                let rows: Vec<Vec<f64>> = (0..50)
                    .map(|item| model.items[item * dims..][..dims].iter().map(|&value| f64::from(value)).collect())
                    .collect();
                let mut pairs = [(0.25, 0.0); 50];
                rated.iter().for_each(|&(item, value)| pairs[item as usize] = (0.25 + f64::from(value), 1.0));
                let rho = 0.02 * (50.0 / 4.0 + rated.len() as f64).powf(0.8);
                let found = FoldIn::new(&model, Loss::Feedback(config)).solve(&mut Solver::default(), &rated);
                assert_near(&found, &dense(&rows, &pairs, |_| rho));
            }
        }
    }

    #[test]
    fn feedback_on_an_item_that_is_named_again_is_added_up() {
        let model = Model { mean: 0.0, ..model(16, false) };
        let of = |rated: &[(u32, f32)]| {
            let config = als::Config { dims: 16, ..als::Config::default() };
            FoldIn::new(&model, Loss::Feedback(config)).solve(&mut Solver::default(), rated)
        };
        assert_eq!(of(&[(7, 1.0), (3, 2.0), (7, 1.5), (3, 1.0)]), of(&[(3, 3.0), (7, 2.5)]));
    }

    #[test]
    fn a_user_without_ratings_has_nothing() {
        let (row, bias) =
            FoldIn::new(&model(5, true), Loss::Ratings { lambda: 0.0 }).solve(&mut Solver::default(), &[]);
        assert_eq!((row, bias), (vec![0.0; 5], 0.0));
    }

    #[test]
    fn without_a_regularizer_few_ratings_are_met() {
        let model = model(16, true);
        let rated = [(3, 4.0), (8, 2.5), (21, 5.0)];
        let (row, bias) = FoldIn::new(&model, Loss::Ratings { lambda: 0.0 }).solve(&mut Solver::default(), &rated);
        let folded = Model { users: row, user_biases: vec![bias], ..model };
        for (item, rating) in rated {
            assert!(
                (folded.predict(0, item as usize) - rating).abs() < 1e-3,
                "{item}: {}",
                folded.predict(0, item as usize)
            );
        }
    }
}
