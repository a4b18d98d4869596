//! Ratings with planted factors: `mean + p_u . q_i + noise`, users and items drawn by Zipf's law, no pair twice.

use std::io::Write;
use std::path::Path;

use megagrid_partition::{EdgeList, Relabeling, parallel};
use rand_distr::weighted::WeightedAliasIndex;

use super::random::{Random, alias_table, zipf};
use super::writer::write_text;
use super::{check, check_count, numbered};
use crate::output::write_matrix;
use crate::{Dataset, Error};

/// What ratings to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatingsSettings {
    /// Users.
    pub num_users: usize,
    /// Items.
    pub num_items: usize,
    /// Ratings, at most one for each pair.
    pub num_ratings: usize,
    /// Length of the planted factors.
    pub latent_dim: usize,
    /// The planted global mean.
    pub mean: f64,
    /// Standard deviation of `p_u . q_i`.
    pub signal: f64,
    /// Standard deviation of the noise: no model can have a smaller RMSE on ratings that it does not know.
    pub noise: f64,
    /// The number of ratings of the user of rank n is proportional to `n^-exponent`, at most all items.
    pub user_exponent: f64,
    /// Items are drawn with chances proportional to `rank^-exponent`.
    pub item_exponent: f64,
    /// Rounds ratings to multiples of this, 0.5 for half stars. It adds to the noise.
    pub round_to: Option<f64>,
    /// Picks one of the data sets of these settings.
    pub seed: u64,
}

impl Default for RatingsSettings {
    /// 1,000 users, 500 items, 50,000 ratings; dimension 8, mean 3.5, signal 0.8, noise 0.5, exponents 0.4 and 0.7.
    fn default() -> Self {
        Self {
            num_users: 1000,
            num_items: 500,
            num_ratings: 50_000,
            latent_dim: 8,
            mean: 3.5,
            signal: 0.8,
            noise: 0.5,
            user_exponent: 0.4,
            item_exponent: 0.7,
            round_to: None,
            seed: 1,
        }
    }
}

/// Ratings and what they were made from.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticRatings {
    /// The ratings, user after user. Names are numbers from 1, as in the text.
    pub data: Dataset<f32>,
    /// What was planted.
    pub truth: RatingsTruth,
}

/// The planted model.
#[derive(Clone, Debug, PartialEq)]
pub struct RatingsTruth {
    /// Length of a factor.
    pub latent_dim: usize,
    /// Factors of users, `[num_users, latent_dim]`.
    pub users: Vec<f32>,
    /// Factors of items, `[num_items, latent_dim]`.
    pub items: Vec<f32>,
    /// The global mean.
    pub mean: f64,
    /// RMSE of the planted model on the ratings: noise and rounding, as drawn.
    pub noise_floor: f64,
}

/// Streams of one item: see [`Random::new`].
const USER_FACTORS: u64 = 1;
const ITEM_FACTORS: u64 = 2;
const ITEMS_OF_USER: u64 = 3;

/// Vertices whose factors one thread draws at a time.
const VERTICES_AT_A_TIME: usize = 256;

impl RatingsSettings {
    /// Makes the ratings.
    ///
    /// # Errors
    /// Where a setting is out of range.
    ///
    /// # Examples
    /// ```
    /// let made = megagrid_datasets::synthetic::RatingsSettings::default().generate()?;
    /// assert_eq!(made.data.edges.num_edges(), 50_000);
    /// assert!((made.truth.noise_floor - 0.5).abs() < 0.01);
    /// # Ok::<(), megagrid_datasets::Error>(())
    /// ```
    pub fn generate(&self) -> Result<SyntheticRatings, Error> {
        self.check()?;
        let mut truth = RatingsTruth {
            latent_dim: self.latent_dim,
            users: self.factors(USER_FACTORS, self.num_users),
            items: self.factors(ITEM_FACTORS, self.num_items),
            mean: self.mean,
            noise_floor: 0.0,
        };
        let degrees = self.degrees();
        let popularity = alias_table(self.shuffled(self.seed ^ 2, zipf(self.num_items, self.item_exponent)));
        let of_user = |user: usize| self.ratings_of(user, degrees[user], &popularity, &truth);
        let by_user = parallel::map(self.num_users, of_user);
        let mut edges = EdgeList { num_left: self.num_users, num_right: self.num_items, ..EdgeList::default() };
        let mut squares = 0.0;
        for (user, mut ratings) in by_user.into_iter().enumerate() {
            edges.right.append(&mut ratings.items);
            edges.data.append(&mut ratings.values);
            edges.left.resize(edges.right.len(), user as u32);
            squares += ratings.squared_errors;
        }
        truth.noise_floor = (squares / self.num_ratings as f64).sqrt();
        let (left_names, right_names) = (numbered(self.num_users), Some(numbered(self.num_items)));
        Ok(SyntheticRatings { data: Dataset { edges, left_names, right_names }, truth })
    }

