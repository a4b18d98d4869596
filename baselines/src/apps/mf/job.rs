//! What is to be factorized, and what all systems need of it.

use std::collections::BTreeMap;

use megagrid_algorithms::mf::in_place::Mf;
use megagrid_algorithms::mf::{Config, Objective, SquaredErrors, Sums};
use megagrid_partition::EdgeList;
use megagrid_stages::simd::{Kernel, Level};
use megagrid_stages::{Context, Exchange, Read};

use crate::job::Measured;

/// Clocks of an iteration in place: what several workers change an item by within a clock adds up, too much if that is an iteration.
pub(super) const CLOCKS: u64 = 16;

/// How factors are stepped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Rating by rating, as [`megagrid_algorithms::mf::in_place`]. Not on GAS, whose vertices change once a superstep.
    InPlace,
    /// By the gradient of all ratings, once an iteration, as [`megagrid_algorithms::mf::batch`] with one batch: on all systems.
    #[default]
    Batch,
}

/// What is to be factorized.
#[derive(Clone, Copy, Debug)]
pub struct Job<'j> {
    /// Ratings less their mean, in the order in which workers visit them.
    pub ratings: &'j EdgeList<f32>,
    /// Parameters.
    pub config: Config,
    /// How factors are stepped.
    pub form: Form,
}

impl Job<'_> {
    /// Sets the first values of the rows of users and items: those of vertices without ratings stay 0, but for the one that
    /// stands beside a bias.
    pub(super) fn init(
        &self,
        seed: u64,
        mut set: impl FnMut(megagrid_partition::Side, usize, &mut dyn FnMut(&mut [f32])),
    ) {
        use megagrid_partition::Side::{Left, Right};
        let Self { ratings, config, .. } = self;
        for side in [Left, Right] {
            let (ends, len) = match side {
                Left => (&ratings.left, ratings.num_left),
                Right => (&ratings.right, ratings.num_right),
            };
            let mut is_rated = vec![false; len];
            ends.iter().for_each(|&id| is_rated[id as usize] = true);
            for (id, is_rated) in is_rated.into_iter().enumerate() {
                set(side, id, &mut |row| {
                    match side {
                        Left => config.init_user(seed, id, row),
                        Right => config.init_item(seed, id, row),
                    }
                    if !is_rated {
                        row[..config.dims].fill(0.0);
                    }
                });
            }
        }
    }

    /// Measures the objective of rows of users and items.
    pub(super) fn measure<'r>(&self, user: impl Fn(usize) -> &'r [f32], item: impl Fn(usize) -> &'r [f32]) -> Measured {
        let mut sums = Sums::default();
        Level::detect().run(Measure { job: self, user, item, sums: &mut sums });
        let Objective { value, rmse } = Objective::new(sums, self.config.lambda);
        (value, BTreeMap::from([("train_rmse", rmse)]))
    }
}

/// What stage functions see of the iteration before: these programs keep no running errors.
pub const NOTHING: Sums = Sums { squared_errors: 0.0, squared_norms: 0.0, ratings: 0 };

struct Measure<'m, U, I> {
    job: &'m Job<'m>,
    user: U,
    item: I,
    sums: &'m mut Sums,
}

impl<'r, U: Fn(usize) -> &'r [f32], I: Fn(usize) -> &'r [f32]> Kernel for Measure<'_, U, I> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { job: Job { ratings, config, .. }, user, item, sums } = self;
        let mut cx: Context<'_, Mf> = Context { worker: sums, global: &NOTHING, iteration: 0, seed: 0 };
        for ((&left, &right), &rating) in ratings.left.iter().zip(&ratings.right).zip(&ratings.data) {
            let user = Read { sync: user(left as usize), mirror: &0.0 };
            let item = Read { sync: item(right as usize), mirror: &0.0 };
            SquaredErrors(*config).exchange(user, item, &mut { rating }, &mut cx);
        }
    }
}
