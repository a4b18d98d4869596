//! What both forms share: the objective, measured, and the trained model.

use megagrid_partition::parallel::{each_chunk, fill};
use megagrid_stages::kernels::dot;
use megagrid_stages::{Combine, Context, Exchange, GlobalSync, Program, Read, Vertex, mode};

use serde::{Deserialize, Serialize};

use super::Config;

/// Sums over ratings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    /// Squared errors.
    pub squared_errors: f64,
    /// |p_u|² + |q_i|², biases included.
    pub squared_norms: f64,
    /// Ratings.
    pub ratings: u64,
}

impl AsMut<Self> for Sums {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl Combine for Sums {
    fn combine(&mut self, from: &mut Self) {
        let from = std::mem::take(from);
        self.squared_errors += from.squared_errors;
        self.squared_norms += from.squared_norms;
        self.ratings += from.ratings;
    }
}

/// Keeps the squared errors that ratings had in an iteration, each before the step that it caused: the running error, which
/// costs nothing and lags behind the exact one.
pub struct Tally;

impl<P: Program<Worker: AsMut<Sums>, Global = Sums>> GlobalSync<P> for Tally {
    fn apply(&self, mut total: P::Worker, global: &mut Sums) {
        *global = *total.as_mut();
    }
}

/// The objective of one state of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// Squared errors plus λ times squared norms, over ratings.
    pub value: f64,
    /// Root of the mean squared error.
    pub rmse: f64,
}

impl Objective {
    /// Makes it of the sums over all ratings.
    #[must_use]
    pub fn new(total: Sums, lambda: f32) -> Self {
        Self {
            value: total.squared_errors + f64::from(lambda) * total.squared_norms,
            rmse: (total.squared_errors / total.ratings.max(1) as f64).sqrt(),
        }
    }
}

/// Measures the objective: an Exchange that writes nothing but the worker context.
pub struct SquaredErrors(pub Config);

impl<P, L, R> Exchange<P> for SquaredErrors
where
    P: Program<Left = L, Right = R, Edge = f32, Worker: AsMut<Sums>>,
    L: Vertex<Sync = [f32]>,
    R: Vertex<Sync = [f32]>,
{
    type Left = mode::Read;
    type Right = mode::Read;
    const CHANGES_EDGES: bool = false;

    #[inline(always)]
    fn exchange(&self, user: Read<'_, L>, item: Read<'_, R>, rating: &mut f32, cx: &mut Context<'_, P>) {
        let (user, item): (&[f32], &[f32]) = (user.sync, item.sync);
        let error = f64::from(*rating - dot(user, item));
        // With biases each row holds a one, which is no parameter.
        let ones = if self.0.biases { 2.0 } else { 0.0 };
        let sums = cx.worker.as_mut();
        sums.squared_errors += error * error;
        sums.squared_norms += f64::from(dot(user, user) + dot(item, item) - ones);
        sums.ratings += 1;
    }
}

/// A trained model: rows of users and items, unpadded.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Length of a factor.
    pub dims: usize,
    /// Mean rating, which predictions begin with.
    pub mean: f32,
    /// The unit that ratings were counted in when it was trained ([`Config::unit`]).
    pub unit: f32,
    /// Factors of users, `[num_users, dims]`.
    pub users: Vec<f32>,
    /// Factors of items, `[num_items, dims]`.
    pub items: Vec<f32>,
    /// Biases of users; empty without.
    pub user_biases: Vec<f32>,
    /// Biases of items; empty without.
    pub item_biases: Vec<f32>,
}

/// Rows of a piece of work.
const ROWS: usize = 1024;