    fn check(&self) -> Result<(), Error> {
        check_count("users", self.num_users)?;
        check_count("items", self.num_items)?;
        let fits = self.num_ratings as u128 <= self.num_users as u128 * self.num_items as u128;
        check(fits && self.num_ratings > 0, "ratings", self.num_ratings as f64, "1 to users x items")?;
        check((1..=1 << 16).contains(&self.latent_dim), "latent dim", self.latent_dim as f64, "1 to 65536")?;
        check(self.mean.is_finite(), "mean", self.mean, "a finite number")?;
        for (name, value) in [
            ("signal", self.signal),
            ("noise", self.noise),
            ("user exponent", self.user_exponent),
            ("item exponent", self.item_exponent),
        ] {
            check((0.0..=1e3).contains(&value), name, value, "0 to 1000")?;
        }
        let step = self.round_to.unwrap_or(1.0);
        check(step > 0.0 && step.is_finite(), "rounding step", step, "a finite number above 0")
    }

    /// Draws factors such that `p . q` has the deviation asked for.
    fn factors(&self, purpose: u64, num_vertices: usize) -> Vec<f32> {
        let deviation = (self.signal / (self.latent_dim as f64).sqrt()).sqrt();
        let mut factors = vec![0.0; num_vertices * self.latent_dim];
        parallel::each_chunk(&mut factors, VERTICES_AT_A_TIME * self.latent_dim, |at, factors| {
            for (vertex, factor) in factors.chunks_mut(self.latent_dim).enumerate() {
                let mut random = Random::new(self.seed, purpose, at * VERTICES_AT_A_TIME + vertex);
                factor.fill_with(|| random.normal(deviation) as f32);
            }
        });
        factors
    }

    /// Returns the number of ratings of each user: proportional to the weights where no user runs out of items.
    fn degrees(&self) -> Vec<usize> {
        let weights = self.shuffled(self.seed ^ 1, zipf(self.num_users, self.user_exponent));
        let degrees_at = |level: f64| weights.iter().map(move |weight| self.num_items.min((level * weight) as usize));
        // The largest level that does not ask for too many.
        let (mut low, mut high) = (0.0, 1.0);
        while degrees_at(high).sum::<usize>() <= self.num_ratings && high < f64::MAX / 2.0 {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..64 {
            let middle = 0.5 * (low + high);
            if degrees_at(middle).sum::<usize>() <= self.num_ratings { low = middle } else { high = middle }
        }
        let mut degrees: Vec<usize> = degrees_at(low).collect();
        let mut missing = self.num_ratings - degrees.iter().sum::<usize>();
        while missing > 0 {
            for degree in degrees.iter_mut().filter(|degree| **degree < self.num_items) {
                let more = missing.min(1);
                *degree += more;
                missing -= more;
            }
        }
        degrees
    }

    /// Shuffles weights, so that an id does not tell its rank.
    fn shuffled(&self, seed: u64, weights: Vec<f64>) -> Vec<f64> {
        let order = Relabeling::random(weights.len(), seed);
        order.old_of_new().iter().map(|&rank| weights[rank as usize]).collect()
    }

    fn ratings_of(
        &self,
        user: usize,
        degree: usize,
        popularity: &WeightedAliasIndex<f64>,
        truth: &RatingsTruth,
    ) -> UserRatings {
        let mut random = Random::new(self.seed, ITEMS_OF_USER, user);
        let items = distinct(degree, self.num_items, popularity, &mut random);
        let mut squared_errors = 0.0;
        let mut rate = |&item: &u32| {
            let planted = truth.predict(user, item as usize);
            let rating = planted + random.normal(self.noise);
            let rating = self.round_to.map_or(rating, |step| (rating / step).round() * step) as f32;
            squared_errors += (f64::from(rating) - planted).powi(2);
            rating
        };
        let values = items.iter().map(&mut rate).collect();
        UserRatings { items, values, squared_errors }
    }
}

struct UserRatings {
    items: Vec<u32>,
    values: Vec<f32>,
    squared_errors: f64,
}

/// Items are drawn this many times as often as are wanted; after that the next ones that are free do.
const TRIES: usize = 16;

fn distinct(count: usize, num_items: usize, popularity: &WeightedAliasIndex<f64>, random: &mut Random) -> Vec<u32> {
    let mut is_taken = vec![false; num_items];
    let mut items = Vec::with_capacity(count);
    for _ in 0..TRIES * count {
        if items.len() == count {
            return items;
        }
        let item = random.pick(popularity);
        if !std::mem::replace(&mut is_taken[item], true) {
            items.push(item as u32);
        }
    }
    let start = random.0.below(num_items as u64) as usize;
    let free = (start..num_items).chain(0..start).filter(|&item| !is_taken[item]);
    items.extend(free.take(count - items.len()).map(|item| item as u32));
    items
}

impl RatingsTruth {
    /// Returns the rating without noise.
    ///
    /// # Panics
    /// Where there is no such user or item.
    #[must_use]
    pub fn predict(&self, user: usize, item: usize) -> f64 {
        let row = |vertex: usize| vertex * self.latent_dim..(vertex + 1) * self.latent_dim;
        let products = self.users[row(user)].iter().zip(&self.items[row(item)]);
        self.mean + products.map(|(p, q)| f64::from(p * q)).sum::<f64>()
    }