impl Model {
    /// Takes the model out of the rows of users and items, given how many there are and each by its id, on all threads.
    pub fn new<'r>(
        config: &Config,
        mean: f32,
        users: (usize, impl Fn(usize) -> &'r [f32] + Sync),
        items: (usize, impl Fn(usize) -> &'r [f32] + Sync),
    ) -> Self {
        let (users, user_biases) = factors(config, users, config.dims);
        let (items, item_biases) = factors(config, items, config.dims + 1);
        Self { dims: config.dims, mean, unit: config.unit, users, items, user_biases, item_biases }
    }

    /// Predicts a rating: the mean, the product of the factors and the biases.
    ///
    /// # Panics
    /// Where the model has no such user or item.
    #[must_use]
    pub fn predict(&self, user: usize, item: usize) -> f32 {
        self.predict_known(Some(user as u32), Some(item as u32))
    }

    /// Predicts the rating of a user, or someone unknown, for an item, or something unknown: what is known counts.
    ///
    /// # Panics
    /// Where the model has no such user or item.
    #[must_use]
    pub fn predict_known(&self, user: Option<u32>, item: Option<u32>) -> f32 {
        let row = |n: usize| n * self.dims..(n + 1) * self.dims;
        let [p, q] = [(&self.users, user), (&self.items, item)]
            .map(|(rows, at)| at.map_or(&[][..], |at| &rows[row(at as usize)]));
        let product: f32 = p.iter().zip(q).map(|(a, b)| a * b).sum();
        let bias = |biases: &[f32], at: Option<u32>| at.and_then(|at| biases.get(at as usize)).copied().unwrap_or(0.0);
        self.mean + product + bias(&self.user_biases, user) + bias(&self.item_biases, item)
    }
}

/// Copies factors out of rows, and the biases, if there are any, that stand at a place of each, as they are for ratings in no unit.
fn factors<'r>(
    &Config { dims, biases, unit, .. }: &Config,
    (len, row): (usize, impl Fn(usize) -> &'r [f32] + Sync),
    bias: usize,
) -> (Vec<f32>, Vec<f32>) {
    let (mut factors, root) = (vec![0.0; len * dims], unit.sqrt());
    each_chunk(&mut factors, ROWS * dims, |at, factors| {
        for (to, id) in factors.chunks_exact_mut(dims).zip(at * ROWS..) {
            to.iter_mut().zip(row(id)).for_each(|(to, value)| *to = value * root);
        }
    });
    (factors, if biases { fill(len, |id| row(id)[bias] * unit) } else { Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_is_the_mean_the_product_and_the_biases() {
        let config = Config { dims: 2, biases: true, ..Config::default() };
        // Factors, then the bias of a user beside a one, and of an item behind it; then padding.
        let (users, items) = ([[1.0, 2.0, 0.5, 1.0, 9.0], [3.0, -1.0, 0.25, 1.0, 9.0]], [[0.5, 4.0, 1.0, -2.0, 9.0]]);
        let model = Model::new(&config, 3.0, (2, |user| &users[user][..]), (1, |item| &items[item][..]));
        assert_eq!(model.predict(0, 0), 3.0 + (0.5 + 8.0) + 0.5 - 2.0);
        assert_eq!(model.predict(1, 0), 3.0 + (1.5 - 4.0) + 0.25 - 2.0);
        let model = Model { user_biases: Vec::new(), item_biases: Vec::new(), ..model };
        assert_eq!(model.predict(1, 0), 3.0 + (1.5 - 4.0));
    }

    #[test]
    fn a_model_is_of_ratings_in_no_unit() {
        let config = Config { dims: 2, unit: 16.0, ..Config::default() };
        let (user, item) = ([1.0, 2.0, 0.5, 1.0], [0.5, 4.0, 1.0, -2.0]);
        let model = Model::new(&config, 60.0, (1, |_| &user[..]), (1, |_| &item[..]));
        assert_eq!(model.predict(0, 0), 60.0 + 16.0 * (0.5 + 8.0 + 0.5 - 2.0));
        let (mut user_again, mut item_again) = ([0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]);
        config.set_user(&mut user_again, &model.users, model.user_biases[0]);
        config.set_item(&mut item_again, &model.items, model.item_biases[0]);
        assert_eq!((user_again, item_again), (user, item));
    }
}