    /// Writes the factors as `users.npy` and `items.npy` into a directory that exists.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        for (name, factors) in [("users.npy", &self.users), ("items.npy", &self.items)] {
            write_matrix(&directory.join(name), self.latent_dim, factors.chunks_exact(self.latent_dim))?;
        }
        Ok(())
    }
}

impl SyntheticRatings {
    /// Writes the ratings as text, `user<TAB>item<TAB>rating` a line, numbered from 1.
    ///
    /// # Errors
    /// Where something is at `path` already or the system refuses.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let edges = &self.data.edges;
        write_text(path, "", edges.num_edges(), |text, edge| {
            let (user, item) = (u64::from(edges.left[edge]) + 1, u64::from(edges.right[edge]) + 1);
            writeln!(text, "{user}\t{item}\t{}", edges.data[edge])
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use megagrid_partition::{DegreeStats, count_degrees, offsets_of};

    use super::*;

    fn rmse(made: &SyntheticRatings) -> f64 {
        let edges = &made.data.edges;
        let ends = edges.left.iter().zip(&edges.right).zip(&edges.data);
        let error =
            ends.map(|((&u, &i), &r)| (f64::from(r) - made.truth.predict(u as usize, i as usize)).powi(2)).sum::<f64>();
        (error / edges.num_edges() as f64).sqrt()
    }

    #[test]
    fn residuals_have_the_planted_deviation() {
        let settings = RatingsSettings::default();
        let made = settings.generate().unwrap();
        assert!((rmse(&made) - settings.noise).abs() < 0.01);
        assert!((rmse(&made) - made.truth.noise_floor).abs() < 1e-6);
        // Over pairs, the deviation of ratings is that of signal and noise together.
        let ratings = &made.data.edges.data;
        let mean = ratings.iter().map(|&r| f64::from(r)).sum::<f64>() / ratings.len() as f64;
        let variance = ratings.iter().map(|&r| (f64::from(r) - mean).powi(2)).sum::<f64>() / ratings.len() as f64;
        assert!((mean - settings.mean).abs() < 0.1, "{mean}");
        assert!((variance - (0.64 + 0.25)).abs() < 0.15, "{variance}");
    }

    #[test]
    fn rounding_adds_to_the_noise() {
        let settings = RatingsSettings { round_to: Some(0.5), ..RatingsSettings::default() };
        let made = settings.generate().unwrap();
        assert!(made.data.edges.data.iter().all(|rating| (2.0 * rating).fract() == 0.0));
        // Uniform on a step of 0.5: variance 0.25 / 12.
        assert!((rmse(&made) - (0.25_f64 + 0.25 / 12.0).sqrt()).abs() < 0.01);
    }

    #[test]
    fn pairs_are_distinct_and_degrees_skewed() {
        let made = RatingsSettings::default().generate().unwrap();
        let edges = &made.data.edges;
        let pairs: BTreeSet<_> = edges.left.iter().zip(&edges.right).collect();
        assert_eq!(pairs.len(), 50_000);
        let stats = |ids: &[u32], n| DegreeStats::of(&offsets_of(&count_degrees(ids, n)));
        let (users, items) = (stats(&edges.left, 1000), stats(&edges.right, 500));
        assert!(users.max > 400 && users.median < 50, "{users:?}");
        assert!(items.max > 500 && items.median < 100, "{items:?}");
    }

    #[test]
    fn every_pair_can_be_rated() {
        let settings = RatingsSettings { num_users: 7, num_items: 5, num_ratings: 35, ..RatingsSettings::default() };
        assert_eq!(settings.generate().unwrap().data.edges.num_edges(), 35);
        let error = RatingsSettings { num_ratings: 36, ..settings }.generate().unwrap_err();
        assert_eq!(error.to_string(), "ratings 36 is out of range; expected 1 to users x items");
    }
}
